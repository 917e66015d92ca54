"""Clients that misbehave or vanish: a clear error where one can be given, and nothing is left behind."""

from __future__ import annotations

import random
import socket
import struct
import time
from collections.abc import Iterator

import psycopg
import pytest

from tests.support.mzlite_server import Server, running, wait_until
from tests.wire import raw
from tests.wire.raw import FLUSH, RawClient, bind, execute, parse, query

LONG = "SELECT sum(a.a * b.b % 7) FROM generate_series(1, 100000) a(a), generate_series(1, 100000) b(b)"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """Of their own, to count what is open."""
    with running() as server:
        with server.connect() as conn:  # what is opened once, at the first use
            conn.execute("CREATE TABLE first (a int)")
            conn.execute("INSERT INTO first VALUES (1)")
            conn.execute("SELECT count(*) FROM first")
        yield server
        log = server.log()
        assert "Traceback" not in log, log


@pytest.fixture
def nothing_left(server: Server) -> Iterator[None]:
    """The server has as many descriptors, processes and sessions after the test as before."""
    with server.connect() as conn:
        conn.execute("SELECT 1")
        files, processes = server.open_files(), sorted(server.processes())
        yield
        wait_until(lambda: server.open_files() <= files, "descriptors are given back")
        assert sorted(server.processes()) == processes
        wait_until(
            lambda: conn.execute("SELECT count(*) FROM mz_internal.mz_sessions").fetchone() == (1,),
            "sessions are closed",
        )
        assert conn.execute("SELECT 1 + 1").fetchone() == (2,)


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),  # a TLS hello without asking
        struct.pack("!i", 2**31 - 1),
        struct.pack("!ii", 8, 131072),  # protocol 2
        struct.pack("!ii", 9, 196608) + b"x",  # no terminator
        random.Random(1).randbytes(64),
    ],
)
@pytest.mark.usefixtures("nothing_left")
def test_garbage_instead_of_a_startup_packet(server: Server, garbage: bytes) -> None:
    with RawClient(server.port, None) as c:
        c.send(garbage)
        c.sock.shutdown(socket.SHUT_WR)
        data = b""
        while more := c.sock.recv(4096):
            data += more
        assert not data or data.startswith(b"E")


@pytest.mark.usefixtures("nothing_left")
def test_garbage_after_the_startup(server: Server) -> None:
    for garbage in (b"\xff\x00\x00\x00\x05x", b"Q\x00\x00\x00\x01", b"Q" + struct.pack("!i", 2**31 - 1)):
        with RawClient(server.port) as c:
            c.send(garbage)
            assert c.message()[1] == "08P01"
            assert c.at_end()


@pytest.mark.usefixtures("nothing_left")
def test_malformed_bodies_are_errors_of_their_message(server: Server) -> None:
    with RawClient(server.port) as c:
        for tag in (b"P", b"B", b"D", b"E", b"C"):
            got = c.ask(raw.packet(tag, b"\x00"), raw.SYNC)
            assert got == [("Error", "08P01"), ("Ready", "I")]
        assert c.ask(raw.packet(b"Q", b"SELECT '\xff'\0")) == [("Error", "22021"), ("Ready", "I")]
        assert c.rows("SELECT 1") == [(b"1",)]


@pytest.mark.usefixtures("nothing_left")
def test_connections_that_say_nothing(server: Server) -> None:
    silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
    with RawClient(server.port) as c:
        assert c.rows("SELECT 1") == [(b"1",)]
    for s in silent:
        s.close()


@pytest.mark.usefixtures("nothing_left")
def test_a_client_that_vanishes_in_a_copy(server: Server) -> None:
    with server.connect() as conn:
        conn.execute("CREATE TABLE half (a int)")
        for reset in (False, True):
            c = RawClient(server.port)
            c.send(query("COPY half FROM STDIN"))
            c.until("CopyIn")
            c.send(raw.packet(b"d", b"1\n2\n"))
            c.vanish() if reset else c.sock.close()
        assert conn.execute("SELECT count(*) FROM half").fetchone() == (0,)
        conn.execute("INSERT INTO half VALUES (1)")
        conn.execute("DROP TABLE half")


@pytest.mark.usefixtures("nothing_left")
def test_a_client_that_vanishes_in_a_query(server: Server) -> None:
    for reset in (False, True):
        c = RawClient(server.port)
        c.send(query(LONG))
        time.sleep(0.05)
        c.vanish() if reset else c.sock.close()
    with server.connect() as conn:
        started = time.monotonic()
        conn.execute("CREATE TABLE after_it (a int)")
        assert conn.execute("SELECT count(*) FROM after_it").fetchone() == (0,)
        conn.execute("DROP TABLE after_it")
        assert time.monotonic() - started < 30


@pytest.mark.usefixtures("nothing_left")
def test_a_client_that_vanishes_while_rows_are_sent(server: Server) -> None:
    c = RawClient(server.port)
    c.send(query("SELECT repeat('x', 1000) FROM generate_series(1, 20000)"))
    c.message()
    c.vanish()


@pytest.mark.usefixtures("nothing_left")
def test_a_client_that_vanishes_from_a_subscribe_a_transaction_and_a_portal(server: Server) -> None:
    with server.connect() as conn:
        conn.execute("CREATE TABLE watched (a int)")
        one, two, three, four = (RawClient(server.port) for _ in range(4))
        one.send(query("COPY (SUBSCRIBE watched) TO STDOUT"))
        one.until("CopyOut")
        two.ask(query("BEGIN; INSERT INTO watched VALUES (1)"))
        three.ask(query("BEGIN"))
        three.ask(parse("SELECT * FROM generate_series(1, 10)"), bind(portal="p"), execute(1, "p"), raw.SYNC)
        four.send(parse("SUBSCRIBE watched"), bind(), execute(1), FLUSH)
        four.until("BindComplete")
        for c in (one, two, three, four):
            c.vanish()
        wait_until(
            lambda: conn.execute("SELECT count(*) FROM mz_internal.mz_subscriptions").fetchone() == (0,),
            "subscriptions end",
        )
        assert conn.execute("SELECT count(*) FROM watched").fetchone() == (0,)
        conn.execute("DROP TABLE watched")


@pytest.mark.usefixtures("nothing_left")
def test_a_reader_that_does_not_read_holds_up_nobody(server: Server) -> None:
    with RawClient(server.port) as slow, server.connect() as conn:
        slow.send(query("SELECT repeat('x', 1000) FROM generate_series(1, 50000)"))
        for _ in range(20):
            assert conn.execute("SELECT 1").fetchone() == (1,)
        assert len(slow.until_ready()) == 50003


@pytest.mark.usefixtures("nothing_left")
def test_many_short_connections(server: Server) -> None:
    for _ in range(100):
        with server.connect() as conn:
            conn.execute("SELECT 1")


@pytest.mark.usefixtures("nothing_left")
def test_large_values_go_both_ways(server: Server) -> None:
    with server.connect() as conn:
        text = "päng" * 500_000
        row = conn.execute("SELECT %s::text, length(%s::text)", (text, text)).fetchone()
        assert row == (text, len(text))
        blob = bytes(range(256)) * 4000
        assert conn.cursor(binary=True).execute("SELECT %b::bytea", (blob,)).fetchone() == (blob,)


def test_a_connection_limit_is_an_error_of_the_new_client(server: Server) -> None:
    with server.connect(user="mz_system") as admin:
        admin.execute("ALTER SYSTEM SET max_connections = 3")
        held = []
        with pytest.raises(psycopg.OperationalError, match="connection"):
            for _ in range(5):
                held.append(server.connect())
        for c in held:
            c.close()
        admin.execute("ALTER SYSTEM RESET max_connections")
