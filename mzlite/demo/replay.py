"""The last week, hour by hour.

Each scheduled hour: its flights appear without delays (INSERT); the previous hour's flights that flew get theirs
(UPDATE); those that never flew are deleted (DELETE). Statements are plain SQL text, so that another database can follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mzlite.demo.data import NULL, Row

_TEXT = {"carrier", "tailnum", "origin", "dest", "time_hour"}
_LATER = ("dep_time", "dep_delay", "arr_time", "arr_delay", "air_time")


@dataclass(frozen=True, slots=True)
class Hour:
    """One hour's statements, each a commit."""

    label: str
    statements: tuple[str, ...]


def literal(column: str, value: str) -> str:
    if value == NULL:
        return "NULL"
    if column == "time_hour":
        value = value.replace("T", " ").removesuffix("Z")
    return "'" + value.replace("'", "''") + "'" if column in _TEXT else value


def hours(header: Row, by_hour: list[tuple[str, list[Row]]]) -> Iterator[Hour]:
    previous: list[Row] = []
    for label, rows in [*by_hour, ("the end", [])]:
        statements = []
        if rows:
            values = ", ".join("(" + ", ".join(_scheduled(header, row)) + ")" for row in rows)
            statements.append(f"INSERT INTO flights VALUES {values}")
        statements += _departures(header, previous)
        cancelled = [row for row in previous if row[header.index("dep_time")] == NULL]
        if cancelled:
            statements.append(f"DELETE FROM flights WHERE {_any_of(header, cancelled)}")
        previous = rows
        yield Hour(label.replace("T", " ").removesuffix("Z"), tuple(statements))


def _scheduled(header: Row, row: Row) -> list[str]:
    return ["NULL" if c in _LATER else literal(c, v) for c, v in zip(header, row)]


def _departures(header: Row, rows: list[Row]) -> list[str]:
    """One UPDATE for all flights of an hour that flew: the values come from a CASE by flight."""
    flown = [row for row in rows if row[header.index("dep_time")] != NULL]
    if not flown:
        return []
    sets = []
    for column in _LATER:
        at = header.index(column)
        cases = " ".join(f"WHEN {_this(header, row)} THEN {literal(column, row[at])}" for row in flown)
        sets.append(f"{column} = CASE {cases} ELSE {column} END")
    return [f"UPDATE flights SET {', '.join(sets)} WHERE {_any_of(header, flown)}"]


def _this(header: Row, row: Row) -> str:
    get = dict(zip(header, row)).__getitem__
    return f"(carrier = '{get('carrier')}' AND flight = {get('flight')})"


def _any_of(header: Row, rows: list[Row]) -> str:
    hour = literal("time_hour", rows[0][header.index("time_hour")])
    return f"time_hour = {hour} AND ({' OR '.join(_this(header, row) for row in rows)})"
