"""Catalog objects: what the catalog knows about, as immutable records.

    Database ─ Schema ─ Item (table, view, materialized view, index, type, source, …)
    Cluster ─ Replica                     Role            Comment

An `Item` has the durable part (`create_sql` and names) and `details`, what planning its SQL gave: rebuilt at start.
`depends_on` holds the ids of the items it reads or uses; DROP and rename walk these edges.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from mzlite.expr.relation import Mir
from mzlite.expr.scalar import Scalar
from mzlite.repr.ids import GlobalId
from mzlite.repr.types import RelationDesc, ScalarType

ItemKind = Literal["table", "view", "materialized-view", "index", "type", "source", "secret", "connection", "func"]

FIRST_USER_OID = 20_000


@dataclass(frozen=True, slots=True)
class Database:
    id: str
    oid: int
    name: str
    owner: str


@dataclass(frozen=True, slots=True)
class Schema:
    """database_id None: an ambient schema (mz_catalog, pg_catalog, …) visible from every database."""

    id: str
    oid: int
    database_id: str | None
    name: str
    owner: str


@dataclass(frozen=True, slots=True)
class Role:
    """variables: defaults of new sessions (ALTER ROLE … SET). member_of: ids of roles granted to it."""

    id: str
    oid: int
    name: str
    inherit: bool = True
    attributes: tuple[tuple[str, bool], ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    member_of: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Replica:
    """workers: from the size. interactive: whether it was provisioned with two runtimes. internal: not billed (display)."""

    id: str
    cluster_id: str
    name: str
    size: str
    workers: int
    interactive: bool
    owner: str


@dataclass(frozen=True, slots=True)
class Cluster:
    """size None: unmanaged. replicas: in creation order."""

    id: str
    name: str
    owner: str
    size: str | None
    replication_factor: int
    replicas: tuple[Replica, ...] = ()

    @property
    def managed(self) -> bool:
        return self.size is not None

    def replica(self, name: str) -> Replica | None:
        return next((r for r in self.replicas if r.name == name), None)


@dataclass(frozen=True, slots=True)
class TableDetails:
    """defaults: one constant scalar a column (None = NULL). shard: where its rows are stored."""

    desc: RelationDesc
    defaults: tuple[Scalar | None, ...]
    shard: str


@dataclass(frozen=True, slots=True)
class ViewDetails:
    """mir: as planned, before any optimisation. optimized: after the local optimizer (no index knowledge)."""

    desc: RelationDesc
    mir: Mir
    optimized: Mir
    temporary: bool = False


@dataclass(frozen=True, slots=True)
class MaterializedViewDetails:
    """refresh: None = on commit; times as in `SinkExport`. initial_as_of: the time it was created at."""

    desc: RelationDesc
    mir: Mir
    optimized: Mir
    cluster_id: str
    shard: str
    non_null: tuple[int, ...] = ()
    refresh_at: tuple[int, ...] | None = None
    refresh_every: tuple[int, int] | None = None
    initial_as_of: int = 0
    query_sql: str = ""


@dataclass(frozen=True, slots=True)
class IndexDetails:
    on_id: GlobalId
    key: tuple[Scalar, ...]
    cluster_id: str
    key_sql: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TypeDetails:
    """typ: what the name stands for (a list, map or record, its `custom` set to the name)."""

    typ: ScalarType
    category: str


@dataclass(frozen=True, slots=True)
class SourceDetails:
    """A load generator: rows written to `shard` by the environment's ticker."""

    desc: RelationDesc
    shard: str
    cluster_id: str
    generator: str
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class OtherDetails:
    """An item that only has a name (secret, connection)."""

    kind: str


Details = (
    TableDetails | ViewDetails | MaterializedViewDetails | IndexDetails | TypeDetails | SourceDetails | OtherDetails
)


@dataclass(frozen=True, slots=True)
class Item:
    """conn_id: the session (pid) a temporary item belongs to, else None."""

    id: GlobalId
    oid: int
    schema_id: str
    name: str
    kind: ItemKind
    create_sql: str
    owner: str
    depends_on: tuple[GlobalId, ...]
    details: Details
    conn_id: int | None = None
    retain_history_ms: int | None = None

    @property
    def desc(self) -> RelationDesc | None:
        match self.details:
            case TableDetails(desc=d) | ViewDetails(desc=d) | MaterializedViewDetails(desc=d) | SourceDetails(desc=d):
                return d
            case _:
                return None

    @property
    def shard(self) -> str | None:
        match self.details:
            case TableDetails(shard=s) | MaterializedViewDetails(shard=s) | SourceDetails(shard=s):
                return s
            case _:
                return None

    @property
    def cluster_id(self) -> str | None:
        match self.details:
            case MaterializedViewDetails(cluster_id=c) | IndexDetails(cluster_id=c) | SourceDetails(cluster_id=c):
                return c
            case _:
                return None


@dataclass(frozen=True, slots=True)
class CommentKey:
    """object_type: table, view, …, role, database, schema, cluster, cluster-replica. column: 1-based position or None."""

    object_type: str
    object_id: str
    column: int | None = None


KIND_NAMES: dict[str, str] = {
    "table": "table",
    "view": "view",
    "materialized-view": "materialized view",
    "index": "index",
    "type": "type",
    "source": "source",
    "secret": "secret",
    "connection": "connection",
    "func": "function",
}


@dataclass(frozen=True, slots=True)
class Allocator:
    """The next number of each kind of id; part of the catalog state so that a transaction allocates and commits together."""

    item: int = 1
    schema: int = 9
    database: int = 2
    role: int = 2
    cluster: int = 2
    replica: int = 2
    oid: int = FIRST_USER_OID
    extra: dict[str, int] = field(default_factory=dict)
