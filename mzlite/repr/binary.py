"""The binary wire form of values, as PostgreSQL's drivers expect it.

Types that PostgreSQL lacks follow Materialize: unsigned integers big-endian, mz_timestamp and the rest as text.
source: PostgreSQL's *send and *recv functions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

from mzlite.repr import jsontext
from mzlite.repr.column import Column
from mzlite.repr.datum import TEXT_KINDS, ArrayDatum, Datum, RangeDatum, column_to_datums
from mzlite.repr.decimals import WIDE_CONTEXT, fit, reduce, rescale
from mzlite.repr.errors import SqlError
from mzlite.repr.fixed import FixedColumn
from mzlite.repr.interval import Interval
from mzlite.repr.numeric import NumericColumn
from mzlite.repr.ranges import EMPTY, canonical_range
from mzlite.repr.text import fit_length, format_datum, parse_datum, round_timestamp
from mzlite.repr.typenames import oid_of
from mzlite.repr.types import INT2, Layout, ScalarType
from mzlite.repr.var import VarColumn

# 2000-01-01, PostgreSQL's epoch, counted from ours.
_EPOCH_DAYS = 10_957
_EPOCH_US = _EPOCH_DAYS * 86_400_000_000
_I2, _I4, _I8 = struct.Struct("!h"), struct.Struct("!i"), struct.Struct("!q")
_U2, _U4, _U8 = struct.Struct("!H"), struct.Struct("!I"), struct.Struct("!Q")
_F4, _F8 = struct.Struct("!f"), struct.Struct("!d")
_INTERVAL = struct.Struct("!qii")
_NUMERIC = struct.Struct("!hhHh")
_ARRAY = struct.Struct("!iii")
_STRUCTS = {
    "bool": struct.Struct("!?"), "int2": _I2, "int4": _I4, "int8": _I8, "uint2": _U2, "uint4": _U4, "uint8": _U8,
    "oid": _U4, "regclass": _U4, "regproc": _U4, "regtype": _U4, "float4": _F4, "float8": _F8, "time": _I8,
}  # fmt: skip
_SHIFTS = {"date": (_I4, _EPOCH_DAYS), "timestamp": (_I8, _EPOCH_US), "timestamptz": (_I8, _EPOCH_US)}
_WIRE_DTYPES = {
    Layout.I16: ">i2", Layout.I32: ">i4", Layout.I64: ">i8", Layout.U16: ">u2", Layout.U32: ">u4", Layout.F32: ">f4",
    Layout.F64: ">f8", Layout.TIME: ">i8", Layout.DATE: ">i4", Layout.TIMESTAMP: ">i8",
}  # fmt: skip


def encode_column(typ: ScalarType, col: Column) -> list[bytes | None]:
    """The binary wire form of each value, None for NULL."""
    kind = typ.kind
    if isinstance(col, VarColumn) and (kind in TEXT_KINDS or kind in ("bytea", "uuid")) and typ.length is None:
        return col.to_bytes()
    if isinstance(col, FixedColumn):
        dtype = ">u8" if kind == "uint8" else _WIRE_DTYPES.get(col.layout)
        if dtype is not None:
            values = col.values
            if kind in _SHIFTS:
                values = values - _SHIFTS[kind][1]
            size = int(dtype[2])
            flat = values.astype(dtype).tobytes()
            out: list[bytes | None] = [flat[i : i + size] for i in range(0, len(flat), size)]
            if col.valid is not None:
                for i in np.flatnonzero(~col.valid).tolist():
                    out[i] = None
            return out
    if isinstance(col, NumericColumn) and col.wide is None:
        scale = _common_scale(typ, col)
        if scale is not None:
            return _encode_narrow(col, scale)
    return [None if d is None else encode_value(typ, d) for d in column_to_datums(typ, col)]


def encode_value(typ: ScalarType, datum: Datum) -> bytes:
    """The binary wire form of a non-NULL datum."""
    kind = typ.kind
    if kind in _STRUCTS:
        return _STRUCTS[kind].pack(datum)
    if kind in _SHIFTS:
        packer, epoch = _SHIFTS[kind]
        return packer.pack(datum - epoch)
    encoder = _ENCODERS.get(kind)
    return format_datum(typ, datum).encode() if encoder is None else encoder(typ, datum)


def _sized(typ: ScalarType, datum: Datum) -> bytes:
    if datum is None:
        return b"\xff\xff\xff\xff"
    data = encode_value(typ, datum)
    return _I4.pack(len(data)) + data


def _encode_numeric(typ: ScalarType, datum: Decimal) -> bytes:
    if not datum.is_finite():
        return _NUMERIC.pack(0, 0, 0xC000 if datum.is_nan() else 0xF000 if datum < 0 else 0xD000, 0)
    datum = reduce(datum) if typ.scale is None else datum.quantize(Decimal((0, (1,), -typ.scale)), context=WIDE_CONTEXT)
    sign, digits, exponent = datum.as_tuple()
    assert isinstance(exponent, int)
    scale = -exponent
    # Base-10000 digits, aligned at the decimal point.
    text = "".join(map(str, digits))
    text = text.rjust(scale, "0")
    whole, fraction = text[: len(text) - scale], text[len(text) - scale :]
    whole = whole.rjust(-(-len(whole) // 4) * 4, "0")
    fraction = fraction.ljust(-(-len(fraction) // 4) * 4, "0")
    groups = [int((whole + fraction)[i : i + 4]) for i in range(0, len(whole) + len(fraction), 4)]
    weight = len(whole) // 4 - 1
    while groups and groups[0] == 0:
        groups.pop(0)
        weight -= 1
    while groups and groups[-1] == 0:
        groups.pop()
    if not groups:
        return _NUMERIC.pack(0, 0, 0, scale)
    head = _NUMERIC.pack(len(groups), weight, 0x4000 if sign else 0, scale)
    return head + struct.pack(f"!{len(groups)}h", *groups)


def _common_scale(typ: ScalarType, col: NumericColumn) -> int | None:
    """The one display scale of a narrow column's values: declared, or 0 for whole numbers; None if they differ."""
    if col.scale == 0 or typ.scale == col.scale:
        return typ.scale if typ.scale is not None else 0
    return None


def _encode_narrow(col: NumericColumn, scale: int) -> list[bytes | None]:
    """`_encode_numeric` of integers scaled by col.scale, shown with `scale` decimals."""
    pad = 10 ** (-col.scale % 4)
    fraction_groups = -(-col.scale // 4)
    valid = None if col.valid is None else col.valid.tolist()
    out: list[bytes | None] = []
    for i, value in enumerate(col.values.tolist()):
        if valid is not None and not valid[i]:
            out.append(None)
            continue
        rest = abs(value) * pad
        groups: list[int] = []
        while rest:
            rest, group = divmod(rest, 10_000)
            groups.append(group)
        weight = len(groups) - fraction_groups - 1
        trailing = 0
        while trailing < len(groups) and groups[trailing] == 0:
            trailing += 1
        kept = groups[trailing:][::-1]
        if not kept:
            out.append(_NUMERIC.pack(0, 0, 0, scale))
            continue
        head = _NUMERIC.pack(len(kept), weight, 0x4000 if value < 0 else 0, scale)
        out.append(head + struct.pack(f"!{len(kept)}h", *kept))
    return out


def _encode_interval(typ: ScalarType, datum: Interval) -> bytes:
    return _INTERVAL.pack(datum.us, datum.days, datum.months)


def _encode_jsonb(typ: ScalarType, datum: Any) -> bytes:
    return b"\x01" + jsontext.format_json(datum, spaced=True).encode()


def _encode_raw(typ: ScalarType, datum: bytes) -> bytes:
    return datum


def _encode_array(typ: ScalarType, datum: ArrayDatum) -> bytes:
    element = typ.element
    assert element is not None
    head = _ARRAY.pack(len(datum.dims), int(None in datum.elements), oid_of(element))
    dims = b"".join(struct.pack("!ii", length, lower) for length, lower in datum.dims)
    return head + dims + b"".join(_sized(element, e) for e in datum.elements)


def _encode_int2vector(typ: ScalarType, datum: tuple[int, ...]) -> bytes:
    head = _ARRAY.pack(1, 0, oid_of(INT2)) + struct.pack("!ii", len(datum), 0)
    return head + b"".join(_sized(INT2, e) for e in datum)


def _encode_record(typ: ScalarType, datum: tuple[Datum, ...]) -> bytes:
    assert typ.fields is not None
    parts = [_I4.pack(len(datum))]
    for (_, field), value in zip(typ.fields, datum):
        parts.append(_U4.pack(oid_of(field.scalar)))
        parts.append(_sized(field.scalar, value))
    return b"".join(parts)


_EMPTY, _LB_INC, _UB_INC, _LB_INF, _UB_INF = 0x01, 0x02, 0x04, 0x08, 0x10


def _encode_range(typ: ScalarType, datum: RangeDatum) -> bytes:
    subtype = typ.element
    assert subtype is not None
    if datum.empty:
        return bytes([_EMPTY])
    flags = (
        (_LB_INC if datum.lower_inc else 0)
        | (_UB_INC if datum.upper_inc else 0)
        | (_LB_INF if datum.lower is None else 0)
        | (_UB_INF if datum.upper is None else 0)
    )
    bounds = b"".join(_sized(subtype, b) for b in (datum.lower, datum.upper) if b is not None)
    return bytes([flags]) + bounds


_ENCODERS: dict[str, Callable[[ScalarType, Any], bytes]] = {
    "numeric": _encode_numeric,
    "interval": _encode_interval,
    "jsonb": _encode_jsonb,
    "bytea": _encode_raw,
    "uuid": _encode_raw,
    "array": _encode_array,
    "int2vector": _encode_int2vector,
    "record": _encode_record,
    "range": _encode_range,
}


def decode_param(typ: ScalarType, data: bytes) -> Datum:
    """The datum of a binary parameter, modifiers applied; 22P03 when the bytes are no value of the type."""
    try:
        return _decode(typ, data)
    except (struct.error, UnicodeDecodeError, IndexError, OverflowError):
        raise SqlError("22P03", "incorrect binary data format in bind parameter") from None


def _decode(typ: ScalarType, data: bytes) -> Datum:
    kind = typ.kind
    if kind == "bool":
        if len(data) != 1:
            raise struct.error
        return data != b"\x00"
    if kind in _STRUCTS:
        return _STRUCTS[kind].unpack(data)[0]
    if kind in _SHIFTS:
        packer, epoch = _SHIFTS[kind]
        value = packer.unpack(data)[0] + epoch
        return value if kind == "date" else round_timestamp(value, typ.precision)
    if kind in ("varchar", "bpchar"):
        return fit_length(typ, data.decode())
    if kind in TEXT_KINDS:
        return data.decode()
    if kind in ("bytea", "uuid"):
        if kind == "uuid" and len(data) != 16:
            raise struct.error
        return bytes(data)
    decoder = _DECODERS.get(kind)
    return parse_datum(typ, bytes(data).decode()) if decoder is None else decoder(typ, data)


def _decode_numeric(typ: ScalarType, data: bytes) -> Decimal:
    count, weight, sign, _ = _NUMERIC.unpack_from(data)
    if sign == 0xC000:
        return Decimal("NaN")
    if sign in (0xD000, 0xF000):
        raise SqlError("22003", "numeric field overflow")
    if len(data) != 8 + 2 * count or count < 0:
        raise struct.error
    groups = struct.unpack_from(f"!{count}h", data, 8)
    number = 0
    for group in groups:
        number = number * 10_000 + group
    value = Decimal(number).scaleb(4 * (weight + 1 - count), WIDE_CONTEXT)
    fitted = fit(-value if sign == 0x4000 else value)
    if fitted is None:
        raise SqlError("22003", "numeric field overflow")
    return fitted if typ.scale is None else rescale(fitted, typ.scale)


def _decode_interval(typ: ScalarType, data: bytes) -> Interval:
    us, days, months = _INTERVAL.unpack(data)
    return Interval(months, days, us)


def _decode_jsonb(typ: ScalarType, data: bytes) -> Any:
    if data[0] != 1:
        raise SqlError("0A000", f"unsupported jsonb version number {data[0]}")
    return parse_datum(typ, bytes(data[1:]).decode())


class _Cursor:
    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, size: int) -> bytes:
        if size < 0 or self.at + size > len(self.data):
            raise struct.error
        self.at += size
        return self.data[self.at - size : self.at]

    def i4(self) -> int:
        value: int = _I4.unpack(self.take(4))[0]
        return value

    def sized(self, typ: ScalarType) -> Datum:
        size = self.i4()
        return None if size == -1 else _decode(typ, self.take(size))


def _decode_array(typ: ScalarType, data: bytes) -> ArrayDatum:
    element = typ.element
    assert element is not None
    cursor = _Cursor(data)
    count, _, _ = cursor.i4(), cursor.i4(), cursor.i4()
    if not 0 <= count <= 6:
        raise struct.error
    dims = tuple((cursor.i4(), cursor.i4()) for _ in range(count))
    total = 1 if dims else 0
    for length, _ in dims:
        total *= length
    if not 0 <= total <= len(data):
        raise struct.error
    elements = tuple(cursor.sized(element) for _ in range(total))
    return ArrayDatum(dims if elements else (), elements)


def _decode_int2vector(typ: ScalarType, data: bytes) -> tuple[int, ...]:
    return _decode_array(ScalarType("array", element=INT2), data).elements


def _decode_record(typ: ScalarType, data: bytes) -> tuple[Datum, ...]:
    assert typ.fields is not None
    cursor = _Cursor(data)
    if cursor.i4() != len(typ.fields):
        raise struct.error
    values: list[Datum] = []
    for _, field in typ.fields:
        cursor.i4()
        values.append(cursor.sized(field.scalar))
    return tuple(values)


def _decode_range(typ: ScalarType, data: bytes) -> RangeDatum:
    subtype = typ.element
    assert subtype is not None
    cursor = _Cursor(data)
    flags = cursor.take(1)[0]
    if flags & _EMPTY:
        return EMPTY
    lower = None if flags & _LB_INF else cursor.sized(subtype)
    upper = None if flags & _UB_INF else cursor.sized(subtype)
    return canonical_range(subtype, lower, upper, bool(flags & _LB_INC), bool(flags & _UB_INC))


_DECODERS: dict[str, Callable[[ScalarType, bytes], Datum]] = {
    "numeric": _decode_numeric,
    "interval": _decode_interval,
    "jsonb": _decode_jsonb,
    "array": _decode_array,
    "int2vector": _decode_int2vector,
    "record": _decode_record,
    "range": _decode_range,
}
