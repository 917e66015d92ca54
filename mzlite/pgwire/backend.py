"""What the server sends: one function a message, each returning its bytes.

Source: PostgreSQL 15 documentation, chapter 55.7 (message formats), 55.8 (error fields).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from mzlite.repr.errors import SqlError
from mzlite.repr.typenames import oid_of
from mzlite.repr.types import RelationDesc, ScalarType

_HEADER = struct.Struct("!ci")


def message(tag: bytes, body: bytes = b"") -> bytes:
    return _HEADER.pack(tag, len(body) + 4) + body


AUTH_OK = message(b"R", struct.pack("!i", 0))
PARSE_COMPLETE = message(b"1")
BIND_COMPLETE = message(b"2")
CLOSE_COMPLETE = message(b"3")
NO_DATA = message(b"n")
EMPTY_QUERY = message(b"I")
PORTAL_SUSPENDED = message(b"s")
COPY_DONE = message(b"c")
READY = {status: message(b"Z", status) for status in (b"I", b"T", b"E")}


def parameter_status(name: str, value: str) -> bytes:
    return message(b"S", name.encode() + b"\0" + value.encode() + b"\0")


def backend_key_data(pid: int, secret: int) -> bytes:
    return message(b"K", struct.pack("!II", pid, secret))


def negotiate_protocol_version(unknown: Sequence[str]) -> bytes:
    body = struct.pack("!ii", 0, len(unknown)) + b"".join(o.encode() + b"\0" for o in unknown)
    return message(b"v", body)


def command_complete(tag: str) -> bytes:
    return message(b"C", tag.encode() + b"\0")


def parameter_description(types: Sequence[ScalarType]) -> bytes:
    return message(b"t", struct.pack(f"!H{len(types)}I", len(types), *(oid_of(t) for t in types)))


_LENGTHS = {
    "bool": 1, "char": 1, "int2": 2, "int4": 4, "int8": 8, "uint2": 2, "uint4": 4, "uint8": 8, "float4": 4, "float8": 8,
    "oid": 4, "regclass": 4, "regtype": 4, "regproc": 4, "date": 4, "time": 8, "timestamp": 8, "timestamptz": 8,
    "interval": 16, "uuid": 16, "name": 64,
}  # fmt: skip


def type_modifier(typ: ScalarType) -> int:
    """atttypmod as PostgreSQL reports it; -1 when there is none."""
    if typ.kind in ("varchar", "bpchar") and typ.length is not None:
        return typ.length + 4
    if typ.kind == "numeric" and typ.scale is not None:
        return (((typ.precision or 39) << 16) | typ.scale) + 4
    if typ.kind in ("timestamp", "timestamptz", "time") and typ.precision is not None:
        return typ.precision
    return -1


def row_description(desc: RelationDesc, formats: Sequence[int]) -> bytes:
    """formats: one per column, 0 text or 1 binary."""
    parts = [struct.pack("!H", len(desc.names))]
    for name, column, fmt in zip(desc.names, desc.typ.columns, formats):
        typ = column.scalar
        parts.append(name.encode() + b"\0")
        parts.append(struct.pack("!IhIhih", 0, 0, oid_of(typ), _LENGTHS.get(typ.kind, -1), type_modifier(typ), fmt))
    return message(b"T", b"".join(parts))


def copy_response(tag: bytes, column_count: int, binary: bool) -> bytes:
    """tag: b"G" CopyInResponse, b"H" CopyOutResponse."""
    fmt = 1 if binary else 0
    return message(tag, struct.pack(f"!bH{column_count}h", fmt, column_count, *[fmt] * column_count))


def copy_data(data: bytes) -> bytes:
    return message(b"d", data)


def _fields(
    severity: str, sqlstate: str, text: str, detail: str | None, hint: str | None, position: int | None
) -> bytes:
    pairs = [(b"S", severity), (b"V", severity), (b"C", sqlstate), (b"M", text)]
    if detail:
        pairs.append((b"D", detail))
    if hint:
        pairs.append((b"H", hint))
    if position is not None:
        pairs.append((b"P", str(position)))
    return b"".join(k + v.replace("\0", "").encode("utf-8", "replace") + b"\0" for k, v in pairs) + b"\0"


def error_response(error: SqlError, severity: str = "ERROR") -> bytes:
    return message(b"E", _fields(severity, error.sqlstate, error.message, error.detail, error.hint, error.position))


def notice_response(
    severity: str, sqlstate: str, text: str, detail: str | None = None, hint: str | None = None
) -> bytes:
    return message(b"N", _fields(severity, sqlstate, text, detail, hint, None))
