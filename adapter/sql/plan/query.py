"""Queries: WITH, bodies, set operations, VALUES, ordering and limits. SELECT itself is in `select`.

A planned query keeps hidden columns and its order until somebody decides what to do with them: the top level makes them the finishing, a
subquery drops them (`relation`), ARRAY(…) aggregates in that order (`ordered`).
"""

from __future__ import annotations

import dataclasses

from adapter.sql import ast, hir
from adapter.sql.plan import expr
from adapter.sql.plan.coerce import cast, common_type, is_unknown, literal, settle, to_common, try_cast
from adapter.sql.plan.constants import constant_datum
from adapter.sql.plan.context import PlanContext
from adapter.sql.plan.expr import ExprContext
from adapter.sql.plan.scope import CteBinding, Scope, ScopeColumn
from adapter.sql.plan.types import type_words
from mzlite.expr.functions import FUNCTIONS
from mzlite.expr.scalar import ColumnOrder, Literal, Unmaterializable
from mzlite.repr.errors import SqlError, unsupported
from mzlite.repr.types import BOOL, INT8, ColumnType, RelationType, ScalarType

Expected = tuple[ScalarType | None, ...] | None


@dataclasses.dataclass(frozen=True, slots=True)
class PlannedQuery:
    """rel: physical columns. project: the visible ones. untyped: visible columns whose type (text) was only assumed.

    order_by stands on physical columns, whose types are `physical`.
    """

    rel: hir.Relation
    names: tuple[str, ...]
    types: tuple[ScalarType, ...]
    project: tuple[int, ...]
    physical: tuple[ScalarType, ...] = ()
    order_by: tuple[ColumnOrder, ...] = ()
    limit: hir.Scalar | None = None
    offset: int = 0
    untyped: frozenset[int] = frozenset()
    group_size: int | None = None

    def limited(self) -> hir.Relation:
        """rel with its limit applied, hidden columns kept."""
        if self.limit is None and self.offset == 0:
            return self.rel
        return hir.TopK(self.rel, (), self.order_by, self.limit, self.offset, self.group_size)

    def relation(self) -> hir.Relation:
        """The visible columns; the order is forgotten."""
        return project(self.limited(), self.project, len(self.physical) or hir.arity(self.rel))

    def ordered(self) -> tuple[hir.Relation, tuple[int, ...], list[tuple[ColumnOrder, ScalarType]]]:
        """Relation, visible columns, order with types."""
        return self.limited(), self.project, [(o, self.physical[o.column]) for o in self.order_by]

    def scope(self, table: str | None = None) -> Scope:
        """Visible columns, as the columns of a FROM item called `table`."""
        parts = () if table is None else (table,)
        columns = tuple(ScopeColumn(n, t, i, parts) for i, (n, t) in enumerate(zip(self.names, self.types)))
        return Scope(columns, () if table is None else (parts,))


def project(rel: hir.Relation, outputs: tuple[int, ...], width: int) -> hir.Relation:
    return rel if outputs == tuple(range(width)) else hir.Project(rel, outputs)


def plan_query(ctx: PlanContext, query: ast.Query, outer: list[Scope], expected: Expected = None) -> PlannedQuery:
    """outer: the scopes the query may refer to, nearest first. expected: types for untyped output columns."""
    frame: dict[str, CteBinding] = {}
    ctx.ctes.append(frame)
    try:
        if query.recursion is not None:
            from adapter.sql.plan.recursion import plan_recursion

            wrap = plan_recursion(ctx, query.recursion, outer, frame)
            planned = _plan_finished(ctx, query, outer, expected)
            return dataclasses.replace(planned, rel=wrap(planned.rel))
        lets: list[tuple[str, int, hir.Relation]] = []
        if query.recursive and query.ctes:
            from adapter.sql.plan.recursion import plan_recursive_ctes

            recursive = plan_recursive_ctes(ctx, query.ctes, outer, frame)
            planned = _plan_finished(ctx, query, outer, expected)
            return dataclasses.replace(planned, rel=recursive(planned.rel))
        for cte in query.ctes:
            if cte.name in frame:
                raise SqlError("42712", f'WITH query name "{cte.name}" specified more than once', position=cte.pos + 1)
            body = plan_query(ctx, cte.query, outer)
            names = cte_names(cte.name, cte.columns, body.names)
            id = ctx.fresh()
            lets.append((cte.name, id, body.relation()))
            frame[cte.name] = CteBinding(id, names, body.types)
        planned = _plan_finished(ctx, query, outer, expected)
        rel = planned.rel
        for name, id, value in reversed(lets):
            rel = hir.Let(name, id, value, rel)
        return dataclasses.replace(planned, rel=rel)
    finally:
        ctx.ctes.pop()


def cte_names(name: str, given: tuple[str, ...], names: tuple[str, ...]) -> tuple[str, ...]:
    if len(given) > len(names):
        raise SqlError("42P10", f"{name} has {len(names)} columns available but {len(given)} columns specified")
    return given + names[len(given) :]


def lookup_cte(ctx: PlanContext, name: str) -> CteBinding | None:
    for frame in reversed(ctx.ctes):
        if name in frame:
            return frame[name]
    return None


def cte_get(binding: CteBinding) -> hir.Get:
    return hir.Get(binding.id, RelationType(tuple(ColumnType(t) for t in binding.types)))


def _plan_finished(ctx: PlanContext, query: ast.Query, outer: list[Scope], expected: Expected) -> PlannedQuery:
    body = query.body
    if isinstance(body, ast.Select):
        from adapter.sql.plan.select import plan_select

        planned = plan_select(ctx, body, outer, query.order_by, expected)
    else:
        planned = plan_body(ctx, body, outer, expected)
        if query.order_by:
            planned = _order_output(ctx, planned, query.order_by, outer)
    if query.limit is None and query.offset is None:
        return planned
    if query.with_ties:
        raise unsupported("FETCH ... WITH TIES")
    limit = None if query.limit is None else _limit(ctx, query.limit, outer)
    offset = 0 if query.offset is None else _offset(ctx, query.offset, outer)
    if limit is not None and not isinstance(limit, Literal):
        return _computed_limit(planned, limit, offset)
    return dataclasses.replace(planned, limit=limit, offset=offset)


def _computed_limit(planned: PlannedQuery, limit: hir.Scalar, offset: int) -> PlannedQuery:
    """A limit that is known only when the query runs: rows are numbered and filtered."""
    width = len(planned.physical)
    numbered = hir.Window(planned.limited(), (), planned.order_by, (hir.WindowCall("row_number", (), INT8),))
    number = hir.Column(0, width, INT8)
    skipped = literal(INT8, offset)
    last = hir.Call("add_int8", (limit, skipped), INT8)
    unlimited = hir.Call(FUNCTIONS["is_null"].bind([INT8]).id, (limit,), BOOL)
    inside = hir.Call("or", (unlimited, hir.Call("lte_int8", (number, last), BOOL)), BOOL)
    rel = hir.Filter(numbered, (inside, hir.Call("gt_int8", (number, skipped), BOOL)))
    return dataclasses.replace(planned, rel=rel, physical=(*planned.physical, INT8), limit=None, offset=0)


def plan_body(ctx: PlanContext, body: ast.Body, outer: list[Scope], expected: Expected) -> PlannedQuery:
    match body:
        case ast.Select():
            from adapter.sql.plan.select import plan_select

            return plan_select(ctx, body, outer, (), expected)
        case ast.SetOp():
            return _set_op(ctx, body, outer, expected)
        case ast.Values(rows, pos):
            return plan_values(ctx, rows, outer, pos, expected)
        case ast.TableBody(parts, pos):
            from adapter.sql.plan.relations import plan_table_ref

            rel, scope = plan_table_ref(ctx, ast.TableRef(parts, None, None, pos))
            names = tuple(c.name for c in scope.columns)
            types = tuple(c.typ for c in scope.columns)
            return PlannedQuery(rel, names, types, tuple(range(len(names))), types)
        case ast.Query():
            planned = plan_query(ctx, body, outer, expected)
            # The order of a parenthesised body still orders the whole when nothing else does; its limit is applied here.
            if planned.limit is None and planned.offset == 0:
                return planned
            rel = planned.limited()
            return dataclasses.replace(planned, rel=rel, limit=None, offset=0)
        case ast.ShowBody(statement):
            from adapter.sql.plan.show import plan_show_query

            return plan_show_query(ctx, statement)


# ---- limits


def _limit(ctx: PlanContext, node: ast.Expr, outer: list[Scope]) -> hir.Scalar | None:
    value = _row_count(ctx, node, outer, "LIMIT")
    if isinstance(value, int) and value < 0:
        raise SqlError("2201W", "LIMIT must not be negative")
    return literal(INT8, value) if isinstance(value, int) else value


def _offset(ctx: PlanContext, node: ast.Expr, outer: list[Scope]) -> int:
    value = _row_count(ctx, node, outer, "OFFSET")
    if value is None:
        raise SqlError(
            "22004", "Invalid OFFSET clause: Expected an expression that evaluates to a non-null value, got null"
        )
    if isinstance(value, int):
        if value < 0:
            raise SqlError("2201X", f"Invalid OFFSET clause: must not be negative, got {value}")
        return value
    if isinstance(value, Unmaterializable) and value.func.startswith("$"):
        return 0
    from adapter.sql.plan.printing import scalar_text

    raise SqlError(
        "42601",
        "Invalid OFFSET clause: must be simplifiable to a constant, possibly after parameter binding, got "
        + scalar_text(value),
    )


def _row_count(ctx: PlanContext, node: ast.Expr, outer: list[Scope], clause: str) -> int | hir.Scalar | None:
    """A constant count, None for NULL, or the scalar when it is not constant."""
    x = ExprContext(ctx, outer, clause)
    planned = hir.shift(expr.plan_expr(x, node), 1)
    if clause == "OFFSET" and any(
        isinstance(e, hir.Exists | hir.ScalarQuery | hir.Quantified) for e, _ in hir.walk(planned)
    ):
        raise SqlError("0A000", "OFFSET does not allow subqueries")
    typ = hir.type_of(planned)
    if typ.kind != "unknown" and try_cast(ctx, planned, INT8, "assignment") is None:
        raise SqlError("42804", f"{clause} must have type bigint, not type {type_words(typ)}")
    planned = cast(ctx, planned, INT8, "assignment", clause)
    try:
        constant, value = constant_datum(ctx, planned)
    except SqlError as error:
        if clause == "OFFSET":
            raise SqlError(error.sqlstate, f"Invalid OFFSET clause: {error.message}") from None
        raise
    if constant:
        return None if value is None else int(value)
    if any(isinstance(e, Unmaterializable) and e.func.startswith("$") for e, _ in hir.walk(planned)):
        ctx.parameters_in_limits = True
        found = next(e for e, _ in hir.walk(planned) if isinstance(e, Unmaterializable) and e.func.startswith("$"))
        return None if clause == "LIMIT" else found
    return planned


# ---- VALUES


def plan_values(
    ctx: PlanContext, rows: tuple[tuple[ast.Expr, ...], ...], outer: list[Scope], pos: int, expected: Expected
) -> PlannedQuery:
    width = len(rows[0])
    for row in rows:
        if len(row) != width:
            raise SqlError(
                "42601",
                f"VALUES expression has varying number of columns: {width} vs {len(row)}",
                position=pos + 1,
            )
    x = ExprContext(ctx, outer, "VALUES")
    columns: list[list[hir.Scalar]] = []
    types: list[ScalarType] = []
    untyped: set[int] = set()
    planned = [[hir.shift(expr.plan_expr(x, e), 1) for e in row] for row in rows]
    for i in range(width):
        column = [row[i] for row in planned]
        if all(is_unknown(e) for e in column):
            wanted = expected[i] if expected is not None and i < len(expected) else None
            if wanted is None:
                untyped.add(i)
                column = [settle(ctx, e) for e in column]
                typ = hir.type_of(column[0])
            else:
                column = [cast(ctx, e, wanted, "implicit") for e in column]
                typ = wanted
        else:
            column, typ = to_common(ctx, column, "VALUES")
            column = [settle(ctx, e) for e in column]
            typ = hir.type_of(column[0]) if typ.kind == "record" else typ
        columns.append(column)
        types.append(typ)
    rel = values_relation(list(zip(*columns)) if columns else [()] * len(rows), tuple(types))
    names = tuple(f"column{i + 1}" for i in range(width))
    return PlannedQuery(rel, names, tuple(types), tuple(range(width)), tuple(types), untyped=frozenset(untyped))


def values_relation(rows: list[tuple[hir.Scalar, ...]], types: tuple[ScalarType, ...]) -> hir.Relation:
    """Rows of expressions: literal rows as one constant, the others computed from the unit row."""
    constant: list[tuple[bytes | None, ...]] = []
    computed: list[hir.Relation] = []
    for row in rows:
        if all(isinstance(e, Literal) and e.error is None for e in row):
            constant.append(tuple(e.value for e in row if isinstance(e, Literal)))
        else:
            computed.append(hir.Map(hir.UNIT, row))
    parts: list[hir.Relation] = []
    if constant or not computed:
        nullable = tuple(any(row[i] is None for row in constant) for i in range(len(types)))
        parts.append(hir.Constant(tuple(constant), types, nullable))
    parts += computed
    return parts[0] if len(parts) == 1 else hir.Union(tuple(parts))


# ---- set operations


def _branches(body: ast.SetOp) -> list[ast.Body]:
    """The operands of a chain of one kind of set operation, left to right."""
    out: list[ast.Body] = []
    node: ast.Body = body
    while isinstance(node, ast.SetOp) and node.op == body.op and node.all == body.all:
        out.append(node.right)
        node = node.left
        if body.op == "except":
            break
    out.append(node)
    out.reverse()
    return out


def _set_op(ctx: PlanContext, body: ast.SetOp, outer: list[Scope], expected: Expected) -> PlannedQuery:
    branches = _branches(body)
    planned = [plan_body(ctx, b, outer, None) for b in branches]
    words = f"{body.op.upper()}{' ALL' if body.all else ''}"
    width = len(planned[0].project)
    for p in planned[1:]:
        if len(p.project) != width:
            raise SqlError(
                "42601",
                f"each {words} query must have the same number of columns: {width} vs {len(p.project)}",
                position=body.pos + 1,
            )
    types: list[ScalarType] = []
    for i in range(width):
        typed = [hir.Column(0, 0, p.types[i]) for p in planned if i not in p.untyped]
        if typed:
            types.append(common_type(ctx, typed, body.op.upper()))
        else:
            wanted = expected[i] if expected is not None and i < len(expected) else None
            types.append(wanted if wanted is not None else planned[0].types[i])
    inputs: list[hir.Relation] = []
    untyped = frozenset(i for i in range(width) if all(i in p.untyped for p in planned) and expected is None)
    for branch, p in zip(branches, planned):
        if any(i in p.untyped and p.types[i] != types[i] for i in range(width)):
            p = plan_body(ctx, branch, outer, tuple(types))
        inputs.append(_converted(ctx, p, types, body.op.upper()))
    rel = inputs[0]
    if body.op == "union":
        rel = hir.Union(tuple(inputs))
        if not body.all:
            rel = hir.Distinct(rel)
    else:
        for right in inputs[1:]:
            rel = _difference(rel, right, body.all) if body.op == "except" else _intersection(ctx, rel, right, body.all)
    return PlannedQuery(rel, planned[0].names, tuple(types), tuple(range(width)), tuple(types), untyped=untyped)


def _difference(left: hir.Relation, right: hir.Relation, every: bool) -> hir.Relation:
    """left EXCEPT right: multiplicities subtract, never below zero; without ALL both sides are sets."""
    if not every:
        left, right = hir.Distinct(left), hir.Distinct(right)
    return hir.Threshold(hir.Union((left, hir.Negate(right))))


def _intersection(ctx: PlanContext, left: hir.Relation, right: hir.Relation, every: bool) -> hir.Relation:
    """left INTERSECT right = left minus (left minus right)."""
    if not every:
        left, right = hir.Distinct(left), hir.Distinct(right)
    if not every or isinstance(left, hir.Get | hir.Constant):
        return hir.Threshold(hir.Union((left, hir.Negate(_difference(left, right, True)))))
    return hir.Threshold(hir.Union((left, hir.Negate(hir.Threshold(hir.Union((left, hir.Negate(right))))))))


def _converted(ctx: PlanContext, p: PlannedQuery, types: list[ScalarType], what: str) -> hir.Relation:
    """p's visible columns cast to types."""
    rel = p.relation()
    if list(p.types) == types:
        return rel
    scalars: list[hir.Scalar] = []
    outputs: list[int] = []
    width = len(types)
    for i, (have, want) in enumerate(zip(p.types, types)):
        column = hir.Column(0, i, have)
        converted = try_cast(ctx, column, want, "implicit")
        if converted is None:
            raise SqlError("42804", f"{what} types {type_words(have)} and {type_words(want)} cannot be matched")
        if isinstance(converted, hir.Column):
            outputs.append(i)
        else:
            outputs.append(width + len(scalars))
            scalars.append(converted)
    if not scalars:
        return rel
    return hir.Project(hir.Map(rel, tuple(scalars)), tuple(outputs))


def _order_output(
    ctx: PlanContext, planned: PlannedQuery, items: tuple[ast.OrderItem, ...], outer: list[Scope]
) -> PlannedQuery:
    """ORDER BY over a set operation or VALUES: ordinals, output names, or expressions over the output."""
    rel = planned.limited()
    width = len(planned.physical)
    scalars: list[hir.Scalar] = []
    types = list(planned.physical)
    order: list[ColumnOrder] = []
    columns = tuple(ScopeColumn(n, t, p) for n, t, p in zip(planned.names, planned.types, planned.project))
    x = ExprContext(ctx, [Scope(columns), *outer], "ORDER BY clause of a set expression")
    for item in items:
        nulls_last = not item.desc if item.nulls_first is None else not item.nulls_first
        ordinal = ordinal_of(item.expr, len(planned.project), "ORDER BY")
        if ordinal is not None:
            column = planned.project[ordinal]
        else:
            planned_item = expr.plan_typed(x, item.expr)
            if isinstance(planned_item, hir.Column) and planned_item.level == 0:
                column = planned_item.column
            else:
                column = width + len(scalars)
                scalars.append(planned_item)
                types.append(hir.type_of(planned_item))
        order.append(ColumnOrder(column, item.desc, nulls_last))
    if scalars:
        rel = hir.Map(rel, tuple(scalars))
    return dataclasses.replace(planned, rel=rel, order_by=tuple(order), physical=tuple(types), limit=None, offset=0)


def ordinal_of(node: ast.Expr, count: int, clause: str) -> int | None:
    """The 0-based position when node is an integer literal."""
    if not isinstance(node, ast.Number) or not node.text.lstrip("-").isdigit():
        return None
    n = int(node.text)
    if not 1 <= n <= count:
        raise SqlError(
            "42P10", f"column reference {n} in {clause} clause is out of range (1 - {count})", position=node.pos + 1
        )
    return n - 1
