"""What the server answered against what the record expects.

A check returns None when they agree and a `Mismatch` when not. The order is the dialect's: column count (only when there
are rows), column names (ditto), then the sorted, flattened list of values or its digest.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sqllogictest import cells, values
from sqllogictest.records import ExpectedError, Hashed, Query, Sort
from sqllogictest.session import Result, ServerError


@dataclass(slots=True)
class Mismatch:
    """Why a record failed.

    reason: one line. expected, actual: lines to set against each other. rows: the server's rows as formatted and sorted,
    where there are any; names: their column names. error: the server's error, where it answered with one. fatal: nothing
    after this record in its file can be trusted to run.
    """

    reason: str
    expected: list[str] = field(default_factory=list)
    actual: list[str] = field(default_factory=list)
    rows: list[list[str]] | None = None
    names: list[str] | None = None
    error: ServerError | None = None
    fatal: bool = False


def digest(flat: Iterable[str]) -> str:
    """MD5 of every value followed by a newline."""
    return hashlib.md5("".join([f"{value}\n" for value in flat]).encode(), usedforsecurity=False).hexdigest()


def check_rows(query: Query, result: Result, *, check_names: bool = True) -> Mismatch | None:
    """The rows of `result` against the expectation of `query`."""
    rows: list[list[str]] = []
    names: list[str] | None = None
    if result.rows:
        names = result.names
        if len(result.oids) != len(query.types):
            got = [" ".join(names)] if names else []
            reason = f"expected {len(query.types)} columns, got {len(result.oids)}"
            return Mismatch(reason, [], got, names=names)
        try:
            rows = cells.format_rows(result.rows, cells.formatters(query.types, result.oids, query.mode))
        except (cells.BadPair, values.UnknownValue) as e:
            return Mismatch(str(e), names=names)
        except (ValueError, ArithmeticError, IndexError) as e:
            return Mismatch(f"the server sent a value that does not fit its type: {type(e).__name__}: {e}", names=names)
    expected = query.expected
    if query.sort is Sort.ROW:
        rows.sort()
    if check_names and names is not None and query.names is not None and query.names != names:
        return Mismatch("wrong column names", [" ".join(query.names)], [" ".join(names)], rows, names)
    flat = [cell for row in rows for cell in row] if len(query.types) != 1 else [row[0] for row in rows]
    if query.sort is Sort.VALUE:
        flat.sort()
    if isinstance(expected, Hashed):
        md5 = digest(flat)
        if len(flat) == expected.count and md5 == expected.md5:
            return None
        wanted = [f"{expected.count} values hashing to {expected.md5}"]
        got = [f"{len(flat)} values hashing to {md5}"]
        return Mismatch("wrong hash", wanted, got, rows, names)
    if flat == expected:
        return None
    if query.sort is Sort.VALUE:
        return Mismatch("wrong result", expected, flat, [[cell] for cell in flat], names)
    if query.multiline:
        actual_lines = "\n".join(flat).split("\n") if flat else []
        return Mismatch("wrong result", expected[0].split("\n"), actual_lines, rows, names)
    return Mismatch("wrong result", by_row(expected, len(query.types)), [show_row(row) for row in rows], rows, names)


def show_row(row: Sequence[str]) -> str:
    """A row on one line; white space inside a value is made visible where it would read as a column break."""
    if len(row) == 1:
        return row[0].replace("\n", "⏎")
    return "  ".join([cell.replace("\n", "⏎").replace(" ", "␠") for cell in row])


def by_row(flat: Sequence[str], columns: int) -> list[str]:
    if columns <= 1:
        return [show_row([value]) for value in flat]
    return [show_row(flat[i : i + columns]) for i in range(0, len(flat), columns)]


@functools.lru_cache(maxsize=1024)
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text)


def check_error(record: ExpectedError, error: ServerError, *, check_pgcode: bool = False) -> Mismatch | None:
    """An error against an expected one: the pattern may match anywhere in its text."""
    if _pattern(record.pattern).search(error.text) is None:
        return Mismatch("wrong error", [record.pattern], error.text.split("\n"), error=error)
    if check_pgcode and record.pgcode is not None and record.pgcode != error.sqlstate:
        return Mismatch("wrong SQLSTATE", [record.pgcode], [error.sqlstate])
    return None


def check_lines(expected: list[str], actual: list[str], *, rowsort: bool) -> Mismatch | None:
    """The lines of a simple record."""
    if rowsort:
        expected, actual = sorted(expected), sorted(actual)
    if expected == actual:
        return None
    return Mismatch("wrong output", expected, actual)
