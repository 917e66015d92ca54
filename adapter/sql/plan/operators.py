"""Operators: arithmetic, comparison (rows included), LIKE, BETWEEN, IN (…), IS, CASE, AND/OR/NOT."""

from __future__ import annotations

from adapter.sql import ast, hir
from adapter.sql.plan import expr
from adapter.sql.plan.coerce import FALSE, NULL, cast, is_unknown, record_call, settle, to_bool, to_common
from adapter.sql.plan.expr import ExprContext
from adapter.sql.plan.overload import resolve_call, resolve_operator
from mzlite.expr.functions import FUNCTIONS
from mzlite.expr.scalar import Literal
from mzlite.repr.errors import SqlError
from mzlite.repr.types import BOOL, TEXT

_COMPARISONS = frozenset(("=", "<>", "<", "<=", ">", ">="))


def conjunction(parts: tuple[hir.Scalar, ...]) -> hir.Scalar:
    return parts[0] if len(parts) == 1 else hir.Call("and", parts, BOOL)


def disjunction(parts: tuple[hir.Scalar, ...]) -> hir.Scalar:
    return parts[0] if len(parts) == 1 else hir.Call("or", parts, BOOL)


def negate(e: hir.Scalar) -> hir.Scalar:
    return hir.Call("not", (e,), BOOL)


def is_null(e: hir.Scalar) -> hir.Scalar:
    entry = FUNCTIONS["is_null"].bind([hir.type_of(e)])
    return hir.Call(entry.id, (e,), BOOL)


def _and(x: ExprContext, node: ast.And) -> hir.Scalar:
    return hir.Call("and", tuple(to_bool(x.ctx, expr.plan_expr(x, o), "AND argument") for o in node.operands), BOOL)


def _or(x: ExprContext, node: ast.Or) -> hir.Scalar:
    return hir.Call("or", tuple(to_bool(x.ctx, expr.plan_expr(x, o), "OR argument") for o in node.operands), BOOL)


def _not(x: ExprContext, node: ast.Not) -> hir.Scalar:
    return negate(to_bool(x.ctx, expr.plan_expr(x, node.operand), "NOT argument"))


def _unary(x: ExprContext, node: ast.Unary) -> hir.Scalar:
    operand = expr.plan_expr(x, node.operand)
    if node.op == "+" and hir.type_of(operand).kind != "unknown" and not FUNCTIONS.by_name("+"):
        return operand
    if node.op == "+" and not any(len(e.params) == 1 for e in FUNCTIONS.by_name("+")):
        return settle(x.ctx, operand)
    return resolve_operator(x.ctx, node.op, (operand,), node.pos)


def _binary(x: ExprContext, node: ast.Binary) -> hir.Scalar:
    op = node.op
    if op in _COMPARISONS and isinstance(node.left, ast.Row) and isinstance(node.right, ast.Row):
        return _row_comparison(x, node)
    if op in _COMPARISONS and isinstance(node.left, ast.Row) and isinstance(node.right, ast.Subquery):
        return _row_against_query(x, node)
    left = expr.plan_expr(x, node.left)
    right = expr.plan_expr(x, node.right)
    return resolve_operator(x.ctx, op, (left, right), node.pos)


def _row_comparison(x: ExprContext, node: ast.Binary) -> hir.Scalar:
    assert isinstance(node.left, ast.Row) and isinstance(node.right, ast.Row)
    left = [expr.plan_expr(x, i) for i in node.left.items]
    right = [expr.plan_expr(x, i) for i in node.right.items]
    return compare_rows(x, node.op, left, right, node.pos)


def _row_against_query(x: ExprContext, node: ast.Binary) -> hir.Scalar:
    """(a, b) = (SELECT c, d …): the query's row, as a record, field by field."""
    from adapter.sql.plan.collections import record_fields
    from adapter.sql.plan.query import plan_query

    assert isinstance(node.left, ast.Row) and isinstance(node.right, ast.Subquery)
    left = [expr.plan_expr(x, i) for i in node.left.items]
    planned = plan_query(x.ctx, node.right.query, x.scopes)
    width = len(planned.project)
    if node.right.kind != "scalar" or width != len(left):
        raise SqlError(
            "42601", f"Expected subselect to return {len(left)} columns, got {width} columns", position=node.pos + 1
        )
    columns = [hir.Column(0, i, typ) for i, typ in enumerate(planned.types)]
    record = record_call(columns, planned.names)
    rows = hir.Project(hir.Map(planned.relation(), (record,)), (width,))
    query = hir.ScalarQuery(rows, hir.type_of(record))
    return compare_rows(x, node.op, left, [field for _, field in record_fields(query)], node.pos)


def compare_rows(x: ExprContext, op: str, left: list[hir.Scalar], right: list[hir.Scalar], pos: int) -> hir.Scalar:
    """(a, b) op (c, d), column by column."""
    if len(left) != len(right):
        raise SqlError("42601", "unequal number of entries in row expressions", position=pos + 1)
    if not left:
        raise SqlError("0A000", "cannot compare rows of zero length", position=pos + 1)
    if op in ("=", "<>"):
        parts = tuple(resolve_operator(x.ctx, op, pair, pos) for pair in zip(left, right))
        return conjunction(parts) if op == "=" else disjunction(parts)
    strict = op[0]
    last = resolve_operator(x.ctx, op, (left[-1], right[-1]), pos)
    result = last
    for a, b in zip(left[-2::-1], right[-2::-1]):
        less = resolve_operator(x.ctx, strict, (a, b), pos)
        equal = resolve_operator(x.ctx, "=", (a, b), pos)
        result = disjunction((less, conjunction((equal, result))))
    return result


def _is(x: ExprContext, node: ast.Is) -> hir.Scalar:
    operand = expr.plan_expr(x, node.operand)
    if node.what == "null":
        e = is_null(settle(x.ctx, operand))
    elif node.what == "unknown":
        e = is_null(to_bool(x.ctx, operand, f"IS {'NOT ' if node.negated else ''}UNKNOWN clause"))
    else:
        word = f"IS {'NOT ' if node.negated else ''}{node.what.upper()}"
        e = hir.Call(f"is_{node.what}", (to_bool(x.ctx, operand, f"{word} clause"),), BOOL)
    return negate(e) if node.negated else e


def _is_distinct(x: ExprContext, node: ast.IsDistinct) -> hir.Scalar:
    left = expr.plan_expr(x, node.left)
    right = expr.plan_expr(x, node.right)
    same = not_distinct(x, left, right, node.pos)
    return same if node.negated else negate(same)


def not_distinct(x: ExprContext, left: hir.Scalar, right: hir.Scalar, pos: int) -> hir.Scalar:
    """a IS NOT DISTINCT FROM b: never NULL."""
    equal = resolve_operator(x.ctx, "=", (left, right), pos)
    assert isinstance(equal, hir.Call)
    a, b = equal.args
    return hir.If(is_null(a), is_null(b), hir.If(is_null(b), FALSE, equal))


def _like(x: ExprContext, node: ast.Like) -> hir.Scalar:
    if node.op == "similar":
        raise SqlError("0A000", "SIMILAR TO not yet supported", position=node.pos + 1)
    operand = expr.plan_expr(x, node.operand)
    pattern = expr.plan_expr(x, node.pattern)
    if node.escape is not None:
        escape = expr.plan_expr(x, node.escape)
        entry, args = resolve_call(x.ctx, FUNCTIONS.by_name("like_escape"), (pattern, escape), "like_escape", node.pos)
        pattern = hir.Call(entry.id, args, TEXT)
    op = ("!" if node.negated else "") + ("~~" if node.op == "like" else "~~*")
    return resolve_operator(x.ctx, op, (operand, pattern), node.pos)


def _between(x: ExprContext, node: ast.Between) -> hir.Scalar:
    operand = expr.plan_expr(x, node.operand)
    low = expr.plan_expr(x, node.low)
    high = expr.plan_expr(x, node.high)

    def inside(low: hir.Scalar, high: hir.Scalar) -> hir.Scalar:
        return conjunction(
            (
                resolve_operator(x.ctx, ">=", (operand, low), node.pos),
                resolve_operator(x.ctx, "<=", (operand, high), node.pos),
            )
        )

    result = inside(low, high)
    if node.symmetric:
        result = disjunction((result, inside(high, low)))
    return negate(result) if node.negated else result


def _in_list(x: ExprContext, node: ast.InList) -> hir.Scalar:
    """x IN (a, b): x = a OR x = b."""
    if isinstance(node.operand, ast.Row):
        left = [expr.plan_expr(x, i) for i in node.operand.items]
        parts = []
        for item in node.items:
            if not isinstance(item, ast.Row):
                whole = expr.plan_expr(x, node.operand)
                parts.append(resolve_operator(x.ctx, "=", (whole, expr.plan_expr(x, item)), node.pos))
                continue
            parts.append(compare_rows(x, "=", left, [expr.plan_expr(x, i) for i in item.items], node.pos))
    else:
        operand = expr.plan_expr(x, node.operand)
        items = [expr.plan_expr(x, i) for i in node.items]
        if is_unknown(operand) or any(is_unknown(i) for i in items):
            # Untyped members take the type of the typed ones.
            typed = [e for e in (operand, *items) if not is_unknown(e)]
            if typed and len({hir.type_of(e).base() for e in typed}) == 1:
                typ = hir.type_of(typed[0]).base()
                operand = cast(x.ctx, operand, typ, "implicit") if is_unknown(operand) else operand
                items = [cast(x.ctx, i, typ, "implicit") if is_unknown(i) else i for i in items]
        parts = [resolve_operator(x.ctx, "=", (operand, item), node.pos) for item in items]
    result = disjunction(tuple(parts))
    return negate(result) if node.negated else result


def _case(x: ExprContext, node: ast.Case) -> hir.Scalar:
    inner = x.within(x.clause, tables=None) if x.tables is not None else x
    if x.tables is not None:
        inner = x.within("CASE", tables=None)
    operand = None if node.operand is None else expr.plan_expr(inner, node.operand)
    conditions: list[hir.Scalar] = []
    results: list[hir.Scalar] = []
    for when, then in node.whens:
        condition = expr.plan_expr(inner, when)
        if operand is not None:
            condition = resolve_operator(x.ctx, "=", (operand, condition), node.pos)
        conditions.append(to_bool(x.ctx, condition, "CASE expression"))
        results.append(expr.plan_expr(inner, then))
    results.append(NULL if node.default is None else expr.plan_expr(inner, node.default))
    if not all(is_unknown(r) for r in results):
        results, _ = to_common(x.ctx, results, "CASE")
    else:
        results = [settle(x.ctx, r) for r in results]
    result = results[-1]
    for condition, value in zip(reversed(conditions), reversed(results[:-1])):
        result = hir.If(condition, value, result)
    return result


def null_literal_like(e: hir.Scalar) -> Literal:
    return Literal(None, hir.type_of(e))


expr.register(ast.And, _and)
expr.register(ast.Or, _or)
expr.register(ast.Not, _not)
expr.register(ast.Unary, _unary)
expr.register(ast.Binary, _binary)
expr.register(ast.Is, _is)
expr.register(ast.IsDistinct, _is_distinct)
expr.register(ast.Like, _like)
expr.register(ast.Between, _between)
expr.register(ast.InList, _in_list)
expr.register(ast.Case, _case)
