"""Window frames over sorted rows: for every row the range lo .. hi of rows that its frame covers.

    partitions   starts int64[g + 1]: partition p is rows starts[p] .. starts[p + 1]
    peers        rows of a partition equal in every ORDER BY column
    frames       lo, hi int64[n], lo <= hi, half-open, inside the row's partition

All bounds are computed for all rows at once; only RANGE with an offset looks values up, one search a partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from mzlite.expr.eval import eval_constant
from mzlite.expr.scalar import ColumnOrder, Frame, Scalar
from mzlite.repr.calendar import DAY_US
from mzlite.repr.column import I64, Column, rows_equal
from mzlite.repr.errors import SqlError, unsupported
from mzlite.repr.fixed import FixedColumn
from mzlite.repr.interval import Interval
from mzlite.repr.numeric import NumericColumn
from mzlite.repr.types import Layout


class Rows(NamedTuple):
    """Sorted rows and what frames need to know about each, all int64[n] but `starts`.

    part_lo, part_hi: its partition. peer_lo, peer_hi: its peer group. peer: index of the peer group, counted over all.
    """

    n: int
    starts: I64
    part_lo: I64
    part_hi: I64
    peer_lo: I64
    peer_hi: I64
    peer: I64
    peer_starts: I64


def layout_rows(columns: Sequence[Column], starts: I64, order_by: Sequence[ColumnOrder], n: int) -> Rows:
    """starts: partition starts, with or without the closing n."""
    if n and (not len(starts) or starts[-1] != n):
        starts = np.append(starts, n)
    elif not n:
        starts = np.zeros(1, np.int64)
    sizes = np.diff(starts)
    part_lo = np.repeat(starts[:-1], sizes)
    part_hi = np.repeat(starts[1:], sizes)
    new = np.zeros(n, np.bool_)
    new[starts[:-1]] = True
    if n and order_by:
        keys = [columns[o.column] for o in order_by]
        before = [k.slice(0, n - 1) for k in keys]
        after = [k.slice(1, n) for k in keys]
        new[1:] |= ~rows_equal(before, after, n - 1)
    peer_starts = np.flatnonzero(new)
    peer_sizes = np.diff(np.append(peer_starts, n))
    peer = np.repeat(np.arange(len(peer_starts), dtype=np.int64), peer_sizes)
    peer_lo = np.repeat(peer_starts, peer_sizes)
    peer_hi = peer_lo + np.repeat(peer_sizes, peer_sizes)
    return Rows(n, starts, part_lo, part_hi, peer_lo, peer_hi, peer, peer_starts)


def frame_bounds(
    frame: Frame, rows: Rows, columns: Sequence[Column], order_by: Sequence[ColumnOrder]
) -> tuple[I64, I64]:
    """lo, hi of every row, before exclusion."""
    lo = _bound(frame.units, frame.start, frame.start_offset, rows, columns, order_by, is_start=True)
    hi = _bound(frame.units, frame.end, frame.end_offset, rows, columns, order_by, is_start=False)
    lo = np.minimum(np.maximum(lo, rows.part_lo), rows.part_hi)
    hi = np.minimum(np.maximum(hi, rows.part_lo), rows.part_hi)
    return lo, np.maximum(lo, hi)


def _bound(
    units: str,
    bound: str,
    offset: Scalar | None,
    rows: Rows,
    columns: Sequence[Column],
    order_by: Sequence[ColumnOrder],
    *,
    is_start: bool,
) -> I64:
    if bound == "unbounded_preceding":
        return rows.part_lo
    if bound == "unbounded_following":
        return rows.part_hi
    here = np.arange(rows.n, dtype=np.int64)
    if bound == "current_row":
        if units == "rows":
            return here if is_start else here + 1
        return rows.peer_lo if is_start else rows.peer_hi
    assert offset is not None, frame_text(units, bound)
    amount = eval_constant(offset)
    if amount is None:
        raise SqlError("22004", f"frame {'starting' if is_start else 'ending'} offset must not be null")
    if not isinstance(amount, Interval) and amount < 0:
        raise SqlError("22013", f"frame {'starting' if is_start else 'ending'} offset must not be negative")
    sign = -1 if bound == "preceding" else 1
    if units == "rows":
        return here + sign * int(amount) + (0 if is_start else 1)
    if units == "groups":
        return _groups(rows, sign * int(amount), is_start=is_start)
    return _range(rows, columns, order_by, sign, amount, is_start=is_start)


def frame_text(units: str, bound: str) -> str:
    return f"{units} {bound} needs an offset"


def _groups(rows: Rows, shift: int, *, is_start: bool) -> I64:
    """The start (or end) of the peer group `shift` groups away; out of the partition is clipped later."""
    target = rows.peer + shift
    edges = np.append(rows.peer_starts, rows.n)
    count = len(rows.peer_starts)
    index = target if is_start else target + 1
    out = edges[np.clip(index, 0, count)]
    if is_start:
        return np.where(index < 0, 0, out)
    return np.where(index < 0, 0, out)


def _range(
    rows: Rows, columns: Sequence[Column], order_by: Sequence[ColumnOrder], sign: int, amount: Any, *, is_start: bool
) -> I64:
    if len(order_by) != 1:
        raise SqlError("42P20", "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column")
    order = order_by[0]
    column = columns[order.column]
    values, step = _as_numbers(column, amount)
    if order.desc:
        values = -values
    wanted = values + sign * step
    valid = np.ones(rows.n, np.bool_) if column.valid is None else column.valid
    out = rows.peer_lo.copy() if is_start else rows.peer_hi.copy()  # NULLs are peers of one another only
    side: Any = "left" if is_start else "right"
    for a, b in pairwise(rows.starts.tolist()):
        live = np.flatnonzero(valid[a:b]) + a
        if len(live):
            first = int(live[0])
            out[live] = first + np.searchsorted(values[live], wanted[live], side)
    return out


def _as_numbers(column: Column, amount: Any) -> tuple[Any, Any]:
    """The ORDER BY column and the offset as numbers on one scale."""
    if isinstance(column, NumericColumn) and column.wide is None:
        step = amount * 10**column.scale
        return column.values.astype(np.float64), float(step)
    if isinstance(column, FixedColumn):
        if isinstance(amount, Interval):
            if amount.months:
                raise unsupported("RANGE frames with an offset of months or years")
            step = amount.days * DAY_US + amount.us
            scale = DAY_US if column.layout is Layout.DATE else 1
            return column.values.astype(np.int64) * scale, step
        if column.layout in (Layout.F32, Layout.F64):
            return column.values.astype(np.float64), float(amount)
        if column.layout is not Layout.INTERVAL and column.layout is not Layout.BOOL:
            return column.values.astype(np.int64), int(amount)
    raise unsupported("RANGE frames with an offset over this type")


def frame_rows(lo: I64, hi: I64) -> tuple[I64, I64]:
    """(frame index, row) of every row of every frame, frame by frame."""
    sizes = hi - lo
    owner = np.repeat(np.arange(len(lo), dtype=np.int64), sizes)
    first = np.cumsum(sizes) - sizes
    return owner, np.arange(len(owner), dtype=np.int64) - np.repeat(first - lo, sizes)


def exclude(exclusion: str, rows: Rows, owner: I64, row: I64) -> tuple[I64, I64]:
    """Frame rows without what EXCLUDE takes away. owner: the frame's own row."""
    if exclusion == "current_row":
        keep = row != owner
    elif exclusion == "group":
        keep = rows.peer[row] != rows.peer[owner]
    else:
        keep = (rows.peer[row] != rows.peer[owner]) | (row == owner)
    return owner[keep], row[keep]


class RangeMinimum:
    """Row of the least rank in any range of rows, by a sparse table. cost: O(n log n) to build, O(1) a query."""

    def __init__(self, ranks: I64) -> None:
        self.levels = [ranks]
        width = 1
        while 2 * width <= len(ranks):
            last = self.levels[-1]
            self.levels.append(np.minimum(last[:-width], last[width:]))
            width *= 2

    def query(self, lo: I64, hi: I64, none: int) -> I64:
        """Least rank in lo .. hi for each range; `none` where it is empty."""
        sizes = hi - lo
        out = np.full(len(lo), none, np.int64)
        levels = np.zeros(len(lo), np.int64)
        some = sizes > 0
        levels[some] = np.frexp(sizes[some])[1] - 1
        for level in np.unique(levels[some]).tolist():
            idx = np.flatnonzero(some & (levels == level))
            table = self.levels[level]
            out[idx] = np.minimum(table[lo[idx]], table[hi[idx] - (1 << level)])
        return out
