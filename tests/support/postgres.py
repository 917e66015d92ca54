"""A throwaway PostgreSQL server for the tests that compare with one, or that need one to talk to.

One server a test session, in a temporary directory, on a free port of 127.0.0.1, without fsync. PostgreSQL refuses to
run as root, so root starts it as `postgres` (or `nobody`). Where PostgreSQL is not installed, whatever asks for the
server is skipped with the reason.

A test directory makes the fixtures its own in its conftest.py:

    from tests.support.postgres import postgres_dsn, postgres_server  # noqa: F401
"""

from __future__ import annotations

import contextlib
import itertools
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

START_TIMEOUT_S = 60
_database_numbers = itertools.count(1)


def find_bindir() -> Path | None:
    """The directory that holds `initdb` and `pg_ctl`: from PATH, or where packagers put it (newest first)."""
    on_path = shutil.which("initdb")
    candidates = [Path(on_path).resolve().parent] if on_path else []
    for pattern in (
        "/usr/lib/postgresql/*/bin",
        "/usr/pgsql-*/bin",
        "/opt/homebrew/opt/postgresql*/bin",
        "/usr/local/opt/postgresql*/bin",
    ):
        candidates += sorted(Path("/").glob(pattern[1:]), key=_version_in, reverse=True)
    return next((c for c in candidates if (c / "initdb").exists() and (c / "pg_ctl").exists()), None)


def _version_in(path: Path) -> int:
    digits = "".join(ch for ch in str(path) if ch.isdigit())
    return int(digits) if digits else 0


def _unprivileged() -> pwd.struct_passwd | None:
    """Whom to run the server as: nobody else than ourselves, unless we are root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    pytest.skip("PostgreSQL does not run as root, and there is no user postgres or nobody here")


def _run(command: list[str], user: pwd.struct_passwd | None, cwd: Path) -> None:
    identity = {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    env = {**os.environ, "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    with open(os.devnull, "rb") as nothing, tempfile.TemporaryFile() as output:
        # A file, not a pipe: the server inherits it and would hold a pipe open after pg_ctl has returned.
        done = subprocess.run(
            command, stdin=nothing, stdout=output, stderr=output, cwd=cwd, env=env, timeout=START_TIMEOUT_S, **identity
        )  # type: ignore[call-overload]
        if done.returncode != 0:
            output.seek(0)
            raise RuntimeError(f"{command[0]} failed: {output.read().decode(errors='replace')}")


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


@contextlib.contextmanager
def running_server() -> Iterator[str]:
    """A server for as long as the context lasts: its DSN, database `postgres`."""
    bindir = find_bindir()
    if bindir is None:
        pytest.skip("PostgreSQL is not installed (no initdb on PATH or in the usual places)")
    user = _unprivileged()
    base = Path(tempfile.mkdtemp(prefix="mzlite-pg-"))
    data = base / "data"
    if user is not None:
        os.chown(base, user.pw_uid, user.pw_gid)
    try:
        initdb = [str(bindir / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"]
        _run([*initdb, "--locale=C"], user, base)
        port = _free_port()
        settings = {
            "port": port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": base,
            "fsync": "off",
            "shared_buffers": "16MB",
            "max_connections": 50,
            "timezone": "UTC",
        }
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        pg_ctl = [str(bindir / "pg_ctl"), "-D", str(data), "-w"]
        _run([*pg_ctl, "-l", str(base / "log"), "-o", options, "start"], user, base)
        try:
            yield f"host=127.0.0.1 port={port} user=postgres dbname=postgres"
        finally:
            _run([*pg_ctl, "-m", "immediate", "stop"], user, base)
    finally:
        shutil.rmtree(base, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The DSN of the session's server, database `postgres`. Use `postgres_dsn` for a database of one's own."""
    with running_server() as dsn:
        yield dsn


@pytest.fixture
def postgres_dsn(postgres_server: str) -> Iterator[str]:
    """The DSN of an empty database that only this test uses."""
    name = f"test_{os.getpid()}_{next(_database_numbers)}"
    with psycopg.connect(postgres_server, autocommit=True) as conn:
        conn.execute(f'CREATE DATABASE "{name}" TEMPLATE template0')
    yield postgres_server.replace("dbname=postgres", f"dbname={name}")
    with psycopg.connect(postgres_server, autocommit=True) as conn:
        conn.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
