"""TPC-H at scale factor 0.01: all 22 queries as maintained views, equal to DuckDB after every refresh pair."""

from __future__ import annotations

import datetime
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

import mzlite
from tests.support.tpch import QUERIES, SCHEMA, generate

ROUNDS = 2
pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        shutil.which("tpchgen-cli", path=str(Path(sys.executable).parent)) is None,
        reason="tpchgen-cli is not installed",
    ),
]


@pytest.fixture(scope="module")
def systems(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[psycopg.Connection[Any], Any]]:
    """The same tables in mzlite and in DuckDB, the views made in mzlite."""
    directory = generate(tmp_path_factory.mktemp("tpch"), 0.01)
    other = duckdb.connect()
    with mzlite.open() as db:
        connection = db.connect()
        connection.autocommit = True
        for table, columns in SCHEMA.items():
            path = directory / f"{table}.csv"
            other.execute(f"CREATE TABLE {table} ({columns})")
            other.execute(f"COPY {table} FROM '{path}' (HEADER)")
            connection.execute(f"CREATE TABLE {table} ({columns})".encode())
            with connection.cursor().copy(f"COPY {table} FROM STDIN csv header".encode()) as copy:
                copy.write(path.read_bytes())
        for number, query in QUERIES.items():
            connection.execute(f"CREATE VIEW q{number} AS {query}".encode())
            connection.execute(f"CREATE DEFAULT INDEX ON q{number}".encode())
        yield connection, other


def normal(value: Any) -> Any:
    """Comparable across systems: numbers to six digits, dates as dates."""
    if isinstance(value, (Decimal, float)):
        return round(float(value), 2) if abs(float(value)) > 1 else round(float(value), 6)
    if isinstance(value, datetime.datetime):
        return value.date()
    return value


def rows(cursor: Any) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(normal(v) for v in row) for row in cursor.fetchall())


def both(systems: tuple[psycopg.Connection[Any], Any], statement: str) -> None:
    connection, other = systems
    connection.execute(statement.encode())
    other.execute(statement)


def compare(systems: tuple[psycopg.Connection[Any], Any], when: str) -> None:
    connection, other = systems
    wrong = []
    for number, query in QUERIES.items():
        got = rows(connection.execute(f"SELECT * FROM q{number}".encode()))
        expected = rows(other.execute(query))
        if got != expected:
            wrong.append(f"Q{number} {when}: too much {(got - expected)}, missing {(expected - got)}"[:600])
    assert not wrong, "\n".join(wrong)


def test_the_views_are_what_duckdb_computes(systems: tuple[psycopg.Connection[Any], Any]) -> None:
    compare(systems, "at first")
    for i in range(ROUNDS):
        # Refresh function 1: new orders under fresh keys. TPC-H's keys are sparse: x % 32 is at most 8.
        new = f"o_orderkey % 640 = {2 * i + 1}"
        order_columns = [c.split()[0] for c in SCHEMA["orders"].replace("numeric(15, 2)", "numeric").split(", ")]
        line_columns = [c.split()[0] for c in SCHEMA["lineitem"].replace("numeric(15, 2)", "numeric").split(", ")]
        both(
            systems,
            f"INSERT INTO lineitem SELECT l_orderkey + 8, {', '.join(line_columns[1:])} FROM lineitem "
            f"WHERE {new.replace('o_', 'l_')}",
        )
        both(
            systems,
            f"INSERT INTO orders SELECT o_orderkey + 8, {', '.join(order_columns[1:])} FROM orders WHERE {new}",
        )
        compare(systems, f"after insert {i}")
        # Refresh function 2: old orders go.
        gone = f"o_orderkey % 640 = {2 * i + 2}"
        both(systems, f"DELETE FROM lineitem WHERE {gone.replace('o_', 'l_')}")
        both(systems, f"DELETE FROM orders WHERE {gone}")
        compare(systems, f"after delete {i}")
    both(systems, "UPDATE part SET p_brand = 'Brand#23', p_container = 'MED BOX' WHERE p_partkey % 100 = 3")
    both(systems, "UPDATE supplier SET s_nationkey = (s_nationkey + 1) % 25 WHERE s_suppkey % 10 = 1")
    both(systems, "DELETE FROM customer WHERE c_custkey % 50 = 7")
    compare(systems, "after updates")
