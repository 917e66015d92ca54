"""Semijoin idempotence: a relation that will be joined with A on k need not first be restricted to A's values of k.

    Join (#0 = #3)                                 Join (#0 = #3)
      A                                              A
      TopK group_by=[#0] …                 ->        TopK group_by=[#0] …
        Join (#0 = #1)                                 Project (#0, …) of U
          Distinct [#0] (A)
          U

This is how correlated subqueries are decorrelated: the inner query runs for the distinct outer values. Groups of other
values find no partner in the outer join, so nothing changes but the work: worth it unless A is filtered, when the
restriction is what keeps the inner work small. k must pass through unchanged: as group keys of every grouping node.
"""

from __future__ import annotations

from adapter.transform.context import Context
from adapter.transform.subset import support_contained
from mzlite.expr import relation as r
from mzlite.expr.scalar import Ref, Scalar, remap, support


def semijoin_idempotence(e: r.Mir, context: Context) -> r.Mir:
    if sum(isinstance(n, r.Join) for n in r.walk(e)) < 2:
        return e
    values = {n.id: n.value for n in r.walk(e) if isinstance(n, r.Let)}

    def visit(node: r.Mir) -> r.Mir:
        if isinstance(node, r.Join) and node.implementation is None:
            return _relax_inputs(node, values, context)
        return node

    return r.rewrite(e, visit)


def _relax_inputs(join: r.Join, values: dict[int, r.Mir], context: Context) -> r.Join:
    inputs = list(join.inputs)
    arities = [context.types.arity(i) for i in inputs]
    offsets = [sum(arities[:i]) for i in range(len(arities))]
    for b, inner in enumerate(inputs):
        for a, outer in enumerate(inputs):
            if a == b or not _unfiltered(outer, values):
                continue
            pairs = _pairs(join, offsets[b], arities[b], offsets[a], arities[a])
            new = _relax(inner, pairs, outer, context)
            if new is not None:
                inputs[b] = new
                break
    if all(x is y for x, y in zip(inputs, join.inputs)):
        return join
    return r.Join(tuple(inputs), join.equivalences)


def _unfiltered(e: r.Mir, values: dict[int, r.Mir]) -> bool:
    """A whole collection, as far as the plan shows."""
    for _ in range(20):
        match e:
            case r.Project(input) | r.Map(input):
                e = input
            case r.Get(id, _) if isinstance(id, int) and id in values:
                e = values[id]
            case r.Get(id, _):
                return isinstance(id, str)
            case _:
                return False
    return False


def _pairs(join: r.Join, base: int, n: int, other: int, other_n: int) -> dict[int, int]:
    """Columns of the inner input equated with columns of the outer one."""
    out: dict[int, int] = {}
    for cls in join.equivalences:
        columns = [m.column for m in cls if isinstance(m, Ref)]
        outer = [c - other for c in columns if other <= c < other + other_n]
        if outer:
            out.update({c - base: outer[0] for c in columns if base <= c < base + n})
    return out


def _relax(e: r.Mir, pairs: dict[int, int], outer: r.Mir, context: Context) -> r.Mir | None:
    """e without a semijoin with outer's columns; pairs: e's columns that will be compared with outer's."""
    match e:
        case r.Project(input, outputs):
            below = {c: pairs[i] for i, c in enumerate(outputs) if i in pairs}
        case r.Filter(input, _):
            below = pairs
        case r.Map(input, _):
            n = context.types.arity(input)
            below = {c: o for c, o in pairs.items() if c < n}
        case r.TopK(input, group_key, _, _, _) | r.Window(input, group_key, _, _):
            below = {c: o for c, o in pairs.items() if c in group_key}
        case r.Reduce(input, keys, _):
            below = {k.column: pairs[i] for i, k in enumerate(keys) if i in pairs and isinstance(k, Ref)}
        case r.Join(_, _, None):
            return _relax_join(e, pairs, outer, context)
        case _:
            return None
    if not below and not isinstance(e, r.Project | r.Filter | r.Map):
        return None
    new = _relax(input, below, outer, context)
    return None if new is None else r.with_children(e, (new,))


def _relax_join(join: r.Join, pairs: dict[int, int], outer: r.Mir, context: Context) -> r.Mir | None:
    arities = [context.types.arity(i) for i in join.inputs]
    offsets = [sum(arities[:i]) for i in range(len(arities))]
    if len(join.inputs) < 2:
        return None
    for i, input in enumerate(join.inputs):
        if not isinstance(input, r.Reduce) or input.aggregates:
            continue
        start, stop = offsets[i], offsets[i] + arities[i]
        compared: list[int] = []
        instead: dict[int, Scalar] = {}
        for c in range(start, stop):
            cls = next((cls for cls in join.equivalences if Ref(c) in cls), ())
            others = [m for m in cls if support(m) and not any(start <= x < stop for x in support(m))]
            # Which of outer's columns is this one compared with, itself or through its class?
            same = next((pairs[m.column] for m in (Ref(c), *cls) if isinstance(m, Ref) and m.column in pairs), None)
            if not others or same is None:
                break
            instead[c] = min(others, key=lambda m: (not isinstance(m, Ref), repr(m)))
            compared.append(same)
        if len(compared) == arities[i] and _covers(outer, compared, input, context):
            return _without(join, i, start, stop, instead)
    return None


def _covers(outer: r.Mir, columns: list[int], distinct: r.Reduce, context: Context) -> bool:
    """Is each of outer's combinations of columns among the distinct ones?"""
    if not all(isinstance(k, Ref) for k in distinct.group_key):
        return False
    part = r.Project(outer, tuple(columns))
    whole = r.Project(distinct.input, tuple(k.column for k in distinct.group_key if isinstance(k, Ref)))
    return support_contained(_merged(part, context), _merged(whole, context), context)


def _merged(e: r.Project, context: Context) -> r.Mir:
    input, outputs = e.input, e.outputs
    while isinstance(input, r.Project):
        outputs = tuple(input.outputs[c] for c in outputs)
        input = input.input
    return input if outputs == tuple(range(context.types.arity(input))) else r.Project(input, outputs)


def _without(join: r.Join, i: int, start: int, stop: int, instead: dict[int, Scalar]) -> r.Mir | None:
    """The join without input i, whose columns read as the expressions they were equated with."""
    width = stop - start

    def at(c: int) -> int:
        return c if c < start else c - width

    replaced = {c: remap(m, at) for c, m in instead.items()}
    classes = []
    for cls in join.equivalences:
        members: dict[Scalar, None] = {}
        for m in cls:
            inside = [c for c in support(m) if start <= c < stop]
            if isinstance(m, Ref) and inside:
                members[replaced[m.column]] = None
            elif inside:
                return None
            else:
                members[remap(m, at)] = None
        classes.append(tuple(members))
    inputs = join.inputs[:i] + join.inputs[i + 1 :]
    return _restored(r.Join(inputs, tuple(classes)), start, stop, replaced)


def _restored(out: r.Mir, start: int, stop: int, replaced: dict[int, Scalar]) -> r.Mir:
    from mzlite.expr.typecheck import typ

    left = typ(out).arity
    extra: list[Scalar] = []
    outputs: list[int] = list(range(start))
    for c in range(start, stop):
        e = replaced[c]
        if isinstance(e, Ref):
            outputs.append(e.column)
        else:
            outputs.append(left + len(extra))
            extra.append(e)
    outputs += range(start, left)
    return r.Project(r.Map(out, tuple(extra)) if extra else out, tuple(outputs))
