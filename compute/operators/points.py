"""The law of grouped operators: output = F(group), re-evaluated where its input changed.

Reduce, TopK, Threshold and Window are all functions of a group's rows. When a group is touched at times t1 < t2 < …,
its output changes there and nowhere else, so the operator evaluates F on the group as it stood before the round and
as it stands now, at each such *point* (group, time), and emits the difference:

    new points   (g, t1) (g, t2)         + F(new, t1)@t1   - F(new, t1)@t2   + F(new, t2)@t2
    old points   (g, t1)                 - F(old, t1)@t1

Nothing is kept of the output: F is a function, so what was emitted before can be evaluated again.

History in the future. Inside a loop a change at iteration t also changes the output at every later iteration where
the group has history from earlier outer times. Those times are points too, for old and new alike; the operator keeps
the touched (group, time) pairs as a trace (`history`) to know them.

Source: differential's reduce, whose "interesting times" these are; for a total order they are exactly the input's.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from compute.operators.arrange import description_of
from compute.operators.base import Graph, Operator, Port
from compute.trace.batch import Batch
from compute.trace.builder import BatchBuilder
from compute.trace.sorting import key_codes
from compute.trace.spine import Spine
from compute.trace.view import View
from mzlite.repr.column import I64, U64, BoolArray, Column, concat, rows_equal
from mzlite.repr.updates import Updates, concat_updates, consolidate
from mzlite.repr.var import VarColumn

SLICE_GROUPS = 1_024
NEVER = np.uint64(2**64 - 1)


class Points(NamedTuple):
    """m points, ascending by (group, time). keys, codes, time: of each point. next: time of the group's next point,
    or None when no group has two. single: every group's rows all lie at or before its points' times."""

    keys: tuple[Column, ...]
    codes: U64
    time: U64
    next: U64 | None
    single: bool

    def __len__(self) -> int:
        return len(self.time)


class Outcome(NamedTuple):
    """F at some points. point: int64[r], the point each row belongs to, ascending. columns: r rows (without the key
    unless the operator says so). diff: int64[r] or None (all 1). errors: (points, encoded errors)."""

    point: I64
    columns: tuple[Column, ...]
    diff: I64 | None = None
    errors: tuple[I64, list[bytes]] | None = None


class GroupOperator(Operator):
    """Subclasses keep traces and define `evaluate`; this class decides where, and emits the differences.

    key_count: the key columns come first in what `touch` is given. one_row: F yields at most one row a point.
    """

    one_row = False

    def __init__(self, graph: Graph, key_count: int) -> None:
        super().__init__(graph)
        self.oks = Port(graph)
        self.errs = Port(graph)
        self.key_count = key_count
        self.touched = BatchBuilder(range(key_count))
        self.history: Spine | None = None

    @abc.abstractmethod
    def seal_round(self) -> Iterator[None]:
        """Insert this round's updates into the traces, remembering the views before and after."""

    @abc.abstractmethod
    def evaluate(self, points: Points, new: bool) -> Outcome:
        """F at the points, on the traces after (new) or before this round."""

    @abc.abstractmethod
    def had_state(self) -> bool:
        """Was any trace non-empty before this round?"""

    def changed_points(self) -> Batch | None:
        """Distinct (key, time) touched in this round, columns = key. May be overridden where a trace knows them."""
        raise AssertionError("touched points are built by flush")

    def touch(self, keys: Sequence[Column], time: U64) -> None:
        self.touched.push(keys, time, np.ones(len(time), np.int64))

    def emit_rows(self, updates: Updates) -> None:
        self.oks.emit(updates)

    def flush(self) -> Iterator[None]:
        work = self.seal_round()
        if work is not None:
            yield from work
        batch: Batch | None
        if self.touched:
            description = description_of(self.graph)
            batch = self.touched.done_now(description)
            if batch is None:
                yield from self.touched.done(description)
                batch = self.touched.take()
        else:
            batch = self.changed_points()
        if batch is None or not len(batch):
            self.after_round()
            return
        seen = View(())
        if self.graph.now is not None:
            if self.history is None:
                self.history = Spine()
            seen = View(self.history.chain())
            self.history.insert(batch, None)
        had_state = self.had_state()
        n = len(batch)
        start = 0
        while start < n:
            stop = min(start + SLICE_GROUPS, n)
            code = batch.code
            while stop < n and code[stop] == code[stop - 1]:
                stop += 1
            piece = batch if start == 0 and stop == n else batch.slice(start, stop)
            self._emit_slice(piece, had_state, seen)
            start = stop
            yield
        self.after_round()

    def after_round(self) -> None:
        """Forget what only this round needed."""

    def _emit_slice(self, batch: Batch, had_state: bool, seen: View) -> None:
        new, old = points_of(batch, self.key_count, seen)
        fresh = self.evaluate(new, True)
        if not had_state:
            self._emit_outcome(fresh, new, 1)
            return
        stale = self.evaluate(old, False)
        if self.one_row and new.next is None and old.next is None:
            fresh, stale = without_unchanged(fresh, stale, len(new))
            self._emit_outcome(fresh, new, 1)
            self._emit_outcome(stale, old, -1)
            return
        parts = [*rows_at(fresh, new, 1), *rows_at(stale, old, -1)]
        if parts:
            self.emit_rows(consolidate(concat_updates(parts)))
        errors = [*errors_at(fresh, new, 1), *errors_at(stale, old, -1)]
        if errors:
            self.errs.emit(consolidate(concat_updates(errors)))

    def _emit_outcome(self, outcome: Outcome, points: Points, sign: int) -> None:
        for part in rows_at(outcome, points, sign):
            self.emit_rows(part)
        for part in errors_at(outcome, points, sign):
            self.errs.emit(part)


def points_of(batch: Batch, key_count: int, seen: View) -> tuple[Points, Points]:
    """(new points, old points) of the groups in `batch` (columns = key, sorted by (key, time), distinct)."""
    n = len(batch)
    keys = batch.columns[:key_count]
    codes = batch.code & np.uint64(0xFFFFFFFF00000000)
    time = batch.time
    starts = group_starts(batch.code, keys, n)
    found = seen.find(range(key_count), codes[starts], tuple(c.take(starts) for c in keys), ()) if seen else None
    if found is not None:
        first = time[starts]
        later = found.time > first[found.probe]
        if later.any():
            return _points_with_history(keys, codes, time, starts, found.probe[later], found.time[later])
    if len(starts) == n:
        points = Points(keys, codes, time, None, batch.time_min == batch.time_max)
        return points, points
    following = np.empty(n, np.uint64)
    following[:-1] = time[1:]
    following[starts[1:] - 1] = NEVER
    following[-1] = NEVER
    new = Points(keys, codes, time, following, False)
    old = Points(tuple(c.take(starts) for c in keys), codes[starts], time[starts], None, True)
    return new, old


def _points_with_history(
    keys: Sequence[Column], codes: U64, time: U64, starts: I64, group: I64, later: U64
) -> tuple[Points, Points]:
    n = len(time)
    count = len(starts)
    is_start = np.zeros(n, np.int64)
    is_start[starts] = 1
    group_of = np.cumsum(is_start) - 1
    old_pairs = np.unique(
        np.stack(
            [np.concatenate([np.arange(count), group]).astype(np.uint64), np.concatenate([time[starts], later])], axis=1
        ),
        axis=0,
    )
    new_pairs = np.unique(
        np.stack([np.concatenate([group_of, group]).astype(np.uint64), np.concatenate([time, later])], axis=1), axis=0
    )

    def make(pairs: U64) -> Points:
        owner = pairs[:, 0].astype(np.int64)
        at = starts[owner]
        times = np.ascontiguousarray(pairs[:, 1])
        following = np.full(len(owner), NEVER, np.uint64)
        same = owner[1:] == owner[:-1]
        following[:-1][same] = times[1:][same]
        return Points(tuple(c.take(at) for c in keys), codes[at], times, following, False)

    return make(new_pairs), make(old_pairs)


def group_starts(code: U64, keys: Sequence[Column], n: int) -> I64:
    """Where a new key starts, in rows sealed with columns = key (equal keys are adjacent)."""
    if n <= 1:
        return np.zeros(n, np.int64)
    new = np.ones(n, np.bool_)
    new[1:] = code[1:] != code[:-1]
    tied = np.flatnonzero(~new)
    if len(tied):
        equal = np.ones(len(tied), np.bool_)
        for c in keys:
            equal &= c.take(tied).equals(c.take(tied - 1))
        new[tied] = ~equal
    return np.flatnonzero(new)


def rows_at(outcome: Outcome, points: Points, sign: int) -> list[Updates]:
    """The rows of F as updates: sign at their point, -sign at the group's next point."""
    r = len(outcome.point)
    if not r:
        return []
    at = outcome.point
    diff = np.full(r, sign, np.int64) if outcome.diff is None else outcome.diff * sign
    parts = [Updates(outcome.columns, points.time[at], diff)]
    if points.next is not None:
        until = points.next[at]
        ends = np.flatnonzero(until != NEVER)
        if len(ends):
            parts.append(Updates(tuple(c.take(ends) for c in outcome.columns), until[ends], -diff[ends]))
    return parts


def errors_at(outcome: Outcome, points: Points, sign: int) -> list[Updates]:
    if outcome.errors is None:
        return []
    at, encoded = outcome.errors
    column = VarColumn.from_bytes(list(encoded))
    return rows_at(Outcome(at, (column,)), points, sign)


def without_unchanged(fresh: Outcome, stale: Outcome, count: int) -> tuple[Outcome, Outcome]:
    """Drop points whose one row is the same before and after."""
    if not len(fresh.point) or not len(stale.point):
        return fresh, stale
    if len(fresh.point) == len(stale.point) and (len(fresh.point) == count or np.array_equal(fresh.point, stale.point)):
        left = right = np.arange(len(fresh.point))
        same = rows_equal(fresh.columns, stale.columns, len(left))
    else:
        where = np.full(count, -1, np.int64)
        where[stale.point] = np.arange(len(stale.point))
        right = where[fresh.point]
        left = np.flatnonzero(right >= 0)
        right = right[left]
        same = rows_equal(
            tuple(c.take(left) for c in fresh.columns), tuple(c.take(right) for c in stale.columns), len(left)
        )
    if fresh.diff is not None and stale.diff is not None:
        same = same & (fresh.diff[left] == stale.diff[right])
    if not same.any():
        return fresh, stale
    return _without(fresh, left[same]), _without(stale, right[same])


def _without(outcome: Outcome, rows: I64) -> Outcome:
    keep: BoolArray = np.ones(len(outcome.point), np.bool_)
    keep[rows] = False
    kept = np.flatnonzero(keep)
    return Outcome(
        outcome.point[kept],
        tuple(c.take(kept) for c in outcome.columns),
        None if outcome.diff is None else outcome.diff[kept],
        outcome.errors,
    )


class GroupRows(NamedTuple):
    """Rows of the groups at points, consolidated: parallel arrays, ascending by point; diff > 0."""

    point: I64
    columns: tuple[Column, ...]
    diff: I64


def group_rows(view: View, key: Sequence[int], points: Points, wanted: Sequence[int]) -> GroupRows | None:
    """The whole groups, as they stand at their points. cost: their size."""
    found = view.find(key, points.codes, points.keys, wanted)
    if found is None:
        return None
    point, columns, diff = found.probe, found.columns, found.diff
    if not (points.single and points.next is None and len(found.time) and found.time.max() <= points.time.min()):
        keep = np.flatnonzero(found.time <= points.time[point])
        point, columns, diff = point[keep], tuple(c.take(keep) for c in columns), diff[keep]
    return consolidate_rows(point, columns, diff)


def consolidate_rows(point: I64, columns: tuple[Column, ...], diff: I64) -> GroupRows | None:
    """Sum diffs of equal (point, row); keep positive ones; ascending by point."""
    merged = consolidate(Updates(columns, point.astype(np.uint64), diff))
    keep = np.flatnonzero(merged.diff > 0)
    if not len(keep):
        return None
    by = keep[np.argsort(merged.time[keep], kind="stable")]
    return GroupRows(merged.time[by].astype(np.int64), tuple(c.take(by) for c in merged.columns), merged.diff[by])


__all__ = [
    "GroupOperator",
    "GroupRows",
    "Outcome",
    "Points",
    "concat",
    "consolidate_rows",
    "group_rows",
    "key_codes",
]
