"""sqlglot's tokens, joined into PostgreSQL's.

sqlglot's tokenizer runs with an empty keyword table, so that it does what every SQL lexer agrees on (strings, comments, numbers, dollar quotes)
and leaves words and single operator characters alone; this module joins operators by PostgreSQL's longest-match rule, decodes E'' strings and
keeps the source offsets. Only public names of sqlglot are used (a Dialect and a Tokenizer subclass), which behave the same in its pure and
compiled builds; its parser is not used, because its trees lose precedence (`~1+2`, `a @> b || c`), spellings and positions that an SQL
database has to answer for.

    a->>'x' || E'\\t'   ->   word a, op ->>, string x, op ||, string <tab>
"""

from __future__ import annotations

import re
from typing import ClassVar

from sqlglot.dialects.materialize import Materialize
from sqlglot.errors import TokenError
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from mzlite.repr.errors import SqlError


class _Dialect(Materialize):
    INDEX_OFFSET = 0

    class Tokenizer(Materialize.Tokenizer):
        KEYWORDS: ClassVar[dict[str, TokenType]] = {}
        BIT_STRINGS: ClassVar[list[str | tuple[str, str]]] = []
        COMMANDS: ClassVar[set[TokenType]] = set()
        COMMAND_PREFIX_TOKENS: ClassVar[set[TokenType]] = set()


_DIALECT = _Dialect()

WORD = "word"
QUOTED = "quoted"
STRING = "string"
NUMBER = "number"
PARAM = "param"
OP = "op"
HEX = "hex"
EOF = "eof"


# sqlglot takes `$1,$` for the start of a dollar quote. Where that can happen, the dollars of parameters are hidden from it.
_PARAMETERS = re.compile(r"\$\d.*\$", re.S)
_PARAMETER = re.compile(
    r"(?<!\w)[eE]'(?:[^'\\]|\\.|'')*'|'[^']*'|\"[^\"]*\"|--[^\n]*|/\*.*?\*/"
    r"|(?<![\w$])\$(?P<tag>(?:[A-Za-z_]\w*)?)\$.*?\$(?P=tag)\$|(?<![\w$])\$(?=\d)",
    re.S,
)
_HIDDEN = "\x01"


def _hide_parameter(match: re.Match[str]) -> str:
    text = match.group()
    return _HIDDEN if text == "$" else text


class Token:
    """kind: one of the constants above, or the punctuation character(s) itself. value: folded word, decoded string, operator.

    start, end: offsets in the source, end exclusive.
    """

    __slots__ = ("end", "kind", "start", "value")

    def __init__(self, kind: str, value: str, start: int, end: int) -> None:
        self.kind = kind
        self.value = value
        self.start = start
        self.end = end


_OPERATOR_CHARS = frozenset("+-*/<>=~!@#%^&|`?")
_ANY_END = frozenset("~!@#%^&|`?")
_PUNCTUATION = frozenset("()[],.;:{}")
_E_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{1,2}|[0-7]{1,3}|.)|''", re.S)
_SIMPLE_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def tokenize(sql: str) -> list[Token]:
    """Tokens of a query string, ending with EOF. SqlError 42601 for unterminated strings and comments."""
    if "\x00" in sql:
        raise SqlError("42601", 'invalid byte sequence for encoding "UTF8": 0x00')
    try:
        raw = _DIALECT.tokenize(_PARAMETER.sub(_hide_parameter, sql) if _PARAMETERS.search(sql) else sql)
    except TokenError:
        raise _unterminated(sql) from None
    out: list[Token] = []
    i = 0
    n = len(raw)
    while i < n:
        token = raw[i]
        typ = token.token_type
        start = token.start
        end = token.end + 1
        i += 1
        if typ is TokenType.VAR and token.text[0] == _HIDDEN:
            if not token.text[1:].isdigit():
                raise SqlError(
                    "42601", f"trailing junk after parameter at or near {sql[start:end]}", position=start + 1
                )
            out.append(Token(PARAM, token.text[1:], start, end))
        elif typ is TokenType.VAR:
            out.append(Token(WORD, token.text.lower(), start, end))
        elif typ is TokenType.STRING or typ is TokenType.HEREDOC_STRING:
            if out and out[-1].kind == STRING and sql[start] == "'" and "\n" in sql[out[-1].end : start]:
                out[-1].value += token.text  # 'a' newline 'b' is one literal
                out[-1].end = end
            else:
                out.append(Token(STRING, token.text, start, end))
        elif typ is TokenType.NUMBER:
            text = token.text
            if out and out[-1].kind == "." and out[-1].end == start and not _name_before(out):
                start = out.pop().start
                text = "." + text
            elif text.endswith(".") and i < n and raw[i].token_type is TokenType.NUMBER and raw[i].start == end:
                text += raw[i].text
                end = raw[i].end + 1
                i += 1
            out.append(Token(NUMBER, text, start, end))
        elif typ is TokenType.IDENTIFIER:
            out.append(Token(QUOTED, sql[start + 1 : end - 1].replace('""', '"'), start, end))
        elif typ is TokenType.BYTE_STRING:
            out.append(Token(STRING, _decode_escapes(sql[start:end], start), start, end))
        elif typ is TokenType.HEX_STRING:
            out.append(Token(HEX, token.text, start, end))
        elif typ is TokenType.BIT_STRING or typ is TokenType.NATIONAL_STRING or typ is TokenType.UNICODE_STRING:
            prefix = sql[start:end].split("'", 1)[0]
            raise SqlError("42601", f"{prefix.upper()} string literals are not supported", position=start + 1)
        elif sql[start] == "$":
            if i < n and raw[i].token_type is TokenType.NUMBER and raw[i].start == end and raw[i].text.isdigit():
                out.append(Token(PARAM, raw[i].text, start, raw[i].end + 1))
                i += 1
            else:
                raise SqlError("42601", "unexpected character in input: $", position=start + 1)
        elif sql[start] in _OPERATOR_CHARS:
            while i < n and raw[i].start == end and sql[end] in _OPERATOR_CHARS:
                end = raw[i].end + 1
                i += 1
            _operators(sql[start:end], start, out)
        elif sql[start] in _PUNCTUATION:
            if sql[start] == ":" and out and out[-1].kind == ":" and out[-1].end == start:
                out[-1] = Token("::", "::", start - 1, end)
            else:
                for at in range(start, end):
                    out.append(Token(sql[at], sql[at], at, at + 1))
        else:
            raise SqlError("42601", f"unexpected character in input: {sql[start]}", position=start + 1)
    out.append(Token(EOF, "", len(sql), len(sql)))
    return out


def _name_before(out: list[Token]) -> bool:
    """Whether the dot that ends `out` follows a name directly (t.5 is not t and .5)."""
    return len(out) > 1 and out[-2].end == out[-1].start and out[-2].kind in (WORD, QUOTED, ")", "]")


def _operators(run: str, start: int, out: list[Token]) -> None:
    """Split a run of operator characters: an operator may end in + or - only if it holds one of ~!@#%^&|`?."""
    while run:
        length = len(run)
        while length > 1 and run[length - 1] in "+-" and not any(c in _ANY_END for c in run[:length]):
            length -= 1
        if length > 1 and run[:length].startswith("*") and run[1] in "/<>=":
            length = 1
        text = run[:length]
        out.append(Token(OP, "<>" if text == "!=" else text, start, start + length))
        run = run[length:]
        start += length


def _decode_escapes(literal: str, start: int) -> str:
    """The value of an E'…' literal (given with prefix and quotes)."""

    def decode(match: re.Match[str]) -> str:
        escape = match.group(1)
        if escape is None:
            return "'"
        if escape[0] in "uU" and len(escape) > 1:
            code = int(escape[1:], 16)
            if code > 0x10FFFF or 0xD800 <= code < 0xE000 or code == 0:
                raise SqlError("42601", "invalid unicode escape", position=start + 1)
            return chr(code)
        if escape[0] == "x" and len(escape) > 1:
            return chr(int(escape[1:], 16))
        if escape[0] in "01234567":
            return chr(int(escape, 8))
        if escape[0] in "uU":
            raise SqlError("42601", "invalid unicode escape", position=start + 1)
        return _SIMPLE_ESCAPES.get(escape, escape)

    return _E_ESCAPE.sub(decode, literal[2:-1])


def _unterminated(sql: str) -> SqlError:
    """Which construct runs off the end."""
    i = 0
    while i < len(sql):
        c = sql[i]
        if sql.startswith("--", i):
            i = sql.find("\n", i)
            if i < 0:
                break
        elif sql.startswith("/*", i):
            depth, at = 1, i + 2
            while depth and at < len(sql):
                if sql.startswith("*/", at):
                    depth, at = depth - 1, at + 2
                elif sql.startswith("/*", at):
                    depth, at = depth + 1, at + 2
                else:
                    at += 1
            if depth:
                return SqlError("42601", "unterminated comment", position=i + 1)
            i = at
            continue
        elif c in "'\"":
            escaped = c == "'" and i > 0 and sql[i - 1] in "eE"
            at = i + 1
            while at < len(sql):
                if escaped and sql[at] == "\\":
                    at += 1
                elif sql[at] == c:
                    if not sql.startswith(c * 2, at):
                        break
                    at += 1
                at += 1
            if at >= len(sql):
                what = "string" if c == "'" else "identifier"
                return SqlError("42601", f"unterminated quoted {what}", position=i + 1)
            i = at
        i += 1
    return SqlError("42601", "unterminated quoted string", position=len(sql))
