"""numeric's rules on Python Decimals: 39 digits, rounding half away from zero, text in plain notation."""

from __future__ import annotations

import decimal
import re
from decimal import Decimal

from mzlite.repr.errors import SqlError

MAX_PRECISION = 39
# Exact for every intermediate of two 39-digit operands.
WIDE_CONTEXT = decimal.Context(prec=200, rounding=decimal.ROUND_HALF_UP, Emin=-9999, Emax=9999)
# Rounds a result to numeric's precision.
CONTEXT = decimal.Context(prec=MAX_PRECISION, rounding=decimal.ROUND_HALF_UP, Emin=-9999, Emax=9999)

_NUMERIC = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?\Z", re.ASCII)
_STRETCH = 10_000


class NumericTextError(ValueError):
    """out_of_range: the text is a number, but not a numeric."""

    def __init__(self, out_of_range: bool) -> None:
        super().__init__()
        self.out_of_range = out_of_range


def parse_numeric(text: str) -> Decimal:
    """Parse, rounding the fraction so that 39 digits hold the value; NumericTextError otherwise."""
    text = text.strip()
    if _NUMERIC.match(text) is None:
        if text.lower() == "nan":
            return Decimal("NaN")
        raise NumericTextError(False)
    value = Decimal(text)
    if abs(value.adjusted()) > _STRETCH and value:
        raise NumericTextError(True)
    fitted = fit(value)
    if fitted is None:
        raise NumericTextError(True)
    return fitted


def fit(value: Decimal) -> Decimal | None:
    """The value rounded to at most 39 digits and 39 decimals, trailing zeros dropped; None when it does not fit."""
    if not value.is_finite():
        return value
    if not value:
        return Decimal(0)
    top = value.adjusted()
    if top >= MAX_PRECISION or top < -MAX_PRECISION:
        return None
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    least = max(-MAX_PRECISION, top + 1 - MAX_PRECISION)
    if exponent < least:
        value = value.quantize(Decimal((0, (1,), least)), context=WIDE_CONTEXT)
        if value.adjusted() >= MAX_PRECISION:
            return None
    return reduce(value)


def reduce(value: Decimal) -> Decimal:
    """Without trailing zeros after the point, and with an exponent of at most 0."""
    if not value:
        return Decimal(0)
    value = value.normalize(WIDE_CONTEXT)
    exponent = value.as_tuple().exponent
    if isinstance(exponent, int) and exponent > 0:
        value = value.quantize(Decimal(1), context=WIDE_CONTEXT)
    return value


def rescale(value: Decimal, scale: int) -> Decimal:
    """Rounded to `scale` decimals and shown with exactly as many; 22003 when 39 digits do not hold that."""
    if not value.is_finite():
        return value
    if value and value.adjusted() + 1 + scale > MAX_PRECISION:
        raise field_overflow(scale)
    value = value.quantize(Decimal((0, (1,), -scale)), context=WIDE_CONTEXT)
    if value and value.adjusted() + 1 + scale > MAX_PRECISION:
        raise field_overflow(scale)
    return value if value else abs(value)


def field_overflow(scale: int) -> SqlError:
    return SqlError(
        "22003",
        "numeric field overflow",
        detail=f"A field with precision {MAX_PRECISION}, scale {scale} must round to an absolute value "
        f"less than 10^{MAX_PRECISION - scale}.",
    )


def format_numeric(value: Decimal, scale: int | None = None) -> str:
    """Plain notation: exactly `scale` decimals when declared, else no trailing zeros."""
    if not value.is_finite():
        return "NaN" if value.is_nan() else "-Infinity" if value < 0 else "Infinity"
    if scale is not None:
        value = value.quantize(Decimal((0, (1,), -scale)), context=WIDE_CONTEXT)
        text = format(value, "f")
    else:
        text = format(value, "f")
        if "." in text:
            text = text.rstrip("0").rstrip(".")
    return "0" + text[2:] if text.startswith("-0") and not value else text
