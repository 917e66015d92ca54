"""Parsing the text of one value of any type: `parse_datum`. Messages and their SQLSTATEs are Materialize's."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NoReturn

import numpy as np

from mzlite.repr import calendar, containertext, datetext, intervaltext, jsontext
from mzlite.repr.containertext import ContainerTextError
from mzlite.repr.datum import ArrayDatum, Datum, RangeDatum
from mzlite.repr.decimals import MAX_PRECISION, NumericTextError, parse_numeric, rescale
from mzlite.repr.errors import SqlError, unsupported
from mzlite.repr.interval import Interval
from mzlite.repr.ranges import EMPTY, canonical_range
from mzlite.repr.timetokens import TimeTextError
from mzlite.repr.typenames import type_name
from mzlite.repr.types import INT2, TIMESTAMPTZ, ScalarType

# The name a parse error gives the type.
_ERROR_NAMES = {
    "bool": "boolean", "int2": "smallint", "int4": "integer", "int8": "bigint", "float4": "real",
    "float8": "double precision", "timestamptz": "timestamp with time zone",
}  # fmt: skip
_INT_RANGES = {
    "int2": (-(2**15), 2**15 - 1), "int4": (-(2**31), 2**31 - 1), "int8": (-(2**63), 2**63 - 1),
    "uint2": (0, 2**16 - 1), "uint4": (0, 2**32 - 1), "uint8": (0, 2**64 - 1), "mz_timestamp": (0, 2**64 - 1),
    "oid": (-(2**31), 2**32 - 1), "regclass": (0, 2**32 - 1), "regproc": (0, 2**32 - 1), "regtype": (0, 2**32 - 1),
}  # fmt: skip
MAX_DIMENSIONS = 6
_INT = re.compile(r"[-+]?\d+\Z", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|inf(?:inity)?|nan)\Z", re.ASCII | re.IGNORECASE)
_ZERO = re.compile(r"[-+]?[0.]+(?:e|\Z)", re.IGNORECASE)
_TRUE = frozenset(("t", "tr", "tru", "true", "y", "ye", "yes", "on", "1"))
_FALSE = frozenset(("f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0"))


def quoted(text: str) -> str:
    """A user's text as messages show it."""
    return '"' + text.replace('"', '\\"') + '"'


def syntax_error(type_text: str, text: str, details: str | None = None) -> SqlError:
    """22P02 in Materialize's words."""
    middle = f"{details}: " if details else ""
    return SqlError("22P02", f"invalid input syntax for type {type_text}: {middle}{quoted(text)}")


def range_error(type_text: str, text: str, details: str | None = None) -> SqlError:
    """22003 in Materialize's words."""
    return SqlError("22003", f"{quoted(text)} is out of range for type {type_text}{f': {details}' if details else ''}")


def parse_datum(typ: ScalarType, text: str) -> Datum:
    """The datum that `text` denotes in `typ`, modifiers applied; SqlError otherwise."""
    return _PARSERS[typ.kind](typ, text)


def _parse_bool(typ: ScalarType, text: str) -> bool:
    word = text.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise syntax_error("boolean", text)


def _parse_int(typ: ScalarType, text: str) -> int:
    kind = typ.kind
    name = _ERROR_NAMES.get(kind, kind)
    digits = text.strip()
    least, most = _INT_RANGES[kind]
    if _INT.match(digits) is None or (least == 0 and digits[0] == "-"):
        raise syntax_error(
            name, text, "invalid digit found in string" if digits else "cannot parse integer from empty string"
        )
    value = int(digits) if len(digits) < 40 else (1 << 80) * (-1 if digits[0] == "-" else 1)
    if value > most:
        error = syntax_error(name, text, "number too large to fit in target type")
        error.sqlstate = "22003"
        raise error
    if value < least:
        error = syntax_error(name, text, "number too small to fit in target type")
        error.sqlstate = "22003"
        raise error
    return value + 2**32 if kind == "oid" and value < 0 else value


def _parse_float(typ: ScalarType, text: str) -> float:
    number = text.strip()
    name = _ERROR_NAMES[typ.kind]
    if _FLOAT.match(number) is None:
        raise syntax_error(name, text)
    value = float(number)
    if typ.kind == "float4":
        with np.errstate(over="ignore", under="ignore"):
            value = float(np.float32(value))
    if value in (float("inf"), float("-inf")):
        if "inf" not in number.lower():
            raise range_error(name, text)
    elif value == 0 and _ZERO.match(number) is None:
        raise range_error(name, text)
    return value


def _parse_numeric(typ: ScalarType, text: str) -> Decimal:
    try:
        value = parse_numeric(text)
    except NumericTextError as e:
        if e.out_of_range:
            raise range_error("numeric", text, f"exceeds maximum precision {MAX_PRECISION}") from None
        raise syntax_error("numeric", text) from None
    return value if typ.scale is None else rescale(value, typ.scale)


def _parse_text(typ: ScalarType, text: str) -> str:
    return text


def fit_length(typ: ScalarType, text: str) -> str:
    """`text` as varchar(n) or bpchar(n) stores it on assignment: 22001 when more than spaces would be cut off."""
    length = typ.length
    if length is not None and len(text) > length:
        if text[length:].strip(" "):
            raise SqlError("22001", f"value too long for type {type_name(typ.base())}({length})")
        text = text[:length]
    # Blank padding means nothing in bpchar: it is stored without and printed with it.
    return text.rstrip(" ") if typ.kind == "bpchar" else text


def _parse_char(typ: ScalarType, text: str) -> str:
    return text[:1]


def _parse_name(typ: ScalarType, text: str) -> str:
    return text if len(text) < 64 else text.encode()[:63].decode(errors="ignore")


def _parse_bytea(typ: ScalarType, text: str) -> bytes:
    if text.startswith("\\x"):
        return parse_hex(text)
    out = bytearray()
    raw = text.encode()
    at = 0
    while at < len(raw):
        b = raw[at]
        at += 1
        if b != 0x5C:
            out.append(b)
            continue
        if at == len(raw):
            raise syntax_error("bytea", text, "ends with escape character")
        if raw[at] == 0x5C:
            out.append(0x5C)
            at += 1
            continue
        octal = raw[at : at + 3]
        if len(octal) < 3 or not (0x30 <= octal[0] <= 0x33 and all(0x30 <= d <= 0x37 for d in octal[1:])):
            raise syntax_error("bytea", text, "invalid escape sequence")
        out.append(int(octal, 8))
        at += 3
    return bytes(out)


def parse_hex(text: str) -> bytes:
    """`\\x` and pairs of hexadecimal digits, spaces allowed between pairs."""
    pairs: list[str] = []
    digits = iter(text[2:])
    for c in digits:
        if c in " \n\t\r":
            continue
        second = next(digits, None)
        if c not in "0123456789abcdefABCDEF":
            raise syntax_error("bytea", text, f'invalid hexadecimal digit: "{c}"')
        if second is None:
            raise syntax_error("bytea", text, "invalid hexadecimal data: odd number of digits")
        if second not in "0123456789abcdefABCDEF":
            raise syntax_error("bytea", text, f'invalid hexadecimal digit: "{second}"')
        pairs.append(c + second)
    return bytes.fromhex("".join(pairs))


def _parse_uuid(typ: ScalarType, text: str) -> bytes:
    word = text.strip()
    bare = word.removeprefix("urn:uuid:")
    if bare.startswith("{") and bare.endswith("}"):
        bare = bare[1:-1]
    digits = bare.replace("-", "")
    for i, c in enumerate(bare):
        if c not in "0123456789abcdefABCDEF-":
            raise syntax_error(
                "uuid",
                text,
                "invalid character: expected an optional prefix of `urn:uuid:` followed by [0-9a-fA-F-], "
                f"found `{c}` at {i + 1}",
            )
    if len(digits) != 32:
        raise syntax_error("uuid", text, f"invalid length: expected length 32 for simple format, found {len(digits)}")
    return bytes.fromhex(digits)


def _parse_jsonb(typ: ScalarType, text: str) -> Any:
    try:
        return jsontext.parse_json(text.strip())
    except jsontext.JsonTextError as e:
        raise syntax_error("jsonb", text, str(e)) from None


def _parse_date(typ: ScalarType, text: str) -> int:
    return _time_text(datetext.parse_date, "date", text)


def _parse_time(typ: ScalarType, text: str) -> int:
    return _time_text(datetext.parse_time, "time", text)


def _parse_timestamp(typ: ScalarType, text: str) -> int:
    return round_timestamp(_time_text(datetext.parse_timestamp, "timestamp", text), typ.precision)


def _parse_timestamptz(typ: ScalarType, text: str) -> int:
    value = _time_text(datetext.parse_timestamptz, "timestamp with time zone", text)
    return round_timestamp(value, typ.precision)


def _time_text(parse: Callable[[str], int], name: str, text: str) -> int:
    try:
        return parse(text)
    except TimeTextError as e:
        raise syntax_error(name, text, str(e)) from None


def round_timestamp(us: int, precision: int | None) -> int:
    """Microseconds rounded half up to `precision` decimals of a second."""
    if precision is None or precision >= 6:
        return us
    unit = 10 ** (6 - precision)
    us = (us + unit // 2) // unit * unit
    if us > calendar.MAX_TIMESTAMP:
        raise SqlError("22008", "timestamp out of range")
    return us


def _parse_interval(typ: ScalarType, text: str) -> Interval:
    try:
        return intervaltext.parse_interval(text)
    except TimeTextError as e:
        raise syntax_error("interval", text, str(e)) from None


def _parse_mz_timestamp(typ: ScalarType, text: str) -> int:
    """Milliseconds, or a date and time."""
    try:
        return _parse_int(typ, text)
    except SqlError as not_a_number:
        try:
            us = _parse_timestamptz(TIMESTAMPTZ, text)
        except SqlError:
            raise not_a_number from None
        if us < 0:
            raise not_a_number from None
        return us // 1000


def _parse_array(typ: ScalarType, text: str) -> ArrayDatum:
    element = typ.element
    assert element is not None
    try:
        lengths, texts = containertext.parse_array(text)
        if len(lengths) > MAX_DIMENSIONS:
            raise SqlError(
                "54000",
                f"number of array dimensions ({len(lengths)}) exceeds the maximum allowed ({MAX_DIMENSIONS})",
            )
        elements = tuple(None if e is None else parse_datum(element, e) for e in texts)
    except (ContainerTextError, SqlError) as e:
        raise _element_error("array", text, e) from None
    return ArrayDatum(tuple((n, 1) for n in lengths), elements)


def _element_error(kind: str, text: str, e: Exception) -> SqlError:
    return syntax_error(kind, text, e.message if isinstance(e, SqlError) else str(e))


def _parse_list(typ: ScalarType, text: str) -> tuple[Datum, ...]:
    element = typ.element
    assert element is not None
    try:
        texts = containertext.parse_list(text, element.kind == "list")
        return tuple(None if e is None else parse_datum(element, e) for e in texts)
    except (ContainerTextError, SqlError) as e:
        raise _element_error("list", text, e) from None


def _parse_map(typ: ScalarType, text: str) -> dict[str, Datum]:
    element = typ.element
    assert element is not None
    try:
        texts = containertext.parse_map(text, element.kind == "map")
        return {k: None if e is None else parse_datum(element, e) for k, e in texts.items()}
    except (ContainerTextError, SqlError) as e:
        raise _element_error("map", text, e) from None


def _parse_range(typ: ScalarType, text: str) -> RangeDatum:
    subtype = typ.element
    assert subtype is not None
    try:
        parts = containertext.parse_range(text)
        if parts is None:
            return EMPTY
        lower = None if parts[0] is None else parse_datum(subtype, parts[0])
        upper = None if parts[1] is None else parse_datum(subtype, parts[1])
        return canonical_range(subtype, lower, upper, parts[2], parts[3])
    except (ContainerTextError, SqlError) as e:
        raise _element_error("range", text, e) from None


def _parse_int2vector(typ: ScalarType, text: str) -> tuple[int, ...]:
    try:
        return tuple(_parse_int(INT2, word) for word in text.split())
    except SqlError as e:
        raise syntax_error("int2vector", text, e.message) from None


def _parse_record(typ: ScalarType, text: str) -> NoReturn:
    raise unsupported("input of anonymous composite types")


_Parser = Callable[[ScalarType, str], Datum]
_PARSERS: dict[str, _Parser] = {
    "bool": _parse_bool,
    **dict.fromkeys(_INT_RANGES, _parse_int),
    "mz_timestamp": _parse_mz_timestamp,
    "float4": _parse_float,
    "float8": _parse_float,
    "numeric": _parse_numeric,
    "text": _parse_text,
    "unknown": _parse_text,
    "aclitem": _parse_text,
    "mz_aclitem": _parse_text,
    "varchar": fit_length,
    "bpchar": fit_length,
    "char": _parse_char,
    "name": _parse_name,
    "bytea": _parse_bytea,
    "uuid": _parse_uuid,
    "jsonb": _parse_jsonb,
    "date": _parse_date,
    "time": _parse_time,
    "timestamp": _parse_timestamp,
    "timestamptz": _parse_timestamptz,
    "interval": _parse_interval,
    "array": _parse_array,
    "list": _parse_list,
    "map": _parse_map,
    "range": _parse_range,
    "record": _parse_record,
    "int2vector": _parse_int2vector,
}
