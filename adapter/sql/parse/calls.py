"""Function calls with their modifiers, and the forms with a grammar of their own (CAST, CASE, EXTRACT, ARRAY[…], …).

`WORDS` maps a word to its rule; a rule returns None when the word is an ordinary name here (a column called `position`).
"""

from __future__ import annotations

from collections.abc import Callable

from adapter.sql import ast
from adapter.sql.parse import expressions
from adapter.sql.parse.cursor import Cursor
from adapter.sql.parse.lexer import NUMBER, PARAM, QUOTED, STRING, WORD
from adapter.sql.parse.types import parse_type
from mzlite.repr.errors import SqlError


def parse_call(c: Cursor, name: tuple[str, ...], pos: int) -> ast.Expr:
    """f(…) from its parenthesis on."""
    c.expect_punct("(")
    star = distinct = variadic = False
    args: tuple[ast.Expr, ...] = ()
    order_by: tuple[ast.OrderItem, ...] = ()
    if c.take_op("*"):
        star = True
    elif c.tok.kind != ")":
        distinct = c.take("distinct")
        if distinct and c.at_op("*"):
            c.fail("DISTINCT * not supported as function args")
        if not distinct:
            c.take("all")
        if c.tok.kind != ")":
            variadic = c.at("variadic") and c.ahead().kind not in (")", ",") and c.take("variadic")
            args = _arguments(c)
            if variadic or c.at("variadic"):
                variadic = True
        if c.take("order"):
            c.expect("by")
            order_by = expressions.parse_order_by(c)
    c.expect_punct(")")
    return _modifiers(c, ast.FuncCall(name, args, star, distinct, order_by, variadic=variadic, pos=pos))


def _arguments(c: Cursor) -> tuple[ast.Expr, ...]:
    args: list[ast.Expr] = []
    while True:
        query = _bare_query(c)
        args.append(query if query is not None else expressions.parse_expr(c))
        if not c.take_punct(","):
            return tuple(args)


def _bare_query(c: Cursor) -> ast.Expr | None:
    """f(SELECT …): a subquery without parentheses of its own, which Materialize allows."""
    if not c.at("select", "with"):
        return None
    pos = c.tok.start
    query = expressions.try_query(c)
    return None if query is None else ast.Subquery(query, "scalar", pos)


def _modifiers(c: Cursor, call: ast.FuncCall) -> ast.Expr:
    """WITHIN GROUP, FILTER, IGNORE NULLS, OVER."""
    order_by = call.order_by
    within = False
    if c.at_words("within", "group"):
        c.take("within", "group")
        c.expect_punct("(")
        c.expect("order", "by")
        order_by = expressions.parse_order_by(c)
        c.expect_punct(")")
        within = True
    filter_ = None
    if c.at("filter") and c.ahead().kind == "(":
        c.advance()
        c.expect_punct("(")
        c.expect("where")
        filter_ = expressions.parse_expr(c)
        c.expect_punct(")")
    nulls = None
    if c.at_words("ignore", "nulls") or c.at_words("respect", "nulls"):
        nulls = c.advance().value
        c.advance()
        if c.at_words("ignore", "nulls") or c.at_words("respect", "nulls"):
            c.fail("Both IGNORE NULLS and RESPECT NULLS were given.")
    over = None
    if c.at("over"):
        pos = c.advance().start
        over = parse_window(c, pos) if c.tok.kind == "(" else ast.WindowSpec(name=c.name(), pos=pos)
    if within or filter_ is not None or nulls is not None or over is not None:
        return ast.FuncCall(
            call.name,
            call.args,
            call.star,
            call.distinct,
            order_by,
            within,
            filter_,
            over,
            nulls,
            call.syntax,
            call.variadic,
            call.pos,
        )
    return call


def parse_window(c: Cursor, pos: int) -> ast.WindowSpec:
    """( [name] [PARTITION BY …] [ORDER BY …] [frame] )"""
    c.expect_punct("(")
    name = None
    if c.at_name() and not c.at("partition", "order", "rows", "range", "groups"):
        name = c.name()
    partition_by: tuple[ast.Expr, ...] = ()
    if c.take("partition"):
        c.expect("by")
        partition_by = expressions.parse_exprs(c)
    order_by: tuple[ast.OrderItem, ...] = ()
    if c.take("order"):
        c.expect("by")
        order_by = expressions.parse_order_by(c)
    frame = None
    units = c.take_any("rows", "range", "groups")
    if units is not None:
        if c.take("between"):
            start = _bound(c, units)
            c.expect("and")
            end = _bound(c, units)
        else:
            start = _bound(c, units)
            end = ast.FrameBound("current_row")
        exclude = "no_others"
        if c.take("exclude"):
            if c.take("no", "others"):
                pass
            elif c.take("current"):
                c.expect("row")
                exclude = "current_row"
            else:
                exclude = c.expect_any("group", "ties")
        frame = ast.FrameSpec(units, start, end, exclude)
    c.expect_punct(")")
    return ast.WindowSpec(name, partition_by, order_by, frame, pos)


MAX_OFFSET = 1_000_000
MAX_BRANCHES = 1_000


def _bound(c: Cursor, units: str) -> ast.FrameBound:
    if c.take("current"):
        c.expect("row")
        return ast.FrameBound("current_row")
    if c.take("unbounded"):
        return ast.FrameBound("unbounded_" + c.expect_any("preceding", "following"))
    if units != "range" and c.tok.kind not in (NUMBER, PARAM, "("):
        c.expected("literal unsigned integer")
    offset = expressions.parse_expr(c)
    if units != "range" and isinstance(offset, ast.Number) and offset.text.isdigit() and int(offset.text) > MAX_OFFSET:
        c.fail(f"Window frame offsets greater than {MAX_OFFSET} are currently not supported", offset.pos)
    kind = c.take_any("preceding", "following")
    if kind is None:
        c.expected("PRECEDING or FOLLOWING")
    return ast.FrameBound(kind, offset)


# ---- forms with a grammar of their own


def _call_only(rule: Callable[[Cursor, int], ast.Expr | None]) -> Callable[[Cursor], ast.Expr | None]:
    """A form that needs a parenthesis right after its word."""

    def parse(c: Cursor) -> ast.Expr | None:
        if c.ahead().kind != "(":
            return None
        start = c.i
        pos = c.advance().start
        node = rule(c, pos)
        if node is None:
            c.seek(start)
        return node

    return parse


def _cast(c: Cursor, pos: int) -> ast.Expr:
    c.expect_punct("(")
    operand = expressions.parse_expr(c)
    c.expect("as")
    typ = parse_type(c)
    c.expect_punct(")")
    return ast.Cast(operand, typ, pos)


def _case(c: Cursor) -> ast.Expr | None:
    pos = c.advance().start
    operand = None if c.at("when") else expressions.parse_expr(c)
    whens: list[tuple[ast.Expr, ast.Expr]] = []
    c.expect("when")
    while True:
        condition = expressions.parse_expr(c)
        c.expect("then")
        whens.append((condition, expressions.parse_expr(c)))
        if not c.take("when"):
            break
        if len(whens) > MAX_BRANCHES:
            raise SqlError("54001", f"a CASE cannot have more than {MAX_BRANCHES} branches", position=pos + 1)
    default = expressions.parse_expr(c) if c.take("else") else None
    c.expect("end")
    return ast.Case(operand, tuple(whens), default, pos)


def _extract(c: Cursor, pos: int) -> ast.Expr | None:
    c.expect_punct("(")
    if c.tok.kind not in (WORD, QUOTED, STRING) or not (c.ahead().kind == WORD and c.ahead().value == "from"):
        return None
    field = c.advance()
    c.advance()
    operand = expressions.parse_expr(c)
    c.expect_punct(")")
    return ast.FuncCall(("extract",), (ast.String(field.value, field.start), operand), syntax="extract", pos=pos)


def _trim(c: Cursor, pos: int) -> ast.Expr | None:
    c.expect_punct("(")
    side = c.take_any("leading", "trailing", "both") if c.ahead().kind != "(" else None
    name = {"leading": "ltrim", "trailing": "rtrim"}.get(side or "both", "btrim")
    if c.take("from"):
        args: tuple[ast.Expr, ...] = expressions.parse_exprs(c)
    else:
        first = expressions.parse_expr(c)
        if c.take("from"):
            rest = expressions.parse_exprs(c)
            args = (*rest, first)
        elif c.take_punct(","):
            args = (first, *expressions.parse_exprs(c))
        else:
            args = (first,)
    c.expect_punct(")")
    return ast.FuncCall((name,), args, syntax="trim", pos=pos)


def _substring(c: Cursor, pos: int) -> ast.Expr | None:
    c.expect_punct("(")
    if c.tok.kind == ")":
        return None
    args = [expressions.parse_expr(c)]
    if c.at("from", "for", "similar"):
        if c.take("from"):
            args.append(expressions.parse_expr(c))
            if c.take("for"):
                args.append(expressions.parse_expr(c))
        else:
            c.expect("for")
            args += [ast.Number("1", pos), expressions.parse_expr(c)]
    else:
        while c.take_punct(","):
            args.append(expressions.parse_expr(c))
    c.expect_punct(")")
    return ast.FuncCall(("substring",), tuple(args), syntax="substring", pos=pos)


def _position(c: Cursor, pos: int) -> ast.Expr | None:
    c.expect_punct("(")
    if c.tok.kind == ")":
        return None
    needle = expressions.parse_expr(c, expressions.LIKE)
    if not c.at("in"):
        if c.tok.kind == ",":
            c.expected("IN")
        c.expected("IN")
    c.advance()
    haystack = expressions.parse_expr(c)
    c.expect_punct(")")
    return ast.FuncCall(("position",), (needle, haystack), syntax="position", pos=pos)


def _overlay(c: Cursor, pos: int) -> ast.Expr | None:
    c.expect_punct("(")
    if c.tok.kind == ")":
        return None
    args = [expressions.parse_expr(c)]
    if c.take("placing"):
        args.append(expressions.parse_expr(c))
        c.expect("from")
        args.append(expressions.parse_expr(c))
        if c.take("for"):
            args.append(expressions.parse_expr(c))
    else:
        while c.take_punct(","):
            args.append(expressions.parse_expr(c))
    c.expect_punct(")")
    return ast.FuncCall(("overlay",), tuple(args), syntax="overlay", pos=pos)


def _normalize(c: Cursor, pos: int) -> ast.Expr | None:
    c.expect_punct("(")
    if c.tok.kind == ")":
        return None
    args: list[ast.Expr] = [expressions.parse_expr(c)]
    if c.take_punct(","):
        token = c.tok
        if token.kind == WORD and token.value in ("nfc", "nfd", "nfkc", "nfkd"):
            c.advance()
            args.append(ast.String(token.value.upper(), token.start))
        else:
            args.append(expressions.parse_expr(c))
    c.expect_punct(")")
    return ast.FuncCall(("normalize",), tuple(args), pos=pos)


def _row(c: Cursor, pos: int) -> ast.Expr:
    c.expect_punct("(")
    items = () if c.tok.kind == ")" else expressions.parse_exprs(c)
    c.expect_punct(")")
    return ast.Row(items, True, pos)


def _exists(c: Cursor, pos: int) -> ast.Expr | None:
    c.expect_punct("(")
    query = expressions.try_query(c)
    if query is None:
        return None
    c.expect_punct(")")
    return ast.Subquery(query, "exists", pos)


def _collection(kind: str) -> Callable[[Cursor], ast.Expr | None]:
    """ARRAY[…], ARRAY(query), LIST[…], LIST(query)."""

    def parse(c: Cursor) -> ast.Expr | None:
        after = c.ahead().kind
        start = c.i
        pos = c.tok.start
        if after == "[":
            c.advance()
            return _bracketed(c, kind, pos)
        if after == "(":
            c.advance()
            c.advance()
            query = expressions.try_query(c)
            if query is not None:
                c.expect_punct(")")
                return ast.Subquery(query, kind, pos)
            c.seek(start)
        return None

    return parse


def _bracketed(c: Cursor, kind: str, pos: int) -> ast.Expr:
    """[a, b] where [..] inside is a nested literal."""
    c.enter()
    c.expect_punct("[")
    items: list[ast.Expr] = []
    if c.tok.kind != "]":
        while True:
            if c.tok.kind == "[":
                items.append(_bracketed(c, kind, c.tok.start))
            else:
                items.append(expressions.parse_expr(c))
            if not c.take_punct(","):
                break
    c.expect_punct("]")
    c.leave()
    return ast.ArrayLit(tuple(items), kind, pos)


def _map(c: Cursor) -> ast.Expr | None:
    after = c.ahead().kind
    start = c.i
    pos = c.tok.start
    if after == "(":
        c.advance()
        c.advance()
        query = expressions.try_query(c)
        if query is None:
            c.seek(start)
            return None
        c.expect_punct(")")
        return ast.Subquery(query, "map", pos)
    if after != "[":
        return None
    c.advance()
    return _map_entries(c, pos)


def _map_entries(c: Cursor, pos: int) -> ast.Expr:
    c.enter()
    c.expect_punct("[")
    entries: list[tuple[ast.Expr, ast.Expr]] = []
    if c.tok.kind != "]":
        while True:
            key = expressions.parse_expr(c)
            c.expect_op("=>")
            value = _map_entries(c, c.tok.start) if c.tok.kind == "[" else expressions.parse_expr(c)
            entries.append((key, value))
            if not c.take_punct(","):
                break
    c.expect_punct("]")
    c.leave()
    return ast.MapLit(tuple(entries), pos)


def _constant(name: str) -> Callable[[Cursor], ast.Expr | None]:
    """A function called without parentheses (CURRENT_DATE); an optional precision is ignored."""

    def parse(c: Cursor) -> ast.Expr | None:
        if c.ahead().kind == ".":
            return None
        if c.ahead().kind == "(":
            if (
                name in ("current_timestamp", "localtimestamp", "current_time", "localtime")
                and c.ahead(2).kind == "number"
            ):
                pos = c.advance().start
                c.advance()
                c.integer()
                c.expect_punct(")")
                return ast.FuncCall((name,), pos=pos)
            return None
        return ast.FuncCall((name,), syntax="constant", pos=c.advance().start)

    return parse


WORDS: dict[str, Callable[[Cursor], ast.Expr | None]] = {
    "cast": _call_only(_cast),
    "case": _case,
    "extract": _call_only(_extract),
    "trim": _call_only(_trim),
    "substring": _call_only(_substring),
    "position": _call_only(_position),
    "overlay": _call_only(_overlay),
    "normalize": _call_only(_normalize),
    "row": _call_only(_row),
    "exists": _call_only(_exists),
    "array": _collection("array"),
    "list": _collection("list"),
    "map": _map,
} | {
    name: _constant(name)
    for name in [
        "current_date",
        "current_time",
        "current_timestamp",
        "localtime",
        "localtimestamp",
        "current_user",
        "session_user",
        "user",
        "current_role",
        "current_catalog",
        "current_schema",
    ]
}
