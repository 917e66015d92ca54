"""bytea, encodings, hashes, uuids."""

from __future__ import annotations

import base64
import binascii
import codecs
import hashlib
import hmac
import uuid
import zlib
from collections.abc import Callable
from typing import Any

from mzlite.expr.functions.text import value
from mzlite.repr.errors import SqlError
from mzlite.repr.hashing import hash_bytes
from mzlite.repr.text import parse_datum
from mzlite.repr.types import BYTEA


def _hash(name: str) -> Callable[[bytes], Any]:
    found = {
        "md5": "md5",
        "sha1": "sha1",
        "sha224": "sha224",
        "sha256": "sha256",
        "sha384": "sha384",
        "sha512": "sha512",
    }
    if name not in found:
        raise SqlError("22023", f"invalid hash algorithm '{name}'")
    return lambda data: hashlib.new(found[name], data, usedforsecurity=False)


def raw(data: Any) -> bytes:
    return data.encode() if isinstance(data, str) else data


@value("md5", "text -> text", can_error=False)
@value("md5", "bytea -> text", can_error=False)
def _md5(data: Any) -> str:
    return hashlib.md5(raw(data), usedforsecurity=False).hexdigest()


for _name in ("sha224", "sha256", "sha384", "sha512"):
    value(_name, "bytea -> bytea", can_error=False)(lambda data, n=_name: hashlib.new(n, data).digest())


@value("digest", "text, text -> bytea")
@value("digest", "bytea, text -> bytea")
def _digest(data: Any, name: str) -> bytes:
    return bytes(_hash(name)(raw(data)).digest())


@value("hmac", "text, text, text -> bytea")
@value("hmac", "bytea, bytea, text -> bytea")
def _hmac(data: Any, key: Any, name: str) -> bytes:
    _hash(name)
    return hmac.new(raw(key), raw(data), name).digest()


@value("crc32", "text -> uint4", can_error=False)
@value("crc32", "bytea -> uint4", can_error=False)
def _crc32(data: Any) -> int:
    return zlib.crc32(raw(data))


@value("seahash", "text -> uint8", can_error=False)
@value("seahash", "bytea -> uint8", can_error=False)
@value("kafka_murmur2", "text -> uint8", can_error=False)
@value("kafka_murmur2", "bytea -> uint8", can_error=False)
def _hash64(data: Any) -> int:
    return hash_bytes(raw(data))


@value("encode", "bytea, text -> text")
def _encode(data: bytes, form: str) -> str:
    match form.lower():
        case "hex":
            return data.hex()
        case "base64":
            text = base64.b64encode(data).decode()
            return "\n".join(text[i : i + 76] for i in range(0, len(text), 76))
        case "escape":
            out = []
            for byte in data:
                if byte == 0x5C:
                    out.append("\\\\")
                elif byte == 0 or byte >= 0x80:
                    out.append(f"\\{byte:03o}")
                else:
                    out.append(chr(byte))
            return "".join(out)
        case _:
            raise SqlError("22023", f"invalid encoding format: {form}")


@value("decode", "text, text -> bytea")
def _decode(text: str, form: str) -> bytes:
    match form.lower():
        case "hex":
            digits = "".join(text.split())
            for c in digits:
                if c not in "0123456789abcdefABCDEF":
                    raise SqlError("22023", f'invalid hexadecimal digit: "{c}"')
            if len(digits) % 2:
                raise SqlError("22023", "invalid hexadecimal data: odd number of digits")
            return bytes.fromhex(digits)
        case "base64":
            return _decode_base64(text)
        case "escape":
            if text.startswith("\\x"):
                text = "\\" + text  # escape form has no hexadecimal prefix
            try:
                return bytes(parse_datum(BYTEA, text))
            except SqlError:
                raise SqlError("22P02", "invalid input syntax for type bytea") from None
        case _:
            raise SqlError("22023", f"invalid encoding format: {form}")


def _decode_base64(text: str) -> bytes:
    data = "".join(c for c in text if c not in " \t\r\n")
    for c in data:
        if not (c.isascii() and (c.isalnum() or c in "+/=")):
            raise SqlError("22023", f'invalid symbol "{c}" found while decoding base64 sequence')
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error:
        raise SqlError("22023", "invalid base64 end sequence") from None


_CODECS = {"utf8": "utf-8", "utf-8": "utf-8"}


@value("convert_from", "bytea, text -> text")
def _convert_from(data: bytes, encoding: str) -> str:
    name = encoding.lower().replace("_", "-")
    try:
        codec = _CODECS.get(name) or codecs.lookup(name).name
    except LookupError:
        raise SqlError("22023", f"invalid encoding name '{encoding.lower()}'") from None
    if codec != "utf-8":
        raise SqlError("0A000", f"unsupported encoding name '{encoding.lower()}'")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        bad = data[error.start]
        raise SqlError(
            "22021", f"invalid byte sequence '{chr(0x5C)}x{bad:02x}' for encoding '{encoding.lower()}'"
        ) from None


@value("get_bit", "bytea, int4 -> int4")
def _get_bit(data: bytes, index: int) -> int:
    if not 0 <= index < len(data) * 8:
        raise SqlError("2202E", f"index {index} out of valid range, 0..{len(data) * 8 - 1}")
    return data[index // 8] >> (index % 8) & 1


@value("get_byte", "bytea, int4 -> int4")
def _get_byte(data: bytes, index: int) -> int:
    if not 0 <= index < len(data):
        raise SqlError("2202E", f"index {index} out of valid range, 0..{len(data) - 1}")
    return data[index]


@value("bit_count", "bytea -> int8", can_error=False)
def _bit_count(data: bytes) -> int:
    return int.from_bytes(data, "big").bit_count()


@value("reverse", "bytea -> bytea", can_error=False)
def _reverse(data: bytes) -> bytes:
    return data[::-1]


@value("repeat", "bytea, int4 -> bytea")
def _repeat(data: bytes, times: int) -> bytes:
    return data * max(times, 0)


@value("uuid_generate_v5", "uuid, text -> uuid", can_error=False)
def _uuid_v5(namespace: bytes, name: str) -> bytes:
    return uuid.uuid5(uuid.UUID(bytes=namespace), name).bytes
