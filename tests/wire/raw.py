"""A client that speaks the protocol by hand: what no driver would ever send, and every message that comes back."""

from __future__ import annotations

import contextlib
import socket
import struct
from types import TracebackType

NAMES = {
    b"R": "Auth", b"S": "ParameterStatus", b"K": "BackendKeyData", b"Z": "Ready", b"T": "RowDescription", b"D": "DataRow",
    b"C": "Complete", b"E": "Error", b"N": "Notice", b"1": "ParseComplete", b"2": "BindComplete", b"3": "CloseComplete",
    b"n": "NoData", b"t": "ParameterDescription", b"s": "Suspended", b"I": "Empty", b"G": "CopyIn", b"H": "CopyOut",
    b"d": "CopyData", b"c": "CopyDone", b"v": "Negotiate",
}  # fmt: skip


def packet(tag: bytes, body: bytes = b"") -> bytes:
    return tag + struct.pack("!i", len(body) + 4) + body


def query(sql: str) -> bytes:
    return packet(b"Q", sql.encode() + b"\0")


def parse(sql: str, name: str = "", oids: tuple[int, ...] = ()) -> bytes:
    return packet(b"P", name.encode() + b"\0" + sql.encode() + b"\0" + struct.pack(f"!H{len(oids)}I", len(oids), *oids))


def bind(
    params: tuple[bytes | None, ...] = (),
    *,
    portal: str = "",
    statement: str = "",
    param_formats: tuple[int, ...] = (),
    formats: tuple[int, ...] = (),
) -> bytes:
    body = portal.encode() + b"\0" + statement.encode() + b"\0"
    body += struct.pack(f"!h{len(param_formats)}h", len(param_formats), *param_formats) + struct.pack("!h", len(params))
    for p in params:
        body += struct.pack("!i", -1) if p is None else struct.pack("!i", len(p)) + p
    return packet(b"B", body + struct.pack(f"!h{len(formats)}h", len(formats), *formats))


def describe(kind: str, name: str = "") -> bytes:
    return packet(b"D", kind.encode() + name.encode() + b"\0")


def execute(limit: int = 0, portal: str = "") -> bytes:
    return packet(b"E", portal.encode() + b"\0" + struct.pack("!i", limit))


def close(kind: str, name: str = "") -> bytes:
    return packet(b"C", kind.encode() + name.encode() + b"\0")


SYNC, FLUSH, TERMINATE, COPY_DONE = packet(b"S"), packet(b"H"), packet(b"X"), packet(b"c")


class RawClient:
    """startup: parameters of the startup packet; None sends nothing."""

    def __init__(self, port: int, startup: dict[str, str] | None = {}, timeout: float = 20) -> None:  # noqa: B006
        self.sock = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        self._buffer = b""
        self.parameters: dict[str, str] = {}
        self.key = (0, 0)
        if startup is not None:
            pairs = {"user": "materialize", "database": "materialize", **startup}
            body = struct.pack("!i", 196608) + b"".join(
                k.encode() + b"\0" + v.encode() + b"\0" for k, v in pairs.items()
            )
            self.send(struct.pack("!i", len(body) + 5) + body + b"\0")
            self.greeting = self.until_ready()

    def __enter__(self) -> RawClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.sock.close()

    def send(self, *packets: bytes) -> None:
        self.sock.sendall(b"".join(packets))

    def vanish(self) -> None:
        """Close with a reset, as a machine that lost its power looks after a while."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def read(self, n: int) -> bytes:
        while len(self._buffer) < n:
            more = self.sock.recv(1 << 16)
            if not more:
                raise EOFError
            self._buffer += more
        out, self._buffer = self._buffer[:n], self._buffer[n:]
        return out

    def message(self) -> tuple[str, object]:
        """(name, what matters of it)."""
        tag = self.read(1)
        body = self.read(struct.unpack("!i", self.read(4))[0] - 4)
        name = NAMES[tag]
        match name:
            case "Error" | "Notice":
                fields = {f[:1].decode(): f[1:].decode() for f in body.split(b"\0") if f}
                return name, fields["C"]
            case "Complete":
                return name, body[:-1].decode()
            case "Ready":
                return name, body.decode()
            case "DataRow":
                return name, _cells(body)
            case "ParameterStatus":
                key, value = body[:-1].split(b"\0")
                self.parameters[key.decode()] = value.decode()
                return name, (key.decode(), value.decode())
            case "BackendKeyData":
                self.key = struct.unpack("!II", body)
                return name, None
            case "CopyData":
                return name, body
            case _:
                return name, None

    def until(self, name: str) -> list[tuple[str, object]]:
        out = []
        while not out or out[-1][0] != name:
            out.append(self.message())
        return out

    def until_ready(self) -> list[tuple[str, object]]:
        return self.until("Ready")

    def ask(self, *packets: bytes) -> list[tuple[str, object]]:
        self.send(*packets)
        return self.until_ready()

    def rows(self, sql: str) -> list[object]:
        return [what for name, what in self.ask(query(sql)) if name == "DataRow"]

    def at_end(self) -> bool:
        """Does the server close the connection (now, or after what it still sends)?"""
        with contextlib.suppress(EOFError, ConnectionResetError):
            while True:
                self.message()
        return True


def _cells(body: bytes) -> tuple[bytes | None, ...]:
    count = struct.unpack("!h", body[:2])[0]
    at, cells = 2, []
    for _ in range(count):
        size = struct.unpack("!i", body[at : at + 4])[0]
        at += 4
        cells.append(None if size < 0 else body[at : at + size])
        at += max(size, 0)
    return tuple(cells)


def names(messages: list[tuple[str, object]]) -> list[str]:
    return [name for name, _ in messages]
