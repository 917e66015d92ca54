"""Joins. Outer joins are the inner join plus the rows of a side that matched nothing:

L left join R on p  =  let J = filter(p, L x R) in J  ∪  map NULLs (L - semijoin(L, distinct(J's columns of L that p reads)))
"""

from __future__ import annotations

from collections.abc import Sequence

from adapter.sql import hir
from adapter.sql.lower import frame as f
from adapter.sql.lower.frame import Frame, Key, Low, Types
from adapter.sql.lower.free import free_keys, rejects
from adapter.sql.lower.scalars import State, attach, has_subquery, lower_scalars, state_of
from adapter.sql.lower.subqueries import filter_over
from mzlite.expr import relation as mir
from mzlite.expr.scalar import Scalar, support
from mzlite.expr.typing import rejects_null
from mzlite.repr.types import ColumnType


def lower_join(r: hir.Join, frame: Frame) -> Low:
    from adapter.sql.lower.relations import lower

    if r.kind == "right":
        left_width, right_width = hir.arity(r.left), hir.arity(r.right)
        on = None if r.on is None else _swapped(r.on, left_width, right_width)
        flipped = hir.Join(r.right, r.left, on, "left")
        outputs = (*range(right_width, right_width + left_width), *range(right_width))
        return lower(hir.Project(flipped, outputs), frame)
    left, right = lower(r.left, frame), lower(r.right, frame)
    predicates = hir.conjuncts(r.on)
    if r.kind == "inner":
        low = _product(left, right, predicates, frame)
        return low
    if frame.domain is not None and (left.keys or right.keys or _reads_domain(predicates, frame)):
        left, right = attach(left, frame), attach(right, frame)
    return _outer(left, right, predicates, r.kind, frame)


def _swapped(on: hir.Scalar, left_width: int, right_width: int) -> hir.Scalar:
    def g(n: hir.Scalar, depth: int) -> hir.Scalar | None:
        if isinstance(n, hir.Column) and n.level == depth:
            column = n.column + right_width if n.column < left_width else n.column - left_width
            return hir.Column(n.level, column, n.typ, n.name)
        return None

    return hir.rewrite(on, g)


def _reads_domain(predicates: Sequence[hir.Scalar], frame: Frame) -> bool:
    from adapter.sql.lower.scalars import needs_domain

    return needs_domain(predicates, frame)


def _product(left: Low, right: Low, predicates: Sequence[hir.Scalar], frame: Frame) -> Low:
    """Inner join: keys once, then left's and right's own columns; equalities become equivalences, the rest filters."""
    if _reads_domain(predicates, frame) and not left.keys and not right.keys:
        left = attach(left, frame)
    keys = left.keys or right.keys
    left_count, right_count = len(left.types), len(right.types)
    key_count = len(keys)
    equivalences: list[tuple[Scalar, ...]] = []
    if left.keys and right.keys:
        for i in range(key_count):
            equivalences += f.equate(i, left_count + i, left.types[i])
    own_left = range(len(left.keys), left_count)
    own_right = range(left_count + len(right.keys), left_count + right_count)
    key_columns = range(key_count) if left.keys else range(left_count, left_count + len(right.keys))
    outputs = (*key_columns, *own_left, *own_right)
    all_types = left.types + right.types
    # Where each column of the result stands in the join.
    cols: dict[Key, int] = {k: c for k, c in zip(keys, key_columns)}
    for i, c in enumerate((*own_left, *own_right)):
        cols[frame.depth, i] = c
    later: list[hir.Scalar] = []
    for p in predicates:
        pair = _equality(p, cols, left_count, frame, all_types)
        if pair is None:
            later.append(p)
        else:
            equivalences.append(pair)
    joined = f.join([left.mir, right.mir], equivalences)
    types = f.pick(all_types, outputs)
    low = Low(f.project(joined, outputs, left_count + right_count), keys, types)
    return filter_over(low, later, frame) if later else low


def _equality(
    p: hir.Scalar, cols: dict[Key, int], left_count: int, frame: Frame, types: Types
) -> tuple[Scalar, ...] | None:
    """p as an equivalence, when it equates an expression of one side with one of the other."""
    if not isinstance(p, hir.Call) or not p.func.startswith("eq_") or len(p.args) != 2:
        return None
    if any(isinstance(n, hir.Exists | hir.ScalarQuery | hir.Quantified) for n, _ in hir.walk(p)):
        return None
    _, (a, b) = lower_scalars(State(f.UNIT, cols, types, ()), p.args, frame)
    on_a, on_b = support(a), support(b)
    if not on_a or not on_b:
        return None
    if (all(c < left_count for c in on_a) and all(c >= left_count for c in on_b)) or (
        all(c < left_count for c in on_b) and all(c >= left_count for c in on_a)
    ):
        return (a, b)
    return None


def _outer(left: Low, right: Low, predicates: Sequence[hir.Scalar], kind: str, frame: Frame) -> Low:
    """LEFT and FULL joins; both sides carry the same keys (or none)."""
    left_id, right_id, joined_id = frame.ids.fresh(), frame.ids.fresh(), frame.ids.fresh()
    keys = left.keys
    key_count = len(keys)
    left_get = Low(f.get(left_id, left.types), left.keys, left.types)
    right_get = Low(f.get(right_id, right.types), right.keys, right.types)
    joined = _product(left_get, right_get, predicates, frame)
    left_own, right_own = len(left.types) - key_count, len(right.types) - key_count
    used, strict = _columns_read(predicates, frame, keys, left_own + right_own)
    joined_get = f.get(joined_id, joined.types)
    parts: list[mir.Mir] = [joined_get]
    nullable_right = tuple(ColumnType(t.scalar) for t in right.own)
    nullable_left = tuple(ColumnType(t.scalar) for t in left.own)
    used_left = [c for c in range(key_count + left_own) if c < key_count or c in used]
    rest = _unmatched(left_get, joined_get, used_left, used_left, strict)
    parts.append(f.map_(rest, [f.null(t.scalar) for t in right.own]))
    types = left.types + nullable_right
    if kind == "full":
        used_right = [*range(key_count), *(c for c in range(key_count + left_own, len(joined.types)) if c in used)]
        own_columns = [c if c < key_count else c - left_own for c in used_right]
        strict_right = {own_columns[i] for i, c in enumerate(used_right) if c in strict}
        rest = _unmatched(right_get, joined_get, own_columns, used_right, strict_right)
        wide = f.map_(rest, [f.null(t.scalar) for t in left.own])
        first_null = len(right.types)
        outputs = (*range(key_count), *range(first_null, first_null + left_own), *range(key_count, first_null))
        parts.append(f.project(wide, outputs, first_null + left_own))
        types = left.types[:key_count] + nullable_left + nullable_right
    body: mir.Mir = mir.Let(joined_id, joined.mir, mir.Union(tuple(parts)))
    return Low(mir.Let(left_id, left.mir, mir.Let(right_id, right.mir, body)), keys, types)


def _columns_read(
    predicates: Sequence[hir.Scalar], frame: Frame, keys: tuple[Key, ...], own: int
) -> tuple[set[int], set[int]]:
    """Columns (of keys + own) that the predicates read, and those of them that a true predicate proves not NULL."""
    used: set[int] = set()
    strict: set[int] = set()
    cols: dict[Key, int] = {k: i for i, k in enumerate(keys)}
    cols.update({(frame.depth, i): len(keys) + i for i in range(own)})
    for p in predicates:
        plain = True
        for n, depth in hir.walk(p):
            if isinstance(n, hir.Column):
                scope = frame.depth + depth - n.level
                if (scope, n.column) in cols:
                    used.add(cols[scope, n.column])
            elif isinstance(n, hir.Exists | hir.ScalarQuery | hir.Quantified):
                plain = False
        if plain:
            _, (lowered,) = lower_scalars(State(f.UNIT, cols, (), ()), [p], frame)
            strict |= rejects_null(lowered)
    return used, strict


def _unmatched(
    side: Low, joined: mir.Mir, columns: Sequence[int], joined_columns: Sequence[int], strict: set[int]
) -> mir.Mir:
    """Rows of side whose `columns` do not occur as joined's `joined_columns`."""
    width = len(side.types)
    found = f.distinct(joined, joined_columns)
    equivalences: list[tuple[Scalar, ...]] = []
    for i, c in enumerate(columns):
        equivalences += f.equate(c, width + i, side.types[c], plain=c in strict)
    matched = f.project(f.join([side.mir, found], equivalences), range(width), width + len(columns))
    return mir.Union((side.mir, mir.Negate(matched)))


# ---- LATERAL


def lower_lateral(r: hir.Lateral, frame: Frame) -> Low:
    from adapter.sql.lower.relations import lower

    depth = frame.depth
    free = free_keys(r.right, frame, depth + 1)
    if not any(scope == depth for scope, _ in free):
        flat = hir.Join(r.left, hir.shift_relation(r.right, -1), r.on, r.kind)
        return lower(flat, frame)
    left = lower(r.left, frame)
    predicates = hir.conjuncts(r.on)
    if any(scope < depth for scope, _ in free) or _reads_domain(predicates, frame):
        left = attach(left, frame)
    if r.kind == "inner":
        inline = _inline(left, r.right, frame)
        if inline is not None:
            return filter_over(inline, predicates, frame) if predicates else inline
    id = frame.ids.fresh()
    here = f.get(id, left.types)
    left_get = Low(here, left.keys, left.types)
    joined, used = _correlated(left_get, r.right, free, frame)
    if predicates:
        joined = filter_over(joined, predicates, frame)
    if r.kind == "inner":
        return Low(mir.Let(id, left.mir, joined.mir), joined.keys, joined.types)
    read, strict = _columns_read(predicates, frame, left.keys, len(joined.types) - len(left.keys))
    columns = sorted({*range(len(left.keys)), *used, *(c for c in read if c < len(left.types))})
    joined_id = frame.ids.fresh()
    got = f.get(joined_id, joined.types)
    rest = _unmatched(left_get, got, columns, columns, strict)
    right_types = joined.types[len(left.types) :]
    nulls = f.map_(rest, [f.null(t.scalar) for t in right_types])
    body = mir.Let(joined_id, joined.mir, mir.Union((got, nulls)))
    types = left.types + tuple(ColumnType(t.scalar) for t in right_types)
    return Low(mir.Let(id, left.mir, body), left.keys, types)


def _correlated(left: Low, right: hir.Relation, free: set[Key], frame: Frame) -> tuple[Low, list[int]]:
    """left joined with right computed for its distinct outer values; and left's columns that right reads."""
    from adapter.sql.lower.relations import lower

    inline = _inline(left, right, frame)
    state = state_of(left, frame.depth)
    keys = tuple(sorted(free))
    columns = [state.cols[k] for k in keys]
    if inline is not None:
        return inline, columns
    domain_id = frame.ids.fresh()
    types = tuple(left.types[c] for c in columns)
    domain = Low(f.get(domain_id, types), keys, types)
    inside = frame.inside(domain)
    low = attach(lower(right, inside), inside)
    width = len(left.types)
    equivalences: list[tuple[Scalar, ...]] = []
    for i, (column, key) in enumerate(zip(columns, keys)):
        equivalences += f.equate(column, width + i, left.types[column], plain=rejects(right, key, frame.depth + 1))
    outputs = (*range(width), *range(width + len(keys), width + len(low.types)))
    joined = f.project(f.join([left.mir, low.mir], equivalences), outputs, width + len(low.types))
    body = mir.Let(domain_id, f.distinct(left.mir, columns), joined)
    return Low(body, left.keys, left.types + low.own), columns


def _inline(left: Low, right: hir.Relation, frame: Frame) -> Low | None:
    """Row-wise right sides (functions of the left row, filters, maps, uncorrelated parts) are computed on left's rows directly."""
    state = state_of(left, frame.depth)
    grown = _grow(state, right, frame, frame.depth + 1, Frame(frame.ids, frame.depth + 1, None, frame.bindings))
    if grown is None:
        return None
    state, columns = grown
    outputs = (*range(len(left.types)), *columns)
    return Low(f.project(state.mir, outputs, state.width), left.keys, f.pick(state.types, outputs))


def _grow(state: State, r: hir.Relation, frame: Frame, depth: int, inside: Frame) -> tuple[State, list[int]] | None:
    """state joined with r, whose rows are scope `depth`; where r's columns stand. None when r is not row-wise."""
    from adapter.sql.lower.relations import lower

    if r == hir.UNIT:
        return state, []
    if not free_keys(r, frame, depth):
        low = lower(r, inside)
        base = state.width
        grown = State(f.join([state.mir, low.mir]), state.cols, state.types + low.types, state.keys)
        return grown, list(range(base, base + len(low.types)))
    match r:
        case hir.CallTable(func, args):
            if any(has_subquery(a) for a in args):
                return None
            _, lowered = lower_scalars(state, args, inside)
            base = state.width
            flat = mir.FlatMap(state.mir, func, tuple(lowered))
            grown = State(flat, state.cols, state.types + func.typ.columns, state.keys)
            return grown, list(range(base, base + func.typ.arity))
        case hir.Project(input, outputs):
            inner = _grow(state, input, frame, depth, inside)
            return None if inner is None else (inner[0], [inner[1][o] for o in outputs])
        case hir.Map(input, scalars):
            if any(has_subquery(e) for e in scalars):
                return None
            inner = _grow(state, input, frame, depth, inside)
            if inner is None:
                return None
            state, columns = inner
            for e in scalars:
                local = _local(state, columns, depth)
                _, (scalar,) = lower_scalars(local, [e], inside)
                columns = [*columns, state.width]
                state = State(
                    mir.Map(state.mir, (scalar,)), state.cols, f.mapped_types(state.types, [scalar]), state.keys
                )
            return state, columns
        case hir.Filter(input, predicates):
            if any(has_subquery(e) for e in predicates):
                return None
            inner = _grow(state, input, frame, depth, inside)
            if inner is None:
                return None
            state, columns = inner
            _, lowered = lower_scalars(_local(state, columns, depth), predicates, inside)
            return State(f.filter_(state.mir, lowered), state.cols, state.types, state.keys), columns
        case _:
            return None


def _local(state: State, columns: list[int], depth: int) -> State:
    """The state as seen by scalars over r's rows."""
    cols = {**state.cols, **{(depth, i): c for i, c in enumerate(columns)}}
    return State(state.mir, cols, state.types, state.keys)
