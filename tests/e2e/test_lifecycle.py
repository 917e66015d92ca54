"""Starting and stopping, from outside: exit statuses, messages, and what is left behind."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import psycopg
import pytest

import mzlite
from mzlite.repr.errors import SqlError
from tests.support.mzlite_server import ROOT, Server, alive, descendants, running, wait_until


def cli(*args: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mzlite", *args], capture_output=True, text=True, timeout=60, cwd=ROOT, **options
    )  # type: ignore[call-overload, no-any-return]


def refused(directory: Path, *words: str) -> None:
    """`mzlite serve` on the directory says why not and exits with 1."""
    done = cli("serve", "--listen", "127.0.0.1:0", "--data-dir", str(directory))
    assert done.returncode == 1 and not done.stdout
    assert "Traceback" not in done.stderr and done.stderr.startswith("mzlite: ")
    for w in words:
        assert w in done.stderr, done.stderr


@pytest.fixture(scope="module")
def small_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("small") / "db"
    with mzlite.open(directory) as db, db.connect() as conn:
        conn.execute("CREATE TABLE t (a int)")
        conn.execute("INSERT INTO t VALUES (1), (2)")
        conn.execute("CREATE MATERIALIZED VIEW m AS SELECT sum(a) FROM t")
    return directory


def test_sigterm_leaves_nothing(tmp_path: Path) -> None:
    with running(env={"TMPDIR": str(tmp_path)}) as server:
        with server.connect() as conn:
            conn.execute("CREATE TABLE t (a int)")
            conn.execute("CREATE VIEW v AS SELECT a, count(*) FROM t GROUP BY a")
            conn.execute("CREATE DEFAULT INDEX ON v")
            conn.execute("INSERT INTO t SELECT * FROM generate_series(1, 100000)")
            assert conn.execute("SELECT count(*) FROM v").fetchone() == (100000,)
        idle = server.connect()
        busy = server.connect()
        busy.pgconn.send_query(
            b"SELECT sum(a.a * b.b % 7) FROM generate_series(1, 100000) a(a), generate_series(1, 100000) b(b)"
        )
        below = descendants(server.pid)
        assert server.stop() == 0
        assert not [pid for pid in below if alive(pid)]
        assert list(tmp_path.iterdir()) == []
        assert server.log() == "" if not server.errors.closed else True
        with pytest.raises(psycopg.OperationalError, match="terminating connection"):
            idle.execute("SELECT 1")


def test_sigint_stops_a_server_too() -> None:
    with running() as server:
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(30) == 0


def test_a_restart_finds_everything(small_database: Path) -> None:
    with running("--data-dir", str(small_database)) as server, server.connect() as conn:
        assert conn.execute("SELECT * FROM m").fetchall() == [(3,)]
        conn.execute("INSERT INTO t VALUES (4)")
        assert conn.execute("SELECT * FROM m").fetchall() == [(7,)]
        conn.execute("DELETE FROM t WHERE a = 4")


def test_a_directory_in_use(small_database: Path) -> None:
    with running("--data-dir", str(small_database)) as server:
        refused(small_database, "in use", str(server.pid))
        with pytest.raises(SqlError, match="in use"):
            mzlite.open(small_database)
        with server.connect() as conn:
            assert conn.execute("SELECT count(*) FROM t").fetchone() == (2,)


def test_a_lock_file_left_behind_locks_nobody_out(small_database: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(small_database, tmp_path / "copy")
    (copy / "LOCK").write_text(f"{os.getpid()}\n")
    with running("--data-dir", str(copy)) as server, server.connect() as conn:
        assert conn.execute("SELECT count(*) FROM t").fetchone() == (2,)


def test_a_newer_format(small_database: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(small_database, tmp_path / "copy")
    with sqlite3.connect(copy / "mzlite.db") as db:
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        changed = 0
        for table in tables:
            columns = [c[1] for c in db.execute(f"PRAGMA table_info({table})")]
            for column in columns:
                if "version" in column or "format" in column:
                    changed += db.execute(f"UPDATE {table} SET {column} = 999").rowcount
            if set(columns) == {"key", "value"}:
                changed += db.execute(
                    f"UPDATE {table} SET value = '999' WHERE key LIKE '%format%' OR key LIKE '%version%'"
                ).rowcount
        if not changed:
            db.execute("PRAGMA user_version = 999")
    db.close()
    refused(copy, "format 999")


def test_a_corrupted_directory(small_database: Path, tmp_path: Path) -> None:
    garbage = shutil.copytree(small_database, tmp_path / "garbage")
    for file in garbage.glob("mzlite.db*"):
        file.write_bytes(b"not a database" * 1000)
    refused(garbage, str(garbage))
    short = shutil.copytree(small_database, tmp_path / "short")
    with open(short / "mzlite.db", "r+b") as file:
        file.truncate(5000)
    refused(short, str(short))


def test_places_where_no_database_can_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    refused(tmp_path / "file", "cannot open data directory")
    refused(tmp_path / "file" / "below", "cannot open data directory")
    if os.geteuid() != 0:  # root may write anywhere
        (tmp_path / "sealed").mkdir(mode=0o555)
        refused(tmp_path / "sealed" / "db", "ermission denied")


def test_a_port_in_use() -> None:
    with running() as server:
        done = cli("serve", "--listen", f"127.0.0.1:{server.port}")
        assert done.returncode == 1 and "cannot listen on" in done.stderr and "--listen" in done.stderr
        assert "Traceback" not in done.stderr
    assert cli("serve", "--listen", "nowhere").returncode == 2
    done = cli("serve", "--listen", "host.invalid:0")
    assert done.returncode == 1 and "cannot listen on" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("args", "status", "out", "err"),
    [
        (["-c", "SELECT 1 AS one"], 0, "one", ""),
        (["-c", "SELECT 1/0"], 1, "", "division by zero"),
        (["-c", "SELECT 1/0", "-c", "SELECT 'after'"], 1, "", "division by zero"),
        (["-c", "CREATE TABLE t (a int); INSERT INTO t VALUES (1); SELECT a + 1 AS b FROM t"], 0, "2", ""),
        (["-c", ""], 0, "", ""),
        (["-f", "there/is/no/such.sql"], 1, "", "cannot read"),
        (["--version"], 0, "mzlite ", ""),
        (["--no-such-option"], 2, "", "usage"),
        (["connect", "postgres://nobody@127.0.0.1:1/x", "-c", "SELECT 1"], None, "", "127.0.0.1"),
    ],
)
def test_exit_statuses(args: list[str], status: int | None, out: str, err: str) -> None:
    done = cli(*args)
    assert done.returncode == status if status is not None else done.returncode != 0, done.stderr
    assert out in done.stdout and err in done.stderr and "Traceback" not in done.stderr
    assert "after" not in done.stdout


def test_statements_from_a_file_and_from_a_pipe(tmp_path: Path) -> None:
    script = tmp_path / "s.sql"
    script.write_text(
        "CREATE TABLE t (a int);\nINSERT INTO t VALUES (1), (2);\n-- a comment\nSELECT sum(a) AS total FROM t;\n"
    )
    assert "3" in cli("-f", str(script)).stdout
    assert "3" in cli(input=script.read_text()).stdout


def test_open_and_close(tmp_path: Path) -> None:
    with mzlite.open(tmp_path / "db") as db:
        pid = db._process.pid
        with db.connect() as conn:
            conn.execute("CREATE TABLE t (a int)")
        with psycopg.connect(db.dsn, autocommit=True) as conn:
            conn.execute("INSERT INTO t VALUES (1)")
    assert not alive(pid)
    db.close()
    with mzlite.open(tmp_path / "db") as db, db.connect() as conn:
        assert conn.execute("SELECT * FROM t").fetchall() == [(1,)]


def test_two_embedded_databases_know_nothing_of_each_other() -> None:
    with mzlite.open() as one, mzlite.open() as two, one.connect() as a, two.connect() as b:
        a.execute("CREATE TABLE t (a int)")
        with pytest.raises(psycopg.errors.UndefinedTable):
            b.execute("SELECT * FROM t")
        b.execute("CREATE TABLE t (a text)")
        b.execute("INSERT INTO t VALUES ('b')")
        assert a.execute("SELECT * FROM t").fetchall() == []


def test_an_embedded_database_ends_with_its_parent() -> None:
    program = """
        import mzlite, sys, time
        db = mzlite.open()
        with db.connect() as conn:
            conn.execute("CREATE TABLE t (a int)")
            conn.execute("SELECT count(*) FROM t")
        print(db._process.pid, flush=True)
        time.sleep(60)
    """
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    pids = [pid, *descendants(pid)]
    assert len(pids) > 1
    parent.kill()
    parent.wait()
    parent.stdout.close()
    for p in pids:
        wait_until(lambda p=p: not alive(p), f"process {p} outlives its parent")


def test_the_descriptor_limit_is_the_hard_one() -> None:
    with running() as server:
        limits = Path(f"/proc/{server.pid}/limits").read_text()
        soft, hard = next(line for line in limits.splitlines() if line.startswith("Max open files")).split()[3:5]
        assert soft == hard


def test_options_that_make_no_sense() -> None:
    assert cli("serve", "--tls-cert", "x.pem").returncode == 2
    assert cli("connect").returncode == 2
    assert isinstance(Server, type)
