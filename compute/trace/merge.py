"""Merge: sorted runs into one batch, a slice at a time.

Each slice takes from every run the rows up to a common code bound, so that equal rows are never split across slices;
sealing the slice (one small sort) merges and consolidates it, with times advanced to `since`.

Source: differential's fuelled Merger, with a vectorised slice in place of the cursor loop.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compute.trace.append import Plane, appender
from compute.trace.batch import HIGH_MASK, LOW_MASK, Batch, Description
from compute.trace.sorting import Rows, cat_rows, is_constant, seal, shrink

SLICE_ROWS = 32_768
MARK_ROWS = 512
PLAIN_ROW_BYTES = 48


def rows_of(batch: Batch) -> Rows:
    return Rows(batch.code, batch.columns, batch.time, batch.diff, batch.order)


def batch_of(rows: Rows, description: Description) -> Batch:
    """Wrap sealed rows; constants are stored once."""
    return Batch(rows.code, rows.columns, shrink(rows.time), shrink(rows.diff), description, rows.order)


class Merge:
    """work(rows) until it returns True, then `result`.

    runs: at least one, each sorted as a Batch is. since: times before it are advanced to it.
    """

    def __init__(self, runs: Sequence[Batch], since: int, description: Description) -> None:
        self.runs = [r for r in runs if len(r)] or list(runs[:1])
        self.since = since
        self.description = description
        self.at = [0] * len(self.runs)
        self.result: Batch | None = None
        self.total = self.remaining = sum(map(len, self.runs))
        self.marks: _Marks | None = None
        self.layout: _Layout | None = None
        # Wide rows take longer: fewer of them a slice.
        bytes_a_row = sum(r.nbytes for r in self.runs) // self.total if self.total > 1_024 else 0
        self.weight = max(1, bytes_a_row // PLAIN_ROW_BYTES)
        if not self.remaining:
            self.result = batch_of(rows_of(self.runs[0]), description)

    def work(self, rows: int) -> bool:
        """Merge about `rows` more plain input rows (or as many bytes of wide ones). True when done."""
        if self.result is None:
            self._merge_slice(max(1, rows // self.weight))
            if self.remaining == 0 and self.result is None:
                assert self.layout is not None
                self.result = self.layout.finish(self.description)
                self.layout = None
                self.runs = []
        return self.result is not None

    def _merge_slice(self, rows: int) -> None:
        stops = self._bound(rows)
        pieces: list[Rows] = []
        for i, (run, start, stop) in enumerate(zip(self.runs, self.at, stops)):
            if stop > start:
                piece = run if start == 0 and stop == len(run) else run.slice(start, stop)
                pieces.append(rows_of(piece))
                self.at[i] = stop
                self.remaining -= stop - start
        merged = cat_rows(pieces)
        if self.since:
            time = merged.time
            if is_constant(time):
                if int(time[0]) < self.since:
                    merged = merged._replace(time=np.broadcast_to(np.array(self.since, np.uint64), (len(time),)))
            else:
                merged = merged._replace(time=np.maximum(time, np.uint64(self.since)))
        if len(pieces) > 1 or self.since:
            merged = seal(merged)
        if self.layout is None:
            if self.remaining == 0:
                self.result = batch_of(merged, self.description)
                self.runs = []
                return
            self.layout = _Layout(self.runs)
        self.layout.append(merged)

    def _bound(self, rows: int) -> list[int]:
        """Per run, where the next slice stops: before a code chosen so that the slice holds about `rows` rows."""
        if self.remaining <= rows:
            return [len(r) for r in self.runs]
        if self.marks is None:
            self.marks = _Marks(self.runs)
        bound = self.marks.at(self.total - self.remaining + rows)
        if bound is None:
            return [len(r) for r in self.runs]
        stops = [self._position(run, bound, "left") for run in self.runs]
        if stops == self.at:  # one row's history is longer than a slice: take it whole
            stops = [self._position(run, bound, "right") for run in self.runs]
        return stops

    @staticmethod
    def _position(run: Batch, bound: tuple[int, int], side: str) -> int:
        code = np.uint64(bound[0])
        if run.order is None:
            return int(run.code.searchsorted(code, side))  # type: ignore[call-overload]
        start = int(run.code.searchsorted(code, "left"))
        stop = int(run.code.searchsorted(code | LOW_MASK, "right"))
        return start + int(run.order[start:stop].searchsorted(bound[1], side))  # type: ignore[call-overload]


class _Marks:
    """Every so many rows of each run, its sort key: together they tell how many rows lie before a key.

    Runs may overlap or lie side by side (a join's output comes in key order), so no run's own rate of progress will do.
    """

    def __init__(self, runs: Sequence[Batch]) -> None:
        step = MARK_ROWS
        code = np.concatenate([r.code[step - 1 :: step] for r in runs])
        orders = [r.order[step - 1 :: step] for r in runs if r.order is not None]
        self.order = np.concatenate(orders) if orders else None
        if self.order is None:
            self.code = np.sort(code)
        else:
            code &= HIGH_MASK
            by = np.lexsort((self.order, code))
            self.code, self.order = code[by], self.order[by]

    def at(self, rows: int) -> tuple[int, int] | None:
        """A sort key with about `rows` rows before it; None beyond the last mark."""
        i = max(rows // MARK_ROWS, 1)
        if i >= len(self.code):
            return None
        return int(self.code[i]), 0 if self.order is None else int(self.order[i])


class _Layout:
    """The result's arrays, reserved for all rows of the runs and written slice by slice."""

    def __init__(self, runs: Sequence[Batch]) -> None:
        capacity = sum(map(len, runs))
        self.code = Plane(capacity)
        self.time = Plane(capacity)
        self.diff = Plane(capacity)
        self.order = None if runs[0].order is None else Plane(capacity)
        self.columns = [appender(list(cols), capacity) for cols in zip(*(r.columns for r in runs))]

    def append(self, rows: Rows) -> None:
        self.code.append(rows.code)
        self.time.append(shrink(rows.time))
        self.diff.append(shrink(rows.diff))
        if self.order is not None and rows.order is not None:
            self.order.append(rows.order)
        for column, part in zip(self.columns, rows.columns):
            column.append(part)

    def finish(self, description: Description) -> Batch:
        return Batch(
            self.code.finish(np.uint64),
            [c.finish() for c in self.columns],
            self.time.finish(np.uint64),
            self.diff.finish(np.int64),
            description,
            None if self.order is None else self.order.finish(np.int64),
        )
