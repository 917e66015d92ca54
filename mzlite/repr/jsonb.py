"""jsonb's canonical bytes: order-preserving, self-delimiting, readable without decoding what is skipped.

    01 null   02 string   03 number   04 false   05 true   06 array   07 object      (PostgreSQL's order of kinds)
    string    escaped bytes, ended by 00 00 (a zero byte inside is 00 FF)
    array     u32 count, then the elements: an array with fewer elements sorts first
    object    u32 count, then key and value pairs, keys in byte order, the last of duplicates kept

JSON_NULL is JSON's null; Python's None is SQL's NULL and never stands inside a jsonb value.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

from mzlite.repr.number import encode_number, read_number, skip_number

NULL, STRING, NUMBER, FALSE, TRUE, ARRAY, OBJECT = range(1, 8)


class JsonNull:
    """The one value of JSON's null."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "JSON_NULL"

    def __bool__(self) -> bool:
        return False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JsonNull)

    def __hash__(self) -> int:
        return 0x6E756C6C

    def __copy__(self) -> JsonNull:
        return self

    def __deepcopy__(self, memo: Any) -> JsonNull:
        return self


JSON_NULL: Final = JsonNull()

Json = Any  # dict[str, Json] | list[Json] | str | Decimal | bool | JsonNull


def write_text(raw: bytes, out: bytearray) -> None:
    """Append `raw` escaped and terminated, so that bytewise order is kept and the end can be found."""
    if b"\x00" in raw:
        raw = raw.replace(b"\x00", b"\x00\xff")
    out += raw
    out += b"\x00\x00"


def read_text(data: bytes, at: int) -> tuple[bytes, int]:
    """Inverse of `write_text`: the raw bytes and where the next value starts."""
    end = skip_text(data, at)
    raw = data[at : end - 2]
    return (raw.replace(b"\x00\xff", b"\x00") if b"\x00" in raw else raw), end


def skip_text(data: bytes, at: int) -> int:
    while True:
        at = data.index(b"\x00", at)
        if data[at + 1] == 0:
            return at + 2
        at += 2


def encode_jsonb(value: Json) -> bytes:
    """Canonical bytes of a JSON value. Numbers may also be ints and floats (finite)."""
    out = bytearray()
    _write(value, out)
    return bytes(out)


def _write(value: Json, out: bytearray) -> None:
    if isinstance(value, str):
        out.append(STRING)
        write_text(value.encode(), out)
    elif value is True:
        out.append(TRUE)
    elif value is False:
        out.append(FALSE)
    elif isinstance(value, Decimal):
        out.append(NUMBER)
        out += encode_number(value)
    elif isinstance(value, dict):
        out.append(OBJECT)
        out += len(value).to_bytes(4, "big")
        for key in sorted(value):
            write_text(key.encode(), out)
            _write(value[key], out)
    elif isinstance(value, list | tuple):
        out.append(ARRAY)
        out += len(value).to_bytes(4, "big")
        for element in value:
            _write(element, out)
    elif isinstance(value, int):
        out.append(NUMBER)
        out += encode_number(Decimal(value))
    elif isinstance(value, float):
        out.append(NUMBER)
        out += encode_number(Decimal(repr(value)))
    else:
        assert isinstance(value, JsonNull), value
        out.append(NULL)


def decode_jsonb(data: bytes) -> Json:
    return read_jsonb(data, 0)[0]


def read_jsonb(data: bytes, at: int) -> tuple[Json, int]:
    """The value that starts at data[at], and where it ends."""
    tag = data[at]
    at += 1
    if tag == STRING:
        raw, at = read_text(data, at)
        return raw.decode(), at
    if tag == NUMBER:
        return read_number(data, at)
    if tag == OBJECT:
        fields: dict[str, Json] = {}
        count = int.from_bytes(data[at : at + 4], "big")
        at += 4
        for _ in range(count):
            key, at = read_text(data, at)
            fields[key.decode()], at = read_jsonb(data, at)
        return fields, at
    if tag == ARRAY:
        elements: list[Json] = []
        count = int.from_bytes(data[at : at + 4], "big")
        at += 4
        for _ in range(count):
            element, at = read_jsonb(data, at)
            elements.append(element)
        return elements, at
    if tag == NULL:
        return JSON_NULL, at
    return tag == TRUE, at


def skip_jsonb(data: bytes, at: int) -> int:
    """Where the value that starts at data[at] ends."""
    tag = data[at]
    at += 1
    if tag == STRING:
        return skip_text(data, at)
    if tag == NUMBER:
        return skip_number(data, at)
    if tag in (OBJECT, ARRAY):
        count = int.from_bytes(data[at : at + 4], "big")
        at += 4
        for _ in range(count):
            if tag == OBJECT:
                at = skip_text(data, at)
            at = skip_jsonb(data, at)
    return at


def object_items(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """(key, value bytes) of an object, in key order; nothing for other kinds. Values are slices of `data`."""
    if data[0] != OBJECT:
        return
    at = 5
    for _ in range(int.from_bytes(data[1:5], "big")):
        key, at = read_text(data, at)
        end = skip_jsonb(data, at)
        yield key, data[at:end]
        at = end


def array_items(data: bytes) -> Iterator[bytes]:
    """Value bytes of an array's elements; nothing for other kinds."""
    if data[0] != ARRAY:
        return
    at = 5
    for _ in range(int.from_bytes(data[1:5], "big")):
        end = skip_jsonb(data, at)
        yield data[at:end]
        at = end


def get_field(data: bytes, key: bytes) -> bytes | None:
    """Bytes of an object's value under `key`; None if absent or no object."""
    for name, value in object_items(data):
        if name == key:
            return value
        if name > key:
            return None
    return None


def get_element(data: bytes, index: int) -> bytes | None:
    """Bytes of an array's element (negative counts from the end); None if out of range or no array."""
    if data[0] != ARRAY:
        return None
    count = int.from_bytes(data[1:5], "big")
    if index < 0:
        index += count
    if not 0 <= index < count:
        return None
    at = 5
    for _ in range(index):
        at = skip_jsonb(data, at)
    return data[at : skip_jsonb(data, at)]
