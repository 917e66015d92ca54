"""Datums: the Python value of each SQL type, and the canonical bytes that literals and VAR columns hold.

    bool bool · ints, oid, reg*, mz_timestamp int · floats float · numeric Decimal · text kinds str · bytea, uuid bytes
    date int days since 1970 · time int us since midnight · timestamp(tz) int us since 1970 · interval Interval
    jsonb dict/list/str/Decimal/bool/JSON_NULL · array ArrayDatum · list tuple · map dict · record tuple
    range RangeDatum · int2vector tuple of int · SQL NULL None, everywhere

Canonical means: equal values have equal bytes, and bytewise order is SQL's order (NULL elements last). So columns of
every such type share one class whose hash, equality and order never look at the type. Fixed-width values are
big-endian with the sign bit flipped; text inside a container is escaped and terminated (`jsonb.write_text`); a container
is a run of 01-tagged elements closed by 00. A text column's own values are plain UTF-8.

source: the order-preserving tuple encoding of FoundationDB's layers.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from mzlite.repr import jsonb
from mzlite.repr.column import BoolArray, Column
from mzlite.repr.fixed import DTYPES, FixedColumn
from mzlite.repr.interval import INTERVAL_DTYPE, Interval, IntervalColumn
from mzlite.repr.jsonb import JSON_NULL
from mzlite.repr.number import decode_number, encode_number, read_number
from mzlite.repr.numeric import NumericColumn
from mzlite.repr.types import INT2, ColumnType, Layout, ScalarType
from mzlite.repr.var import VarColumn

__all__ = [
    "JSON_NULL",
    "ArrayDatum",
    "Interval",
    "RangeDatum",
    "column_from_datums",
    "column_from_literals",
    "column_to_datums",
    "decode_datum",
    "encode_datum",
]

Datum = Any

TEXT_KINDS = frozenset(("text", "varchar", "bpchar", "char", "name", "unknown", "aclitem", "mz_aclitem"))
RAW_KINDS = frozenset(("bytea", "uuid"))


class ArrayDatum(NamedTuple):
    """dims: (length, lower bound) a dimension, () when empty. elements: row-major."""

    dims: tuple[tuple[int, int], ...]
    elements: tuple[Datum, ...]

    @classmethod
    def of(cls, elements: Sequence[Datum]) -> ArrayDatum:
        """The one-dimensional array of `elements`."""
        return cls(((len(elements), 1),) if elements else (), tuple(elements))


class RangeDatum(NamedTuple):
    """A bound of None is infinite (its inc flag is then False)."""

    lower: Datum = None
    upper: Datum = None
    lower_inc: bool = False
    upper_inc: bool = False
    empty: bool = False


# The scalar codecs: fixed-width kinds to and from big-endian bytes with bytewise order.
_SIGNED = {"int2": 2, "int4": 4, "int8": 8, "date": 4, "time": 8, "timestamp": 8, "timestamptz": 8}
_UNSIGNED = {"uint2": 2, "uint4": 4, "uint8": 8, "oid": 4, "regclass": 4, "regproc": 4, "regtype": 4, "mz_timestamp": 8}
_INTERVAL = struct.Struct(">qQiiq")
_F64 = struct.Struct(">d")
_U64 = struct.Struct(">Q")
_TOP = 1 << 63


def encode_datum(typ: ScalarType, datum: Datum) -> bytes:
    """Canonical bytes of a non-NULL datum of `typ`."""
    kind = typ.kind
    if kind in TEXT_KINDS:
        return datum.encode()  # type: ignore[no-any-return]
    if kind in RAW_KINDS:
        return bytes(datum)
    if kind == "jsonb":
        return jsonb.encode_jsonb(datum)
    out = bytearray()
    _write(typ, datum, out)
    return bytes(out)


def decode_datum(typ: ScalarType, data: bytes) -> Datum:
    """Inverse of `encode_datum`."""
    kind = typ.kind
    if kind in TEXT_KINDS:
        return data.decode()
    if kind in RAW_KINDS:
        return data
    if kind == "jsonb":
        return jsonb.decode_jsonb(data)
    return _read(typ, data, 0)[0]


def _write(typ: ScalarType, datum: Datum, out: bytearray) -> None:
    """Append the self-delimiting form of a datum."""
    kind = typ.kind
    if kind in _SIGNED:
        size = _SIGNED[kind]
        out += (datum + (1 << (8 * size - 1))).to_bytes(size, "big")
    elif kind in TEXT_KINDS:
        jsonb.write_text(datum.encode(), out)
    elif kind == "bool":
        out.append(1 if datum else 0)
    elif kind in _UNSIGNED:
        out += datum.to_bytes(_UNSIGNED[kind], "big")
    elif kind == "float8" or kind == "float4":
        out += encode_float(datum)
    elif kind == "numeric":
        out += encode_number(datum)
    elif kind == "interval":
        days, rest = datum.normal()
        out += _INTERVAL.pack(days, rest, datum.months, datum.days, datum.us)
        out[-32] ^= 0x80
    elif kind == "uuid":
        out += datum
    elif kind == "bytea":
        jsonb.write_text(datum, out)
    elif kind == "jsonb":
        out += jsonb.encode_jsonb(datum)
    else:
        _WRITERS[kind](typ, datum, out)


def encode_float(value: float) -> bytes:
    """8 bytes in numeric order; NaN greatest; -0.0 keeps its sign (it is displayed), columns compare it equal to 0.0."""
    if value != value:
        return b"\xff" * 8
    bits = _U64.unpack(_F64.pack(value))[0]
    return _U64.pack(bits ^ (_TOP if bits < _TOP else 2 * _TOP - 1))


def decode_float(data: bytes, at: int) -> float:
    bits = _U64.unpack_from(data, at)[0]
    if bits == 2 * _TOP - 1:
        return float("nan")
    value: float = _F64.unpack(_U64.pack(bits ^ (_TOP if bits >= _TOP else 2 * _TOP - 1)))[0]
    return value


def _write_elements(typ: ScalarType, elements: Sequence[Datum], out: bytearray) -> None:
    for element in elements:
        if element is None:
            out.append(2)
        else:
            out.append(1)
            _write(typ, element, out)
    out.append(0)


def _element(typ: ScalarType) -> ScalarType:
    assert typ.element is not None, typ
    return typ.element


def _write_array(typ: ScalarType, datum: ArrayDatum, out: bytearray) -> None:
    _write_elements(_element(typ), datum.elements, out)
    out.append(len(datum.dims))
    for length, lower in datum.dims:
        out += length.to_bytes(4, "big")
        out += (lower + (1 << 31)).to_bytes(4, "big")


def _write_list(typ: ScalarType, datum: Sequence[Datum], out: bytearray) -> None:
    _write_elements(_element(typ), datum, out)


def _write_int2vector(typ: ScalarType, datum: Sequence[int], out: bytearray) -> None:
    _write_elements(INT2, datum, out)


def _write_map(typ: ScalarType, datum: dict[str, Datum], out: bytearray) -> None:
    value_type = _element(typ)
    for key, value in sorted((k.encode(), v) for k, v in datum.items()):
        out.append(1)
        jsonb.write_text(key, out)
        if value is None:
            out.append(2)
        else:
            out.append(1)
            _write(value_type, value, out)
    out.append(0)


def _fields(typ: ScalarType) -> tuple[tuple[str, ColumnType], ...]:
    assert typ.fields is not None, typ
    return typ.fields


def _write_record(typ: ScalarType, datum: Sequence[Datum], out: bytearray) -> None:
    for (_, field), value in zip(_fields(typ), datum, strict=True):
        if value is None:
            out.append(2)
        else:
            out.append(1)
            _write(field.scalar, value, out)
    out.append(0)


def _write_range(typ: ScalarType, datum: RangeDatum, out: bytearray) -> None:
    if datum.empty:
        out.append(0)
        return
    subtype = _element(typ)
    out.append(1)
    if datum.lower is None:
        out.append(0)
    else:
        out.append(1)
        _write(subtype, datum.lower, out)
        out.append(0 if datum.lower_inc else 1)
    if datum.upper is None:
        out.append(2)
    else:
        out.append(1)
        _write(subtype, datum.upper, out)
        out.append(1 if datum.upper_inc else 0)


_WRITERS: dict[str, Callable[[ScalarType, Any, bytearray], None]] = {
    "array": _write_array,
    "list": _write_list,
    "int2vector": _write_int2vector,
    "map": _write_map,
    "record": _write_record,
    "range": _write_range,
}


def _read(typ: ScalarType, data: bytes, at: int) -> tuple[Datum, int]:
    """The datum whose self-delimiting form starts at data[at], and where it ends."""
    kind = typ.kind
    if kind in _SIGNED:
        size = _SIGNED[kind]
        return int.from_bytes(data[at : at + size], "big") - (1 << (8 * size - 1)), at + size
    if kind in TEXT_KINDS:
        raw, at = jsonb.read_text(data, at)
        return raw.decode(), at
    if kind == "bool":
        return data[at] == 1, at + 1
    if kind in _UNSIGNED:
        size = _UNSIGNED[kind]
        return int.from_bytes(data[at : at + size], "big"), at + size
    if kind == "float8" or kind == "float4":
        return decode_float(data, at), at + 8
    if kind == "numeric":
        return read_number(data, at)
    if kind == "interval":
        _, _, months, days, us = _INTERVAL.unpack_from(data, at)
        return Interval(months, days, us), at + 32
    if kind == "uuid":
        return data[at : at + 16], at + 16
    if kind == "bytea":
        return jsonb.read_text(data, at)
    if kind == "jsonb":
        return jsonb.read_jsonb(data, at)
    return _READERS[kind](typ, data, at)


def _read_elements(typ: ScalarType, data: bytes, at: int) -> tuple[tuple[Datum, ...], int]:
    elements: list[Datum] = []
    while True:
        tag = data[at]
        at += 1
        if tag == 0:
            return tuple(elements), at
        if tag == 2:
            elements.append(None)
        else:
            element, at = _read(typ, data, at)
            elements.append(element)


def _read_array(typ: ScalarType, data: bytes, at: int) -> tuple[Datum, int]:
    elements, at = _read_elements(_element(typ), data, at)
    count = data[at]
    at += 1
    dims: list[tuple[int, int]] = []
    for _ in range(count):
        length = int.from_bytes(data[at : at + 4], "big")
        dims.append((length, int.from_bytes(data[at + 4 : at + 8], "big") - (1 << 31)))
        at += 8
    return ArrayDatum(tuple(dims), elements), at


def _read_list(typ: ScalarType, data: bytes, at: int) -> tuple[Datum, int]:
    return _read_elements(_element(typ), data, at)


def _read_int2vector(typ: ScalarType, data: bytes, at: int) -> tuple[Datum, int]:
    return _read_elements(INT2, data, at)


def _read_map(typ: ScalarType, data: bytes, at: int) -> tuple[Datum, int]:
    value_type = _element(typ)
    out: dict[str, Datum] = {}
    while data[at]:
        key, at = jsonb.read_text(data, at + 1)
        value = None
        at += 1
        if data[at - 1] == 1:
            value, at = _read(value_type, data, at)
        out[key.decode()] = value
    return out, at + 1


def _read_record(typ: ScalarType, data: bytes, at: int) -> tuple[Datum, int]:
    values: list[Datum] = []
    for _, field in _fields(typ):
        value = None
        at += 1
        if data[at - 1] == 1:
            value, at = _read(field.scalar, data, at)
        values.append(value)
    return tuple(values), at + 1


def _read_range(typ: ScalarType, data: bytes, at: int) -> tuple[Datum, int]:
    if data[at] == 0:
        return RangeDatum(empty=True), at + 1
    subtype = _element(typ)
    lower = upper = None
    lower_inc = upper_inc = False
    at += 2
    if data[at - 1] == 1:
        lower, at = _read(subtype, data, at)
        lower_inc = data[at] == 0
        at += 1
    at += 1
    if data[at - 1] == 1:
        upper, at = _read(subtype, data, at)
        upper_inc = data[at] == 1
        at += 1
    return RangeDatum(lower, upper, lower_inc, upper_inc), at


_READERS: dict[str, Callable[[ScalarType, bytes, int], tuple[Datum, int]]] = {
    "array": _read_array,
    "list": _read_list,
    "int2vector": _read_int2vector,
    "map": _read_map,
    "record": _read_record,
    "range": _read_range,
}


def column_from_datums(typ: ScalarType, datums: Sequence[Datum]) -> Column:
    """A column of Python datums (None = NULL). A row at a time: for constants, parameters and tests."""
    layout = typ.layout
    if layout is Layout.VAR:
        if typ.kind in TEXT_KINDS:
            return VarColumn.from_strings(datums)
        return VarColumn.from_bytes([None if d is None else encode_datum(typ, d) for d in datums])
    if layout is Layout.NUMERIC:
        return NumericColumn.from_decimals(datums)
    valid: BoolArray | None = None
    if None in datums:
        valid = np.array([d is not None for d in datums], np.bool_)
    if layout is Layout.INTERVAL:
        zero = (0, 0, 0)
        return IntervalColumn(np.array([tuple(d) if d is not None else zero for d in datums], INTERVAL_DTYPE), valid)
    present = datums if valid is None else [0 if d is None else d for d in datums]
    return FixedColumn(np.array(present, DTYPES[layout]), valid, layout)


def column_to_datums(typ: ScalarType, col: Column) -> list[Datum]:
    """Python datums of a column (None = NULL). A row at a time."""
    if isinstance(col, VarColumn):
        if typ.kind in TEXT_KINDS:
            return col.to_strings()
        if typ.kind in RAW_KINDS:
            return col.to_bytes()
        return [None if b is None else decode_datum(typ, b) for b in col.to_bytes()]
    if isinstance(col, NumericColumn):
        return col.to_decimals()
    assert isinstance(col, FixedColumn), col
    values: list[Datum] = col.values.tolist()
    if isinstance(col, IntervalColumn):
        values = [Interval(*v) for v in values]
    if col.valid is not None:
        for i in np.flatnonzero(~col.valid).tolist():
            values[i] = None
    return values


def column_from_literals(typ: ScalarType, literals: Sequence[bytes | None]) -> Column:
    """A column of canonical bytes (None = NULL), as `Literal.value` holds them."""
    layout = typ.layout
    if layout is Layout.VAR:
        return VarColumn.from_bytes(literals)
    if layout is Layout.NUMERIC:
        decimals: list[Decimal | None] = [None if b is None else decode_number(b) for b in literals]
        return NumericColumn.from_decimals(decimals)
    return column_from_datums(typ, [None if b is None else _read(typ, b, 0)[0] for b in literals])
