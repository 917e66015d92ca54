"""SELECT: from the FROM item up.

    FROM, WHERE -> [Reduce, HAVING] -> [Window, QUALIFY] -> [table functions] -> Map of the select list -> DISTINCT -> order

The select list is planned first against the FROM scope, leaving markers where aggregates, window functions and table functions stood. Each layer
then replaces the markers it supplies (and, for Reduce, what equals a grouping expression) by columns of its output.
"""

from __future__ import annotations

import dataclasses

from adapter.sql import ast, hir
from adapter.sql.plan import expr
from adapter.sql.plan.coerce import cast, is_unknown, literal, settle, to_bool
from adapter.sql.plan.collections import record_fields
from adapter.sql.plan.context import PlanContext
from adapter.sql.plan.expr import ExprContext, TableUse, WindowUse
from adapter.sql.plan.query import Expected, PlannedQuery, ordinal_of
from adapter.sql.plan.relations import plan_from, rows_from
from adapter.sql.plan.scope import Scope, resolve_column, table_columns
from mzlite.expr.scalar import ColumnOrder, TableFunc
from mzlite.repr.errors import SqlError, unsupported
from mzlite.repr.typenames import type_by_name
from mzlite.repr.types import INT8, ColumnType, RelationType, ScalarType

MAX_COLUMNS = 1600


@dataclasses.dataclass(slots=True)
class _Item:
    """One output column: its syntax (None after an expansion of *), scalar and name."""

    node: ast.Expr | None
    scalar: hir.Scalar
    name: str


def plan_select(
    ctx: PlanContext,
    node: ast.Select,
    outer: list[Scope],
    order_items: tuple[ast.OrderItem, ...],
    expected: Expected,
) -> PlannedQuery:
    return _Select(ctx, node, outer).plan(order_items, expected)


class _Select:
    """The state of planning one SELECT: the relation so far and what was collected from its expressions."""

    def __init__(self, ctx: PlanContext, node: ast.Select, outer: list[Scope]) -> None:
        self.ctx = ctx
        self.node = node
        self.outer = outer
        self.rel, self.scope = plan_from(ctx, node.from_, outer)
        self.scopes = [self.scope, *outer]
        self.aggregates: list[hir.Aggregate] = []
        self.windows: list[WindowUse] = []
        self.tables: list[TableUse] = []
        self.options = dict(node.options)
        for name, value in node.options:
            if not value.isdigit():
                raise SqlError("22023", f"invalid {name.upper()}: cannot use value as number")

    def context(self, clause: str, *, windows: bool = True, tables: bool = True) -> ExprContext:
        named = dict(self.node.windows)
        return ExprContext(
            self.ctx,
            self.scopes,
            clause,
            self.aggregates,
            self.windows if windows else None,
            self.tables if tables else None,
            named,
        )

    def plan(self, order_items: tuple[ast.OrderItem, ...], expected: Expected) -> PlannedQuery:
        node = self.node
        if node.where is not None:
            self.where(node.where)
        items = self.select_items(expected)
        untyped = frozenset(i for i, item in enumerate(items) if is_unknown(item.scalar))
        for item in items:
            item.scalar = settle(self.ctx, item.scalar)
        keys = self.group_keys(items)
        having = None
        if node.having is not None:
            x = self.context("HAVING clause", windows=False, tables=False)
            having = expr.plan_expr(x, node.having)
        qualify = None
        if node.qualify is not None:
            x = self.context("QUALIFY clause", tables=False)
            qualify = to_bool(self.ctx, expr.plan_expr(x, node.qualify), "QUALIFY clause")
        on = self.distinct_on(items)
        order = self.order(order_items, items)
        grouped = node.grouped or node.having is not None or bool(self.aggregates)
        outputs = [item.scalar for item in items]
        extra = [*on, *(scalar for scalar, _, _ in order)]
        layers = outputs + extra + ([qualify] if qualify is not None else [])
        if grouped:
            layers = self.reduce(keys, layers, having)
        if self.windows:
            layers = self.window(layers)
        if qualify is not None:
            self.rel = hir.Filter(self.rel, hir.conjuncts(layers.pop()))
        if self.tables:
            layers = self.table_functions(layers)
        return self.finish(items, layers, len(on), order, untyped)

    # ---- WHERE and the select list

    def where(self, node: ast.Expr) -> None:
        x = ExprContext(self.ctx, self.scopes, "WHERE clause")
        try:
            condition = to_bool(self.ctx, expr.plan_expr(x, node), "WHERE clause")
        except SqlError as error:
            if error.message.startswith("operator "):
                error.message = f"WHERE clause error: {error.message}"
            raise
        self.rel = hir.Filter(self.rel, hir.conjuncts(condition))

    def select_items(self, expected: Expected) -> list[_Item]:
        x = self.context("SELECT clause")
        items: list[_Item] = []
        for item in self.node.items:
            match item.expr:
                case ast.Star(qualifier, pos):
                    items += self.star(qualifier, pos)
                case ast.FieldStar(operand):
                    value = settle(self.ctx, expr.plan_expr(x, operand))
                    items += [_Item(None, scalar, name) for name, scalar in record_fields(value)]
                case node:
                    scalar = expr.plan_expr(x, node)
                    items.append(_Item(node, scalar, item.alias or column_name(node)))
        if len(items) > MAX_COLUMNS:
            raise SqlError("54011", f"target lists can have at most {MAX_COLUMNS} entries")
        if expected is not None:
            for i, output in enumerate(items[: len(expected)]):
                wanted = expected[i]
                if wanted is not None and is_unknown(output.scalar):
                    output.scalar = cast(self.ctx, output.scalar, wanted, "implicit")
        return items

    def star(self, qualifier: tuple[str, ...], pos: int) -> list[_Item]:
        if not qualifier:
            if not self.node.from_:
                raise SqlError("42601", "SELECT * with no tables specified is not valid", position=pos + 1)
            shown = [c for c in self.scope.columns if c.starred]
            return [_Item(None, hir.Column(0, c.index, c.typ, c.name), c.name) for c in shown]
        found = table_columns(self.scopes, qualifier)
        if found is None:
            column = resolve_column(self.scopes, qualifier, pos)
            if column is not None and column.typ.kind == "record":
                return [_Item(None, scalar, name) for name, scalar in record_fields(column)]
            raise SqlError("42P01", f"no table named '{'.'.join(qualifier)}' in scope", position=pos + 1)
        level, columns = found
        return [_Item(None, hir.Column(level, c.index, c.typ, c.name), c.name) for c in columns]

    # ---- GROUP BY

    def group_keys(self, items: list[_Item]) -> list[hir.Scalar]:
        keys: list[hir.Scalar] = []
        for node in self.node.group_by:
            parts = node.items if isinstance(node, ast.Row) and not node.explicit else (node,)
            for part in parts:
                if isinstance(part, ast.Star):
                    found = [item.scalar for item in self.star(part.qualifier, part.pos)]
                else:
                    found = [self.group_key(part, items)]
                keys += [key for key in found if key not in keys]
        return keys

    def group_key(self, node: ast.Expr, items: list[_Item]) -> hir.Scalar:
        ordinal = ordinal_of(node, len(items), "GROUP BY")
        if ordinal is not None:
            return self.checked_key(items[ordinal].scalar)
        if isinstance(node, ast.Name) and len(node.parts) == 1:
            column = resolve_column([self.scope], node.parts, node.pos)
            if column is not None:
                return column
            named = [item for item in items if item.name == node.parts[0]]
            if named:
                if any(item.scalar != named[0].scalar for item in named[1:]):
                    raise SqlError("42702", f'column reference "{node.parts[0]}" is ambiguous', position=node.pos + 1)
                return self.checked_key(named[0].scalar)
        x = ExprContext(self.ctx, self.scopes, "GROUP BY clause")
        return settle(self.ctx, expr.plan_expr(x, node))

    def checked_key(self, scalar: hir.Scalar) -> hir.Scalar:
        """An output column used as a grouping key must not hold aggregates or windows."""
        for e, _ in hir.walk(scalar):
            if isinstance(e, hir.Marker):
                kinds = {"aggregate": "aggregate functions", "window": "window functions", "table": "table functions"}
                raise SqlError("42803", f"{kinds[e.kind]} are not allowed in GROUP BY clause")
        return scalar

    def reduce(self, keys: list[hir.Scalar], layers: list[hir.Scalar], having: hir.Scalar | None) -> list[hir.Scalar]:
        """Group, and restate everything above over the groups' columns."""
        place = {key: i for i, key in enumerate(keys)}
        base = len(keys)

        def regroup(e: hir.Scalar, depth: int) -> hir.Scalar | None:
            if isinstance(e, hir.Marker):
                if e.kind == "aggregate" and depth == 0:
                    return hir.Column(0, base + e.index, e.typ)
                return None
            if depth == 0:
                if e in place:
                    return hir.Column(0, place[e], hir.type_of(e), e.name if isinstance(e, hir.Column) else "")
                if isinstance(e, hir.Column) and e.level == 0:
                    raise self.ungrouped(e)
                return None
            if isinstance(e, hir.Column):
                if e.level != depth:
                    return None
                outside = hir.Column(0, e.column, e.typ, e.name)
                if outside not in place:
                    raise self.ungrouped(outside)
                return hir.Column(depth, place[outside], e.typ, e.name)
            if isinstance(e, hir.Call) and place and _only_outside(e, depth):
                outside_call = hir.shift(e, -depth, depth)
                if outside_call in place:
                    return hir.Column(depth, place[outside_call], e.typ)
            return None

        layers = [hir.rewrite(e, regroup) for e in layers]
        self.windows = [
            WindowUse(
                tuple(hir.rewrite(e, regroup) for e in use.partition_by),
                tuple((hir.rewrite(e, regroup), desc, last) for e, desc, last in use.order_by),
                hir.map_window(use.call, lambda e, _: hir.rewrite(e, regroup), 0),
            )
            for use in self.windows
        ]
        self.tables = [TableUse(use.func, tuple(hir.rewrite(e, regroup) for e in use.args)) for use in self.tables]
        size = self.options.get("aggregate input group size") or self.options.get("expected group size")
        self.rel = hir.Reduce(self.rel, tuple(keys), tuple(self.aggregates), None if size is None else int(size))
        if having is not None:
            condition = to_bool(self.ctx, hir.rewrite(having, regroup), "HAVING clause")
            self.rel = hir.Filter(self.rel, hir.conjuncts(condition))
        return layers

    def ungrouped(self, e: hir.Column) -> SqlError:
        shown = e.name
        for column in self.scope.columns:
            if column.index == e.column and column.table:
                shown = f"{column.table[-1]}.{column.name}"
                break
        return SqlError(
            "42803", f'column "{shown}" must appear in the GROUP BY clause or be used in an aggregate function'
        )

    # ---- windows and table functions

    def window(self, layers: list[hir.Scalar]) -> list[hir.Scalar]:
        """One Window node per distinct PARTITION BY and ORDER BY; calls' results are appended columns.

        A window function inside another's arguments (or PARTITION BY) is computed before it.
        """
        where: dict[int, int] = {}

        def supply(e: hir.Scalar, depth: int) -> hir.Scalar | None:
            if isinstance(e, hir.Marker) and e.kind == "window" and e.index in where:
                return hir.Column(depth, where[e.index], e.typ)
            return None

        left = list(range(len(self.windows)))
        while left:
            # Uses are numbered inside out, so the first one left is always ready.
            ready = [i for i in left if all(j in where for j in _window_markers(self.windows[i]))]
            for i in ready:
                use = self.windows[i]
                self.windows[i] = WindowUse(
                    tuple(hir.rewrite(e, supply) for e in use.partition_by),
                    tuple((hir.rewrite(e, supply), desc, last) for e, desc, last in use.order_by),
                    hir.map_window(use.call, lambda e, _: hir.rewrite(e, supply), 0),
                )
            groups: dict[tuple[object, object], list[int]] = {}
            for i in ready:
                groups.setdefault((self.windows[i].partition_by, self.windows[i].order_by), []).append(i)
            for indexes in groups.values():
                self.one_window(indexes, where)
            left = [i for i in left if i not in where]
        self.tables = [TableUse(use.func, tuple(hir.rewrite(e, supply) for e in use.args)) for use in self.tables]
        return [hir.rewrite(e, supply) for e in layers]

    def one_window(self, indexes: list[int], where: dict[int, int]) -> None:
        """Appends the calls of one window; records where their results stand."""
        width = hir.arity(self.rel)
        use = self.windows[indexes[0]]
        scalars: list[hir.Scalar] = []

        def column_of(e: hir.Scalar) -> int:
            if isinstance(e, hir.Column) and e.level == 0:
                return e.column
            if e not in scalars:
                scalars.append(e)
            return width + scalars.index(e)

        partition_by = tuple(column_of(e) for e in use.partition_by)
        order_by = tuple(ColumnOrder(column_of(e), desc, last) for e, desc, last in use.order_by)
        if scalars:
            self.rel = hir.Map(self.rel, tuple(scalars))
        self.rel = hir.Window(self.rel, partition_by, order_by, tuple(self.windows[i].call for i in indexes))
        for n, i in enumerate(indexes):
            where[i] = width + len(scalars) + n

    def table_functions(self, layers: list[hir.Scalar]) -> list[hir.Scalar]:
        """Set-returning functions of the select list run side by side for each row."""
        base = hir.arity(self.rel)
        starts: list[int] = []
        at = base
        if len(self.tables) == 1:
            use = self.tables[0]
            right: hir.Relation = hir.CallTable(use.func, tuple(hir.shift(a, 1) for a in use.args))
            starts.append(base)
        else:
            if any(use.func.func == "repeat_row_int8" for use in self.tables):
                raise unsupported("repeat_row in a SELECT clause with multiple table functions")
            parts = []
            numbered: list[hir.Relation] = []
            for use in self.tables:
                func = TableFunc(
                    f"ordinality:{use.func.func}", RelationType((*use.func.typ.columns, ColumnType(INT8, False)))
                )
                numbered.append(hir.CallTable(func, tuple(hir.shift(a, 1) for a in use.args)))
                types = tuple(c.scalar for c in use.func.typ.columns)
                parts.append((numbered[-1], tuple("" for _ in types), types))
                starts.append(at)
                at += len(types)
            right, names, _ = rows_from(parts, numbered)
            right = hir.Project(right, tuple(range(len(names))))
        self.rel = hir.Lateral(self.rel, right, None, "inner")

        def supply(e: hir.Scalar, depth: int) -> hir.Scalar | None:
            if isinstance(e, hir.Marker) and e.kind == "table":
                return hir.Column(depth, starts[e.index] + e.column, e.typ)
            return None

        return [hir.rewrite(e, supply) for e in layers]

    # ---- DISTINCT ON, ORDER BY

    def distinct_on(self, items: list[_Item]) -> list[hir.Scalar]:
        out: list[hir.Scalar] = []
        for node in self.node.distinct or ():
            out.append(self.output_expr(node, items, "DISTINCT ON", "DISTINCT ON clause"))
        return out

    def order(self, order_items: tuple[ast.OrderItem, ...], items: list[_Item]) -> list[tuple[hir.Scalar, bool, bool]]:
        out: list[tuple[hir.Scalar, bool, bool]] = []
        for item in order_items:
            nulls_last = not item.desc if item.nulls_first is None else not item.nulls_first
            out.append((self.output_expr(item.expr, items, "ORDER BY", "ORDER BY clause"), item.desc, nulls_last))
        return out

    def output_expr(self, node: ast.Expr, items: list[_Item], clause: str, words: str) -> hir.Scalar:
        """An ordinal, an output column's name, or an expression over the input."""
        ordinal = ordinal_of(node, len(items), clause)
        if ordinal is not None:
            return items[ordinal].scalar
        if isinstance(node, ast.Name) and len(node.parts) == 1:
            named = [item for item in items if item.name == node.parts[0]]
            if named:
                if any(item.scalar != named[0].scalar for item in named[1:]):
                    raise SqlError("42702", f'column reference "{node.parts[0]}" is ambiguous', position=node.pos + 1)
                return named[0].scalar
        return settle(self.ctx, expr.plan_expr(self.context(words), node))

    # ---- the end

    def finish(
        self,
        items: list[_Item],
        layers: list[hir.Scalar],
        on_count: int,
        order: list[tuple[hir.Scalar, bool, bool]],
        untyped: frozenset[int],
    ) -> PlannedQuery:
        base = hir.arity(self.rel)
        scalars: list[hir.Scalar] = []
        columns: list[int] = []
        place: dict[hir.Scalar, int] = {}
        for e in layers:
            if isinstance(e, hir.Column) and e.level == 0:
                columns.append(e.column)
                continue
            if e not in place:
                place[e] = base + len(scalars)
                scalars.append(e)
            columns.append(place[e])
        if scalars:
            self.rel = hir.Map(self.rel, tuple(scalars))
        count = len(items)
        visible = tuple(columns[:count])
        types = tuple(hir.type_of(e) for e in layers[:count])
        names = tuple(item.name for item in items)
        on = columns[count : count + on_count]
        order_columns = columns[count + on_count :]
        order_by = tuple(ColumnOrder(c, desc, last) for c, (_, desc, last) in zip(order_columns, order))
        width = base + len(scalars)
        physical: list[ScalarType] = [INT8] * width
        for c, e in zip(columns, layers):
            physical[c] = hir.type_of(e)
        distinct = self.node.distinct
        size = self.options.get("limit input group size")
        if distinct is None:
            return PlannedQuery(
                self.rel,
                names,
                types,
                visible,
                tuple(physical),
                order_by,
                untyped=untyped,
                group_size=None if size is None else int(size),
            )
        if distinct:
            leading = {o.column for o in order_by[: len(set(on))]}
            if order_by and not leading <= set(on) and set(on) != leading:
                raise SqlError("42P10", "SELECT DISTINCT ON expressions must match initial ORDER BY expressions")
            hint = self.options.get("distinct on input group size")
            rest = tuple(o for o in order_by if o.column not in set(on))
            group = tuple(dict.fromkeys(on))
            rel: hir.Relation = hir.TopK(
                self.rel, group, rest, literal(INT8, 1), 0, None if hint is None else int(hint)
            )
            return PlannedQuery(rel, names, types, visible, tuple(physical), order_by, untyped=untyped)
        if any(o.column not in visible for o in order_by):
            raise SqlError("42P10", "for SELECT DISTINCT, ORDER BY expressions must appear in select list")
        unique = tuple(dict.fromkeys(visible))
        rel = hir.Distinct(hir.Project(self.rel, unique) if unique != tuple(range(width)) else self.rel)
        moved = {c: i for i, c in enumerate(unique)}
        order_by = tuple(ColumnOrder(moved[o.column], o.desc, o.nulls_last) for o in order_by)
        return PlannedQuery(
            rel,
            names,
            types,
            tuple(moved[c] for c in visible),
            tuple(physical[c] for c in unique),
            order_by,
            untyped=untyped,
        )


def _window_markers(use: WindowUse) -> set[int]:
    """The window functions that a use's arguments and window read."""
    scalars = [*use.partition_by, *(e for e, _, _ in use.order_by), *use.call.args]
    if use.call.filter is not None:
        scalars.append(use.call.filter)
    found = (e for s in scalars for e, _ in hir.walk(s))
    return {e.index for e in found if isinstance(e, hir.Marker) and e.kind == "window"}


def _only_outside(e: hir.Scalar, depth: int) -> bool:
    """Whether e, inside a subquery, reads nothing but rows of `depth` scopes out (and is more than a constant)."""
    columns = [c for c, d in hir.walk(e) if isinstance(c, hir.Column) and d == 0]
    return bool(columns) and all(c.level == depth for c in columns)


def column_name(node: ast.Expr) -> str:
    """The name PostgreSQL gives an unnamed output column."""
    return _name(node)[0] or "?column?"


def _name(node: ast.Expr) -> tuple[str | None, bool]:
    """The name, and whether it is a good one: the type of a cast or `case` gives way to the type of a cast around it."""
    match node:
        case ast.Name(parts):
            return parts[-1], True
        case ast.Field(_, name):
            return name, True
        case ast.FuncCall(name):
            return name[-1], True
        case ast.Cast(operand, typ):
            inner, good = _name(operand)
            return (inner, True) if good else (_type_name(typ), False)
        case ast.Collate(operand) | ast.Subscript(operand):
            return _name(operand)
        case ast.Case(_, _, default):
            inner, good = (None, False) if default is None else _name(default)
            return (inner, True) if good else ("case", False)
        case ast.Subquery(query, kind):
            return (kind, True) if kind != "scalar" else (_query_name(query), True)
        case ast.ArrayLit(_, kind):
            return kind, True
        case ast.MapLit():
            return "map", True
        case ast.Row():
            return "row", True
        case ast.Interval():
            return "interval", False
        case ast.Bool():
            return "bool", False
        case _:
            return None, False


def _query_name(query: ast.Query) -> str | None:
    """The name of a scalar subquery's column."""
    body = query.body
    while isinstance(body, ast.Query):
        body = body.body
    if isinstance(body, ast.Select) and len(body.items) == 1:
        item = body.items[0]
        return item.alias or _name(item.expr)[0]
    return "column1" if isinstance(body, ast.Values) else None


def _type_name(typ: ast.TypeName) -> str | None:
    """A type as its catalog calls it: int4 for int, also for int[]."""
    if typ.container is not None:
        return typ.container if typ.container != "array" or typ.element is None else _type_name(typ.element)
    word = typ.parts[-1]
    builtin = type_by_name(word)
    return word if builtin is None or builtin.kind in ("range", "array") else builtin.kind
