"""The oracle: DuckDB is told every statement too, and recomputes every view's query from scratch."""

from __future__ import annotations

import decimal
import math
import os
import tempfile
from typing import Any

import psycopg

from mzlite.demo.data import NULL, Row, to_csv
from mzlite.demo.views import TABLES, VIEWS
from mzlite.repr.errors import SqlError


class Oracle:
    """A DuckDB database in memory that mirrors the tables."""

    def __init__(self) -> None:
        try:
            import duckdb
        except ImportError:
            raise SqlError("58P01", "--verify needs DuckDB", hint="pip install duckdb") from None
        self._db = duckdb.connect()

    def load(self, name: str, rows: list[Row]) -> None:
        self._db.execute(f"CREATE TABLE {name} ({TABLES[name]})")
        with tempfile.NamedTemporaryFile(suffix=".csv", delete=False) as f:
            f.write(to_csv(rows))
        try:
            self._db.execute(f"COPY {name} FROM '{f.name}' (HEADER false, DELIMITER ',', NULLSTR '{NULL}')")
        finally:
            os.unlink(f.name)

    def execute(self, statement: str) -> None:
        self._db.execute(statement)

    def compare(self, conn: psycopg.Connection[Any]) -> list[str]:
        """A line for each view whose maintained rows differ from the recomputed ones."""
        out = []
        for view in VIEWS:
            ours = sorted(map(_normal, conn.execute(f"SELECT * FROM {view.name}".encode()).fetchall()), key=_sort_key)
            theirs = sorted(map(_normal, self._db.execute(view.query).fetchall()), key=_sort_key)
            if len(ours) != len(theirs):
                out.append(f"{view.name}: {len(ours)} rows, recomputed {len(theirs)}")
                continue
            different = [(a, b) for a, b in zip(ours, theirs) if not _equal(a, b)]
            if different:
                out.append(
                    f"{view.name}: {len(different)} rows differ, first {different[0][0]} recomputed {different[0][1]}"
                )
        return out


def _normal(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(float(v) if isinstance(v, decimal.Decimal) else v for v in row)


def _sort_key(row: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple(f"{v:.6g}" if isinstance(v, float) else str(v) for v in row)


def _equal(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    # Sums of doubles depend on their order in the last digits.
    return len(a) == len(b) and all(
        x == y
        or (
            isinstance(x, int | float) and isinstance(y, int | float) and math.isclose(x, y, rel_tol=1e-9, abs_tol=1e-9)
        )
        for x, y in zip(a, b)
    )
