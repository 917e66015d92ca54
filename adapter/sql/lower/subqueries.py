"""Subqueries: as columns of the relation they stand on, or as semijoins and antijoins where only their truth filters rows."""

from __future__ import annotations

from collections.abc import Sequence

from adapter.sql import hir
from adapter.sql.lower import frame as f
from adapter.sql.lower.frame import Frame, Key, Low
from adapter.sql.lower.free import at_most_one, free_keys, rejects
from adapter.sql.lower.scalars import State, attach, has_subquery, lower_scalar, lower_scalars, needs_domain, state_of
from adapter.sql.lower.split import split
from mzlite.expr import relation as mir
from mzlite.expr.aggregates import AGGREGATES, aggregate_type
from mzlite.expr.scalar import Aggregate, Call, If, Literal, Ref, Scalar
from mzlite.expr.typing import scalar_type
from mzlite.repr.datum import encode_datum
from mzlite.repr.errors import SqlError, encode_error
from mzlite.repr.types import BOOL, INT8, ColumnType, ScalarType

_TRUE = Literal(encode_datum(BOOL, True), BOOL)
_FALSE = Literal(encode_datum(BOOL, False), BOOL)
_ONE = Literal(encode_datum(INT8, 1), INT8)
_TOO_MANY = encode_error(SqlError("21000", "more than one record produced in subquery"))
_COUNT_ID = AGGREGATES["count"].bind([BOOL]).id
_COUNT = Aggregate(_COUNT_ID, (_TRUE,), INT8)


# ---- filters


def lower_filter(r: hir.Filter, frame: Frame) -> Low:
    from adapter.sql.lower.relations import lower

    low = lower(r.input, frame)
    if needs_domain(r.predicates, frame):
        low = attach(low, frame)
    return filter_over(low, r.predicates, frame)


def filter_over(low: Low, predicates: Sequence[hir.Scalar], frame: Frame) -> Low:
    """Cheap predicates first, then those with subqueries."""
    plain = [p for p in predicates if not has_subquery(p)]
    others = [p for p in predicates if has_subquery(p)]
    if plain:
        _, scalars = lower_scalars(state_of(low, frame.depth), plain, frame)
        low = Low(f.filter_(low.mir, scalars), low.keys, low.types)
    for p in others:
        low = _filter_by_subquery(low, p, frame)
    return low


def _filter_by_subquery(low: Low, p: hir.Scalar, frame: Frame) -> Low:
    match p:
        case hir.Exists(relation):
            return _semijoin(low, relation, frame, keep=True)
        case hir.Call("not", (hir.Exists(relation),)):
            return _semijoin(low, relation, frame, keep=False)
        case hir.Quantified(relation, predicate, False):
            return _semijoin(low, hir.Filter(relation, hir.conjuncts(predicate)), frame, keep=True)
    width = len(low.types)
    state, scalar = lower_scalar(state_of(low, frame.depth), p, frame)
    filtered = mir.Filter(state.mir, (scalar,))
    return Low(f.project(filtered, range(width), state.width), low.keys, low.types)


def _semijoin(low: Low, relation: hir.Relation, frame: Frame, *, keep: bool) -> Low:
    """Rows of low for which the relation has a row (or has none)."""
    from adapter.sql.lower.relations import lower

    state = state_of(low, frame.depth)
    width = state.width
    parts = split(relation, frame, frame.depth + 1)
    if parts is not None:
        base = lower(parts.base, frame.inside(None))
        inner_state = state_of(base, frame.depth + 1)
        _, inner = lower_scalars(inner_state, [own for _, own in parts.pairs], frame.inside(None))
        found: mir.Mir = mir.Reduce(base.mir, tuple(inner), ())
        _, outer = lower_scalars(state, [hir.shift(o, -1, 1) for o, _ in parts.pairs], frame)
        equivalences: list[tuple[Scalar, ...]] = [(a, Ref(width + i)) for i, a in enumerate(outer)]
        count = len(outer)
        if keep:
            return Low(
                f.project(f.join([low.mir, found], equivalences), range(width), width + count), low.keys, low.types
            )
        id = frame.ids.fresh()
        here = f.get(id, low.types)
        matched = f.project(f.join([here, found], equivalences), range(width), width + count)
        return Low(mir.Let(id, low.mir, mir.Union((here, mir.Negate(matched)))), low.keys, low.types)
    id = frame.ids.fresh()
    here = f.get(id, low.types)
    domain_id = frame.ids.fresh()
    keys, columns, domain = _domain(state, relation, frame, domain_id, here)
    inner_low = attach(lower(relation, frame.inside(domain)), frame.inside(domain))
    found = f.distinct(inner_low.mir, range(len(keys)))
    equivalences = _on_keys(state, columns, keys, relation, frame, width)
    matched = f.project(f.join([here, found], equivalences), range(width), width + len(keys))
    body: mir.Mir = matched if keep else mir.Union((here, mir.Negate(matched)))
    return Low(mir.Let(id, low.mir, _with_domain(domain_id, columns, here, body)), low.keys, low.types)


# ---- domains


def _domain(
    state: State, relation: hir.Relation, frame: Frame, domain_id: int, here: mir.Mir
) -> tuple[tuple[Key, ...], list[int], Low]:
    """The outer columns relation reads, where they stand in the state, and the domain made of them (bound as domain_id)."""
    keys = tuple(sorted(free_keys(relation, frame, frame.depth + 1)))
    columns = [state.cols[k] for k in keys]
    types = tuple(state.types[c] for c in columns)
    return keys, columns, Low(f.get(domain_id, types), keys, types)


def _with_domain(domain_id: int, columns: Sequence[int], here: mir.Mir, body: mir.Mir) -> mir.Mir:
    return mir.Let(domain_id, f.distinct(here, columns), body)


def _on_keys(
    state: State, columns: Sequence[int], keys: Sequence[Key], relation: hir.Relation, frame: Frame, width: int
) -> list[tuple[Scalar, ...]]:
    """The state's columns equal to the subquery's key columns, which stand from `width` on."""
    out: list[tuple[Scalar, ...]] = []
    for i, (column, key) in enumerate(zip(columns, keys)):
        plain = rejects(relation, key, frame.depth + 1)
        out += f.equate(column, width + i, state.types[column], plain=plain)
    return out


# ---- subqueries as columns


def append_subquery(state: State, e: hir.Exists | hir.ScalarQuery | hir.Quantified, frame: Frame) -> tuple[State, int]:
    """The state with one more column: the subquery's value."""
    if isinstance(e, hir.Quantified) and e.equal is not None and not free_keys(e.relation, frame, frame.depth + 1):
        return _append_membership(state, e, frame)
    if not free_keys(_relation_of(e), frame, frame.depth + 1):
        return _append_constant(state, e, frame)
    return _append_correlated(state, e, frame)


def _relation_of(e: hir.Exists | hir.ScalarQuery | hir.Quantified) -> hir.Relation:
    """The relation whose rows decide e; a Quantified's predicate may bring correlation of its own."""
    if isinstance(e, hir.Quantified):
        return hir.Map(e.relation, (e.predicate,))
    return e.relation


def _grown(state: State, relation: mir.Mir, typ: ColumnType) -> tuple[State, int]:
    return State(relation, state.cols, (*state.types, typ), state.keys), state.width


def _values(
    low: Low, e: hir.Exists | hir.ScalarQuery | hir.Quantified, frame: Frame
) -> tuple[mir.Mir, ColumnType, Literal]:
    """From the subquery's rows (keys, then own columns): (keys, value), one row a key, and the value for absent keys."""
    count = len(low.keys)
    keys = range(count)
    match e:
        case hir.Exists():
            return f.map_(f.distinct(low.mir, keys), [_TRUE]), ColumnType(BOOL, False), _FALSE
        case hir.ScalarQuery(relation, typ):
            value = ColumnType(typ)
            if at_most_one(relation):
                return low.mir, value, f.null(typ)
            id = frame.ids.fresh()
            rows = f.get(id, low.types)
            counted = mir.Reduce(rows, tuple(Ref(k) for k in keys), (_COUNT,))
            # The error stands in the value's place, so that whatever reads the value meets it.
            several = mir.Filter(counted, (Call("gt_int8", (Ref(count), _ONE), BOOL),))
            failed = f.project(f.map_(several, [Literal(None, typ, _TOO_MANY)]), (*keys, count + 1), count + 2)
            return mir.Let(id, low.mir, mir.Union((rows, failed))), value, f.null(typ)
        case hir.Quantified(_, _, every):
            # low's last column is the predicate. ALL p = NOT ANY (NOT p).
            verdict: Scalar = Ref(len(low.types) - 1)
            if every:
                verdict = f.not_(verdict)
            some = _aggregate("bool_or", verdict)
            unknown = _aggregate("bool_or", f.is_null(verdict, BOOL))
            reduced = mir.Reduce(low.mir, tuple(Ref(k) for k in keys), (some, unknown))
            answer: Scalar = If(
                Call("is_true", (Ref(count),), BOOL),
                _TRUE,
                If(Ref(count + 1), f.null(BOOL), _FALSE),
            )
            if every:
                answer = f.not_(answer)
            mapped = f.project(f.map_(reduced, [answer]), (*keys, count + 2), count + 3)
            return mapped, ColumnType(BOOL), _TRUE if every else _FALSE


def _aggregate(name: str, arg: Scalar) -> Aggregate:
    entry = AGGREGATES.by_name(name)[0]
    return Aggregate(entry.id, (arg,), BOOL)


def _inner_relation(e: hir.Exists | hir.ScalarQuery | hir.Quantified) -> hir.Relation:
    return hir.Map(e.relation, (e.predicate,)) if isinstance(e, hir.Quantified) else e.relation


def _append_constant(state: State, e: hir.Exists | hir.ScalarQuery | hir.Quantified, frame: Frame) -> tuple[State, int]:
    """Uncorrelated: one row (the default where the subquery has none), joined to every row."""
    from adapter.sql.lower.relations import lower

    low = lower(_inner_relation(e), frame.inside(None))
    values, typ, default = _values(low, e, frame)
    if isinstance(e, hir.ScalarQuery) and _exactly_one(e.relation):
        one = values
    else:
        id = frame.ids.fresh()
        got = f.get(id, (typ,))
        absent = mir.Union((f.UNIT, mir.Negate(f.distinct(got, ()))))
        one = mir.Let(id, values, mir.Union((got, f.map_(absent, [default]))))
    return _grown(state, f.join([state.mir, one]), typ)


def _exactly_one(r: hir.Relation) -> bool:
    match r:
        case hir.Reduce():
            return not r.group_key
        case hir.Project() | hir.Map():
            return _exactly_one(r.input)
        case hir.Constant(rows):
            return len(rows) == 1
        case _:
            return False


def _append_correlated(
    state: State, e: hir.Exists | hir.ScalarQuery | hir.Quantified, frame: Frame
) -> tuple[State, int]:
    from adapter.sql.lower.relations import lower

    if not isinstance(e, hir.Quantified):
        quick = _append_split(state, e, frame)
        if quick is not None:
            return quick
    relation = _inner_relation(e)
    id = frame.ids.fresh()
    here = f.get(id, state.types)
    domain_id = frame.ids.fresh()
    keys, columns, domain = _domain(state, relation, frame, domain_id, here)
    inside = frame.inside(domain)
    low = attach(lower(relation, inside), inside)
    values, typ, default = _values(low, e, frame)
    width = state.width
    equivalences = _on_keys(state, columns, keys, relation, frame, width)
    body = _left_join_value(frame, here, state, values, equivalences, len(keys), typ, default, _exactly_one(relation))
    return _grown(state, mir.Let(id, state.mir, _with_domain(domain_id, columns, here, body)), typ)


def _left_join_value(
    frame: Frame,
    here: mir.Mir,
    state: State,
    values: mir.Mir,
    equivalences: list[tuple[Scalar, ...]],
    key_count: int,
    typ: ColumnType,
    default: Literal,
    total: bool,
) -> mir.Mir:
    """here with the value of its key, or the default. total: every key has a value."""
    width = state.width
    outputs = (*range(width), width + key_count)
    matched = f.project(f.join([here, values], equivalences), outputs, width + key_count + 1)
    if total:
        return matched
    id = frame.ids.fresh()
    found = f.get(id, (*state.types, typ))
    rest = mir.Union((here, mir.Negate(f.project(found, range(width), width + 1))))
    return mir.Let(id, matched, mir.Union((found, f.map_(rest, [default]))))


def _append_split(state: State, e: hir.Exists | hir.ScalarQuery, frame: Frame) -> tuple[State, int] | None:
    """Correlation by equalities only: group the uncorrelated base by its side of them."""
    from adapter.sql.lower.relations import lower

    relation = e.relation
    # Peel projections and maps off a global aggregate: they are applied to its (default) value afterwards.
    wrappers: list[hir.Project | hir.Map] = []
    inner = relation
    while isinstance(inner, hir.Project | hir.Map):
        wrappers.append(inner)
        inner = inner.input
    aggregate = inner if isinstance(inner, hir.Reduce) and not inner.group_key else None
    depth = frame.depth + 1
    parts = split(relation if aggregate is None else aggregate.input, frame, depth)
    if parts is None or not parts.pairs:
        return None
    inside = frame.inside(None)
    base = lower(parts.base, inside)
    inner_state = state_of(base, depth)
    _, own = lower_scalars(inner_state, [o for _, o in parts.pairs], inside)
    outer_state, outer = lower_scalars(state, [hir.shift(o, -1, 1) for o, _ in parts.pairs], frame)
    assert outer_state is state
    count = len(own)
    width = state.width
    equivalences: list[tuple[Scalar, ...]] = [(a, Ref(width + i)) for i, a in enumerate(outer)]
    id = frame.ids.fresh()
    here = f.get(id, state.types)
    own_types = tuple(scalar_type(o, base.types) for o in own)
    if aggregate is None:
        if at_most_one(relation):
            return None
        keyed_types = own_types + f.pick(base.types, parts.outputs)
        wide = f.map_(base.mir, own)
        outputs = (*range(len(base.types), len(base.types) + count), *parts.outputs)
        keyed = f.project(wide, outputs, len(base.types) + count)
        low = Low(keyed, tuple((-1, i) for i in range(count)), keyed_types)
        values, typ, default = _values(low, e, frame)
        body = _left_join_value(frame, here, state, values, equivalences, count, typ, default, False)
        return _grown(state, mir.Let(id, state.mir, body), typ)
    if isinstance(e, hir.Exists) or any(_scalars_correlated(w) for w in wrappers):
        return None
    for a in aggregate.aggregates:
        for scalar in (*a.args, *a.order_exprs, *((a.filter,) if a.filter is not None else ())):
            if has_subquery(scalar) or any(isinstance(n, hir.Column) and n.level > d for n, d in hir.walk(scalar)):
                return None
    aggregates: list[Aggregate] = []
    for a in aggregate.aggregates:
        moved = hir.map_aggregate(a, lambda s, _: _restate(s, parts.outputs), 0)
        _, args = lower_scalars(inner_state, moved.args, inside)
        _, order = lower_scalars(inner_state, moved.order_exprs, inside)
        filter_: Scalar | None = None
        if moved.filter is not None:
            _, (filter_,) = lower_scalars(inner_state, [moved.filter], inside)
        aggregates.append(Aggregate(a.func, tuple(args), a.typ, a.distinct, filter_, tuple(order), a.order_by))
    values = mir.Reduce(base.mir, tuple(own), tuple(aggregates))
    empty = [Literal(AGGREGATES[a.func].empty, a.typ) for a in aggregates]
    types = tuple(aggregate_type(a, base.types) for a in aggregates)
    types = tuple(ColumnType(t.scalar, t.nullable or d.value is None) for t, d in zip(types, empty))
    joined_outputs = (*range(width), *range(width + count, width + count + len(aggregates)))
    matched = f.project(f.join([here, values], equivalences), joined_outputs, width + count + len(aggregates))
    found_id = frame.ids.fresh()
    found = f.get(found_id, state.types + types)
    rest = mir.Union((here, mir.Negate(f.project(found, range(width), width + len(aggregates)))))
    body = mir.Let(found_id, matched, mir.Union((found, f.map_(rest, empty))))
    whole: mir.Mir = mir.Let(id, state.mir, body)
    # The wrappers, over the aggregates' columns.
    columns = list(range(width, width + len(aggregates)))
    all_types = state.types + types
    for wrapper in reversed(wrappers):
        if isinstance(wrapper, hir.Project):
            columns = [columns[o] for o in wrapper.outputs]
            continue
        for scalar in wrapper.scalars:
            cols = {(depth, i): c for i, c in enumerate(columns)}
            _, lowered = lower_scalar(State(whole, cols, all_types, ()), scalar, inside)
            whole = mir.Map(whole, (lowered,))
            all_types = (*all_types, scalar_type(lowered, all_types))
            columns.append(len(all_types) - 1)
    (column,) = columns
    final = (*range(width), column)
    return _grown(state, f.project(whole, final, len(all_types)), all_types[column])


def _restate(e: hir.Scalar, outputs: tuple[int, ...]) -> hir.Scalar:
    def g(n: hir.Scalar, depth: int) -> hir.Scalar | None:
        if isinstance(n, hir.Column) and n.level == depth:
            return hir.Column(n.level, outputs[n.column], n.typ, n.name)
        return None

    return hir.rewrite(e, g)


def _scalars_correlated(w: hir.Project | hir.Map) -> bool:
    if isinstance(w, hir.Project):
        return False
    return any(
        isinstance(n, hir.Exists | hir.ScalarQuery | hir.Quantified) or (isinstance(n, hir.Column) and n.level > d)
        for s in w.scalars
        for n, d in hir.walk(s)
    )


def _append_membership(state: State, e: hir.Quantified, frame: Frame) -> tuple[State, int]:
    """x = ANY (uncorrelated query), or its negation x <> ALL: a lookup among the distinct values.

    found -> true; else NULL if x is NULL or the query has a NULL, and the query is not empty; else false.
    """
    from adapter.sql.lower.relations import lower

    assert e.equal is not None
    state, x = lower_scalar(state, e.equal, frame)
    low = lower(e.relation, frame.inside(None))
    member = low.types[0]
    width = state.width
    id, rows_id, found_id = frame.ids.fresh(), frame.ids.fresh(), frame.ids.fresh()
    here = f.get(id, state.types)
    rows = f.get(rows_id, low.types)
    # The predicate compares as its operator does: the members may need the cast that it applies.
    assert isinstance(e.predicate, hir.Call)
    values = f.distinct(rows, (0,))
    matched = f.project(f.join([here, values], [(x, Ref(width))]), range(width), width + 1)
    found = f.get(found_id, state.types)
    count_column = Aggregate(_COUNT_ID, (_TRUE,), INT8)
    bound = AGGREGATES["count"].bind([member.scalar]).id
    count_value = Aggregate(bound, (Ref(0),), INT8)
    counts = mir.Reduce(rows, (), (count_column, count_value))
    count_types = (ColumnType(INT8, False), ColumnType(INT8, False))
    counts_id = frame.ids.fresh()
    got = f.get(counts_id, count_types)
    zero = Literal(encode_datum(INT8, 0), INT8)
    absent = f.map_(mir.Union((f.UNIT, mir.Negate(f.project(got, (), 2)))), [zero, zero])
    one = mir.Let(counts_id, counts, mir.Union((got, absent)))
    rest = mir.Union((here, mir.Negate(found)))
    total, valued = Ref(width), Ref(width + 1)
    unknown = Call(
        "or", (f.is_null(x, _scalar_type_of(x, state)), f.not_(Call("eq_int8", (total, valued), BOOL))), BOOL
    )
    verdict = If(
        Call("eq_int8", (total, zero), BOOL),
        _FALSE,
        If(unknown, f.null(BOOL), _FALSE),
    )
    unmatched = f.project(f.map_(f.join([rest, one]), [verdict]), (*range(width), width + 2), width + 3)
    body = mir.Let(found_id, matched, mir.Union((f.map_(found, [_TRUE]), unmatched)))
    whole: mir.Mir = mir.Let(rows_id, low.mir, mir.Let(id, state.mir, body))
    grown = State(whole, state.cols, (*state.types, ColumnType(BOOL)), state.keys)
    if not e.every:
        return grown, width
    negated = mir.Map(whole, (f.not_(Ref(width)),))
    return State(negated, state.cols, (*grown.types, ColumnType(BOOL)), state.keys), width + 1


def _scalar_type_of(e: Scalar, state: State) -> ScalarType:
    return scalar_type(e, state.types).scalar
