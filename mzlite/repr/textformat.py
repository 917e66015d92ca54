"""Printing one value of any type: `format_datum`, the text that casts, container elements and the wire share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mzlite.repr import calendar, containertext, intervaltext, jsontext
from mzlite.repr.datum import ArrayDatum, Datum, RangeDatum
from mzlite.repr.decimals import format_numeric
from mzlite.repr.types import ScalarType


def format_datum(typ: ScalarType, datum: Datum) -> str:
    """Text of a non-NULL datum: as a container's element and (bool aside, there `true`) a cast to text print it."""
    return _FORMATTERS[typ.kind](typ, datum)


def format_float(value: float) -> str:
    """Shortest digits that read back, as PostgreSQL and Materialize print float8: 1, 0.1, 1e+20, Infinity, -0."""
    if value != value:
        return "NaN"
    text = repr(value)
    if text.endswith(".0"):
        return text[:-2]
    if "e" in text:
        mantissa, exponent = text.split("e")
        power = int(exponent)
        if power == -5:  # printed in plain notation one power further down than Python does
            digits = mantissa.replace(".", "").replace("-", "")
            return f"{'-' if value < 0 else ''}0.0000{digits}"
        return f"{mantissa}e{'+' if power > 0 else ''}{power}"
    if text in ("inf", "-inf"):
        return "Infinity" if value > 0 else "-Infinity"
    return text


def format_float4(value: float) -> str:
    """As `format_float`, with the digits that tell float32 values apart."""
    if value != value or value in (float("inf"), float("-inf")) or value == 0:
        return format_float(value)
    mantissa, exponent = np.format_float_scientific(np.float32(value), unique=True, trim="-").split("e")
    sign = "-" if mantissa[0] == "-" else ""
    digits = mantissa.lstrip("-").replace(".", "")
    point = int(exponent) + 1  # digits before the decimal point
    if 0 < point <= 13:
        if len(digits) <= point:
            return sign + digits.ljust(point, "0")
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{'+' if point > 1 else ''}{point - 1}"


def format_bytea(value: bytes) -> str:
    return "\\x" + value.hex()


def format_uuid(value: bytes) -> str:
    h = value.hex()
    return f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}"


# What never needs quotes inside an array, list or map: nested containers stand as they are.
_BARE = frozenset(("array", "list", "map"))


def _format_array(typ: ScalarType, datum: ArrayDatum) -> str:
    element = typ.element
    assert element is not None
    texts = ["NULL" if e is None else containertext.quote_list(format_datum(element, e)) for e in datum.elements]
    return containertext.format_array(datum.dims, texts)


def _format_list(typ: ScalarType, datum: tuple[Datum, ...]) -> str:
    element = typ.element
    assert element is not None
    texts: list[str] = []
    for e in datum:
        text = "NULL" if e is None else format_datum(element, e)
        texts.append(text if e is None or element.kind in _BARE else containertext.quote_list(text))
    return "{" + ",".join(texts) + "}"


def _format_map(typ: ScalarType, datum: dict[str, Datum]) -> str:
    element = typ.element
    assert element is not None
    entries: list[str] = []
    for key in sorted(datum):
        value = datum[key]
        text = "NULL" if value is None else format_datum(element, value)
        if value is not None and element.kind not in _BARE:
            text = containertext.quote_map(text)
        entries.append(f"{containertext.quote_map(key)}=>{text}")
    return "{" + ",".join(entries) + "}"


def _format_record(typ: ScalarType, datum: tuple[Datum, ...]) -> str:
    assert typ.fields is not None
    texts = [
        "" if value is None else containertext.quote_record(format_datum(field.scalar, value))
        for (_, field), value in zip(typ.fields, datum)
    ]
    return "(" + ",".join(texts) + ")"


def _format_range(typ: ScalarType, datum: RangeDatum) -> str:
    if datum.empty:
        return "empty"
    subtype = typ.element
    assert subtype is not None
    lower = "" if datum.lower is None else containertext.quote_bound(format_datum(subtype, datum.lower))
    upper = "" if datum.upper is None else containertext.quote_bound(format_datum(subtype, datum.upper))
    return f"{'[' if datum.lower_inc else '('}{lower},{upper}{']' if datum.upper_inc else ')'}"


def _same(typ: ScalarType, datum: Datum) -> str:
    text: str = datum
    return text


def _plain(typ: ScalarType, datum: Datum) -> str:
    return str(datum)


_INTEGERS = (
    "int2", "int4", "int8", "uint2", "uint4", "uint8", "oid", "regclass", "regproc", "regtype", "mz_timestamp",
)  # fmt: skip
_FORMATTERS: dict[str, Callable[[ScalarType, Any], str]] = {
    "bool": lambda typ, v: "t" if v else "f",
    **dict.fromkeys(_INTEGERS, _plain),
    "float4": lambda typ, v: format_float4(v),
    "float8": lambda typ, v: format_float(v),
    "numeric": lambda typ, v: format_numeric(v, typ.scale),
    **dict.fromkeys(("text", "unknown", "aclitem", "mz_aclitem", "varchar", "char", "name"), _same),
    "bpchar": lambda typ, v: v if typ.length is None else v.ljust(typ.length),
    "bytea": lambda typ, v: format_bytea(v),
    "uuid": lambda typ, v: format_uuid(v),
    "jsonb": lambda typ, v: jsontext.format_json(v),
    "date": lambda typ, v: calendar.format_date(v),
    "time": lambda typ, v: calendar.format_time(v),
    "timestamp": lambda typ, v: calendar.format_timestamp(v),
    "timestamptz": lambda typ, v: calendar.format_timestamp(v, "+00"),
    "interval": lambda typ, v: intervaltext.format_interval(v),
    "array": _format_array,
    "list": _format_list,
    "map": _format_map,
    "record": _format_record,
    "range": _format_range,
    "int2vector": lambda typ, v: " ".join(map(str, v)),
}
