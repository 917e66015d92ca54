"""Where results leave a dataflow: indexes, subscribes, materialized views. Each is told when a round is complete."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from compute.operators.arrange import description_of
from compute.operators.base import Graph, Operator
from compute.plan.description import MaterializedViewSink, SinkExport, SubscribeSink
from compute.render.context import RenderContext
from compute.trace.arrangement import Arrangement, Hold, TraceSource
from compute.trace.batch import Batch
from compute.trace.builder import BatchBuilder
from compute.trace.peek import evaluation_error
from mzlite.repr.encode import encode_updates
from mzlite.repr.errors import SqlError, encode_error
from mzlite.repr.ids import GlobalId
from mzlite.repr.timestamp import Frontier, Timestamp, frontier_le, meet
from mzlite.repr.updates import Updates, concat_updates, consolidate
from mzlite.repr.var import VarColumn


class Export:
    """frontier: everything before it has been handed out."""

    def __init__(self, id: GlobalId, as_of: Timestamp) -> None:
        self.id = id
        self.as_of = as_of
        self.complete: Frontier = as_of

    @property
    def frontier(self) -> Frontier:
        return self.complete

    def round_done(self, lower: Timestamp, upper: Frontier) -> None:
        """The round [lower, upper) is complete in every operator."""
        self.complete = upper

    def allow_compaction(self, frontier: Frontier) -> None:
        """None: the export is dropped."""

    def close(self) -> None: ...


class IndexExport(Export):
    """source: what readers import. arrangement: the owned one, or None where an import is exported again."""

    def __init__(self, id: GlobalId, as_of: Timestamp, source: TraceSource, arrangement: Arrangement | None) -> None:
        super().__init__(id, as_of)
        self.source = source
        self.arrangement = arrangement
        self.hold: Hold = source.hold(as_of)

    @property
    def frontier(self) -> Frontier:
        if self.arrangement is None:
            upper = self.source.upper
            return upper if frontier_le(self.as_of, upper) else self.as_of
        return self.complete

    def round_done(self, lower: Timestamp, upper: Frontier) -> None:
        super().round_done(lower, upper)
        if self.arrangement is not None:
            self.arrangement.oks.upper = upper
            self.arrangement.errs.upper = upper
            self.arrangement.version += 1

    def allow_compaction(self, frontier: Frontier) -> None:
        if frontier is None:
            self.hold.release()
        else:
            self.hold.downgrade(frontier)

    def close(self) -> None:
        self.hold.release()


class ErrorArrange(Operator):
    """The errs half of an index."""

    def __init__(self, graph: Graph, arrangement: Arrangement) -> None:
        super().__init__(graph)
        self.arrangement = arrangement
        self.builder = BatchBuilder(())

    def intake(self, index: int, updates: Updates) -> None:
        self.builder.push(updates.columns, updates.time, updates.diff)
        self.dirty = True

    def flush(self) -> Iterator[None]:
        yield from self.builder.done(description_of(self.graph))
        spine = self.arrangement.errs
        spine.insert(self.builder.take(), spine.upper)


class _Buffer(Operator):
    """A round's oks (input 0) and errs (input 1), consolidated, for sinks."""

    def __init__(self, graph: Graph, arity: int) -> None:
        super().__init__(graph)
        self.builders = (BatchBuilder(range(arity)), BatchBuilder(()))
        self.built: list[Batch | None] = [None, None]

    def intake(self, index: int, updates: Updates) -> None:
        self.builders[index].push(updates.columns, updates.time, updates.diff)
        self.dirty = True

    def flush(self) -> Iterator[None]:
        description = description_of(self.graph)
        for i, builder in enumerate(self.builders):
            yield from builder.done(description)
            self.built[i] = builder.take()

    def take(self) -> tuple[Updates | None, Updates | None]:
        """(oks, errs) of the round; None where nothing changed."""
        oks, errs = (None if b is None or not len(b) else Updates(b.columns, b.time, b.diff) for b in self.built)
        self.built = [None, None]
        return oks, errs


class SubscribeExport(Export):
    """Sends each round's changes in time order; the first error ends it."""

    def __init__(self, id: GlobalId, as_of: Timestamp, graph: Graph, sink: SinkExport, context: RenderContext) -> None:
        super().__init__(id, as_of)
        assert isinstance(sink.connection, SubscribeSink)
        self.buffer = _Buffer(graph, sink.desc.typ.arity)
        self.context = context
        self.up_to = sink.connection.up_to
        self.with_snapshot = sink.with_snapshot
        self.ended = False

    def round_done(self, lower: Timestamp, upper: Frontier) -> None:
        oks, errs = self.buffer.take()
        if self.ended:
            self.complete = None
            return
        upper = meet(upper, self.up_to) if self.up_to is not None else upper
        ends = self.up_to is not None and frontier_le(self.up_to, upper)
        error = self._error(errs)
        if error is not None:
            self.ended = True
            self.complete = None
            self.context.subscribe(self.id, lower, None, None, error)
            return
        payload = None
        if oks is not None:
            keep = np.ones(len(oks), np.bool_)
            if not self.with_snapshot:
                keep &= oks.time > np.uint64(self.as_of)
            if self.up_to is not None:
                keep &= oks.time < np.uint64(self.up_to)
            oks = oks.take(np.flatnonzero(keep)[np.argsort(oks.time[keep], kind="stable")])
            if len(oks):
                payload = encode_updates(oks)
        self.ended = ends
        self.complete = None if ends else upper
        self.context.subscribe(self.id, lower, self.complete, payload, None)

    def _error(self, errs: Updates | None) -> bytes | None:
        if errs is None:
            return None
        at = np.flatnonzero(errs.diff > 0)
        if not len(at):
            return None
        column = errs.columns[0]
        assert isinstance(column, VarColumn), column
        return encode_error(evaluation_error(column.value(int(at[np.argmin(errs.time[at])]))))


class MaterializedViewExport(Export):
    """Hands each round's changes to the writer of its shard.

    With a refresh schedule, changes wait for the next refresh time and are written at it.
    """

    def __init__(self, id: GlobalId, as_of: Timestamp, graph: Graph, sink: SinkExport, context: RenderContext) -> None:
        super().__init__(id, as_of)
        assert isinstance(sink.connection, MaterializedViewSink)
        self.buffer = _Buffer(graph, sink.desc.typ.arity)
        self.context = context
        self.shard = sink.connection.shard
        self.non_null = sink.non_null
        self.names = sink.desc.names
        self.refresh = sink.refresh
        self.every = sink.refresh_every
        self.waiting: list[Updates] = []
        self.waiting_errs: list[Updates] = []

    def round_done(self, lower: Timestamp, upper: Frontier) -> None:
        oks, errs = self.buffer.take()
        oks, violations = null_violations(oks, self.non_null, self.names)
        if violations is not None:
            errs = violations if errs is None else consolidate(concat_updates([errs, violations]))
        if self.refresh is None and self.every is None:
            self.complete = upper
            self.context.append(self.id, self.shard, lower, upper, oks, errs)
            return
        if oks is not None:
            self.waiting.append(oks.with_time(self._rounded(oks.time)))
        if errs is not None:
            self.waiting_errs.append(errs.with_time(self._rounded(errs.time)))
        upper = self._next_refresh(upper)
        if upper == self.complete:
            return
        ready, self.waiting = split_before(self.waiting, upper)
        ready_errs, self.waiting_errs = split_before(self.waiting_errs, upper)
        at = self.complete
        self.complete = upper
        self.context.append(self.id, self.shard, at if at is not None else lower, upper, ready, ready_errs)

    def _rounded(
        self, time: np.ndarray[tuple[int], np.dtype[np.uint64]]
    ) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
        """Each time brought up to the refresh that first shows it; never shown: the greatest time."""
        out = np.array([self._refresh_at_or_after(t) for t in time.tolist()], np.uint64)
        return out

    def _refresh_at_or_after(self, time: int) -> int:
        best: int | None = None
        if self.refresh is not None:
            best = next((r for r in self.refresh if r >= time), None)
        if self.every is not None:
            interval, aligned = self.every
            following = aligned + -(-(time - aligned) // interval) * interval
            best = following if best is None else min(best, following)
        return 2**64 - 1 if best is None else best

    def _next_refresh(self, upper: Frontier) -> Frontier:
        """A refreshing sink's output cannot change before the next refresh: its frontier jumps there."""
        if upper is None:
            return None
        following = self._refresh_at_or_after(upper)
        return None if following == 2**64 - 1 else following


def split_before(parts: list[Updates], upper: Frontier) -> tuple[Updates | None, list[Updates]]:
    """(updates before upper, consolidated; the others)."""
    if not parts:
        return None, []
    joint = concat_updates(parts)
    if upper is None:
        ready = joint.filter(joint.time < np.uint64(2**64 - 1))
        later: list[Updates] = []
    else:
        before = joint.time < np.uint64(upper)
        ready = joint.filter(before)
        rest = joint.filter(~before)
        later = [rest] if len(rest) else []
    ready = consolidate(ready)
    return (ready if len(ready) else None), later


def null_violations(
    oks: Updates | None, non_null: tuple[int, ...], names: tuple[str, ...]
) -> tuple[Updates | None, Updates | None]:
    """(rows that keep the assertions, an error for each row that does not: it goes when the row goes)."""
    if oks is None:
        return None, None
    first = np.full(len(oks), -1, np.int64)
    for i in reversed(non_null):
        valid = oks.columns[i].valid
        if valid is not None:
            first[~valid] = i
    bad = np.flatnonzero(first >= 0)
    if not len(bad):
        return oks, None
    errors = {i: encode_error(SqlError("23502", f'column "{names[i]}" must not be null')) for i in non_null}
    column = VarColumn.from_bytes([errors[i] for i in first[bad].tolist()])
    kept = oks.filter(first < 0)
    violations = consolidate(Updates((column,), oks.time[bad], oks.diff[bad]))
    return (kept if len(kept) else None), (violations if len(violations) else None)
