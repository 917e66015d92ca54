"""Lanes of float sums: a fixed-point number of 288 bits, 2^-128 .. 2^160, in limbs of 32 bits.

Bits below 2^-128 are dropped; magnitudes of 2^160 and more count as infinite. Materialize keeps 24 fractional bits of
128. The sum of any number of doubles is exact within the window, and the result is rounded once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mzlite.expr.call import Args, CallSite, RowErrors
from mzlite.expr.kernels.lanes import (
    MASK32,
    SPECIALS,
    LaneSum,
    fixed_values,
    limbs_to_ints,
    some_rows,
    special_sum,
    valid_rows,
    without_nulls,
)
from mzlite.repr.column import I64, BoolArray, Column
from mzlite.repr.fixed import FixedColumn
from mzlite.repr.types import Layout

FLOAT_LIMBS = 9
FLOAT_BIAS = 128


def _float_limbs(values: Any, out: I64, at: int) -> BoolArray:
    """Write the limbs of finite floats into out[:, at:at+9]; returns which magnitudes were too large (limbs 0)."""
    mantissa, exponent = np.frexp(values)
    whole = (np.abs(mantissa) * float(1 << 53)).astype(np.uint64)
    place = exponent.astype(np.int64) - 53 + FLOAT_BIAS
    below = np.minimum(np.maximum(-place, 0), 63).astype(np.uint64)
    whole >>= below
    place = np.maximum(place, 0)
    huge: BoolArray = place > 32 * FLOAT_LIMBS - 53
    limb, shift = place >> 5, (place & 31).astype(np.uint64)
    if huge.any():
        whole[huge] = 0
        limb[huge] = 0
    low = (whole & np.uint64(MASK32)) << shift
    carry = (low >> np.uint64(32)) + ((whole >> np.uint64(32)) << shift)
    sign = np.where(values < 0, -1, 1).astype(np.int64)
    rows = np.arange(len(values))
    last = at + FLOAT_LIMBS - 1
    limb += at
    out[rows, np.minimum(limb + 2, last)] = (carry >> np.uint64(32)).astype(np.int64) * sign
    out[rows, np.minimum(limb + 1, last)] = (carry & np.uint64(MASK32)).astype(np.int64) * sign
    out[rows, limb] = (low & np.uint64(MASK32)).astype(np.int64) * sign
    return huge


def _contribute_float(site: CallSite, args: Args, n: int) -> I64:
    return _contribute_floats(args, n, squares=False)


def _contribute_float_squares(site: CallSite, args: Args, n: int) -> I64:
    return _contribute_floats(args, n, squares=True)


def _contribute_floats(args: Args, n: int, *, squares: bool) -> I64:
    values = np.broadcast_to(fixed_values(args[0]).astype(np.float64), (n,))
    valid = valid_rows(args[0], n)
    out = np.zeros((n, SPECIALS + FLOAT_LIMBS * (2 if squares else 1)), np.int64)
    out[:, 0] = 1
    nan = np.isnan(values)
    infinite = np.isinf(values)
    finite = np.where(nan | infinite, 0.0, values)
    if valid is not None:
        finite = np.where(valid, finite, 0.0)
    huge = infinite | _float_limbs(finite, out, SPECIALS)
    if squares:
        with np.errstate(over="ignore"):
            square = finite * finite
        too_big = np.isinf(square)
        square[too_big] = 0.0
        huge |= too_big | _float_limbs(square, out, SPECIALS + FLOAT_LIMBS)
    out[:, 1] = nan
    out[:, 2] = huge & (values > 0)
    out[:, 3] = huge & (values < 0)
    return without_nulls(out, valid)


FLOAT = LaneSum(SPECIALS + FLOAT_LIMBS, _contribute_float)
FLOAT_SQUARES = LaneSum(SPECIALS + 2 * FLOAT_LIMBS, _contribute_float_squares)
FLOAT_UNIT = 1 << FLOAT_BIAS


def _finish_float(site: CallSite, state: I64, *, average: bool) -> Column:
    totals = limbs_to_ints(state[:, SPECIALS : SPECIALS + FLOAT_LIMBS])
    out = np.zeros(len(state), np.float64)
    for row, (total, (count, nan, positive, negative)) in enumerate(zip(totals, state[:, :SPECIALS].tolist())):
        special = special_sum(nan, positive, negative)
        if special is not None:
            out[row] = special
        elif count:
            out[row] = total / FLOAT_UNIT / count if average else total / FLOAT_UNIT
    if site.typ.layout is Layout.F32:
        with np.errstate(over="ignore"):
            return FixedColumn(out.astype(np.float32), some_rows(state))
    return FixedColumn(out, some_rows(state))


def finish_sum_float(site: CallSite, state: I64, errors: RowErrors) -> Column:
    return _finish_float(site, state, average=False)


def finish_avg_float(site: CallSite, state: I64, errors: RowErrors) -> Column:
    return _finish_float(site, state, average=True)
