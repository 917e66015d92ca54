"""Where updates enter a dataflow: storage shards (pushed) and imported arrangements (read from their chains)."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from compute.operators.base import Arranged, Graph, Operator, Port, error_updates, pieces
from compute.operators.mfp import RowStep
from compute.plan.description import SourceImport
from compute.trace.arrangement import Hold, TraceSource
from compute.trace.batch import Batch
from compute.trace.sorting import constant
from compute.trace.view import View, restrict
from mzlite.repr.column import hash_rows
from mzlite.repr.timestamp import Frontier, Timestamp, frontier_le, less_equal
from mzlite.repr.updates import Updates


class SourceInput(Operator):
    """A storage shard. `push` may be called at any time; a round takes what lies before its upper.

    Invariant: every pending update is at or beyond the last round's upper, or was advanced to as_of.
    """

    def __init__(self, graph: Graph, desc: SourceImport, as_of: Timestamp, worker: int, workers: int) -> None:
        super().__init__(graph)
        self.oks = Port(graph)
        self.errs = Port(graph)
        self.upper: Frontier = 0
        self.arity = desc.typ.arity
        self.as_of = as_of
        self.worker = worker
        self.workers = workers
        self.with_snapshot = desc.with_snapshot
        self.step = None if desc.mfp is None or desc.mfp.is_identity() else RowStep(desc.mfp)
        self.pending: list[Updates] = []
        self.pending_errors: list[Updates] = []

    def intake(self, index: int, updates: Updates) -> None:
        raise AssertionError("a source has no input port")

    def push(self, updates: Updates | None, upper: Frontier) -> None:
        """updates at times before `upper` and at or beyond the last one; upper never goes back."""
        assert frontier_le(self.upper, upper), (self.upper, upper)
        if updates is not None and len(updates):
            self.pending.append(updates)
            self.dirty = True
        self.upper = upper

    def push_errors(self, updates: Updates) -> None:
        """Errors of the source itself: rows of one encoded error."""
        if len(updates):
            self.pending_errors.append(updates)
            self.dirty = True

    def flush(self) -> Iterator[None]:
        upper = self.graph.upper
        for part in self._due(self.pending_errors, upper):
            self.errs.emit(part)
        due = self._due(self.pending, upper)
        for part in due:
            for piece in pieces(part):
                self._emit(piece)
                yield

    def _due(self, pending: list[Updates], upper: Frontier) -> list[Updates]:
        """Take the updates before upper out of `pending` (in place)."""
        due: list[Updates] = []
        later: list[Updates] = []
        for part in pending:
            latest = int(part.time.max())
            if upper is None or latest < upper:
                due.append(part)
                continue
            before = part.time < np.uint64(upper)
            if before.any():
                due.append(part.filter(before))
                part = part.filter(~before)
            later.append(part)
        pending[:] = later
        self.dirty = bool(later)
        return due

    def _emit(self, updates: Updates) -> None:
        if self.workers > 1:
            mine = hash_rows(updates.columns, len(updates)) % np.uint64(self.workers) == np.uint64(self.worker)
            updates = updates.filter(mine)
            if not len(updates):
                return
        earliest = int(updates.time.min())
        if earliest <= self.as_of:
            if not self.with_snapshot:
                updates = updates.filter(updates.time > np.uint64(self.as_of))
            elif earliest < self.as_of:
                n = len(updates)
                if int(updates.time.max()) <= self.as_of:
                    updates = updates.with_time(constant(self.as_of, n, np.uint64))
                else:
                    updates = updates.advance_to(self.as_of)
        if self.step is None:
            self.oks.emit(updates)
        else:
            columns = [updates.columns[i] for i in self.step.needed]
            self.step.run(columns, updates.time, updates.diff, self.oks, self.errs)

    def close(self) -> None:
        self.pending = []
        self.pending_errors = []


class TraceInput(Operator):
    """An imported arrangement: its chains are read as they stand, restricted to the round's times.

    Nothing is copied for operators that look it up; rows flow only if something reads the raw collection.
    Invariant: the hold is before every time that a later round must tell apart.
    """

    always = True

    def __init__(self, graph: Graph, source: TraceSource, as_of: Timestamp, with_snapshot: bool) -> None:
        super().__init__(graph)
        self.source = source
        self.as_of = as_of
        self.with_snapshot = with_snapshot
        self.hold: Hold = source.hold(as_of)
        self.oks = Port(graph)
        self.errs = Port(graph)
        self.arranged = Arranged(graph, source.layout)
        self.first = True

    @property
    def upper(self) -> Frontier:
        return self.source.upper

    def intake(self, index: int, updates: Updates) -> None:
        raise AssertionError("an import has no input port")

    def flush(self) -> Iterator[None]:
        graph = self.graph
        oks, errs = self.source.chains()
        lower, upper = graph.lower, graph.upper
        self.arranged.layout = self.source.layout
        if self.first:
            old = View(())
            delta = self._snapshot(oks, upper)
            errors = self._snapshot(errs, upper)
            self.first = False
        else:
            old = View(oks, lower)
            delta = self._changes(oks, lower, upper)
            errors = self._changes(errs, lower, upper)
        self.arranged.set(old, View(oks, upper), delta)
        for batch in errors:
            if len(batch):
                self.errs.emit(Updates(batch.columns, batch.time, batch.diff))
        if self.oks.targets:
            arity = self.arranged.layout.arity
            for batch in delta:
                for piece in pieces(Updates(batch.columns[:arity], batch.time, batch.diff)):
                    self.oks.emit(piece)
                    yield
        if upper is not None and upper > 0:
            self.hold.downgrade(upper - 1)

    def _snapshot(self, chain: tuple[Batch, ...], upper: Frontier) -> list[Batch]:
        """Everything before upper, as of as_of."""
        at = self.as_of
        parts: list[Batch] = []
        for batch in chain:
            batch = restrict(batch, 0 if self.with_snapshot else at + 1, upper)
            if not len(batch):
                continue
            if batch.time_max <= at:
                time = constant(at, len(batch), np.uint64)
                bounds = (at, at)
            elif batch.time_min < at:
                time = np.maximum(batch.time, np.uint64(at))
                bounds = (at, batch.time_max)
            else:
                parts.append(batch)
                continue
            parts.append(Batch(batch.code, batch.columns, time, batch.diff, batch.description, batch.order, bounds))
        return parts

    @staticmethod
    def _changes(chain: tuple[Batch, ...], lower: int, upper: Frontier) -> list[Batch]:
        parts: list[Batch] = []
        for batch in chain:
            if len(batch) and batch.time_max >= lower and less_equal(batch.time_min, (upper or math.inf)):  # type: ignore[arg-type]
                part = restrict(batch, lower, upper)
                if len(part):
                    parts.append(part)
        return parts

    def close(self) -> None:
        self.hold.release()
        self.arranged.set(View(()), View(()), ())


__all__ = ["SourceInput", "TraceInput", "error_updates"]
