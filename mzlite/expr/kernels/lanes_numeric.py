"""Lanes of numeric sums: base 10^9 limbs around the decimal point, 45 digits on either side.

Narrow columns (int64 mantissas at one scale) become limbs with a few integer divisions per column; only wide values,
and NaN, go one at a time.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np

from mzlite.expr.call import Args, CallSite, RowErrors
from mzlite.expr.kernels.decimals import decimal_of_fraction
from mzlite.expr.kernels.lanes import (
    BILLION,
    SPECIALS,
    LaneSum,
    averages,
    decimal_column,
    digits_to_ints,
    some_rows,
    special_sum,
    valid_rows,
    without_nulls,
)
from mzlite.repr.column import I64, Column
from mzlite.repr.numeric import NumericColumn

FRACTION_LIMBS = 5
NUMERIC_LIMBS = 10
SQUARE_LIMBS = 20


def _decimal_limbs(value: Decimal, count: int, fraction_limbs: int) -> list[int]:
    """value in base 10^9 limbs, the sign on each."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    whole = int("".join(map(str, digits)) or "0") * 10 ** (exponent + 9 * fraction_limbs)
    limbs = []
    for _ in range(count):
        whole, limb = divmod(whole, BILLION)
        limbs.append(-limb if sign else limb)
    return limbs


def _narrow_limbs(column: NumericColumn) -> tuple[I64, I64]:
    """(five base 10^9 limbs int64[n, 5] of |value| from weight 10^-18 up, sign) of a column without wide values."""
    values = column.values
    sign = np.sign(values)
    magnitude = np.abs(values)
    whole, part = np.divmod(magnitude, np.int64(10**column.scale))
    part = part * np.int64(10 ** (18 - column.scale))
    limbs = np.empty((len(values), 5), np.int64)
    limbs[:, 1], limbs[:, 0] = np.divmod(part, BILLION)
    rest, limbs[:, 2] = np.divmod(whole, BILLION)
    limbs[:, 4], limbs[:, 3] = np.divmod(rest, BILLION)
    return limbs, sign


def _contribute_numerics(args: Args, n: int, *, squares: bool) -> I64:
    column = args[0]
    assert isinstance(column, NumericColumn), column
    valid = valid_rows(column, n)
    out = np.zeros((n, SPECIALS + NUMERIC_LIMBS + (SQUARE_LIMBS if squares else 0)), np.int64)
    out[:, 0] = 1
    base = SPECIALS + NUMERIC_LIMBS
    if column.wide is None and column.scale <= 18:
        limbs, sign = _narrow_limbs(column)
        low = SPECIALS + FRACTION_LIMBS - 2
        out[:, low : low + 5] = limbs * sign[:, None]
        if squares:
            product = np.zeros((len(limbs), 11), np.int64)
            for i in range(5):
                for j in range(5):
                    high, rest = np.divmod(limbs[:, i] * limbs[:, j], BILLION)
                    product[:, i + j] += rest
                    product[:, i + j + 1] += high
            low = base + SQUARE_LIMBS // 2 - 4
            out[:, low : low + 11] = product
        return without_nulls(out, valid)
    decimals = column.to_decimals()
    for row in range(n):
        value = decimals[row if len(decimals) == n else 0]
        if value is None:
            continue
        if not value.is_finite():
            out[row, 1 if value.is_nan() else 2 if value > 0 else 3] = 1
            continue
        out[row, SPECIALS:base] = _decimal_limbs(value, NUMERIC_LIMBS, FRACTION_LIMBS)
        if squares:
            square = Fraction(value) * Fraction(value)
            scaled = square.numerator * 10**90 // square.denominator
            for i in range(SQUARE_LIMBS):
                scaled, out[row, base + i] = divmod(scaled, BILLION)
    return without_nulls(out, valid)


def _contribute_numeric(site: CallSite, args: Args, n: int) -> I64:
    return _contribute_numerics(args, n, squares=False)


def _contribute_numeric_squares(site: CallSite, args: Args, n: int) -> I64:
    return _contribute_numerics(args, n, squares=True)


NUMERIC_SUM = LaneSum(SPECIALS + NUMERIC_LIMBS, _contribute_numeric)
NUMERIC_SQUARES = LaneSum(SPECIALS + NUMERIC_LIMBS + SQUARE_LIMBS, _contribute_numeric_squares)
NUMERIC_UNIT = 10 ** (9 * FRACTION_LIMBS)


def _numeric_specials(state: I64, values: list[Decimal]) -> list[Decimal]:
    specials = state[:, 1:SPECIALS]
    if specials.any():
        for row in np.flatnonzero(specials.any(axis=1)).tolist():
            special = special_sum(*specials[row].tolist())
            values[row] = Decimal(str(special))
    return values


def finish_sum_numeric(site: CallSite, state: I64, errors: RowErrors) -> Column:
    narrow = _narrow_sum(state)
    if narrow is not None:
        return narrow
    totals = digits_to_ints(state[:, SPECIALS:])
    values = [decimal_of_fraction(Fraction(t, NUMERIC_UNIT)) for t in totals]
    return decimal_column(state, _numeric_specials(state, values))


def _narrow_sum(state: I64) -> Column | None:
    """The vectorised case: no special values, and every sum fits an int64 at one scale."""
    low = SPECIALS + FRACTION_LIMBS - 2
    if state[:, 1:low].any() or state[:, low + 4 :].any():
        return None
    part = state[:, low : low + 4].copy()
    for i in range(3):
        part[:, i + 1] += part[:, i] // BILLION
        part[:, i] %= BILLION
    fraction = part[:, 1] * BILLION + part[:, 0]  # in units of 10^-18
    if len(part) and np.abs(part[:, 3]).max() >= BILLION:
        return None
    whole = part[:, 3] * BILLION + part[:, 2]
    scale = 18
    while scale and not (fraction % 10 ** (19 - scale)).any():
        scale -= 1
    if len(whole) and int(np.abs(whole).max()) + 1 >= 10 ** (18 - scale):
        return None
    return NumericColumn(whole * 10**scale + fraction // 10 ** (18 - scale), scale, some_rows(state))


def finish_avg_numeric(site: CallSite, state: I64, errors: RowErrors) -> Column:
    totals = digits_to_ints(state[:, SPECIALS:])
    values = averages(state, [Fraction(t, NUMERIC_UNIT) for t in totals])
    return decimal_column(state, _numeric_specials(state, values))
