"""Reads statements and shell commands from lines of text: what a person typed, a file, a pipe, `-c`.

The one idea: reader and runner share the *query buffer*, as in psql. The reader adds text to it until a semicolon makes
it a statement; a shell command (`\\gx`, `\\e`, `\\r`) finds in it what has been typed so far and may send, change or
drop it.

    select 1 \\gx          ->  Meta("gx"), buffer "select 1"
    select 1; select 2    ->  Statement("select 1;"), and at the end the buffer holds "select 2"
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from mzlite.repl.tokens import Kind, Lexer, Mode, Token, quote_ident, quote_literal


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL up to and with its semicolon."""

    sql: str


@dataclass(frozen=True, slots=True)
class Meta:
    """A shell command: `name` without the backslash, `args` as written up to the end of the line."""

    name: str
    args: str


class Script:
    """The statements and commands in `lines`; iterate once.

    `buffer` is the query buffer; whoever handles a `Meta` may assign to it before asking for the next item.
    `line_number` is the last line read, from 1.
    """

    def __init__(self, lines: Iterable[str], variables: Mapping[str, str] | None = None, buffer: str = "") -> None:
        self._lines = iter(lines)
        self._variables = {} if variables is None else variables
        self._lexer = Lexer()
        self._buffer = buffer
        self._lexer.feed(buffer)
        self.line_number = 0

    @property
    def buffer(self) -> str:
        return self._buffer

    @buffer.setter
    def buffer(self, text: str) -> None:
        self._buffer = text
        self._lexer = Lexer()
        self._lexer.feed(text)

    @property
    def is_complete(self) -> bool:
        """Whether the buffer is outside any quote or comment."""
        return self._lexer.inside.mode is Mode.NORMAL

    def __iter__(self) -> Iterator[Statement | Meta]:
        for line in self._lines:
            self.line_number += 1
            yield from self._items(line)

    def copy_data(self) -> Iterator[str]:
        """The lines that follow a COPY ... FROM STDIN, up to `\\.` or the end."""
        for line in self._lines:
            self.line_number += 1
            if line.rstrip("\r\n") == "\\.":
                return
            yield line

    def _items(self, line: str) -> Iterator[Statement | Meta]:
        pos = 0
        while pos < len(line):
            token = self._lexer.next_token(line, pos)
            pos = token.end
            if token.kind is Kind.META:
                meta, pos = _read_meta(line, pos)
                yield meta
                continue
            self._buffer += self._substitute(token) if token.kind is Kind.VARIABLE else token.text
            if token.kind is Kind.SEMICOLON:
                sql, self._buffer = self._buffer.strip(), ""
                self._lexer = Lexer()
                yield Statement(sql)
        if self._buffer.isspace():
            self._buffer = ""

    def _substitute(self, token: Token) -> str:
        """`:name`, `:'name'`, `:"name"` and `:{?name}`; left as written where there is no such variable."""
        text = token.text[1:]
        if text.startswith("{?"):
            return "TRUE" if text[2:-1] in self._variables else "FALSE"
        value = self._variables.get(text.strip("'\""))
        if value is None:
            return token.text
        if text.startswith("'"):
            return quote_literal(value)
        return quote_ident(value) if text.startswith('"') else value


def _read_meta(line: str, pos: int) -> tuple[Meta, int]:
    """The command whose backslash ends at `pos`, and where the text after it begins."""
    end = pos
    while end < len(line) and not line[end].isspace() and line[end] != "\\":
        end += 1
        if line[pos:end] == "!":  # `\!ls` needs no space
            break
    name = line[pos:end]
    rest = line[end:].rstrip("\r\n")
    # Two backslashes end the arguments, and what follows is read as SQL again; but not inside quotes.
    cut = _unquoted_find(rest, "\\\\") if name not in ("!", "copy") else -1
    if cut >= 0:
        return Meta(name, rest[:cut].strip()), end + cut + 2
    # The line's end stays text: what is in the buffer before the command must not run into what follows.
    return Meta(name, rest.strip()), end + len(rest)


def _unquoted_find(text: str, what: str) -> int:
    quote = ""
    for i, ch in enumerate(text):
        if quote:
            quote = "" if ch == quote else quote
        elif ch in "'\"":
            quote = ch
        elif text.startswith(what, i):
            return i
    return -1


def split_args(text: str) -> list[str]:
    """Arguments of a shell command: separated by spaces, 'single quoted' with '' for a quote; "double" quotes stay."""
    args: list[str] = []
    current: list[str] = []
    quote = ""
    started = False
    i = 0
    while i < len(text):
        ch = text[i]
        if quote == "'" and ch == "'":
            if text.startswith("''", i):
                current.append("'")
                i += 1
            else:
                quote = ""
        elif quote == "'" and ch == "\\" and i + 1 < len(text):
            current.append({"n": "\n", "t": "\t", "r": "\r"}.get(text[i + 1], text[i + 1]))
            i += 1
        elif quote:
            current.append(ch)
            quote = "" if ch == quote else quote
        elif ch in "'\"":
            quote, started = ch, True
            if ch == '"':
                current.append(ch)
        elif ch.isspace():
            if started:
                args.append("".join(current))
            current, started = [], False
        else:
            current.append(ch)
            started = True
        i += 1
    if started:
        args.append("".join(current))
    return args


def wants_more(text: str) -> bool:
    """Whether Enter should begin a new line rather than send `text`: a statement has begun and nothing ends it."""
    if not text.strip():
        return False
    lexer = Lexer()
    last: Token | None = None
    for token in lexer.feed(text):
        if token.kind is Kind.META:
            return False
        if token.kind not in (Kind.SPACE, Kind.COMMENT):
            last = token
    if lexer.inside.mode is not Mode.NORMAL:
        return True
    if last is None:
        return False  # comments only
    return last.kind is not Kind.SEMICOLON
