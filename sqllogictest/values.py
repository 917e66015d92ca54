"""Binary wire values to PostgreSQL's text encoding, by type OID.

`text_of(oid)` gives a function from the bytes of a value (never NULL) to its text. Records and arrays recurse by the OIDs
that their own encoding carries. Differences from what psql would print, all deliberate (they are the dialect's):
numeric loses trailing zeros and never has an exponent, jsonb is compact with sorted keys, timestamptz is always UTC,
oid and reg* are numbers.

source: PostgreSQL's send functions (src/backend/utils/adt) read backwards.
"""

from __future__ import annotations

import json
import struct
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

Decoder = Callable[[bytes], str]

BOOL, BYTEA, CHAR, NAME, INT8, INT2, INT2VECTOR, INT4 = 16, 17, 18, 19, 20, 21, 22, 23
REGPROC, TEXT, OID, OIDVECTOR, JSON, FLOAT4, FLOAT8, UNKNOWN = 24, 25, 26, 30, 114, 700, 701, 705
BPCHAR, VARCHAR, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, INTERVAL = 1042, 1043, 1082, 1083, 1114, 1184, 1186
TIMETZ, NUMERIC, REGCLASS, REGTYPE, RECORD, UUID, JSONB = 1266, 1700, 2205, 2206, 2249, 2950, 3802
UINT2, UINT4, UINT8, MZ_TIMESTAMP = 16460, 16462, 16464, 16552

INTEGERS = {INT2: 2, INT4: 4, INT8: 8}
UNSIGNED = {UINT2: 2, UINT4: 4, UINT8: 8}
OIDS = frozenset({OID, REGPROC, REGCLASS, REGTYPE, 2202, 2203, 2204, 3734, 3769, 4089, 4096, 28, 29})
FLOATS = frozenset({FLOAT4, FLOAT8})
TEXTS = frozenset({TEXT, VARCHAR, BPCHAR, NAME, UNKNOWN, JSON})
RANGES = {3904: INT4, 3906: NUMERIC, 3908: TIMESTAMP, 3910: TIMESTAMPTZ, 3912: DATE, 3926: INT8}

_EPOCH_DAYS = 730120  # proleptic Gregorian ordinal of 2000-01-01
_DAY_US = 86_400_000_000


class UnknownValue(Exception):
    """A value whose type this client cannot print."""


def int_of(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)


def uint_of(data: bytes) -> int:
    return int.from_bytes(data, "big")


def float_of(data: bytes) -> float:
    value: float = struct.unpack("!f" if len(data) == 4 else "!d", data)[0]
    return value


def numeric_of(data: bytes) -> Decimal:
    """The number without trailing zeros behind the point: numeric's binary form is base 10,000, most significant first."""
    count, weight, sign, _scale = struct.unpack_from("!hhHH", data)
    if sign & 0xC000 == 0xC000:
        return Decimal({0xC000: "NaN", 0xD000: "Infinity", 0xF000: "-Infinity"}[sign])
    coefficient = 0
    for digit in struct.unpack_from(f"!{count}H", data, 8):
        coefficient = coefficient * 10_000 + digit
    exponent = 4 * (weight - count + 1)
    if coefficient == 0:
        return Decimal(0)
    while coefficient % 10 == 0 and exponent < 0:
        coefficient //= 10
        exponent += 1
    digits = tuple(int(c) for c in str(coefficient))
    return Decimal((1 if sign == 0x4000 else 0, digits, exponent))


def standard_notation(value: Decimal) -> str:
    """All digits, never an exponent."""
    if value.is_finite():
        return format(value, "f")
    return "NaN" if value.is_nan() else "-Infinity" if value.is_signed() else "Infinity"


def shortest_digits(data: bytes) -> str:
    """The fewest digits that read back as this float, in Python's notation (which may use an exponent)."""
    value = float_of(data)
    if len(data) == 8 or value != value or value in (float("inf"), float("-inf")):
        return repr(value)
    for precision in range(1, 9):
        candidate = float(f"{value:.{precision}g}")
        try:
            if struct.pack("!f", candidate) == data:
                return repr(candidate)
        except OverflowError:  # rounded up past the largest float4
            continue
    return repr(float(f"{value:.9g}"))


def float_text(data: bytes) -> str:
    """A float as the server prints it inside arrays and records: `1`, `0.1`, `1e+20`, `Infinity`."""
    value = float_of(data)
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    text = shortest_digits(data)
    mantissa, e, exponent = text.partition("e")
    mantissa = mantissa.removesuffix(".0")
    return f"{mantissa}e{exponent[0]}{exponent[1:].zfill(2)}" if e else mantissa


def date_text(days: int) -> str:
    if days == 0x7FFFFFFF:
        return "infinity"
    if days == -0x80000000:
        return "-infinity"
    year, month, day = _civil(days + _EPOCH_DAYS)
    if year <= 0:
        return f"{1 - year:04}-{month:02}-{day:02} BC"
    return f"{year:04}-{month:02}-{day:02}"


def _civil(ordinal: int) -> tuple[int, int, int]:
    """Year, month, day of a day number (1 = 0001-01-01) in the proleptic Gregorian calendar, any year."""
    z = ordinal + 305  # days since 0000-03-01
    era, doe = divmod(z, 146_097)
    yoe = (doe - doe // 1460 + doe // 36_524 - doe // 146_096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    day = doy - (153 * mp + 2) // 5 + 1
    month = mp + 3 if mp < 10 else mp - 9
    return yoe + era * 400 + (month <= 2), month, day


def clock_text(us: int) -> str:
    seconds, fraction = divmod(us, 1_000_000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    text = f"{hour:02}:{minute:02}:{second:02}"
    return f"{text}.{fraction:06}".rstrip("0") if fraction else text


def timestamp_text(us: int, zone: str = "") -> str:
    if us == 0x7FFFFFFFFFFFFFFF:
        return "infinity"
    if us == -0x8000000000000000:
        return "-infinity"
    days, rest = divmod(us, _DAY_US)
    date = date_text(days)
    if date.endswith(" BC"):
        return f"{date[:-3]} {clock_text(rest)}{zone} BC"
    return f"{date} {clock_text(rest)}{zone}"


def timetz_text(data: bytes) -> str:
    us, west = struct.unpack("!qi", data)
    east = -west
    hours, seconds = divmod(abs(east), 3600)
    minutes, seconds = divmod(seconds, 60)
    zone = f"{'-' if east < 0 else '+'}{hours:02}"
    if minutes or seconds:
        zone += f":{minutes:02}"
    return clock_text(us) + zone + (f":{seconds:02}" if seconds else "")


def interval_text(data: bytes) -> str:
    us, days, months = struct.unpack("!qii", data)
    parts: list[str] = []
    negative = False
    years, month_rest = int(months / 12), months - 12 * int(months / 12)
    for count, unit in ((years, "year"), (month_rest, "month"), (days, "day")):
        if count:
            plus = "+" if negative and count > 0 else ""
            parts.append(f"{plus}{count} {unit}{'' if count == 1 else 's'}")
            negative = count < 0
    if us or not parts:
        sign = "-" if us < 0 else "+" if negative else ""
        parts.append(sign + clock_text(abs(us)))
    return " ".join(parts)


class _JsonNumber(float):
    """A JSON number that keeps the digits it was written with: `json` prints a float with its own repr."""

    text: str

    def __new__(cls, text: str) -> _JsonNumber:
        self = super().__new__(cls, 0.0)
        self.text = text
        return self


def _json_text(value: Any) -> str:
    match value:
        case _JsonNumber():
            return standard_notation(Decimal(value.text))
        case dict():
            items = sorted(value.items(), key=lambda item: item[0].encode("utf-8", "surrogatepass"))
            return "{" + ",".join(f"{json.dumps(k, ensure_ascii=False)}:{_json_text(v)}" for k, v in items) + "}"
        case list():
            return "[" + ",".join(map(_json_text, value)) + "]"
        case _:
            return json.dumps(value, ensure_ascii=False)


def jsonb_text(data: bytes) -> str:
    if data[:1] != b"\x01":
        raise UnknownValue(f"jsonb version {data[:1]!r}")
    value = json.loads(data[1:].decode(), parse_float=_JsonNumber, parse_int=_JsonNumber)
    return _json_text(value)


def _quote_element(text: str, extra: str = "") -> str:
    if text and text.upper() != "NULL" and not any(c in '{},"\\ \t\n\r\v\f' + extra for c in text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def array_text(data: bytes) -> str:
    ndim, _flags, element = struct.unpack_from("!iiI", data)
    if ndim == 0:
        return "{}"
    dims = [struct.unpack_from("!ii", data, 12 + 8 * i) for i in range(ndim)]
    decode = text_of(element)
    pos = 12 + 8 * ndim
    cells: list[str] = []
    while pos < len(data):
        (size,) = struct.unpack_from("!i", data, pos)
        pos += 4
        if size < 0:
            cells.append("NULL")
        else:
            cells.append(_quote_element(decode(data[pos : pos + size])))
            pos += size
    for length, _lower in reversed(dims):
        cells = ["{" + ",".join(cells[i : i + length]) + "}" for i in range(0, len(cells), length)]
    if any(lower != 1 for _, lower in dims):
        return "".join(f"[{lower}:{lower + n - 1}]" for n, lower in dims) + "=" + cells[0]
    return cells[0]


def vector_text(data: bytes) -> str:
    """int2vector and oidvector: an array on the wire, printed with spaces."""
    return array_text(data).partition("=")[2].strip("{}").replace(",", " ") if len(data) > 12 else ""


def record_text(data: bytes) -> str:
    (count,) = struct.unpack_from("!i", data)
    pos, cells = 4, []
    for _ in range(count):
        oid, size = struct.unpack_from("!Ii", data, pos)
        pos += 8
        if size < 0:
            cells.append("")
            continue
        text = text_of(oid)(data[pos : pos + size])
        pos += size
        if not text or any(c in '(),"\\ \t\n\r\v\f' for c in text):
            text = '"' + text.replace("\\", "\\\\").replace('"', '""') + '"'
        cells.append(text)
    return "(" + ",".join(cells) + ")"


def range_text(element: int) -> Decoder:
    decode = text_of(element)

    def text(data: bytes) -> str:
        flags, pos = data[0], 1
        if flags & 1:
            return "empty"
        bounds = []
        for infinite in (8, 16):
            if flags & infinite:
                bounds.append("")
                continue
            (size,) = struct.unpack_from("!i", data, pos)
            bounds.append(_quote_element(decode(data[pos + 4 : pos + 4 + size]), "()[]"))
            pos += 4 + size
        return f"{'[' if flags & 2 else '('}{bounds[0]},{bounds[1]}{']' if flags & 4 else ')'}"

    return text


def _guess(oid: int) -> Decoder:
    """A type without a fixed OID: an array if it looks like one, else text (enumerations, domains over text)."""

    def text(data: bytes) -> str:
        try:
            return array_text(data)
        except (struct.error, UnknownValue, UnicodeDecodeError, IndexError, ValueError):
            pass
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise UnknownValue(f"cannot print a value of the type with OID {oid}") from None

    return text


_DECODERS: dict[int, Decoder] = {
    BOOL: lambda b: "t" if b == b"\x01" else "f",
    BYTEA: lambda b: "\\x" + b.hex(),
    CHAR: lambda b: b.decode(),
    INT2VECTOR: vector_text,
    OIDVECTOR: vector_text,
    FLOAT4: float_text,
    FLOAT8: float_text,
    DATE: lambda b: date_text(int_of(b)),
    TIME: lambda b: clock_text(int_of(b)),
    TIMETZ: timetz_text,
    TIMESTAMP: lambda b: timestamp_text(int_of(b)),
    TIMESTAMPTZ: lambda b: timestamp_text(int_of(b), "+00"),
    INTERVAL: interval_text,
    NUMERIC: lambda b: standard_notation(numeric_of(b)),
    RECORD: record_text,
    UUID: lambda b: str(uuid.UUID(bytes=b)),
    JSONB: jsonb_text,
    MZ_TIMESTAMP: lambda b: b.decode(),
    **dict.fromkeys(INTEGERS, lambda b: str(int_of(b))),
    **dict.fromkeys(UNSIGNED, lambda b: str(uint_of(b))),
    **dict.fromkeys(OIDS, lambda b: str(uint_of(b))),
    **dict.fromkeys(TEXTS, lambda b: b.decode()),
}


def text_of(oid: int) -> Decoder:
    """The text encoding of the type `oid`. Raises `UnknownValue` when called on bytes it cannot read."""
    decoder = _DECODERS.get(oid)
    if decoder is None:
        decoder = _DECODERS[oid] = range_text(RANGES[oid]) if oid in RANGES else _guess(oid)
    return decoder
