"""Merge: sorted runs into one batch, a slice at a time.

Each slice takes from every run the rows up to a common code bound, so that equal rows are never split across slices;
sealing the slice (one small sort) merges and consolidates it, with times advanced to `since`.

Source: differential's fuelled Merger, with a vectorised slice in place of the cursor loop.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from compute.trace.batch import HIGH_MASK, LOW_MASK, Batch, Description
from compute.trace.sorting import Rows, cat, cat_rows, is_constant, seal, shrink
from mzlite.repr.column import I64, Column, concat

SLICE_ROWS = 32_768


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
        self.parts: list[Rows] = []
        self.columns: list[Column] = []
        self.result: Batch | None = None
        self.remaining = sum(map(len, self.runs))
        if not self.remaining:
            self.result = batch_of(rows_of(self.runs[0]), description)

    def work(self, rows: int) -> bool:
        """Merge about `rows` more input rows, or lay one more column of the result out. True when done."""
        if self.remaining > 0:
            self._merge_slice(rows)
        elif self.result is None:
            self._finish_column()
        if self.result is None and self.remaining == 0 and len(self.parts) <= 1:
            while self.result is None:
                self._finish_column()
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
                    merged = merged._replace(
                        time=np.broadcast_to(np.array(self.since, np.uint64), (len(time),))
                    )
            else:
                merged = merged._replace(time=np.maximum(time, np.uint64(self.since)))
        if len(pieces) > 1 or self.since:
            merged = seal(merged)
        self.parts.append(merged)

    def _bound(self, rows: int) -> list[int]:
        """Per run, where the next slice stops: before the least code that some run reaches after its share of rows."""
        if self.remaining <= rows:
            return [len(r) for r in self.runs]
        live = sum(1 for r, at in zip(self.runs, self.at) if at < len(r))
        share = max(1, rows // live)
        bound: tuple[int, int] | None = None
        for run, at in zip(self.runs, self.at):
            if at + share < len(run):
                reach = self._sort_key(run, at + share)
                if bound is None or reach < bound:
                    bound = reach
        if bound is None:
            return [len(r) for r in self.runs]
        stops = [self._position(run, bound, "left") for run in self.runs]
        if stops == self.at:  # one row's history is longer than a slice: take it whole
            stops = [self._position(run, bound, "right") for run in self.runs]
        return stops

    @staticmethod
    def _sort_key(run: Batch, i: int) -> tuple[int, int]:
        code = int(run.code[i])
        return (code, 0) if run.order is None else (code & int(HIGH_MASK), int(run.order[i]))

    @staticmethod
    def _position(run: Batch, bound: tuple[int, int], side: str) -> int:
        code = np.uint64(bound[0])
        if run.order is None:
            return int(run.code.searchsorted(code, side))  # type: ignore[call-overload]
        start = int(run.code.searchsorted(code, "left"))
        stop = int(run.code.searchsorted(code | LOW_MASK, "right"))
        return start + int(run.order[start:stop].searchsorted(bound[1], side))  # type: ignore[call-overload]

    def _finish_column(self) -> None:
        """One column of the result a call: laying a big batch out is work too."""
        parts = self.parts
        if len(parts) == 1:
            self.result = batch_of(parts[0], self.description)
            return
        done = len(self.columns)
        if done < len(parts[0].columns):
            self.columns.append(concat([p.columns[done] for p in parts]))
            return
        order: I64 | None = None
        if parts[0].order is not None:
            order = cat([p.order for p in parts if p.order is not None])
        rows = Rows(
            cat([p.code for p in parts]),
            tuple(self.columns),
            cat([shrink(p.time) for p in parts]),
            cat([shrink(p.diff) for p in parts]),
            order,
        )
        self.result = batch_of(rows, self.description)
        self.parts = []
        self.runs = []
