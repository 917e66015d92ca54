"""Temporal filters: mz_now() >= lower and mz_now() < upper. A row is in the output while its interval holds.

    row at t, diff d     ->     +d at max(t, lower)     -d at max(t, upper)      (if that interval is not empty)

Changes that lie in the future are kept by time and released by the round whose interval contains them; the passing of
time alone makes them happen, without a write.

Source: Materialize's temporal MFP, with the future held here instead of in every arrangement downstream.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import numpy as np

from compute.operators.base import Graph, Operator, Port, error_updates, pieces
from compute.plan.mfp_builder import columns_read, narrowed
from mzlite.expr.mfp import MapFilterProject
from mzlite.expr.mfp_eval import MfpPlan
from mzlite.repr.column import U64
from mzlite.repr.timestamp import Frontier
from mzlite.repr.updates import Updates, concat_updates, consolidate

_NEVER = np.uint64(2**64 - 1)


class TemporalFilter(Operator):
    """until: changes at or beyond it are never needed.

    Invariant: every pending change lies at or beyond the upper of the last round.
    """

    always = True

    def __init__(self, graph: Graph, mfp: MapFilterProject, until: Frontier) -> None:
        super().__init__(graph)
        assert graph.now is None, "time inside a loop is the iteration"
        self.oks = Port(graph)
        self.errs = Port(graph)
        self.needed = columns_read(mfp)
        self.plan = MfpPlan(narrowed(mfp, self.needed))
        self.until = until
        self.pending: list[tuple[int, int, Updates]] = []
        self.count = 0

    def intake(self, index: int, updates: Updates) -> None:
        columns = [updates.columns[i] for i in self.needed]
        rows, out, lower, upper, errors = self.plan.apply_temporal(columns, len(updates))
        if errors is not None:
            self.errs.emit(error_updates(updates, *errors))
        if not len(rows):
            return
        diff = updates.diff[rows]
        time = updates.time[rows]
        start = np.maximum(time, lower)
        never = upper == _NEVER
        end = np.where(never, _NEVER, np.maximum(time, upper))
        live = np.flatnonzero((start < end) | never)  # a row without an end may start at the last time there is
        if len(live) < len(rows):
            out = [c.take(live) for c in out]
            start, end, diff = start[live], end[live], diff[live]
        if not len(diff):
            return
        self._offer(Updates(tuple(out), start, diff))
        ending = np.flatnonzero(end != _NEVER)
        if len(ending):
            self._offer(Updates(tuple(c.take(ending) for c in out), end[ending], -diff[ending]))

    def _offer(self, changes: Updates) -> None:
        if self.until is not None:
            kept = changes.time < np.uint64(self.until)
            if not kept.all():
                changes = changes.filter(kept)
        upper = self.graph.upper
        if upper is None:
            self.oks.emit(changes)
            return
        due: np.ndarray[tuple[int], np.dtype[np.bool_]] = changes.time < np.uint64(upper)
        if due.all():
            self.oks.emit(changes)
            return
        self.oks.emit(changes.filter(due))
        self._keep(changes.filter(~due))

    def _keep(self, changes: Updates) -> None:
        self.count += 1
        heapq.heappush(self.pending, (int(changes.time.min()), self.count, changes))

    def flush(self) -> Iterator[None] | None:
        upper = self.graph.upper
        if not self.pending or (upper is not None and self.pending[0][0] >= upper):
            return None
        return self._release(upper)

    def _release(self, upper: Frontier) -> Iterator[None]:
        due: list[Updates] = []
        rest: list[Updates] = []
        while self.pending and (upper is None or self.pending[0][0] < upper):
            part = heapq.heappop(self.pending)[2]
            if upper is None:
                due.append(part)
                continue
            ready: np.ndarray[tuple[int], np.dtype[np.bool_]] = part.time < np.uint64(upper)
            due.append(part.filter(ready))
            if not ready.all():
                rest.append(part.filter(~ready))
            yield
        if rest:
            joint = consolidate(concat_updates(rest))
            for piece in _by_time(joint):
                self._keep(piece)
        for piece in pieces(consolidate(concat_updates(due))):
            self.oks.emit(piece)
            yield

    def close(self) -> None:
        self.pending = []


def _by_time(updates: Updates) -> list[Updates]:
    """Pieces of falling nearness: the soonest 1/8 of the times first, so that each release touches little."""
    n = len(updates)
    if n <= 64:
        return [updates] if n else []
    by = np.argsort(updates.time, kind="stable")
    cut = max(64, n // 8)
    time: U64 = updates.time[by]
    cut = int(np.searchsorted(time, time[cut - 1], "right"))
    parts = [updates.take(by[:cut])]
    if cut < n:
        parts.append(updates.take(by[cut:]))
    return parts
