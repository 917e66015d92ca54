"""kill -9: of the server under writes, of worker processes under reads. What was acknowledged is there; reads go on."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.support.mzlite_server import Server, alive, descendants, running, wait_until

VIEWS = {
    "by_writer": "SELECT writer, count(*) AS n, sum(i) AS total FROM log GROUP BY writer",
    "last_of": "SELECT DISTINCT ON (writer) writer, i FROM log ORDER BY writer, i DESC",
    "pairs": "SELECT a.writer, count(*) FROM log a JOIN log b ON a.i = b.i AND a.writer < b.writer GROUP BY a.writer",
}


def create(conn: psycopg.Connection[tuple[Any, ...]]) -> None:
    conn.execute("CREATE TABLE log (writer int, i int)")
    for n, (name, sql) in enumerate(VIEWS.items()):
        conn.execute(f"CREATE {'MATERIALIZED ' if n != 1 else ''}VIEW {name} AS {sql}")  # type: ignore[arg-type]
    conn.execute("CREATE DEFAULT INDEX ON last_of")
    conn.execute("CREATE DEFAULT INDEX ON by_writer")


def write(server: Server, writer: int, start: int, acknowledged: dict[int, int], stop: threading.Event) -> None:
    """Insert ascending numbers, in transactions of a few; remember the last one acknowledged."""
    with contextlib.suppress(psycopg.Error), server.connect(autocommit=False) as conn:
        i = start
        while not stop.is_set():
            size = random.Random(i).randint(1, 3)
            for k in range(size):
                conn.execute("INSERT INTO log VALUES (%s, %s)", (writer, i + k))
            conn.commit()
            i += size
            acknowledged[writer] = i - 1


def test_acknowledged_writes_survive_kill_9(tmp_path: Path) -> None:
    acknowledged: dict[int, int] = {}
    seed = random.randrange(1 << 30)
    rng = random.Random(seed)
    for life in range(3):
        server = Server("--data-dir", str(tmp_path / "db"))
        below = descendants(server.pid)
        try:
            with server.connect() as conn:
                if life == 0:
                    create(conn)
                rows = conn.execute("SELECT writer, i FROM log").fetchall()
                for writer, last in acknowledged.items():
                    have = sorted(i for w, i in rows if w == writer)
                    assert have[: last + 1] == list(range(last + 1)), (seed, life, writer, last, have[-5:])
                    assert have == list(range(len(have)))  # whole transactions, each once
                for name, sql in VIEWS.items():
                    maintained = sorted(conn.execute(f"SELECT * FROM {name}").fetchall())  # type: ignore[arg-type]
                    assert maintained == sorted(conn.execute(sql).fetchall()), (seed, life, name)  # type: ignore[arg-type]
                starts = {w: 1 + max((i for v, i in rows if v == w), default=-1) for w in range(3)}
            if life == 2:
                server.stop()
                return
            stop = threading.Event()
            threads = [
                threading.Thread(target=write, args=(server, w, starts[w], acknowledged, stop)) for w in range(3)
            ]
            for t in threads:
                t.start()
            time.sleep(rng.uniform(0.15, 0.6))
            server.kill()
            stop.set()
            for t in threads:
                t.join(20)
            for pid in below:
                wait_until(lambda pid=pid: not alive(pid), f"worker {pid} outlives its server")
        finally:
            server.close()


def victims(server: Server) -> Iterator[int]:
    """Kill the processes below the server one after another, newest first: workers of both runtimes, at last the one they
    are forked from."""
    for n in range(len(descendants(server.pid))):
        left = sorted(descendants(server.pid), reverse=True)
        pid = left[min(n, len(left) - 1)]
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda pid=pid: not alive(pid), "the victim dies")
        yield pid


def test_worker_processes_are_replaced() -> None:
    with running() as server, server.connect() as conn:
        create(conn)
        conn.execute("INSERT INTO log SELECT x % 3, x FROM generate_series(1, 300) x")
        expected = {name: sorted(conn.execute(f"SELECT * FROM {name}").fetchall()) for name in VIEWS}  # type: ignore[arg-type]
        conn.execute("SET statement_timeout = '30s'")
        for n, _ in enumerate(victims(server)):
            conn.execute("INSERT INTO log VALUES (7, %s)", (n,))
            for name, sql in VIEWS.items():
                got = sorted(conn.execute(f"SELECT * FROM {name}").fetchall())  # type: ignore[arg-type]
                assert got == sorted(conn.execute(sql).fetchall()), (n, name)  # type: ignore[arg-type]
        conn.execute("DELETE FROM log WHERE writer = 7")
        for name in VIEWS:
            assert sorted(conn.execute(f"SELECT * FROM {name}").fetchall()) == expected[name]  # type: ignore[arg-type]


def test_reads_in_flight_survive_the_loss_of_a_worker() -> None:
    """Point reads from several clients while every worker is killed once: each is answered rightly, or with an error."""
    with running() as server:
        with server.connect() as conn:
            create(conn)
            conn.execute("INSERT INTO log SELECT x % 3, x FROM generate_series(1, 300) x")
            expected = conn.execute("SELECT n FROM by_writer WHERE writer = 1").fetchone()
        stop = threading.Event()
        answers: list[object] = []
        failures: list[str] = []

        def read() -> None:
            with server.connect() as conn:
                conn.execute("SET statement_timeout = '20s'")
                while not stop.is_set():
                    try:
                        answers.append(conn.execute("SELECT n FROM by_writer WHERE writer = 1").fetchone())
                    except psycopg.Error as error:
                        failures.append(str(error))
                        return

        threads = [threading.Thread(target=read) for _ in range(3)]
        for t in threads:
            t.start()
        for _ in victims(server):
            before = len(answers)
            wait_until(lambda before=before: len(answers) > before + 50 or failures, "reads go on")
        stop.set()
        for t in threads:
            t.join(30)
        assert not failures
        assert set(answers) == {expected}


@pytest.mark.parametrize("when", ["idle", "busy"])
def test_nothing_outlives_a_killed_server(when: str, tmp_path: Path) -> None:
    server = Server(env={"TMPDIR": str(tmp_path)})
    conn = server.connect()
    conn.execute("CREATE TABLE t (a int)")
    if when == "busy":
        thread = threading.Thread(target=_ignore_loss, args=(server,))
        thread.start()
        time.sleep(0.3)
    below = descendants(server.pid)
    assert below
    server.kill()
    for pid in below:
        wait_until(lambda pid=pid: not alive(pid), f"process {pid} outlives its server")
    server.close()
    if when == "busy":
        thread.join(20)


def _ignore_loss(server: Server) -> None:
    with contextlib.suppress(psycopg.Error), server.connect() as conn:
        conn.execute("SELECT sum(a.a * b.b % 7) FROM generate_series(1, 100000) a(a), generate_series(1, 100000) b(b)")
