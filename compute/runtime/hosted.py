"""HostedDataflow: one dataflow that this worker renders, from CreateDataflow to the drop of its last export.

    created (suspended) ── every export scheduled ──▶ running ── last export dropped ──▶ gone

It is built at once, in command order, so that construction is equal on all workers; it runs only when scheduled. It
reports its exports' frontiers, and knows which local traces it reads so that the scheduler can wake it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from compute.operators.base import Operator, Port
from compute.plan.description import DataflowDescription, SubscribeSink
from compute.protocol.response import Frontiers
from compute.render.dataflow import Dataflow
from compute.render.exports import Export, IndexExport
from compute.render.lir_ranges import LirRange
from compute.runtime.events import bucket
from compute.trace.arrangement import TraceSource
from mzlite.repr.errors import SqlError
from mzlite.repr.ids import GlobalId
from mzlite.repr.timestamp import Frontier, frontier_le, meet


class HostedDataflow:
    """incarnation: position of the creating command in the stream, equal on all workers and both runtimes.

    dataflow: None when the plan could not be rendered; `error` is then what its readers get.
    """

    def __init__(
        self, description: DataflowDescription, incarnation: int, clock_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self.description = description
        self.incarnation = incarnation
        self.dataflow: Dataflow | None = None
        self.error: SqlError | None = None
        self.live: set[GlobalId] = set(description.export_ids())
        self.unscheduled: set[GlobalId] = set(description.export_ids())
        self.upstream: set[HostedDataflow] = set()
        self.downstream: set[HostedDataflow] = set()
        """Dataflows of this worker that read an export: they keep this one running after its exports are dropped."""
        self.started = False
        self.readers: dict[GlobalId, int] = {}
        self.compaction: dict[GlobalId, Frontier] = dict.fromkeys(description.export_ids(), description.as_of)
        self.sink_frontiers: dict[GlobalId, Callable[[], Frontier]] = {}
        """Of storage sinks: what is written, which trails what is computed."""
        self.turn_slices = 0
        self.elapsed_ns = 0
        self.durations: dict[int, int] = {}
        """Steps by duration, in buckets of powers of two nanoseconds."""
        self._reported: dict[GlobalId, Frontiers] = {}
        self._clock_ns = clock_ns
        self._created_ns = clock_ns()
        self._hydrated = False
        self._last_frontier: Frontier = description.as_of

    @property
    def imports(self) -> tuple[GlobalId, ...]:
        return tuple(self.description.index_imports)

    @property
    def needed(self) -> bool:
        return bool(self.live or self.downstream)

    def moved(self) -> bool:
        """Has the frontier moved since the last call?"""
        assert self.dataflow is not None
        if self.dataflow.frontier == self._last_frontier:
            return False
        self._last_frontier = self.dataflow.frontier
        return True

    def is_subscribe(self, id: GlobalId) -> bool:
        sink = self.description.sink_exports.get(id)
        return sink is not None and isinstance(sink.connection, SubscribeSink)

    @property
    def hydrated(self) -> bool:
        return self._hydrated

    def step(self) -> bool:
        """One slice; False when there is nothing left to do for now."""
        assert self.dataflow is not None
        start = self._clock_ns()
        more = self.dataflow.step()
        took_ns = self._clock_ns() - start
        self.elapsed_ns += took_ns
        slot = bucket(took_ns)
        self.durations[slot] = self.durations.get(slot, 0) + 1
        return more

    def index_source(self, id: GlobalId) -> TraceSource | None:
        """The trace behind an index export; None when the plan could not be rendered."""
        if self.dataflow is None:
            return None
        export = self.dataflow.exports[id]
        assert isinstance(export, IndexExport), id
        return export.source

    # -- for introspection

    @property
    def operators(self) -> Sequence[Operator]:
        """In topological order; the index in it is the operator's number. Empty once the dataflow is complete."""
        return self.dataflow.graph.operators if self.dataflow is not None else ()

    def ports_of(self, operator: Operator) -> list[Port]:
        return [value for value in vars(operator).values() if isinstance(value, Port)]

    @property
    def exports(self) -> list[tuple[GlobalId, Export]]:
        return [(id, self.dataflow.exports[id]) for id in self.live] if self.dataflow is not None else []

    @property
    def import_uppers(self) -> list[tuple[GlobalId, Frontier]]:
        return [(id, source.upper) for id, source in self.dataflow.inputs.items()] if self.dataflow is not None else []

    @property
    def lir_mapping(self) -> Sequence[LirRange]:
        """Which operators each plan node became."""
        return self.dataflow.lir_mapping if self.dataflow is not None else ()

    def newly_hydrated(self) -> int | None:
        """Nanoseconds from creation to the first output, once."""
        if self._hydrated or self.dataflow is None or not self.dataflow.hydrated:
            return None
        self._hydrated = True
        return self._clock_ns() - self._created_ns

    def reports(self) -> list[Frontiers]:
        """Frontiers that moved since the last call (the first call: all of them). Subscribes report in their batches."""
        moved = []
        for id in self.live:
            if self.is_subscribe(id):
                continue
            report = self._current(id)
            known = self._reported.get(id)
            if known is None or report.write != known.write or report.output != known.output:
                assert known is None or frontier_le(known.write, report.write), (id, known, report)
                self._reported[id] = report
                moved.append(report)
        return moved

    def reset_reports(self) -> None:
        """A new connection has heard nothing yet."""
        self._reported.clear()

    def _current(self, id: GlobalId) -> Frontiers:
        as_of = self.description.as_of
        if self.dataflow is None or not self.started:
            return Frontiers(id, as_of, True, as_of, True, as_of, True)
        input: Frontier = None
        for source in self.dataflow.inputs.values():
            input = meet(input, source.upper)
        write = _at_least(self.dataflow.exports[id].frontier, as_of)
        if id in self.sink_frontiers:
            write = meet(write, _at_least(self.sink_frontiers[id](), as_of))
        return Frontiers(id, write, True, _at_least(input, as_of), True, _at_least(self.dataflow.frontier, as_of), True)


def _at_least(frontier: Frontier, time: int) -> Frontier:
    return None if frontier is None else max(frontier, time)


def dropped(id: GlobalId) -> Frontiers:
    """The last report about an export."""
    return Frontiers(id, None, True, None, True, None, True)
