"""A mzlite server as a process of its own, for the tests that look at it from outside.

    from tests.support.mzlite_server import mzlite_server, mz  # noqa: F401     (in a conftest.py)

`mzlite_server` is one in-memory server a test session; `mz` is a connection to it in a schema of its own. Tests that stop,
kill or restart a server start their own with `running`.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

READY = "ready: "
TIMEOUT_S = 30
ROOT = Path(__file__).resolve().parents[2]
_schema_numbers = itertools.count(1)


def child_pids(pid: int) -> list[int]:
    """Children of a process, from /proc."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return [int(p) for t in Path(f"/proc/{pid}/task").iterdir() for p in (t / "children").read_text().split()]
    return []


def descendants(pid: int) -> list[int]:
    found = child_pids(pid)
    return [*found, *(d for child in found for d in descendants(child))]


def alive(pid: int) -> bool:
    """Does the process run (a zombie does not)?"""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(condition: Any, what: str, timeout: float = TIMEOUT_S) -> Any:
    """Poll until the condition is true; its value."""
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        assert time.monotonic() < deadline, f"timed out: {what}"
        time.sleep(0.02)
    return value


class Server:
    """A running `mzlite serve`."""

    def __init__(self, *options: str, env: dict[str, str] | None = None, listen: str = "127.0.0.1:0") -> None:
        self.errors = tempfile.TemporaryFile("w+")  # noqa: SIM115  closed by stop()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mzlite", "serve", "--listen", listen, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            cwd=ROOT,
            env={**os.environ, **(env or {})},
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert READY in line, f"no server: {line!r} {self.log()}"
        self.dsn = line.partition(READY)[2].strip()
        parts = urlsplit(self.dsn)
        self.host, self.port = parts.hostname or "", parts.port or 0

    @property
    def pid(self) -> int:
        return self.process.pid

    def log(self) -> str:
        self.errors.seek(0)
        return self.errors.read()

    def connect(self, **options: Any) -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(self.dsn, **{"autocommit": True, "connect_timeout": TIMEOUT_S, **options})

    def processes(self) -> list[int]:
        """The server and everything below it."""
        return [self.pid, *descendants(self.pid)]

    def open_files(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def kill(self) -> None:
        """kill -9 of the environment process."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(TIMEOUT_S)

    def stop(self) -> int:
        """SIGTERM; the exit status."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            return self.process.wait(TIMEOUT_S)
        finally:
            self.close()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


@contextlib.contextmanager
def running(*options: str, **more: Any) -> Iterator[Server]:
    server = Server(*options, **more)
    try:
        yield server
    finally:
        below = descendants(server.pid)
        if server.process.poll() is None:
            server.stop()
        server.close()
        for pid in below:
            wait_until(lambda pid=pid: not alive(pid), f"process {pid} outlives its server")


@pytest.fixture(scope="session")
def mzlite_server() -> Iterator[Server]:
    """One in-memory server for the session."""
    with running() as server:
        yield server
        log = server.log()
        assert "Traceback" not in log, log


@pytest.fixture
def mz(mzlite_server: Server) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """A connection whose unqualified names are in a new schema."""
    name = f"test_{os.getpid()}_{next(_schema_numbers)}"
    with mzlite_server.connect() as conn:
        conn.execute(f"CREATE SCHEMA {name}")
        conn.execute(f"SET search_path = {name}")
        yield conn
    with mzlite_server.connect() as conn:
        conn.execute(f"DROP SCHEMA {name} CASCADE")
