"""Queries: WITH, set operations, SELECT, FROM."""

from __future__ import annotations

from adapter.sql import ast
from adapter.sql.parse import expressions
from adapter.sql.parse.calls import parse_call, parse_window
from adapter.sql.parse.cursor import NOT_TABLE_ALIAS, Cursor
from adapter.sql.parse.expressions import parse_expr, parse_exprs, parse_order_by, parse_select_item
from adapter.sql.parse.lexer import NUMBER, QUOTED, STRING, WORD
from adapter.sql.parse.types import parse_type
from mzlite.repr.errors import unsupported

QUERY_START = frozenset(("select", "with", "values", "table"))


def parse_query(c: Cursor) -> ast.Query:
    """[WITH …] body [ORDER BY] [LIMIT] [OFFSET]."""
    c.enter()
    pos = c.tok.start
    ctes: tuple[ast.Cte, ...] = ()
    recursion = None
    recursive = False
    if c.take("with"):
        if c.at_words("mutually", "recursive"):
            c.take("mutually", "recursive")
            recursion = _recursion(c, pos)
        else:
            recursive = c.take("recursive")
            ctes = _ctes(c)
    body = _set_expr(c, 0)
    order_by: tuple[ast.OrderItem, ...] = ()
    if c.take("order"):
        c.expect("by")
        order_by = parse_order_by(c)
    limit, with_ties, offset = _limits(c)
    if c.at("options") and c.ahead().kind == "(":
        _options(c)
    c.leave()
    return ast.Query(body, ctes, recursive, recursion, order_by, limit, with_ties, offset, pos)


def _limits(c: Cursor) -> tuple[ast.Expr | None, bool, ast.Expr | None]:
    limit: ast.Expr | None = None
    offset: ast.Expr | None = None
    with_ties = seen_limit = seen_offset = False
    while True:
        if c.at("limit"):
            if seen_limit:
                c.fail("multiple LIMIT/FETCH clauses not allowed")
            c.advance()
            seen_limit = True
            limit = None if c.take("all") else parse_expr(c)
        elif c.at("offset"):
            if seen_offset:
                c.fail("multiple OFFSET clauses not allowed")
            c.advance()
            seen_offset = True
            offset = parse_expr(c)
            c.take_any("row", "rows")
        elif c.at("fetch"):
            if seen_limit:
                c.fail("multiple LIMIT/FETCH clauses not allowed")
            c.advance()
            seen_limit = True
            c.expect_any("first", "next")
            limit = ast.Number("1", c.tok.start) if c.at("row", "rows") else parse_expr(c)
            c.expect_any("row", "rows")
            if not c.take("only"):
                c.expect("with", "ties")
                with_ties = True
        else:
            return limit, with_ties, offset


def _ctes(c: Cursor) -> tuple[ast.Cte, ...]:
    out: list[ast.Cte] = []
    while True:
        pos = c.tok.start
        name = c.name()
        columns = c.names() if c.tok.kind == "(" else ()
        c.expect("as")
        if c.at("materialized") or c.at_words("not", "materialized"):
            c.take("not")
            c.advance()
        c.expect_punct("(")
        out.append(ast.Cte(name, columns, parse_query(c), pos))
        c.expect_punct(")")
        if not c.take_punct(","):
            return tuple(out)


def _recursion(c: Cursor, pos: int) -> ast.Recursion:
    """After WITH MUTUALLY RECURSIVE."""
    options: list[tuple[str, str | None]] = []
    if c.tok.kind == "(":
        c.advance()
        while True:
            if c.take("recursion"):
                c.expect("limit")
                name = "recursion limit"
            else:
                word = c.take_any("return", "error")
                if word is None:
                    c.expected("one of RECURSION or RETURN or ERROR")
                c.expect("at", "recursion", "limit")
                name = f"{word} at recursion limit"
            c.take_op("=")
            options.append((name, _limit_value(c)))
            if not c.take_punct(","):
                break
        c.expect_punct(")")
    ctes: list[ast.RecursiveCte] = []
    while True:
        at = c.tok.start
        name = c.name()
        c.expect_punct("(")
        columns: list[tuple[str, ast.TypeName]] = []
        if c.tok.kind != ")":
            while True:
                column = c.name()
                columns.append((column, parse_type(c)))
                if not c.take_punct(","):
                    break
        c.expect_punct(")")
        c.expect("as")
        c.expect_punct("(")
        ctes.append(ast.RecursiveCte(name, tuple(columns), parse_query(c), at))
        c.expect_punct(")")
        if not c.take_punct(","):
            return ast.Recursion(tuple(ctes), tuple(options), pos)


def _limit_value(c: Cursor) -> str:
    """The number of a recursion limit; its mistakes have their own words."""
    what = "invalid RECURSION LIMIT"
    if c.tok.kind == ")" or c.tok.kind == ",":
        c.fail(f"{what}: must provide an unsigned integer value")
    if c.at_op("-"):
        c.fail(f"{what}: invalid unsigned numeric value: invalid digit found in string")
    if c.tok.kind not in (NUMBER, STRING):
        c.fail(f"{what}: cannot use value as number")
    return str(c.integer())


def _set_expr(c: Cursor, floor: int) -> ast.Body:
    """UNION and EXCEPT bind equally, INTERSECT tighter; left-associative."""
    c.enter()
    left = _body(c)
    links = 0
    while c.at("union", "except", "intersect"):
        precedence = 2 if c.tok.value == "intersect" else 1
        if precedence <= floor:
            break
        token = c.advance()
        every = c.take("all")
        if not every:
            c.take("distinct")
        right = _set_expr(c, precedence)
        left = ast.SetOp(token.value, every, left, right, token.start)
        links += 1
        if links > 1000:
            c.enter()
    c.depth -= max(0, links - 1000) + 1
    return left


def _body(c: Cursor) -> ast.Body:
    pos = c.tok.start
    if c.tok.kind == "(":
        c.advance()
        query = parse_query(c)
        c.expect_punct(")")
        return query
    if c.at("select"):
        return _select(c)
    if c.at("values"):
        c.advance()
        return _values(c, pos)
    if c.at("table"):
        c.advance()
        return ast.TableBody(c.qualified(), pos)
    if c.at("with"):
        return parse_query(c)
    if c.at("show"):
        from adapter.sql.parse.show import parse_show

        return ast.ShowBody(parse_show(c), pos)
    c.expected("SELECT, VALUES, or a subquery in the query body")


def _values(c: Cursor, pos: int) -> ast.Values:
    rows: list[tuple[ast.Expr, ...]] = []
    while True:
        c.expect_punct("(")
        rows.append(() if c.tok.kind == ")" else parse_exprs(c))
        c.expect_punct(")")
        if not c.take_punct(","):
            return ast.Values(tuple(rows), pos)


def _select(c: Cursor) -> ast.Select:
    pos = c.advance().start
    distinct: tuple[ast.Expr, ...] | None = None
    if c.at("all") and c.ahead().kind not in (",", "."):
        c.advance()
    elif c.take("distinct"):
        distinct = ()
        if c.at("on") and c.ahead().kind == "(":
            c.advance()
            c.advance()
            distinct = parse_exprs(c)
            c.expect_punct(")")
    items: list[ast.SelectItem] = []
    if not (
        c.at("from", "where", "group", "having", "order", "limit", "union", "except", "intersect")
        or c.tok.kind in (";", ")", "eof")
    ):
        items.append(parse_select_item(c))
        while c.take_punct(","):
            items.append(parse_select_item(c))
    from_: list[ast.TableExpr] = []
    if c.take("from"):
        from_.append(parse_table_expr(c))
        while c.take_punct(","):
            from_.append(parse_table_expr(c))
    where = parse_expr(c) if c.take("where") else None
    group_by: tuple[ast.Expr, ...] = ()
    grouped = False
    if c.take("group"):
        c.expect("by")
        grouped = True
        if c.at("all", "distinct") and c.ahead().kind not in (",", "."):
            c.advance()
        if c.at_words("grouping", "sets") or (c.at("rollup", "cube") and c.ahead().kind == "("):
            raise unsupported(f"GROUP BY {c.tok.value.upper()}", position=c.tok.start + 1)
        group_by = parse_exprs(c)
    having = parse_expr(c) if c.take("having") else None
    windows: list[tuple[str, ast.WindowSpec]] = []
    if c.at("window") and c.ahead().kind in (WORD, QUOTED) and c.ahead(2).value == "as":
        c.advance()
        while True:
            name = c.name()
            c.expect("as")
            windows.append((name, parse_window(c, c.tok.start)))
            if not c.take_punct(","):
                break
    qualify = parse_expr(c) if c.take("qualify") else None
    options = _options(c) if c.at("options") and c.ahead().kind == "(" else ()
    return ast.Select(
        tuple(items),
        tuple(from_),
        where,
        group_by,
        grouped,
        having,
        qualify,
        distinct,
        tuple(windows),
        options,
        pos,
    )


def _options(c: Cursor) -> tuple[tuple[str, str], ...]:
    """OPTIONS (AGGREGATE INPUT GROUP SIZE = 100, …)"""
    c.advance()
    c.expect_punct("(")
    out: list[tuple[str, str]] = []
    while True:
        words: list[str] = []
        while c.tok.kind == WORD:
            words.append(c.advance().value)
        name = " ".join(words)
        if name not in (
            "expected group size",
            "aggregate input group size",
            "distinct on input group size",
            "limit input group size",
        ):
            c.expected("a SELECT option")
        c.take_op("=")
        if c.tok.kind not in (NUMBER, STRING):
            c.expected("option value")
        out.append((name, c.advance().value))
        if not c.take_punct(","):
            break
    c.expect_punct(")")
    return tuple(out)


# ---- FROM


def parse_table_expr(c: Cursor) -> ast.TableExpr:
    """One FROM item with its joins."""
    c.enter()
    left = _table_factor(c)
    links = 0
    while True:
        pos = c.tok.start
        natural = False
        if c.take("cross"):
            c.expect("join")
            left = ast.JoinExpr("cross", left, _table_factor(c), pos=pos)
            continue
        if c.at("natural"):
            c.advance()
            natural = True
        kind = "inner"
        if c.at("inner", "left", "right", "full"):
            if not natural and not (c.ahead().kind == WORD and c.ahead().value in ("join", "outer")):
                break
            kind = c.advance().value
            if kind != "inner":
                c.take("outer")
            c.expect("join")
        elif natural:
            c.expect("join")
        elif not c.take("join"):
            break
        right = _table_factor(c)
        on: ast.Expr | None = None
        using: tuple[str, ...] | None = None
        using_alias = None
        if not natural:
            # a JOIN b JOIN c ON … ON …: the inner join closes first.
            while c.at("join", "inner", "left", "right", "full", "cross", "natural"):
                nested = _join_tail(c, right)
                if nested is right:
                    break
                right = nested
            if c.take("on"):
                on = parse_expr(c)
            elif c.take("using"):
                using = c.names()
                if c.take("as"):
                    using_alias = c.name()
            else:
                c.expected("ON, or USING after JOIN")
        left = ast.JoinExpr(kind, left, right, on, using, natural, using_alias, None, pos)
        links += 1
        if links > 500:
            c.enter()
    c.depth -= max(0, links - 500) + 1
    return left


def _join_tail(c: Cursor, left: ast.TableExpr) -> ast.TableExpr:
    """One join after `left`, as the right operand of an outer join whose ON comes later."""
    pos = c.tok.start
    if c.take("cross"):
        c.expect("join")
        return ast.JoinExpr("cross", left, _table_factor(c), pos=pos)
    natural = c.take("natural")
    kind = c.take_any("inner", "left", "right", "full") or "inner"
    c.take("outer")
    c.expect("join")
    right = _table_factor(c)
    if natural:
        return ast.JoinExpr(kind, left, right, natural=True, pos=pos)
    while c.at("join", "inner", "left", "right", "full", "cross", "natural"):
        right = _join_tail(c, right)
    if c.take("on"):
        return ast.JoinExpr(kind, left, right, parse_expr(c), pos=pos)
    if c.take("using"):
        using = c.names()
        return ast.JoinExpr(kind, left, right, None, using, pos=pos)
    c.expected("ON, or USING after JOIN")


def _alias(c: Cursor) -> ast.Alias | None:
    if c.at("as") and not c.at_words("as", "of"):
        c.advance()
        name = c.label() if c.tok.kind == WORD else c.name()
    elif c.at_words("as", "of") and c.ahead(2).kind in (",", ")", "eof"):
        c.advance()
        name = c.label()
    elif c.tok.kind == QUOTED or (
        c.tok.kind == WORD
        and c.tok.value not in NOT_TABLE_ALIAS
        and not c.at_words("up", "to")
        and not c.at_words("with", "ordinality")
        and not (c.tok.value in ("envelope", "within") and c.ahead().kind == WORD)
    ):
        name = c.name()
    else:
        return None
    columns: tuple[str, ...] = ()
    if c.tok.kind == "(":
        columns = c.names()
    return ast.Alias(name, columns)


def _table_factor(c: Cursor) -> ast.TableExpr:
    pos = c.tok.start
    lateral = c.at("lateral") and c.ahead().kind in ("(", WORD, QUOTED)
    if lateral:
        c.advance()
        if c.tok.kind == "(":
            c.advance()
            query = parse_query(c)
            c.expect_punct(")")
            return ast.Derived(query, _alias(c), True, pos)
    if c.at_words("rows", "from") and c.ahead(2).kind == "(":
        c.advance()
        c.advance()
        c.advance()
        functions: list[ast.FuncCall] = []
        while True:
            functions.append(_function(c))
            if not c.take_punct(","):
                break
        c.expect_punct(")")
        ordinality, alias = _ordinality(c)
        return ast.TableFunction(tuple(functions), True, ordinality, alias, lateral, pos)
    if c.tok.kind == "(":
        return _parenthesised(c, pos)
    if c.tok.kind == "[":
        c.advance()
        id = c.name()
        c.expect("as")
        parts = c.qualified()
        if c.take("version"):
            c.integer()
        c.expect_punct("]")
        return ast.TableRef(parts, _alias(c), id, pos)
    if c.tok.kind == STRING:
        c.expected("identifier")
    parts = c.qualified()
    if c.tok.kind == "(":
        call = parse_call(c, parts, pos)
        assert isinstance(call, ast.FuncCall)
        ordinality, alias = _ordinality(c)
        return ast.TableFunction((call,), False, ordinality, alias, lateral, pos)
    if lateral:
        c.expected("subquery or table function after LATERAL")
    c.take_op("*")
    return ast.TableRef(parts, _alias(c), None, pos)


def _function(c: Cursor) -> ast.FuncCall:
    expr = expressions.parse_expr(c, expressions.UNARY)
    if not isinstance(expr, ast.FuncCall):
        c.expected("table function")
    return expr


def _ordinality(c: Cursor) -> tuple[bool, ast.Alias | None]:
    ordinality = c.take("with", "ordinality")
    alias = _alias(c)
    return ordinality or c.take("with", "ordinality"), alias


def _parenthesised(c: Cursor, pos: int) -> ast.TableExpr:
    """A subquery, a SHOW, or a join in parentheses."""
    n = 1
    while c.ahead(n).kind == "(":
        n += 1
    first = c.ahead(n)
    if first.kind == WORD and first.value == "show" and n == 1:
        from adapter.sql.parse.show import parse_show

        c.advance()
        statement = parse_show(c)
        c.expect_punct(")")
        return ast.ShowDerived(statement, _alias(c), pos)
    if first.kind == WORD and first.value in QUERY_START:
        start, depth = c.i, c.depth
        c.advance()
        if n == 1:
            query: ast.Query | None = parse_query(c)
        else:
            query = expressions.try_query(c)
        if query is not None:
            c.expect_punct(")")
            return ast.Derived(query, _alias(c), False, pos)
        c.seek(start)
        c.depth = depth
    c.advance()
    inner = parse_table_expr(c)
    c.expect_punct(")")
    alias = _alias(c)
    if alias is not None and isinstance(inner, ast.JoinExpr):
        return ast.JoinExpr(
            inner.kind,
            inner.left,
            inner.right,
            inner.on,
            inner.using,
            inner.natural,
            inner.using_alias,
            alias,
            inner.pos,
        )
    return inner
