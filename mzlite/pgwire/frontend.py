"""What a client sends: a decoder without I/O.

`feed(bytes)` returns the messages that are complete. The start-up phase has untagged packets; afterwards each message is
a tag, a length and a body. Lengths are bounded before anything is buffered, so garbage ends the connection at once.
Source: PostgreSQL 15 documentation, chapter 55 (message formats).
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import msgspec

from mzlite.repr.errors import SqlError

MAX_STARTUP_BYTES = 10_000
MAX_MESSAGE_BYTES = 256 * 1024 * 1024

SSL_REQUEST = 80877103
GSSENC_REQUEST = 80877104
CANCEL_REQUEST = 80877102
PROTOCOL_3 = 196608


class SslRequest(msgspec.Struct, frozen=True):
    pass


class GssEncRequest(msgspec.Struct, frozen=True):
    pass


class CancelRequest(msgspec.Struct, frozen=True):
    pid: int
    secret: int


class Startup(msgspec.Struct, frozen=True):
    """minor: requested protocol minor version; unknown: `_pq_.` options we do not know."""

    params: dict[str, str]
    minor: int = 0
    unknown: tuple[str, ...] = ()


class Password(msgspec.Struct, frozen=True):
    data: bytes


class Query(msgspec.Struct, frozen=True):
    sql: str


class Parse(msgspec.Struct, frozen=True):
    name: str
    sql: str
    param_oids: tuple[int, ...]


class Bind(msgspec.Struct, frozen=True):
    """params: None is NULL. formats: none (all text), one for all, or one each; 0 text, 1 binary."""

    portal: str
    statement: str
    param_formats: tuple[int, ...]
    params: tuple[bytes | None, ...]
    result_formats: tuple[int, ...]


class Describe(msgspec.Struct, frozen=True):
    """kind: "S" statement or "P" portal."""

    kind: str
    name: str


class Execute(msgspec.Struct, frozen=True):
    """max_rows: 0 = all."""

    portal: str
    max_rows: int


class Close(msgspec.Struct, frozen=True):
    kind: str
    name: str


class Sync(msgspec.Struct, frozen=True):
    pass


class Flush(msgspec.Struct, frozen=True):
    pass


class Terminate(msgspec.Struct, frozen=True):
    pass


class CopyData(msgspec.Struct, frozen=True):
    data: bytes


class CopyDone(msgspec.Struct, frozen=True):
    pass


class CopyFail(msgspec.Struct, frozen=True):
    message: str


FrontendMessage = (
    SslRequest
    | GssEncRequest
    | CancelRequest
    | Startup
    | Password
    | Query
    | Parse
    | Bind
    | Describe
    | Execute
    | Close
    | Sync
    | Flush
    | Terminate
    | CopyData
    | CopyDone
    | CopyFail
)


def protocol_violation(message: str) -> SqlError:
    return SqlError("08P01", message)


class _Body:
    """A cursor over one message body; reading past the end is a protocol violation."""

    __slots__ = ("data", "pos")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.pos = 0

    def cstr(self) -> str:
        end = self.data.find(b"\0", self.pos)
        if end < 0:
            raise protocol_violation("invalid string in message")
        raw = self.data[self.pos : end]
        self.pos = end + 1
        try:
            return raw.decode()
        except UnicodeDecodeError as e:
            raise SqlError("22021", f'invalid byte sequence for encoding "UTF8": 0x{raw[e.start]:02x}') from None

    def int16(self) -> int:
        return int.from_bytes(self.bytes(2), "big", signed=True)

    def int32(self) -> int:
        return int.from_bytes(self.bytes(4), "big", signed=True)

    def uint32(self) -> int:
        return int.from_bytes(self.bytes(4), "big")

    def bytes(self, n: int) -> bytes:
        if n < 0 or self.pos + n > len(self.data):
            raise protocol_violation("insufficient data left in message")
        out = self.data[self.pos : self.pos + n]
        self.pos += n
        return out

    def count(self) -> int:
        n = int.from_bytes(self.bytes(2), "big")
        return n

    def end(self) -> None:
        if self.pos != len(self.data):
            raise protocol_violation("invalid message format")


def _parse_bind(body: _Body) -> Bind:
    portal, statement = body.cstr(), body.cstr()
    param_formats = tuple(body.int16() for _ in range(body.count()))
    params: list[bytes | None] = []
    for _ in range(body.count()):
        n = body.int32()
        params.append(None if n == -1 else body.bytes(n))
    result_formats = tuple(body.int16() for _ in range(body.count()))
    return Bind(portal, statement, param_formats, tuple(params), result_formats)


class FrontendDecoder:
    """The messages of one client.

    Invariants: (1) before the start-up packet no tagged message is decoded; (2) the buffer holds less than one message.
    errors: SqlError 08P01 for anything that is no protocol 3 message, 22021 for text that is not UTF-8 (recoverable:
    the bad message was consumed).
    """

    def __init__(self) -> None:
        self._buffer = b""
        self._started = False

    @property
    def pending(self) -> bool:
        """Has part of a message come?"""
        return bool(self._buffer)

    def feed(self, data: bytes) -> list[FrontendMessage | SqlError]:
        """Complete messages in order; an SqlError stands for a message that could not be read."""
        buffer = self._buffer + data if self._buffer else data
        pos, size, out = 0, len(buffer), list[FrontendMessage | SqlError]()
        while True:
            if not self._started:
                if size - pos < 4:
                    break
                length = int.from_bytes(buffer[pos : pos + 4], "big")
                if not 8 <= length <= MAX_STARTUP_BYTES:
                    raise protocol_violation("invalid length of startup packet")
                if size - pos < length:
                    break
                out.append(self._startup(_Body(buffer[pos + 4 : pos + length])))
                pos += length
                continue
            if size - pos < 5:
                break
            length = int.from_bytes(buffer[pos + 1 : pos + 5], "big")
            tag = buffer[pos : pos + 1]
            if tag not in _PARSERS:
                raise protocol_violation(f"invalid frontend message type {tag[0]}")
            if not 4 <= length <= MAX_MESSAGE_BYTES:
                raise protocol_violation(f"invalid message length {length}")
            if size - pos < length + 1:
                break
            body = _Body(buffer[pos + 5 : pos + 1 + length])
            pos += length + 1
            try:
                out.append(_PARSERS[tag](body))
            except SqlError as error:
                out.append(error)
                if tag == b"Q":
                    out.append(Sync())  # a simple query is answered by ReadyForQuery, whatever becomes of it
        self._buffer = buffer[pos:] if pos else buffer
        return out

    def _startup(self, body: _Body) -> FrontendMessage:
        code = body.uint32()
        if code == SSL_REQUEST:
            return SslRequest()
        if code == GSSENC_REQUEST:
            return GssEncRequest()
        if code == CANCEL_REQUEST:
            return CancelRequest(body.int32(), body.int32())
        if code >> 16 != 3:
            raise SqlError(
                "0A000", f"unsupported frontend protocol {code >> 16}.{code & 0xFFFF}: server supports 3.0 to 3.0"
            )
        params: dict[str, str] = {}
        while (key := body.cstr()) != "":
            params[key] = body.cstr()
        self._started = True
        unknown = tuple(k for k in params if k.startswith("_pq_."))
        return Startup({k: v for k, v in params.items() if k not in unknown}, code & 0xFFFF, unknown)


def _close(body: _Body) -> Close:
    return Close(body.bytes(1).decode("latin-1"), body.cstr())


def _describe(body: _Body) -> Describe:
    return Describe(body.bytes(1).decode("latin-1"), body.cstr())


def _parse(body: _Body) -> Parse:
    return Parse(body.cstr(), body.cstr(), tuple(body.uint32() for _ in range(body.count())))


_PARSERS: dict[bytes, Callable[[_Body], FrontendMessage]] = {
    b"Q": lambda b: Query(b.cstr()),
    b"P": _parse,
    b"B": _parse_bind,
    b"D": _describe,
    b"E": lambda b: Execute(b.cstr(), b.int32()),
    b"C": _close,
    b"S": lambda b: Sync(),
    b"H": lambda b: Flush(),
    b"X": lambda b: Terminate(),
    b"d": lambda b: CopyData(b.data),
    b"c": lambda b: CopyDone(),
    b"f": lambda b: CopyFail(b.cstr()),
    b"p": lambda b: Password(b.data),
}


def encode_startup(params: dict[str, str]) -> bytes:
    """A start-up packet, for tests and tools."""
    body = struct.pack("!I", PROTOCOL_3)
    for key, value in params.items():
        body += key.encode() + b"\0" + value.encode() + b"\0"
    body += b"\0"
    return struct.pack("!I", len(body) + 4) + body
