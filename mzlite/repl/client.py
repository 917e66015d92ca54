"""The shell's connection: runs statements through psycopg and hands back the server's own text.

The one idea: values are never turned into Python objects. The server's text form is what psql shows, and it exists for
every type, also those Python has no value for (dates before Christ, infinite intervals, types the driver never met).

    run        simple protocol, every result of the text      SELECT, DDL, DML
    stream     extended protocol, a row at a time             SUBSCRIBE
    copy_out / copy_in                                        COPY ... TO STDOUT, COPY ... FROM STDIN
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg import generators, pq
from psycopg.abc import Buffer
from psycopg.adapt import AdaptersMap, Loader
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq.abc import PGresult

Row = tuple[str | None, ...]
CONNECT_TIMEOUT_S = 10
CANCEL_TIMEOUT_S = 5.0
_TRANSACTION_MARKS = {
    pq.TransactionStatus.IDLE: "",
    pq.TransactionStatus.INTRANS: "*",
    pq.TransactionStatus.INERROR: "!",
}


@dataclass(frozen=True, slots=True)
class ResultColumn:
    name: str
    type_oid: int = 25


@dataclass(slots=True)
class Table:
    """Rows as the server wrote them; `None` is NULL."""

    columns: tuple[ResultColumn, ...]
    rows: list[Row] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Result:
    """What one statement answered: a table, unless it returns none, and its command tag (`INSERT 0 1`)."""

    table: Table | None
    tag: str | None


class _AsSent(Loader):
    def load(self, data: Buffer) -> str:
        return bytes(data).decode("utf-8", "replace")


def _text_only() -> Any:
    """An adaptation context that knows one thing: any type loads as its text."""
    adapters = AdaptersMap()
    adapters.register_loader(0, _AsSent)
    return SimpleNamespace(adapters=adapters, connection=None)


class Client:
    """One connection, always in autocommit: BEGIN and COMMIT are the user's.

    Not for several threads, except `cancel` and `sever`, which end what another thread runs.
    """

    def __init__(
        self,
        dsn: str,
        *,
        on_notice: Callable[[psycopg.errors.Diagnostic], None] | None = None,
        application_name: str = "mzlite",
    ) -> None:
        self.dsn = dsn
        self._on_notice = on_notice
        self._application_name = application_name
        self._conn: psycopg.Connection[Row] | None = None

    def connect(self) -> None:
        """Connects, or connects again; raises psycopg.OperationalError."""
        self.close()
        given = conninfo_to_dict(self.dsn)
        defaults: dict[str, str | int] = {
            "application_name": self._application_name,
            "connect_timeout": CONNECT_TIMEOUT_S,
            "client_encoding": "UTF8",
        }
        conninfo = make_conninfo(self.dsn, **{key: value for key, value in defaults.items() if key not in given})
        conn = psycopg.connect(conninfo, autocommit=True, prepare_threshold=None, context=_text_only())
        if self._on_notice is not None:
            conn.add_notice_handler(self._on_notice)
        self._conn = conn

    def close(self) -> None:
        if self._conn is not None:
            with suppress(psycopg.Error):
                self._conn.close()
            self._conn = None

    @property
    def is_connected(self) -> bool:
        return self._conn is not None and not self._conn.closed

    @property
    def transaction_mark(self) -> str:
        """psql's %x: `*` in a transaction, `!` in a failed one, `?` when unknown, else empty."""
        if not self.is_connected:
            return "?"
        status = self.conn.info.transaction_status
        return _TRANSACTION_MARKS.get(status, "?")

    @property
    def conn(self) -> psycopg.Connection[Row]:
        if self._conn is None:
            raise psycopg.OperationalError("not connected to a server")
        return self._conn

    def parameter(self, name: str) -> str | None:
        """A run-time parameter the server has reported, such as `server_version`."""
        return self.conn.info.parameter_status(name) if self.is_connected else None

    def run(self, sql: str) -> list[Result]:
        """Every result of `sql`."""
        results: list[Result] = []
        with self.conn.cursor() as cursor:
            cursor.execute(sql)  # type: ignore[arg-type, unused-ignore]
            while True:
                results.append(Result(_table(cursor), cursor.statusmessage))
                if not cursor.nextset():
                    return results

    def query(self, sql: str) -> Table:
        """The table of a statement that returns one."""
        table = self.run(sql)[-1].table
        return Table(()) if table is None else table

    def stream(self, sql: str) -> tuple[tuple[ResultColumn, ...], Iterator[Row]]:
        """The columns of `sql`, and its rows as they arrive.

        The columns are asked for first: with the first row they would come too late for a subscription to nothing.
        """
        columns = self._describe(sql)
        return columns, self.conn.cursor().stream(sql)  # type: ignore[arg-type, unused-ignore]

    def _describe(self, sql: str) -> tuple[ResultColumn, ...]:
        conn, pgconn = self.conn, self.conn.pgconn
        with conn.lock:
            pgconn.send_prepare(b"", sql.encode())
            _check(conn.wait(generators.execute(pgconn))[-1])
            pgconn.send_describe_prepared(b"")
            result = conn.wait(generators.execute(pgconn))[-1]
            _check(result)
        names = [(result.fname(i) or b"").decode("utf-8", "replace") for i in range(result.nfields)]
        return tuple(ResultColumn(name, result.ftype(i)) for i, name in enumerate(names))

    def copy_out(self, sql: str, sink: Callable[[bytes], object]) -> str:
        """Runs COPY ... TO STDOUT; returns the command tag."""
        with self.conn.cursor() as cursor:
            with cursor.copy(sql) as copy:  # type: ignore[arg-type, unused-ignore]
                for data in copy:
                    sink(bytes(data))
            # The driver keeps the tag of neither direction's last message, only its count.
            return f"COPY {cursor.rowcount}"

    def copy_in(self, sql: str, source: Iterable[bytes]) -> str:
        """Runs COPY ... FROM STDIN; returns the command tag."""
        with self.conn.cursor() as cursor:
            with cursor.copy(sql) as copy:  # type: ignore[arg-type, unused-ignore]
                for data in source:
                    copy.write(data)
            return f"COPY {cursor.rowcount}"

    def cancel(self) -> None:
        """Asks the server to stop what runs; from any thread. That it has stopped is seen where it runs."""
        conn = self._conn
        if conn is not None:
            with suppress(psycopg.Error):
                conn.cancel_safe(timeout=CANCEL_TIMEOUT_S)

    def sever(self) -> None:
        """Cuts the connection under a statement that does not stop; from any thread."""
        conn = self._conn
        if conn is not None:
            with suppress(psycopg.Error, OSError), socket.socket(fileno=os.dup(conn.fileno())) as sock:
                sock.shutdown(socket.SHUT_RDWR)


def _table(cursor: psycopg.Cursor[Row]) -> Table | None:
    if cursor.description is None:
        return None
    columns = tuple(ResultColumn(column.name, column.type_code) for column in cursor.description)
    return Table(columns, cursor.fetchall())


def _check(result: PGresult) -> None:
    if result.status == pq.ExecStatus.FATAL_ERROR:
        raise psycopg.errors.error_from_result(result)
