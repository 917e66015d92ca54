"""One client: the message loop.

    data_received -> decoder -> inbox -> _serve (one driven coroutine per client) -> session -> outbox -> transport

It handles messages strictly in order; answers gather in an outbox that is flushed at Sync, Flush, when a chunk of
rows is full, and before any wait. After an error in the extended protocol everything up to Sync is discarded.
"""

from __future__ import annotations

import asyncio
import collections
import logging
from collections.abc import Callable, Sequence

from adapter.coord.coordinator import Coordinator
from adapter.coord.result import CopyIn, CopyOut, Done, Empty, ExecuteResult, Rows
from adapter.coord.session import Session
from mzlite.pgwire import backend, frontend
from mzlite.pgwire.portal import PortalRows
from mzlite.pgwire.rows import result_formats
from mzlite.pgwire.runner import Gate, Runner
from mzlite.repr.binary import decode_param
from mzlite.repr.errors import SqlError
from mzlite.repr.text import parse_datum
from mzlite.repr.types import ScalarType

log = logging.getLogger(__name__)

FLUSH_BYTES = 16 * 1024


class _Closed(Exception):
    """The client is gone."""


class Connection(asyncio.Protocol):
    """Invariants: (1) at most one message is being handled; (2) every request up to Sync or Query is answered by one
    ReadyForQuery; (3) when the transport is lost the session is terminated, whatever it was doing."""

    def __init__(
        self, coordinator: Coordinator, tls: Callable[[Connection], bool], on_close: Callable[[Connection], None]
    ):
        self._coordinator = coordinator
        self._tls = tls  # starts TLS on this connection; False when the server has no certificate
        self._on_close = on_close
        self._decoder = frontend.FrontendDecoder()
        self._inbox: collections.deque[frontend.FrontendMessage | SqlError] = collections.deque()
        self._gate = Gate()
        self._outbox: list[bytes] = []
        self._outbox_bytes = 0
        self._writable = asyncio.Event()
        self._writable.set()
        self._transport: asyncio.Transport | None = None
        self._runner: Runner | None = None
        self._session: Session | None = None
        self._portals: dict[str, PortalRows] = {}
        self._formats: dict[str, tuple[int, ...]] = {}
        self._lost = False
        self._discard = False
        self._upgrading = False

    # -- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if self._runner is None:
            self._runner = Runner(self._serve(), asyncio.get_running_loop())
            self._runner.start()

    def data_received(self, data: bytes) -> None:
        try:
            self._inbox.extend(self._decoder.feed(data))
        except SqlError as error:
            self._fatal(error)
            return
        if not self._upgrading:
            self._wake()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        self._writable.set()
        self._wake()
        if self._session is not None:
            self._session.cancel()
        self._on_close(self)

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    # -- plumbing

    @property
    def transport(self) -> asyncio.Transport:
        assert self._transport is not None
        return self._transport

    def replace_transport(self, transport: asyncio.Transport) -> None:
        """TLS is up: from here on bytes travel through it. What already came through it was held back until now."""
        self._transport = transport
        self._upgrading = False
        self._wake()

    async def close(self, reason: SqlError) -> None:
        """End the connection from the server's side (shutdown), telling the client why."""
        self._fatal(reason)
        if self._session is not None:
            self._session.cancel()
        if self._runner is not None:
            await asyncio.wait([self._runner.done], timeout=2)

    def _fatal(self, error: SqlError) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._send(backend.error_response(error, "FATAL"))
            self._flush()
            self._transport.close()
        self._lost = True
        self._wake()

    def _wake(self) -> None:
        """Something arrived, or the client is gone: whoever waits for a message goes on now."""
        if self._runner is not None:
            self._runner.resume()

    def _send(self, data: bytes) -> None:
        self._outbox.append(data)
        self._outbox_bytes += len(data)

    def _flush(self) -> None:
        if self._outbox and self._transport is not None and not self._transport.is_closing():
            self._transport.write(b"".join(self._outbox))
        self._outbox.clear()
        self._outbox_bytes = 0

    async def _drain(self) -> None:
        """Flush, and wait while the client reads slower than we send; also lets other sessions run."""
        self._flush()
        if self._lost:
            raise _Closed
        if not self._writable.is_set():
            await self._writable.wait()
        else:
            await asyncio.sleep(0)
        if self._lost:
            raise _Closed

    async def _next(self) -> frontend.FrontendMessage | SqlError:
        while not self._inbox:
            if self._lost:
                raise _Closed
            self._flush()
            await self._gate
        return self._inbox.popleft()

    # -- life

    async def _serve(self) -> None:
        try:
            if await self._startup():
                await self._loop()
        except _Closed:
            pass
        except Exception:
            log.exception("internal error while serving a client")
            self._fatal(SqlError("XX000", "internal error: the connection is closed"))
        finally:
            session, self._session = self._session, None
            if session is not None:
                await session.terminate()
            self._flush()
            if self._transport is not None:
                self._transport.close()

    async def _startup(self) -> bool:
        while True:
            match await self._next():
                case frontend.SslRequest():
                    if self._inbox or self._decoder.pending:
                        # What came before encryption must not be taken for something that came under it.
                        self._fatal(frontend.protocol_violation("received unencrypted data after SSL request"))
                        return False
                    if self._tls(self):
                        self._upgrading = True
                        continue
                    self._send(b"N")
                    self._flush()
                case frontend.GssEncRequest():
                    self._send(b"N")
                    self._flush()
                case frontend.CancelRequest(pid, secret):
                    self._coordinator.cancel(pid, secret)
                    return False
                case frontend.Startup(params, minor, unknown):
                    return self._begin(params, minor, unknown)
                case SqlError() as error:
                    self._fatal(error)
                    return False
                case _:
                    self._fatal(frontend.protocol_violation("expected a startup packet"))
                    return False

    def _begin(self, params: dict[str, str], minor: int, unknown: tuple[str, ...]) -> bool:
        if minor or unknown:
            self._send(backend.negotiate_protocol_version(unknown))
        user = params.get("user", "")
        if not user:
            self._fatal(SqlError("28000", "no PostgreSQL user name specified in startup packet"))
            return False
        assert self._transport is not None
        peer = self._transport.get_extra_info("peername")
        loopback = not peer or str(peer[0]) in ("127.0.0.1", "::1")
        rest = {k: v for k, v in params.items() if k not in ("user", "database")}
        try:
            self._session = self._coordinator.connect(user, params.get("database"), rest, loopback)
        except SqlError as error:
            self._fatal(error)
            return False
        self._send(backend.AUTH_OK)
        for name, value in self._session.startup_parameters().items():
            self._send(backend.parameter_status(name, value))
        self._send(backend.backend_key_data(self._session.pid, self._session.secret))
        self._ready()
        return True

    def _ready(self) -> None:
        assert self._session is not None
        self._reports()
        self._send(backend.READY[self._session.transaction_status])
        self._flush()

    def _reports(self) -> None:
        """Notices and changed parameters of the last statement."""
        session = self._session
        assert session is not None
        for n in session.drain_notices():
            self._send(backend.notice_response(n.severity, n.sqlstate, n.message, n.detail, n.hint))
        for name, value in session.drain_parameter_changes().items():
            self._send(backend.parameter_status(name, value))

    async def _next_request(self) -> frontend.FrontendMessage | SqlError:
        """The next message; a session that idles in a transaction for too long is ended."""
        session = self._session
        assert session is not None
        if self._inbox or session.transaction_status == b"I":
            return await self._next()
        limit_ms = session.vars.get("idle_in_transaction_session_timeout")
        if not limit_ms:
            return await self._next()
        reason = SqlError("25P03", "terminating connection due to idle-in-transaction timeout")
        timer = asyncio.get_running_loop().call_later(limit_ms / 1000, self._fatal, reason)
        try:
            return await self._next()
        finally:
            timer.cancel()

    async def _loop(self) -> None:
        while True:
            received = await self._next_request()
            if isinstance(received, frontend.Terminate):
                return
            if isinstance(received, frontend.Sync):
                await self._sync()
            elif self._discard:
                continue
            elif isinstance(received, frontend.Query):
                await self._query(received.sql)
            elif isinstance(received, frontend.CopyData | frontend.CopyDone | frontend.CopyFail):
                continue  # the rest of a COPY that already failed
            else:
                await self._extended(received)

    # -- simple protocol

    async def _query(self, sql: str) -> None:
        session = self._session
        assert session is not None
        try:
            try:
                statements = session.parse(sql)
                if not statements:
                    self._send(backend.EMPTY_QUERY)
                else:
                    session.begin_implicit(len(statements))
                    for statement in statements:
                        result = await session.execute_simple(statement)
                        self._reports()
                        await self._answer(result, None)
            except SqlError:
                session.note_error()
                raise
            finally:
                await session.end_implicit()
        except SqlError as error:
            self._reports()
            self._send(backend.error_response(error))
        await self._drop_portals()
        self._ready()

    async def _answer(self, result: ExecuteResult, formats: tuple[int, ...] | None) -> None:
        """Send one statement's result in full. formats: None = simple protocol, with RowDescription and text."""
        match result:
            case Empty():
                self._send(backend.EMPTY_QUERY)
            case Done(tag):
                self._send(backend.command_complete(tag))
            case Rows():
                if formats is None:
                    formats = (0,) * len(result.desc.names)
                    self._send(backend.row_description(result.desc, formats))
                rows = PortalRows(result, formats)
                await self._send_rows(rows, 0)
                self._send(backend.command_complete(result.command_tag(rows.sent)))
            case CopyIn():
                await self._copy_in(result)
            case CopyOut():
                await self._copy_out(result)

    async def _send_rows(self, rows: PortalRows, limit: int) -> None:
        """Rows of a result, flushing as they come when they arrive over time. A lost client ends the statement."""
        if rows.live:
            self._flush()  # what was described is seen before the first row, however late that is
        try:
            async for chunk in rows.fetch(limit):
                self._send(chunk)
                if rows.live or self._outbox_bytes >= FLUSH_BYTES:
                    await self._drain()
        except BaseException:
            await rows.close()
            raise

    # -- extended protocol

    async def _extended(self, received: frontend.FrontendMessage | SqlError) -> None:
        session = self._session
        assert session is not None
        try:
            match received:
                case frontend.Parse(name, sql, oids):
                    await session.prepare(name, sql, oids)
                    self._send(backend.PARSE_COMPLETE)
                case frontend.Bind():
                    await self._bind(received)
                    self._send(backend.BIND_COMPLETE)
                case frontend.Describe("S", name):
                    types, desc = session.describe_statement(name)
                    self._send(backend.parameter_description(types))
                    self._send(
                        backend.NO_DATA if desc is None else backend.row_description(desc, (0,) * len(desc.names))
                    )
                case frontend.Describe("P", name):
                    desc = session.describe_portal(name)
                    if desc is None:
                        self._send(backend.NO_DATA)
                    else:
                        self._send(backend.row_description(desc, self._portal_formats(name, len(desc.names))))
                case frontend.Execute(portal, max_rows):
                    await self._execute(portal, max_rows)
                case frontend.Close("S", name):
                    session.close_statement(name)
                    self._send(backend.CLOSE_COMPLETE)
                case frontend.Close("P", name):
                    await self._close_portal(name)
                    self._send(backend.CLOSE_COMPLETE)
                case frontend.Flush():
                    self._flush()
                case SqlError():
                    raise received
                case _:
                    raise frontend.protocol_violation(f"unexpected message {type(received).__name__}")
        except SqlError as error:
            self._reports()
            self._send(backend.error_response(error))
            session.note_error()
            self._discard = True

    async def _sync(self) -> None:
        session = self._session
        assert session is not None
        self._discard = False
        try:
            await session.sync()
        except SqlError as error:
            self._send(backend.error_response(error))
        await self._drop_portals()
        self._ready()

    async def _drop_portals(self) -> None:
        """Portals end with the transaction they were made in."""
        session = self._session
        assert session is not None
        if session.transaction_status == b"I" and self._formats:
            for name in list(self._formats):
                await self._close_portal(name)

    async def _close_portal(self, name: str) -> None:
        assert self._session is not None
        self._session.close_portal(name)
        self._formats.pop(name, None)
        rows = self._portals.pop(name, None)
        if rows is not None:
            await rows.close()

    async def _bind(self, bind: frontend.Bind) -> None:
        session = self._session
        assert session is not None
        types, desc = session.describe_statement(bind.statement)
        if len(bind.params) != len(types):
            raise frontend.protocol_violation(
                f"bind message supplies {len(bind.params)} parameters, but prepared statement "
                f'"{bind.statement}" requires {len(types)}'
            )
        if desc is not None:
            formats = result_formats(bind.result_formats, len(desc.names))
            if formats is None:
                raise frontend.protocol_violation(
                    f"bind message has {len(bind.result_formats)} result formats but query has {len(desc.names)} columns"
                )
        else:
            formats = ()
        values = _decode_params(types, bind)
        if bind.portal in self._portals:
            await self._close_portal(bind.portal)
        session.bind(bind.portal, bind.statement, values)
        self._formats[bind.portal] = formats

    def _portal_formats(self, portal: str, columns: int) -> tuple[int, ...]:
        formats = self._formats.get(portal, ())
        return formats if len(formats) == columns else (0,) * columns

    async def _execute(self, portal: str, max_rows: int) -> None:
        session = self._session
        assert session is not None
        rows = self._portals.get(portal)
        if rows is None:
            result = await session.execute(portal)
            self._reports()
            if not isinstance(result, Rows):
                await self._answer(result, ())
                return
            rows = PortalRows(result, self._portal_formats(portal, len(result.desc.names)))
            if portal or max_rows > 0:
                self._portals[portal] = rows
        before = rows.sent
        await self._send_rows(rows, max_rows)
        if rows.done:
            self._send(backend.command_complete(rows.command_tag(rows.sent - before)))
        else:
            self._send(backend.PORTAL_SUSPENDED)

    # -- COPY

    async def _copy_in(self, result: CopyIn) -> None:
        self._send(backend.copy_response(b"G", result.column_count, result.format == "binary"))
        self._flush()
        failure: SqlError | None = None
        try:
            while failure is None:
                match await self._next():
                    case frontend.CopyData(data):
                        await result.feed(data)
                    case frontend.CopyDone():
                        self._send(backend.command_complete(await result.finish()))
                        return
                    case frontend.CopyFail(text):
                        error = await result.abort(f"COPY from stdin failed: {text}")
                        assert isinstance(error, SqlError)
                        raise error
                    case frontend.Flush() | frontend.Sync():
                        pass
                    case SqlError() as error:
                        failure = error
                    case other:
                        failure = frontend.protocol_violation(
                            f"unexpected message {type(other).__name__} during COPY from stdin"
                        )
            await result.abort(failure.message)
            raise failure
        except _Closed:
            await result.abort("the client is gone")
            raise

    async def _copy_out(self, result: CopyOut) -> None:
        self._send(backend.copy_response(b"H", len(result.desc.names), result.format == "binary"))
        self._flush()
        async for rows in result.chunks:
            self._send(b"".join([backend.copy_data(row) for row in rows]))
            await self._drain()
        self._send(backend.COPY_DONE)
        self._send(backend.command_complete(result.command_tag()))


def _decode_params(types: Sequence[ScalarType], bind: frontend.Bind) -> list[object]:
    formats = bind.param_formats
    if len(formats) not in (0, 1, len(types)):
        raise frontend.protocol_violation(
            f"bind message has {len(formats)} parameter formats but {len(types)} parameters"
        )
    values: list[object] = []
    for i, (typ, raw) in enumerate(zip(types, bind.params)):
        fmt = formats[i if len(formats) > 1 else 0] if formats else 0
        if raw is None:
            values.append(None)
        elif fmt == 1:
            values.append(decode_param(typ, raw))
        elif fmt == 0:
            try:
                text = raw.decode()
            except UnicodeDecodeError as e:
                raise SqlError("22021", f'invalid byte sequence for encoding "UTF8": 0x{raw[e.start]:02x}') from None
            values.append(parse_datum(typ, text))
        else:
            raise frontend.protocol_violation(f"unsupported format code: {fmt}")
    return values
