"""Random queries give the rows that PostgreSQL gives: names, types and decorrelation, evaluated by the MIR interpreter."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import psycopg
import pytest

from adapter.sequencer.interpret import Budget, TooMuch, interpret
from mzlite.repr.datum import column_to_datums
from mzlite.repr.errors import SqlError
from mzlite.repr.ids import GlobalId
from mzlite.repr.types import INT4, ColumnType, RelationDesc, RelationType
from mzlite.repr.updates import Updates, updates_from_rows
from tests.support.sql_planner import Tables, plan_sql
from tests.unit.sql.random_queries import TABLES, Queries

IDS = {name: GlobalId(f"u{i}") for i, name in enumerate(TABLES, 1)}
Rows = dict[str, list[tuple[int | None, ...]]]


def catalog() -> Tables:
    return Tables(
        {
            name: (IDS[name], RelationDesc(columns, RelationType(tuple(ColumnType(INT4) for _ in columns))))
            for name, columns in TABLES.items()
        }
    )


def random_rows(random: Random) -> Rows:
    def value() -> int | None:
        return None if random.random() < 0.2 else random.randint(0, 3)

    return {
        name: [tuple(value() for _ in columns) for _ in range(random.randint(0, 6))] for name, columns in TABLES.items()
    }


def ours(sql: str, rows: Rows) -> Counter[tuple[Any, ...]] | str:
    """The rows, or the SQLSTATE of the error."""
    data = {
        IDS[name]: updates_from_rows([INT4] * len(TABLES[name]), [tuple(row) for row in values], 0, 1)
        for name, values in rows.items()
    }

    def env(id: GlobalId) -> Updates:
        return data[id]

    try:
        mir, planned = plan_sql(sql, catalog())
        found = interpret(mir, env, Budget(5_000_000))
    except SqlError as error:
        return error.sqlstate
    out: Counter[tuple[Any, ...]] = Counter()
    columns = [column_to_datums(t, c) for t, c in zip(planned.types, found.columns)]
    for i, diff in enumerate(found.diff.tolist()):
        assert diff > 0, f"negative multiplicity: {sql}"
        out[tuple(c[i] for c in columns)] += diff
    return out


def theirs(connection: psycopg.Connection[Any], sql: str) -> Counter[tuple[Any, ...]] | str:
    try:
        return Counter(tuple(None if v is None else int(v) for v in row) for row in connection.execute(sql.encode()))
    except psycopg.Error as error:
        return error.sqlstate or ""


def load(connection: psycopg.Connection[Any], rows: Rows) -> None:
    for name, columns in TABLES.items():
        connection.execute(f"DROP TABLE IF EXISTS {name}".encode())
        connection.execute(f"CREATE TABLE {name} ({', '.join(f'{c} int' for c in columns)})".encode())
        for row in rows[name]:
            connection.execute(f"INSERT INTO {name} VALUES ({', '.join('%s' for _ in row)})".encode(), row)


def check(connection: psycopg.Connection[Any], seed: int, count: int) -> list[str]:
    """Differences over `count` queries from one seed."""
    random = Random(seed)
    rows = random_rows(random)
    load(connection, rows)
    different: list[str] = []
    for _ in range(count):
        sql, _ = Queries(random).query([], random.randint(0, 3))
        expected = theirs(connection, sql)
        if isinstance(expected, str):
            continue  # not every random query is valid, or ends, in PostgreSQL
        try:
            got = ours(sql, rows)
        except TooMuch:
            continue
        if got != expected:
            different.append(f"seed {seed}: {sql}\n  rows {rows}\n  ours {got}\n  PostgreSQL {expected}")
    return different


@pytest.mark.parametrize("seed", range(8))
def test_random_queries_agree(postgres_dsn: str, seed: int) -> None:
    with psycopg.connect(postgres_dsn, autocommit=True) as connection:
        connection.execute("SET statement_timeout = '2s'")
        different = check(connection, seed, 40)
    assert not different, "\n".join(different[:3])
