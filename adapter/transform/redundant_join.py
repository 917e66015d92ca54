"""Redundant joins: an input that only repeats what another input says goes.

    Join (#0 = #2)                         Filter (#0) IS NOT NULL
      A                             ->       A, with #2 read as #0
      Distinct [#0] (Project (#0) A)

The input's columns must be a key of it, each equated with a column of another input A, and A's rows must all be found
there: its support contains A's. A is then joined with exactly one row each. That is what decorrelation leaves when a
subquery turns out to need no outer row, and what a primary key joined with itself comes to.
"""

from __future__ import annotations

from adapter.transform.context import Context
from adapter.transform.fusion import class_predicates
from adapter.transform.subset import support_contained
from mzlite.expr import relation as r
from mzlite.expr.scalar import Ref, Scalar, remap


def redundant_join(e: r.Mir, context: Context) -> r.Mir:
    def visit(node: r.Mir) -> r.Mir:
        while isinstance(node, r.Join) and node.implementation is None and len(node.inputs) > 1:
            new = _drop_one(node, context)
            if new is None:
                return node
            node = new
        return node

    return r.rewrite(e, visit)


def _drop_one(join: r.Join, context: Context) -> r.Mir | None:
    arities = [context.types.arity(i) for i in join.inputs]
    offsets = [0]
    for a in arities:
        offsets.append(offsets[-1] + a)
    equals: dict[int, list[int]] = {}
    for cls in join.equivalences:
        columns = [m.column for m in cls if isinstance(m, Ref)]
        equals.update(dict.fromkeys(columns, columns))
    for i, input in enumerate(join.inputs):
        # Every column compared with something, and together unique?
        if not all(c in equals for c in range(offsets[i], offsets[i + 1])) or not context.types.typ(input).keys:
            continue
        for j, other in enumerate(join.inputs):
            paired = None if i == j else _pairs(equals, offsets[i], arities[i], offsets[j], arities[j])
            if paired is None:
                continue
            part: r.Mir = other if paired == tuple(range(arities[j])) else r.Project(other, paired)
            if _sees_all(part, input, context):
                instead = {offsets[i] + c: offsets[j] + p for c, p in enumerate(paired)}
                new = _without(join, i, offsets, instead, context)
                if new is not None:
                    return new
    return None


def _sees_all(part: r.Mir, input: r.Mir, context: Context) -> bool:
    if support_contained(part, input, context):
        return True
    # Distinct [#0, …] (X): its support is X's, projected.
    if isinstance(input, r.Reduce) and not input.aggregates and all(isinstance(k, Ref) for k in input.group_key):
        outputs = tuple(k.column for k in input.group_key if isinstance(k, Ref))
        whole: r.Mir = input.input
        if outputs != tuple(range(context.types.arity(whole))):
            whole = r.Project(whole, outputs)
        return support_contained(part, whole, context)
    return False


def _pairs(equals: dict[int, list[int]], base: int, n: int, other_base: int, other_n: int) -> tuple[int, ...] | None:
    """For each column of the input, the first column of the other that it is equated with."""
    out: list[int] = []
    for c in range(base, base + n):
        candidates = [x for x in equals[c] if other_base <= x < other_base + other_n]
        if not candidates:
            return None
        out.append(min(candidates) - other_base)
    return tuple(out)


def _without(join: r.Join, i: int, offsets: list[int], instead: dict[int, int], context: Context) -> r.Mir | None:
    total = offsets[-1]
    start, stop = offsets[i], offsets[i + 1]

    def at(c: int) -> int:
        c = instead.get(c, c)
        return c if c < start else c - (stop - start)

    inputs = join.inputs[:i] + join.inputs[i + 1 :]
    classes: list[tuple[Scalar, ...]] = []
    alone: list[tuple[Scalar, ...]] = []
    for cls in join.equivalences:
        moved = tuple(dict.fromkeys(remap(m, at) for m in cls))
        # Equality with itself still says that it is not NULL.
        (classes if len(moved) > 1 and len(inputs) > 1 else alone).append(moved)
    out: r.Mir = r.Join(inputs, tuple(classes)) if len(inputs) > 1 else inputs[0]
    predicates = class_predicates(alone, context.types.columns(out))
    if predicates is None:
        return None
    if predicates:
        out = r.Filter(out, tuple(predicates))
    return r.Project(out, tuple(at(c) for c in range(total)))
