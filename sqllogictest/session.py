"""One connection to the server under test: run one string, get back what the wire said.

Statement and query records use the extended protocol with binary results (`extended`), `simple` records the simple
protocol with text (`simple`). Both go through psycopg's libpq layer rather than its cursors: a cursor adapts types,
tracks transactions and buffers, which costs more than the rest of the runner together and would hide what was sent.

A `Session` needs only the few PGconn methods it calls, so tests and the overhead benchmark put a stub in its place.
"""

from __future__ import annotations

import select
from collections.abc import Sequence
from dataclasses import dataclass

import psycopg
from psycopg import pq

_OK = pq.ExecStatus.COMMAND_OK
_TUPLES = pq.ExecStatus.TUPLES_OK
_DONE = frozenset({_OK, pq.ExecStatus.EMPTY_QUERY})
_COPY_IN = pq.ExecStatus.COPY_IN
_COPY_OUT = pq.ExecStatus.COPY_OUT
_COPYING = frozenset({_COPY_IN, _COPY_OUT})
_BINARY = pq.Format.BINARY
_IDLE = pq.TransactionStatus.IDLE
_BAD = pq.ConnStatus.BAD
_Field = pq.DiagnosticField
_COPY_CHUNK = 1 << 16


@dataclass(slots=True)
class Result:
    """rows hold raw bytes, or None for NULL; affected is the last number of the command tag, else 0."""

    names: list[str]
    oids: tuple[int, ...]
    rows: list[list[bytes | None]]
    affected: int


class ServerError(Exception):
    """An error the server answered with; `text` is the form that expected errors are matched against."""

    def __init__(
        self, message: str, *, sqlstate: str = "", severity: str = "ERROR", detail: str = "", hint: str = ""
    ) -> None:
        super().__init__(message)
        self.message = message
        self.sqlstate = sqlstate
        self.severity = severity
        self.detail = detail
        self.hint = hint

    @property
    def text(self) -> str:
        parts = [f"db error: {self.severity}: {self.message}"]
        if self.detail:
            parts.append(f"DETAIL: {self.detail}")
        if self.hint:
            parts.append(f"HINT: {self.hint}")
        return "\n".join(parts)


class ConnectionLost(Exception):
    """The connection broke: the server died, hung up, or was cut off by the time limit."""


class Session:
    """A connection in autocommit, as PostgreSQL itself defines it: each record is its own transaction unless in one."""

    def __init__(
        self, conn: psycopg.Connection[tuple[object, ...]] | None, pgconn: pq.abc.PGconn | None = None
    ) -> None:
        self._conn = conn  # kept: closing is its business
        picked = pgconn if pgconn is not None else conn.pgconn if conn is not None else None
        assert picked is not None, "a session needs a connection"
        self._pgconn = picked

    @property
    def socket(self) -> int:
        return self._pgconn.socket

    @property
    def in_transaction(self) -> bool:
        return self._pgconn.transaction_status != _IDLE

    def close(self) -> None:
        if self._conn is not None:
            self._conn.close()

    def extended(self, sql: str) -> Result:
        """Run exactly one statement. Raises `ServerError` or `ConnectionLost`."""
        try:
            self._pgconn.send_query_params(sql.encode(), None, result_format=_BINARY)
            self._flush()
            res = self._next()
            assert res is not None, "a query has a result"
            if res.status in _COPYING:
                return self._result(res)
            while (more := self._next()) is not None:
                if more.status == pq.ExecStatus.FATAL_ERROR:
                    res = more  # an error at the end of the transaction, behind the statement's own success
        except psycopg.Error as e:
            raise ConnectionLost(str(e).strip()) from None
        return self._result(res)

    def _result(self, res: pq.abc.PGresult) -> Result:
        status = res.status
        if status == _TUPLES:
            columns = range(res.nfields)
            get = res.get_value
            return Result(
                [(res.fname(i) or b"").decode() for i in columns],
                tuple([res.ftype(i) for i in columns]),
                [[get(row, i) for i in columns] for row in range(res.ntuples)],
                _affected(res),
            )
        if status in _DONE:
            return Result([], (), [], _affected(res))
        if status == _COPY_OUT:
            return self._copy_out()
        if status == _COPY_IN:
            self._end_copy(b"this record has no data to copy")
            raise ServerError("COPY FROM STDIN in a statement record", sqlstate="08P01")
        raise self._error(res)

    def simple(self, sql: str) -> list[str]:
        """The lines that a simple record compares: rows, then COMPLETE n per statement; an error's lines replace all."""
        lines: list[str] = []
        try:
            self._pgconn.send_query(sql.encode())
            self._flush()
            error: ServerError | ConnectionLost | None = None
            while (res := self._next()) is not None:
                status = res.status
                if status == _TUPLES:
                    columns = range(res.nfields)
                    for row in range(res.ntuples):
                        cells = [res.get_value(row, i) for i in columns]
                        lines.append(",".join(["NULL" if c is None else c.decode() for c in cells]))
                    lines.append(f"COMPLETE {_affected(res)}")
                elif status in _DONE:
                    lines.append(f"COMPLETE {_affected(res)}")
                elif status == _COPY_OUT:
                    lines += self._copy_lines()
                elif status == _COPY_IN:
                    self._put_copy_end(b"this record has no data to copy")
                else:
                    error = error or self._error(res)
        except psycopg.Error as e:
            raise ConnectionLost(str(e).strip()) from None
        if isinstance(error, ConnectionLost):
            raise error
        return error.text.split("\n") if error is not None else lines

    def copy_in(self, sql: str, data: bytes) -> int:
        """Run COPY … FROM STDIN with `data`; the number of rows."""
        try:
            self._pgconn.send_query(sql.encode())
            self._flush()
            res = self._next()
            assert res is not None, "a query has a result"
            if res.status != _COPY_IN:
                while self._next() is not None:
                    pass
                self._result(res)
                raise ServerError(f"{sql!r} does not take data")
            for at in range(0, len(data), _COPY_CHUNK):
                while not self._pgconn.put_copy_data(data[at : at + _COPY_CHUNK]):
                    self._flush()
            return self._end_copy(None)
        except psycopg.Error as e:
            raise ConnectionLost(str(e).strip()) from None

    def _end_copy(self, error: bytes | None) -> int:
        self._put_copy_end(error)
        affected = 0
        failed: ServerError | ConnectionLost | None = None
        while (res := self._next()) is not None:
            if res.status == pq.ExecStatus.FATAL_ERROR:
                failed = self._error(res)
            else:
                affected = _affected(res)
        if failed is not None and error is None:
            raise failed
        return affected

    # psycopg leaves connections non-blocking, and its compiled build holds the interpreter's lock inside PQgetResult:
    # waiting happens here, in select, where the time limit's thread can still run and Ctrl-C is heard.

    def _next(self) -> pq.abc.PGresult | None:
        pgconn = self._pgconn
        while pgconn.is_busy():
            select.select([pgconn.socket], [], [])
            pgconn.consume_input()
        return pgconn.get_result()

    def _flush(self) -> None:
        while self._pgconn.flush():
            readable, _, _ = select.select([self.socket], [self.socket], [])
            if readable:
                self._pgconn.consume_input()

    def _put_copy_end(self, error: bytes | None) -> None:
        while not self._pgconn.put_copy_end(error):
            self._flush()
        self._flush()

    def _copy_lines(self) -> list[str]:
        lines: list[str] = []
        while True:
            size, data = self._pgconn.get_copy_data(1)
            if size < 0:
                return lines
            if size == 0:
                select.select([self.socket], [], [])
                self._pgconn.consume_input()
                continue
            lines += bytes(data).decode().rstrip("\n").split("\n")

    def _copy_out(self) -> Result:
        """COPY TO STDOUT: a row per line, one text column."""
        rows: list[list[bytes | None]] = [[line.encode()] for line in self._copy_lines()]
        affected = 0
        while (res := self._next()) is not None:
            if res.status == pq.ExecStatus.FATAL_ERROR:
                raise self._error(res)
            affected = _affected(res)
        return Result(["copy"], (25,), rows, affected)

    def _error(self, res: pq.abc.PGresult) -> ServerError | ConnectionLost:
        message = _field(res, _Field.MESSAGE_PRIMARY)
        if not message:
            return ConnectionLost(res.error_message.decode(errors="replace").strip() or "the connection broke")
        if self._pgconn.status == _BAD:
            return ConnectionLost(f"{_field(res, _Field.SEVERITY)}: {message}")
        return ServerError(
            message,
            sqlstate=_field(res, _Field.SQLSTATE),
            severity=_field(res, _Field.SEVERITY),
            detail=_field(res, _Field.MESSAGE_DETAIL),
            hint=_field(res, _Field.MESSAGE_HINT),
        )


def _field(res: pq.abc.PGresult, field: pq.DiagnosticField) -> str:
    value = res.error_field(field)
    return value.decode(errors="replace") if value else ""


def _affected(res: pq.abc.PGresult) -> int:
    last = (res.command_status or b"").rpartition(b" ")[2]
    return int(last) if last.isdigit() else 0


def rows_of(session: Session, sql: str) -> Sequence[Sequence[str]]:
    """Text rows of a query of the tool's own (never of a record); NULL is the empty string."""
    out: list[list[str]] = []
    res = session.extended(sql)
    for row in res.rows:
        out.append([(cell or b"").decode() for cell in row])
    return out
