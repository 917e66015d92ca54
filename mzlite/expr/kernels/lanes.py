"""Additive states of accumulable aggregates: every row's contribution as int64 lanes whose plain sum is the state.

    int64      = sum limb[i] * 2^(32 i)                     limbs of 32 bits, the sign on every limb
    float      = sum limb[i] * 2^(32 i - 128)               9 limbs, counts of NaN, +inf, -inf apart (`lanes_float`)
    numeric    = sum limb[i] * 10^(9 i - 45)                10 limbs, count of NaN apart (`lanes_numeric`)
    squares                                                 for variance and standard deviation (`lanes_spread`)

A limb holds at most 32 bits (or 9 digits), so a lane has room for 2^31 rows before it could overflow, and sums of
lanes in any order are exact: what a retraction takes away is exactly what the insertion added.

This module: what all share, then counts, booleans, integers and intervals.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from mzlite.expr.call import Args, CallSite, RowErrors
from mzlite.expr.kernels.decimals import decimal_of_fraction, fits
from mzlite.repr.column import I64, BoolArray, Column
from mzlite.repr.datum import encode_datum
from mzlite.repr.errors import SqlError
from mzlite.repr.fixed import FixedColumn
from mzlite.repr.interval import IntervalColumn
from mzlite.repr.numeric import NumericColumn
from mzlite.repr.types import INT8, Layout

ZERO_INT8 = encode_datum(INT8, 0)
MASK32 = (1 << 32) - 1
BILLION = 10**9
SPECIALS = 4  # the first lanes of floats and numerics: count, nan, +inf, -inf


@dataclasses.dataclass(frozen=True, slots=True)
class LaneSum:
    """A way to turn rows into lanes: their number, and the function."""

    width: int
    contribute: Callable[[CallSite, Args, int], I64]


def limbs_to_ints(limbs: I64) -> list[int]:
    """int64[g, L] limbs of 32 bits (any magnitude, any sign) as g Python integers."""
    g, count = limbs.shape
    wide = np.zeros((g, count + 2), np.int64)
    wide[:, :count] = limbs
    for i in range(count + 1):
        wide[:, i + 1] += wide[:, i] >> 32
        wide[:, i] &= MASK32
    flat = wide.astype(np.uint32).astype("<u4").tobytes()
    size = 4 * (count + 2)
    return [int.from_bytes(flat[i * size : (i + 1) * size], "little", signed=True) for i in range(g)]


def digits_to_ints(limbs: I64) -> list[int]:
    """int64[g, L] base 10^9 limbs as g Python integers (in units of the lowest limb)."""
    out = []
    for row in limbs.tolist():
        total = 0
        for limb in reversed(row):
            total = total * BILLION + limb
        out.append(total)
    return out


def valid_rows(column: Column, n: int) -> BoolArray | None:
    if column.valid is None:
        return None
    return np.broadcast_to(column.valid, (n,))


def without_nulls(out: I64, valid: BoolArray | None) -> I64:
    """Zero the contributions of NULL rows."""
    if valid is not None:
        out[~valid] = 0
    return out


def fixed_values(column: Column) -> Any:
    assert isinstance(column, FixedColumn), column
    return column.values


def special_sum(nan: int, positive: int, negative: int) -> float | None:
    """The sum when not every value was finite; None when every one was."""
    if nan or (positive and negative):
        return float("nan")
    if positive:
        return float("inf")
    if negative:
        return float("-inf")
    return None


# --- count, booleans --------------------------------------------------------------------------------------------------


def contribute_count(site: CallSite, args: Args, n: int) -> I64:
    out = np.ones((n, 1), np.int64)
    return without_nulls(out, valid_rows(args[0], n)) if args else out


def finish_count(site: CallSite, state: I64, errors: RowErrors) -> Column:
    return FixedColumn(np.ascontiguousarray(state[:, 0]))


def _contribute_bool(site: CallSite, args: Args, n: int) -> I64:
    out = np.empty((n, 2), np.int64)
    out[:, 0] = 1
    out[:, 1] = fixed_values(args[0])
    return without_nulls(out, valid_rows(args[0], n))


BOOL_LANES = LaneSum(2, _contribute_bool)


def finish_bool_or(site: CallSite, state: I64, errors: RowErrors) -> Column:
    return FixedColumn(state[:, 1] > 0, some_rows(state))


def finish_bool_and(site: CallSite, state: I64, errors: RowErrors) -> Column:
    return FixedColumn(state[:, 1] >= state[:, 0], some_rows(state))


def some_rows(state: I64) -> BoolArray | None:
    """Validity by the count in lane 0: a group without valid rows is NULL."""
    some: BoolArray = state[:, 0] != 0
    return None if some.all() else some


# --- integers ---------------------------------------------------------------------------------------------------------


def _contribute_small(site: CallSite, args: Args, n: int) -> I64:
    out = np.empty((n, 2), np.int64)
    out[:, 0] = 1
    out[:, 1] = fixed_values(args[0])
    return without_nulls(out, valid_rows(args[0], n))


def contribute_wide(site: CallSite, args: Args, n: int) -> I64:
    values = fixed_values(args[0])
    out = np.empty((n, 3), np.int64)
    out[:, 0] = 1
    out[:, 1] = (values & values.dtype.type(MASK32)).astype(np.int64)
    out[:, 2] = (values >> values.dtype.type(32)).astype(np.int64)
    return without_nulls(out, valid_rows(args[0], n))


SMALL_INT = LaneSum(2, _contribute_small)
WIDE_INT = LaneSum(3, contribute_wide)


def finish_sum_small(site: CallSite, state: I64, errors: RowErrors) -> Column:
    total = np.ascontiguousarray(state[:, 1])
    if site.typ.layout is Layout.U64:
        return FixedColumn(total.astype(np.uint64), some_rows(state), Layout.U64)
    return FixedColumn(total, some_rows(state))


def finish_sum_wide(site: CallSite, state: I64, errors: RowErrors) -> Column:
    hi, lo = state[:, 2], state[:, 1]
    hi = hi + (lo >> 32)
    lo = lo & MASK32
    if len(hi) == 0 or (int(hi.min()) >= -(1 << 26) and int(hi.max()) < (1 << 26)):
        return NumericColumn((hi << 32) | lo, 0, some_rows(state))
    return decimal_column(state, [Decimal(i) for i in limbs_to_ints(state[:, 1:])])


def decimal_column(state: I64, values: list[Decimal]) -> Column:
    """A numeric column of one value a group, NULL where the count is 0; more than 39 digits count as infinite."""
    out: list[Decimal | None] = []
    for value, count in zip(values, state[:, 0].tolist()):
        if count == 0:
            out.append(None)
        elif not fits(value):
            out.append(Decimal("Infinity").copy_sign(value))
        else:
            out.append(value)
    return NumericColumn.from_decimals(out)


def averages(state: I64, sums: list[Fraction]) -> list[Decimal]:
    return [
        decimal_of_fraction(total / count) if count else Decimal(0) for total, count in zip(sums, state[:, 0].tolist())
    ]


def finish_avg_small(site: CallSite, state: I64, errors: RowErrors) -> Column:
    return decimal_column(state, averages(state, [Fraction(v) for v in state[:, 1].tolist()]))


def finish_avg_wide(site: CallSite, state: I64, errors: RowErrors) -> Column:
    return decimal_column(state, averages(state, [Fraction(v) for v in limbs_to_ints(state[:, 1:])]))


# --- intervals --------------------------------------------------------------------------------------------------------


def _contribute_interval(site: CallSite, args: Args, n: int) -> I64:
    column = args[0]
    assert isinstance(column, IntervalColumn), column
    out = np.empty((n, 5), np.int64)
    out[:, 0] = 1
    out[:, 1] = column.months
    out[:, 2] = column.days
    out[:, 3] = column.us & MASK32
    out[:, 4] = column.us >> 32
    return without_nulls(out, valid_rows(column, n))


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
