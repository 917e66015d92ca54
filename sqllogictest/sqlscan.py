"""Just enough SQL to take a SELECT apart: its outermost select list and ORDER BY.

A tokenizer (strings, quoted names, dollar quotes, comments) with bracket depth, not a parser: keywords at depth 0 are the
outermost query's own, since subqueries, CTEs, window and aggregate ORDER BYs all stand in brackets.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
      (?P<space>\s+|--[^\n]*|/\*.*?\*/)
    | (?P<string>[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|\$(?P<tag>[^\W\d]\w*|)\$.*?\$(?P=tag)\$)
    | (?P<quoted>"(?:[^"]|"")*")
    | (?P<word>[^\W\d][\w$]*)
    | (?P<number>\d[\w.]*)
    | (?P<op>.)
    """,
    re.VERBOSE | re.DOTALL,
)

_SELECT_START = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/|\()*(?:SELECT|WITH|VALUES|TABLE)\b", re.IGNORECASE | re.DOTALL)
_SET_OPERATIONS = frozenset({"UNION", "EXCEPT", "INTERSECT"})
_AFTER_ORDER = frozenset({"LIMIT", "OFFSET", "FETCH", "FOR"})
_AFTER_LIST = frozenset({"FROM", "WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "OPTIONS", "QUALIFY"}) | _AFTER_ORDER
_MODIFIERS = re.compile(r"\s+(?:(?:ASC|DESC)\b)?\s*(?:NULLS\s+(?:FIRST|LAST))?\s*\Z", re.IGNORECASE)
_ALIAS = re.compile(r"""\s+AS\s+(?:[^\W\d]\w*|"(?:[^"]|"")*")\s*\Z""", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Token:
    """depth counts the open brackets before it; a bracket's own depth is that outside it."""

    kind: str
    text: str
    start: int
    end: int
    depth: int

    @property
    def word(self) -> str:
        return self.text.upper() if self.kind == "word" else ""


@dataclass(frozen=True, slots=True)
class OrderItem:
    """expr: its text; modifiers: ASC, DESC, NULLS FIRST and so on, as written."""

    expr: str
    modifiers: str


@dataclass(frozen=True, slots=True)
class SelectParts:
    """text: the query without its final semicolon. items: texts of the outermost select list, or None where there is
    none to add to (a set operation, VALUES, TABLE, DISTINCT). list_end: where that list ends in text."""

    text: str
    items: tuple[str, ...] | None
    list_end: int
    order: tuple[OrderItem, ...]
    as_of: bool


def is_select(sql: str) -> bool:
    return _SELECT_START.match(sql) is not None


def tokens(sql: str) -> list[Token]:
    """The tokens of `sql` without white space and comments."""
    out: list[Token] = []
    depth = 0
    for found in _TOKEN.finditer(sql):
        kind = found.lastgroup or "op"
        if kind == "tag":
            kind = "string"
        text = found.group()
        if kind == "space":
            continue
        if text in (")", "]"):
            depth -= 1
        out.append(Token(kind, text, found.start(), found.end(), depth))
        if text in ("(", "["):
            depth += 1
    return out


def normal(sql: str) -> str:
    """A form in which two spellings of one expression are equal: words in lower case, single spaces."""
    return " ".join([t.text.lower() if t.kind == "word" else t.text for t in tokens(sql)])


def take_apart(sql: str) -> SelectParts:
    found = tokens(sql)
    while found and found[-1].text == ";":
        found.pop()
    text = sql[: found[-1].end] if found else ""
    top = [t for t in found if t.depth == 0]
    as_of = any(a.word == "AS" and b.word == "OF" and b.start - a.end >= 1 for a, b in itertools.pairwise(top))
    order_at = max((i for i, t in enumerate(top) if t.word == "ORDER" and _next_is(top, i, "BY")), default=None)
    order: tuple[OrderItem, ...] = ()
    if order_at is not None:
        stop = next((t.start for t in top[order_at:] if t.word in _AFTER_ORDER), len(text))
        order = tuple(_order_item(piece) for piece in _split(text, found, top[order_at + 1].end, stop))
    items, list_end = _select_list(text, found, top)
    return SelectParts(text, items, list_end, order, as_of)


def _next_is(top: list[Token], i: int, word: str) -> bool:
    return i + 1 < len(top) and top[i + 1].word == word


def _split(text: str, found: list[Token], start: int, stop: int) -> list[str]:
    """text[start:stop] cut at the commas of depth 0."""
    pieces, at = [], start
    for t in found:
        if t.text == "," and t.depth == 0 and start <= t.start < stop:
            pieces.append(text[at : t.start].strip())
            at = t.end
    pieces.append(text[at:stop].strip())
    return pieces


def _order_item(piece: str) -> OrderItem:
    modifiers = _MODIFIERS.search(piece)
    if modifiers is None or not modifiers.group().strip():
        return OrderItem(piece, "")
    return OrderItem(piece[: modifiers.start()], modifiers.group().strip())


def _select_list(text: str, found: list[Token], top: list[Token]) -> tuple[tuple[str, ...] | None, int]:
    selects = [i for i, t in enumerate(top) if t.word == "SELECT"]
    if len(selects) != 1 or any(t.word in _SET_OPERATIONS for t in top):
        return None, 0
    i = selects[0]
    if _next_is(top, i, "DISTINCT"):
        return None, 0
    if _next_is(top, i, "ALL"):
        i += 1
    end = next((t.start for t in top[i + 1 :] if t.word in _AFTER_LIST), len(text))
    items = [_ALIAS.sub("", item) for item in _split(text, found, top[i].end, end)]
    return tuple(items), len(text[:end].rstrip())
