"""Rounding, roots, powers, logarithms and trigonometry on floats and numerics."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

from mzlite.expr.call import Args, CallSite, Kernel, RowErrors
from mzlite.expr.functions.registry import operator, register
from mzlite.expr.functions.text import value
from mzlite.expr.kernels import numerics
from mzlite.expr.kernels.adapt import checked, elementwise, per_value, same_error
from mzlite.expr.kernels.decimals import CONTEXT, PRECISION, WIDE, fits, rescale, trim
from mzlite.repr.column import Column
from mzlite.repr.errors import SqlError
from mzlite.repr.numeric import POW10, NumericColumn
from mzlite.repr.types import LAYOUTS, Layout

_overflow = same_error("22003", "value out of range: overflow")
_underflow = same_error("22003", "value out of range: underflow")


# --- rounding ---------------------------------------------------------------------------------------------------------


def _whole(fast: Callable[[Any, Any], Any], rounding: str) -> Kernel:
    """A rounding of numerics to whole numbers. fast: (mantissas, 10**scale) -> whole numbers."""

    def exact(a: Decimal) -> Decimal:
        if not a.is_finite():
            return a
        result = rescale(a, 0, rounding)
        if not fits(result):
            raise numerics.overflow()
        return result if result else Decimal(0)

    slow = per_value(exact)

    def kernel(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
        a = args[0]
        assert isinstance(a, NumericColumn)
        if a.wide is not None:
            return slow(site, args, n, errors)
        if a.scale == 0:
            return a
        return NumericColumn(fast(a.live_values(), POW10[a.scale]), 0, a.valid)

    return kernel


def _half_up(v: Any, unit: Any) -> Any:
    magnitude = (np.abs(v) + unit // 2) // unit
    return np.where(v < 0, -magnitude, magnitude)


def _toward_zero(v: Any, unit: Any) -> Any:
    magnitude = np.abs(v) // unit
    return np.where(v < 0, -magnitude, magnitude)


_ROUNDINGS: dict[str, tuple[Any, Any, str]] = {
    "round": (np.rint, _half_up, decimal.ROUND_HALF_UP),
    "trunc": (np.trunc, _toward_zero, decimal.ROUND_DOWN),
    "floor": (np.floor, lambda v, unit: v // unit, decimal.ROUND_FLOOR),
    "ceil": (np.ceil, lambda v, unit: -(-v // unit), decimal.ROUND_CEILING),
    "ceiling": (np.ceil, lambda v, unit: -(-v // unit), decimal.ROUND_CEILING),
}
_SHORT = {"float4": "f32", "float8": "f64", "numeric": "numeric"}
for _name, (_float, _fast, _mode) in _ROUNDINGS.items():
    _shown = "ceil" if _name == "ceiling" else _name
    for _kind in ("float4", "float8"):
        _kernel = elementwise(_float, LAYOUTS[_kind])
        register(_name, f"{_kind} -> {_kind}", _kernel, can_error=False, display=f"{_shown}{_SHORT[_kind]}")
    register(_name, "numeric -> numeric", _whole(_fast, _mode), display=f"{_shown}numeric")


@value("round", "numeric, int4 -> numeric", display="roundnumeric")
def _round_to(a: Decimal, places: int) -> Decimal:
    if not a.is_finite() or not a:
        return a
    exponent = a.as_tuple().exponent
    assert isinstance(exponent, int)
    if places >= -exponent:
        return a
    if places < -PRECISION - 1:
        return Decimal(0)
    result = rescale(a, places, decimal.ROUND_HALF_UP)
    if not result:
        return Decimal(0)
    if not fits(result):
        raise numerics.overflow()
    return trim(result)


@value("trunc", "numeric, int4 -> numeric", display="truncnumeric")
def _trunc_to(a: Decimal, places: int) -> Decimal:
    if not a.is_finite() or places >= PRECISION:
        return a
    return trim(rescale(a, max(places, -PRECISION - 1), decimal.ROUND_DOWN))


# --- floats -----------------------------------------------------------------------------------------------------------


def _sqlstate(message: str) -> str:
    return "2201F" if "root" in message else "2201E" if "not defined for" in message else "22003"


def _float_function(
    name: str,
    f: Callable[[Any], Any],
    *checks: tuple[Callable[[Any], Any], str],
    flows: bool = False,
    display: str | None = None,
) -> None:
    """A float8 function; checks: (rows that fail, message), the first that holds wins."""
    makers = [(test, same_error(_sqlstate(message), message)) for test, message in checks]

    def run(a: Any) -> tuple[Any, list[Any]]:
        with np.errstate(all="ignore"):
            out = f(a)
            bad = [(test(a), make) for test, make in makers]
            if flows:
                bad.append((np.isinf(out) & np.isfinite(a), _overflow))
                bad.append(((out == 0) & np.isfinite(a), _underflow))
        return out, bad

    register(name, "float8 -> float8", checked(run, Layout.F64), display=display or f"{name}f64")


for _name, _f in (("sin", np.sin), ("cos", np.cos), ("tan", np.tan), ("cot", lambda a: 1.0 / np.tan(a))):
    _float_function(_name, _f, (np.isinf, f"function {_name} is only defined for finite arguments"), display=_name)
for _name, _f in (("asin", np.arcsin), ("acos", np.arccos), ("atanh", np.arctanh)):
    _float_function(
        _name,
        _f,
        (lambda a: np.abs(a) > 1, f"function {_name} is defined for numbers between -1 and 1 inclusive"),
        display=_name,
    )
_float_function(
    "acosh",
    np.arccosh,
    (lambda a: a < 1, "function acosh is defined for numbers greater than or equal to 1"),
    display="acosh",
)
for _name, _f in (
    ("atan", np.arctan),
    ("asinh", np.arcsinh),
    ("sinh", np.sinh),
    ("cosh", np.cosh),
    ("tanh", np.tanh),
    ("degrees", np.degrees),
    ("radians", np.radians),
):
    _float_function(_name, _f, display=_name)
_float_function("sqrt", np.sqrt, (lambda a: a < 0, "cannot take square root of a negative number"))
_float_function("cbrt", np.cbrt)
_float_function("exp", np.exp, flows=True, display="expf64")


def _log_checks(name: str) -> tuple[tuple[Callable[[Any], Any], str], ...]:
    return (
        (lambda a: a == 0, f"function {name} is not defined for zero"),
        (lambda a: a < 0, f"function {name} is not defined for negative numbers"),
    )


_float_function("ln", np.log, *_log_checks("ln"), display="lnf64")
_float_function("log10", np.log10, *_log_checks("log10"), display="log10f64")
_float_function("log", np.log10, *_log_checks("log10"), display="log10f64")


def _power(a: Any, b: Any) -> tuple[Any, list[Any]]:
    with np.errstate(all="ignore"):
        out = np.power(a, b)
    finite = np.isfinite(a) & np.isfinite(b)
    return out, [
        ((a == 0) & (b < 0), same_error("2201F", "zero raised to a negative power is undefined")),
        ((a < 0) & (np.trunc(b) != b) & finite, same_error("2201F", "function pow cannot return complex numbers")),
        (np.isinf(out) & finite, _overflow),
        ((out == 0) & (a != 0) & finite, _underflow),
    ]


for _name in ("pow", "power"):
    register(_name, "float8, float8 -> float8", checked(_power, Layout.F64), display="powf64")
operator("^", "power", "float8, float8 -> float8", checked(_power, Layout.F64))


# --- numerics ---------------------------------------------------------------------------------------------------------

# Transcendental functions are computed with digits to spare and rounded once to 39.
_TRANSCENDENTAL = decimal.Context(
    prec=80, rounding=decimal.ROUND_HALF_EVEN, Emin=-999_999, Emax=999_999, traps=[decimal.InvalidOperation]
)


def _numeric(name: str, f: Callable[[Decimal], Decimal], **options: Any) -> None:
    def run(a: Decimal) -> Decimal:
        return a if a.is_nan() else f(a)

    register(name, "numeric -> numeric", per_value(run), **options)


def _sqrt(a: Decimal) -> Decimal:
    if a < 0:
        raise SqlError("2201F", "cannot take square root of a negative number")
    return numerics.finish(_TRANSCENDENTAL.sqrt(a)) if a else Decimal(0)


def _cbrt(a: Decimal) -> float:
    return math.copysign(abs(float(a)) ** (1 / 3), float(a))


def _exp(a: Decimal) -> Decimal:
    # e^90 has 40 digits before the point, e^-92 none after it within 39.
    if a > 90:
        raise numerics.overflow()
    if a < -92:
        raise numerics.underflow()
    return numerics.finish(_TRANSCENDENTAL.exp(a))


def _logarithm(name: str, f: Callable[[Decimal], Decimal]) -> Callable[[Decimal], Decimal]:
    def run(a: Decimal) -> Decimal:
        if a == 0:
            raise SqlError("2201E", f"function {name} is not defined for zero")
        if a < 0:
            raise SqlError("2201E", f"function {name} is not defined for negative numbers")
        return trim(f(a))

    return run


_numeric("sqrt", _sqrt, display="sqrtnumeric")
_numeric("exp", _exp, display="expnumeric")
_ln = _logarithm("ln", _TRANSCENDENTAL.ln)
_numeric("ln", _ln, display="lnnumeric")
_numeric("log", _logarithm("log10", _TRANSCENDENTAL.log10), display="log10numeric")
_numeric("log10", _logarithm("log10", _TRANSCENDENTAL.log10), display="log10numeric")
_base_ln = _logarithm("log", CONTEXT.ln)


@value("log", "numeric, numeric -> numeric", display="lognumeric")
def _log_base(base: Decimal, a: Decimal) -> Decimal:
    if base.is_nan() or a.is_nan():
        return Decimal("NaN")
    # Two logarithms of 39 digits; their quotient's last digit is uncertain, so a quotient that is whole but for that
    # digit is taken as whole.
    divisor = _base_ln(base)
    dividend = _base_ln(a)
    if not divisor:
        raise SqlError("22012", "division by zero")
    quotient = CONTEXT.divide(dividend, divisor)
    shorter = quotient.normalize(decimal.Context(prec=PRECISION - 1, rounding=decimal.ROUND_HALF_EVEN))
    exponent = shorter.as_tuple().exponent
    return shorter if isinstance(exponent, int) and exponent >= 0 else numerics.finish(quotient)


@value("pow", "numeric, numeric -> numeric", display="powernumeric")
@value("power", "numeric, numeric -> numeric", display="powernumeric")
def _pow(a: Decimal, b: Decimal) -> Decimal:
    if a.is_nan() or b.is_nan():
        return Decimal("NaN")
    if not b:
        return Decimal(1)
    if not a:
        if b < 0:
            raise SqlError("2201F", "zero raised to a negative power is undefined")
        return Decimal(0)
    whole = b == b.to_integral_value(context=WIDE)
    if a < 0 and not whole:
        raise SqlError("2201F", "function pow cannot return complex numbers")
    if abs(a) == 1:
        odd = whole and WIDE.remainder(b, Decimal(2)) != 0
        return Decimal(-1) if a < 0 and odd else Decimal(1)
    magnitude = _TRANSCENDENTAL.multiply(b, _TRANSCENDENTAL.log10(abs(a)))
    if magnitude >= PRECISION + 1:
        raise numerics.overflow()
    if magnitude < -PRECISION - 1:
        raise numerics.underflow()
    return numerics.finish(_TRANSCENDENTAL.power(a, b))


operator("^", "power", "numeric, numeric -> numeric", per_value(_pow))
register("cbrt", "numeric -> float8", per_value(_cbrt), display="cbrt")


@value("sign", "numeric -> numeric", can_error=False)
def _sign_numeric(a: Decimal) -> Decimal:
    return a if a.is_nan() else Decimal((a > 0) - (a < 0))


register("sign", "float8 -> float8", elementwise(np.sign, Layout.F64), can_error=False)
register("pi", "-> float8", per_value(lambda: math.pi), id="pi", nullable="never", can_error=False)


@value("width_bucket", "float8, float8, float8, int4 -> int4")
def _width_bucket(operand: float, low: float, high: float, count: int) -> int:
    if count <= 0:
        raise SqlError("2201G", "count must be greater than zero")
    if count == (1 << 31) - 1:
        raise SqlError("22003", "integer out of range")
    if low == high:
        raise SqlError("2201G", "lower bound cannot equal upper bound")
    if not (math.isfinite(low) and math.isfinite(high)):
        raise SqlError("2201G", "lower and upper bounds must be finite")
    if math.isnan(operand):
        raise SqlError("2201G", "operand, lower bound, and upper bound cannot be NaN")
    if math.isinf(operand):
        return count + 1 if (operand > 0) == (high > low) else 0
    share = operand / (high - low) - low / (high - low)
    if not 0 <= share < 1:
        return count + 1 if share >= 1 else 0
    return min(math.floor(share * count) + 1, count)
