"""Test text to records.

The one idea: a record ends where the text says so (a blank line, `----`, `EOF`), so records are cut with `str.find` over
the whole text instead of line by line; a corpus of a hundred thousand records parses in under a second.

    statement ok          ┐ directive: up to the newline or a #
    CREATE TABLE t (a int)│ SQL: up to a blank line
                          ┘
    query I rowsort       ┐ directive, types, options, label
    SELECT a FROM t       │ SQL: up to a line that starts with ----  (it may hold blank lines)
    ----                  │
    1                     ┘ output: up to a blank line, or with `multiline` up to a line EOF

A malformed record ends its file: what follows cannot be told apart from its body. It is returned as a `Malformed` record
behind the good ones, so that those still run and the place is reported.

source: the parser of Materialize's sqllogictest; loop, foreach and include are this tool's own extension (`expand`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from sqllogictest import expand
from sqllogictest.records import (
    Copy,
    ExpectedError,
    Hashed,
    Malformed,
    Mode,
    Query,
    Record,
    ResetServer,
    Script,
    Simple,
    Sort,
    Span,
    Statement,
)

OUR_ENGINE = "postgresql"
MAX_NESTING = 16

_ERROR_HEADER = re.compile(r"(?:statement|query) error(?: pgcode ([a-zA-Z0-9]{5}))? ?")
_HASHING = re.compile(r"(\S+) values hashing to (\S+)")
_TYPES = re.compile(r"[TIRBO]+")
_IGNORED = ("subtest", "user", "kv-batch-size")

Reader = Callable[[str], str]


class ParseError(Exception):
    """A record that cannot be read: the line of its directive and the reason."""

    def __init__(self, file: str, line: int, reason: str) -> None:
        super().__init__(f"{file}:{line}: {reason}")
        self.file = file
        self.line = line
        self.reason = reason


def read_text(path: str) -> str:
    """The text of a test file, line ends normalised to a newline."""
    with open(path, encoding="utf-8", newline="") as f:
        return f.read().replace("\r\n", "\n")


def parse_file(path: str, *, engine: str = OUR_ENGINE) -> Script:
    """The records of the file at `path`, included files spliced in."""
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError) as e:
        return Script(path, [Malformed(path, 1, f"cannot read the file: {e}")])
    return parse_text(text, path, engine=engine)


def parse_text(text: str, file: str = "<text>", *, engine: str = OUR_ENGINE, read: Reader = read_text) -> Script:
    """The records of `text`. Never raises on bad input: see `Malformed`."""
    parser = _Parser(text, file, engine=engine, read=read)
    records: list[Record] = []
    try:
        records.extend(parser.records())
    except ParseError as e:
        records.append(Malformed(e.file, e.line, e.reason))
    return Script(file, records, parser.skipped)


class _Parser:
    """A cursor over one text. `line` is the line of `pos`; `mode` carries over into loops and included files."""

    def __init__(
        self,
        text: str,
        file: str,
        *,
        engine: str,
        read: Reader,
        line: int = 1,
        mode: Mode = Mode.STANDARD,
        rewritable: bool = True,
        depth: int = 0,
    ) -> None:
        self.text = text
        self.file = file
        self.engine = engine
        self.read = read
        self.pos = 0
        self.line = line
        self.mode = mode
        self.rewritable = rewritable
        self.depth = depth
        self.skipped = 0
        self.halted = False
        self.header_line = line

    def fail(self, reason: str) -> ParseError:
        return ParseError(self.file, self.header_line, reason)

    def records(self) -> Iterator[Record]:
        text, end = self.text, len(self.text)
        skip = False
        while self.pos < end and not self.halted:
            start = self.pos
            newline = text.find("\n", start)
            stop = end if newline < 0 else newline
            self.pos = stop + 1
            self.header_line = self.line
            self.line += 1
            header = text[start:stop]
            comment = header.find("#")
            if comment >= 0:
                header = header[:comment]
            header = header.strip()
            if not header:
                continue
            words = header.split()
            match words[0]:
                case "statement" | "query" if words[1:2] == ["error"]:
                    record: Record = self.error(header, start, words[0])
                case "statement":
                    record = self.statement(words, start)
                case "query":
                    record = self.query(words)
                case "simple":
                    record = self.simple(words)
                case "skipif" | "onlyif":
                    if len(words) < 2:
                        raise self.fail(f"{words[0]} without an engine name")
                    skip = skip or (words[1] == self.engine) == (words[0] == "skipif")
                    continue
                case "halt":
                    if skip:
                        skip = False
                        continue
                    self.halted = True
                    return
                case "mode":
                    self.set_mode(words)
                    continue
                case "hash-threshold":
                    if len(words) < 2 or not words[1].isdigit():
                        raise self.fail("hash-threshold needs a number")
                    skip = False
                    continue
                case "copy":
                    if len(words) < 3:
                        raise self.fail("copy needs a table and a path")
                    record = Copy(self.file, self.header_line, words[1], words[2])
                case "reset-server":
                    record = ResetServer(self.file, self.header_line)
                case "include" | "loop" | "foreach":
                    nested = self.nested(words)
                    if skip:
                        skip = False
                        continue
                    yield from nested
                    continue
                case word if word in _IGNORED:
                    continue
                case word:
                    raise self.fail(f"unknown directive {word!r}")
            if skip:
                skip = False
                self.skipped += 1
                continue
            yield record

    # -- pieces of text ------------------------------------------------------------------------------------------

    def upto(self, separator: str, *, optional_at_end: bool) -> tuple[str, int]:
        """The text from here to `separator`, and where it starts; moves past the separator."""
        start = self.pos
        found = self.text.find(separator, start)
        if found < 0:
            if not optional_at_end:
                raise self.fail(f"no {separator.strip()!r} line before the end of the file")
            found = len(self.text)
            self.pos = found
            body = self.text[start:found]
            if body.endswith("\n"):
                body = body[:-1]
        else:
            body = self.text[start:found]
            self.pos = found + len(separator)
        self.line += self.text.count("\n", start, self.pos)
        return body, start

    def sql_to_blank(self) -> str:
        # A directive directly above a blank line or the end of the file has no SQL.
        if self.text.startswith("\n", self.pos):
            raise self.fail("no SQL below the directive")
        sql, _ = self.upto("\n\n", optional_at_end=True)
        if not sql.strip():
            raise self.fail("no SQL below the directive")
        return sql

    def output(self, *, multiline: bool) -> tuple[str, Span]:
        """The output behind `----`, without the newline that ends that line, and where it stands."""
        if multiline:
            at_end = self.text.find("\nEOF\n", self.pos) < 0 and self.text.endswith("\nEOF")
            body, start = self.upto("\nEOF" if at_end else "\nEOF\n", optional_at_end=False)
        else:
            body, start = self.upto("\n\n", optional_at_end=True)
        if body.startswith("\n"):
            body, start = body[1:], start + 1
        elif body:
            raise self.fail("text behind ---- on the same line")
        return body, (start, start + len(body)) if self.rewritable else None

    # -- records -------------------------------------------------------------------------------------------------

    def statement(self, words: list[str], start: int) -> Statement:
        line = self.header_line
        if len(words) < 2:
            raise self.fail("statement needs ok, count N or error")
        rows: int | None = None
        span: Span = None
        match words[1]:
            case "ok" | "OK":
                pass
            case "count":
                if len(words) < 3 or not words[2].isdigit():
                    raise self.fail("statement count needs a number")
                rows = int(words[2])
                if self.rewritable:
                    at = self.text.index(words[2], start + len("statement count"))
                    span = (at, at + len(words[2]))
            case other:
                raise self.fail(f"statement needs ok, count N or error, not {other!r}")
        return Statement(self.file, line, self.sql_to_blank(), rows, span)

    def error(self, header: str, start: int, directive: str) -> ExpectedError:
        found = _ERROR_HEADER.match(header)
        if found is None:
            raise self.fail(f"cannot read {header!r}")
        pattern = header[found.end() :]
        try:
            re.compile(pattern)
        except re.error as e:
            raise self.fail(f"bad regular expression: {e}") from None
        line = self.header_line
        span: Span = None
        if self.rewritable:
            at = start + self.text[start:].index(header) + found.end()
            span = (at, at + len(pattern))
        return ExpectedError(self.file, line, self.sql_to_blank(), directive, pattern, found.group(1), span)

    def query(self, words: list[str]) -> Query:
        line = self.header_line
        types = words[1] if len(words) > 1 else ""
        if types and _TYPES.fullmatch(types) is None:
            raise self.fail(f"unknown type letter in {types!r}: only T, I, R, B and O")
        sort, colnames, multiline = Sort.NO, False, False
        if len(words) > 2:
            for option in words[2].split(","):
                match option:
                    case "nosort":
                        sort = Sort.NO
                    case "rowsort":
                        sort = Sort.ROW
                    case "valuesort":
                        sort = Sort.VALUE
                    case "colnames":
                        colnames = True
                    case "multiline":
                        multiline = True
                    case _ if option.startswith("partialsort"):
                        sort = Sort.ROW
                        break  # its arguments hold commas too
                    case _:
                        raise self.fail(f"unknown query option {option!r}")
        if multiline and (colnames or sort is not Sort.NO):
            raise self.fail("multiline excludes every other query option")
        label = words[3] if len(words) > 3 else None
        sql, _ = self.upto("\n----", optional_at_end=False)
        output, span = self.output(multiline=multiline)
        names: list[str] | None = None
        body = output
        if colnames:
            first, _, body = output.partition("\n")
            names = [word.replace("␠", " ") for word in first.split(" ") if word]
        expected = [body] if multiline else self.values(body, len(types), sort)
        return Query(self.file, line, sql, types, self.mode, sort, names, label, multiline, expected, span)

    def values(self, body: str, columns: int, sort: Sort) -> list[str] | Hashed:
        try:
            return expected_values(body, columns, sort, self.mode)
        except ValueError as e:
            raise self.fail(str(e)) from None

    def simple(self, words: list[str]) -> Simple:
        line = self.header_line
        options: dict[str, str] = {}
        rowsort = multiline = False
        if len(words) > 1:
            for option in words[1].split(","):
                key, equals, value = option.partition("=")
                if equals and key in ("conn", "user", "password"):
                    options[key] = value
                elif option == "rowsort":
                    rowsort = True
                elif option == "multiline":
                    multiline = True
                else:
                    raise self.fail(f"unknown simple option {option!r}")
        if "user" in options and "conn" not in options:
            raise self.fail("simple with user= needs conn=")
        if "password" in options and "user" not in options:
            raise self.fail("simple with password= needs user=")
        sql, _ = self.upto("\n----", optional_at_end=False)
        output, span = self.output(multiline=multiline)
        if multiline:
            # Behind EOF stand the COMPLETE lines, up to the blank line; they are compared, never rewritten.
            rest = "" if self.text.startswith("\n", self.pos) else self.upto("\n\n", optional_at_end=True)[0]
            expected = [output, *_lines(rest.lstrip())]
        else:
            expected = _lines(output.lstrip())
        conn, user, password = options.get("conn"), options.get("user"), options.get("password")
        return Simple(self.file, line, sql, expected, conn, user, password, rowsort, multiline, span)

    def set_mode(self, words: list[str]) -> None:
        match words[1:2]:
            case ["cockroach"]:
                self.mode = Mode.COCKROACH
            case ["standard"] | ["sqlite"]:
                self.mode = Mode.STANDARD
            case other:
                raise self.fail(f"unknown mode {' '.join(other) or 'nothing'!r}")

    # -- the extension -------------------------------------------------------------------------------------------

    def nested(self, words: list[str]) -> list[Record]:
        """The records of an include, loop or foreach directive."""
        if self.depth >= MAX_NESTING:
            raise self.fail(f"include and loop nest deeper than {MAX_NESTING}")
        out: list[Record] = []
        try:
            if words[0] == "include":
                values = expand.substitutions(words)
                for path in expand.included(words, self.file):
                    out.extend(self.child(expand.substitute(self.read(path), values), path, 1))
            else:
                first_line, start = self.line, self.pos
                body, self.pos = expand.loop_body(self.text, start)
                self.line += self.text.count("\n", start, self.pos)
                for text in expand.iterations(words, body):
                    out.extend(self.child(text, self.file, first_line))
        except (expand.ExpandError, OSError, UnicodeDecodeError) as e:
            raise self.fail(str(e)) from None
        return out

    def child(self, text: str, file: str, line: int) -> list[Record]:
        parser = _Parser(
            text,
            file,
            engine=self.engine,
            read=self.read,
            line=line,
            mode=self.mode,
            rewritable=False,
            depth=self.depth + 1,
        )
        out = list(parser.records())
        self.skipped += parser.skipped
        self.mode = parser.mode
        self.halted = self.halted or parser.halted
        return out


def expected_values(body: str, columns: int, sort: Sort, mode: Mode) -> list[str] | Hashed:
    """The flat list of values that an output text stands for, in the order compared. Raises ValueError."""
    if "values hashing to" in body:
        found = _HASHING.search(body)
        if found is not None:
            if not found.group(1).isdigit():
                raise ValueError(f"bad number of hashed values {found.group(1)!r}")
            return Hashed(int(found.group(1)), found.group(2))
    if not body or body.startswith("\n"):
        return []
    lines = body.split("\n")
    if lines[-1] == "":
        lines.pop()
    if mode is Mode.COCKROACH:
        if columns == 1:
            lines = [line.strip() for line in lines]
            if sort is Sort.ROW:
                lines.sort(key=_space)
        else:
            rows = [line.split() for line in lines]
            if sort is not Sort.NO:
                for row in rows:
                    if len(row) != columns:
                        raise ValueError(f"expected row {' '.join(row)!r} has {len(row)} values, not {columns}")
            if sort is Sort.ROW:
                rows.sort(key=lambda row: [_space(cell) for cell in row])
            lines = [cell for row in rows for cell in row]
        if "␠" in body:
            lines = [_space(cell) for cell in lines]
    if "⏎" in body:
        lines = [line.replace("⏎", "\n") for line in lines]
    if sort is Sort.VALUE:
        lines.sort()
    return lines


def _space(cell: str) -> str:
    return cell.replace("␠", " ")


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return lines
