"""Variance and standard deviation from exact sums of values and of their squares."""

from __future__ import annotations

import dataclasses
import decimal
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from mzlite.expr.call import Args, CallSite, RowErrors
from mzlite.expr.kernels.decimals import CONTEXT, WIDE, decimal_of_fraction, trim
from mzlite.expr.kernels.lanes import (
    MASK32,
    SPECIALS,
    LaneSum,
    contribute_wide,
    digits_to_ints,
    fixed_values,
    limbs_to_ints,
    valid_rows,
    without_nulls,
)
from mzlite.expr.kernels.lanes_float import FLOAT_LIMBS, FLOAT_UNIT
from mzlite.expr.kernels.lanes_numeric import NUMERIC_LIMBS, NUMERIC_UNIT
from mzlite.repr.column import I64, Column
from mzlite.repr.fixed import FixedColumn
from mzlite.repr.numeric import NumericColumn


def _contribute_int_squares(site: CallSite, args: Args, n: int) -> I64:
    values = fixed_values(args[0])
    if values.dtype.itemsize < 8:
        values = values.astype(np.int64)
    out = np.zeros((n, 7), np.int64)
    out[:, :3] = contribute_wide(site, (FixedColumn(values),), n)
    magnitude = np.where(values < 0, -values.astype(np.int64), values).astype(np.uint64)
    high, low = magnitude >> np.uint64(32), magnitude & np.uint64(MASK32)
    for place, product, times in ((0, low * low, 1), (1, high * low, 2), (2, high * high, 1)):
        out[:, 3 + place] += (product & np.uint64(MASK32)).astype(np.int64) * times
        out[:, 4 + place] += (product >> np.uint64(32)).astype(np.int64) * times
    return without_nulls(out, valid_rows(args[0], n))


INT_SQUARES = LaneSum(7, _contribute_int_squares)


T = TypeVar("T", float, Decimal)


def _numeric(value: Fraction) -> Decimal:
    return CONTEXT.divide(Decimal(value.numerator), Decimal(value.denominator))


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

    def _stepwise(self, count: int, total: T, square: T, divide: Callable[[T, T], T], least: float) -> T | None:
        """Materialize's own sequence of rounded operations, so that its last digits are ours too; None where the
        difference cancels below `least` of its terms and the exact result is the better one."""
        number = type(total)
        difference = square - divide(total * total, number(count))
        if not difference > number(least) * square:
            return None
        return divide(difference, number(count - 1 if self.sample else count))

    def _decimal(self, count: int, total: Fraction, square: Fraction, exact: Fraction) -> Decimal:
        with decimal.localcontext(CONTEXT):
            value = self._stepwise(count, _numeric(total), _numeric(square), CONTEXT.divide, 1e-10)
        if value is None:
            return decimal_of_fraction(exact, root=self.root)
        return trim(WIDE.sqrt(value) if self.root else value)

    def finish_int(self, site: CallSite, state: I64, errors: RowErrors) -> Column:
        totals = [Fraction(t) for t in limbs_to_ints(state[:, 1:3])]
        squares = [Fraction(s) for s in limbs_to_ints(state[:, 3:])]
        return self._finish_decimals(state, totals, squares)

    def finish_numeric(self, site: CallSite, state: I64, errors: RowErrors) -> Column:
        middle = SPECIALS + NUMERIC_LIMBS
        totals = [Fraction(t, NUMERIC_UNIT) for t in digits_to_ints(state[:, SPECIALS:middle])]
        squares = [Fraction(s, 10**90) for s in digits_to_ints(state[:, middle:])]
        return self._finish_decimals(state, totals, squares, np.any(state[:, 1:SPECIALS] != 0, axis=1))

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
                out.append(self._decimal(count, total, square, variance))
        return NumericColumn.from_decimals(out)

    def finish_float(self, site: CallSite, state: I64, errors: RowErrors) -> Column:
        middle = SPECIALS + FLOAT_LIMBS
        totals = limbs_to_ints(state[:, SPECIALS:middle])
        squares = limbs_to_ints(state[:, middle:])
        out = np.zeros(len(state), np.float64)
        valid = np.ones(len(state), np.bool_)
        for row, (count, nan, positive, negative) in enumerate(state[:, :SPECIALS].tolist()):
            variance = self._variance(count, Fraction(totals[row], FLOAT_UNIT), Fraction(squares[row], FLOAT_UNIT))
            if variance is None:
                valid[row] = False
            elif nan or positive or negative:
                out[row] = float("nan")
            else:
                total, square = totals[row] / FLOAT_UNIT, squares[row] / FLOAT_UNIT
                value = self._stepwise(count, total, square, lambda a, b: a / b, 1e-3)
                value = float(variance) if value is None else value
                out[row] = value**0.5 if self.root else value
        return FixedColumn(out, None if valid.all() else valid)
