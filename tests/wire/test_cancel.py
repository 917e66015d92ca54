"""Cancellation and timeouts."""

from __future__ import annotations

import socket
import struct
import threading
import time
from typing import Any

import psycopg
import pytest
from psycopg import errors

from tests.support.mzlite_server import Server
from tests.wire.raw import RawClient, query

LONG = "SELECT sum(a.a * b.b % 7) FROM generate_series(1, 100000) a(a), generate_series(1, 100000) b(b)"
Conn = psycopg.Connection[tuple[Any, ...]]


def test_cancel_from_another_connection(mz: Conn) -> None:
    timer = threading.Timer(0.2, mz.cancel)
    timer.start()
    with pytest.raises(errors.QueryCanceled):
        mz.execute(LONG)
    assert mz.execute("SELECT 1").fetchone() == (1,)


def test_cancel_needs_the_secret(mzlite_server: Server, mz: Conn) -> None:
    with RawClient(mzlite_server.port) as c:
        c.send(query("SELECT mz_now()"))
        c.until_ready()
        c.send(query(LONG))
        with socket.create_connection(("127.0.0.1", mzlite_server.port)) as s:
            s.sendall(struct.pack("!iiII", 16, 80877102, c.key[0], (c.key[1] + 1) & 0xFFFFFFFF))
            assert s.recv(1) == b""  # no answer in either case
        c.sock.settimeout(0.3)
        with pytest.raises(TimeoutError):
            c.message()
        c.sock.settimeout(20)
        with socket.create_connection(("127.0.0.1", mzlite_server.port)) as s:
            s.sendall(struct.pack("!iiII", 16, 80877102, *c.key))
            assert s.recv(1) == b""
        assert c.until_ready() == [("Error", "57014"), ("Ready", "I")]


def test_a_cancel_that_comes_too_late_cancels_nothing(mz: Conn) -> None:
    for _ in range(5):
        mz.cancel()
        assert mz.execute("SELECT 1").fetchone() == (1,)


def test_cancel_inside_a_transaction_fails_it(mz: Conn) -> None:
    mz.execute("BEGIN")
    threading.Timer(0.2, mz.cancel).start()
    with pytest.raises(errors.QueryCanceled):
        mz.execute(LONG)
    with pytest.raises(errors.InFailedSqlTransaction):
        mz.execute("SELECT 1")
    mz.execute("ROLLBACK")


def test_statement_timeout(mz: Conn) -> None:
    mz.execute("SET statement_timeout = '200ms'")
    started = time.monotonic()
    with pytest.raises(errors.QueryCanceled, match="timeout"):
        mz.execute(LONG)
    assert time.monotonic() - started < 10
    assert mz.execute("SELECT 1").fetchone() == (1,)
    mz.execute("RESET statement_timeout")


def test_idle_in_transaction_timeout(mzlite_server: Server) -> None:
    with mzlite_server.connect() as conn:
        conn.execute("SET idle_in_transaction_session_timeout = '100ms'")
        conn.execute("BEGIN")
        conn.execute("SELECT 1")
        time.sleep(0.6)
        with pytest.raises(psycopg.Error):
            conn.execute("SELECT 1")


def test_what_was_cancelled_leaves_nothing_running(mzlite_server: Server, mz: Conn) -> None:
    for _ in range(3):
        threading.Timer(0.1, mz.cancel).start()
        with pytest.raises(errors.QueryCanceled):
            mz.execute(LONG)
    # The workers are free at once for others.
    mz.execute("CREATE TABLE t (a int)")
    mz.execute("CREATE VIEW v AS SELECT a, count(*) FROM t GROUP BY a")
    started = time.monotonic()
    mz.execute("INSERT INTO t VALUES (1)")
    assert mz.execute("SELECT * FROM v").fetchall() == [(1, 1)]
    assert time.monotonic() - started < 10
