"""WITH (…) option lists and other loose `words = value` lists, shared by many statements."""

from __future__ import annotations

from adapter.sql.parse.cursor import Cursor
from adapter.sql.parse.lexer import NUMBER, QUOTED, STRING, WORD
from adapter.sql.statements import Options, OptionValue


def parse_options(c: Cursor) -> Options:
    """( name words [=] value, … ), value optional."""
    c.expect_punct("(")
    out: list[tuple[str, OptionValue]] = []
    while c.tok.kind != ")":
        out.append(parse_option(c))
        if not c.take_punct(","):
            break
    c.expect_punct(")")
    return tuple(out)


def parse_bare_options(c: Cursor) -> Options:
    """name [=] value, … without parentheses, up to the end of the statement."""
    out = [parse_option(c)]
    while c.take_punct(","):
        out.append(parse_option(c))
    return tuple(out)


def parse_option(c: Cursor) -> tuple[str, OptionValue]:
    words: list[str] = []
    while c.tok.kind in (WORD, QUOTED):
        # `RETAIN HISTORY FOR '1m'`, `SIZE small`, `SNAPSHOT`: the last word is a value if no literal follows and = came before.
        words.append(c.advance().value)
    if not words:
        c.expected("option name")
    if words[0] in ("format", "header", "encoding") and len(words) == 2:  # COPY's options take a word without `=`
        return words[0], words[1]
    if c.take_op("="):
        return " ".join(words), parse_value(c)
    if c.tok.kind in (STRING, NUMBER) or c.at_op("-"):
        return " ".join(w for w in words if w != "for"), parse_value(c)
    if c.tok.kind == "(":
        return " ".join(words), _list(c)
    return " ".join(words), None


def parse_value(c: Cursor) -> OptionValue:
    """A literal, a word, or a parenthesised list of them."""
    if c.take("for"):
        pass
    if c.tok.kind in ("(", "["):
        return _list(c)
    sign = "-" if c.take_op("-") else ""
    if c.tok.kind in (STRING, NUMBER, WORD, QUOTED):
        value = sign + c.advance().value
        if c.tok.kind == "(":  # a call such as ON REFRESH (HYDRATION TIME ESTIMATE = …)
            _list(c)
        while c.tok.kind == WORD and value in ("on",) and c.tok.value in ("refresh",):
            value += " " + c.advance().value
            if c.tok.kind == "(":
                _list(c)
        return value
    c.expected("option value")


def _list(c: Cursor) -> tuple[str, ...]:
    """Texts of a bracketed list, nested brackets kept as text."""
    close = {"(": ")", "[": "]"}[c.advance().kind]
    out: list[str] = []
    depth = 1
    start = c.tok.start
    end = start
    while True:
        token = c.tok
        if token.kind == "eof":
            c.expected("right parenthesis" if close == ")" else "right square bracket")
        if token.kind in ("(", "["):
            depth += 1
        elif token.kind in (")", "]"):
            depth -= 1
        if (depth == 0) or (depth == 1 and token.kind == ","):
            if end > start:
                out.append(_text(c, start, end))
            c.advance()
            if depth == 0:
                return tuple(out)
            start = end = c.tok.start
            continue
        end = token.end
        c.advance()


def _text(c: Cursor, start: int, end: int) -> str:
    text = c.source[start:end]
    if len(text) > 1 and text[0] == text[-1] == "'" and "'" not in text[1:-1].replace("''", ""):
        return text[1:-1].replace("''", "'")
    return text
