"""Type names: `int4`, `numeric(10, 2)`, `timestamp with time zone`, `text[]`, `int list`, `map[text=>int]`."""

from __future__ import annotations

from adapter.sql import ast
from adapter.sql.parse.cursor import Cursor
from adapter.sql.parse.lexer import NUMBER, OP, QUOTED, WORD


def parse_type(c: Cursor) -> ast.TypeName:
    """A type with its suffixes. Depth is bounded by the cursor's limit."""
    c.enter()
    typ = _base_type(c)
    while True:
        if c.tok.kind == "[":
            c.advance()
            if c.tok.kind == NUMBER:
                c.advance()
            c.expect_punct("]")
            # Arrays of arrays are one multidimensional type.
            if typ.container != "array":
                typ = ast.TypeName(container="array", element=typ, pos=typ.pos)
        elif c.at("list"):
            c.advance()
            typ = ast.TypeName(container="list", element=typ, pos=typ.pos)
        elif c.at("array"):
            c.advance()
            typ = ast.TypeName(container="array", element=typ, pos=typ.pos)
        else:
            break
    c.leave()
    return typ


def _base_type(c: Cursor) -> ast.TypeName:
    pos = c.tok.start
    if c.at("map") and c.ahead().kind == "[":
        c.advance()
        c.advance()
        key = parse_type(c)
        if c.tok.kind == OP and c.tok.value == "=>":
            c.advance()
        else:
            c.expected("arrow")
        value = parse_type(c)
        c.expect_punct("]")
        return ast.TypeName(container="map", element=value, key=key, pos=pos)
    quoted = c.tok.kind == QUOTED
    if c.tok.kind == WORD and c.ahead().kind != ".":
        word = c.tok.value
        if word == "double" and c.at_words("double", "precision"):
            c.advance()
            c.advance()
            return ast.TypeName(("float8",), pos=pos)
        if word in ("char", "character", "bit", "national"):
            c.advance()
            varying = c.take("varying")
            name = "varchar" if varying else {"character": "char"}.get(word, word)
            return ast.TypeName((name,), parse_modifiers(c), pos=pos)
        if word in ("timestamp", "time"):
            c.advance()
            modifiers = parse_modifiers(c)
            zone = c.take("with", "time", "zone")
            if not zone:
                c.take("without", "time", "zone")
            return ast.TypeName((f"{word}tz" if zone else word,), modifiers, pos=pos)
        if word == "interval":
            c.advance()
            parse_interval_fields(c)
            return ast.TypeName(("interval",), pos=pos)
    parts = c.qualified()
    return ast.TypeName(parts, parse_modifiers(c), quoted=quoted and len(parts) == 1, pos=pos)


def parse_modifiers(c: Cursor) -> tuple[int, ...]:
    """(10, 2), possibly negative as the planner will complain about it."""
    if c.tok.kind != "(":
        return ()
    c.advance()
    out: list[int] = []
    while True:
        sign = -1 if c.take_op("-") else 1
        out.append(sign * c.integer())
        if not c.take_punct(","):
            break
    c.expect_punct(")")
    return tuple(out)


_FIELDS = ("year", "month", "day", "hour", "minute", "second", "years", "months", "days", "hours", "minutes", "seconds")


def parse_interval_fields(c: Cursor) -> tuple[str | None, str | None, int | None]:
    """DAY TO SECOND(2) after an interval: (start, end, precision)."""
    start = end = None
    precision = None
    if c.tok.kind == "(":
        precision = _precision(c)
    word = c.take_any(*_FIELDS)
    if word is not None:
        start = word.removesuffix("s")
        if start == "second" and c.tok.kind == "(":
            precision = _precision(c)
        if c.take("to"):
            if not c.at(*_FIELDS):
                c.expected("interval field")
            end = c.advance().value.removesuffix("s")
            if end == "second" and c.tok.kind == "(":
                precision = _precision(c)
    return start, end, precision


def _precision(c: Cursor) -> int:
    c.expect_punct("(")
    value = c.integer()
    c.expect_punct(")")
    return value
