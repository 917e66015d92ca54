"""Drivers, each with its own idea of the protocol: psycopg and asyncpg."""

from __future__ import annotations

import asyncio
import datetime
import decimal
import io
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
import pytest
from psycopg import errors
from psycopg.rows import dict_row

from tests.support.mzlite_server import Server

asyncpg = pytest.importorskip("asyncpg")

Conn = psycopg.Connection[tuple[Any, ...]]


# --- psycopg


def test_psycopg_prepares_after_a_few(mz: Conn) -> None:
    mz.execute("CREATE TABLE t (a int, b text)")
    for i in range(20):
        mz.execute("INSERT INTO t VALUES (%s, %s)", (i, f"row {i}"))
    for i in range(20):
        assert mz.execute("SELECT b FROM t WHERE a = %s", (i,)).fetchone() == (f"row {i}",)
    mz.cursor().executemany("INSERT INTO t VALUES (%s, %s)", [(100, "x"), (101, None)])
    assert mz.execute("SELECT count(*) FROM t").fetchone() == (22,)


def test_prepared_statements_survive_changes_of_what_they_read(mz: Conn) -> None:
    mz.execute("CREATE VIEW v AS SELECT 1 AS a")
    read = lambda: mz.execute("SELECT * FROM v", prepare=True)  # noqa: E731
    assert read().fetchall() == [(1,)]
    mz.execute("CREATE OR REPLACE VIEW v AS SELECT 2 AS a")
    assert read().fetchall() == [(2,)]
    mz.execute("CREATE OR REPLACE VIEW v AS SELECT 2 AS a, 'x' AS b")
    with pytest.raises(errors.FeatureNotSupported, match="cached plan"):
        read()


def test_psycopg_pipeline(mz: Conn) -> None:
    mz.execute("CREATE TABLE t (a int)")
    with mz.pipeline() as pipe:
        mz.execute("INSERT INTO t VALUES (1)")
        cursors = [mz.execute("SELECT %s::int", (i,)) for i in range(10)]
        pipe.sync()
        assert [c.fetchone() for c in cursors] == [(i,) for i in range(10)]
        bad = mz.execute("SELECT 1/0")
        with pytest.raises(errors.DivisionByZero):
            bad.fetchone()
    assert mz.execute("SELECT a FROM t").fetchall() == [(1,)]


def test_psycopg_transactions(mz: Conn) -> None:
    mz.execute("CREATE TABLE t (a int)")
    with mz.transaction():
        mz.execute("INSERT INTO t VALUES (1)")
        mz.execute("INSERT INTO t VALUES (2)")
    with pytest.raises(KeyError), mz.transaction():
        mz.execute("INSERT INTO t VALUES (3)")
        raise KeyError
    assert mz.execute("SELECT count(*) FROM t").fetchone() == (2,)


def test_psycopg_server_side_cursor(mz: Conn) -> None:
    with mz.transaction(), mz.cursor("named") as cursor:
        cursor.execute("SELECT * FROM generate_series(1, 250)")
        cursor.itersize = 100
        assert sum(1 for _ in cursor) == 250


@pytest.mark.parametrize("binary", [False, True])
def test_psycopg_copy(mz: Conn, binary: bool) -> None:
    mz.execute("CREATE TABLE t (a int, b text, c timestamp)")
    rows = [(1, "x\ty\\", datetime.datetime(2024, 1, 2, 3)), (2, None, None), (3, "", datetime.datetime(1999, 1, 1))]
    options = " (FORMAT BINARY)" if binary else ""
    with mz.cursor() as cursor:
        with cursor.copy(f"COPY t FROM STDIN{options}") as copy:  # type: ignore[arg-type]
            if binary:
                copy.set_types(["int4", "text", "timestamp"])
            for row in rows:
                copy.write_row(row)
        assert cursor.rowcount == 3
        with cursor.copy(f"COPY (SELECT * FROM t ORDER BY a) TO STDOUT{options}") as copy:  # type: ignore[arg-type]
            copy.set_types(["int4", "text", "timestamp"])
            assert list(copy.rows()) == rows


def test_psycopg_errors_have_their_class(mz: Conn) -> None:
    for sql, kind in {
        "SELECT * FROM nowhere": errors.UndefinedTable,
        "SELECT nothing FROM generate_series(1, 2)": errors.UndefinedColumn,
        "SELEC 1": errors.SyntaxError,
        "SELECT 'x'::int": errors.InvalidTextRepresentation,
        "SELECT 2147483647 + 1": errors.NumericValueOutOfRange,
        "SELECT nofunc(1)": errors.UndefinedFunction,
        "SELECT (SELECT x FROM generate_series(1, 2) x)": errors.CardinalityViolation,
    }.items():
        with pytest.raises(kind) as caught:
            mz.execute(sql)  # type: ignore[arg-type]
        assert caught.value.diag.severity == "ERROR"


def test_psycopg_error_positions(mz: Conn) -> None:
    with pytest.raises(errors.UndefinedColumn) as caught:
        mz.execute("SELECT 1, nothing FROM generate_series(1, 2)")
    assert caught.value.diag.statement_position == "11"


def test_psycopg_subscribe_streams(mz: Conn, mzlite_server: Server) -> None:
    mz.execute("CREATE TABLE t (a int)")
    with mzlite_server.connect(row_factory=dict_row) as reader:
        schema = (mz.execute("SHOW search_path").fetchone() or ("",))[0]
        stream = reader.cursor().stream(f"SUBSCRIBE {schema}.t")
        mz.execute("INSERT INTO t VALUES (7)")
        first = next(stream)  # only now does the statement start
        assert (first["mz_diff"], first["a"]) == (1, 7)
        reader.cancel()
        with pytest.raises(errors.QueryCanceled):
            list(stream)
        assert reader.execute("SELECT 1 AS one").fetchone() == {"one": 1}


# --- asyncpg


def with_asyncpg(server: Server, work: Callable[[Any], Awaitable[None]]) -> None:
    async def main() -> None:
        conn = await asyncpg.connect(server.dsn)
        try:
            await work(conn)
        finally:
            await conn.close()

    asyncio.run(asyncio.wait_for(main(), 60))


def test_asyncpg_values(mzlite_server: Server) -> None:
    now = datetime.datetime(2024, 5, 6, 7, 8, 9, 10, tzinfo=datetime.UTC)
    values = {
        "int4": 1, "int8": 2**40, "numeric": decimal.Decimal("1.50"), "date": now.date(), "timestamptz": now,
        "timestamp": now.replace(tzinfo=None), "interval": datetime.timedelta(days=1, seconds=5), "uuid": uuid.UUID(int=7),
        "bytea": b"\0x", "bool": True, "float8": 1.5, "jsonb": '{"a": 1}', "text": "ü", "time": datetime.time(1, 2, 3),
        "int4[]": [1, None, 3], "text[]": ["a", "b c"], "int4range": asyncpg.Range(1, 5),
    }  # fmt: skip

    async def work(conn: Any) -> None:
        for typ, value in values.items():
            assert await conn.fetchval(f"SELECT $1::{typ}", value) == value, typ
            assert await conn.fetchval(f"SELECT $1::{typ}", None) is None
        assert tuple(await conn.fetchval("SELECT ROW(1, 'a')")) == (1, "a")
        assert await conn.fetchval("SELECT LIST[1, 2]") == "{1,2}"
        assert await conn.fetchval("SELECT 5::uint8") == "5"

    with_asyncpg(mzlite_server, work)


def test_asyncpg_statements(mzlite_server: Server) -> None:
    async def work(conn: Any) -> None:
        await conn.execute("CREATE TABLE apg (a int, b text)")
        await conn.executemany("INSERT INTO apg VALUES ($1,$2)", [(1, "a"), (2, None)])
        await conn.copy_records_to_table("apg", records=[(3, "c"), (4, "d")])
        out = io.BytesIO()
        await conn.copy_from_query("SELECT * FROM apg WHERE a > 1 ORDER BY a", output=out, format="csv")
        assert out.getvalue() == b"2,\n3,c\n4,d\n"
        statement = await conn.prepare("SELECT a, b FROM apg WHERE a = $1")
        assert [p.name for p in statement.get_parameters()] == ["int4"]
        assert [a.name for a in statement.get_attributes()] == ["a", "b"]
        assert [tuple(r) for r in await statement.fetch(3)] == [(3, "c")]
        async with conn.transaction():
            await conn.execute("INSERT INTO apg VALUES (5, 'e')")
        async with conn.transaction(readonly=True):
            rows = [r[0] async for r in conn.cursor("SELECT a FROM apg ORDER BY a", prefetch=2)]
        assert rows == [1, 2, 3, 4, 5]
        with_error = conn.fetch("SELECT 1/0")
        with pytest.raises(asyncpg.DivisionByZeroError):
            await with_error
        with pytest.raises(asyncio.TimeoutError):
            await conn.fetch(
                "SELECT sum(a.a * b.b % 7) FROM generate_series(1, 100000) a(a), generate_series(1, 100000) b(b)",
                timeout=0.2,
            )
        assert await conn.fetchval("SELECT 1") == 1
        await conn.reset()
        await conn.execute("DROP TABLE apg")

    with_asyncpg(mzlite_server, work)


def test_asyncpg_pool(mzlite_server: Server) -> None:
    async def main() -> None:
        async with asyncpg.create_pool(mzlite_server.dsn, min_size=2, max_size=4) as pool:

            async def one(i: int) -> int:
                async with pool.acquire() as conn:
                    value: int = await conn.fetchval("SELECT $1::int * 2", i)
                    return value

            assert await asyncio.gather(*(one(i) for i in range(20))) == [2 * i for i in range(20)]

    asyncio.run(asyncio.wait_for(main(), 60))
