"""mz_internal: comments, dependencies, frontiers, statuses and sessions."""

from __future__ import annotations

from collections.abc import Iterator

from adapter.catalog.builtin import types as bt
from adapter.catalog.builtin.describe import relations
from adapter.catalog.builtin.relation import BUILTINS, Context, Row, empty, relation
from adapter.catalog.objects import IndexDetails, MaterializedViewDetails
from adapter.catalog.state import AMBIENT_SCHEMAS, TEMP_SCHEMA


@relation("mz_internal.mz_comments", "id text!, object_type text!, object_sub_id int4, comment text!", kind="table")
def mz_comments(ctx: Context) -> Iterator[Row]:
    for b in BUILTINS.values():
        if b.comment:
            yield (b.id, b.kind, None, b.comment)
        for i, name in enumerate(b.desc.names):
            text = b.column_comments.get(name)
            if text:
                yield (b.id, b.kind, i + 1, text)
    for key, text in ctx.state.comments.items():
        yield (key.object_id, key.object_type, key.column, text)


@relation("mz_internal.mz_object_dependencies", "object_id text!, referenced_object_id text!", kind="table")
def mz_object_dependencies(ctx: Context) -> Iterator[Row]:
    for item in ctx.state.items.values():
        for dep in item.depends_on:
            yield (item.id, dep)


@relation("mz_internal.mz_compute_dependencies", "object_id text!, dependency_id text!", kind="view")
def mz_compute_dependencies(ctx: Context) -> Iterator[Row]:
    for item in ctx.state.items.values():
        if isinstance(item.details, IndexDetails | MaterializedViewDetails):
            for dep in item.depends_on:
                yield (item.id, dep)


@relation("mz_internal.mz_object_transitive_dependencies", "object_id text!, referenced_object_id text!")
def mz_object_transitive_dependencies(ctx: Context) -> Iterator[Row]:
    for item in ctx.state.items.values():
        seen: set[str] = set()
        stack = list(item.depends_on)
        while stack:
            dep = stack.pop()
            if dep in seen:
                continue
            seen.add(dep)
            yield (item.id, dep)
            found = ctx.state.items.get(dep)
            if found is not None:
                stack.extend(found.depends_on)


@relation(
    "mz_internal.mz_object_fully_qualified_names",
    "id text!, name text!, object_type text!, schema_id text!, schema_name text!, database_id text, database_name text, "
    "cluster_id text",
)
def mz_object_fully_qualified_names(ctx: Context) -> Iterator[Row]:
    for r in relations(ctx):
        schema = ctx.state.schemas.get(r.schema_id)
        if schema is None:
            continue
        db = ctx.state.databases.get(schema.database_id) if schema.database_id is not None else None
        yield (
            r.id, r.name, r.kind, r.schema_id, schema.name, schema.database_id, db.name if db is not None else None,
            r.cluster_id,
        )  # fmt: skip


@relation("mz_internal.mz_object_oid_alias", "object_id text!, oid oid!")
def mz_object_oid_alias(ctx: Context) -> Iterator[Row]:
    for r in relations(ctx):
        yield (r.id, r.oid)


@relation("mz_internal.mz_objects_id_namespace_types", "object_type text!")
def mz_objects_id_namespace_types(ctx: Context) -> Iterator[Row]:
    for kind in (
        "table",
        "view",
        "materialized-view",
        "source",
        "sink",
        "index",
        "connection",
        "type",
        "function",
        "secret",
    ):
        yield (kind,)


@relation(
    "mz_internal.mz_frontiers",
    "object_id text!, read_frontier mz_timestamp, write_frontier mz_timestamp",
    live=True,
)
def mz_frontiers(ctx: Context) -> Iterator[Row]:
    if ctx.runtime is not None:
        yield from ctx.runtime.frontiers()


@relation(
    "mz_internal.mz_cluster_replica_statuses",
    "replica_id text!, process_id uint8!, status text!, reason text, updated_at timestamptz!",
    live=True,
)
def mz_cluster_replica_statuses(ctx: Context) -> Iterator[Row]:
    if ctx.runtime is not None:
        for replica, status, reason, at in ctx.runtime.replica_statuses():
            yield (replica, 0, status, reason, at)


@relation("mz_internal.mz_hydration_statuses", "object_id text!, replica_id text, hydrated bool", live=True)
def mz_hydration_statuses(ctx: Context) -> Iterator[Row]:
    if ctx.runtime is not None:
        yield from ctx.runtime.hydration()


@relation(
    "mz_internal.mz_compute_hydration_statuses",
    "object_id text!, replica_id text!, hydrated bool!, hydration_time interval",
    live=True,
)
def mz_compute_hydration_statuses(ctx: Context) -> Iterator[Row]:
    if ctx.runtime is not None:
        for object_id, replica_id, hydrated in ctx.runtime.hydration():
            yield (object_id, replica_id, hydrated, None)


@relation(
    "mz_internal.mz_sessions",
    "id uuid!, connection_id uint4!, role_id text!, client_ip text, connected_at timestamptz!",
    kind="table",
    live=True,
)
def mz_sessions(ctx: Context) -> Iterator[Row]:
    if ctx.runtime is not None:
        for conn_id, role, address, at in ctx.runtime.sessions():
            yield (conn_id.to_bytes(16, "big"), conn_id, role, address, at)


@relation(
    "mz_internal.mz_subscriptions",
    "id text!, session_id uuid!, cluster_id text!, created_at timestamptz!, referenced_object_ids text list!",
    kind="table",
    live=True,
)
def mz_subscriptions(ctx: Context) -> Iterator[Row]:
    if ctx.runtime is not None:
        for id, conn_id, cluster, at, ids in ctx.runtime.subscriptions():
            yield (id, conn_id.to_bytes(16, "big"), cluster, at, tuple(ids))


@relation("mz_internal.mz_aggregates", "oid oid!, agg_kind text!, agg_num_direct_args int2!", kind="table")
def mz_aggregates(ctx: Context) -> Iterator[Row]:
    return iter(())


@relation("mz_internal.mz_type_pg_metadata", "id text!, typinput oid!, typreceive oid!", kind="table")
def mz_type_pg_metadata(ctx: Context) -> Iterator[Row]:
    for b in bt.BUILTIN_TYPES:
        yield (bt.type_id(b.oid), 0, 0)


@relation("mz_internal.mz_role_oid_memberships", "role_oid oid!, member oid!")
def mz_role_oid_memberships(ctx: Context) -> Iterator[Row]:
    for r in ctx.state.roles.values():
        yield (r.oid, r.oid)
        for group in r.member_of:
            yield (r.oid, ctx.state.roles[group].oid)


@relation(
    "mz_internal.mz_cluster_schedules",
    "cluster_id text!, type text!, refresh_hydration_time_estimate interval",
    kind="table",
)
def mz_cluster_schedules(ctx: Context) -> Iterator[Row]:
    for c in ctx.state.clusters.values():
        yield (c.id, "manual", None)


@relation(
    "mz_internal.mz_materialized_view_refresh_strategies",
    "materialized_view_id text!, type text!, interval interval, aligned_to timestamptz, at timestamptz",
    kind="table",
)
def mz_materialized_view_refresh_strategies(ctx: Context) -> Iterator[Row]:
    from mzlite.repr.datum import Interval

    for item in ctx.user_items("materialized-view"):
        d = item.details
        assert isinstance(d, MaterializedViewDetails)
        if d.refresh_at is None and d.refresh_every is None:
            yield (item.id, "on-commit", None, None, None)
        for at in d.refresh_at or ():
            yield (item.id, "at", None, None, at * 1000)
        if d.refresh_every is not None:
            interval_ms, aligned_ms = d.refresh_every
            yield (item.id, "every", Interval(0, 0, interval_ms * 1000), aligned_ms * 1000, None)


@relation("mz_internal.mz_internal_schemas", "id text!, name text!")
def mz_internal_schemas(ctx: Context) -> Iterator[Row]:
    yield from AMBIENT_SCHEMAS
    yield ("s3", TEMP_SCHEMA)


empty("mz_internal.mz_notices",
    "id text!, notice_type text!, message text!, hint text!, action text, redacted_message text, redacted_hint text, "
    "redacted_action text, action_type text, object_id text, created_at timestamptz!")  # fmt: skip
empty("mz_internal.mz_cluster_replica_metrics",
    "replica_id text!, process_id uint8!, cpu_nano_cores uint8, memory_bytes uint8, disk_bytes uint8")  # fmt: skip
empty("mz_internal.mz_cluster_replica_utilization",
    "replica_id text!, process_id uint8!, cpu_percent float8, memory_percent float8, disk_percent float8")  # fmt: skip
empty("mz_internal.mz_source_statuses",
    "id text!, name text!, type text!, last_status_change_at timestamptz, status text!, error text, details jsonb")  # fmt: skip
empty("mz_internal.mz_source_status_history",
    "occurred_at timestamptz!, source_id text!, status text!, error text, details jsonb, replica_id text")  # fmt: skip
empty("mz_internal.mz_sink_statuses",
    "id text!, name text!, type text!, last_status_change_at timestamptz, status text!, error text, details jsonb")  # fmt: skip
empty("mz_internal.mz_storage_usage_by_shard",
    "id uint8!, shard_id text, size_bytes uint8!, collection_timestamp timestamptz!", kind="table")  # fmt: skip
empty(
    "mz_internal.mz_network_policies",
    "id text!, name text!, owner_id text!, privileges mz_aclitem[]!, oid oid!",
    kind="table",
)
empty("mz_internal.mz_statement_lifecycle_history", "statement_id uuid!, event_type text!, occurred_at timestamptz!")
empty("mz_internal.mz_recent_activity_log", "execution_id uuid!, sql text, began_at timestamptz!")
