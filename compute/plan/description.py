"""DataflowDescription: everything a replica needs to build one dataflow (M-style fields; see each docstring).

Objects carry LIR when sent to a replica. `as_of` is the first readable time of the exports; `until` bounds what is
needed (None = the empty frontier: nothing is cut off).
"""

from __future__ import annotations

import enum

import msgspec

from compute.plan.lir import Lir
from mzlite.expr.mfp import MapFilterProject
from mzlite.expr.scalar import Scalar
from mzlite.repr.ids import GlobalId
from mzlite.repr.timestamp import Frontier, Timestamp
from mzlite.repr.types import RelationDesc, RelationType


class DataflowClass(enum.Enum):
    """Who renders: see `compute.client.placement.renders`."""

    ONE_SHOT_READ = "one_shot_read"
    MAINTAINED = "maintained"


class SourceImport(msgspec.Struct, frozen=True):
    """A storage shard. mfp: pushed-down step applied while reading (None = identity). upper: known when planned."""

    shard: str
    typ: RelationType
    mfp: MapFilterProject | None = None
    monotonic: bool = False
    with_snapshot: bool = True
    upper: Frontier = 0


class IndexDesc(msgspec.Struct, frozen=True):
    """on_id: the indexed collection; key: expressions over its columns. Arranged rows are whole rows of on_id."""

    on_id: GlobalId
    key: tuple[Scalar, ...]


class IndexImport(msgspec.Struct, frozen=True):
    desc: IndexDesc
    typ: RelationType
    monotonic: bool = False
    with_snapshot: bool = True


class IndexExport(msgspec.Struct, frozen=True):
    desc: IndexDesc
    typ: RelationType


class SubscribeSink(msgspec.Struct, frozen=True, tag="subscribe"):
    """up_to: no updates at or beyond it are sent (None = no bound)."""

    up_to: Frontier = None


class MaterializedViewSink(msgspec.Struct, frozen=True, tag="materialized_view"):
    """Writes the collection back to `shard`, self-correcting against what is there already."""

    shard: str


SinkConnection = SubscribeSink | MaterializedViewSink


class SinkExport(msgspec.Struct, frozen=True):
    """non_null: columns asserted NOT NULL. refresh: ascending times (ms) at which the sink may advance; None = always."""

    from_id: GlobalId
    desc: RelationDesc
    connection: SinkConnection
    with_snapshot: bool = True
    non_null: tuple[int, ...] = ()
    refresh: tuple[Timestamp, ...] | None = None
    refresh_every: tuple[int, int] | None = None  # (interval_ms, aligned_to_ms)


class DataflowDescription(msgspec.Struct, frozen=True):
    """objects: (id, plan) in dependency order. cls: placement, tagged by the adapter."""

    name: str
    source_imports: dict[GlobalId, SourceImport]
    index_imports: dict[GlobalId, IndexImport]
    objects: tuple[tuple[GlobalId, Lir], ...]
    index_exports: dict[GlobalId, IndexExport]
    sink_exports: dict[GlobalId, SinkExport]
    as_of: Timestamp
    until: Frontier = None
    cls: DataflowClass = DataflowClass.MAINTAINED
    recursive: bool = False

    def export_ids(self) -> tuple[GlobalId, ...]:
        return (*self.index_exports, *self.sink_exports)
