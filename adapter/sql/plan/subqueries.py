"""Subqueries as scalars: scalar, EXISTS, IN, ANY/ALL, ARRAY(…), LIST(…), MAP(…)."""

from __future__ import annotations

from adapter.sql import ast, hir
from adapter.sql.plan import expr
from adapter.sql.plan.coerce import cast, settle, to_common, try_cast
from adapter.sql.plan.expr import ExprContext
from adapter.sql.plan.operators import compare_rows, conjunction, disjunction, is_null, negate
from adapter.sql.plan.overload import resolve_operator
from adapter.sql.plan.types import type_words
from mzlite.expr import aggregates
from mzlite.expr.functions import FUNCTIONS
from mzlite.expr.scalar import ColumnOrder, Literal
from mzlite.repr.errors import SqlError
from mzlite.repr.types import BOOL, ScalarType, array_of


def _subquery(x: ExprContext, node: ast.Subquery) -> hir.Scalar:
    from adapter.sql.plan.query import plan_query

    planned = plan_query(x.ctx, node.query, x.scopes)
    if node.kind == "exists":
        return hir.Exists(planned.relation())
    if node.kind == "scalar":
        if len(planned.project) != 1:
            raise SqlError(
                "42601",
                f"Expected subselect to return 1 column, got {len(planned.project)} columns",
                position=node.pos + 1,
            )
        return hir.ScalarQuery(planned.relation(), planned.types[0])
    return _collected(x, node, planned)


def _collected(x: ExprContext, node: ast.Subquery, planned: object) -> hir.Scalar:
    """ARRAY(q) and friends: an aggregate over the query in its order; no row gives an empty collection, not NULL."""
    from adapter.sql.plan.query import PlannedQuery

    assert isinstance(planned, PlannedQuery)
    wanted = 2 if node.kind == "map" else 1
    got = len(planned.project)
    if got != wanted:
        if node.kind == "map":
            raise SqlError(
                "42601", f"expected map subquery to return 2 columns, got {got} columns", position=node.pos + 1
            )
        raise SqlError(
            "42601", f"Expected subselect to return {wanted} column, got {got} columns", position=node.pos + 1
        )
    if node.kind == "map" and planned.types[0].kind != "text":
        raise SqlError("42804", "cannot build map from subquery because first column is not of type text")
    if node.kind == "array" and planned.types[0].kind in ("list", "map", "record"):
        raise SqlError("0A000", f"{type_words(planned.types[0])}[] not yet supported", position=node.pos + 1)
    if node.kind == "list" and planned.types[0].kind in ("char", "bpchar"):
        raise SqlError("0A000", f"LIST on {type_words(planned.types[0])} not yet supported")
    relation, columns, order = planned.ordered()
    args = tuple(hir.Column(0, c, t) for c, t in zip(columns, planned.types))
    name = {"array": "array_agg", "list": "list_agg", "map": "map_agg"}[node.kind]
    entry = aggregates.by_name(name)[0].bind(planned.types)
    typ = entry.result_type(planned.types)
    order_exprs = tuple(hir.Column(0, o.column, t) for o, t in order)
    order_by = tuple(ColumnOrder(i, o.desc, o.nulls_last) for i, (o, _) in enumerate(order))
    aggregate = hir.Aggregate(entry.id, args, typ, False, None, order_exprs, order_by)
    reduced = hir.Reduce(relation, (), (aggregate,))
    query = hir.ScalarQuery(reduced, typ)
    return coalesce_empty(x, query, typ)


def coalesce_empty(x: ExprContext, e: hir.Scalar, typ: ScalarType) -> hir.Scalar:
    from adapter.sql.plan.collections import empty_collection

    return hir.Call("coalesce", (e, empty_collection(typ)), typ)


def _in_query(x: ExprContext, node: ast.InQuery) -> hir.Scalar:
    result = _quantify(x, node.operand, "=", False, node.query, node.pos)
    return negate(result) if node.negated else result


def _quantified(x: ExprContext, node: ast.Quantified) -> hir.Scalar:
    if isinstance(node.right, ast.Query):
        return _quantify(x, node.operand, node.op, node.all, node.right, node.pos)
    return _over_collection(x, node)


def _quantify(x: ExprContext, operand: ast.Expr, op: str, every: bool, query: ast.Query, pos: int) -> hir.Scalar:
    from adapter.sql.plan.query import plan_query

    left = (
        [expr.plan_expr(x, i) for i in operand.items] if isinstance(operand, ast.Row) else [expr.plan_expr(x, operand)]
    )
    planned = plan_query(x.ctx, query, x.scopes)
    width = len(planned.project)
    if width != len(left):
        count = len(left)
        message = f"subquery{count} has {width} columns available but {count} columns specified"
        raise SqlError("42601", message, position=pos + 1)
    shifted = [hir.shift(e, 1) for e in left]
    right: list[hir.Scalar] = [hir.Column(0, i, t) for i, t in enumerate(planned.types)]
    if len(left) == 1:
        predicate = resolve_operator(x.ctx, op, (shifted[0], right[0]), pos)
    else:
        predicate = compare_rows(x, op, shifted, right, pos)
    equal: hir.Scalar | None = None
    if (
        len(left) == 1
        and isinstance(predicate, hir.Call)
        and predicate.args[1] == right[0]
        and op in ("=", "<>")
        and every == (op == "<>")
    ):
        equal = hir.shift(predicate.args[0], -1, 1)
    return hir.Quantified(planned.relation(), predicate, every, equal)


def _over_collection(x: ExprContext, node: ast.Quantified) -> hir.Scalar:
    """x op ANY (array or list): for a literal the disjunction of its members, otherwise a subquery over unnest."""
    from adapter.sql.plan.calls import table_call

    right_ast = node.right
    assert not isinstance(right_ast, ast.Query)
    if (
        isinstance(right_ast, ast.ArrayLit)
        and right_ast.items
        and not any(isinstance(i, ast.ArrayLit) for i in right_ast.items)
    ):
        left = expr.plan_expr(x, node.operand)
        items, _ = to_common(x.ctx, [expr.plan_expr(x, i) for i in right_ast.items], right_ast.kind.upper())
        parts = tuple(resolve_operator(x.ctx, node.op, (left, item), node.pos) for item in items)
        return conjunction(parts) if node.all else disjunction(parts)
    left = expr.plan_expr(x, node.operand)
    right = expr.plan_expr(x, right_ast)
    typ = hir.type_of(right)
    if typ.kind == "unknown":
        element = hir.type_of(settle(x.ctx, left)).base()
        right = cast(x.ctx, right, array_of(element), "implicit")
        typ = hir.type_of(right)
    if typ.kind not in ("array", "list", "int2vector"):
        word = "ALL" if node.all else "ANY"
        raise SqlError(
            "42809", f"op {word} requires array or list on right side, got {type_words(typ)}", position=node.pos + 1
        )
    call = _quantified_call(x, node, left, right)
    if call is not None:
        return call
    func, args, _ = table_call(x, "unnest", (hir.shift(right, 1),), node.pos)
    relation = hir.CallTable(func, args)
    member: hir.Scalar = hir.Column(0, 0, func.typ.columns[0].scalar)
    predicate = resolve_operator(x.ctx, node.op, (hir.shift(left, 1), member), node.pos)
    result: hir.Scalar = hir.Quantified(relation, predicate, node.all)
    # A NULL collection gives NULL, not false.
    return hir.If(is_null(right), Literal(None, BOOL), result)


_QUANTIFIED = {
    "=": "eq", "<>": "not_eq", "<": "lt", "<=": "lte", ">": "gt", ">=": "gte",
    "~~": "like", "!~~": "not_like", "~~*": "ilike", "!~~*": "not_ilike",
}  # fmt: skip


def _quantified_call(x: ExprContext, node: ast.Quantified, left: hir.Scalar, right: hir.Scalar) -> hir.Scalar | None:
    """As one function of the value and the collection, where the value is of the members' type."""
    typ = hir.type_of(right)
    op = _QUANTIFIED.get(node.op)
    if op is None or typ.element is None or typ.kind not in ("array", "list"):
        return None
    value = try_cast(x.ctx, left, typ.element.base(), "implicit")
    if value is None:
        return None
    id = f"{'all' if node.all else 'any'}_{op}{'_list' if typ.kind == 'list' else ''}"
    return hir.Call(FUNCTIONS[id].bind((typ.element, typ)).id, (value, right), BOOL)


expr.register(ast.Subquery, _subquery)
expr.register(ast.InQuery, _in_query)
expr.register(ast.Quantified, _quantified)
