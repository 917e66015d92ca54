"""ComputeCommandHistory: the commands a replica must hear to reach the present, kept short by reduction.

The controller keeps one per cluster and replays it to a replica that connects; a worker keeps one to reconcile
against. Reduction forgets what has no effect any more: dropped dataflows, answered peeks, overtaken frontiers. Order of
a reduced history: Hello, CreateInstance, one UpdateConfiguration, CreateDataflow.., Schedule.., Peek..,
AllowCompaction.., AllowWrites.., InitializationComplete. Compaction comes after peeks, so that a replayed peek is
still readable. Source: Materialize's command history.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from compute.plan.description import DataflowDescription
from compute.protocol.command import (
    AllowCompaction,
    AllowWrites,
    CancelPeek,
    ComputeCommand,
    CreateDataflow,
    CreateInstance,
    Hello,
    InitializationComplete,
    Peek,
    Schedule,
    UpdateConfiguration,
)
from mzlite.repr.ids import GlobalId
from mzlite.repr.timestamp import Frontier, join, meet

REDUCTION_FLOOR = 256  # below this length reducing is not worth the walk


class ComputeCommandHistory:
    """An append-only list that reduces itself once it is twice as long as after the last reduction.

    Invariants of a reduced history:
    1. every CreateDataflow has an export that is not dropped;
    2. at most one AllowCompaction, Schedule, AllowWrites per id, and only for ids that a command here declares;
    3. no CancelPeek.
    """

    def __init__(self, commands: Iterable[ComputeCommand] = ()) -> None:
        self._commands: list[ComputeCommand] = list(commands)
        self._reduced_count = 0

    def push(self, command: ComputeCommand) -> None:
        self._commands.append(command)
        if len(self._commands) > max(2 * self._reduced_count, REDUCTION_FLOOR):
            self.reduce()

    def __iter__(self) -> Iterator[ComputeCommand]:
        return iter(self._commands)

    def __len__(self) -> int:
        return len(self._commands)

    def reduce(self) -> None:
        """Rewrite the list into its reduced form. cost: O(length)."""
        hello: Hello | None = None
        instance: CreateInstance | None = None
        initialized = False
        parameters: dict[str, Any] = {}
        dataflows: list[DataflowDescription] = []
        scheduled: dict[GlobalId, None] = {}
        writable: dict[GlobalId, None] = {}
        compaction: dict[GlobalId, Frontier] = {}
        peeks: dict[str, Peek] = {}
        for command in self._commands:
            match command:
                case Hello():
                    hello = command
                case CreateInstance():
                    assert instance is None, "a second CreateInstance in one history"
                    instance = command
                case InitializationComplete():
                    initialized = True
                case UpdateConfiguration():
                    parameters.update(command.parameters)
                case CreateDataflow():
                    dataflows.append(command.dataflow)
                case Schedule():
                    scheduled[command.id] = None
                case AllowWrites():
                    writable[command.id] = None
                case AllowCompaction(id, frontier):
                    compaction[id] = join(compaction[id], frontier) if id in compaction else frontier
                case Peek():
                    peeks[command.uuid] = command
                case CancelPeek():
                    peeks.pop(command.uuid, None)
        live: set[GlobalId] = set(instance.logs.values()) if instance is not None else set()
        kept: list[DataflowDescription] = []
        for dataflow in dataflows:
            reduced = _advance(dataflow, compaction)
            if reduced is not None:
                kept.append(reduced)
                live.update(reduced.export_ids())
        out: list[ComputeCommand] = []
        if hello is not None:
            out.append(hello)
        if instance is not None:
            out.append(instance)
        if parameters:
            out.append(UpdateConfiguration(parameters))
        out.extend(CreateDataflow(d) for d in kept)
        out.extend(Schedule(id) for id in scheduled if id in live)
        out.extend(peeks.values())
        out.extend(AllowCompaction(id, f) for id, f in compaction.items() if id in live)
        out.extend(AllowWrites(id) for id in writable if id in live)
        if initialized:
            out.append(InitializationComplete())
        self._commands = out
        self._reduced_count = len(out)

    def discard_peeks(self) -> None:
        """Forget every peek: their requester is gone."""
        self._commands = [c for c in self._commands if not isinstance(c, (Peek, CancelPeek))]

    def check(self) -> None:
        """Invariants 1-3; call on a reduced history."""
        compaction = {c.id: c.frontier for c in self._commands if isinstance(c, AllowCompaction)}
        live: set[GlobalId] = set()
        for c in self._commands:
            if isinstance(c, CreateInstance):
                live.update(c.logs.values())
            if isinstance(c, CreateDataflow):
                ids = c.dataflow.export_ids()
                live.update(ids)
                assert any(compaction.get(id, 0) is not None for id in ids), c.dataflow.name
        for kind in (AllowCompaction, Schedule, AllowWrites):
            ids_of_kind = [
                c.id
                for c in self._commands
                if isinstance(c, (AllowCompaction, Schedule, AllowWrites)) and type(c) is kind
            ]
            assert len(set(ids_of_kind)) == len(ids_of_kind), kind
            assert live.issuperset(ids_of_kind), kind
        assert not any(isinstance(c, CancelPeek) for c in self._commands)


def _advance(dataflow: DataflowDescription, compaction: dict[GlobalId, Frontier]) -> DataflowDescription | None:
    """The dataflow as it need be built now: as_of at the least frontier its exports must still be readable at."""
    as_of: Frontier = None
    for id in dataflow.export_ids():
        frontier = compaction.get(id, dataflow.as_of)
        as_of = meet(as_of, frontier)
    if as_of is None:
        return None
    return dataflow if as_of <= dataflow.as_of else msgspec.structs.replace(dataflow, as_of=as_of)
