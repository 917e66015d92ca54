"""Integer arithmetic with overflow detection, signed and unsigned, 16 to 64 bits.

Narrow types compute in int64 and compare against the range; 64-bit ones detect wrap-around. Each function returns
(values, failures) for `adapt.checked`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mzlite.expr.kernels.adapt import Bad, same_error
from mzlite.repr.errors import SqlError

NAMES = {
    "int2": "smallint",
    "int4": "integer",
    "int8": "bigint",
    "uint2": "uint2",
    "uint4": "uint4",
    "uint8": "uint8",
}
DTYPES: dict[str, Any] = {
    "int2": np.int16,
    "int4": np.int32,
    "int8": np.int64,
    "uint2": np.uint16,
    "uint4": np.uint32,
    "uint8": np.uint64,
}
Checked = Callable[..., tuple[Any, list[Bad]]]
_overflow = same_error("22003", "numeric field overflow")
_by_zero = same_error("22012", "division by zero")


def out_of_range(text: str, kind: str) -> SqlError:
    return SqlError("22003", f'"{text}" {NAMES[kind]} out of range')


def _narrow(wide: Any, dtype: Any) -> tuple[Any, list[Bad]]:
    values = wide.astype(dtype)
    bad = values != wide
    return values, [(bad, _overflow)] if bad.any() else []


def _add64(a: Any, b: Any) -> tuple[Any, list[Bad]]:
    r = a + b
    bad = ((a ^ r) & (b ^ r)) < 0
    return r, [(bad, _overflow)] if bad.any() else []


def _sub64(a: Any, b: Any) -> tuple[Any, list[Bad]]:
    r = a - b
    bad = ((a ^ b) & (a ^ r)) < 0
    return r, [(bad, _overflow)] if bad.any() else []


def _mul64(a: Any, b: Any) -> tuple[Any, list[Bad]]:
    r = a * b
    risky = np.abs(a.astype(np.float64)) * np.abs(b.astype(np.float64)) >= 9.2e18
    if not risky.any():
        return r, []
    info = np.iinfo(a.dtype)
    a, b = np.broadcast_arrays(a, b)
    bad = np.zeros(len(r), np.bool_)
    for row in np.flatnonzero(risky).tolist():
        bad[row] = not info.min <= int(a[row]) * int(b[row]) <= info.max
    return r, [(bad, _overflow)] if bad.any() else []


def _uadd64(a: Any, b: Any) -> tuple[Any, list[Bad]]:
    r = a + b
    bad = r < a
    return r, [(bad, _overflow)] if bad.any() else []


def _usub64(a: Any, b: Any) -> tuple[Any, list[Bad]]:
    bad = a < b
    return a - b, [(bad, _overflow)] if bad.any() else []


def arithmetic(kind: str, op: str) -> Checked:
    """+, - or * of two integers of one kind."""
    dtype = DTYPES[kind]
    if kind == "int8":
        return {"+": _add64, "-": _sub64, "*": _mul64}[op]
    if kind == "uint8":
        return {"+": _uadd64, "-": _usub64, "*": _mul64}[op]
    wide = np.int64
    if op == "+":
        return lambda a, b: _narrow(a.astype(wide) + b, dtype)
    if op == "-":
        return lambda a, b: _narrow(a.astype(wide) - b, dtype)
    if kind == "uint4":
        # The product of two uint32 needs 64 unsigned bits.
        return lambda a, b: _narrow(a.astype(np.uint64) * b, dtype)
    return lambda a, b: _narrow(a.astype(wide) * b, dtype)


def division(kind: str) -> Checked:
    """Quotient truncated towards zero."""
    signed = kind.startswith("int")
    name = NAMES[kind]

    def divide(a: Any, b: Any) -> tuple[Any, list[Bad]]:
        zero = b == 0
        bad: list[Bad] = []
        if zero.any():
            bad.append((zero, _by_zero))
            b = np.where(zero, b.dtype.type(1), b)
        if not signed:
            return a // b, bad
        lowest = np.iinfo(a.dtype).min
        wraps = (a == lowest) & (b == -1)
        if wraps.any():
            error = SqlError("22003", f'"{lowest} / -1" {name} out of range')
            bad.append((wraps, lambda row: error))
            b = np.where(wraps, b.dtype.type(1), b)
        quotient = a // b
        # numpy floors; one more where the signs differ and something is left.
        quotient = quotient + ((quotient * b != a) & ((a < 0) != (b < 0))).astype(a.dtype)
        return quotient, bad

    return divide


def remainder(kind: str) -> Checked:
    """Remainder with the sign of the dividend."""

    def rem(a: Any, b: Any) -> tuple[Any, list[Bad]]:
        zero = b == 0
        bad: list[Bad] = []
        if zero.any():
            bad.append((zero, _by_zero))
            b = np.where(zero, b.dtype.type(1), b)
        return np.fmod(a, b), bad

    return rem


def negate(kind: str) -> Checked:
    dtype = DTYPES[kind]
    lowest = np.iinfo(dtype).min

    def neg(a: Any) -> tuple[Any, list[Bad]]:
        bad = a == lowest
        return -a, [(bad, lambda row: out_of_range(str(lowest), kind))] if bad.any() else []

    return neg


def absolute(kind: str) -> Checked:
    dtype = DTYPES[kind]
    lowest = np.iinfo(dtype).min

    def magnitude(a: Any) -> tuple[Any, list[Bad]]:
        bad = a == lowest
        return np.abs(a), [(bad, lambda row: out_of_range(str(lowest), kind))] if bad.any() else []

    return magnitude


def shift(kind: str, *, left: bool) -> Checked:
    """By an int4, modulo the width as in PostgreSQL (int2 shifts as int4)."""
    dtype = DTYPES[kind]
    bits = np.iinfo(dtype).bits
    work = np.dtype(np.uint64 if kind.startswith("uint") else np.int64)
    modulus = max(bits, 32)

    def run(a: Any, b: Any) -> tuple[Any, list[Bad]]:
        amount = (b.astype(np.int64) % modulus).astype(work)
        wide = a.astype(work)
        if not left:
            return (wide >> amount).astype(dtype), []
        shifted = wide << amount
        if bits < modulus:
            shifted = shifted.astype(np.int32)
        return shifted.astype(dtype), []

    return run


def convert(source: str, target: str) -> Checked:
    """Between integer kinds; a value that does not fit is named in the error."""
    dtype = DTYPES[target]
    info = np.iinfo(dtype)
    from_info = np.iinfo(DTYPES[source])
    if info.min <= from_info.min and from_info.max <= info.max:
        return lambda a: (a.astype(dtype), [])
    check_low = from_info.min < info.min
    check_high = from_info.max > info.max

    def run(a: Any) -> tuple[Any, list[Bad]]:
        bad = np.zeros(len(a), np.bool_)
        if check_low:
            bad |= a < info.min
        if check_high:
            bad |= a > info.max
        return a.astype(dtype), [(bad, lambda row: out_of_range(str(a[row]), target))] if bad.any() else []

    return run
