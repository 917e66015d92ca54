"""A recursion without end, stopped in every form it can take: nothing of it stays, and what is asked next is answered."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from psycopg import errors

from tests.support.mzlite_server import Server, running, wait_until

Conn = psycopg.Connection[tuple[Any, ...]]
ENDLESS = "WITH MUTUALLY RECURSIVE r (n int8) AS (SELECT a::int8 FROM seed UNION SELECT n + 1 FROM r) SELECT max(n) AS n FROM r"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Cluster `two` has two runtimes, cluster `one` a single one."""
    with running() as server:
        with server.connect() as conn, server.connect(user="mz_system") as system:
            conn.execute("CREATE TABLE seed (a int)")
            conn.execute("CREATE TABLE target (n int8)")
            conn.execute("INSERT INTO seed VALUES (1), (2)")
            for name, setting in (("two", "on"), ("one", "off")):
                system.execute(f"ALTER SYSTEM SET enable_compute_interactive_runtime = {setting}")
                conn.execute(f"CREATE CLUSTER {name} SIZE 'scale=1,workers=1', REPLICATION FACTOR 1")
            system.execute("ALTER SYSTEM RESET enable_compute_interactive_runtime")
        yield server
        log = server.log()
        assert "Traceback" not in log, log


class Cluster:
    """Connections that use one cluster: `conn` acts, `watch` looks."""

    def __init__(self, server: Server, name: str) -> None:
        self.conn, self.watch = server.connect(), server.connect()
        for c in (self.conn, self.watch):
            c.execute(f"SET cluster = {name}")
        self.watch.execute("SET transaction_isolation = serializable")
        self.before = self.exports()
        self.last: set[str] = set()

    def exports(self) -> set[str]:
        return {i for (i,) in self.watch.execute("SELECT export_id FROM mz_introspection.mz_compute_exports")}

    def lasting(self) -> set[str]:
        """Exports seen twice in a row: those of the looks themselves are gone at the next look."""
        last, self.last = self.last, self.exports()
        return (last & self.last) - self.before

    def await_start(self) -> set[str]:
        found: set[str] = wait_until(self.lasting, "introspection shows the recursion")
        return found

    def assert_over(self, ids: set[str]) -> None:
        wait_until(lambda: not ids & self.exports(), f"{ids} leave introspection")
        for query in (
            "SELECT global_id FROM mz_introspection.mz_dataflow_global_ids",
            "SELECT export_id FROM mz_introspection.mz_compute_frontiers",
            "SELECT object_id FROM mz_introspection.mz_active_peeks",
        ):
            wait_until(lambda q=query: not ids & {i for (i,) in self.watch.execute(q)}, f"{ids} leave: {query}")
        # Neither runtime is busy: a lookup and a one-shot dataflow answer.
        assert self.conn.execute("SELECT a FROM seed ORDER BY a").fetchall() == [(1,), (2,)]
        assert self.conn.execute("SELECT count(*) FROM seed x, seed y WHERE x.a <= y.a").fetchone() == (3,)

    def close(self) -> None:
        self.conn.close()
        self.watch.close()


@pytest.fixture(params=["one", "two"])
def cluster(server: Server, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    cluster = Cluster(server, request.param)
    try:
        yield cluster
    finally:
        cluster.close()


def test_dropping_an_endless_index_ends_its_work(cluster: Cluster) -> None:
    cluster.conn.execute(f"CREATE VIEW endless AS {ENDLESS}")
    try:
        cluster.conn.execute("CREATE INDEX endless_index ON endless (n)")
        ids = cluster.await_start()
    finally:
        cluster.conn.execute("DROP VIEW endless CASCADE")
    cluster.assert_over(ids)


def test_dropping_an_endless_materialized_view_ends_its_work(cluster: Cluster) -> None:
    cluster.conn.execute(f"CREATE MATERIALIZED VIEW endless AS {ENDLESS}")
    try:
        ids = cluster.await_start()
    finally:
        cluster.conn.execute("DROP MATERIALIZED VIEW endless")
    cluster.assert_over(ids)


def cancelled(cluster: Cluster, statement: Callable[[], object]) -> None:
    """Run the statement, wait until introspection shows it, cancel it, and look for what it left."""
    raised: list[BaseException] = []

    def work() -> None:
        try:
            statement()
        except psycopg.Error as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        ids = cluster.await_start()
    finally:
        cluster.conn.cancel()
        thread.join(30)
    assert not thread.is_alive()
    assert [type(e) for e in raised] == [errors.QueryCanceled]
    cluster.assert_over(ids)


def test_an_endless_select_is_cancelled(cluster: Cluster) -> None:
    cancelled(cluster, lambda: cluster.conn.execute(ENDLESS))


def test_an_endless_subscription_is_cancelled(cluster: Cluster) -> None:
    cancelled(cluster, lambda: list(cluster.conn.cursor().stream(f"SUBSCRIBE ({ENDLESS}) WITH (SNAPSHOT)")))


def test_the_endless_read_of_an_insert_is_cancelled(cluster: Cluster) -> None:
    cancelled(cluster, lambda: cluster.conn.execute(f"INSERT INTO target {ENDLESS}"))
    assert cluster.conn.execute("SELECT count(*) FROM target").fetchone() == (0,)
