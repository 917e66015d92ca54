"""Join planning: an order of lookups for every join, and whether it runs as a linear or a delta join.

An order grows greedily: of the inputs not yet joined, take the one whose lookup promises least, judged by

    connected (no cross product) > key covers a unique key > more key columns > an arrangement exists > filtered > position

With n inputs and c equivalence members that is O(n (n + c)) per start; small joins try every start, large ones a few.

A delta join keeps no intermediate results but needs, for every path, an arrangement of every input it looks up. It is
chosen for three or more inputs when that takes no more new arrangements than the linear join would build; a read at a
single time has no changes to propagate, so there it is chosen only when it takes none.

Every looked-up input becomes an ArrangeBy with its keys, so that indexes with those keys are imported and equal
arrangements are shared. Source: Materialize's JoinImplementation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adapter.transform.context import Context
from adapter.transform.equality import literal_alternatives
from adapter.transform.join_inputs import lift_over_indexes
from mzlite.expr import relation as r
from mzlite.expr.scalar import Ref, Scalar, shift, support
from mzlite.expr.typecheck import Types

MAX_STARTS = 8
MAX_DELTA_INPUTS = 16

Key = tuple[Scalar, ...]
Order = tuple[tuple[int, Key], ...]
Rank = tuple[int, int, int, int, int, int]


def join_implementation(e: r.Mir, context: Context) -> r.Mir:
    def visit(node: r.Mir) -> r.Mir:
        if isinstance(node, r.Join) and node.implementation is None and len(node.inputs) > 1:
            lifted, above = lift_over_indexes(node, context) if context.indexes else (node, None)
            planned = _plan(lifted, context)
            return planned if above is None else above(planned)
        return node

    return r.rewrite(e, visit)


@dataclass(frozen=True, slots=True)
class _Member:
    """One expression of an equivalence class: the input it reads (None: several or none), local to that input."""

    cls: int
    input: int | None
    needs: frozenset[int]
    local: Scalar


class _Shape:
    """The join, seen by input."""

    def __init__(self, join: r.Join, context: Context) -> None:
        self.join = join
        types = [context.types.typ(i) for i in join.inputs]
        self.n = len(join.inputs)
        offsets = [0]
        for t in types:
            offsets.append(offsets[-1] + len(t.columns))
        owner = [i for i, t in enumerate(types) for _ in t.columns]
        self.unique = [[frozenset(k) for k in t.keys] for t in types]
        self.filtered = [filter_score(i) for i in join.inputs]
        self.members: list[_Member] = []
        self.by_input: list[list[_Member]] = [[] for _ in join.inputs]
        for c, cls in enumerate(join.equivalences):
            for e in cls:
                inputs = frozenset(owner[x] for x in support(e))
                only = next(iter(inputs)) if len(inputs) == 1 else None
                base = offsets[only] if only is not None else 0
                m = _Member(c, only, inputs, shift(e, -base))
                self.members.append(m)
                if only is not None:
                    self.by_input[only].append(m)
        self.arranged = [arrangements(i, context) for i in join.inputs]


def filter_score(e: r.Mir) -> int:
    """How much less an input holds than what it reads: an index lookup, then equalities with literals, then others."""
    score = 0
    while isinstance(e, r.Filter | r.Project | r.Map | r.ArrangeBy):
        if isinstance(e, r.Filter):
            score += sum(3 if literal_alternatives(p) is not None else 1 for p in e.predicates)
        e = e.input
    if isinstance(e, r.Join) and isinstance(e.implementation, r.IndexedFilter):
        score += 10
    return score


def arrangements(e: r.Mir, context: Context) -> set[Key]:
    """Keys by which the input is arranged already: indexes of a Get; an ArrangeBy."""
    match e:
        case r.Get(id, _) if isinstance(id, str):
            return {i.key for i in context.indexes.get(id, ())}
        case r.ArrangeBy(_, keys):
            return set(keys)
        case _:
            return set()


def _lookup_key(shape: _Shape, input: int, bound_classes: set[int]) -> Key:
    """The key of `input` that the inputs joined so far determine; an existing arrangement's key if one fits."""
    usable: dict[Scalar, int] = {}
    for m in shape.by_input[input]:
        if m.cls in bound_classes:
            usable.setdefault(m.local, m.cls)
    for key in sorted(shape.arranged[input], key=lambda k: (len(k), repr(k)), reverse=True):
        if key and all(k in usable for k in key):
            return key
    chosen: dict[int, Scalar] = {}
    for local, cls in usable.items():
        chosen.setdefault(cls, local)
    return tuple(chosen[c] for c in sorted(chosen))


def _covers(unique: Sequence[frozenset[int]], key: Key) -> bool:
    columns = {k.column for k in key if isinstance(k, Ref)}
    return any(u <= columns for u in unique)


def _rank(shape: _Shape, input: int, key: Key) -> Rank:
    unique = _covers(shape.unique[input], key)
    return (
        bool(key) or unique,
        unique,
        len(key),
        key in shape.arranged[input],
        shape.filtered[input],
        -input,
    )


def _order(shape: _Shape, start: int) -> tuple[Order, list[tuple[int, ...]]]:
    bound = {start}
    bound_classes: set[int] = set()
    waiting = list(shape.members)

    def settle() -> set[int]:
        rest, new = [], set[int]()
        for m in waiting:
            if m.cls in bound_classes:
                continue
            if m.needs <= bound:
                bound_classes.add(m.cls)
                new.add(m.cls)
            else:
                rest.append(m)
        waiting[:] = rest
        return new

    settle()
    order: list[tuple[int, Key]] = []
    ranks: list[tuple[int, ...]] = []
    left = [i for i in range(shape.n) if i != start]
    # Keys change only for inputs that share a class with what was bound last; recompute lazily.
    keys = {i: _lookup_key(shape, i, bound_classes) for i in left}
    scores = {i: _rank(shape, i, keys[i]) for i in left}
    while left:
        best = max(left, key=scores.__getitem__)
        order.append((best, keys[best]))
        ranks.append(scores[best][:-1])
        left.remove(best)
        bound.add(best)
        new = settle()
        if new:
            for i in left:
                if any(m.cls in new for m in shape.by_input[i]):
                    keys[i] = _lookup_key(shape, i, bound_classes)
                    scores[i] = _rank(shape, i, keys[i])
    return tuple(order), ranks


def _plan(join: r.Join, context: Context) -> r.Join:
    shape = _Shape(join, context)
    starts = range(shape.n) if shape.n <= MAX_STARTS else _promising(shape)
    best: tuple[list[tuple[int, ...]], int, int, Order] | None = None
    orders: dict[int, Order] = {}
    for start in starts:
        order, ranks = _order(shape, start)
        orders[start] = order
        # The weakest lookup decides, then the next weakest; a filtered start breaks ties.
        score = (sorted(ranks), shape.filtered[start], -start)
        if best is None or score > best[:3]:
            best = (*score, order)
    assert best is not None
    start = -best[2]
    paths = _delta(shape, orders, start, best[3], context)
    if paths is not None:
        return r.Join(_arrange(join.inputs, paths), join.equivalences, r.DeltaQuery(paths))
    order = best[3]
    inputs = list(_arrange(join.inputs, (order,)))
    key = _start_key(shape, start, order[0])
    if key in shape.arranged[start]:
        inputs[start] = _arranged_by(inputs[start], (key,))
    return r.Join(tuple(inputs), join.equivalences, r.Differential(start, order))


def _promising(shape: _Shape) -> list[int]:
    ranked = sorted(range(shape.n), key=lambda i: (shape.filtered[i], len(shape.by_input[i]), -i), reverse=True)
    return sorted(ranked[:4])


def _start_key(shape: _Shape, start: int, first: tuple[int, Key]) -> Key:
    """What the first lookup compares the start input with."""
    out: list[Scalar] = []
    for k in first[1]:
        cls = next((m.cls for m in shape.by_input[first[0]] if m.local == k), None)
        out += [m.local for m in shape.by_input[start] if m.cls == cls][:1]
    return tuple(out)


def _delta(
    shape: _Shape, orders: dict[int, Order], start: int, linear: Order, context: Context
) -> tuple[Order, ...] | None:
    """The paths, if a delta join is the better plan."""
    if not 2 < shape.n <= MAX_DELTA_INPUTS:
        return None
    for i in range(shape.n):
        if i not in orders:
            orders[i] = _order(shape, i)[0]
    paths = tuple(orders[i] for i in range(shape.n))
    if any(not key and not _covers(shape.unique[i], key) for path in paths for i, key in path):
        return None  # a cross product in some path: each change would meet a whole input
    needed = {(i, key) for path in paths for i, key in path}
    new = sum(key not in shape.arranged[i] for i, key in needed)
    if new == 0:
        return paths
    if context.single_time or shape.n > MAX_STARTS:
        return None
    built = sum(key not in shape.arranged[i] for i, key in linear)
    built += _start_key(shape, start, linear[0]) not in shape.arranged[start]
    built += shape.n - 2  # intermediate results
    return paths if new <= built else None


def _arrange(inputs: tuple[r.Mir, ...], paths: Sequence[Order]) -> tuple[r.Mir, ...]:
    keys: dict[int, dict[Key, None]] = {}
    for path in paths:
        for i, key in path:
            keys.setdefault(i, {})[key] = None
    return tuple(_arranged_by(input, tuple(keys.get(i, ()))) for i, input in enumerate(inputs))


def _arranged_by(input: r.Mir, keys: tuple[Key, ...]) -> r.Mir:
    if not keys:
        return input
    if isinstance(input, r.ArrangeBy):
        return r.ArrangeBy(input.input, tuple(dict.fromkeys(input.keys + keys)))
    return r.ArrangeBy(input, keys)


def lookup_traits(input: r.Mir, key: Key, types: Types) -> str:
    """What makes a lookup cheap, for EXPLAIN: U unique, K per key column, A arranged by nature, e/f filtered."""
    below = input.input if isinstance(input, r.ArrangeBy) else input
    text = "U" if _covers([frozenset(k) for k in types.typ(below).keys], key) else ""
    text += "K" * len(key)
    if isinstance(below, r.Reduce) and key == tuple(Ref(i) for i in range(len(below.group_key))):
        text += "A"
    score = filter_score(below)
    return text + ("e" if score >= 3 else "") + ("f" if score else "")
