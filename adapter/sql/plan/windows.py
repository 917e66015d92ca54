"""Window function calls: f(…) OVER (…), named windows, frames."""

from __future__ import annotations

import msgspec

from adapter.sql import ast, hir
from adapter.sql.plan import expr
from adapter.sql.plan.coerce import cast
from adapter.sql.plan.expr import ExprContext, WindowUse
from adapter.sql.plan.overload import resolve_call
from mzlite.expr import aggregates, window_functions
from mzlite.expr.scalar import ColumnOrder, Frame, Literal, Scalar
from mzlite.repr.errors import SqlError, unsupported
from mzlite.repr.types import INT8, INTERVAL, ScalarType

_NULLS_ALLOWED = frozenset(("lag", "lead", "first_value", "last_value"))


def plan_window_call(x: ExprContext, node: ast.FuncCall, name: str) -> hir.Scalar:
    from adapter.sql.plan.calls import ORDERED, build_aggregate, missing_function, shown_name

    is_window = bool(window_functions.by_name(name))
    is_aggregate = bool(aggregates.by_name(name))
    if not is_window and not is_aggregate:
        from mzlite.expr import table_functions
        from mzlite.expr.functions import FUNCTIONS

        if not FUNCTIONS.by_name(name) and not table_functions.by_name(name):
            raise missing_function(node)
        raise SqlError(
            "42809",
            f"OVER clause not allowed on {shown_name(name)}. The OVER clause can only be used with window functions "
            "(including aggregations).",
            position=node.pos + 1,
        )
    if x.windows is None:
        place = "aggregate function" if x.in_aggregate is not None else x.clause
        if x.in_aggregate is not None:
            name = x.in_aggregate
        raise SqlError(
            "42P20", f"window functions are not allowed in {place} (function {shown_name(name)})", position=node.pos + 1
        )
    if node.nulls is not None and name not in _NULLS_ALLOWED:
        raise unsupported(
            "IGNORE NULLS and RESPECT NULLS options for functions other than LAG and LEAD", position=node.pos + 1
        )
    if node.distinct and is_window:
        raise SqlError("0A000", "DISTINCT is not supported for window functions")
    spec = _resolve_spec(x, node.over)
    inner = x.within("window function calls")
    if is_window:
        if node.filter is not None:
            raise SqlError(
                "0A000", "FILTER is not implemented for non-aggregate window functions", position=node.pos + 1
            )
        args: tuple[hir.Scalar, ...] = ()
        if not node.star:
            args = tuple(expr.plan_expr(inner, a) for a in node.args)
        entries = window_functions.by_name(name)
        if all(not e.params and e.variadic is None for e in entries) and args:
            raise SqlError(
                "42883", f"function {name} has 0 parameters, but was called with {len(args)}", position=node.pos + 1
            )
        entry, args = resolve_call(x.ctx, window_functions.by_name(name), args, name, node.pos)
        typ = entry.result_type([hir.type_of(a) for a in args])
        call = hir.WindowCall(entry.id, args, typ, ignore_nulls=node.nulls == "ignore")
    else:
        bare = ast.FuncCall(
            node.name, node.args, node.star, node.distinct, node.order_by, False, node.filter, pos=node.pos
        )
        aggregate = build_aggregate(inner, bare, name, window=True)
        taken_by = tuple(ColumnOrder(len(aggregate.args) + o.column, o.desc, o.nulls_last) for o in aggregate.order_by)
        if not taken_by and name in ORDERED:
            # As everywhere, what an aggregate without ORDER BY collects comes in the order of the values.
            taken_by = (ColumnOrder(0),)
        call = hir.WindowCall(
            aggregate.func,
            aggregate.args + aggregate.order_exprs,
            aggregate.typ,
            distinct=aggregate.distinct,
            filter=aggregate.filter,
            order_by=taken_by,
        )
        if node.distinct:
            raise unsupported("DISTINCT in window aggregates", position=node.pos + 1)
    partition_by = tuple(expr.plan_typed(inner, e) for e in spec.partition_by)
    order_by = tuple(
        (
            expr.plan_typed(inner, i.expr),
            i.desc,
            (not i.desc) if i.nulls_first is None else not i.nulls_first,
        )
        for i in spec.order_by
    )
    frame = _frame(inner, spec, order_by)
    call = msgspec.structs.replace(call, frame=frame)
    use = WindowUse(partition_by, order_by, call)
    found = x.windows
    if use in found:
        index = found.index(use)
    else:
        index = len(found)
        found.append(use)
    return hir.Marker("window", index, 0, call.typ)


def _resolve_spec(x: ExprContext, spec: ast.WindowSpec | None) -> ast.WindowSpec:
    """A named window, or one that extends a named one."""
    assert spec is not None
    if spec.name is None:
        return spec
    named = (x.named_windows or {}).get(spec.name)
    if named is None:
        raise SqlError("42704", f'window "{spec.name}" does not exist', position=spec.pos + 1)
    named = _resolve_spec(x, named)
    if spec.partition_by:
        raise SqlError("42P20", f'cannot override PARTITION BY clause of window "{spec.name}"', position=spec.pos + 1)
    if spec.order_by and named.order_by:
        raise SqlError("42P20", f'cannot override ORDER BY clause of window "{spec.name}"', position=spec.pos + 1)
    return ast.WindowSpec(
        None,
        named.partition_by,
        spec.order_by or named.order_by,
        spec.frame if spec.frame is not None else named.frame,
        spec.pos,
    )


def _frame(x: ExprContext, spec: ast.WindowSpec, order_by: tuple[tuple[hir.Scalar, bool, bool], ...]) -> Frame:
    given = spec.frame
    if given is None:
        return Frame()
    start, end = given.start, given.end
    if start.kind == "unbounded_following":
        raise SqlError("42P20", "frame start cannot be UNBOUNDED FOLLOWING")
    if end.kind == "unbounded_preceding":
        raise SqlError("42P20", "frame end cannot be UNBOUNDED PRECEDING")
    if start.kind == "current_row" and end.kind == "preceding":
        raise SqlError("42P20", "frame starting from current row cannot have preceding rows")
    if start.kind == "following" and end.kind in ("preceding", "current_row"):
        raise SqlError("42P20", "frame starting from following row cannot have preceding rows")
    if given.units == "groups" and not order_by:
        detail = "GROUPS mode requires an ORDER BY clause"
        raise SqlError("42P20", "GROUPS in window frames not yet supported", detail=detail)
    offsets = start.offset is not None or end.offset is not None
    if given.units == "range" and offsets and len(order_by) != 1:
        detail = "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column"
        raise SqlError("42P20", "RANGE in non-default window frames not yet supported", detail=detail)
    return Frame(
        given.units,
        start.kind,
        _offset(x, start.offset, given.units, order_by),
        end.kind,
        _offset(x, end.offset, given.units, order_by),
        given.exclude,
    )


def _offset(
    x: ExprContext, node: ast.Expr | None, units: str, order_by: tuple[tuple[hir.Scalar, bool, bool], ...]
) -> Scalar | None:
    """A constant distance: a count for ROWS and GROUPS, something to add to the order column for RANGE."""
    if node is None:
        return None
    planned = expr.plan_expr(expr.ExprContext(x.ctx, [], "frame offset"), node)
    if units == "range":
        typ = hir.type_of(order_by[0][0]).base()
        wanted: ScalarType = INTERVAL if typ.kind in ("date", "time", "timestamp", "timestamptz", "interval") else typ
        planned = cast(x.ctx, planned, wanted, "assignment", "RANGE offset")
    else:
        planned = cast(x.ctx, planned, INT8, "implicit", "frame offset")
    from adapter.sql.plan.constants import fold_scalar

    value = fold_scalar(x.ctx, planned)
    if not isinstance(value, Literal):
        raise unsupported("frame offsets that are not constants")
    if value.value is None:
        raise SqlError("22004", "frame starting offset must not be null")
    from mzlite.repr.datum import decode_datum

    datum = decode_datum(value.typ, value.value)
    if isinstance(datum, int) and datum < 0:
        raise SqlError("22013", "frame starting offset must not be negative")
    return value
