"""information_schema: the SQL standard's view of the session's database."""

from __future__ import annotations

from collections.abc import Iterator

from adapter.catalog.builtin.describe import AnyRelation, relations, schema_visible, visible
from adapter.catalog.builtin.mz_catalog import column_defaults
from adapter.catalog.builtin.relation import Context, Row, empty, relation
from adapter.catalog.builtin.texts import definition, type_text
from adapter.catalog.builtin.types import BY_KIND

TABLE_TYPES = {
    "table": "BASE TABLE",
    "source": "SOURCE",
    "view": "VIEW",
    "materialized-view": "MATERIALIZED VIEW",
}


def _names(ctx: Context, r: AnyRelation) -> tuple[str, str]:
    """(catalog, schema) of a relation."""
    return ctx.database, ctx.state.schemas[r.schema_id].name


@relation("information_schema.schemata", "catalog_name text, schema_name text, schema_owner text", per_database=True)
def schemata(ctx: Context) -> Iterator[Row]:
    for s in ctx.state.schemas.values():
        if schema_visible(ctx, s.database_id):
            yield (ctx.database, s.name, ctx.state.owner_name(s.owner))


@relation(
    "information_schema.tables",
    "table_catalog text, table_schema text!, table_name text!, table_type text!, is_insertable_into text",
    per_database=True,
)
def tables(ctx: Context) -> Iterator[Row]:
    for r in relations(ctx):
        if r.kind in TABLE_TYPES and visible(ctx, r):
            insertable = "YES" if r.kind == "table" and not r.builtin else "NO"
            yield (*_names(ctx, r), r.name, TABLE_TYPES[r.kind], insertable)


@relation(
    "information_schema.columns",
    "table_catalog text, table_schema text!, table_name text!, column_name text!, ordinal_position int8!, "
    "column_default text, is_nullable text!, data_type text!, character_maximum_length int4, numeric_precision int4, "
    "numeric_scale int4, udt_catalog text, udt_schema text, udt_name text, is_identity text, identity_generation text, "
    "is_generated text, collation_name text, datetime_precision int4",
    per_database=True,
)
def columns(ctx: Context) -> Iterator[Row]:
    for r in relations(ctx):
        if r.desc is None or not visible(ctx, r):
            continue
        defaults = column_defaults(ctx, r.id)
        for i, (name, col) in enumerate(zip(r.desc.names, r.desc.typ.columns)):
            typ = col.scalar
            udt = BY_KIND[typ.kind].name if typ.kind in BY_KIND else typ.kind
            default = defaults[i] if i < len(defaults) else None
            nullable = "YES" if col.nullable else "NO"
            precision = typ.precision if typ.kind == "numeric" else None
            yield (
                *_names(ctx, r), r.name, name, i + 1, default, nullable, type_text(typ.base()), typ.length, precision,
                typ.scale, ctx.database, "pg_catalog", udt, "NO", None, "NEVER", None, None,
            )  # fmt: skip


@relation(
    "information_schema.views",
    "table_catalog text, table_schema text!, table_name text!, view_definition text!",
    per_database=True,
)
def views(ctx: Context) -> Iterator[Row]:
    for r in relations(ctx):
        if r.kind == "view" and visible(ctx, r):
            yield (*_names(ctx, r), r.name, definition(ctx.state, r.id))


@relation(
    "information_schema.character_sets",
    "character_set_catalog text, character_set_schema text, character_set_name text!, character_repertoire text!, "
    "form_of_use text!, default_collate_catalog text!, default_collate_schema text, default_collate_name text",
    per_database=True,
)
def character_sets(ctx: Context) -> Iterator[Row]:
    yield (None, None, "UTF8", "UCS", "UTF8", ctx.database, "pg_catalog", "C")


@relation("information_schema.enabled_roles", "role_name text!")
def enabled_roles(ctx: Context) -> Iterator[Row]:
    for r in ctx.state.roles.values():
        yield (r.name,)


_CONSTRAINT = "constraint_catalog text, constraint_schema text, constraint_name text"
empty("information_schema.table_constraints",
    f"{_CONSTRAINT}, table_catalog text, table_schema text, table_name text, constraint_type text, is_deferrable text, "
    "initially_deferred text, enforced text, nulls_distinct text")  # fmt: skip
empty("information_schema.key_column_usage",
    f"{_CONSTRAINT}, table_catalog text, table_schema text, table_name text, column_name text, ordinal_position int4, "
    "position_in_unique_constraint int4")  # fmt: skip
empty("information_schema.referential_constraints",
    f"{_CONSTRAINT}, unique_constraint_catalog text, unique_constraint_schema text, unique_constraint_name text, "
    "match_option text, update_rule text, delete_rule text")  # fmt: skip
empty("information_schema.constraint_column_usage",
    f"table_catalog text, table_schema text, table_name text, column_name text, {_CONSTRAINT}")  # fmt: skip
empty("information_schema.routines",
    "routine_catalog text, routine_schema text, routine_name text, routine_type text, routine_definition text")  # fmt: skip
empty("information_schema.triggers",
    "trigger_catalog text, trigger_schema text, trigger_name text, event_manipulation text, event_object_catalog text, "
    "event_object_schema text, event_object_table text, action_order int4, action_condition text, action_statement text, "
    "action_orientation text, action_timing text")  # fmt: skip
empty("information_schema.applicable_roles", "grantee text!, role_name text!, is_grantable text!")
empty("information_schema.sequences", "sequence_catalog text, sequence_schema text, sequence_name text")
empty("information_schema.table_privileges",
    "grantor text, grantee text, table_catalog text, table_schema text, table_name text, privilege_type text, "
    "is_grantable text, with_hierarchy text")  # fmt: skip
empty("information_schema.role_table_grants",
    "grantor text, grantee text, table_catalog text, table_schema text, table_name text, privilege_type text, "
    "is_grantable text, with_hierarchy text")  # fmt: skip
