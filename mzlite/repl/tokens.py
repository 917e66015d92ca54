"""Cuts SQL text into tokens, far enough to know where a statement ends and what the cursor stands in.

The one idea: the lexer is resumable. What it is inside of (a string, a dollar quote, a nested comment) is a small
state, so that a script is read a line at a time at linear cost, and a prompt can say what a half-typed line still lacks:

    select 'a;b' /* ; */ ;          one statement, ends at the last semicolon
    select $f$ ... $f$ \\gx          one statement, ended by a shell command

Source: psql's own scanner (src/fe_utils/psqlscan.l) and PostgreSQL's lexical structure.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import NamedTuple


class Kind(enum.Enum):
    SPACE = "space"
    COMMENT = "comment"
    STRING = "string"
    IDENT = "ident"
    WORD = "word"
    NUMBER = "number"
    PARAM = "param"
    VARIABLE = "variable"
    OPEN = "open"
    CLOSE = "close"
    OPERATOR = "operator"
    SEMICOLON = "semicolon"
    META = "meta"


class Token(NamedTuple):
    """A piece of the text given to `feed`; a string that spans calls comes as one STRING token a call."""

    kind: Kind
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def word(self) -> str:
        """The keyword in upper case, empty for what is not a bare word."""
        return self.text.upper() if self.kind is Kind.WORD else ""


class Mode(enum.Enum):
    """What the text read so far is inside of; the value is the mark psql shows in its continuation prompt."""

    NORMAL = "-"
    STRING = "'"
    ESCAPE_STRING = "' "
    IDENT = '"'
    DOLLAR = "$"
    COMMENT = "*"


@dataclass(slots=True)
class Inside:
    """Lexer state between two pieces of text."""

    mode: Mode = Mode.NORMAL
    dollar_tag: str = ""
    comment_depth: int = 0
    parens: int = 0

    @property
    def mark(self) -> str:
        """psql's %R: `'` in a string, `$` in a dollar quote, `(` in parentheses, `-` otherwise."""
        if self.mode is Mode.NORMAL:
            return "(" if self.parens > 0 else "-"
        mark: str = self.mode.value
        return mark.strip()


_NORMAL = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<comment>--[^\n]*)
    | (?P<block>/\*)
    | (?P<escape>[eE]')
    | (?P<string>(?:[bBxXnN]|[uU]&)?')
    | (?P<ident>(?:[uU]&)?")
    | (?P<dollar>\$(?:[^\W\d]\w*)?\$)
    | (?P<param>\$\d+)
    | (?P<word>[^\W\d][\w$]*)
    | (?P<number>(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)
    | (?P<cast>::|:=)
    | (?P<variable>:(?:\w+|'\w+'|"\w+"|\{\?\w+\}))
    | (?P<semicolon>;)
    | (?P<meta>\\)
    | (?P<open>[(\[])
    | (?P<close>[)\]])
    | (?P<operator>[<>=!~^&|@\#%*/+-]+?(?=--|/\*|[^<>=!~^&|@\#%*/+-]|\Z)|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_STRING_END = re.compile(r"(?:[^']|'')*?'(?!')", re.DOTALL)
_ESCAPE_STRING_END = re.compile(r"(?:[^'\\]|\\.|'')*?'(?!')", re.DOTALL)
_IDENT_END = re.compile(r'(?:[^"]|"")*?"(?!")', re.DOTALL)
_COMMENT_EDGE = re.compile(r"/\*|\*/")

_OPENS = {
    "escape": (Kind.STRING, Mode.ESCAPE_STRING),
    "string": (Kind.STRING, Mode.STRING),
    "ident": (Kind.IDENT, Mode.IDENT),
    "dollar": (Kind.STRING, Mode.DOLLAR),
    "block": (Kind.COMMENT, Mode.COMMENT),
}
_PLAIN = {
    "space": Kind.SPACE,
    "comment": Kind.COMMENT,
    "param": Kind.PARAM,
    "word": Kind.WORD,
    "number": Kind.NUMBER,
    "cast": Kind.OPERATOR,
    "variable": Kind.VARIABLE,
    "semicolon": Kind.SEMICOLON,
    "meta": Kind.META,
    "open": Kind.OPEN,
    "close": Kind.CLOSE,
    "operator": Kind.OPERATOR,
}


class Lexer:
    """Resumable: `feed` takes the next piece of text, `inside` is what that piece ended in."""

    def __init__(self) -> None:
        self.inside = Inside()

    def feed(self, text: str) -> list[Token]:
        """The tokens of `text`; together they are exactly `text`."""
        tokens: list[Token] = []
        pos = 0
        while pos < len(text):
            token = self.next_token(text, pos)
            tokens.append(token)
            pos = token.end
        return tokens

    def next_token(self, text: str, pos: int) -> Token:
        """The token at `pos`, which must be within `text`."""
        inside = self.inside
        if inside.mode is not Mode.NORMAL:
            kind = {Mode.IDENT: Kind.IDENT, Mode.COMMENT: Kind.COMMENT}.get(inside.mode, Kind.STRING)
            return Token(kind, text[pos : self._close(text, pos)], pos)
        match = _NORMAL.match(text, pos)
        assert match is not None and match.lastgroup is not None, "the last alternative matches any character"
        group = match.lastgroup
        if group in _OPENS:
            kind, inside.mode = _OPENS[group]
            if group == "dollar":
                inside.dollar_tag = match.group()
            inside.comment_depth = 1 if group == "block" else 0
            return Token(kind, text[pos : self._close(text, match.end())], pos)
        if group == "open":
            inside.parens += 1
        elif group == "close":
            inside.parens = max(0, inside.parens - 1)
        elif group == "semicolon":
            # Unlike psql, a semicolon ends the statement even in parentheses: no statement here contains one, and the
            # server's complaint about the missing parenthesis beats a prompt that waits for it.
            inside.parens = 0
        return Token(_PLAIN[group], match.group(), pos)

    def _close(self, text: str, pos: int) -> int:
        """Where what we are inside of ends, or the end of the text when it does not end there."""
        inside = self.inside
        if inside.mode is Mode.DOLLAR:
            found = text.find(inside.dollar_tag, pos)
            if found < 0:
                return len(text)
            end = found + len(inside.dollar_tag)
        elif inside.mode is Mode.COMMENT:
            end = pos
            while inside.comment_depth:
                edge = _COMMENT_EDGE.search(text, end)
                if edge is None:
                    return len(text)
                inside.comment_depth += 1 if edge.group() == "/*" else -1
                end = edge.end()
        else:
            pattern = {Mode.STRING: _STRING_END, Mode.ESCAPE_STRING: _ESCAPE_STRING_END, Mode.IDENT: _IDENT_END}
            match = pattern[inside.mode].match(text, pos)
            if match is None:
                return len(text)
            end = match.end()
        inside.mode = Mode.NORMAL
        return end


def tokenize(text: str) -> list[Token]:
    """All of `text`, from outside any quote."""
    return Lexer().feed(text)


def significant(text: str) -> list[Token]:
    """The tokens of `text` without spaces and comments."""
    return [token for token in tokenize(text) if token.kind not in (Kind.SPACE, Kind.COMMENT)]


def leading_words(sql: str, count: int) -> tuple[str, ...]:
    """The first bare words of a statement, in upper case: `("CREATE", "VIEW")`."""
    words: list[str] = []
    for token in significant(sql)[: count * 2]:
        if token.kind is not Kind.WORD or len(words) == count:
            break
        words.append(token.word)
    return tuple(words)


def unquote_ident(text: str) -> str:
    """The name an identifier token stands for: folded to lower case unless quoted."""
    if text.startswith('"'):
        return text[1 : -1 if text.endswith('"') and len(text) > 1 else None].replace('""', '"')
    return text.lower()


def quote_ident(name: str) -> str:
    """`name`, quoted whatever it is: for text that we send, not that a person reads."""
    return '"' + name.replace('"', '""') + '"'


def quote_literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
