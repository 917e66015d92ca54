"""Expressions: operator precedence by climbing, PostgreSQL's table (lowest first).

    OR  AND  NOT  IS  comparison  LIKE/IN/BETWEEN  other operators  + -  * / %  ^  COLLATE/AT  unary + -  [] :: .

Chains of AND and of OR become one node, so that long conditions are flat.
"""

from __future__ import annotations

from collections.abc import Callable

from adapter.sql import ast
from adapter.sql.parse import calls
from adapter.sql.parse.cursor import MAX_DEPTH, NOT_COLUMN_ALIAS, RESERVED, Cursor
from adapter.sql.parse.lexer import NUMBER, OP, QUOTED, STRING, WORD
from adapter.sql.parse.types import parse_interval_fields, parse_type
from mzlite.repr.errors import SqlError, unsupported

OR, AND, NOT, IS, CMP, LIKE, OTHER, PLUS, TIMES, POWER, COLLATE, UNARY, POSTFIX = range(1, 14)
_COMPARISONS = frozenset(("<", ">", "=", "<=", ">=", "<>"))
QUERY_START = frozenset(("select", "with", "values", "table"))


def parse_expr(c: Cursor, floor: int = 0) -> ast.Expr:
    """An expression of operators binding tighter than `floor`."""
    token = c.tok
    if token.kind in (NUMBER, STRING) and c.tokens[c.i + 1].kind in (",", ")"):
        c.advance()  # the bulk of every VALUES list
        return ast.Number(token.value, token.start) if token.kind == NUMBER else ast.String(token.value, token.start)
    c.enter()
    left = _prefix(c)
    chain = 0
    while True:
        precedence = _infix_precedence(c)
        if precedence <= floor:
            break
        left = _infix(c, left, precedence)
        chain += 1
        if chain > 8:  # each further link makes the left-deep tree deeper
            c.enter()
    c.depth -= max(0, chain - 8) + 1
    return left


def parse_exprs(c: Cursor) -> tuple[ast.Expr, ...]:
    out = [parse_expr(c)]
    while c.take_punct(","):
        out.append(parse_expr(c))
    return tuple(out)


def _infix_precedence(c: Cursor) -> int:
    token = c.tok
    kind = token.kind
    if kind == WORD:
        match token.value:
            case "or":
                return OR
            case "and":
                return AND
            case "is" | "isnull" | "notnull":
                return IS
            case "in" | "like" | "ilike" | "between":
                return LIKE
            case "similar":
                return LIKE if c.at_words("similar", "to") else 0
            case "not":
                after = c.ahead()
                return (
                    LIKE if after.kind == WORD and after.value in ("in", "like", "ilike", "between", "similar") else 0
                )
            case "collate":
                return COLLATE
            case "at":
                return COLLATE if c.at_words("at", "time", "zone") else 0
            case "operator":
                return OTHER if c.ahead().kind == "(" else 0
        return 0
    if kind == OP:
        value = token.value
        if value in _COMPARISONS:
            return CMP
        if value in ("+", "-"):
            return PLUS
        if value in ("*", "/", "%"):
            return TIMES
        if value == "^":
            return POWER
        return 0 if value == "=>" else OTHER
    if kind == "::" or kind == "[" or kind == ".":
        return POSTFIX
    return 0


def _infix(c: Cursor, left: ast.Expr, precedence: int) -> ast.Expr:
    token = c.tok
    pos = token.start
    if token.kind == OP:
        c.advance()
        return _operator(c, left, token.value, precedence, pos)
    if token.kind == "::":
        c.advance()
        return ast.Cast(left, parse_type(c), pos)
    if token.kind == "[":
        return _subscript(c, left)
    if token.kind == ".":
        c.advance()
        if c.take_op("*"):
            return ast.FieldStar(left, pos)
        return ast.Field(left, c.label(), pos)
    word = c.advance().value
    if word == "and" or word == "or":
        right = parse_expr(c, precedence)
        cls: Callable[..., ast.Expr] = ast.And if word == "and" else ast.Or
        if isinstance(left, ast.And if word == "and" else ast.Or):
            operands = [*left.operands, right]
            while c.tok.kind == WORD and c.tok.value == word:
                c.advance()
                operands.append(parse_expr(c, precedence))
            return cls(tuple(operands), left.pos)
        return cls((left, right), pos)
    if word == "isnull" or word == "notnull":
        return ast.Is(left, "null", word == "notnull", pos)
    if word == "is":
        return _is(c, left, pos)
    if word == "collate":
        return ast.Collate(left, c.qualified(), pos)
    if word == "at":
        c.expect("time", "zone")
        zone = parse_expr(c, precedence)
        return ast.FuncCall(("timezone",), (zone, left), syntax="at_time_zone", pos=pos)
    if word == "operator":
        return _operator(c, left, _operator_name(c), OTHER, pos)
    negated = word == "not"
    if negated:
        word = c.advance().value
    match word:
        case "in":
            return _in(c, left, negated, pos)
        case "between":
            symmetric = c.take("symmetric")
            if not symmetric:
                c.take("asymmetric")
            low = parse_expr(c, LIKE)
            c.expect("and")
            high = parse_expr(c, LIKE)
            return ast.Between(left, low, high, negated, symmetric, pos)
    if word == "similar":
        c.expect("to")
    if word in ("like", "ilike") and c.at("any", "some", "all") and c.ahead().kind == "(":
        op = ("!" if negated else "") + ("~~" if word == "like" else "~~*")
        return _quantified(c, left, op, pos)
    pattern = parse_expr(c, LIKE)
    escape = parse_expr(c, LIKE) if c.take("escape") else None
    return ast.Like(left, pattern, escape, word, negated, pos)


def _operator(c: Cursor, left: ast.Expr, op: str, precedence: int, pos: int) -> ast.Expr:
    if c.tok.kind == WORD and c.tok.value in ("any", "some", "all") and c.ahead().kind == "(":
        return _quantified(c, left, op, pos)
    return ast.Binary(op, left, parse_expr(c, precedence), pos)


def _operator_name(c: Cursor) -> str:
    """(schema.op) of OPERATOR(…)."""
    c.expect_punct("(")
    while c.tok.kind in (WORD, QUOTED):
        c.advance()
        c.expect_punct(".")
    if c.tok.kind != OP:
        c.expected("operator")
    op = c.advance().value
    c.expect_punct(")")
    return op


def _quantified(c: Cursor, left: ast.Expr, op: str, pos: int) -> ast.Expr:
    every = c.advance().value == "all"
    c.expect_punct("(")
    right: ast.Query | ast.Expr
    query = try_query(c)
    right = query if query is not None else parse_expr(c)
    c.expect_punct(")")
    return ast.Quantified(left, op, every, right, pos)


def _in(c: Cursor, left: ast.Expr, negated: bool, pos: int) -> ast.Expr:
    c.expect_punct("(")
    query = try_query(c)
    if query is not None:
        c.expect_punct(")")
        return ast.InQuery(left, query, negated, pos)
    items = parse_exprs(c)
    c.expect_punct(")")
    return ast.InList(left, items, negated, pos)


def _is(c: Cursor, left: ast.Expr, pos: int) -> ast.Expr:
    negated = c.take("not")
    what = c.take_any("null", "true", "false", "unknown")
    if what is not None:
        return ast.Is(left, what, negated, pos)
    if c.take("distinct"):
        c.expect("from")
        return ast.IsDistinct(left, parse_expr(c, IS), negated, pos)
    if c.at("document", "normalized", "json"):
        raise unsupported(f"IS {c.tok.value.upper()}", position=pos + 1)
    c.expected("NULL, NOT NULL, TRUE, NOT TRUE, FALSE, NOT FALSE, UNKNOWN, NOT UNKNOWN after IS")


def _subscript(c: Cursor, operand: ast.Expr) -> ast.Expr:
    """x[1], x[1:2], x[:], several in a row."""
    pos = c.tok.start
    indexes: list[ast.Expr | ast.Slice] = []
    while c.take_punct("["):
        start: ast.Expr | None = None
        if c.tok.kind != ":":
            start = parse_expr(c)
        if c.take_punct(":"):
            end = None if c.tok.kind == "]" else parse_expr(c)
            indexes.append(ast.Slice(start, end))
        else:
            assert start is not None
            indexes.append(start)
        c.expect_punct("]")
    return ast.Subscript(operand, tuple(indexes), pos)


def _prefix(c: Cursor) -> ast.Expr:
    token = c.tok
    pos = token.start
    match token.kind:
        case "word":
            return _word(c)
        case "number":
            c.advance()
            return ast.Number(token.value, pos)
        case "string":
            c.advance()
            return ast.String(token.value, pos)
        case "param":
            c.advance()
            number = int(token.value)
            if not 1 <= number <= 65535:
                raise SqlError("42P02", f"there is no parameter ${number}", position=pos + 1)
            c.max_param = max(c.max_param, number)
            return ast.Param(number, pos)
        case "quoted":
            return _name(c)
        case "(":
            return _parenthesised(c)
        case "op":
            op = c.advance().value
            if op in ("-", "+"):
                operand = parse_expr(c, COLLATE)
                if op == "-" and isinstance(operand, ast.Number) and not operand.text.startswith("-"):
                    return ast.Number("-" + operand.text, pos)
                return ast.Unary(op, operand, pos)
            if op == "*":
                c.seek(c.i - 1)
                c.expected("an expression")
            return ast.Unary(op, parse_expr(c, OTHER), pos)
        case "hex":
            raise unsupported("hex string literals", position=pos + 1)
        case _:
            c.expected("an expression")


def _word(c: Cursor) -> ast.Expr:
    token = c.tok
    pos = token.start
    word = token.value
    after = c.ahead()
    special = calls.WORDS.get(word)
    if special is not None:
        node = special(c)
        if node is not None:
            return node
    match word:
        case "null":
            c.advance()
            return ast.Null(pos)
        case "true" | "false":
            c.advance()
            return ast.Bool(word == "true", pos)
        case "not":
            c.advance()
            return ast.Not(parse_expr(c, NOT), pos)
        case "default" if (
            after.kind in (",", ")") or after.kind == "eof" or (after.kind == WORD and after.value == "where")
        ):
            c.advance()
            return ast.Default(pos)
        case "interval":
            literal = interval_literal(c)
            if literal is not None:
                return literal
        case "operator" if after.kind == "(":
            c.advance()
            return ast.Unary(_operator_name(c), parse_expr(c, OTHER), pos)
    if word in RESERVED:
        c.expected("an expression")
    typed = _typed_literal(c)
    return typed if typed is not None else _name(c)


def interval_literal(c: Cursor) -> ast.Expr | None:
    """INTERVAL '…' with fields; None when `interval` is a plain name here."""
    start = c.i
    pos = c.tok.start
    c.advance()
    precision = None
    if c.tok.kind == "(" and c.ahead(3).kind == STRING:
        c.advance()
        precision = c.integer()
        c.expect_punct(")")
    if c.tok.kind != STRING:
        c.seek(start)
        return None
    value = c.advance().value
    try:
        first, last, given = parse_interval_fields(c)
    except SqlError:
        c.seek(start)
        return None
    return ast.Interval(value, first, last, precision if given is None else given, pos)


_WITH_MODIFIERS = frozenset(
    ["timestamp", "timestamptz", "time", "numeric", "decimal", "varchar", "char", "character", "bpchar"]
)


def _typed_literal(c: Cursor) -> ast.Expr | None:
    """typename 'literal'."""
    start = c.i
    pos = c.tok.start
    n = 0
    while c.ahead(n).kind in (WORD, QUOTED) and c.ahead(n + 1).kind == ".":
        n += 2
    if c.ahead(n).kind not in (WORD, QUOTED):
        return None
    first = c.ahead(n).value
    after = c.ahead(n + 1)
    if after.kind == STRING:
        if n == 0 and first == "interval":
            return None
        if n and first == "interval":
            c.seek(c.i + n)
            return interval_literal(c)
        typ = parse_type(c)
        return ast.Cast(ast.String(c.advance().value, pos), typ, pos)
    multi = (first == "double" and after.value == "precision") or (
        first in _WITH_MODIFIERS and (after.kind == "(" or after.value in ("with", "without"))
    )
    if n == 0 and (multi or (first in ("char", "character") and after.value == "varying")):
        try:
            typ = parse_type(c)
        except SqlError:
            c.seek(start)
            return None
        if c.tok.kind == STRING:
            return ast.Cast(ast.String(c.advance().value, pos), typ, pos)
        c.seek(start)
    return None


def _name(c: Cursor) -> ast.Expr:
    """A column, table.*, or a function call."""
    pos = c.tok.start
    parts = [c.name()]
    while c.tok.kind == ".":
        c.advance()
        if c.take_op("*"):
            return ast.Star(tuple(parts), pos)
        parts.append(c.label())
    if c.tok.kind == "(":
        return calls.parse_call(c, tuple(parts), pos)
    return ast.Name(tuple(parts), pos)


def _parenthesised(c: Cursor) -> ast.Expr:
    pos = c.tok.start
    c.advance()
    query = try_query(c)
    if query is not None:
        c.expect_punct(")")
        return ast.Subquery(query, "scalar", pos)
    if c.take_punct(")"):
        return ast.Row((), False, pos)
    first = parse_expr(c)
    if c.take_punct(")"):
        return first
    items = [first]
    while c.take_punct(","):
        items.append(parse_expr(c))
    c.expect_punct(")")
    return ast.Row(tuple(items), False, pos)


def try_query(c: Cursor) -> ast.Query | None:
    """A query up to a closing parenthesis, or None (cursor unmoved) when an expression stands here."""
    n = 0
    while c.ahead(n).kind == "(" and n <= MAX_DEPTH:
        n += 1
    token = c.ahead(n)
    if token.kind != WORD or token.value not in QUERY_START:
        return None
    after = c.ahead(n + 1).kind
    if token.value in ("values", "table") and after in (",", ")", "."):
        return None
    from adapter.sql.parse.queries import parse_query

    if n == 0:
        return parse_query(c)
    start, depth = c.i, c.depth
    try:
        query = parse_query(c)
        if c.tok.kind == ")":
            return query
    except SqlError as error:
        if error.sqlstate == "54001":
            raise
    c.seek(start)
    c.depth = depth
    return None


def parse_order_by(c: Cursor) -> tuple[ast.OrderItem, ...]:
    """Items after ORDER BY."""
    out: list[ast.OrderItem] = []
    while True:
        expr = parse_expr(c)
        desc = False
        if c.take("desc"):
            desc = True
        elif not c.take("asc") and c.take("using"):
            if c.tok.kind != OP or c.tok.value not in ("<", ">"):
                c.expected("operator")
            desc = c.advance().value == ">"
        nulls_first = None
        if c.take("nulls"):
            nulls_first = c.expect_any("first", "last") == "first"
        out.append(ast.OrderItem(expr, desc, nulls_first))
        if not c.take_punct(","):
            return tuple(out)


def parse_select_item(c: Cursor) -> ast.SelectItem:
    """expr [[AS] alias], `*`."""
    if c.at_op("*"):
        pos = c.advance().start
        return ast.SelectItem(ast.Star((), pos))
    expr = parse_expr(c)
    if c.at("as") and not c.at_words("as", "of"):
        c.advance()
        return ast.SelectItem(expr, c.label())
    if c.at_words("as", "of") and c.ahead(2).kind in (",", "eof", ")"):
        c.advance()
        return ast.SelectItem(expr, c.label())
    if c.tok.kind == QUOTED or (
        c.tok.kind == WORD and c.tok.value not in NOT_COLUMN_ALIAS and not c.at_words("up", "to")
    ):
        return ast.SelectItem(expr, c.name())
    return ast.SelectItem(expr)
