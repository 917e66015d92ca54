"""Plans: what a statement means, with every name resolved; the sequencer's input. A closed union, no behaviour.

Reading order: reads (SelectPlan …), writes, definitions, cluster administration, session. Objects are named by id where they exist
already and by `QualifiedName` where the plan makes them. Constant scalars may still hold `Unmaterializable` calls
(now(), current_user, mz_now(), and parameters "$1" when planned without values); the sequencer substitutes them.
"""

from __future__ import annotations

from dataclasses import dataclass

from adapter.sql.catalog_view import QualifiedName
from adapter.sql.statements import Statement
from mzlite.expr.relation import Mir, RowSetFinishing
from mzlite.expr.scalar import Scalar
from mzlite.repr.ids import ClusterId, GlobalId
from mzlite.repr.types import RelationDesc, ScalarType

# ---- reads


@dataclass(frozen=True, slots=True)
class AsOf:
    """AS OF [AT LEAST] time: a constant scalar of type mz_timestamp (may call now() and the like)."""

    time: Scalar
    at_least: bool = False


@dataclass(frozen=True, slots=True)
class CopyFormat:
    """format: text, csv, binary. Other options as in PostgreSQL's COPY."""

    format: str = "text"
    delimiter: str | None = None
    null: str | None = None
    header: bool = False
    quote: str | None = None
    escape: str | None = None


@dataclass(frozen=True, slots=True)
class SelectPlan:
    """`mir`'s rows, finished (sorted, limited, projected) are the answer, described by `desc`.

    finishing.project maps desc's columns to mir's. unplannable_parameters: LIMIT or OFFSET reads a parameter, so the
    statement must be planned again with values. copy_to: COPY (query) TO STDOUT.
    """

    mir: Mir
    desc: RelationDesc
    finishing: RowSetFinishing
    as_of: AsOf | None = None
    copy_to: CopyFormat | None = None
    unplannable_parameters: bool = False
    is_show: bool = False


@dataclass(frozen=True, slots=True)
class SubscribePlan:
    """SUBSCRIBE: rows of `mir` and their changes. desc: of mir, without mz_timestamp, mz_diff, mz_progressed.

    output: diffs | within_timestamp_order_by | envelope_upsert | envelope_debezium. order_by: (column, desc, nulls_last) of
    WITHIN TIMESTAMP ORDER BY, over (mz_diff, then mir's columns), -1 = mz_diff. key_columns: of ENVELOPE.
    from_id: SUBSCRIBE of one object (mir is then its Get).
    """

    mir: Mir
    desc: RelationDesc
    output_desc: RelationDesc
    as_of: AsOf | None = None
    up_to: Scalar | None = None
    with_snapshot: bool = True
    with_progress: bool = False
    output: str = "diffs"
    order_by: tuple[tuple[int, bool, bool], ...] = ()
    key_columns: tuple[int, ...] = ()
    from_id: GlobalId | None = None
    copy_to: CopyFormat | None = None


@dataclass(frozen=True, slots=True)
class ExplainPlan:
    """stage: raw, decorrelated, locally_optimized, optimized, physical, insights, filter_pushdown.

    explainee: the plan of the statement explained (SelectPlan, SubscribePlan, CreateViewPlan, …), or an existing item's id.
    raw_text: the RAW (HIR) print when stage is raw. options: WITH (…) names, lower case.
    """

    stage: str
    format: str
    explainee: Plan | GlobalId
    options: tuple[str, ...] = ()
    raw_text: str | None = None
    verbose: bool = False
    replan: bool = False


@dataclass(frozen=True, slots=True)
class ExplainTimestampPlan:
    format: str
    select: SelectPlan


# ---- writes


@dataclass(frozen=True, slots=True)
class Returning:
    """RETURNING: scalars over the table's columns (for a plain list), described by desc."""

    scalars: tuple[Scalar, ...]
    desc: RelationDesc


@dataclass(frozen=True, slots=True)
class InsertPlan:
    """mir's columns are the table's, in order, casts applied, defaults filled in; NOT NULL is checked by the sequencer."""

    table: GlobalId
    mir: Mir
    returning: Returning | None = None


@dataclass(frozen=True, slots=True)
class UpdatePlan:
    """mir: the table's n old columns, then n new ones, one row per row to change (with its multiplicity)."""

    table: GlobalId
    mir: Mir


@dataclass(frozen=True, slots=True)
class DeletePlan:
    """mir: the rows (all columns, with multiplicity) to retract."""

    table: GlobalId
    mir: Mir


@dataclass(frozen=True, slots=True)
class CopyFromPlan:
    """Each incoming row gives `columns` (table column indexes, in order); the rest is defaults."""

    table: GlobalId
    columns: tuple[int, ...]
    types: tuple[ScalarType, ...]
    format: CopyFormat
    defaults: tuple[Scalar | None, ...]


# ---- definitions


@dataclass(frozen=True, slots=True)
class CreateDatabasePlan:
    name: str
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateSchemaPlan:
    database: str
    name: str
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateTablePlan:
    name: QualifiedName
    desc: RelationDesc
    defaults: tuple[Scalar | None, ...]
    create_sql: str
    if_not_exists: bool = False
    temporary: bool = False
    depends_on: tuple[GlobalId, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateViewPlan:
    name: QualifiedName
    desc: RelationDesc
    mir: Mir
    create_sql: str
    if_not_exists: bool = False
    or_replace: GlobalId | None = None
    temporary: bool = False
    depends_on: tuple[GlobalId, ...] = ()


@dataclass(frozen=True, slots=True)
class RefreshSchedule:
    """at: constant times. every: (interval scalar, aligned_to time or None). on_commit if both are empty."""

    at: tuple[Scalar, ...] = ()
    at_creation: bool = False
    every: tuple[tuple[Scalar, Scalar | None], ...] = ()


@dataclass(frozen=True, slots=True)
class CreateMaterializedViewPlan:
    """not_null_assertions: columns asserted; a NULL there is the error `column "x" must not be null`."""

    name: QualifiedName
    desc: RelationDesc
    mir: Mir
    create_sql: str
    cluster: ClusterId
    if_not_exists: bool = False
    or_replace: GlobalId | None = None
    not_null_assertions: tuple[int, ...] = ()
    refresh: RefreshSchedule | None = None
    as_of: int | None = None
    retain_history_ms: int | None = None
    depends_on: tuple[GlobalId, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateIndexPlan:
    """name None: the sequencer picks `{relation}_{columns}_idx` or `{relation}_primary_idx` from base_name, numbered when taken."""

    name: QualifiedName | None
    base_name: str
    on: GlobalId
    key: tuple[Scalar, ...]
    cluster: ClusterId
    create_sql: str
    if_not_exists: bool = False
    retain_history_ms: int | None = None
    depends_on: tuple[GlobalId, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateTypePlan:
    """typ: what the name stands for; `custom` is set."""

    name: QualifiedName
    typ: ScalarType
    create_sql: str
    depends_on: tuple[GlobalId, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateSourcePlan:
    """LOAD GENERATOR sources. subsources: (name, desc) each; generator options as given."""

    name: QualifiedName
    generator: str
    options: tuple[tuple[str, str | None], ...]
    desc: RelationDesc | None
    cluster: ClusterId | None
    create_sql: str
    for_all_tables: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropItemsPlan:
    """kind: as the statement said (table, view, …). ids in statement order; those missing under IF EXISTS are left out (`missing` names them)."""

    kind: str
    ids: tuple[GlobalId, ...]
    cascade: bool = False
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DropNamedPlan:
    """Databases, schemas ("db", "schema"), clusters, cluster replicas ("cluster", "replica"), roles."""

    kind: str
    names: tuple[tuple[str, ...], ...]
    cascade: bool = False
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RenameItemPlan:
    id: GlobalId
    kind: str
    to: str


@dataclass(frozen=True, slots=True)
class RenameNamedPlan:
    """kind: schema, cluster, cluster replica, database. swap: ALTER … SWAP WITH."""

    kind: str
    name: tuple[str, ...]
    to: str
    swap: bool = False


@dataclass(frozen=True, slots=True)
class AlterSetClusterPlan:
    id: GlobalId
    cluster: ClusterId


@dataclass(frozen=True, slots=True)
class AlterRetainHistoryPlan:
    """milliseconds None = RESET."""

    id: GlobalId
    milliseconds: int | None


@dataclass(frozen=True, slots=True)
class AlterTableAddColumnPlan:
    table: GlobalId
    name: str
    typ: ScalarType
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class CommentPlan:
    """kind: as in COMMENT ON. target: an item's id, or names of a database/schema/cluster/role. column: 1-based, for COLUMN."""

    kind: str
    target: GlobalId | tuple[str, ...]
    column: int | None
    comment: str | None


@dataclass(frozen=True, slots=True)
class NoopPlan:
    """Accepted and without effect (GRANT, OWNER TO, ALTER ROLE …). tag: the command tag."""

    tag: str


# ---- clusters and roles


@dataclass(frozen=True, slots=True)
class ReplicaSpec:
    name: str
    size: str | None
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class CreateClusterPlan:
    """Managed (size, replication_factor) or with explicit replicas. options: everything else, lower-case names."""

    name: str
    size: str | None
    replication_factor: int
    replicas: tuple[ReplicaSpec, ...] | None = None
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class CreateClusterReplicaPlan:
    cluster: str
    replica: ReplicaSpec


@dataclass(frozen=True, slots=True)
class AlterClusterPlan:
    """set: option to new value; reset: option names."""

    name: str
    set: tuple[tuple[str, str], ...] = ()
    reset: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateRolePlan:
    name: str
    options: tuple[str, ...] = ()


# ---- session


@dataclass(frozen=True, slots=True)
class AlterSystemSetPlan:
    """values None: RESET to the default; name None: RESET ALL."""

    name: str | None
    values: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class SetVariablePlan:
    """values None: DEFAULT / RESET."""

    name: str
    values: tuple[str, ...] | None
    local: bool = False


@dataclass(frozen=True, slots=True)
class ResetAllPlan:
    pass


@dataclass(frozen=True, slots=True)
class ShowVariablePlan:
    name: str


@dataclass(frozen=True, slots=True)
class ShowAllVariablesPlan:
    pass


@dataclass(frozen=True, slots=True)
class BeginPlan:
    """Transaction modes as given; None = not given."""

    isolation: str | None = None
    read_only: bool | None = None
    start: bool = False


@dataclass(frozen=True, slots=True)
class SetTransactionPlan:
    isolation: str | None = None
    read_only: bool | None = None
    session: bool = False


@dataclass(frozen=True, slots=True)
class CommitPlan:
    pass


@dataclass(frozen=True, slots=True)
class RollbackPlan:
    pass


@dataclass(frozen=True, slots=True)
class PreparePlan:
    name: str
    statement: Statement
    param_types: tuple[ScalarType | None, ...]


@dataclass(frozen=True, slots=True)
class ExecutePlan:
    """args: constant scalars, cast to the prepared statement's parameter types."""

    name: str
    args: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class DeallocatePlan:
    name: str | None


@dataclass(frozen=True, slots=True)
class DeclarePlan:
    name: str
    statement: Statement


@dataclass(frozen=True, slots=True)
class FetchPlan:
    """count None: ALL. timeout_ms None: the default."""

    name: str
    count: int | None
    timeout_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ClosePlan:
    name: str


@dataclass(frozen=True, slots=True)
class DiscardPlan:
    """what: all, temp, plans, sequences."""

    what: str


Plan = (
    SelectPlan
    | SubscribePlan
    | ExplainPlan
    | ExplainTimestampPlan
    | InsertPlan
    | UpdatePlan
    | DeletePlan
    | CopyFromPlan
    | CreateDatabasePlan
    | CreateSchemaPlan
    | CreateTablePlan
    | CreateViewPlan
    | CreateMaterializedViewPlan
    | CreateIndexPlan
    | CreateTypePlan
    | CreateSourcePlan
    | DropItemsPlan
    | DropNamedPlan
    | RenameItemPlan
    | RenameNamedPlan
    | AlterSetClusterPlan
    | AlterRetainHistoryPlan
    | AlterTableAddColumnPlan
    | CommentPlan
    | NoopPlan
    | CreateClusterPlan
    | CreateClusterReplicaPlan
    | AlterClusterPlan
    | CreateRolePlan
    | AlterSystemSetPlan
    | SetVariablePlan
    | ResetAllPlan
    | ShowVariablePlan
    | ShowAllVariablesPlan
    | BeginPlan
    | SetTransactionPlan
    | CommitPlan
    | RollbackPlan
    | PreparePlan
    | ExecutePlan
    | DeallocatePlan
    | DeclarePlan
    | FetchPlan
    | ClosePlan
    | DiscardPlan
)
