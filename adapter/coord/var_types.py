"""Types of configuration parameters: how a value is read from SET and how SHOW prints it.

A value is stored as the text SHOW prints (its canonical form) beside what the program uses (`parsed`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from mzlite.repr.errors import SqlError

Parsed = tuple[str, Any]


def invalid_value(name: str, value: str, *, hint: str | None = None, detail: str | None = None) -> SqlError:
    return SqlError("22023", f'invalid value for parameter "{name}": "{value}"', hint=hint, detail=detail)


def requires(name: str, what: str) -> SqlError:
    return SqlError("22023", f'parameter "{name}" requires a "{what}" value')


@dataclass(frozen=True, slots=True)
class VarType:
    """parse(name, values) -> (canonical text, value). name: as mz_settings shows it."""

    name: str
    parse: Callable[[str, Sequence[str]], Parsed]


def _single(name: str, values: Sequence[str]) -> str:
    if len(values) != 1:
        shown = ",".join(f'"{v}"' for v in values)
        raise SqlError("22023", f'parameter "{name}" cannot have value {shown}: expects a single value')
    return values[0]


def _bool(name: str, values: Sequence[str]) -> Parsed:
    text = _single(name, values).lower()
    if text in ("t", "true", "on", "yes", "1"):
        return ("on", True)
    if text in ("f", "false", "off", "no", "0"):
        return ("off", False)
    raise requires(name, "boolean")


def _int(low: int, high: int, what: str) -> Callable[[str, Sequence[str]], Parsed]:
    def parse(name: str, values: Sequence[str]) -> Parsed:
        text = _single(name, values).strip()
        if not re.fullmatch(r"[+-]?\d+", text) or not low <= int(text) <= high:
            raise requires(name, what)
        return (str(int(text)), int(text))

    return parse


def _float(name: str, values: Sequence[str]) -> Parsed:
    text = _single(name, values)
    try:
        value = float(text)
    except ValueError:
        raise requires(name, "double-precision floating-point number") from None
    return (repr(value).removesuffix(".0"), value)


def _non_negative_numeric(name: str, values: Sequence[str]) -> Parsed:
    text = _single(name, values)
    try:
        value = Decimal(text)
    except InvalidOperation:
        raise requires(name, "numeric") from None
    if value.is_nan() or value < 0:
        raise SqlError(
            "22023",
            f'parameter "{name}" cannot have value "{text}": only supports non-negative, non-NaN numeric values',
        )
    return (str(value), value)


def _text(name: str, values: Sequence[str]) -> Parsed:
    text = _single(name, values)
    return (text, text)


_BYTE_UNITS = {"b": 1, "kb": 1 << 10, "mb": 1 << 20, "gb": 1 << 30, "tb": 1 << 40}


def _bytes(name: str, values: Sequence[str]) -> Parsed:
    text = _single(name, values).strip()
    m = re.fullmatch(r"(\d+)\s*([A-Za-z]*)", text)
    unit = _BYTE_UNITS.get(m[2].lower() or "b") if m else None
    if m is None or unit is None:
        raise requires(name, "bytes")
    n = int(m[1]) * unit
    return (format_bytes(n), n)


def format_bytes(n: int) -> str:
    """`1GB`, `8B`: the largest unit that divides it."""
    for suffix in ("tb", "gb", "mb", "kb"):
        if n and n % _BYTE_UNITS[suffix] == 0:
            return f"{n // _BYTE_UNITS[suffix]}{suffix.upper()}"
    return f"{n}B"


def human_bytes(n: int) -> str:
    """As error messages say it: `100 B`, `1.0 MiB`."""
    if n < 1024:
        return f"{n} B"
    value = float(n)
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        value /= 1024
        if value < 1024 or unit == "TiB":
            return f"{value:.1f} {unit}"
    raise AssertionError(n)


_DURATION_UNITS = {"us": 0.001, "ms": 1.0, "s": 1000.0, "min": 60_000.0, "h": 3_600_000.0, "d": 86_400_000.0}


def _duration(name: str, values: Sequence[str]) -> Parsed:
    """Parsed value: milliseconds (int or fraction)."""
    text = _single(name, values).strip()
    m = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text)
    unit = _DURATION_UNITS.get(m[2] or "ms") if m else None
    if m is None or unit is None:
        raise requires(name, "duration")
    ms = float(m[1]) * unit
    return (format_duration(ms), ms)


def format_duration(ms: float) -> str:
    """`1 min`, `250 ms`: the largest unit that divides it."""
    if ms == 0:
        return "0"
    for unit in ("d", "h", "min", "s", "ms"):
        scaled = ms / _DURATION_UNITS[unit]
        if scaled == int(scaled):
            return f"{int(scaled)} {unit}"
    return f"{int(ms * 1000)} us"


def _enum(*allowed: str, aliases: dict[str, str] | None = None) -> VarType:
    def parse(name: str, values: Sequence[str]) -> Parsed:
        text = _single(name, values)
        value = text.lower()
        value = (aliases or {}).get(value, value)
        if value not in allowed:
            raise invalid_value(name, text, hint="Available values: " + ", ".join(allowed) + ".")
        return (value, value)

    return VarType("string", parse)


_PLAIN_IDENT = re.compile(r"[a-z_][a-z0-9_$]*\Z")


def quote_ident(name: str) -> str:
    return name if _PLAIN_IDENT.match(name) else '"' + name.replace('"', '""') + '"'


def _ident_list(name: str, values: Sequence[str]) -> Parsed:
    return (", ".join(quote_ident(v) for v in values), tuple(values))


def _datestyle(name: str, values: Sequence[str]) -> Parsed:
    for value in values:
        for part in value.split(","):
            if part.strip().strip('"').lower() not in ("iso", "mdy"):
                raise SqlError(
                    "22023",
                    f'parameter "{name}" can only be set to "ISO, MDY"',
                )
    return ("ISO, MDY", "ISO, MDY")


def _fixed(expected: str) -> VarType:
    def parse(name: str, values: Sequence[str]) -> Parsed:
        text = _single(name, values)
        if text.lower() != expected.lower():
            raise SqlError("22023", f'parameter "{name}" can only be set to "{expected}"')
        return (expected, expected)

    return VarType("string", parse)


def _timezone(name: str, values: Sequence[str]) -> Parsed:
    text = _single(name, values)
    if text.lower() in ("utc", "gmt", "zulu"):
        return ("UTC", "UTC")
    if re.fullmatch(r"[+-]?00(:?00)?", text):
        return (text, text)
    raise invalid_value(name, text)


def _encoding(name: str, values: Sequence[str]) -> Parsed:
    text = _single(name, values)
    # As PostgreSQL compares encoding names: letters and digits only (asyncpg sends 'utf-8' with its quotes).
    if "".join(ch for ch in text.lower() if ch.isalnum()) not in ("utf8", "unicode"):
        raise invalid_value(name, text, hint="Available values: UTF8.")
    return ("UTF8", "UTF8")


BOOL = VarType("boolean", _bool)
INT = VarType("integer", _int(-(2**31), 2**31 - 1, "integer"))
UINT = VarType("unsigned integer", _int(0, 2**64 - 1, "unsigned integer"))
FLOAT = VarType("double-precision floating-point number", _float)
NUMERIC = VarType("numeric", _non_negative_numeric)
TEXT = VarType("string", _text)
BYTES = VarType("bytes", _bytes)
DURATION = VarType("duration", _duration)
IDENT_LIST = VarType("string list", _ident_list)
DATESTYLE = VarType("string list", _datestyle)
TIMEZONE = VarType("string", _timezone)
ENCODING = VarType("string", _encoding)
INTERVALSTYLE = _fixed("postgres")
STRING_LITERALS = _fixed("on")
ISOLATION = _enum(
    "serializable",
    "strict serializable",
    "strong session serializable",
    aliases={"read uncommitted": "serializable", "read committed": "serializable", "repeatable read": "serializable"},
)
CLIENT_MESSAGES = _enum(
    "debug5",
    "debug4",
    "debug3",
    "debug2",
    "debug1",
    "log",
    "notice",
    "warning",
    "error",
    "info",
    aliases={"debug": "debug2"},
)
