"""numeric arithmetic: int64 mantissas at a common scale while they last, exact Decimals beyond.

Narrow columns add, subtract, multiply and compare at numpy speed when the result provably stays under 10^18; everything
else goes through `decimals` a value at a time, by Materialize's rules (39 digits, overflow and underflow are errors).
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

from mzlite.expr.call import Args, CallSite, Kernel, RowErrors
from mzlite.expr.kernels.adapt import merge_valid, per_value, spread_valid
from mzlite.expr.kernels.decimals import CONTEXT, PRECISION, WIDE, fits, rescale, trim
from mzlite.repr.column import Column
from mzlite.repr.errors import SqlError
from mzlite.repr.numeric import LIMIT, MAX_DIGITS, POW10, NumericColumn, align

_SMALLEST = Decimal(1).scaleb(-PRECISION)


def overflow() -> SqlError:
    return SqlError("22003", "value out of range: overflow")


def underflow() -> SqlError:
    return SqlError("22003", "value out of range: underflow")


def finish(value: Decimal) -> Decimal:
    """A computed numeric in its final form; errors when it leaves the range at either end."""
    rounded = trim(value)
    if not fits(rounded):
        raise overflow()
    if not rounded and value and value.is_finite():
        raise underflow()
    return rounded


def _add(a: Decimal, b: Decimal) -> Decimal:
    return finish(CONTEXT.add(a, b))


def _sub(a: Decimal, b: Decimal) -> Decimal:
    return finish(CONTEXT.subtract(a, b))


def _mul(a: Decimal, b: Decimal) -> Decimal:
    return finish(CONTEXT.multiply(a, b))


def _div(a: Decimal, b: Decimal) -> Decimal:
    if b.is_nan() or a.is_nan():
        return Decimal("NaN")
    if not b:
        raise SqlError("22012", "division by zero")
    return finish(CONTEXT.divide(a, b))


def _mod(a: Decimal, b: Decimal) -> Decimal:
    if a.is_nan() or b.is_nan():
        return Decimal("NaN")
    if not b:
        raise SqlError("22012", "division by zero")
    return finish(WIDE.remainder(a, b))


def _narrow_kernel(fast: Callable[[NumericColumn, NumericColumn], NumericColumn | None], slow: Kernel) -> Kernel:
    """fast on two narrow columns when it can say that nothing overflows, else slow."""

    def kernel(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
        a, b = args
        assert isinstance(a, NumericColumn) and isinstance(b, NumericColumn)
        if a.wide is None and b.wide is None:
            result = fast(a, b)
            if result is not None:
                valid = merge_valid(args)
                if valid is not None:
                    result.valid = spread_valid(valid, len(result))
                return result
        return slow(site, args, n, errors)

    return kernel


def _sum_like(apply: Callable[[Any, Any], Any]) -> Callable[[NumericColumn, NumericColumn], NumericColumn | None]:
    def fast(a: NumericColumn, b: NumericColumn) -> NumericColumn | None:
        if a.scale != b.scale:
            x, y = align([a, b])
            if x.wide is not None:
                return None
            a, b = x, y
        values = apply(a.live_values(), b.live_values())
        # Both terms are under 10^18, so the int64 sum is exact.
        if len(values) and (int(values.max()) >= LIMIT or int(values.min()) <= -LIMIT):
            return None
        return NumericColumn(values, a.scale)

    return fast


def _fast_mul(a: NumericColumn, b: NumericColumn) -> NumericColumn | None:
    if a.scale + b.scale > MAX_DIGITS:
        a, b = a.reduced(), b.reduced()
    scale = a.scale + b.scale
    if scale > MAX_DIGITS or a.magnitude() * b.magnitude() >= LIMIT:
        return None
    return NumericColumn(a.live_values() * b.live_values(), scale)


add = _narrow_kernel(_sum_like(np.add), per_value(_add))
sub = _narrow_kernel(_sum_like(np.subtract), per_value(_sub))
mul = _narrow_kernel(_fast_mul, per_value(_mul))
div = per_value(_div)
mod = per_value(_mod)


def sign_kernel(fast: Callable[[Any], Any], slow: Callable[[Decimal], Decimal]) -> Kernel:
    """A function of the mantissa alone that keeps scale and magnitude (negation, absolute value)."""
    fallback = per_value(slow)

    def kernel(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
        a = args[0]
        assert isinstance(a, NumericColumn)
        if a.wide is None:
            return NumericColumn(fast(a.values), a.scale, a.valid)
        return fallback(site, args, n, errors)

    return kernel


neg = sign_kernel(np.negative, lambda v: v if v.is_nan() else trim(v.copy_negate()))
absolute = sign_kernel(np.abs, lambda v: v if v.is_nan() else v.copy_abs())


def rescale_kernel(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
    """numeric to numeric(p, s): round half away from zero to s digits; the whole part must fit."""
    a = args[0]
    assert isinstance(a, NumericColumn)
    scale = site.typ.scale
    precision = site.typ.precision if site.typ.precision is not None else PRECISION
    if scale is None and site.typ.precision is None:
        return a
    if a.wide is None and (scale or 0) <= MAX_DIGITS:
        target = scale or 0
        values = a.live_values()
        if a.scale > target:
            factor = int(POW10[a.scale - target])
            half = factor // 2
            magnitude = np.abs(values)
            values = np.where(values < 0, -((magnitude + half) // factor), (magnitude + half) // factor)
            out = NumericColumn(values, target, a.valid)
        else:
            out = NumericColumn(values, a.scale, a.valid)
        if len(values) == 0 or int(np.abs(values).max()) < 10 ** min(precision - target + out.scale, MAX_DIGITS + 1):
            if out.scale < target:
                return out.rescaled(target) or out
            return out
    result: Column = _slow_rescale(site, args, n, errors)
    return result


def _rescale_value(site: CallSite, value: Decimal) -> Decimal:
    return to_declared(value, site.typ.precision, site.typ.scale)


_slow_rescale = per_value(_rescale_value, with_site=True)


def to_declared(value: Decimal, precision: int | None, scale: int | None) -> Decimal:
    """value as numeric(precision, scale), or numeric field overflow."""
    if not value.is_finite():
        return value
    if precision is None and scale is None:
        return value
    digits = PRECISION if precision is None else precision
    places = scale or 0
    rounded = rescale(value, places, decimal.ROUND_HALF_UP)
    if abs(rounded) >= Decimal(10) ** (digits - places):
        raise SqlError("22003", "numeric field overflow")
    return rounded
