"""Join planning: an order of lookups for every join, and whether it runs as a linear or a delta join.

An order grows greedily: of the inputs not yet joined, take the one whose lookup promises least, judged by

    connected (no cross product) > key covers a unique key > an arrangement exists > more key columns > filtered > position

With n inputs and c equivalence members that is O(n (n + c)) per start; small joins try every start, large ones a few.
A delta join needs an arrangement of every input for every path; it is chosen when a join of three or more inputs needs
no arrangement that does not already exist. Otherwise a linear (differential) join.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adapter.transform.context import Context
from mzlite.expr import relation as r
from mzlite.expr.scalar import Scalar, shift, support

MAX_STARTS = 8

Key = tuple[Scalar, ...]
Order = tuple[tuple[int, Key], ...]


def join_implementation(e: r.Mir, context: Context) -> r.Mir:
    def visit(node: r.Mir) -> r.Mir:
        if isinstance(node, r.Join) and node.implementation is None and len(node.inputs) > 1:
            return _plan(node, context)
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
        self.filtered = [_filters(i) for i in join.inputs]
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
        self.arranged = [_arrangements(i, context) for i in join.inputs]


def _filters(e: r.Mir) -> int:
    n = 0
    while isinstance(e, r.Filter | r.Project | r.Map):
        if isinstance(e, r.Filter):
            n += len(e.predicates)
        e = e.input
    return n + isinstance(e, r.Join) * (isinstance(e, r.Join) and isinstance(e.implementation, r.IndexedFilter)) * 10


def _arrangements(e: r.Mir, context: Context) -> set[Key]:
    """Keys by which the input is arranged already: indexes of a Get; an ArrangeBy; the group key of a Reduce."""
    match e:
        case r.Get(id, _) if isinstance(id, str):
            return {i.key for i in context.indexes.get(id, ())}
        case r.ArrangeBy(_, keys):
            return set(keys)
        case _:
            return set()


def _lookup_key(shape: _Shape, input: int, bound: set[int], bound_classes: set[int]) -> Key:
    """The key of `input` that the inputs joined so far determine; an existing arrangement's key if one fits."""
    usable: dict[Scalar, int] = {}
    for m in shape.by_input[input]:
        if m.cls in bound_classes:
            usable.setdefault(m.local, m.cls)
    for key in sorted(shape.arranged[input], key=len, reverse=True):
        if key and all(k in usable for k in key):
            classes = {usable[k] for k in key}
            if classes == set(usable.values()) or _covers_unique(shape, input, key):
                return key
    chosen: dict[int, Scalar] = {}
    for local, cls in usable.items():
        chosen.setdefault(cls, local)
    return tuple(chosen[c] for c in sorted(chosen))


def _covers_unique(shape: _Shape, input: int, key: Sequence[Scalar]) -> bool:
    columns = {next(iter(support(k))) for k in key if len(support(k)) == 1}
    return any(u <= columns for u in shape.unique[input])


def _rank(shape: _Shape, input: int, key: Key) -> tuple[int, int, int, int, int, int]:
    return (
        bool(key),
        bool(key) and _covers_unique(shape, input, key),
        key in shape.arranged[input],
        len(key),
        shape.filtered[input],
        -input,
    )


def _order(shape: _Shape, start: int) -> tuple[Order, list[tuple[int, ...]]]:
    bound = {start}
    bound_classes: set[int] = set()
    waiting = [m for m in shape.members]

    def settle() -> None:
        rest = []
        for m in waiting:
            if m.needs <= bound:
                bound_classes.add(m.cls)
            else:
                rest.append(m)
        waiting[:] = rest

    settle()
    order: list[tuple[int, Key]] = []
    ranks: list[tuple[int, ...]] = []
    left = [i for i in range(shape.n) if i != start]
    # Keys change only for inputs that share a class with what was bound last; recompute lazily.
    keys = {i: _lookup_key(shape, i, bound, bound_classes) for i in left}
    scores = {i: _rank(shape, i, keys[i]) for i in left}
    while left:
        best = max(left, key=scores.__getitem__)
        order.append((best, keys[best]))
        ranks.append(scores[best][:-1])
        left.remove(best)
        bound.add(best)
        before = set(bound_classes)
        settle()
        new = bound_classes - before
        if new:
            for i in left:
                if any(m.cls in new for m in shape.by_input[i]):
                    keys[i] = _lookup_key(shape, i, bound, bound_classes)
                    scores[i] = _rank(shape, i, keys[i])
    return tuple(order), ranks


def _plan(join: r.Join, context: Context) -> r.Join:
    shape = _Shape(join, context)
    starts = range(shape.n) if shape.n <= MAX_STARTS else _promising(shape)
    best: tuple[list[tuple[int, ...]], int, int, Order] | None = None
    delta: dict[int, Order] = {}
    for start in starts:
        order, ranks = _order(shape, start)
        delta[start] = order
        # The weakest lookup decides, then the next weakest; a filtered start breaks ties.
        score = (sorted(ranks), shape.filtered[start], -start)
        if best is None or score > best[:3]:
            best = (*score, order)
    assert best is not None
    start = -best[2]
    if shape.n > 2 and len(delta) == shape.n and _all_arranged(shape, delta):
        return r.Join(join.inputs, join.equivalences, r.DeltaQuery(tuple(delta[i] for i in range(shape.n))))
    return r.Join(join.inputs, join.equivalences, r.Differential(start, best[3]))


def _promising(shape: _Shape) -> list[int]:
    ranked = sorted(range(shape.n), key=lambda i: (shape.filtered[i], len(shape.by_input[i]), -i), reverse=True)
    return sorted(ranked[:4])


def _all_arranged(shape: _Shape, paths: dict[int, Order]) -> bool:
    return all(key and key in shape.arranged[i] for order in paths.values() for i, key in order)
