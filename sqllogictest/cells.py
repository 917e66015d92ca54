"""One value to the text that a query record compares: the table of (type letter, type, mode).

The letter is how the file wants the value shown, not a check of its type: an integer under R stays an integer, a text
under I is 0, a float under T has three decimals. A pair outside the table is a failure of the record.

    letter  takes
    B       bool
    I       integers, oid, float (truncated), numeric (a whole number), text (0), bool (1 or 0)
    R       integers, float, numeric
    T       anything
    O       oid

source: format_datum of Materialize's runner, which in turn keeps SQLite's and CockroachDB's habits.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal

from sqllogictest import values
from sqllogictest.records import Mode

NULL = "NULL"
EMPTY = "(empty)"

Formatter = Callable[[bytes], str]

_WIDE = Context(prec=2000)  # a numeric of PostgreSQL may have far more digits than a float


class BadPair(Exception):
    """A value whose type cannot be shown under its letter."""


@functools.lru_cache(maxsize=4096)
def formatters(types: str, oids: tuple[int, ...], mode: Mode) -> tuple[Formatter, ...]:
    """A function per column. Raises `BadPair`; len(types) == len(oids)."""
    assert len(types) == len(oids), (types, oids)
    return tuple(_formatter(letter, oid, mode) for letter, oid in zip(types, oids, strict=True))


def format_rows(rows: Sequence[Sequence[bytes | None]], columns: Sequence[Formatter]) -> list[list[str]]:
    return [[NULL if cell is None else column(cell) for cell, column in zip(row, columns, strict=True)] for row in rows]


def _formatter(letter: str, oid: int, mode: Mode) -> Formatter:
    found: Formatter | None = None
    match letter:
        case "T":
            found = _text(oid)
        case "I":
            found = _integer(oid, mode)
        case "R":
            found = _real(oid, mode)
        case "B" if oid == values.BOOL:
            found = _bool
        case "O" if oid == values.OID:
            found = values.text_of(oid)
    if found is None:
        raise BadPair(f"a value of the type with OID {oid} cannot be shown as {letter}")
    return found


def _bool(data: bytes) -> str:
    return "true" if data == b"\x01" else "false"


def _text(oid: int) -> Formatter:
    if oid in values.TEXTS:
        return _nonempty
    if oid == values.BOOL:
        return _bool
    if oid in values.FLOATS:
        return lambda data: fixed(values.float_of(data))
    if oid == values.BYTEA:
        return _bytes
    return values.text_of(oid)


def _nonempty(data: bytes) -> str:
    return data.decode() if data else EMPTY


def _bytes(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return "[" + ", ".join(map(str, data)) + "]"


def _integer(oid: int, mode: Mode) -> Formatter | None:
    if oid in values.INTEGERS or oid in values.UNSIGNED or oid == values.OID:
        return values.text_of(oid)
    if oid in values.FLOATS:
        return lambda data: str(truncated(values.float_of(data)))
    if oid in values.TEXTS:
        return lambda data: "0"
    if oid == values.BOOL:
        return lambda data: "1" if data == b"\x01" else "0"
    if oid == values.NUMERIC:
        rounding = ROUND_DOWN if mode is Mode.STANDARD else ROUND_HALF_UP
        return lambda data: rescaled(values.numeric_of(data), 0, rounding)
    return None


def _real(oid: int, mode: Mode) -> Formatter | None:
    if oid in values.INTEGERS:
        return values.text_of(oid)
    if oid in values.FLOATS:
        return plain if mode is Mode.COCKROACH else lambda data: fixed(values.float_of(data))
    if oid == values.NUMERIC:
        if mode is Mode.COCKROACH:
            return values.text_of(oid)
        return lambda data: rescaled(values.numeric_of(data), 3, ROUND_HALF_UP)
    return None


def fixed(value: float) -> str:
    """Three decimals; `NaN`, `inf`, `-inf`."""
    if math.isfinite(value):
        return f"{value:.3f}"
    return "NaN" if math.isnan(value) else "inf" if value > 0 else "-inf"


def plain(data: bytes) -> str:
    """The shortest digits of a float, written out: no exponent, no `.0`, `-0` for minus zero."""
    value = values.float_of(data)
    if not math.isfinite(value):
        return fixed(value)
    return format(Decimal(values.shortest_digits(data)), "f").removesuffix(".0")


def truncated(value: float) -> int:
    """Toward zero, saturating at 64 bits; NaN is 0."""
    if math.isnan(value):
        return 0
    limit = 2**63
    return int(max(-limit, min(limit - 1, value))) if math.isfinite(value) else limit - 1 if value > 0 else -limit


def rescaled(value: Decimal, decimals: int, rounding: str) -> str:
    """At most so many decimals; fewer are left as they are, and a negative zero becomes 0."""
    if value.is_finite():
        exponent = value.as_tuple().exponent
        assert isinstance(exponent, int)
        if exponent < -decimals:
            value = value.quantize(Decimal(1).scaleb(-decimals), rounding=rounding, context=_WIDE)
        if value.is_zero():
            value = abs(value)
    return values.standard_notation(value)
