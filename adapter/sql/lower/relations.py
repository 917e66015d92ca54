"""Relations: one case per HIR node."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from adapter.sql import hir
from adapter.sql.lower import frame as f
from adapter.sql.lower.frame import Binding, Frame, Ids, Low
from adapter.sql.lower.free import free_keys
from adapter.sql.lower.scalars import State, attach, lower_scalars, needs_domain, state_of
from mzlite.expr import relation as mir
from mzlite.expr.aggregates import AGGREGATES, aggregate_type
from mzlite.expr.scalar import Aggregate, ColumnOrder, Literal, Ref, Scalar, WindowCall
from mzlite.expr.typing import scalar_type
from mzlite.repr.errors import unsupported
from mzlite.repr.types import ColumnType, RelationType


def lower_relation(r: hir.Relation) -> mir.Mir:
    """The MIR of an uncorrelated relation."""
    return lower(r, Frame(Ids())).mir


def lower(r: hir.Relation, frame: Frame) -> Low:
    match r:
        case hir.Constant(rows, types, nullable):
            columns = tuple(ColumnType(t, n) for t, n in zip(types, nullable or (False,) * len(types)))
            return Low(mir.Constant(tuple((row, 1) for row in rows), RelationType(columns)), (), columns)
        case hir.Get(id, typ):
            return Low(mir.Get(id, typ), (), typ.columns) if isinstance(id, str) else _get_local(id, frame)
        case hir.Let():
            return _let(r, frame)
        case hir.LetRec():
            return _let_rec(r, frame)
        case hir.Project(input, outputs):
            low = lower(input, frame)
            base = len(low.keys)
            columns_out = (*range(base), *(base + o for o in outputs))
            return Low(f.project(low.mir, columns_out, len(low.types)), low.keys, f.pick(low.types, columns_out))
        case hir.Map():
            return _map(r, frame)
        case hir.Filter():
            from adapter.sql.lower.subqueries import lower_filter

            return lower_filter(r, frame)
        case hir.Join():
            from adapter.sql.lower.joins import lower_join

            return lower_join(r, frame)
        case hir.Lateral():
            from adapter.sql.lower.joins import lower_lateral

            return lower_lateral(r, frame)
        case hir.CallTable():
            return _call_table(r, frame)
        case hir.Reduce():
            return _reduce(r, frame)
        case hir.Distinct(input):
            low = lower(input, frame)
            return Low(f.distinct(low.mir, range(len(low.types))), low.keys, low.types)
        case hir.TopK():
            return _top_k(r, frame)
        case hir.Window():
            return _window(r, frame)
        case hir.Union(inputs):
            lows = [lower(i, frame) for i in inputs]
            if any(low.keys for low in lows):
                lows = [attach(low, frame) for low in lows]
            joint = tuple(
                ColumnType(cs[0].scalar, any(c.nullable for c in cs)) for cs in zip(*(low.types for low in lows))
            )
            return Low(f.union([low.mir for low in lows]), lows[0].keys, joint)
        case hir.Negate(input):
            low = lower(input, frame)
            return Low(mir.Negate(low.mir), low.keys, low.types)
        case hir.Threshold(input):
            low = lower(input, frame)
            return Low(mir.Threshold(low.mir), low.keys, low.types)


# ---- bindings


def _get_local(id: int, frame: Frame) -> Low:
    binding = frame.bindings[id]
    low = binding.low
    value = f.get(binding.id, low.types)
    if not low.keys:
        return Low(value, (), low.types)
    domain = frame.domain
    assert domain is not None
    if domain.keys == low.keys:
        return Low(value, low.keys, low.types)
    # The binding was computed for other outer rows: pick those of this domain.
    width = len(domain.types)
    equivalences: list[tuple[Scalar, ...]] = []
    for i, key in enumerate(low.keys):
        at = domain.keys.index(key)
        equivalences += f.equate(at, width + i, domain.types[at])
    outputs = (*range(width), *range(width + len(low.keys), width + len(low.types)))
    joined = f.project(f.join([domain.mir, value], equivalences), outputs, width + len(low.types))
    return Low(joined, domain.keys, domain.types + low.own)


def _let(r: hir.Let, frame: Frame) -> Low:
    value = lower(r.value, frame)
    id = frame.ids.fresh()
    body = lower(r.body, frame.bound(r.id, Binding(id, value)))
    return Low(mir.Let(id, value.mir, body.mir), body.keys, body.types)


def _let_rec(r: hir.LetRec, frame: Frame) -> Low:
    """A recursion that reads an outer row runs for all outer rows at once: every binding starts with the domain's columns."""
    ids = tuple(frame.ids.fresh() for _ in r.ids)
    correlated = any(free_keys(value, frame, frame.depth) for value in r.values)
    domain = frame.domain if correlated else None
    keys, key_types = ((), ()) if domain is None else (domain.keys, domain.types)
    inner = frame
    all_types = [key_types + tuple(ColumnType(t) for t in types) for types in r.types]
    for hir_id, id, types in zip(r.ids, ids, all_types):
        inner = inner.bound(hir_id, Binding(id, Low(f.get(id, types), keys, types)))
    inside = dataclasses.replace(inner, domain=domain)
    values = tuple(attach(lower(value, inside), inside).mir for value in r.values)
    body = lower(r.body, inner)
    typs = tuple(RelationType(types) for types in all_types)
    return Low(mir.LetRec(ids, values, typs, body.mir, r.limit, r.return_at_limit), body.keys, body.types)


# ---- row-wise nodes


def _map(r: hir.Map, frame: Frame) -> Low:
    low = lower(r.input, frame)
    if needs_domain(r.scalars, frame):
        low = attach(low, frame)
    return map_over(low, r.scalars, frame)


def map_over(low: Low, scalars: Sequence[hir.Scalar], frame: Frame) -> Low:
    state = state_of(low, frame.depth)
    own = len(low.types) - len(low.keys)
    outputs = list(range(len(low.types)))
    for i, e in enumerate(scalars):
        state, (lowered,) = lower_scalars(state, [e], frame)
        types = (*state.types, scalar_type(lowered, state.types))
        outputs.append(state.width)
        cols = {**state.cols, (frame.depth, own + i): state.width}
        if isinstance(state.mir, mir.Map):
            grown: mir.Mir = mir.Map(state.mir.input, (*state.mir.scalars, lowered))
        else:
            grown = mir.Map(state.mir, (lowered,))
        state = State(grown, cols, types, state.keys)
    return Low(f.project(state.mir, outputs, state.width), low.keys, f.pick(state.types, outputs))


def _call_table(r: hir.CallTable, frame: Frame) -> Low:
    types = r.func.typ.columns
    if not needs_domain(r.args, frame):
        _, args = lower_scalars(State(f.UNIT, {}, (), ()), r.args, frame)
        return Low(mir.FlatMap(f.UNIT, r.func, tuple(args)), (), types)
    domain = frame.domain
    assert domain is not None
    state, args = lower_scalars(state_of(Low(domain.mir, domain.keys, domain.types), frame.depth), r.args, frame)
    flat = mir.FlatMap(state.mir, r.func, tuple(args))
    width = len(domain.types)
    outputs = (*range(width), *range(state.width, state.width + len(types)))
    return Low(f.project(flat, outputs, state.width + len(types)), domain.keys, domain.types + types)


# ---- grouping nodes


def _reduce(r: hir.Reduce, frame: Frame) -> Low:
    low = lower(r.input, frame)
    scalars = [*r.group_key]
    for a in r.aggregates:
        scalars += [*a.args, *a.order_exprs]
        if a.filter is not None:
            scalars.append(a.filter)
    if needs_domain(scalars, frame):
        low = attach(low, frame)
    state = state_of(low, frame.depth)
    state, group = lower_scalars(state, r.group_key, frame)
    aggregates: list[Aggregate] = []
    for a in r.aggregates:
        state, args = lower_scalars(state, a.args, frame)
        filter_: Scalar | None = None
        if a.filter is not None:
            state, (filter_,) = lower_scalars(state, [a.filter], frame)
        state, order = lower_scalars(state, a.order_exprs, frame)
        aggregates.append(Aggregate(a.func, tuple(args), a.typ, a.distinct, filter_, tuple(order), a.order_by))
    keys = tuple(Ref(i) for i in range(len(low.keys)))
    reduced: mir.Mir = mir.Reduce(
        state.mir, (*keys, *group), tuple(aggregates), expected_group_size=r.expected_group_size
    )
    types = tuple(scalar_type(e, state.types) for e in (*keys, *group))
    agg_types = tuple(aggregate_type(a, state.types) for a in aggregates)
    if r.group_key:
        return Low(reduced, low.keys, types + agg_types)
    # A global aggregate has a row even without input: for each outer row that is missing, the aggregates of nothing.
    empty = tuple(Literal(AGGREGATES[a.func].empty, a.typ) for a in aggregates)
    agg_types = tuple(ColumnType(t.scalar, t.nullable or e.value is None) for t, e in zip(agg_types, empty))
    types += agg_types
    id = frame.ids.fresh()
    present = f.project(f.get(id, types), range(len(keys)), len(types))
    everyone: mir.Mir = f.UNIT
    if low.keys:
        assert frame.domain is not None
        everyone = frame.domain.mir
    missing = f.map_(mir.Union((everyone, mir.Negate(present))), empty)
    return Low(mir.Let(id, reduced, mir.Union((f.get(id, types), missing))), low.keys, types)


def _top_k(r: hir.TopK, frame: Frame) -> Low:
    low = lower(r.input, frame)
    base = len(low.keys)
    limit: Scalar | None = None
    if r.limit is not None:
        if not isinstance(r.limit, Literal):
            raise unsupported("LIMIT that is not a constant")
        limit = r.limit
    top = mir.TopK(
        low.mir,
        (*range(base), *(base + c for c in r.group_key)),
        tuple(ColumnOrder(base + o.column, o.desc, o.nulls_last) for o in r.order_by),
        limit,
        r.offset,
        expected_group_size=r.expected_group_size,
    )
    return Low(top, low.keys, low.types)


def _window(r: hir.Window, frame: Frame) -> Low:
    low = lower(r.input, frame)
    scalars = [e for c in r.calls for e in (*c.args, *((c.filter,) if c.filter is not None else ()))]
    if needs_domain(scalars, frame):
        low = attach(low, frame)
    base = len(low.keys)
    state = state_of(low, frame.depth)
    calls: list[WindowCall] = []
    for c in r.calls:
        state, args = lower_scalars(state, c.args, frame)
        filter_: Scalar | None = None
        if c.filter is not None:
            state, (filter_,) = lower_scalars(state, [c.filter], frame)
        calls.append(WindowCall(c.func, tuple(args), c.typ, c.frame, c.ignore_nulls, c.distinct, filter_, c.order_by))
    window = mir.Window(
        state.mir,
        (*range(base), *(base + p for p in r.partition_by)),
        tuple(ColumnOrder(base + o.column, o.desc, o.nulls_last) for o in r.order_by),
        tuple(calls),
    )
    types = state.types + tuple(ColumnType(c.typ) for c in calls)
    outputs = (*range(len(low.types)), *range(state.width, state.width + len(calls)))
    return Low(f.project(window, outputs, len(types)), low.keys, f.pick(types, outputs))
