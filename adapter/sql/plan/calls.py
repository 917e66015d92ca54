"""Calls by name: scalar functions and the special forms, aggregates, window functions, table functions."""

from __future__ import annotations

from typing import Any

from adapter.sql import ast, hir
from adapter.sql.plan import expr
from adapter.sql.plan.coerce import TRUE, cast, is_unknown, literal, settle, to_bool, to_common
from adapter.sql.plan.expr import ExprContext, TableUse
from adapter.sql.plan.overload import resolve_call, resolve_operator
from adapter.sql.plan.types import type_words
from adapter.sql.plan.windows import plan_window_call
from mzlite.expr import aggregates, table_functions, window_functions
from mzlite.expr.functions import FUNCTIONS
from mzlite.expr.scalar import ColumnOrder, Literal, TableFunc, Unmaterializable
from mzlite.repr.errors import SqlError
from mzlite.repr.types import DATE, TEXT, TIME, TIMESTAMP, ColumnType, RelationType, ScalarType

_SCHEMAS = frozenset(
    (
        "pg_catalog",
        "mz_catalog",
        "mz_internal",
        "mz_unsafe",
        "information_schema",
        "mz_catalog_unstable",
        "mz_introspection",
    )
)
# Registered under one schema's name, found in both.
_ELSEWHERE = frozenset(
    ("regexp_extract", "csv_extract", "repeat_row", "repeat_row_non_negative", "unnest", "datediff", "timezone_offset")
)
_RENAMED = {
    "user": "current_user",
    "current_role": "current_user",
    "current_catalog": "current_database",
    "current_timestamp": "now",
    "transaction_timestamp": "now",
    "statement_timestamp": "now",
}
# Spelled as functions of now(), which the session's clock supplies.
_OF_NOW: dict[str, ScalarType] = {
    "current_date": DATE,
    "localtimestamp": TIMESTAMP,
    "current_time": TIME,
    "localtime": TIME,
}
ORDERED = frozenset(
    ("array_agg", "list_agg", "string_agg", "jsonb_agg", "json_agg", "map_agg", "jsonb_object_agg", "json_object_agg")
)


def function_name(x: ExprContext, node: ast.FuncCall) -> str:
    """The bare name of a call whose schema exists."""
    parts = node.name
    if len(parts) == 1:
        return parts[0]
    name = parts[-1]
    session = x.ctx.session
    if len(parts) == 3 and x.ctx.catalog.resolve_database(parts[0]) is None:
        raise SqlError("3D000", f"unknown database '{parts[0]}'", position=node.pos + 1)
    if parts[-2] not in _SCHEMAS and x.ctx.catalog.resolve_schema(parts[:-1], session.database) is None:
        raise SqlError("3F000", f"unknown schema '{'.'.join(parts[:-1])}'", position=node.pos + 1)
    if parts[-2] == "mz_unsafe" and session.variable("unsafe_enable_unsafe_functions") in ("off", "false"):
        raise SqlError("0A000", "executing potentially dangerous functions is not supported", position=node.pos + 1)
    home = shown_name(name).partition(".")[0]
    if parts[-2] not in _SCHEMAS or (
        parts[-2] in ("pg_catalog", "mz_catalog") and parts[-2] != home and name not in _ELSEWHERE
    ):
        raise SqlError("42883", f'function "{".".join(parts)}" does not exist', position=node.pos + 1)
    return name


def is_aggregate(node: ast.FuncCall) -> bool:
    return bool(aggregates.by_name(node.name[-1])) and node.over is None


def shown_name(name: str) -> str:
    """A function's full name, as errors give it."""
    schema = "mz_catalog" if name.startswith(("mz_", "list_", "map_")) else "pg_catalog"
    return f"{schema}.{name}"


def _call(x: ExprContext, node: ast.FuncCall) -> hir.Scalar:
    name = _RENAMED.get(node.name[-1], "") if len(node.name) == 1 and not node.args else ""
    name = name or function_name(x, node)
    if node.over is not None:
        return plan_window_call(x, node, name)
    special = _SPECIAL.get(name)
    if special is not None:
        planned: hir.Scalar = special(x, node)
        return planned
    if aggregates.by_name(name):
        return _aggregate(x, node, name)
    if node.filter is not None:
        raise SqlError("42809", f"FILTER specified, but {name} is not an aggregate function", position=node.pos + 1)
    if window_functions.by_name(name):
        raise SqlError("42809", f"window function {shown_name(name)} requires an OVER clause", position=node.pos + 1)
    if node.nulls is not None:
        raise SqlError(
            "42601",
            "IGNORE NULLS and RESPECT NULLS options are allowed only for window functions",
            position=node.pos + 1,
        )
    if node.distinct:
        raise SqlError("42809", f"DISTINCT specified, but {name} is not an aggregate function", position=node.pos + 1)
    if node.order_by:
        raise SqlError("42809", f"ORDER BY specified, but {name} is not an aggregate function", position=node.pos + 1)
    entries = FUNCTIONS.by_name(name)
    if not entries or all(e.operator for e in entries):
        if table_functions.by_name(name):
            return _table_in_scalar(x, node, name)
        if name in _OF_NOW and not node.args:
            now = cast(x.ctx, _unmaterializable(x, "now"), TIMESTAMP, "assignment")
            return now if _OF_NOW[name] is TIMESTAMP else cast(x.ctx, now, _OF_NOW[name], "explicit")
        raise missing_function(node)
    args = plan_args(x, node)
    entry, cast_args = resolve_call(x.ctx, [e for e in entries if not e.operator], args, name, node.pos)
    if entry.unmaterializable:
        if not cast_args:
            return _unmaterializable(x, name)
        folded = _fold_session(x, name, cast_args)
        if folded is not None:
            return folded
    return hir.Call(entry.id, cast_args, entry.result_type([hir.type_of(a) for a in cast_args]))


def missing_function(node: ast.FuncCall) -> SqlError:
    shown = ".".join(node.name)
    if node.name[-1] == "mz_logical_timestamp":
        return SqlError("42883", "mz_logical_timestamp() has been renamed to mz_now()", position=node.pos + 1)
    return SqlError("42883", f'function "{shown}" does not exist', position=node.pos + 1)


def plan_args(x: ExprContext, node: ast.FuncCall) -> tuple[hir.Scalar, ...]:
    if node.star:
        raise SqlError(
            "42883", f"* argument is invalid with non-aggregate function {node.name[-1]}", position=node.pos + 1
        )
    return tuple(expr.plan_expr(x, a) for a in node.args)


def _unmaterializable(x: ExprContext, name: str) -> hir.Scalar:
    entry = FUNCTIONS.by_name(name)[0]
    x.ctx.used_unmaterializable.add(name)
    assert isinstance(entry.returns, ScalarType)
    return Unmaterializable(name, entry.returns)


def _fold_session(x: ExprContext, name: str, args: tuple[hir.Scalar, ...]) -> hir.Scalar | None:
    """Functions of the session with constant arguments, answered while planning."""
    x.ctx.used_unmaterializable.add(name)
    first = args[0]
    if name == "current_setting" and isinstance(first, Literal) and first.value is not None:
        value = x.ctx.session.variable(first.value.decode().lower())
        if value is None:
            missing_ok = len(args) > 1 and isinstance(args[1], Literal) and args[1].value not in (None, b"\x00")
            if not missing_ok:
                raise SqlError("42704", f'unrecognized configuration parameter "{first.value.decode()}"')
        return literal(TEXT, value)
    if name == "current_schemas" and isinstance(first, Literal) and first.value is not None:
        from mzlite.repr.datum import ArrayDatum, decode_datum
        from mzlite.repr.types import array_of

        catalog, session = x.ctx.catalog, x.ctx.session
        path = [s for s in session.search_path if catalog.resolve_schema((s,), session.database) is not None]
        if decode_datum(first.typ, first.value):
            path = [s for s in ("mz_catalog", "pg_catalog") if s not in path] + path
        return literal(array_of(TEXT), ArrayDatum(((len(path), 1),) if path else (), tuple(path)))
    return None


# ---- special forms


def _coalesce(x: ExprContext, node: ast.FuncCall) -> hir.Scalar:
    inner = x.within("COALESCE", tables=None) if x.tables is not None else x
    if not node.args:
        raise SqlError("42601", "Expected an expression, found right parenthesis", position=node.pos + 1)
    args, typ = to_common(x.ctx, [expr.plan_expr(inner, a) for a in node.args], "coalesce")
    return hir.Call(
        FUNCTIONS["coalesce"].bind([hir.type_of(a) for a in args]).id if _bound("coalesce") else "coalesce",
        tuple(args),
        typ,
    )


def _bound(name: str) -> bool:
    """Whether a variadic polymorphic entry is called by its bound id (lazy forms, which the evaluator knows by name, are not)."""
    return FUNCTIONS[name].kernel is not None


def _extreme(x: ExprContext, node: ast.FuncCall) -> hir.Scalar:
    name = node.name[-1]
    if not node.args:
        raise SqlError("42601", "Expected an expression, found right parenthesis", position=node.pos + 1)
    args, typ = to_common(x.ctx, [expr.plan_expr(x, a) for a in node.args], name)
    entry = FUNCTIONS[name].bind([hir.type_of(a) for a in args])
    return hir.Call(entry.id, tuple(args), typ)


def _nullif(x: ExprContext, node: ast.FuncCall) -> hir.Scalar:
    if len(node.args) != 2:
        raise SqlError(
            "42883", f"function nullif with {len(node.args)} arguments does not exist", position=node.pos + 1
        )
    left, right = (expr.plan_expr(x, a) for a in node.args)
    equal = resolve_operator(x.ctx, "=", (left, right), node.pos)
    assert isinstance(equal, hir.Call)
    result = equal.args[0] if is_unknown(left) else left
    return hir.If(equal, Literal(None, hir.type_of(result)), result)


def _pg_typeof(x: ExprContext, node: ast.FuncCall) -> hir.Scalar:
    if len(node.args) != 1:
        return _generic(x, node)
    argument = expr.plan_expr(x, node.args[0])
    typ = hir.type_of(argument)
    from mzlite.repr.typenames import type_name

    shown = type_name(typ.base()) if typ.custom is None else type_name(typ)
    if typ.kind == "record":
        shown = "record"
    return literal(TEXT, shown)


def _generic(x: ExprContext, node: ast.FuncCall) -> hir.Scalar:
    """The plain path, for special names called in a plain way."""
    args = plan_args(x, node)
    name = node.name[-1]
    entries = FUNCTIONS.by_name(name)
    if not entries:
        raise missing_function(node)
    entry, cast_args = resolve_call(x.ctx, entries, args, name, node.pos)
    return hir.Call(entry.id, cast_args, entry.result_type([hir.type_of(a) for a in cast_args]))


def _current_schema(x: ExprContext, node: ast.FuncCall) -> hir.Scalar:
    x.ctx.used_unmaterializable.add("current_schema")
    path = x.ctx.session.search_path
    for schema in path:
        if x.ctx.catalog.resolve_schema((schema,), x.ctx.session.database) is not None:
            return literal(TEXT, schema)
    return literal(TEXT, None)


_SPECIAL: dict[str, Any] = {
    "coalesce": _coalesce,
    "greatest": _extreme,
    "least": _extreme,
    "nullif": _nullif,
    "pg_typeof": _pg_typeof,
    "current_schema": _current_schema,
}


# ---- aggregates


def _aggregate(x: ExprContext, node: ast.FuncCall, name: str) -> hir.Scalar:
    if x.in_aggregate is not None:
        raise SqlError("42803", "nested aggregate functions are not allowed", position=node.pos + 1)
    if x.aggregates is None:
        raise SqlError(
            "42803",
            f"aggregate functions are not allowed in {x.clause} (function {shown_name(name)})",
            position=node.pos + 1,
        )
    aggregate = build_aggregate(x, node, name)
    found = x.aggregates
    if aggregate in found:
        index = found.index(aggregate)
    else:
        index = len(found)
        found.append(aggregate)
    return hir.Marker("aggregate", index, 0, aggregate.typ)


def build_aggregate(x: ExprContext, node: ast.FuncCall, name: str, *, window: bool = False) -> hir.Aggregate:
    """The aggregate call itself; its arguments see the rows before grouping (those of a window aggregate, the grouped ones)."""
    if node.variadic:
        raise SqlError("0A000", "VARIADIC arguments not yet supported", position=node.pos + 1)
    inner = x.within("aggregate function calls", aggregates=x.aggregates, windows=None, tables=None, in_aggregate=name)
    if x.windows is not None or x.tables is not None:
        inner = x.within("aggregate function", windows=None, tables=None, in_aggregate=name)
    if window:
        inner = x.within("window function calls", tables=None)
    if node.within_group:
        raise SqlError("0A000", "WITHIN GROUP not yet supported", position=node.pos + 1)
    if node.star:
        if name != "count":
            raise SqlError("42883", f"function {name}() does not exist", position=node.pos + 1)
        args: tuple[hir.Scalar, ...] = (TRUE,)
        entry = aggregates.by_name("count")[0]
        entry = entry.bind([hir.type_of(TRUE)])
    else:
        if not node.args:
            if name == "count":
                message = "count(*) must be used to call a parameterless aggregate function"
                raise SqlError("42809", message, position=node.pos + 1)
            raise SqlError("42883", f"function {name}() does not exist", position=node.pos + 1)
        planned = tuple(expr.plan_expr(inner, a) for a in node.args)
        planned = _aggregate_args(name, planned, node)
        entry, args = resolve_call(x.ctx, aggregates.by_name(name), planned, "sum" if name == "avg" else name, node.pos)
        if entry.id == "string_agg_bytea":
            raise SqlError("0A000", "string_agg on BYTEA not yet supported")
    typ = entry.result_type([hir.type_of(a) for a in args])
    columns = [c for a in args for c, depth in hir.walk(a) if isinstance(c, hir.Column) and c.level >= depth]
    if columns and not window and all(c.level > 0 for c in columns) and not any(_has_subquery(a) for a in args):
        raise SqlError("0A000", "aggregate functions that refer exclusively to outer columns not yet supported")
    filter_ = None
    if node.filter is not None:
        filter_ = to_bool(
            x.ctx,
            expr.plan_expr(inner.within("FILTER", aggregates=None, in_aggregate=None), node.filter),
            "FILTER clause",
        )
    order_exprs: list[hir.Scalar] = []
    order_by: list[ColumnOrder] = []
    if node.order_by and name in ORDERED:
        for item in node.order_by:
            nulls_last = not item.desc if item.nulls_first is None else not item.nulls_first
            order_by.append(ColumnOrder(len(order_exprs), item.desc, nulls_last))
            order_exprs.append(settle(x.ctx, expr.plan_expr(inner, item.expr)))
    return hir.Aggregate(entry.id, args, typ, node.distinct, filter_, tuple(order_exprs), tuple(order_by))


def _has_subquery(e: hir.Scalar) -> bool:
    return any(isinstance(n, hir.Exists | hir.ScalarQuery | hir.Quantified) for n, _ in hir.walk(e))


def _aggregate_args(name: str, args: tuple[hir.Scalar, ...], node: ast.FuncCall) -> tuple[hir.Scalar, ...]:
    """Checks that have words of their own."""
    first = hir.type_of(args[0])
    if name in ("array_agg", "list_agg"):
        if first.kind == "unknown":
            raise SqlError("42725", f"function {name}(unknown) is not unique", position=node.pos + 1)
        if first.kind in ("bpchar", "char"):
            raise SqlError(
                "0A000", f"{name} on {'char' if first.kind == 'bpchar' else type_words(first)} not yet supported"
            )
        if name == "array_agg" and first.kind in ("list", "map"):
            raise SqlError("0A000", f"array_agg on {type_words(first)} not yet supported")
    return args


# ---- table functions


def table_call(
    x: ExprContext, name: str, args: tuple[hir.Scalar, ...], pos: int
) -> tuple[TableFunc, tuple[hir.Scalar, ...], tuple[str, ...]]:
    """A table function chosen by its argument types: the call, its arguments, its columns' names."""
    shown = f"information_schema.{name}" if name == "_pg_expandarray" else name
    entry, cast_args = resolve_call(x.ctx, table_functions.by_name(name), args, shown, pos)
    types = [hir.type_of(a) for a in cast_args]
    columns = table_columns_of(entry, cast_args, types)
    if columns is None:
        columns = entry.columns(tuple(types))
    typ = RelationType(tuple(ColumnType(t, nullable) for _, t, nullable in columns))
    return TableFunc(entry.id, typ), cast_args, tuple(n for n, _, _ in columns)


def table_columns_of(entry: Any, args: tuple[hir.Scalar, ...], types: list[ScalarType]) -> Any:
    """Output columns where they depend on a literal argument; None where the types say it all."""
    if entry.pattern_columns is None:
        return None
    first = args[0]
    if not isinstance(first, Literal) or first.value is None:
        raise SqlError("42601", f"{entry.name} requires a string literal as its first argument")
    from mzlite.repr.datum import decode_datum

    return entry.pattern_columns(decode_datum(first.typ, first.value))


def _table_in_scalar(x: ExprContext, node: ast.FuncCall, name: str) -> hir.Scalar:
    """A set-returning function in a select list."""
    if x.tables is None:
        if x.in_aggregate is not None:
            raise SqlError(
                "0A000", "table functions are not allowed in aggregate function calls", position=node.pos + 1
            )
        raise SqlError(
            "0A000",
            f"table functions are not allowed in {x.clause} (function {shown_name(name)})",
            position=node.pos + 1,
        )
    inner = x.within("other table functions", tables=None)
    args = plan_args(inner, node)
    func, cast_args, names = table_call(x, name, args, node.pos)
    use = TableUse(func, cast_args)
    if use in x.tables:
        index = x.tables.index(use)
    else:
        index = len(x.tables)
        x.tables.append(use)
    width = func.typ.arity
    if width == 1:
        return hir.Marker("table", index, 0, func.typ.columns[0].scalar)
    from adapter.sql.plan.coerce import record_call

    items = [hir.Marker("table", index, i, c.scalar) for i, c in enumerate(func.typ.columns)]
    return record_call(items, names)


expr.register(ast.FuncCall, _call)
