"""Predicate pushdown: filter as early as the meaning allows.

Predicates travel down in one walk from the root. What they may pass:

    Project, Map        rewritten over the input (a Map's scalar is substituted)
    Join                to the one input they read; `a = b` across inputs becomes an equivalence; a predicate on one member of an
                        equivalence class is copied to the class's other members
    Reduce, TopK, Window  only predicates over group key / partition columns
    Union, Negate, Threshold, ArrangeBy, FlatMap (input columns)

Not below a Let binding: a binding has several readers.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from adapter.transform.context import Context
from adapter.transform.equality import as_equality, interchangeable
from adapter.transform.fusion import merge_classes
from mzlite.expr import relation as r
from mzlite.expr.scalar import Call, Ref, Scalar, remap, shift, substitute, support, walk

Predicates = tuple[Scalar, ...]


def predicate_pushdown(e: r.Mir, context: Context) -> r.Mir:
    return _push(e, (), context)


def _filter(e: r.Mir, predicates: Predicates) -> r.Mir:
    if not predicates:
        return e
    if isinstance(e, r.Filter):
        return r.Filter(e.input, tuple(dict.fromkeys(e.predicates + predicates)))
    return r.Filter(e, predicates)


def _push(e: r.Mir, predicates: Predicates, context: Context) -> r.Mir:
    match e:
        case r.Filter(input, own):
            return _push(input, _conjuncts(own + predicates), context)
        case r.Project(input, outputs):
            down = tuple(remap(p, outputs.__getitem__) for p in predicates)
            return r.Project(_push(input, down, context), outputs)
        case r.Map():
            return _push_map(e, predicates, context)
        case r.FlatMap(input, _, _):
            n = context.types.arity(input)
            down, stay = _split(predicates, lambda s: all(c < n for c in s))
            return _filter(r.with_children(e, (_push(input, down, context),)), stay)
        case r.Join(_, _, None):
            return _push_join(e, predicates, context)
        case r.Reduce(input, group_key, _):
            k = len(group_key)
            # Without a key the group exists whatever the filter says.
            down, stay = _split(predicates, lambda s: bool(s) and all(c < k for c in s))
            below = tuple(substitute(p, group_key) for p in down)
            return _filter(r.with_children(e, (_push(input, below, context),)), stay)
        case r.TopK(input, group_key, _, _, _):
            keys = set(group_key)
            down, stay = _split(predicates, lambda s: bool(s) and s <= keys)
            return _filter(r.with_children(e, (_push(input, down, context),)), stay)
        case r.Window(input, partition_by, _, _):
            keys = set(partition_by)
            down, stay = _split(predicates, lambda s: bool(s) and s <= keys)
            return _filter(r.with_children(e, (_push(input, down, context),)), stay)
        case r.Union(inputs):
            return r.Union(tuple(_push(i, predicates, context) for i in inputs))
        case r.Negate(input):
            return r.Negate(_push(input, predicates, context))
        case r.Threshold(input):
            # Whole rows pass or not, so multiplicities within a row's group are untouched.
            return r.Threshold(_push(input, predicates, context))
        case r.Let(id, value, body):
            return r.Let(id, _push(value, (), context), _push(body, predicates, context))
        case r.LetRec():
            values = tuple(_push(v, (), context) for v in e.values)
            return r.with_children(e, (*values, _push(e.body, predicates, context)))
        case _:
            kids = tuple(_push(k, (), context) for k in r.children(e))
            return _filter(r.with_children(e, kids), predicates)


def _conjuncts(predicates: Predicates) -> Predicates:
    """`a AND b` as two predicates; duplicates go."""
    out: dict[Scalar, None] = {}
    todo = list(reversed(predicates))
    while todo:
        p = todo.pop()
        if isinstance(p, Call) and p.func == "and":
            todo.extend(reversed(p.args))
        else:
            out[p] = None
    return tuple(out)


def _split(predicates: Predicates, passes: Callable[[frozenset[int]], bool]) -> tuple[Predicates, Predicates]:
    down: list[Scalar] = []
    stay: list[Scalar] = []
    for p in predicates:
        (down if passes(support(p)) else stay).append(p)
    return tuple(down), tuple(stay)


def _push_map(e: r.Map, predicates: Predicates, context: Context) -> r.Mir:
    n = context.types.arity(e.input)
    columns: list[Scalar] = [Ref(i) for i in range(n)]
    for s in e.scalars:
        columns.append(substitute(s, tuple(columns)))
    down: list[Scalar] = []
    stay: list[Scalar] = []
    for p in predicates:
        reads = support(p)
        if all(c < n for c in reads):
            down.append(p)
        elif all(c < n or _cheap(columns[c]) for c in reads):
            down.append(substitute(p, tuple(columns)))
        else:
            stay.append(p)
    return _filter(r.Map(_push(e.input, tuple(down), context), e.scalars), tuple(stay))


def _cheap(e: Scalar) -> bool:
    """Worth evaluating twice: small, so that substitution does not blow a plan up."""
    return sum(1 for _ in islice(walk(e), 21)) <= 20


def _push_join(e: r.Join, predicates: Predicates, context: Context) -> r.Mir:
    types = [context.types.typ(i) for i in e.inputs]
    offsets = [0]
    for t in types:
        offsets.append(offsets[-1] + len(t.columns))
    owner = [i for i, t in enumerate(types) for _ in t.columns]
    scalars = [c.scalar for t in types for c in t.columns]
    down: list[list[Scalar]] = [[] for _ in e.inputs]
    classes = list(e.equivalences)
    stay: list[Scalar] = []
    for p in _conjuncts(predicates):
        inputs = {owner[c] for c in support(p)}
        if len(inputs) == 1:
            down[inputs.pop()].append(p)
            continue
        pair = as_equality(p)
        if pair is not None and _apart(pair, owner):
            classes.append(pair)
            continue
        stay.append(p)
    merged = merge_classes(classes)
    # A predicate on one member of a class holds for the others: a = b AND a = 5 filters b as well.
    for i, ps in enumerate([list(dict.fromkeys(ps)) for ps in down]):
        for p in ps:
            s = support(p)
            if len(s) != 1:
                continue
            (c,) = s
            if not interchangeable(scalars[c]):
                continue
            for cls in merged:
                if Ref(c) in cls:
                    for other in cls:
                        if isinstance(other, Ref) and owner[other.column] != i and scalars[other.column] == scalars[c]:
                            down[owner[other.column]].append(remap(p, {c: other.column}))
    pushed = []
    for i, input in enumerate(e.inputs):
        base = offsets[i]
        local = tuple(dict.fromkeys(shift(p, -base) for p in down[i]))
        pushed.append(_push(input, local, context))
    return _filter(r.Join(tuple(pushed), merged), tuple(stay))


def _apart(pair: tuple[Scalar, Scalar], owner: list[int]) -> bool:
    """Do the sides read different inputs, so that one can be looked up by the other?"""
    a, b = ({owner[c] for c in support(x)} for x in pair)
    return bool(a) and bool(b) and not a & b
