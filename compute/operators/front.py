"""Fronts: the first rows of a busy group, kept in hand.

Where the extreme of a large group is retracted again and again, the rows that cancel pile up at the start of the
group's range, and every read has to wade through them until a merge removes them. So a group that made a read wade
gets a *front*: its live rows with an order below `bound`, all of them, as of the latest round. A round's changes below
the bound are applied to the front; when it runs low it is filled up by reading on *from the bound*, past the dead.
Each dead row is thus read once.

    trace   x x x x x x 7 8 9 | 10 11 …        x: rows and their retractions
    front               7 8 9   bound 10
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from compute.trace.batch import LOW_MASK, Batch
from compute.trace.view import View
from mzlite.expr.scalar import ColumnOrder
from mzlite.repr.column import I64, Column, concat, rows_equal, sort_permutation
from mzlite.repr.fixed import FixedColumn
from mzlite.repr.updates import Updates, consolidate

MAX_ROWS = 4_096
KEEP_ROWS = 64
FIRST_READ = 64


class Live(NamedTuple):
    """Rows in order, diff > 0, and the order of each; complete below bound (None: the whole group)."""

    columns: tuple[Column, ...]
    diff: I64
    order: I64
    bound: int | None

    def enough(self, need: int) -> bool:
        return self.bound is None or int(self.diff.sum()) >= need


class Front:
    """keys: one row. before, now: the group's first rows before and after the round under way."""

    __slots__ = ("before", "code", "keys", "now")

    def __init__(self, code: int, keys: tuple[Column, ...], now: Live) -> None:
        self.code = code
        self.keys = keys
        self.before = now
        self.now = now

    def is_of(self, keys: Sequence[Column]) -> bool:
        return bool(rows_equal(self.keys, keys, 1).all())


def sorted_live(
    columns: tuple[Column, ...], diff: I64, order: I64, order_by: Sequence[ColumnOrder], bound: int | None
) -> Live:
    """Net rows (unsorted, possibly cancelling) as a Live."""
    n = len(diff)
    merged = consolidate(Updates((*columns, FixedColumn(order)), np.zeros(n, np.uint64), diff))
    keep = np.flatnonzero(merged.diff > 0)
    rows = tuple(c.take(keep) for c in merged.columns)
    by = sort_permutation(rows[:-1], order_by, len(keep))
    last = rows[-1]
    assert isinstance(last, FixedColumn)
    return Live(tuple(c.take(by) for c in rows[:-1]), merged.diff[keep][by], last.values[by], bound)


def trimmed(live: Live, need: int) -> Live:
    """No more rows than are likely to be of use; the bound moves down to what was cut off."""
    keep = max(KEEP_ROWS, 4 * need)
    if len(live.diff) <= 2 * keep:
        return live
    bound = int(live.order[keep])
    cut = int(np.searchsorted(live.order, bound, "left"))
    if cut < need:
        return live
    return Live(tuple(c.slice(0, cut) for c in live.columns), live.diff[:cut], live.order[:cut], bound)


def changed(front: Front, batch: Batch, key: Sequence[int], order_by: Sequence[ColumnOrder]) -> bool:
    """Apply a round's batch to the front's `now`. False: it cannot be kept (several times in one round)."""
    start, stop = code_range(batch, front.code)
    front.before = front.now
    if start == stop:
        return True
    rows = np.arange(start, stop)
    own = rows_equal(
        tuple(batch.columns[i].slice(start, stop) for i in key),
        tuple(c.take(np.zeros(stop - start, np.int64)) for c in front.keys),
        stop - start,
    )
    live = front.now
    assert batch.order is not None
    if live.bound is not None:
        own &= batch.order[start:stop] < live.bound
    rows = rows[own]
    if not len(rows):
        return True
    time = batch.time[rows]
    if bool((time != time[0]).any()):
        return False
    columns = tuple(concat([a, b.take(rows)]) for a, b in zip(live.columns, batch.columns))
    diff = np.concatenate([live.diff, batch.diff[rows]])
    order = np.concatenate([live.order, batch.order[rows]])
    front.now = sorted_live(columns, diff, order, order_by, live.bound)
    return len(front.now.diff) <= MAX_ROWS


def code_range(batch: Batch, code: int) -> tuple[int, int]:
    low = np.uint64(code)
    return int(batch.code.searchsorted(low)), int(batch.code.searchsorted(low | LOW_MASK, "right"))


def read_on(
    view: View, front: Front, live: Live, key: Sequence[int], order_by: Sequence[ColumnOrder], need: int
) -> Live | None:
    """`live` filled up from its bound on, until it holds `need` rows; None when that takes more than MAX_ROWS."""
    window = FIRST_READ
    assert live.bound is not None
    while window <= MAX_ROWS:
        horizon: int | None = None
        parts: list[tuple[tuple[Column, ...], I64, I64]] = []
        for batch in view.chain:
            assert batch.order is not None
            start, stop = code_range(batch, front.code)
            start += int(batch.order[start:stop].searchsorted(live.bound, "left"))
            if stop - start > window:
                stop = start + window
                edge = int(batch.order[stop - 1])
                horizon = edge if horizon is None else min(horizon, edge)
            if stop > start:
                columns = tuple(c.slice(start, stop) for c in batch.columns)
                parts.append((columns, batch.diff[start:stop], batch.order[start:stop]))
        if parts:
            columns = tuple(concat(cols) for cols in zip(*(p[0] for p in parts)))
            diff = np.concatenate([p[1] for p in parts])
            order = np.concatenate([p[2] for p in parts])
            n = len(diff)
            own = rows_equal(
                tuple(columns[i] for i in key), tuple(c.take(np.zeros(n, np.int64)) for c in front.keys), n
            )
            if horizon is not None:
                own &= order < horizon
            rows = np.flatnonzero(own)
            more = sorted_live(tuple(c.take(rows) for c in columns), diff[rows], order[rows], order_by, horizon)
            joint = Live(
                tuple(concat([a, b]) for a, b in zip(live.columns, more.columns)),
                np.concatenate([live.diff, more.diff]),
                np.concatenate([live.order, more.order]),
                horizon,
            )
        else:
            joint = live._replace(bound=None)
        if joint.enough(need):
            return joint
        window *= 4
    return None
