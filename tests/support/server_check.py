"""The check behind the whole-system fuzzer: random queries through a server, as reads, through an index and after changes.

One server serves all seeds of a run. A seed refills the tables, asks a few random queries and compares with DuckDB; one
of them becomes an indexed view, which must still be right after random inserts and deletes.
"""

from __future__ import annotations

import random
from functools import cache
from typing import Any

from tests.support.random_sql import TABLES, RandomSql, Row, random_rows
from tests.support.sql_check import duckdb_rows

QUERIES = 4


@cache
def _connection() -> Any:
    """Lives until the process ends."""
    import mzlite

    connection = mzlite.open().connect()
    connection.autocommit = True
    connection.prepare_threshold = None  # the view is another one under the same name each time
    connection.execute("SET statement_timeout = '20s'")
    for name, columns in TABLES.items():
        connection.execute(f"CREATE TABLE {name} ({', '.join(f'{c} int' for c in columns)})")
    connection.execute("CREATE INDEX u_k ON u (k)")
    connection.execute("CREATE INDEX s_id ON s (id)")
    connection.execute("CREATE INDEX s_x ON s (x)")
    return connection


def _fill(tables: dict[str, list[Row]]) -> None:
    for name, rows in tables.items():
        _connection().execute(f"DELETE FROM {name}")
        if rows:
            _connection().execute(f"INSERT INTO {name} VALUES {', '.join(map(_values, rows))}")


def _values(row: Row) -> str:
    return "(" + ", ".join("NULL" if v is None else str(v) for v in row) + ")"


def _rows(text: str) -> list[tuple[object, ...]]:
    found = _connection().execute(text).fetchall()
    return sorted((tuple(None if v is None else int(v) for v in row) for row in found), key=repr)


def check_seed(seed: int) -> None:
    import psycopg

    rng = random.Random(seed)
    tables = random_rows(rng)
    _fill(tables)
    answered: list[str] = []
    for _ in range(QUERIES):
        text = RandomSql(rng).statement()
        want = duckdb_rows(text, tables)
        if want is None:
            continue
        try:
            got = _rows(text)
        except psycopg.errors.FeatureNotSupported:
            continue
        assert got == want, f"{text}\n{tables}\nwant {want}\ngot  {got}"
        answered.append(text)
    if answered:
        _check_view(rng.choice(answered), rng, tables)


def _check_view(text: str, rng: random.Random, tables: dict[str, list[Row]]) -> None:
    connection = _connection()
    connection.execute("DROP VIEW IF EXISTS fuzzed")
    connection.execute(f"CREATE VIEW fuzzed AS {text}")
    connection.execute("CREATE DEFAULT INDEX ON fuzzed")
    for _ in range(3):
        want = duckdb_rows(text, tables)
        got = _rows("SELECT * FROM fuzzed")
        assert got == want, f"view: {text}\n{tables}\nwant {want}\ngot  {got}"
        name = rng.choice(list(TABLES))
        rows = tables[name]
        if rows and rng.random() < 0.5:
            column, value = TABLES[name][0], rng.choice(rows)[0]
            test = f"{column} IS NULL" if value is None else f"{column} = {value}"
            connection.execute(f"DELETE FROM {name} WHERE {test}")
            tables[name] = [row for row in rows if row[0] != value]
        else:
            row = tuple(rng.randrange(4) for _ in TABLES[name]) if name != "s" else (rng.randrange(6, 99), 1)
            connection.execute(f"INSERT INTO {name} VALUES {_values(row)}")
            rows.append(row)
