"""mzlite from Python.

    with mzlite.open() as db:            # in memory; mzlite.open("DIR") is durable
        conn = db.connect()              # a psycopg connection
        conn.execute("SELECT 1")

The database runs in a process of its own (a busy program must not slow its reads), listens on a loopback port, and ends
with `close()` or with this process, whichever comes first.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from mzlite.pgwire.announce import READY
from mzlite.repr.errors import SqlError

if TYPE_CHECKING:
    import psycopg

STOP_TIMEOUT_S = 10


class Database:
    """A running embedded database.

    dsn: a connection string for any PostgreSQL driver.
    """

    def __init__(self, process: subprocess.Popen[str], dsn: str) -> None:
        self._process = process
        self.dsn = dsn

    def connect(self, **options: Any) -> psycopg.Connection[tuple[Any, ...]]:
        """A new psycopg connection, autocommit by default; options are psycopg.connect's."""
        import psycopg

        return psycopg.connect(self.dsn, **{"autocommit": True, **options})

    def close(self) -> None:
        """Shut the database down; idempotent."""
        process = self._process
        if process.poll() is None:
            assert process.stdin is not None
            process.stdin.close()  # the lifeline: the server stops when it ends
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        if process.stdout is not None:
            process.stdout.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def open(dir: str | os.PathLike[str] | None = None) -> Database:
    """Open a database, in memory or durable in `dir` (created when missing).

    errors: SqlError when it cannot be opened: the directory is in use, of a newer format, not writable.
    """
    command = [sys.executable, "-m", "mzlite", "serve", "--listen", "127.0.0.1:0", "--lifeline"]
    if dir is not None:
        command += ["--data-dir", str(Path(dir))]
    # A session of its own: Ctrl-C in a terminal cancels a statement, it must not stop the database.
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None and process.stderr is not None
    line = process.stdout.readline()
    if READY not in line:
        _, errors = process.communicate()
        message = errors.strip().removeprefix("mzlite: ") or "it ended without a word"
        raise SqlError("58000", f"cannot open the database: {message}")
    _forward(process)
    return Database(process, line.partition(READY)[2].strip())


def _forward(process: subprocess.Popen[str]) -> None:
    """Pass on what the server logs, without letting its pipe fill up."""
    import threading

    def pump() -> None:
        assert process.stderr is not None
        for line in process.stderr:
            sys.stderr.write(line)

    threading.Thread(target=pump, daemon=True, name="mzlite-log").start()
