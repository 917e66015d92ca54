"""What a test file says: one small type per kind of record.

A file is a list of records; each names the place it came from (`file`, `line`: the line of its directive) and what is
expected of the server. Nothing here knows how records are written (`parser`) or run (`runner`).

`Span` fields are half-open character ranges of the text that `--rewrite` may replace; None where a record came out of an
`include` or a `loop` and so has no text of its own.

source: SQLite's sqllogictest and the dialect of Materialize's runner (docs/sqllogictest.md).
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, field
from typing import TypeAlias

Span: TypeAlias = tuple[int, int] | None


class Mode(enum.Enum):
    """How expected output is laid out: a value a line (standard), or a row a line split on white space (cockroach)."""

    STANDARD = "standard"
    COCKROACH = "cockroach"


class Sort(enum.Enum):
    NO = "nosort"
    ROW = "rowsort"
    VALUE = "valuesort"


class Kind(enum.StrEnum):
    """What a record counts as in a score. EXPLAIN texts are apart: they pin a plan, not an answer."""

    RESULTS = "results"
    STATEMENTS = "statements"
    ERRORS = "errors"
    EXPLAIN = "explain"
    VIEWS = "views"


@dataclass(frozen=True, slots=True)
class Hashed:
    """`N values hashing to MD5`: the digest of every value followed by a newline."""

    count: int
    md5: str


@dataclass(slots=True)
class Statement:
    """`statement ok` (rows is None) or `statement count N`."""

    file: str
    line: int
    sql: str
    rows: int | None = None
    span: Span = None


@dataclass(slots=True)
class ExpectedError:
    """`statement error` or `query error`: pattern is a regular expression, searched for in the error's text."""

    file: str
    line: int
    sql: str
    directive: str
    pattern: str
    pgcode: str | None = None
    span: Span = None


@dataclass(slots=True)
class Query:
    """`query TYPES`: types holds one letter a column; expected is the flat list of values in the order compared."""

    file: str
    line: int
    sql: str
    types: str
    mode: Mode
    sort: Sort = Sort.NO
    names: list[str] | None = None
    label: str | None = None
    multiline: bool = False
    expected: list[str] | Hashed = field(default_factory=list)
    span: Span = None


@dataclass(slots=True)
class Simple:
    """`simple`: one string of statements through the simple protocol, on a named connection or the default one."""

    file: str
    line: int
    sql: str
    expected: list[str]
    conn: str | None = None
    user: str | None = None
    password: str | None = None
    rowsort: bool = False
    multiline: bool = False
    span: Span = None


@dataclass(slots=True)
class Copy:
    """`copy TABLE PATH`: load a tab-separated file with COPY FROM STDIN."""

    file: str
    line: int
    table: str
    path: str

    @property
    def sql(self) -> str:
        return f"COPY {self.table} FROM STDIN"


@dataclass(slots=True)
class ResetServer:
    """`reset-server`: go on with a server that has forgotten everything."""

    file: str
    line: int

    @property
    def sql(self) -> str:
        return ""


@dataclass(slots=True)
class Malformed:
    """A record that cannot be read; the records after it in the same file are lost with it."""

    file: str
    line: int
    reason: str

    @property
    def sql(self) -> str:
        return ""


Record: TypeAlias = Statement | ExpectedError | Query | Simple | Copy | ResetServer | Malformed


@dataclass(slots=True)
class Script:
    """All records of one file in order; skipped counts those that skipif, onlyif or halt took out."""

    file: str
    records: list[Record]
    skipped: int = 0


_EXPLAIN = re.compile(r"\s*EXPLAIN\b", re.IGNORECASE)


def kind_of(record: Record) -> Kind:
    """The part of the score that `record` counts in.

    A `simple` record counts by what it expects: an error's text, bare COMPLETE lines, or rows.
    """
    if _EXPLAIN.match(record.sql):
        return Kind.EXPLAIN
    match record:
        case Query():
            return Kind.RESULTS
        case ExpectedError():
            return Kind.ERRORS
        case Simple():
            if any(line.startswith("db error: ") for line in record.expected):
                return Kind.ERRORS
            if all(line.startswith("COMPLETE ") for line in record.expected):
                return Kind.STATEMENTS
            return Kind.RESULTS
        case _:
            return Kind.STATEMENTS
