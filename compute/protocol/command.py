"""Commands from the controller to a replica: one ordered stream per replica, every worker sees the same order.

Stages: Creation (Hello, CreateInstance) -> Initialization (any command, ended by InitializationComplete: the replica
reconciles) -> Computation.
"""

from __future__ import annotations

from typing import Any

import msgspec

from compute.plan.description import DataflowDescription
from mzlite.expr.mfp import MapFilterProject
from mzlite.expr.relation import Datums, RowSetFinishing
from mzlite.repr.ids import GlobalId
from mzlite.repr.timestamp import Frontier, Timestamp
from mzlite.repr.types import RelationType


class Hello(msgspec.Struct, frozen=True, tag="hello"):
    """A new connection epoch. A changed nonce starts reconciliation: commands are collected until InitializationComplete."""

    nonce: str


class CreateInstance(msgspec.Struct, frozen=True, tag="create_instance"):
    """Exactly once per connection, right after Hello. On reconnect it must equal the old one, else the process halts.

    logs: log variant name -> index id (introspection). logging_interval_ms: how often log frontiers move.
    """

    logs: dict[str, GlobalId]
    logging_interval_ms: int = 1000
    config: dict[str, Any] = {}


class InitializationComplete(msgspec.Struct, frozen=True, tag="initialization_complete"):
    """Everything before it described the desired state: reconcile now."""


class UpdateConfiguration(msgspec.Struct, frozen=True, tag="update_configuration"):
    """Process-global parameters by name; order against other commands is irrelevant. Unknown names are ignored."""

    parameters: dict[str, Any]


class CreateDataflow(msgspec.Struct, frozen=True, tag="create_dataflow"):
    """Imports must exist and be readable at as_of; export ids are new. Built suspended until every export is scheduled."""

    dataflow: DataflowDescription


class Schedule(msgspec.Struct, frozen=True, tag="schedule"):
    """An export may run; a dataflow starts once all its exports are scheduled. No-op for a peer."""

    id: GlobalId


class AllowWrites(msgspec.Struct, frozen=True, tag="allow_writes"):
    """The sink may write to storage. No-op for a peer."""

    id: GlobalId


class AllowCompaction(msgspec.Struct, frozen=True, tag="allow_compaction"):
    """since of id may advance to frontier; None = drop. Idempotent. An id neither hosted nor peer is a protocol violation."""

    id: GlobalId
    frontier: Frontier


class IndexTarget(msgspec.Struct, frozen=True, tag="index"):
    id: GlobalId


class PersistTarget(msgspec.Struct, frozen=True, tag="persist"):
    """A storage shard read directly; one worker (by uuid) answers with the rows, the others with none."""

    id: GlobalId
    shard: str
    typ: RelationType


class Peek(msgspec.Struct, frozen=True, tag="peek"):
    """Exactly one PeekResponse. timestamp < since is answered with an error.

    literal_constraints: rows of the index key to look up, or None for a full scan. mfp: over the arranged rows
    (columns of the indexed collection in order). Rows are answered in mfp's projection, before `finishing.project`;
    the worker may truncate to limit + offset by finishing's order.
    """

    target: IndexTarget | PersistTarget
    uuid: str
    timestamp: Timestamp
    mfp: MapFilterProject
    finishing: RowSetFinishing
    literal_constraints: tuple[Datums, ...] | None = None


class CancelPeek(msgspec.Struct, frozen=True, tag="cancel_peek"):
    """Best effort; answered with PeekCanceled only if the peek is still pending. Unknown uuid: ignored."""

    uuid: str


ComputeCommand = (
    Hello
    | CreateInstance
    | InitializationComplete
    | UpdateConfiguration
    | CreateDataflow
    | Schedule
    | AllowWrites
    | AllowCompaction
    | Peek
    | CancelPeek
)
