"""Joins. Both plans are bilinear in their inputs and keep no state but arrangements.

    linear   one stage a lookup:   d(S >< L) = dS >< new L  +  old S >< dL      S: the stream so far, arranged
    delta    one path an input:    path i takes input i's changes through lookups into all the others, seeing the
             new arrangement of input j where j < i and the old one where j > i, so that what changes together is
             counted once

"old" and "new" are by arrival, not by time; the time of an output is the later of its parts. So history may lie in
the future, and the same code runs inside loops.

Source: differential's join and dogsdogsdogs' half_join; Materialize's linear and delta join plans.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from compute.operators.base import CHUNK_ROWS, Arranged, Graph, Operator, Port, error_updates
from compute.operators.matching import later_time, matches, not_null, product_diff
from compute.operators.mfp import RowStep
from compute.trace.batch import HIGH_MASK, Batch
from compute.trace.sorting import key_codes
from compute.trace.view import View
from mzlite.expr.mfp import MapFilterProject
from mzlite.expr.mfp_eval import MfpPlan
from mzlite.expr.scalar import Ref, Scalar
from mzlite.repr.column import I64, U64, Column
from mzlite.repr.updates import Updates


class Closure:
    """What a stage does with a matched pair: an mfp over (stream columns, lookup columns)."""

    def __init__(self, mfp: MapFilterProject, stream_arity: int) -> None:
        self.step = RowStep(mfp)
        self.sources = tuple((0, i) if i < stream_arity else (1, i - stream_arity) for i in self.step.needed)

    def run(
        self,
        stream: Sequence[Column],
        stream_rows: I64,
        lookup: Sequence[Column],
        lookup_rows: I64,
        time: U64,
        diff: I64,
        oks: Port,
        errs: Port,
    ) -> None:
        gathered = [
            stream[i].take(stream_rows) if side == 0 else lookup[i].take(lookup_rows) for side, i in self.sources
        ]
        self.step.run(gathered, time, diff, oks, errs)


class LinearStage(Operator):
    """stream: arranged by the stage's stream key; lookup: by its lookup key. Both have taken their turn before."""

    def __init__(self, graph: Graph, stream: Arranged, lookup: Arranged, closure: MapFilterProject) -> None:
        super().__init__(graph)
        self.stream = stream
        self.lookup = lookup
        self.closure = Closure(closure, stream.layout.arity)
        self.oks = Port(graph)
        self.errs = Port(graph)
        stream.users.append(self)
        lookup.users.append(self)

    def intake(self, index: int, updates: Updates) -> None:
        raise AssertionError("a join reads arrangements")

    def flush(self) -> Iterator[None]:
        stream, lookup = self.stream, self.lookup
        new_lookup = lookup.new
        for batch in stream.delta:
            yield from self._half(batch, stream.layout.positions, new_lookup, lookup.layout.positions, True)
        old_stream = stream.old
        for batch in lookup.delta:
            yield from self._half(batch, lookup.layout.positions, old_stream, stream.layout.positions, False)

    def _half(
        self, delta: Batch, delta_key: Sequence[int], view: View, view_key: Sequence[int], is_stream: bool
    ) -> Iterator[None]:
        if not view:
            return
        n = len(delta)
        for start in range(0, n, CHUNK_ROWS):
            piece = delta if n <= CHUNK_ROWS else delta.slice(start, min(start + CHUNK_ROWS, n))
            keys = [piece.columns[i] for i in delta_key]
            keep = not_null(keys)
            if keep is None:
                time, diff, columns = piece.time, piece.diff, piece.columns
                codes = piece.code & HIGH_MASK
            else:
                rows = np.flatnonzero(keep)
                if not len(rows):
                    continue
                time, diff = piece.time[rows], piece.diff[rows]
                columns = tuple(c.take(rows) for c in piece.columns)
                keys = [columns[i] for i in delta_key]
                codes = piece.code[rows] & HIGH_MASK
            for batch, probe, row in matches(codes, keys, view, view_key):
                out_time = later_time(time, probe, batch, row)
                out_diff = product_diff(diff, probe, batch.diff, row)
                if is_stream:
                    self.closure.run(columns, probe, batch.columns, row, out_time, out_diff, self.oks, self.errs)
                else:
                    self.closure.run(batch.columns, row, columns, probe, out_time, out_diff, self.oks, self.errs)
                if n > 1:
                    yield
            if n > 1:
                yield


class _Stage:
    """One lookup of a delta path."""

    def __init__(
        self, input: int, arranged: Arranged, stream_key: Sequence[Scalar], stream_arity: int, closure: MapFilterProject
    ) -> None:
        self.input = input
        self.arranged = arranged
        self.positions = arranged.layout.positions
        self.refs: tuple[int, ...] | None = None
        self.key_plan: MfpPlan | None = None
        refs = [e.column for e in stream_key if isinstance(e, Ref)]
        if len(refs) == len(stream_key):
            self.refs = tuple(refs)
        else:
            count = len(stream_key)
            projection = tuple(range(stream_arity + count))
            self.key_plan = MfpPlan(MapFilterProject(stream_arity, tuple(stream_key), (), projection))
        self.arity = stream_arity
        self.closure = Closure(closure, stream_arity)

    def view(self, path: int) -> View:
        """What path number `path` sees of this stage's input."""
        return self.arranged.new if self.input < path else self.arranged.old


class DeltaJoin(Operator):
    """paths[i]: (source arrangement of input i, source mfp, stages, final mfp)."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.oks = Port(graph)
        self.errs = Port(graph)
        self.paths: list[tuple[Arranged, RowStep, list[_Stage], RowStep]] = []
        self.sink = _Collector(graph)

    def add_path(
        self,
        source: Arranged,
        source_mfp: MapFilterProject,
        stages: Sequence[tuple[int, Arranged, Sequence[Scalar], MapFilterProject]],
        final: MapFilterProject,
    ) -> None:
        built: list[_Stage] = []
        arity = len(source_mfp.projection)
        for input, arranged, stream_key, closure in stages:
            built.append(_Stage(input, arranged, stream_key, arity, closure))
            arity = len(closure.projection)
        self.paths.append((source, RowStep(source_mfp), built, RowStep(final)))
        source.users.append(self)

    def intake(self, index: int, updates: Updates) -> None:
        raise AssertionError("a join reads arrangements")

    def flush(self) -> Iterator[None]:
        for i, (source, step, stages, final) in enumerate(self.paths):
            # At first only one path has anything to find: the others meet an input that was empty before.
            if not all(stage.view(i) for stage in stages):
                continue
            for batch in source.delta:
                n = len(batch)
                for start in range(0, n, CHUNK_ROWS):
                    piece = batch if n <= CHUNK_ROWS else batch.slice(start, min(start + CHUNK_ROWS, n))
                    for rows in self._collected(step, [piece.columns[c] for c in step.needed], piece.time, piece.diff):
                        yield from self._run(i, stages, 0, rows, final)
                    yield

    def _collected(self, step: RowStep, columns: Sequence[Column], time: U64, diff: I64) -> list[Updates]:
        sink = self.sink
        sink.chunks = []
        step.run(columns, time, diff, sink.oks, self.errs)
        return sink.chunks

    def _run(self, path: int, stages: Sequence[_Stage], at: int, rows: Updates, final: RowStep) -> Iterator[None]:
        if at == len(stages):
            final.run([rows.columns[c] for c in final.needed], rows.time, rows.diff, self.oks, self.errs)
            return
        stage = stages[at]
        view = stage.view(path)
        if stage.refs is not None:
            keys = [rows.columns[c] for c in stage.refs]
        else:
            assert stage.key_plan is not None
            kept, columns, errors = stage.key_plan.apply(rows.columns, len(rows))
            if errors is not None:
                self.errs.emit(error_updates(rows, *errors))
            rows = Updates(tuple(columns[: stage.arity]), rows.time[kept], rows.diff[kept])
            keys = list(columns[stage.arity :])
        keep = not_null(keys)
        if keep is not None:
            idx = np.flatnonzero(keep)
            rows = rows.take(idx)
            keys = [c.take(idx) for c in keys]
        n = len(rows)
        if not n:
            return
        sink = self.sink
        for batch, probe, row in matches(key_codes(keys, n), keys, view, stage.positions):
            sink.chunks = []
            stage.closure.run(
                rows.columns,
                probe,
                batch.columns,
                row,
                later_time(rows.time, probe, batch, row),
                product_diff(rows.diff, probe, batch.diff, row),
                sink.oks,
                self.errs,
            )
            chunks = sink.chunks
            if len(row) > 1_024:
                yield
            for chunk in chunks:
                yield from self._run(path, stages, at + 1, chunk, final)


class _Collector(Operator):
    """Takes what a RowStep emits and keeps it, whatever its time: a delta path is run to its end at once."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.chunks: list[Updates] = []
        self.oks = _DirectPort(graph)
        self.oks.connect(self)

    def intake(self, index: int, updates: Updates) -> None:
        self.chunks.append(updates)


class _DirectPort(Port):
    __slots__ = ()

    def emit(self, updates: Updates) -> None:
        if len(updates):
            self.deliver(updates)
