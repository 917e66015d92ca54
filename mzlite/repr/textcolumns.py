"""Text of whole columns: what COPY reads and what a text-format result sends.

Common types take a vectorised way; the rest, and any column in which the fast way meets something unusual, goes value
by value through `parse_datum` and `format_datum`, whose results the fast ways must equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mzlite.repr import jsontext
from mzlite.repr.calendar import DAY_US, civil_from_days
from mzlite.repr.column import Column
from mzlite.repr.datum import TEXT_KINDS, column_from_datums, column_to_datums, decode_datum
from mzlite.repr.fixed import DTYPES, FixedColumn
from mzlite.repr.intervaltext import format_interval
from mzlite.repr.numeric import NumericColumn
from mzlite.repr.textformat import format_datum, format_float, format_float4
from mzlite.repr.textparse import parse_datum
from mzlite.repr.types import Layout, ScalarType
from mzlite.repr.var import VarColumn

_FEW = 16


def format_column(typ: ScalarType, col: Column) -> list[bytes | None]:
    """The text wire form of each value, None for NULL. bool is t/f, jsonb has PostgreSQL's spaces."""
    out = _format_valid(typ, col)
    if col.valid is not None:
        for i in np.flatnonzero(~col.valid).tolist():
            out[i] = None
    return out


def _format_valid(typ: ScalarType, col: Column) -> list[bytes | None]:
    kind = typ.kind
    if isinstance(col, VarColumn):
        if kind == "bpchar" and typ.length is not None:
            return [None if s is None else s.ljust(typ.length).encode() for s in col.to_strings()]
        if kind in TEXT_KINDS:
            return col.to_bytes()
        if kind == "jsonb":
            return [
                None if b is None else jsontext.format_json(decode_datum(typ, b), spaced=True).encode()
                for b in col.to_bytes()
            ]
        return [None if b is None else format_datum(typ, decode_datum(typ, b)).encode() for b in col.to_bytes()]
    if isinstance(col, NumericColumn):
        return _format_numeric(typ, col)
    assert isinstance(col, FixedColumn), col
    layout = col.layout
    values = col.values
    if layout is Layout.BOOL:
        return [b"t" if v else b"f" for v in values.tolist()]
    if layout in _INTEGERS:
        return [b"%d" % v for v in values.tolist()]
    if layout is Layout.F64:
        return [format_float(v).encode() for v in values.tolist()]
    if layout is Layout.F32:
        return [format_float4(v).encode() for v in values.tolist()]
    if layout is Layout.INTERVAL:
        return [format_interval(v).encode() for v in column_to_datums(typ, _without_nulls(col))]
    if len(values) > _FEW and layout in (Layout.DATE, Layout.TIMESTAMP):
        return _format_days(typ, values)
    return [format_datum(typ, v).encode() for v in values.tolist()]


def _without_nulls(col: FixedColumn) -> FixedColumn:
    """`col` with no NULLs: values under an invalid slot are harmless and are replaced afterwards."""
    return col.with_values(col.values, None)


_INTEGERS = (Layout.I16, Layout.I32, Layout.I64, Layout.U16, Layout.U32, Layout.U64)


def _format_numeric(typ: ScalarType, col: NumericColumn) -> list[bytes | None]:
    if col.wide is not None or (typ.scale is not None and typ.scale != col.scale):
        return [None if d is None else format_datum(typ, d).encode() for d in col.to_decimals()]
    scale = col.scale
    if scale == 0:
        return [b"%d" % v for v in col.values.tolist()]
    out: list[bytes | None] = []
    unit = 10**scale
    strip = typ.scale is None
    for v in col.values.tolist():
        whole, fraction = divmod(abs(v), unit)
        digits = f"{whole}.{fraction:0{scale}d}"
        if strip:
            digits = digits.rstrip("0").rstrip(".")
        out.append((b"-" if v < 0 else b"") + digits.encode())
    return out


def _format_days(typ: ScalarType, values: Any) -> list[bytes | None]:
    """Dates and timestamps of years 1 to 9999 by whole columns; others a value at a time."""
    values = values.astype(np.int64)
    days = values if typ.kind == "date" else values // DAY_US
    year, month, day = civil_from_days(days)
    if int(year.min()) < 1 or int(year.max()) > 9999:
        return [format_datum(typ, v).encode() for v in values.tolist()]
    parts = [year.tolist(), month.tolist(), day.tolist()]
    if typ.kind == "date":
        return [b"%04d-%02d-%02d" % p for p in zip(*parts)]
    us = values - days * DAY_US
    seconds = us // 1_000_000
    parts += [(seconds // 3600).tolist(), (seconds // 60 % 60).tolist(), (seconds % 60).tolist()]
    zone = b"+00" if typ.kind == "timestamptz" else b""
    fraction = us - seconds * 1_000_000
    if not fraction.any():
        return [b"%04d-%02d-%02d %02d:%02d:%02d" % p + zone for p in zip(*parts)]
    return [
        b"%04d-%02d-%02d %02d:%02d:%02d" % p[:6] + ((b".%06d" % p[6]).rstrip(b"0") if p[6] else b"") + zone
        for p in zip(*parts, fraction.tolist())
    ]


# Shapes that pyarrow's casts read exactly as `parse_datum` does.
_STRICT = {
    "int2": r"^-?[0-9]{1,18}$", "int4": r"^-?[0-9]{1,18}$", "int8": r"^-?[0-9]{1,18}$",
    "float8": r"^-?[0-9]{1,17}(\.[0-9]{1,20})?$",
    "date": r"^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}$",
    "timestamp": r"^[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|\+00)?$",
}  # fmt: skip
_STRICT["timestamptz"] = _STRICT["timestamp"]
_ARROW = {
    "int2": pa.int16(), "int4": pa.int32(), "int8": pa.int64(), "float8": pa.float64(), "date": pa.date32(),
    "timestamp": pa.timestamp("us"), "timestamptz": pa.timestamp("us"),
}  # fmt: skip


def parse_column(typ: ScalarType, values: Sequence[str | None] | VarColumn) -> Column:
    """A column from texts (None or an invalid slot = NULL), modifiers applied; the first bad value's SqlError."""
    if len(values) > _FEW:
        column = values if isinstance(values, VarColumn) else VarColumn.from_strings(values)
        fast = _parse_fast(typ, column)
        if fast is not None:
            return fast
        distinct = _parse_distinct(typ, column)
        if distinct is not None:
            return distinct
    strings = values.to_strings() if isinstance(values, VarColumn) else values
    return column_from_datums(typ, [None if s is None else parse_datum(typ, s) for s in strings])


def _parse_distinct(typ: ScalarType, values: VarColumn) -> Column | None:
    """Value by value, but each distinct text once; None when the texts hardly repeat."""
    encoded = values.to_arrow(text=True).dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    if len(texts) * 2 > len(values):
        return None
    # One more row, NULL, for the NULLs to point at.
    parsed = column_from_datums(typ, [*(parse_datum(typ, s) for s in texts), None])
    return parsed.take(encoded.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False).astype(np.int64))


def _parse_fast(typ: ScalarType, values: VarColumn) -> Column | None:
    kind = typ.kind
    if kind in ("text", "unknown") or (kind == "varchar" and typ.length is None):
        return values
    if kind == "numeric":
        return _parse_numeric(typ, values)
    if kind not in _STRICT or typ.precision is not None:
        return None
    array = values.to_arrow(text=True)
    shaped = pc.all(pc.match_substring_regex(array, _STRICT[kind]), min_count=0).as_py()
    if not shaped:
        return None
    if kind in ("timestamp", "timestamptz"):
        array = pc.replace_substring_regex(array, r"(Z|\+00)$", "")
    try:
        cast = array.cast(_ARROW[kind])
    except pa.ArrowInvalid:
        return None  # the slow way says which value it was, and why
    raw = cast.fill_null(0) if kind in ("int2", "int4", "int8", "float8") else cast
    if kind == "date":
        raw = raw.cast(pa.int32()).fill_null(0)
    elif kind in ("timestamp", "timestamptz"):
        raw = raw.cast(pa.int64()).fill_null(0)
    array_values = raw.to_numpy(zero_copy_only=False).astype(DTYPES[typ.layout], copy=False)
    return FixedColumn(array_values, values.valid, typ.layout)


def _parse_numeric(typ: ScalarType, values: VarColumn) -> NumericColumn | None:
    """Plain decimals of at most 18 digits in all, without an exponent: digits read as integers, aligned by scale."""
    array = values.to_arrow(text=True)
    if not pc.all(pc.match_substring_regex(array, r"^-?[0-9]{1,9}(\.[0-9]{1,8})?$"), min_count=0).as_py():
        return None
    dot = pc.find_substring(array, ".")
    length = pc.binary_length(array)
    decimals = pc.if_else(pc.less(dot, 0), 0, pc.subtract(pc.subtract(length, dot), 1))
    decimals = decimals.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    scale = typ.scale if typ.scale is not None else int(decimals.max(initial=0))
    if int(decimals.max(initial=0)) > scale or scale > 9:
        return None  # needs rounding
    digits = pc.replace_substring(array, ".", "").cast(pa.int64()).fill_null(0)
    scaled = digits.to_numpy(zero_copy_only=False) * np.power(10, scale - decimals)
    return NumericColumn(scaled, scale, values.valid)
