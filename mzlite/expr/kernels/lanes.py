"""Additive states of accumulable aggregates: every row's contribution as int64 lanes whose plain sum is the state.

    int64      = sum limb[i] * 2^(32 i)                     limbs of 32 bits, the sign on every limb
    float      = sum limb[i] * 2^(32 i - 128)               9 limbs, counts of NaN, +inf, -inf apart
    numeric    = sum limb[i] * 10^(9 i - 45)                10 limbs, count of NaN apart

A limb holds at most 32 bits (or 9 digits), so a lane has room for 2^31 rows before it could overflow, and sums of
lanes in any order are exact: what a retraction takes away is exactly what the insertion added.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from mzlite.expr.call import Args, CallSite, RowErrors
from mzlite.expr.kernels.decimals import decimal_of_fraction, field_overflow, fits
from mzlite.repr.column import I64, BoolArray, Column
from mzlite.repr.datum import encode_datum
from mzlite.repr.errors import SqlError
from mzlite.repr.fixed import FixedColumn
from mzlite.repr.interval import IntervalColumn
from mzlite.repr.numeric import NumericColumn
from mzlite.repr.types import INT8, Layout

ZERO_INT8 = encode_datum(INT8, 0)
_MASK32 = (1 << 32) - 1
_BILLION = 10**9
_FLOAT_LIMBS = 9
_FLOAT_BIAS = 128
_FRACTION_LIMBS = 5
_NUMERIC_LIMBS = 10
_SQUARE_LIMBS = 20
_SPECIALS = 4  # count, nan, +inf, -inf


@dataclasses.dataclass(frozen=True, slots=True)
class LaneSum:
    """A way to turn rows into lanes: their number, and the function."""

    width: int
    contribute: Callable[[CallSite, Args, int], I64]


# --- limbs ------------------------------------------------------------------------------------------------------------


def limbs_to_ints(limbs: I64) -> list[int]:
    """int64[g, L] limbs of 32 bits (any magnitude, any sign) as g Python integers."""
    g, count = limbs.shape
    wide = np.zeros((g, count + 2), np.int64)
    wide[:, :count] = limbs
    for i in range(count + 1):
        wide[:, i + 1] += wide[:, i] >> 32
        wide[:, i] &= _MASK32
    flat = wide.astype(np.uint32).astype("<u4").tobytes()
    size = 4 * (count + 2)
    return [int.from_bytes(flat[i * size : (i + 1) * size], "little", signed=True) for i in range(g)]


def _digits_to_ints(limbs: I64) -> list[int]:
    """int64[g, L] base 10^9 limbs as g Python integers (in units of the lowest limb)."""
    out = []
    for row in limbs.tolist():
        total = 0
        for limb in reversed(row):
            total = total * _BILLION + limb
        out.append(total)
    return out


def _valid(column: Column, n: int) -> BoolArray | None:
    if column.valid is None:
        return None
    return np.broadcast_to(column.valid, (n,))


def _finished(out: I64, valid: BoolArray | None) -> I64:
    """Zero the contributions of NULL rows."""
    if valid is not None:
        out[~valid] = 0
    return out


def _values(column: Column) -> Any:
    assert isinstance(column, FixedColumn), column
    return column.values


# --- count, booleans --------------------------------------------------------------------------------------------------


def contribute_count(site: CallSite, args: Args, n: int) -> I64:
    out = np.ones((n, 1), np.int64)
    return _finished(out, _valid(args[0], n)) if args else out


def finish_count(site: CallSite, state: I64, errors: RowErrors) -> Column:
    return FixedColumn(np.ascontiguousarray(state[:, 0]))


def _contribute_bool(site: CallSite, args: Args, n: int) -> I64:
    out = np.empty((n, 2), np.int64)
    out[:, 0] = 1
    out[:, 1] = _values(args[0])
    return _finished(out, _valid(args[0], n))


BOOL_LANES = LaneSum(2, _contribute_bool)


def finish_bool_or(site: CallSite, state: I64, errors: RowErrors) -> Column:
    return FixedColumn(state[:, 1] > 0, _some(state))


def finish_bool_and(site: CallSite, state: I64, errors: RowErrors) -> Column:
    return FixedColumn(state[:, 1] >= state[:, 0], _some(state))


def _some(state: I64) -> BoolArray | None:
    """Validity by the count in lane 0: a group without valid rows is NULL."""
    some: BoolArray = state[:, 0] != 0
    return None if some.all() else some


# --- integers ---------------------------------------------------------------------------------------------------------


def _contribute_small(site: CallSite, args: Args, n: int) -> I64:
    out = np.empty((n, 2), np.int64)
    out[:, 0] = 1
    out[:, 1] = _values(args[0])
    return _finished(out, _valid(args[0], n))


def _contribute_wide(site: CallSite, args: Args, n: int) -> I64:
    values = _values(args[0])
    out = np.empty((n, 3), np.int64)
    out[:, 0] = 1
    out[:, 1] = (values & values.dtype.type(_MASK32)).astype(np.int64)
    out[:, 2] = (values >> values.dtype.type(32)).astype(np.int64)
    return _finished(out, _valid(args[0], n))


SMALL_INT = LaneSum(2, _contribute_small)
WIDE_INT = LaneSum(3, _contribute_wide)


def finish_sum_small(site: CallSite, state: I64, errors: RowErrors) -> Column:
    total = np.ascontiguousarray(state[:, 1])
    if site.typ.layout is Layout.U64:
        return FixedColumn(total.astype(np.uint64), _some(state), Layout.U64)
    return FixedColumn(total, _some(state))


def finish_sum_wide(site: CallSite, state: I64, errors: RowErrors) -> Column:
    hi, lo = state[:, 2], state[:, 1]
    hi = hi + (lo >> 32)
    lo = lo & _MASK32
    if len(hi) == 0 or (int(hi.min()) >= -(1 << 26) and int(hi.max()) < (1 << 26)):
        return NumericColumn((hi << 32) | lo, 0, _some(state))
    return _decimals(state, [Decimal(i) for i in limbs_to_ints(state[:, 1:])], errors)


def _decimals(state: I64, values: list[Decimal], errors: RowErrors) -> Column:
    """A numeric column of one value a group, NULL where the count is 0; more than 39 digits is an error."""
    out: list[Decimal | None] = []
    for row, (value, count) in enumerate(zip(values, state[:, 0].tolist())):
        if count == 0:
            out.append(None)
        elif not fits(value):
            errors.add(row, field_overflow())
            out.append(None)
        else:
            out.append(value)
    return NumericColumn.from_decimals(out)


def _averages(state: I64, sums: list[Fraction]) -> list[Decimal]:
    return [
        decimal_of_fraction(total / count) if count else Decimal(0) for total, count in zip(sums, state[:, 0].tolist())
    ]


def finish_avg_small(site: CallSite, state: I64, errors: RowErrors) -> Column:
    return _decimals(state, _averages(state, [Fraction(v) for v in state[:, 1].tolist()]), errors)


def finish_avg_wide(site: CallSite, state: I64, errors: RowErrors) -> Column:
    return _decimals(state, _averages(state, [Fraction(v) for v in limbs_to_ints(state[:, 1:])]), errors)


# --- floats -----------------------------------------------------------------------------------------------------------


def _float_limbs(values: Any, out: I64, at: int) -> BoolArray:
    """Write the limbs of finite floats into out[:, at:at+9]; returns which magnitudes were too large (limbs 0)."""
    mantissa, exponent = np.frexp(values)
    whole = (np.abs(mantissa) * float(1 << 53)).astype(np.uint64)
    place = exponent.astype(np.int64) - 53 + _FLOAT_BIAS
    below = np.minimum(np.maximum(-place, 0), 63).astype(np.uint64)
    whole >>= below
    place = np.maximum(place, 0)
    huge: BoolArray = place > 32 * _FLOAT_LIMBS - 53
    limb, shift = place >> 5, (place & 31).astype(np.uint64)
    if huge.any():
        whole[huge] = 0
        limb[huge] = 0
    low = (whole & np.uint64(_MASK32)) << shift
    carry = (low >> np.uint64(32)) + ((whole >> np.uint64(32)) << shift)
    sign = np.where(values < 0, -1, 1).astype(np.int64)
    rows = np.arange(len(values))
    last = at + _FLOAT_LIMBS - 1
    limb += at
    out[rows, np.minimum(limb + 2, last)] = (carry >> np.uint64(32)).astype(np.int64) * sign
    out[rows, np.minimum(limb + 1, last)] = (carry & np.uint64(_MASK32)).astype(np.int64) * sign
    out[rows, limb] = (low & np.uint64(_MASK32)).astype(np.int64) * sign
    return huge


def _contribute_float(site: CallSite, args: Args, n: int) -> I64:
    return _contribute_floats(args, n, squares=False)


def _contribute_float_squares(site: CallSite, args: Args, n: int) -> I64:
    return _contribute_floats(args, n, squares=True)


def _contribute_floats(args: Args, n: int, *, squares: bool) -> I64:
    values = np.broadcast_to(_values(args[0]).astype(np.float64), (n,))
    valid = _valid(args[0], n)
    out = np.zeros((n, _SPECIALS + _FLOAT_LIMBS * (2 if squares else 1)), np.int64)
    out[:, 0] = 1
    nan = np.isnan(values)
    infinite = np.isinf(values)
    finite = np.where(nan | infinite, 0.0, values)
    if valid is not None:
        finite = np.where(valid, finite, 0.0)
    huge = infinite | _float_limbs(finite, out, _SPECIALS)
    if squares:
        with np.errstate(over="ignore"):
            square = finite * finite
        too_big = np.isinf(square)
        square[too_big] = 0.0
        huge |= too_big | _float_limbs(square, out, _SPECIALS + _FLOAT_LIMBS)
    out[:, 1] = nan
    out[:, 2] = huge & (values > 0)
    out[:, 3] = huge & (values < 0)
    return _finished(out, valid)


FLOAT = LaneSum(_SPECIALS + _FLOAT_LIMBS, _contribute_float)
FLOAT_SQUARES = LaneSum(_SPECIALS + 2 * _FLOAT_LIMBS, _contribute_float_squares)
_UNIT = 1 << _FLOAT_BIAS


def _special(nan: int, positive: int, negative: int) -> float | None:
    """The sum when not every value was finite; None when every one was."""
    if nan or (positive and negative):
        return float("nan")
    if positive:
        return float("inf")
    if negative:
        return float("-inf")
    return None


def _finish_float(site: CallSite, state: I64, *, average: bool) -> Column:
    totals = limbs_to_ints(state[:, _SPECIALS : _SPECIALS + _FLOAT_LIMBS])
    out = np.zeros(len(state), np.float64)
    for row, (total, (count, nan, positive, negative)) in enumerate(zip(totals, state[:, :_SPECIALS].tolist())):
        special = _special(nan, positive, negative)
        if special is not None:
            out[row] = special
        elif count:
            out[row] = total / _UNIT / count if average else total / _UNIT
    if site.typ.layout is Layout.F32:
        with np.errstate(over="ignore"):
            return FixedColumn(out.astype(np.float32), _some(state))
    return FixedColumn(out, _some(state))


def finish_sum_float(site: CallSite, state: I64, errors: RowErrors) -> Column:
    return _finish_float(site, state, average=False)


def finish_avg_float(site: CallSite, state: I64, errors: RowErrors) -> Column:
    return _finish_float(site, state, average=True)


# --- numeric ----------------------------------------------------------------------------------------------------------


def _decimal_limbs(value: Decimal, count: int, fraction_limbs: int) -> list[int]:
    """value in base 10^9 limbs, the sign on each."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    whole = int("".join(map(str, digits)) or "0") * 10 ** (exponent + 9 * fraction_limbs)
    limbs = []
    for _ in range(count):
        whole, limb = divmod(whole, _BILLION)
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
    limbs[:, 1], limbs[:, 0] = np.divmod(part, _BILLION)
    rest, limbs[:, 2] = np.divmod(whole, _BILLION)
    limbs[:, 4], limbs[:, 3] = np.divmod(rest, _BILLION)
    return limbs, sign


def _contribute_numerics(args: Args, n: int, *, squares: bool) -> I64:
    column = args[0]
    assert isinstance(column, NumericColumn), column
    valid = _valid(column, n)
    out = np.zeros((n, _SPECIALS + _NUMERIC_LIMBS + (_SQUARE_LIMBS if squares else 0)), np.int64)
    out[:, 0] = 1
    base = _SPECIALS + _NUMERIC_LIMBS
    if column.wide is None and column.scale <= 18:
        limbs, sign = _narrow_limbs(column)
        low = _SPECIALS + _FRACTION_LIMBS - 2
        out[:, low : low + 5] = limbs * sign[:, None]
        if squares:
            product = np.zeros((len(limbs), 11), np.int64)
            for i in range(5):
                for j in range(5):
                    high, rest = np.divmod(limbs[:, i] * limbs[:, j], _BILLION)
                    product[:, i + j] += rest
                    product[:, i + j + 1] += high
            low = base + _SQUARE_LIMBS // 2 - 4
            out[:, low : low + 11] = product
        return _finished(out, valid)
    decimals = column.to_decimals()
    for row in range(n):
        value = decimals[row if len(decimals) == n else 0]
        if value is None:
            continue
        if not value.is_finite():
            out[row, 1 if value.is_nan() else 2 if value > 0 else 3] = 1
            continue
        out[row, _SPECIALS:base] = _decimal_limbs(value, _NUMERIC_LIMBS, _FRACTION_LIMBS)
        if squares:
            square = Fraction(value) * Fraction(value)
            scaled = square.numerator * 10**90 // square.denominator
            for i in range(_SQUARE_LIMBS):
                scaled, out[row, base + i] = divmod(scaled, _BILLION)
    return _finished(out, valid)


def _contribute_numeric(site: CallSite, args: Args, n: int) -> I64:
    return _contribute_numerics(args, n, squares=False)


def _contribute_numeric_squares(site: CallSite, args: Args, n: int) -> I64:
    return _contribute_numerics(args, n, squares=True)


NUMERIC_SUM = LaneSum(_SPECIALS + _NUMERIC_LIMBS, _contribute_numeric)
NUMERIC_SQUARES = LaneSum(_SPECIALS + _NUMERIC_LIMBS + _SQUARE_LIMBS, _contribute_numeric_squares)
_NUMERIC_UNIT = 10 ** (9 * _FRACTION_LIMBS)


def _numeric_specials(state: I64, values: list[Decimal]) -> list[Decimal]:
    specials = state[:, 1:_SPECIALS]
    if specials.any():
        for row in np.flatnonzero(specials.any(axis=1)).tolist():
            special = _special(*specials[row].tolist())
            values[row] = Decimal(str(special))
    return values


def finish_sum_numeric(site: CallSite, state: I64, errors: RowErrors) -> Column:
    narrow = _narrow_sum(state)
    if narrow is not None:
        return narrow
    totals = _digits_to_ints(state[:, _SPECIALS:])
    values = [decimal_of_fraction(Fraction(t, _NUMERIC_UNIT)) for t in totals]
    return _decimals(state, _numeric_specials(state, values), errors)


def _narrow_sum(state: I64) -> Column | None:
    """The vectorised case: no special values, and every sum fits an int64 at one scale."""
    low = _SPECIALS + _FRACTION_LIMBS - 2
    if state[:, 1:low].any() or state[:, low + 4 :].any():
        return None
    part = state[:, low : low + 4].copy()
    for i in range(3):
        part[:, i + 1] += part[:, i] // _BILLION
        part[:, i] %= _BILLION
    fraction = part[:, 1] * _BILLION + part[:, 0]  # in units of 10^-18
    if len(part) and np.abs(part[:, 3]).max() >= _BILLION:
        return None
    whole = part[:, 3] * _BILLION + part[:, 2]
    scale = 18
    while scale and not (fraction % 10 ** (19 - scale)).any():
        scale -= 1
    if len(whole) and int(np.abs(whole).max()) + 1 >= 10 ** (18 - scale):
        return None
    return NumericColumn(whole * 10**scale + fraction // 10 ** (18 - scale), scale, _some(state))


def finish_avg_numeric(site: CallSite, state: I64, errors: RowErrors) -> Column:
    totals = _digits_to_ints(state[:, _SPECIALS:])
    values = _averages(state, [Fraction(t, _NUMERIC_UNIT) for t in totals])
    return _decimals(state, _numeric_specials(state, values), errors)


# --- intervals --------------------------------------------------------------------------------------------------------


def _contribute_interval(site: CallSite, args: Args, n: int) -> I64:
    column = args[0]
    assert isinstance(column, IntervalColumn), column
    out = np.empty((n, 5), np.int64)
    out[:, 0] = 1
    out[:, 1] = column.months
    out[:, 2] = column.days
    out[:, 3] = column.us & _MASK32
    out[:, 4] = column.us >> 32
    return _finished(out, _valid(column, n))


INTERVAL_SUM = LaneSum(5, _contribute_interval)
_MONTH_US = 30 * 86_400_000_000
_DAY_US = 86_400_000_000


def _intervals(state: I64, parts: list[tuple[int, int, int]], errors: RowErrors) -> Column:
    out = np.zeros((len(parts), 3), np.int64)
    some = state[:, 0] != 0
    for row, (months, days, us) in enumerate(parts):
        if not some[row]:
            continue
        if max(abs(months), abs(days)) >= 1 << 31 or abs(us) >= 1 << 63:
            errors.add(row, SqlError("22008", "interval out of range"))
            some[row] = False
            continue
        out[row] = months, days, us
    return IntervalColumn.from_parts(out[:, 0], out[:, 1], out[:, 2], None if some.all() else some)


def finish_sum_interval(site: CallSite, state: I64, errors: RowErrors) -> Column:
    us = limbs_to_ints(state[:, 3:])
    return _intervals(state, list(zip(state[:, 1].tolist(), state[:, 2].tolist(), us)), errors)


def finish_avg_interval(site: CallSite, state: I64, errors: RowErrors) -> Column:
    parts = []
    for (count, months, days), us in zip(state[:, :3].tolist(), limbs_to_ints(state[:, 3:])):
        if count == 0:
            parts.append((0, 0, 0))
            continue
        # The remainder of months spills into days, that of days into microseconds, truncating towards zero.
        whole_months = int(Fraction(months, count))
        day_share = Fraction(months - whole_months * count, count) * 30 + Fraction(days, count)
        whole_days = int(day_share)
        rest = (day_share - whole_days) * _DAY_US + Fraction(us, count)
        parts.append((whole_months, whole_days, round(rest)))
    return _intervals(state, parts, errors)


# --- variance and standard deviation ----------------------------------------------------------------------------------


def _contribute_int_squares(site: CallSite, args: Args, n: int) -> I64:
    values = _values(args[0])
    if values.dtype.itemsize < 8:
        values = values.astype(np.int64)
    out = np.zeros((n, 7), np.int64)
    out[:, :3] = _contribute_wide(site, (FixedColumn(values),), n)
    magnitude = np.where(values < 0, -values.astype(np.int64), values).astype(np.uint64)
    high, low = magnitude >> np.uint64(32), magnitude & np.uint64(_MASK32)
    for place, product, times in ((0, low * low, 1), (1, high * low, 2), (2, high * high, 1)):
        out[:, 3 + place] += (product & np.uint64(_MASK32)).astype(np.int64) * times
        out[:, 4 + place] += (product >> np.uint64(32)).astype(np.int64) * times
    return _finished(out, _valid(args[0], n))


INT_SQUARES = LaneSum(7, _contribute_int_squares)


@dataclasses.dataclass(frozen=True, slots=True)
class Spread:
    """One of variance, stddev over a sample or the population: (sum x^2 - (sum x)^2 / n) / (n or n - 1), exactly."""

    sample: bool
    root: bool

    def _variance(self, count: int, total: Fraction, squares: Fraction) -> Fraction | None:
        divisor = count - 1 if self.sample else count
        if divisor <= 0:
            return None
        return max((squares - total * total / count) / divisor, Fraction(0))

    def finish_int(self, site: CallSite, state: I64, errors: RowErrors) -> Column:
        totals = [Fraction(t) for t in limbs_to_ints(state[:, 1:3])]
        squares = [Fraction(s) for s in limbs_to_ints(state[:, 3:])]
        return self._finish_decimals(state, totals, squares)

    def finish_numeric(self, site: CallSite, state: I64, errors: RowErrors) -> Column:
        middle = _SPECIALS + _NUMERIC_LIMBS
        totals = [Fraction(t, _NUMERIC_UNIT) for t in _digits_to_ints(state[:, _SPECIALS:middle])]
        squares = [Fraction(s, 10**90) for s in _digits_to_ints(state[:, middle:])]
        return self._finish_decimals(state, totals, squares, np.any(state[:, 1:_SPECIALS] != 0, axis=1))

    def _finish_decimals(
        self, state: I64, totals: list[Fraction], squares: list[Fraction], special: Any = None
    ) -> Column:
        out: list[Decimal | None] = []
        for row, (count, total, square) in enumerate(zip(state[:, 0].tolist(), totals, squares)):
            variance = self._variance(count, total, square)
            if variance is None:
                out.append(None)
            elif special is not None and special[row]:
                out.append(Decimal("NaN"))
            else:
                out.append(decimal_of_fraction(variance, root=self.root))
        return NumericColumn.from_decimals(out)

    def finish_float(self, site: CallSite, state: I64, errors: RowErrors) -> Column:
        middle = _SPECIALS + _FLOAT_LIMBS
        totals = limbs_to_ints(state[:, _SPECIALS:middle])
        squares = limbs_to_ints(state[:, middle:])
        out = np.zeros(len(state), np.float64)
        valid = np.ones(len(state), np.bool_)
        for row, (count, nan, positive, negative) in enumerate(state[:, :_SPECIALS].tolist()):
            variance = self._variance(count, Fraction(totals[row], _UNIT), Fraction(squares[row], _UNIT))
            if variance is None:
                valid[row] = False
            elif nan or positive or negative:
                out[row] = float("nan")
            else:
                out[row] = float(variance) ** 0.5 if self.root else float(variance)
        return FixedColumn(out, None if valid.all() else valid)
