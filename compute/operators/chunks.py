"""Summing a chunk by key before it meets the trace: most of a hydration's work shrinks to a few rows a group.

Integer and narrow numeric sums are taken as plain int64 sums first and only the sums are turned into lanes: lanes are
limbs of an integer, so limbs(a) + limbs(b) and limbs(a + b) stand for the same number.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compute.trace.sorting import is_constant, rows_equal_at
from mzlite.expr.aggregates import AggregateEntry
from mzlite.expr.call import CallSite
from mzlite.expr.kernels.lanes import SMALL_INT, WIDE_INT
from mzlite.expr.kernels.lanes_numeric import NUMERIC_SUM
from mzlite.repr.column import I64, U64, BoolArray, Column, hash_rows
from mzlite.repr.fixed import FixedColumn
from mzlite.repr.numeric import NumericColumn
from mzlite.repr.types import Layout

_LIMIT = 10**18
_FEW_GROUPS = 48


class Groups:
    """A chunk's rows by key. order: rows, group after group. starts: where each group starts in order."""

    __slots__ = ("first", "order", "starts")

    def __init__(self, order: I64, starts: I64) -> None:
        self.order = order
        self.starts = starts
        self.first = order[starts]

    def __len__(self) -> int:
        return len(self.starts)

    def sum(self, values: I64) -> I64:
        """int64[g] or int64[g, k]: sums of values (int64[n] or int64[n, k]) over each group."""
        if values.ndim == 1:
            if len(self.starts) == 1:
                total: I64 = values.sum(keepdims=True)
                return total
            sums: I64 = np.add.reduceat(values[self.order], self.starts)
            return sums
        if len(self.starts) > _FEW_GROUPS:
            wide: I64 = np.add.reduceat(values[self.order], self.starts, axis=0)
            return wide
        # Few long groups: whole-row additions beat reduceat along the first axis.
        out = np.empty((len(self.starts), values.shape[1]), np.int64)
        stops = np.append(self.starts[1:], len(self.order))
        for g, (start, stop) in enumerate(zip(self.starts.tolist(), stops.tolist())):
            out[g] = values[self.order[start:stop]].sum(axis=0)
        return out


def group_chunk(keys: Sequence[Column], time: U64, n: int) -> Groups | None:
    """The groups of n rows at one time; None when there are several times, or keys collide, or nothing would shrink."""
    if not is_constant(time) and not bool((time == time[0]).all()):
        return None
    if not keys:
        return Groups(np.arange(n), np.zeros(1, np.int64))
    hashes = hash_rows(keys, n)
    order = hashes.argsort()
    ordered = hashes[order]
    new = np.empty(n, np.bool_)
    new[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    starts = np.flatnonzero(new)
    if 2 * len(starts) > n:
        return None
    tied = np.flatnonzero(~new)
    if not rows_equal_at(keys, order[tied], order[tied - 1]).all():
        return None
    return Groups(order, starts)


def all_ones(diff: I64) -> bool:
    return bool(diff[0] == 1) if is_constant(diff) and len(diff) else bool((diff == 1).all())


def integer_sums(
    entry: AggregateEntry,
    site: CallSite,
    args: Sequence[Column],
    mask: BoolArray | None,
    diff: I64,
    groups: Groups,
) -> I64 | None:
    """Lanes of each group for a sum or average of integers; None where that cannot be done exactly in int64."""
    column = args[0] if len(args) == 1 else None
    values: I64
    if entry.contribute is NUMERIC_SUM.contribute:
        if not isinstance(column, NumericColumn) or column.wide is not None:
            return None
        values = column.values
    elif entry.contribute is SMALL_INT.contribute or entry.contribute is WIDE_INT.contribute:
        if not isinstance(column, FixedColumn) or column.layout is Layout.U64:
            return None
        values = column.values.astype(np.int64)
    else:
        return None
    n = len(diff)
    if len(values) != n:
        return None
    ones = all_ones(diff)
    weight = 1 if ones else int(np.abs(diff).max())
    largest = max(int(values.max()), -int(values.min()))
    if largest * weight * n >= _LIMIT:
        return None
    keep = column.valid if mask is None else mask if column.valid is None else mask & column.valid
    if keep is None and ones:
        sums, counts = groups.sum(values), np.diff(np.append(groups.starts, n))
    else:
        weights = diff if keep is None else np.where(keep, diff, 0)
        sums, counts = groups.sum(values * weights), groups.sum(weights)
    made: Column = NumericColumn(sums, column.scale) if isinstance(column, NumericColumn) else FixedColumn(sums)
    assert entry.contribute is not None
    lanes = entry.contribute(site, [made], len(groups))
    lanes[:, 0] = counts
    return lanes
