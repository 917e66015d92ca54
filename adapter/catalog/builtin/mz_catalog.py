"""mz_catalog: the catalog as Materialize's users query it."""

from __future__ import annotations

from collections.abc import Iterator

from adapter.catalog.builtin import types as bt
from adapter.catalog.builtin.describe import (
    array,
    default_privileges,
    index_column,
    no_privileges,
    relations,
    type_mod,
    type_oid,
)
from adapter.catalog.builtin.relation import Context, Row, empty, relation
from adapter.catalog.builtin.texts import create_sql, definition, scalar_text, type_text
from adapter.catalog.objects import TypeDetails
from adapter.catalog.state import AMBIENT_IDS

_TABLE = {"kind": "table"}


@relation(
    "mz_catalog.mz_databases", "id text!, oid oid!, name text!, owner_id text!, privileges mz_aclitem[]!", kind="table"
)
def mz_databases(ctx: Context) -> Iterator[Row]:
    for d in ctx.state.databases.values():
        yield (d.id, d.oid, d.name, d.owner, default_privileges(d.owner, "database"))


@relation(
    "mz_catalog.mz_schemas",
    "id text!, oid oid!, database_id text, name text!, owner_id text!, privileges mz_aclitem[]!",
    kind="table",
)
def mz_schemas(ctx: Context) -> Iterator[Row]:
    for s in ctx.state.schemas.values():
        yield (s.id, s.oid, s.database_id, s.name, s.owner, default_privileges(s.owner, "schema"))


@relation(
    "mz_catalog.mz_columns",
    "id text!, name text!, position uint8!, nullable bool!, type text!, default text, type_oid oid!, type_mod int4!",
    kind="table",
    comment="The columns of tables, sources and views.",
    column_comments={
        "id": "The unique ID of the table, source, or view containing the column.",
        "name": "The name of the column.",
        "position": "The 1-indexed position of the column in its containing table, source, or view.",
        "nullable": "Can the column contain a `NULL` value?",
        "type": "The data type of the column.",
        "default": "The default expression of the column.",
        "type_oid": "The OID of the type of the column (references `mz_types`).",
        "type_mod": "The packed type identifier of the column.",
    },
)
def mz_columns(ctx: Context) -> Iterator[Row]:
    for r in relations(ctx):
        if r.desc is None:
            continue
        defaults = column_defaults(ctx, r.id)
        for i, (name, col) in enumerate(zip(r.desc.names, r.desc.typ.columns)):
            default = defaults[i] if i < len(defaults) else None
            oid = type_oid(ctx.state, col.scalar)
            yield (r.id, name, i + 1, col.nullable, type_text(col.scalar), default, oid, type_mod(col.scalar))


def column_defaults(ctx: Context, id: str) -> list[str | None]:
    from adapter.catalog.objects import TableDetails

    item = ctx.state.items.get(id)  # type: ignore[call-overload]
    if item is None or not isinstance(item.details, TableDetails):
        return []
    return [None if d is None else scalar_text(d) for d in item.details.defaults]


@relation(
    "mz_catalog.mz_indexes",
    "id text!, oid oid!, name text!, on_id text!, cluster_id text!, owner_id text!, create_sql text, redacted_create_sql text",
    kind="table",
)
def mz_indexes(ctx: Context) -> Iterator[Row]:
    for r in relations(ctx):
        if r.kind == "index":
            sql = create_sql(ctx.state, r.id)
            yield (r.id, r.oid, r.name, r.on_id, r.cluster_id, r.owner, sql, sql)


@relation(
    "mz_catalog.mz_index_columns",
    "index_id text!, index_position uint8!, on_position uint8, on_expression text, nullable bool!",
    kind="table",
)
def mz_index_columns(ctx: Context) -> Iterator[Row]:
    by_id = {r.id: r for r in relations(ctx)}
    for r in relations(ctx):
        if r.kind != "index" or r.on_id is None:
            continue
        desc = by_id[r.on_id].desc
        assert desc is not None
        for i, e in enumerate(r.key):
            on = index_column(desc, e)
            nullable = desc.typ.columns[on - 1].nullable if on is not None else True
            yield (r.id, i + 1, on, None if on is not None else scalar_text(e, desc.names), nullable)


@relation(
    "mz_catalog.mz_tables",
    "id text!, oid oid!, schema_id text!, name text!, owner_id text!, privileges mz_aclitem[]!, create_sql text, "
    "redacted_create_sql text, source_id text",
    kind="table",
)
def mz_tables(ctx: Context) -> Iterator[Row]:
    for r in relations(ctx):
        if r.kind == "table":
            sql = create_sql(ctx.state, r.id)
            yield (r.id, r.oid, r.schema_id, r.name, r.owner, default_privileges(r.owner, "table"), sql, sql, None)


@relation(
    "mz_catalog.mz_views",
    "id text!, oid oid!, schema_id text!, name text!, definition text!, owner_id text!, privileges mz_aclitem[]!, "
    "create_sql text!, redacted_create_sql text!",
    kind="table",
)
def mz_views(ctx: Context) -> Iterator[Row]:
    for r in relations(ctx):
        if r.kind == "view":
            sql = create_sql(ctx.state, r.id) or ""
            acl = default_privileges(r.owner, "view")
            yield (r.id, r.oid, r.schema_id, r.name, definition(ctx.state, r.id), r.owner, acl, sql, sql)


@relation(
    "mz_catalog.mz_materialized_views",
    "id text!, oid oid!, schema_id text!, name text!, cluster_id text!, definition text!, owner_id text!, "
    "privileges mz_aclitem[]!, create_sql text!, redacted_create_sql text!",
    kind="table",
)
def mz_materialized_views(ctx: Context) -> Iterator[Row]:
    for r in relations(ctx):
        if r.kind == "materialized-view":
            sql = create_sql(ctx.state, r.id) or ""
            acl = default_privileges(r.owner, "materialized-view")
            text = definition(ctx.state, r.id)
            yield (r.id, r.oid, r.schema_id, r.name, r.cluster_id, text, r.owner, acl, sql, sql)


@relation(
    "mz_catalog.mz_sources",
    "id text!, oid oid!, schema_id text!, name text!, type text!, connection_id text, size text, envelope_type text, "
    "key_format text, value_format text, cluster_id text, owner_id text!, privileges mz_aclitem[]!, create_sql text, "
    "redacted_create_sql text",
    kind="table",
)
def mz_sources(ctx: Context) -> Iterator[Row]:
    for r in relations(ctx):
        if r.kind == "source":
            sql = create_sql(ctx.state, r.id)
            acl = default_privileges(r.owner, "source")
            yield (
                r.id, r.oid, r.schema_id, r.name, "load-generator", None, None, None, None, None, r.cluster_id, r.owner,
                acl, sql, sql,
            )  # fmt: skip


@relation(
    "mz_catalog.mz_types",
    "id text!, oid oid!, schema_id text!, name text!, category text!, owner_id text!, privileges mz_aclitem[]!, "
    "create_sql text, redacted_create_sql text",
    kind="table",
)
def mz_types(ctx: Context) -> Iterator[Row]:
    for b in bt.BUILTIN_TYPES:
        yield (
            bt.type_id(b.oid), b.oid, AMBIENT_IDS[b.schema], b.name, b.mz_category, "s1", no_privileges(), None, None,
        )  # fmt: skip
    for item in ctx.user_items("type"):
        assert isinstance(item.details, TypeDetails)
        sql = create_sql(ctx.state, item.id)
        category = item.details.category
        yield (
            item.id, item.oid, item.schema_id, item.name, category, item.owner, default_privileges(item.owner, "type"),
            sql, sql,
        )  # fmt: skip


@relation("mz_catalog.mz_base_types", "id text!", kind="table")
def mz_base_types(ctx: Context) -> Iterator[Row]:
    for b in bt.BUILTIN_TYPES:
        if not b.element and not b.pseudo:
            yield (bt.type_id(b.oid),)


@relation("mz_catalog.mz_pseudo_types", "id text!", kind="table")
def mz_pseudo_types(ctx: Context) -> Iterator[Row]:
    for b in bt.BUILTIN_TYPES:
        if b.pseudo:
            yield (bt.type_id(b.oid),)


@relation("mz_catalog.mz_array_types", "id text!, element_id text!", kind="table")
def mz_array_types(ctx: Context) -> Iterator[Row]:
    for b in bt.BUILTIN_TYPES:
        if b.element:
            yield (bt.type_id(b.oid), bt.type_id(b.element))


@relation("mz_catalog.mz_list_types", "id text!, element_id text!, element_modifiers int8[]", kind="table")
def mz_list_types(ctx: Context) -> Iterator[Row]:
    for item in ctx.user_items("type"):
        assert isinstance(item.details, TypeDetails)
        typ = item.details.typ
        if typ.kind == "list" and typ.element is not None:
            yield (item.id, _element_id(ctx, type_oid(ctx.state, typ.element)), None)


@relation(
    "mz_catalog.mz_map_types",
    "id text!, key_id text!, value_id text!, key_modifiers int8[], value_modifiers int8[]",
    kind="table",
)
def mz_map_types(ctx: Context) -> Iterator[Row]:
    for item in ctx.user_items("type"):
        assert isinstance(item.details, TypeDetails)
        typ = item.details.typ
        if typ.kind == "map" and typ.element is not None:
            yield (item.id, bt.type_id(25), _element_id(ctx, type_oid(ctx.state, typ.element)), None, None)


def _element_id(ctx: Context, oid: int) -> str:
    for item in ctx.user_items("type"):
        if item.oid == oid:
            return str(item.id)
    return bt.type_id(oid)


@relation(
    "mz_catalog.mz_roles",
    "id text!, oid oid!, name text!, inherit bool!, rolcanlogin bool, rolsuper bool",
    kind="table",
)
def mz_roles(ctx: Context) -> Iterator[Row]:
    for r in ctx.state.roles.values():
        attributes = dict(r.attributes)
        yield (r.id, r.oid, r.name, r.inherit, attributes.get("login"), attributes.get("superuser"))


@relation("mz_catalog.mz_role_members", "role_id text!, member text!, grantor text!", kind="table")
def mz_role_members(ctx: Context) -> Iterator[Row]:
    for r in ctx.state.roles.values():
        for group in r.member_of:
            yield (group, r.id, "s1")


@relation("mz_catalog.mz_role_parameters", "role_id text!, parameter_name text!, parameter_value text!", kind="table")
def mz_role_parameters(ctx: Context) -> Iterator[Row]:
    for r in ctx.state.roles.values():
        for name, value in r.variables:
            yield (r.id, name, value)


@relation(
    "mz_catalog.mz_clusters",
    "id text!, name text!, owner_id text!, privileges mz_aclitem[]!, managed bool!, size text, replication_factor uint4, "
    "disk bool, availability_zones text list, introspection_debugging bool, introspection_interval interval",
    kind="table",
)
def mz_clusters(ctx: Context) -> Iterator[Row]:
    from mzlite.repr.datum import Interval

    for c in ctx.state.clusters.values():
        acl = default_privileges(c.owner, "cluster")
        if c.managed:
            second = Interval(0, 0, 1_000_000)
            yield (c.id, c.name, c.owner, acl, True, c.size, c.replication_factor, True, (), False, second)
        else:
            yield (c.id, c.name, c.owner, acl, False, None, None, None, None, None, None)


@relation(
    "mz_catalog.mz_cluster_replicas",
    "id text!, name text!, cluster_id text!, size text, availability_zone text, owner_id text!, disk bool",
    kind="table",
)
def mz_cluster_replicas(ctx: Context) -> Iterator[Row]:
    for c in ctx.state.clusters.values():
        for r in c.replicas:
            yield (r.id, r.name, c.id, r.size, None, r.owner, True)


@relation(
    "mz_catalog.mz_cluster_replica_sizes",
    "size text!, processes uint8!, workers uint8!, cpu_nano_cores uint8!, memory_bytes uint8!, disk_bytes uint8, "
    "credits_per_hour numeric!",
    kind="table",
)
def mz_cluster_replica_sizes(ctx: Context) -> Iterator[Row]:
    from decimal import Decimal

    for workers in (1, 2, 4, 8, 16):
        yield (f"scale=1,workers={workers}", 1, workers, workers * 10**9, 2**32, None, Decimal(1))


OBJECT_COLUMNS = "id text!, oid oid!, schema_id text!, name text!, type text!, owner_id text!, cluster_id text, privileges mz_aclitem[]"


@relation("mz_catalog.mz_objects", OBJECT_COLUMNS)
def mz_objects(ctx: Context) -> Iterator[Row]:
    for r in relations(ctx):
        yield (r.id, r.oid, r.schema_id, r.name, r.kind, r.owner, r.cluster_id, default_privileges(r.owner, r.kind))
    for b in bt.BUILTIN_TYPES:
        yield (bt.type_id(b.oid), b.oid, AMBIENT_IDS[b.schema], b.name, "type", "s1", None, no_privileges())
    for item in ctx.user_items("type", "secret", "connection", "func"):
        acl = default_privileges(item.owner, item.kind)
        kind = "function" if item.kind == "func" else item.kind
        yield (item.id, item.oid, item.schema_id, item.name, kind, item.owner, None, acl)


@relation("mz_catalog.mz_relations", OBJECT_COLUMNS)
def mz_relations(ctx: Context) -> Iterator[Row]:
    for r in relations(ctx):
        if r.desc is not None:
            yield (r.id, r.oid, r.schema_id, r.name, r.kind, r.owner, r.cluster_id, default_privileges(r.owner, r.kind))


@relation("mz_catalog.mz_system_privileges", "privileges mz_aclitem!", kind="table")
def mz_system_privileges(ctx: Context) -> Iterator[Row]:
    yield ("s1=RBNP/s1",)


@relation(
    "mz_catalog.mz_default_privileges",
    "role_id text!, database_id text, schema_id text, object_type text!, grantee text!, privileges text!",
    kind="table",
)
def mz_default_privileges(ctx: Context) -> Iterator[Row]:
    yield ("p", None, None, "cluster", "s2", "U")
    yield ("p", None, None, "database", "s2", "U")
    yield ("p", None, None, "schema", "s2", "U")
    yield ("p", None, None, "type", "p", "U")


@relation("mz_catalog.mz_timezone_names", "name text!", kind="view")
def mz_timezone_names(ctx: Context) -> Iterator[Row]:
    import zoneinfo

    for name in sorted(zoneinfo.available_timezones()):
        yield (name,)


@relation(
    "mz_catalog.mz_cluster_replica_frontiers",
    "object_id text!, replica_id text!, write_frontier mz_timestamp",
    live=True,
)
def mz_cluster_replica_frontiers(ctx: Context) -> Iterator[Row]:
    if ctx.runtime is not None:
        yield from ctx.runtime.replica_frontiers()


@relation(
    "mz_catalog.mz_functions",
    "id text!, oid oid!, schema_id text!, name text!, argument_type_ids text[]!, variadic_argument_type_id text, "
    "return_type_id text, returns_set bool!, owner_id text!",
    kind="table",
)
def mz_functions(ctx: Context) -> Iterator[Row]:
    from adapter.catalog.builtin.functions import functions

    for f in functions():
        args = array(*[bt.type_id(o) for o in f.argument_oids])
        variadic = bt.type_id(f.variadic_oid) if f.variadic_oid else None
        returns = bt.type_id(f.return_oid) if f.return_oid else None
        yield (f"s{f.oid}", f.oid, AMBIENT_IDS[f.schema], f.name, args, variadic, returns, f.returns_set, "s1")


@relation(
    "mz_catalog.mz_operators",
    "oid oid!, name text!, argument_type_ids text[]!, return_type_id text",
    kind="table",
)
def mz_operators(ctx: Context) -> Iterator[Row]:
    from adapter.catalog.builtin.functions import operators

    for f in operators():
        yield (f.oid, f.name, array(*[bt.type_id(o) for o in f.argument_oids]), bt.type_id(f.return_oid))


empty("mz_catalog.mz_sinks",
    "id text!, oid oid!, schema_id text!, name text!, type text!, connection_id text, size text, envelope_type text, "
    "format text, key_format text, value_format text, cluster_id text!, owner_id text!, create_sql text!, "
    "redacted_create_sql text!", kind="table")  # fmt: skip
empty("mz_catalog.mz_connections",
    "id text!, oid oid!, schema_id text!, name text!, type text!, owner_id text!, privileges mz_aclitem[]!, "
    "create_sql text, redacted_create_sql text", kind="table")  # fmt: skip
empty("mz_catalog.mz_secrets",
    "id text!, oid oid!, schema_id text!, name text!, owner_id text!, privileges mz_aclitem[]!", kind="table")  # fmt: skip
empty("mz_catalog.mz_ssh_tunnel_connections", "id text!, public_key_1 text!, public_key_2 text!", kind="table")
empty("mz_catalog.mz_kafka_connections", "id text!, brokers text[]!, sink_progress_topic text!", kind="table")
empty("mz_catalog.mz_kafka_sinks", "id text!, topic text!", kind="table")
empty("mz_catalog.mz_kafka_sources", "id text!, group_id_prefix text!, topic text!", kind="table")
empty("mz_catalog.mz_egress_ips", "egress_ip text!, prefix_length int4!, cidr text!", kind="table")
empty(
    "mz_catalog.mz_role_auth", "role_id text!, role_oid oid!, password_hash text, updated_at timestamptz!", kind="table"
)
empty("mz_catalog.mz_audit_events",
    "id uint8!, event_type text!, object_type text!, details jsonb!, user text, occurred_at timestamptz!", kind="table")  # fmt: skip
empty("mz_catalog.mz_storage_usage", "object_id text!, size_bytes uint8!, collection_timestamp timestamptz!")
empty("mz_catalog.mz_recent_storage_usage", "object_id text!, size_bytes uint8")
empty("mz_catalog.mz_iceberg_sinks", "id text!, namespace text!, table text!", kind="table")
