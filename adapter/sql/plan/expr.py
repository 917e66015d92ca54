"""Expressions: syntax trees to HIR scalars. This module is the dispatch and the leaves; families have modules of their own.

operators     arithmetic, comparison, LIKE, BETWEEN, CASE, rows
collections   ARRAY, LIST, MAP, ROW, subscripts, fields
subqueries    scalar, EXISTS, IN, ANY/ALL, ARRAY(…)
calls         functions, aggregates, window functions, table functions
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from adapter.sql import ast, hir
from adapter.sql.plan.coerce import FALSE, NULL, TRUE, cast, number_literal, record_call, settle, text_literal
from adapter.sql.plan.context import PlanContext
from adapter.sql.plan.names import cast_registered
from adapter.sql.plan.scope import Scope, resolve_column, similar_names, table_columns, undefined_column
from adapter.sql.plan.types import resolve_type
from mzlite.repr.errors import SqlError, unsupported
from mzlite.repr.types import ScalarType


@dataclasses.dataclass(frozen=True, slots=True)
class WindowUse:
    """A window function call found in a select list, over the grouped relation: how it partitions and orders, and the call."""

    partition_by: tuple[hir.Scalar, ...]
    order_by: tuple[tuple[hir.Scalar, bool, bool], ...]
    call: hir.WindowCall


@dataclasses.dataclass(frozen=True, slots=True)
class TableUse:
    """A table function found in a select list: its call (arguments at level 0) and the type it shows."""

    func: Any
    args: tuple[hir.Scalar, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class ExprContext:
    """Where an expression stands: what it sees and what it may use.

    clause: as error messages name the place. aggregates, windows, tables: collectors for calls found, None = not allowed here.
    named_windows: of the WINDOW clause. row: inside VALUES of an INSERT, where DEFAULT is handled by the caller.
    """

    ctx: PlanContext
    scopes: list[Scope]
    clause: str = "expression"
    aggregates: list[hir.Aggregate] | None = None
    windows: list[WindowUse] | None = None
    tables: list[TableUse] | None = None
    named_windows: dict[str, ast.WindowSpec] | None = None
    in_aggregate: str | None = None

    def within(self, clause: str, **changes: Any) -> ExprContext:
        return dataclasses.replace(self, clause=clause, **changes)


def plan_expr(x: ExprContext, node: ast.Expr) -> hir.Scalar:
    """The scalar; untyped literals may come back untyped (see `coerce`)."""
    return _DISPATCH[type(node)](x, node)


def plan_typed(x: ExprContext, node: ast.Expr) -> hir.Scalar:
    """The scalar with a definite type."""
    return settle(x.ctx, plan_expr(x, node))


def plan_as(x: ExprContext, node: ast.Expr, typ: ScalarType, what: str | None = None) -> hir.Scalar:
    """The scalar cast implicitly to typ."""
    return cast(x.ctx, plan_expr(x, node), typ, "implicit", what)


# ---- leaves


def _name(x: ExprContext, node: ast.Name) -> hir.Scalar:
    column = resolve_column(x.scopes, node.parts, node.pos)
    if column is not None:
        return column
    whole = whole_row(x, node.parts)
    if whole is not None:
        return whole
    raise undefined_column(node.parts, node.pos, similar_names(x.scopes, node.parts))


def whole_row(x: ExprContext, parts: tuple[str, ...]) -> hir.Scalar | None:
    """A table's name as a value: the record of its columns (or the column itself, for a function of one column)."""
    found = table_columns(x.scopes, parts)
    if found is None:
        return None
    level, columns = found
    if len(columns) == 1 and columns[0].whole_row:
        return hir.Column(level, columns[0].index, columns[0].typ, columns[0].name)
    items = [hir.Column(level, c.index, c.typ, c.name) for c in columns]
    return record_call(items, tuple(c.name for c in columns))


def _star(x: ExprContext, node: ast.Star) -> hir.Scalar:
    if node.qualifier:
        found = table_columns(x.scopes, node.qualifier)
        if found is None:
            raise SqlError("42P01", f"no table named '{'.'.join(node.qualifier)}' in scope", position=node.pos + 1)
        items = [hir.Column(found[0], c.index, c.typ, c.name) for c in found[1]]
        return record_call(items, tuple(c.name for c in found[1]))
    raise SqlError("42601", "* expression is not supported here", position=node.pos + 1)


def _number(x: ExprContext, node: ast.Number) -> hir.Scalar:
    return number_literal(node.text)


def _string(x: ExprContext, node: ast.String) -> hir.Scalar:
    return text_literal(node.value)


def _null(x: ExprContext, node: ast.Null) -> hir.Scalar:
    return NULL


def _bool(x: ExprContext, node: ast.Bool) -> hir.Scalar:
    return TRUE if node.value else FALSE


def _param(x: ExprContext, node: ast.Param) -> hir.Scalar:
    if x.ctx.in_view:
        raise SqlError("42P02", f"there is no parameter ${node.number}", position=node.pos + 1)
    return x.ctx.parameter(node.number)


def _interval(x: ExprContext, node: ast.Interval) -> hir.Scalar:
    from adapter.sql.plan.intervals import interval_literal

    return interval_literal(node)


def _default(x: ExprContext, node: ast.Default) -> hir.Scalar:
    raise SqlError("42601", "DEFAULT is not allowed in this context", position=node.pos + 1)


def _cast(x: ExprContext, node: ast.Cast) -> hir.Scalar:
    typ = resolve_type(x.ctx, node.typ)
    operand = node.operand
    if isinstance(operand, ast.ArrayLit) and typ.kind in ("array", "list"):
        from adapter.sql.plan.collections import collection_literal

        return cast(x.ctx, collection_literal(x, operand, typ), typ, "explicit")
    if isinstance(operand, ast.MapLit) and typ.kind == "map":
        from adapter.sql.plan.collections import map_literal

        return cast(x.ctx, map_literal(x, operand, typ), typ, "explicit")
    inner = plan_expr(x, operand)
    registered = cast_registered(x.ctx, inner, typ)
    return registered if registered is not None else cast(x.ctx, inner, typ, "explicit")


def _collate(x: ExprContext, node: ast.Collate) -> hir.Scalar:
    raise unsupported("COLLATE", position=node.pos + 1)


_DISPATCH: dict[type, Callable[[ExprContext, Any], hir.Scalar]] = {
    ast.Name: _name,
    ast.Star: _star,
    ast.Number: _number,
    ast.String: _string,
    ast.Null: _null,
    ast.Bool: _bool,
    ast.Param: _param,
    ast.Interval: _interval,
    ast.Default: _default,
    ast.Cast: _cast,
    ast.Collate: _collate,
}


def register(kind: type, rule: Callable[[ExprContext, Any], hir.Scalar]) -> None:
    """Families add their node types on import."""
    _DISPATCH[kind] = rule


from adapter.sql.plan import calls, collections, operators, subqueries  # noqa: E402, F401  the families register themselves
