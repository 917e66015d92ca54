"""Numeric arithmetic on Python's Decimal: 39 significant digits, no more than 39 after the point.

The one place that knows Materialize's rules for numeric: results are rounded to 39 digits (half even on exact
arithmetic, as its decimal library does), a whole part of more than 39 digits is an error, trailing zeros mean nothing.
"""

from __future__ import annotations

import decimal
from decimal import Decimal
from fractions import Fraction

from mzlite.repr.errors import SqlError

PRECISION = 39
CONTEXT = decimal.Context(
    prec=PRECISION,
    rounding=decimal.ROUND_HALF_EVEN,
    Emin=-999_999,
    Emax=999_999,
    traps=[decimal.InvalidOperation, decimal.DivisionByZero],
)
# For intermediate results that are rounded to 39 digits afterwards.
WIDE = decimal.Context(prec=100, rounding=decimal.ROUND_HALF_EVEN, Emin=-999_999, Emax=999_999, traps=[])
_LIMIT = Decimal(10) ** PRECISION
_SMALLEST = Decimal(1).scaleb(-PRECISION)


def field_overflow() -> SqlError:
    return SqlError("22003", "numeric field overflow")


def fits(value: Decimal) -> bool:
    """Whether the whole part has at most 39 digits (NaN does)."""
    return not value.is_finite() or abs(value) < _LIMIT


def trim(value: Decimal) -> Decimal:
    """value rounded to 39 digits and 39 decimal places, without trailing zeros; 0 without a sign."""
    if not value.is_finite():
        return value
    value = CONTEXT.plus(value)
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    if exponent < -PRECISION:
        value = value.quantize(_SMALLEST, context=WIDE)
    if not value:
        return Decimal(0)
    return WIDE.normalize(value)


def checked(value: Decimal) -> Decimal:
    """`trim`, or numeric field overflow."""
    value = trim(value)
    if not fits(value):
        raise field_overflow()
    return value


def decimal_of_fraction(value: Fraction, *, root: bool = False) -> Decimal:
    """The nearest numeric of a fraction (or of its square root)."""
    ratio = WIDE.divide(Decimal(value.numerator), Decimal(value.denominator))
    return trim(WIDE.sqrt(ratio) if root else ratio)


def rescale(value: Decimal, scale: int, rounding: str = decimal.ROUND_HALF_UP) -> Decimal:
    """value with at most `scale` digits after the point (negative: to tens, hundreds, ...)."""
    if not value.is_finite():
        return value
    return value.quantize(Decimal(1).scaleb(-scale), rounding=rounding, context=WIDE)
