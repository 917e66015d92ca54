"""Ordered traces: the first rows of a group in an SQL order, without reading the group.

A batch of such a trace carries `order`, an int64 that embeds the first ORDER BY column, and keeps the rows of a key
sorted by it. To find the first `need` rows of a group, take a window of rows from the start of its range in every
batch: all updates with an order below the *horizon* (where the first truncated window ends) are then in sight, so what
consolidates to a positive count below it is final. If that is not enough, widen the window fourfold.

    batch 0   1 2 3 4 | 5 ...        horizon 4: rows 1 2 3 are complete
    batch 1  -1           (retracts)  -> the first row is 2

A retraction of the extreme thus costs a few rows, not the group. The place of Materialize's bucket levels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from compute.operators.arrange import description_of
from compute.operators.base import Graph
from compute.operators.front import MAX_ROWS, Front, Live, changed, read_on, trimmed
from compute.operators.points import Points
from compute.trace.batch import LOW_MASK
from compute.trace.builder import BatchBuilder
from compute.trace.spine import Spine
from compute.trace.view import View, expand
from mzlite.expr.scalar import ColumnOrder
from mzlite.repr.column import I64, U64, Column, concat, rows_equal, sort_permutation
from mzlite.repr.fixed import FixedColumn
from mzlite.repr.interval import DAY_US, IntervalColumn
from mzlite.repr.numeric import NumericColumn
from mzlite.repr.types import Layout
from mzlite.repr.updates import Updates, consolidate
from mzlite.repr.var import VarColumn

_LEAST = np.iinfo(np.int64).min
_GREATEST = np.iinfo(np.int64).max
_SIGN = np.uint64(1 << 63)
_EXACT = 2**53
FIRST_WINDOW = 16
WIDE_WINDOW = 64
MAX_FRONTS = 1_024
FEW_FRONTS = 16

Piece = tuple[I64, tuple[Column, ...], I64]


def embed(column: Column) -> I64:
    """int64[n] that never contradicts SQL's order: a < b implies embed(a) <= embed(b), equal values embed equally.

    Unlike `order_codes`, codes compare across columns, so that sorted batches can be merged.
    """
    if isinstance(column, IntervalColumn):
        days, rest = column.normal()
        return _embed_float(days + rest / DAY_US)
    if isinstance(column, FixedColumn):
        return column.order_codes()
    if isinstance(column, NumericColumn):
        if column.wide is None and bool((np.abs(column.values) < _EXACT).all()):
            return _embed_float(column.values / 10.0**column.scale)
        decimals = column.to_decimals()
        return _embed_float(np.array([0.0 if d is None else _float_of(d) for d in decimals]))
    assert isinstance(column, VarColumn), column
    n = len(column)
    sizes = np.diff(column.offsets)
    code = np.zeros(n, np.uint64)
    for i in range(8):
        has = np.flatnonzero(sizes > i)
        if not len(has):
            break
        code[has] |= column.data[column.offsets[has] + i].astype(np.uint64) << np.uint64(56 - 8 * i)
    return (code ^ _SIGN).view(np.int64)


def _float_of(d: object) -> float:
    try:
        return float(d)  # type: ignore[arg-type]
    except OverflowError:
        return float("inf") if d > 0 else float("-inf")  # type: ignore[operator]


def _embed_float(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> I64:
    return FixedColumn(values.astype(np.float64)).order_codes()


def order_of(column: Column, by: ColumnOrder) -> I64:
    """`embed` for one ORDER BY item, NULLs at the end it asks for."""
    codes = embed(column)
    if by.desc:
        codes = ~codes
    if column.valid is not None:
        codes = np.where(column.valid, codes, _GREATEST if by.nulls_last else _LEAST)
    return codes


# Layouts whose every value, and NULL, fits the upper half of a packed order.
_NARROW = {Layout.BOOL, Layout.I16, Layout.I32, Layout.U16, Layout.U32, Layout.DATE}
_LOW_BITS = 30
_NULL_RANK = 1 << 32


def packed(first: Column, by: ColumnOrder, second: Column, then: ColumnOrder) -> I64:
    """Two ORDER BY items in one int64: the first exactly, ties by as much of the second as fits.

    first: of a narrow layout. A column of few values would otherwise leave long runs of equal orders.
    """
    assert isinstance(first, FixedColumn), first
    high = first.values.astype(np.int64)
    if by.desc:
        high = -high
    if first.valid is not None:
        high = np.where(first.valid, high, _NULL_RANK if by.nulls_last else -_NULL_RANK)
    half = 1 << (_LOW_BITS - 1)
    if isinstance(second, FixedColumn) and second.values.dtype.kind in "iu":
        low = np.clip(order_of(second, then), -half, half - 1)  # small numbers exactly
    else:
        low = order_of(second, then) >> (64 - _LOW_BITS)
    return (high << _LOW_BITS) + (low + half)


class OrderedTrace:
    """Rows by key, in the order of `order_by` (over the stored columns; ties by the whole row)."""

    def __init__(self, graph: Graph, key: Sequence[int], order_by: Sequence[ColumnOrder], width: int) -> None:
        self.graph = graph
        self.key = tuple(key)
        self.width = width
        named = {o.column for o in order_by}
        rest = [c for c in range(width) if c not in named and c not in self.key]
        self.order_by = (*order_by, *(ColumnOrder(c) for c in rest))
        self.builder = BatchBuilder(self.key)
        self.spine = Spine()
        graph.spines.append(self.spine)
        self.old = View(())
        self.new = View(())
        self.fronts: dict[int, Front] = {}
        self.touched: list[Front] = []

    def push(self, columns: Sequence[Column], time: U64, diff: I64) -> None:
        self.builder.push(columns, time, diff, self._order(columns, len(time)))

    def _order(self, columns: Sequence[Column], n: int) -> I64:
        if not self.order_by:
            return np.zeros(n, np.int64)
        first = self.order_by[0]
        column = columns[first.column]
        if len(self.order_by) > 1 and column.layout in _NARROW:
            then = self.order_by[1]
            return packed(column, first, columns[then.column], then)
        return order_of(column, first)

    def seal_round(self) -> Iterator[None]:
        self.old = self.new = View(self.spine.chain())
        for front in self.touched:
            front.before = front.now
        self.touched = []
        if not self.builder:
            return
        description = description_of(self.graph)
        batch = self.builder.done_now(description)
        if batch is None:
            yield from self.builder.done(description)
            batch = self.builder.take()
        if batch is None or not len(batch):
            return
        self.spine.insert(batch, None)
        self.new = View(self.spine.chain())
        for front in list(self.fronts.values()):
            if changed(front, batch, self.key, self.order_by):
                self.touched.append(front)
            else:
                del self.fronts[front.code]

    def _from_fronts(self, points: Points, new: bool, need: int, done: list[Piece]) -> I64:
        """Answer what fronts can; the other points."""
        rest: list[int] = []
        codes = points.codes.tolist()
        for i, code in enumerate(codes):
            front = self.fronts.get(code)
            if front is None or not front.is_of([c.slice(i, i + 1) for c in points.keys]):
                rest.append(i)
                continue
            live = front.now if new else front.before
            if not live.enough(need):
                filled = read_on(self.new, front, live, self.key, self.order_by, need) if new else None
                if filled is None:
                    if new:
                        del self.fronts[code]
                    rest.append(i)
                    continue
                live = front.now = trimmed(filled, need)
            done.append((np.full(len(live.diff), i, np.int64), live.columns, live.diff))
        return np.array(rest, np.int64)

    def _keep_front(self, points: Points, i: int, columns: tuple[Column, ...], diff: I64, horizon: int | None) -> None:
        """A read of point i had to wade: keep what it found. columns: the group's live rows below horizon, in order."""
        code = int(points.codes[i])
        if len(self.fronts) >= MAX_FRONTS or code in self.fronts or not len(diff) or len(diff) > MAX_ROWS:
            return
        order = self._order(columns, len(diff))
        keys = tuple(c.take(np.array([i])) for c in points.keys)
        front = Front(code, keys, Live(columns, diff, order, horizon))
        # What stood here before this round is not known: it is read from the trace.
        front.before = Live(columns, diff[:0], order[:0], _LEAST)
        self.fronts[code] = front
        self.touched.append(front)

    def first(self, points: Points, new: bool, need: int | None) -> tuple[I64, tuple[Column, ...], I64]:
        """The first rows of each group at its point, until their diffs sum to `need` (None = all) or the group ends.

        returns: point (ascending), stored columns, diff (> 0), each group's rows in order; maybe more than needed.
        cost: a few rows per batch and point; retracted rows at the front that no merge has removed yet are read once.
        """
        view = self.new if new else self.old
        ranges = []
        for batch in view.chain:
            starts = batch.code.searchsorted(points.codes)
            stops = batch.code.searchsorted(points.codes | LOW_MASK, "right")
            if bool((stops > starts).any()):
                ranges.append((batch, starts, stops))
        done: list[Piece] = []
        todo = np.arange(len(points))
        # Fronts stand for the latest round as a whole, and not for iterations.
        plain = points.next is None and self.graph.now is None and bool(self.order_by)
        if self.fronts and need is not None and plain:
            todo = self._from_fronts(points, new, need, done)
        window = None if need is None else max(FIRST_WINDOW, 2 * need)
        while len(todo) and ranges:
            wades = plain and new and window is not None and window >= WIDE_WINDOW
            todo = self._window(points, ranges, todo, window, need, done, wades)
            if window is not None:
                window *= 4
        if not done:
            return np.zeros(0, np.int64), (), np.zeros(0, np.int64)
        if len(done) == 1:
            return done[0]
        point = np.concatenate([d[0] for d in done])
        by = np.argsort(point, kind="stable")
        columns = tuple(concat(cols).take(by) for cols in zip(*(d[1] for d in done)))
        return point[by], columns, np.concatenate([d[2] for d in done])[by]

    def _window(
        self,
        points: Points,
        ranges: Sequence[tuple[object, I64, I64]],
        todo: I64,
        window: int | None,
        need: int | None,
        done: list[Piece],
        wades: bool,
    ) -> I64:
        """Read one window of the groups `todo`; append those that are settled to done, return the others.

        wades: earlier windows did not do; settled groups get a front.
        """
        m = len(todo)
        horizon = np.full(m, _GREATEST, np.int64)
        truncated = np.zeros(m, np.bool_)
        pieces: list[tuple[I64, tuple[Column, ...], U64, I64, I64]] = []
        for batch, all_starts, all_stops in ranges:
            starts, stops = all_starts[todo], all_stops[todo]
            counts = stops - starts
            if window is not None:
                cut = np.flatnonzero(counts > window)
                if len(cut):
                    edge = batch.order[starts[cut] + (window - 1)]  # type: ignore[attr-defined]
                    horizon[cut] = np.minimum(horizon[cut], edge)
                    truncated[cut] = True
                    counts = np.minimum(counts, window)
            total = int(counts.sum())
            if not total:
                continue
            probe, row = expand(starts, counts, total)
            pieces.append(
                (
                    probe,
                    tuple(c.take(row) for c in batch.columns),  # type: ignore[attr-defined]
                    batch.time[row],  # type: ignore[attr-defined]
                    batch.diff[row],  # type: ignore[attr-defined]
                    batch.order[row],  # type: ignore[attr-defined]
                )
            )
        if not pieces:
            return todo[:0]
        if len(pieces) == 1:
            probe, columns, time, diff, order = pieces[0]
        else:
            probe = np.concatenate([p[0] for p in pieces])
            columns = tuple(concat(cols) for cols in zip(*(p[1] for p in pieces)))
            time = np.concatenate([p[2] for p in pieces])
            diff = np.concatenate([p[3] for p in pieces])
            order = np.concatenate([p[4] for p in pieces])
        at = todo[probe]
        keep = time <= points.time[at]
        if truncated.any():
            keep &= ~truncated[probe] | (order < horizon[probe])
        keep &= rows_equal(tuple(columns[i] for i in self.key), tuple(c.take(at) for c in points.keys), len(at))
        kept = np.flatnonzero(keep)
        merged = consolidate(Updates(tuple(c.take(kept) for c in columns), probe[kept].astype(np.uint64), diff[kept]))
        present = np.flatnonzero(merged.diff > 0)
        columns = tuple(c.take(present) for c in merged.columns)
        probe = merged.time[present].astype(np.int64)
        diff = merged.diff[present]
        by = _by_point_then_order(probe, columns, self.order_by)
        probe, columns, diff = probe[by], tuple(c.take(by) for c in columns), diff[by]
        enough = ~truncated
        if need is not None and truncated.any():
            enough |= np.bincount(probe, diff, m) >= need
        if wades and m <= FEW_FRONTS:
            for i in np.flatnonzero(enough).tolist():
                own = np.flatnonzero(probe == i)
                limit = int(horizon[i]) if truncated[i] else None
                self._keep_front(points, int(todo[i]), tuple(c.take(own) for c in columns), diff[own], limit)
        if enough.all():
            done.append((todo[probe], columns, diff))
            return todo[:0]
        settled = np.flatnonzero(enough[probe])
        if len(settled):
            done.append((todo[probe[settled]], tuple(c.take(settled) for c in columns), diff[settled]))
        return todo[~enough]


def _by_point_then_order(point: I64, columns: tuple[Column, ...], order_by: Sequence[ColumnOrder]) -> I64:
    n = len(point)
    if n <= 1:
        return np.arange(n)
    every = (*columns, FixedColumn(point))
    return sort_permutation(every, (ColumnOrder(len(columns)), *order_by), n)
