"""Reconciliation: when a controller (re)connects, keep the dataflows that it still wants, instead of rehydrating them.

Decided from commands alone, never from how far this worker has got, so that all workers of both runtimes decide alike.
An old dataflow is kept iff the new history creates one with the same exports that is structurally equal (as_of and
class aside), old as_of <= new as_of, the old exports were never allowed to compact beyond the new as_of, it contains no
subscribe, and every index it imports is kept or is a log index. Everything else is dropped and built anew.
Source: Materialize's reconciliation.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from compute.plan.description import DataflowClass, DataflowDescription, SubscribeSink
from compute.protocol.command import (
    AllowCompaction,
    AllowWrites,
    CancelPeek,
    ComputeCommand,
    CreateDataflow,
    CreateInstance,
    Peek,
    Schedule,
)
from compute.protocol.history import ComputeCommandHistory
from mzlite.repr.ids import GlobalId
from mzlite.repr.timestamp import Frontier, frontier_le


class IncompatibleInstance(Exception):
    """The new CreateInstance differs from the running one: the process must end and start afresh."""


class Plan:
    """What reconciling does. drop: exports of old dataflows to drop. kept: exports of dataflows that go on (their
    compaction in the new history applies). commands: what to apply afterwards, in order."""

    def __init__(self, drop: list[GlobalId], kept: list[DataflowDescription], commands: list[ComputeCommand]) -> None:
        self.drop = drop
        self.kept = kept
        self.commands = commands


def reconcile(old: ComputeCommandHistory, new: Sequence[ComputeCommand]) -> Plan:
    """Compare the (reduced, peek-free) old history with the commands of a new connection up to InitializationComplete."""
    old.reduce()
    fresh = ComputeCommandHistory(new)
    fresh.reduce()
    old_dataflows: dict[tuple[GlobalId, ...], DataflowDescription] = {}
    old_compaction: dict[GlobalId, Frontier] = {}
    old_instance: CreateInstance | None = None
    for command in old:
        match command:
            case CreateInstance():
                old_instance = command
            case CreateDataflow():
                old_dataflows[command.dataflow.export_ids()] = command.dataflow
            case AllowCompaction():
                old_compaction[command.id] = command.frontier
    kept: dict[tuple[GlobalId, ...], DataflowDescription] = {}
    available: set[GlobalId] = set(old_instance.logs.values()) if old_instance is not None else set()
    for command in fresh:
        match command:
            case CreateInstance():
                if old_instance is not None and not _compatible_instances(old_instance, command):
                    raise IncompatibleInstance(f"{old_instance} became {command}")
            case CreateDataflow(dataflow):
                exports = dataflow.export_ids()
                candidate = old_dataflows.get(exports)
                if candidate is not None and _keeps(candidate, dataflow, old_compaction, available):
                    kept[exports] = dataflow
                    available.update(exports)
    drop = [
        id
        for exports in old_dataflows
        if exports not in kept
        for id in exports
        if old_compaction.get(id, 0) is not None
    ]
    commands: list[ComputeCommand] = []
    # Compaction and drops go first, so that what is kept shrinks before anything new is built.
    kept_ids = {id for exports in kept for id in exports}
    for command in fresh:
        if isinstance(command, AllowCompaction) and command.id in kept_ids:
            commands.append(command)
    for command in fresh:
        match command:
            case CreateDataflow(dataflow) if dataflow.export_ids() in kept:
                commands.extend(AllowCompaction(id, dataflow.as_of) for id in dataflow.index_exports)
            case AllowCompaction() if command.id in kept_ids:
                pass
            case Schedule() | AllowWrites() | CreateDataflow() | AllowCompaction() | Peek() | CancelPeek():
                commands.append(command)
            case CreateInstance():
                if old_instance is None:
                    commands.append(command)
            case _:
                commands.append(command)
    return Plan(drop, list(kept.values()), commands)


def _compatible_instances(old: CreateInstance, new: CreateInstance) -> bool:
    return old.logs == new.logs and old.logging_interval_ms == new.logging_interval_ms


def _keeps(
    old: DataflowDescription, new: DataflowDescription, compaction: dict[GlobalId, Frontier], available: set[GlobalId]
) -> bool:
    if not frontier_le(old.as_of, new.as_of):
        return False
    if any(not frontier_le(compaction.get(id, old.as_of), new.as_of) for id in old.export_ids()):
        return False
    if any(isinstance(sink.connection, SubscribeSink) for sink in old.sink_exports.values()):
        return False
    if not available.issuperset(old.index_imports):
        return False
    return _shape(old) == _shape(new)


def _shape(dataflow: DataflowDescription) -> DataflowDescription:
    """The description without what may differ: times, class, and what was known about inputs when it was planned."""
    return msgspec.structs.replace(
        dataflow,
        as_of=0,
        cls=DataflowClass.MAINTAINED,
        source_imports={id: msgspec.structs.replace(s, upper=0) for id, s in dataflow.source_imports.items()},
    )
