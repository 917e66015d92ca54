"""EventLog: what a worker notes about itself, for introspection. The one idea: events are counted where they happen and
read out once per logging interval, so that noting one costs a dictionary write.

It keeps the present (live dataflows, exports, peeks) and running totals (elapsed time, peek durations); the logging
dataflows turn the difference between two read-outs into updates. The interactive worker sends its read-outs to its
maintenance twin, which shifts operator and dataflow ids by 2**63.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compute.protocol.command import IndexTarget, Peek
from mzlite.repr.ids import GlobalId
from mzlite.repr.timestamp import Frontier, Timestamp

if TYPE_CHECKING:
    from compute.runtime.hosted import HostedDataflow


class EventLog:
    """dataflows: live, by number. peeks: pending, uuid -> (object, kind, time). peek_durations: (kind, bucket ns) -> count.

    hydration_ns: export -> time from creation to first output (None: not yet).
    """

    def __init__(self) -> None:
        self.dataflows: dict[int, HostedDataflow] = {}
        self.exports: dict[GlobalId, int] = {}
        self.frontiers: dict[GlobalId, Frontier] = {}
        self.hydration_ns: dict[GlobalId, int | None] = {}
        self.peeks: dict[str, tuple[GlobalId, str, Timestamp]] = {}
        self.peek_durations: dict[tuple[str, int], int] = {}
        self.parks: dict[tuple[int, int], int] = {}

    def dataflow_created(self, number: int, dataflow: HostedDataflow) -> None:
        self.dataflows[number] = dataflow
        for id in dataflow.description.export_ids():
            self.exports[id] = number
            self.hydration_ns[id] = None

    def dataflow_dropped(self, number: int) -> None:
        self.dataflows.pop(number, None)

    def export_dropped(self, id: GlobalId) -> None:
        for by_export in (self.exports, self.frontiers, self.hydration_ns):
            by_export.pop(id, None)

    def frontier(self, id: GlobalId, frontier: Frontier) -> None:
        self.frontiers[id] = frontier

    def hydrated(self, id: GlobalId, elapsed_ns: int) -> None:
        self.hydration_ns[id] = elapsed_ns

    def peek_started(self, peek: Peek) -> None:
        self.peeks[peek.uuid] = (peek.target.id, kind_of(peek), peek.timestamp)

    def peek_finished(self, peek: Peek, elapsed_ns: int) -> None:
        """elapsed_ns 0: discarded, not counted."""
        self.peeks.pop(peek.uuid, None)
        if elapsed_ns:
            key = (kind_of(peek), bucket(elapsed_ns))
            self.peek_durations[key] = self.peek_durations.get(key, 0) + 1

    def parked(self, requested_ms: float | None, slept_ns: int) -> None:
        """The worker waited for something to happen (requested None: for as long as it takes)."""
        key = (bucket(slept_ns), bucket(int(requested_ms * 1_000_000)) if requested_ms is not None else 0)
        self.parks[key] = self.parks.get(key, 0) + 1


def kind_of(peek: Peek) -> str:
    return "index" if isinstance(peek.target, IndexTarget) else "persist"


def bucket(ns: int) -> int:
    """The least power of two that is at least ns."""
    return 1 << max(ns - 1, 0).bit_length()
