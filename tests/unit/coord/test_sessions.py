"""Sessions against a whole environment: reads, writes, transactions, cancellation, restarts."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from adapter.coord.result import CopyIn, CopyOut, Rows
from adapter.sequencer.fast_path import PeekExisting
from mzlite.repr.errors import SqlError
from tests.unit.coord.environment import Environment, datums, environment, run


def test_a_write_is_seen_by_the_next_read_of_everything_above_it() -> None:
    async def scenario(env: Environment) -> None:
        c = env.client()
        await c.run("CREATE TABLE t (a int, b int)")
        await c.run("CREATE VIEW v AS SELECT a, sum(b) AS s FROM t GROUP BY a")
        await c.run("CREATE DEFAULT INDEX ON v")
        await c.run("CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM t")
        for i in range(5):
            await c.run(f"INSERT INTO t VALUES (1, {i})")
            assert await c.value("SELECT s FROM v WHERE a = 1") == sum(range(i + 1))
            assert await c.value("SELECT n FROM m") == i + 1
            assert await c.value("SELECT count(*) FROM t") == i + 1

    run(scenario)


def test_update_delete_and_insert_select_tell_how_many() -> None:
    async def scenario(env: Environment) -> None:
        c = env.client()
        await c.run("CREATE TABLE t (a int, b text)")
        assert await c.run("INSERT INTO t VALUES (1, 'x'), (2, 'y'), (3, 'z')") == ["INSERT 0 3"]
        assert await c.run("UPDATE t SET b = b || '!' WHERE a > 1") == ["UPDATE 2"]
        assert await c.run("INSERT INTO t SELECT a + 10, b FROM t") == ["INSERT 0 3"]
        assert await c.run("DELETE FROM t WHERE a IN (1, 11)") == ["DELETE 2"]
        assert await c.rows("SELECT * FROM t ORDER BY a") == [(2, "y!"), (3, "z!"), (12, "y!"), (13, "z!")]

    run(scenario)


def test_concurrent_increments_all_count() -> None:
    async def scenario(env: Environment) -> None:
        first = env.client()
        await first.run("CREATE TABLE t (n int)")
        await first.run("INSERT INTO t VALUES (0)")
        clients = [env.client() for _ in range(5)]

        async def increment(i: int) -> None:
            for _ in range(4):
                await clients[i].run("UPDATE t SET n = n + 1")

        await asyncio.gather(*(increment(i) for i in range(5)))
        assert await first.rows("SELECT n FROM t") == [(20,)]

    run(scenario)


def test_a_read_transaction_has_one_time() -> None:
    async def scenario(env: Environment) -> None:
        reader, writer = env.client(), env.client()
        await writer.run("CREATE TABLE t (a int)")
        await writer.run("CREATE TABLE u (a int)")
        await writer.run("INSERT INTO t VALUES (1)")
        await reader.run("BEGIN")
        assert await reader.value("SELECT count(*) FROM t") == 1
        await writer.run("INSERT INTO t VALUES (2)")
        await writer.run("INSERT INTO u VALUES (2)")
        assert await reader.value("SELECT count(*) FROM t") == 1
        assert await reader.value("SELECT count(*) FROM u") == 0
        await reader.run("COMMIT")
        assert await reader.value("SELECT count(*) FROM t") == 2

    run(scenario)


def test_a_write_transaction_shows_itself_only_when_it_commits() -> None:
    async def scenario(env: Environment) -> None:
        c, other = env.client(), env.client()
        await c.run("CREATE TABLE t (a int)")
        await c.run("BEGIN")
        await c.run("INSERT INTO t VALUES (1)")
        assert await other.value("SELECT count(*) FROM t") == 0
        error = await c.fails("SELECT * FROM t")
        assert error.message == "transaction in write-only mode"
        assert c.session.transaction_status == b"E"
        assert (await c.fails("SELECT 1")).sqlstate == "25P02"
        assert await c.run("COMMIT") == ["ROLLBACK"]
        await c.run("BEGIN; INSERT INTO t VALUES (1); INSERT INTO t VALUES (2); COMMIT")
        assert await other.value("SELECT count(*) FROM t") == 2

    run(scenario)


def test_a_query_string_is_one_transaction() -> None:
    async def scenario(env: Environment) -> None:
        c = env.client()
        await c.run("CREATE TABLE t (a int)")
        await c.fails("INSERT INTO t VALUES (1); SELECT 1 / 0")
        assert await c.value("SELECT count(*) FROM t") == 0
        await c.run("INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)")
        assert await c.value("SELECT count(*) FROM t") == 2
        error = await c.fails("CREATE TABLE u (a int); SELECT 1")
        assert "cannot be run inside a transaction block" in error.message

    run(scenario)


def test_not_null_is_enforced_and_nothing_is_written() -> None:
    async def scenario(env: Environment) -> None:
        c = env.client()
        await c.run("CREATE TABLE t (a int NOT NULL)")
        error = await c.fails("INSERT INTO t VALUES (1), (NULL)")
        assert error.sqlstate == "23502"
        assert await c.value("SELECT count(*) FROM t") == 0

    run(scenario)


def test_a_prepared_point_read_is_planned_once_for_all_values() -> None:
    async def scenario(env: Environment) -> None:
        c = env.client()
        await c.run("CREATE TABLE t (a int, b text)")
        await c.run("INSERT INTO t VALUES (1, 'x'), (2, 'y')")
        await c.run("CREATE INDEX i ON t (a)")
        await c.session.prepare("p", "SELECT b FROM t WHERE a = $1", [])
        assert await c.execute("p", [1]) == [("x",)]
        generic = c.session.statements["p"].artifacts["generic"]
        assert isinstance(generic.path, PeekExisting)
        assert await c.execute("p", [2]) == [("y",)]
        assert await c.execute("p", [3]) == []
        assert await c.execute("p", [None]) == []
        for oid in (20, 21):  # a driver that declares bigint or smallint where the column is integer
            await c.session.prepare(f"p{oid}", "SELECT b FROM t WHERE a = $1", [oid])
            assert await c.execute(f"p{oid}", [1]) == [("x",)]
            assert isinstance(c.session.statements[f"p{oid}"].artifacts["generic"].path, PeekExisting)
            assert await c.execute(f"p{oid}", [2]) == [("y",)]
        assert await c.execute("p20", [2**40]) == []

    run(scenario)


def test_plans_survive_ddl_elsewhere_and_not_here() -> None:
    async def scenario(env: Environment) -> None:
        c = env.client()
        await c.run("CREATE TABLE t (a int)")
        await c.run("CREATE VIEW v AS SELECT a FROM t")
        planning = env.coordinator.planning
        await c.rows("SELECT a FROM v")
        misses = planning.misses
        await env.client().run("CREATE TABLE elsewhere (a int)")
        misses_of_ddl = planning.misses - misses
        await c.rows("SELECT a FROM v")
        assert planning.misses == misses + misses_of_ddl
        await c.run("CREATE DEFAULT INDEX ON v")
        misses = planning.misses
        await c.rows("SELECT a FROM v")
        assert planning.misses == misses + 1
        await c.run("DROP VIEW v; ")
        assert "unknown catalog item 'v'" in (await c.fails("SELECT a FROM v")).message

    run(scenario)


def test_a_statement_that_waits_can_be_cancelled_and_leaves_nothing() -> None:
    async def scenario(env: Environment) -> None:
        c = env.client()
        await c.run("CREATE TABLE t (a int)")
        waiting = asyncio.ensure_future(c.run("SELECT * FROM t AS OF 18446744073709551615"))
        while not env.coordinator.pending_peeks:
            await asyncio.sleep(0.001)
        env.coordinator.cancel(c.session.pid, c.session.secret + 1)
        await asyncio.sleep(0)
        assert not waiting.done()
        env.coordinator.cancel(c.session.pid, c.session.secret)
        with pytest.raises(SqlError, match="canceling statement due to user request"):
            await waiting
        assert not env.coordinator.pending_peeks
        assert await c.value("SELECT 1") == 1
        c.session.cancel()  # nothing runs: nothing happens
        assert await c.value("SELECT 1") == 1

    run(scenario)


def test_a_statement_times_out() -> None:
    async def scenario(env: Environment) -> None:
        c = env.client()
        await c.run("CREATE TABLE t (a int)")
        await c.run("SET statement_timeout = '100ms'")
        error = await c.fails("SELECT * FROM t AS OF 18446744073709551615")
        assert error.message == "canceling statement due to statement timeout"

    run(scenario)


def test_waiting_for_a_lock_can_be_cancelled() -> None:
    async def scenario(env: Environment) -> None:
        c, other = env.client(), env.client()
        await c.run("CREATE TABLE t (a int)")
        (table,) = [i.id for i in env.coordinator.state.items.values()]
        await env.coordinator.group_commit.lock([table], "somebody")
        waiting = asyncio.ensure_future(c.run("UPDATE t SET a = 1"))
        await asyncio.sleep(0.01)
        c.session.cancel()
        with pytest.raises(SqlError, match="canceling statement"):
            await waiting
        env.coordinator.group_commit.unlock([table], "somebody")
        assert await other.run("UPDATE t SET a = 2") == ["UPDATE 0"]

    run(scenario)


def test_dropping_what_is_read_ends_the_read() -> None:
    async def scenario(env: Environment) -> None:
        c, other = env.client(), env.client()
        await c.run("CREATE TABLE t (a int)")
        waiting = asyncio.ensure_future(c.run("SELECT * FROM t AS OF 18446744073709551615"))
        while not env.coordinator.pending_peeks:
            await asyncio.sleep(0.001)
        await other.run("DROP TABLE t")
        with pytest.raises(SqlError, match='relation "t" was dropped'):
            await waiting

    run(scenario)


def test_a_subscribe_follows_and_ends_with_its_session() -> None:
    async def scenario(env: Environment) -> None:
        c, writer = env.client(), env.client()
        await writer.run("CREATE TABLE t (a int)")
        await writer.run("INSERT INTO t VALUES (1)")
        session = c.session
        (statement,) = session.parse("SUBSCRIBE t")
        session.begin_implicit(1)
        result = await session.execute_simple(statement)
        assert isinstance(result, Rows)
        stream = result.batches
        assert not isinstance(stream, list)
        first = await anext(stream)  # type: ignore[call-overload]
        assert [row[1:] for row in datums(result, first)] == [(1, 1)]
        await writer.run("UPDATE t SET a = 2")
        second = await anext(stream)  # type: ignore[call-overload]
        assert sorted(row[1:] for row in datums(result, second)) == [(-1, 1), (1, 2)]
        assert len(env.coordinator.sequencer.subscribes.active) == 1
        session.cancel()
        with pytest.raises(SqlError, match="canceling statement"):
            await anext(stream)  # type: ignore[call-overload]
        assert not env.coordinator.sequencer.subscribes.active

    run(scenario)


def test_a_cursor_hands_out_rows_in_pieces() -> None:
    async def scenario(env: Environment) -> None:
        c = env.client()
        await c.run("BEGIN")
        await c.run("DECLARE c CURSOR FOR VALUES (1), (2), (3)")
        assert await c.rows("FETCH c") == [(1,)]
        assert await c.rows("FETCH 2 c") == [(2,), (3,)]
        assert await c.rows("FETCH ALL c") == []
        await c.run("COMMIT")
        assert (await c.fails("FETCH c")).sqlstate == "34000"

    run(scenario)


def test_copy_in_and_out() -> None:
    async def scenario(env: Environment) -> None:
        c = env.client()
        await c.run("CREATE TABLE t (a int, b text)")
        session = c.session
        (statement,) = session.parse("COPY t FROM STDIN")
        session.begin_implicit(1)
        sink = await session.execute_simple(statement)
        assert isinstance(sink, CopyIn)
        await sink.feed(b"1\tx\n2\t")
        await sink.feed(b"\\N\n")
        assert await sink.finish() == "COPY 2"
        await session.end_implicit()
        assert await c.rows("SELECT * FROM t ORDER BY a") == [(1, "x"), (2, None)]
        (out,) = await c.run("COPY (SELECT * FROM t ORDER BY a) TO STDOUT")
        assert isinstance(out, CopyOut)
        assert b"".join([row async for rows in out.chunks for row in rows]) == b"1\tx\n2\t\\N\n"
        assert out.command_tag() == "COPY 2"

    run(scenario)


def test_dependents_restrict_a_drop_unless_it_cascades() -> None:
    async def scenario(env: Environment) -> None:
        c = env.client()
        await c.run("CREATE TABLE t (a int)")
        await c.run("CREATE DEFAULT INDEX ON t")
        await c.run("CREATE VIEW v AS SELECT * FROM t")
        error = await c.fails("DROP TABLE t")
        assert error.message == 'cannot drop table "t": still depended upon by view "v"'
        await c.run("DROP TABLE t CASCADE")
        assert not env.coordinator.state.items
        while env.coordinator.storage.shards():  # once the replica has let go of the index
            await asyncio.sleep(0.01)

    run(scenario)


def test_everything_is_there_after_a_restart(tmp_path: Path) -> None:
    async def first() -> None:
        async with environment(tmp_path / "db") as env:
            c = env.client()
            await c.run("CREATE TABLE t (a int, b int DEFAULT 7)")
            await c.run("INSERT INTO t (a) VALUES (1), (2)")
            await c.run("CREATE VIEW v AS SELECT a, b FROM t WHERE a > 1")
            await c.run("CREATE INDEX vi ON v (a)")
            await c.run("CREATE MATERIALIZED VIEW m AS SELECT sum(b) AS s FROM t")
            assert await c.value("SELECT s FROM m") == 14
            await env.client("mz_system").run("ALTER SYSTEM SET max_tables = 3")

    async def second() -> None:
        async with environment(tmp_path / "db") as env:
            c = env.client()
            assert await c.rows("SELECT * FROM v WHERE a = 2") == [(2, 7)]
            assert await c.value("SELECT s FROM m") == 14
            await c.run("INSERT INTO t (a) VALUES (3)")
            assert await c.value("SELECT s FROM m") == 21
            assert await c.value("SHOW max_tables") == "3"
            assert await c.value("SELECT id FROM mz_tables WHERE name = 't'") == "u1"

    asyncio.run(first())
    asyncio.run(second())


def test_only_mz_system_alters_the_system() -> None:
    async def scenario(env: Environment) -> None:
        error = await env.client().fails("ALTER SYSTEM SET max_tables = 5")
        assert error.sqlstate == "42501"
        admin = env.client("mz_system")
        await admin.run("ALTER SYSTEM SET max_tables = 1")
        c = env.client()
        await c.run("CREATE TABLE t (a int)")
        assert "max_tables limit" in (await c.fails("CREATE TABLE u (a int)")).message
        with pytest.raises(SqlError, match="only allowed from the machine"):
            env.coordinator.connect("mz_system", None, {}, False)

    run(scenario)


def test_the_interactive_flag_is_read_when_a_replica_is_provisioned() -> None:
    async def scenario(env: Environment) -> None:
        admin, c = env.client("mz_system"), env.client()
        replicas = env.controller.replicas
        assert [r.interactive for r in replicas("u1").values()] == [True]  # type: ignore[arg-type]
        await admin.run("ALTER SYSTEM SET enable_compute_interactive_runtime = off")
        assert [r.interactive for r in replicas("u1").values()] == [True]  # type: ignore[arg-type]
        await c.run("CREATE CLUSTER one (SIZE 'scale=1,workers=1')")
        await admin.run("ALTER SYSTEM RESET enable_compute_interactive_runtime")
        assert [r.interactive for r in replicas("u2").values()] == [False]  # type: ignore[arg-type]
        await c.run("CREATE CLUSTER named REPLICAS (r1 (SIZE 'scale=1,workers=1'))")
        assert [r.interactive for r in replicas("u3").values()] == [False]  # type: ignore[arg-type]
        await c.run("SET cluster = one")
        assert await c.value("SELECT count(*) FROM (VALUES (1), (2)) v, generate_series(1, 3) g") == 6

    run(scenario)


def test_a_cluster_without_replicas_says_so() -> None:
    async def scenario(env: Environment) -> None:
        c = env.client()
        await c.run("CREATE TABLE t (a int)")
        await c.run("CREATE CLUSTER none (SIZE 'scale=1,workers=1', REPLICATION FACTOR 0)")
        await c.run("SET cluster = none")
        assert "has no replicas available" in (await c.fails("SELECT * FROM t")).message
        await c.run("SET cluster = nowhere")
        assert (await c.fails("SELECT * FROM t")).message == "unknown cluster 'nowhere'"
        assert await c.value("SELECT 1 + 1") == 2

    run(scenario)
