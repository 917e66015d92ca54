"""float4 and float8 arithmetic: IEEE, except that a finite calculation may neither overflow nor underflow silently.

NaN compares equal to itself and greater than everything, as PostgreSQL orders it. Functions return (values, failures)
for `adapt.checked`; -0.0 is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mzlite.expr.kernels.adapt import Bad, same_error

Checked = Callable[..., tuple[Any, list[Bad]]]
overflow = same_error("22003", "value out of range: overflow")
underflow = same_error("22003", "value out of range: underflow")
by_zero = same_error("22012", "division by zero")


def _inexact(r: Any, a: Any, b: Any) -> list[Bad]:
    """Failures of a finite operation that gave an infinity."""
    bad = np.isinf(r)
    if bad.any():
        bad = bad & np.isfinite(a) & np.isfinite(b)
        return [(bad, overflow)]
    return []


def add(a: Any, b: Any) -> tuple[Any, list[Bad]]:
    with np.errstate(all="ignore"):
        r = a + b
    return r, _inexact(r, a, b)


def sub(a: Any, b: Any) -> tuple[Any, list[Bad]]:
    with np.errstate(all="ignore"):
        r = a - b
    return r, _inexact(r, a, b)


def mul(a: Any, b: Any) -> tuple[Any, list[Bad]]:
    with np.errstate(all="ignore"):
        r = a * b
    bad = _inexact(r, a, b)
    zero = r == 0
    if zero.any():
        bad.append((zero & (a != 0) & (b != 0), underflow))
    return r, bad


def div(a: Any, b: Any) -> tuple[Any, list[Bad]]:
    with np.errstate(all="ignore"):
        r = a / b
    zero = (b == 0) & ~np.isnan(a)
    bad: list[Bad] = []
    if zero.any():
        bad.append((zero, by_zero))
    bad += _inexact(r, a, b)
    vanished = r == 0
    if vanished.any():
        bad.append((vanished & (a != 0) & np.isfinite(b), underflow))
    return r, bad


def mod(a: Any, b: Any) -> tuple[Any, list[Bad]]:
    zero = b == 0
    with np.errstate(all="ignore"):
        r = np.fmod(a, b)
    return r, [(np.broadcast_to(zero, r.shape), by_zero)] if zero.any() else []


def half_even(a: Any) -> Any:
    """round(): ties to even, as the hardware does."""
    return np.rint(a)


_FLOAT_NAMES = {"float4": "real", "float8": "double precision"}


def to_integer(kind: str) -> Checked:
    """Rounded (ties to even) into an integer kind."""
    from mzlite.expr.kernels.integers import DTYPES, out_of_range

    dtype = DTYPES[kind]
    info = np.iinfo(dtype)

    def run(a: Any) -> tuple[Any, list[Bad]]:
        r = np.rint(a)
        # 2^63 and 2^64 are exact floats just above the range; the lower bounds are exact.
        bad = ~((r >= float(info.min)) & (r < float(info.max + 1)))
        with np.errstate(all="ignore"):
            values = r.astype(dtype)
        if not bad.any():
            return values, []
        return values, [(bad, lambda row: out_of_range(_plain(a[row if len(a) > row else 0]), kind))]

    return run


def _plain(value: Any) -> str:
    """A float as Rust prints it: shortest digits, never an exponent."""
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "inf" if value > 0 else "-inf"
    return np.format_float_positional(value, unique=True, trim="-")


def narrow(a: Any) -> tuple[Any, list[Bad]]:
    """float8 to float4."""
    with np.errstate(all="ignore"):
        r = a.astype(np.float32)
    bad: list[Bad] = []
    grown = np.isinf(r)
    if grown.any():
        bad.append((grown & np.isfinite(a), overflow))
    gone = r == 0
    if gone.any():
        bad.append((gone & (a != 0), underflow))
    return r, bad
