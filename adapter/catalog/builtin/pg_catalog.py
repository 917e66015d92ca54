"""pg_catalog: what psql, drivers and tools ask for. Only the session's database and the ambient schemas are shown."""

from __future__ import annotations

from collections.abc import Iterator

from adapter.catalog.builtin import types as bt
from adapter.catalog.builtin.describe import (
    AnyRelation,
    index_column,
    no_privileges,
    relations,
    schema_visible,
    type_length,
    type_mod,
    type_oid,
    visible,
)
from adapter.catalog.builtin.mz_catalog import column_defaults
from adapter.catalog.builtin.relation import Context, Row, empty, relation
from adapter.catalog.builtin.texts import create_sql, definition
from adapter.catalog.objects import CommentKey, TypeDetails
from adapter.catalog.state import AMBIENT_IDS, MZ_SYSTEM_ROLE

RELKINDS = {"table": "r", "source": "r", "index": "i", "view": "v", "materialized-view": "m"}


def shown(ctx: Context) -> list[AnyRelation]:
    return [r for r in relations(ctx) if visible(ctx, r)]


def schema_oid(ctx: Context, schema_id: str) -> int:
    schema = ctx.state.schemas.get(schema_id)
    return schema.oid if schema is not None else 0


def role_oid(ctx: Context, role_id: str) -> int:
    role = ctx.state.roles.get(role_id) or ctx.state.roles.get(MZ_SYSTEM_ROLE)
    return role.oid if role is not None else 10


@relation("pg_catalog.pg_namespace", "oid oid!, nspname text!, nspowner oid!, nspacl mz_aclitem[]", per_database=True)
def pg_namespace(ctx: Context) -> Iterator[Row]:
    for s in ctx.state.schemas.values():
        if schema_visible(ctx, s.database_id):
            yield (s.oid, s.name, role_oid(ctx, s.owner), None)


# The access method clients are told indexes have: psql describes no index without one.
BTREE = 403


@relation(
    "pg_catalog.pg_class",
    "oid oid!, relname text!, relnamespace oid!, reloftype oid!, relowner oid!, relam oid!, reltablespace oid!, "
    "reltuples float4!, reltoastrelid oid!, relhasindex bool!, relpersistence char!, relkind char!, relnatts int2!, "
    "relchecks int2!, relhasrules bool!, relhastriggers bool!, relhassubclass bool!, relrowsecurity bool!, "
    "relforcerowsecurity bool!, relreplident char!, relispartition bool!, relhasoids bool!, reloptions text[], "
    "relacl mz_aclitem[], relpartbound text, reltype oid!, relfilenode oid!, relpages int4!, relallvisible int4!",
    per_database=True,
)
def pg_class(ctx: Context) -> Iterator[Row]:
    for r in shown(ctx):
        if r.kind not in RELKINDS:
            continue
        attributes = len(r.desc.names) if r.desc is not None else len(r.key)
        has_index = bool(ctx.state.indexes.get(r.id))
        namespace = schema_oid(ctx, r.schema_id)
        method = BTREE if r.kind == "index" else 0
        yield (
            r.oid, r.name, namespace, 0, role_oid(ctx, r.owner), method, 0, -1.0, 0, has_index, "p", RELKINDS[r.kind],
            attributes, 0, False, False, False, False, False, "d", False, False, None, None, None, 0, 0, 0, 0,
        )  # fmt: skip


@relation(
    "pg_catalog.pg_attribute",
    "attrelid oid!, attname text!, atttypid oid!, attlen int2!, attnum int2!, atttypmod int4!, attndims int2!, "
    "attnotnull bool!, atthasdef bool!, attidentity char!, attgenerated char!, attisdropped bool!, attcollation oid!, "
    "attstattarget int4!, attstorage char!, attislocal bool!, attinhcount int4!, attacl mz_aclitem[], attoptions text[], "
    "attfdwoptions text[], attmissingval text, attalign char!, attbyval bool!, attcompression char!",
    per_database=True,
)
def pg_attribute(ctx: Context) -> Iterator[Row]:
    by_id = {r.id: r for r in relations(ctx)}
    for r in shown(ctx):
        if r.desc is not None:
            defaults = column_defaults(ctx, r.id)
            for i, (name, col) in enumerate(zip(r.desc.names, r.desc.typ.columns)):
                oid = type_oid(ctx.state, col.scalar)
                has_default = i < len(defaults) and defaults[i] is not None
                yield _attribute(r.oid, name, oid, i + 1, type_mod(col.scalar), not col.nullable, has_default)
        elif r.on_id is not None:
            desc = by_id[r.on_id].desc
            assert desc is not None
            for i, e in enumerate(r.key):
                on = index_column(desc, e)
                if on is None:
                    yield _attribute(r.oid, f"expr{i + 1}", 25, i + 1, -1, False, False)
                else:
                    scalar = desc.typ.columns[on - 1].scalar
                    oid = type_oid(ctx.state, scalar)
                    yield _attribute(r.oid, desc.names[on - 1], oid, i + 1, type_mod(scalar), False, False)


def _attribute(relid: int, name: str, oid: int, n: int, mod: int, notnull: bool, default: bool) -> Row:
    return (
        relid, name, oid, type_length(oid), n, mod, 0, notnull, default, "", "", False, 0, -1, "p", True, 0, None, None,
        None, None, "i", False, "",
    )  # fmt: skip


@relation(
    "pg_catalog.pg_type",
    "oid oid!, typname text!, typnamespace oid!, typowner oid!, typlen int2!, typbyval bool!, typtype char!, "
    "typcategory char!, typispreferred bool!, typisdefined bool!, typdelim char!, typrelid oid!, typelem oid!, "
    "typarray oid!, typinput regproc!, typoutput regproc!, typreceive regproc!, typsend regproc!, typnotnull bool!, "
    "typbasetype oid!, typtypmod int4!, typcollation oid!, typdefault text, typacl mz_aclitem[], typndims int4!, "
    "typsubscript regproc!, typalign char!, typstorage char!",
    per_database=True,
)
def pg_type(ctx: Context) -> Iterator[Row]:
    owner = role_oid(ctx, MZ_SYSTEM_ROLE)
    for b in bt.BUILTIN_TYPES:
        namespace = schema_oid(ctx, AMBIENT_IDS[b.schema])
        typtype = "p" if b.pseudo else "r" if b.category == "R" else "b"
        yield _type(b.oid, b.name, namespace, owner, b.length, typtype, b.category, b.element, b.array)
    for item in ctx.user_items("type"):
        assert isinstance(item.details, TypeDetails)
        schema = ctx.state.schemas.get(item.schema_id)
        if schema is None or not schema_visible(ctx, schema.database_id):
            continue
        typtype = "c" if item.details.typ.kind == "record" else "b"
        yield _type(item.oid, item.name, schema.oid, role_oid(ctx, item.owner), -1, typtype, "U", 0, 0)


def _type(oid: int, name: str, ns: int, owner: int, length: int, typtype: str, cat: str, elem: int, array: int) -> Row:
    # Drivers tell an array by typinput = array_in (regproc 750).
    typinput = 750 if cat == "A" and elem else 0
    return (
        oid, name, ns, owner, length, 0 < length <= 8, typtype, cat, False, True, ",", 0, elem, array, typinput, 0, 0, 0,
        False, 0, -1, 0, None, None, 0, 0, "i", "p",
    )  # fmt: skip


@relation(
    "pg_catalog.pg_database",
    "oid oid!, datname text!, datdba oid!, encoding int4!, datistemplate bool!, datallowconn bool!, datcollate text!, "
    "datctype text!, datacl mz_aclitem[], datconnlimit int4!, datlocprovider char!, daticulocale text, "
    "datcollversion text, dattablespace oid!",
)
def pg_database(ctx: Context) -> Iterator[Row]:
    for d in ctx.state.databases.values():
        owner = role_oid(ctx, d.owner)
        yield (d.oid, d.name, owner, 6, False, True, "C", "C", None, -1, "c", None, None, 0)


@relation(
    "pg_catalog.pg_index",
    "indexrelid oid!, indrelid oid!, indnatts int2!, indnkeyatts int2!, indisunique bool!, indisprimary bool!, "
    "indimmediate bool!, indisclustered bool!, indisvalid bool!, indisready bool!, indislive bool!, indisreplident bool!, "
    "indisexclusion bool!, indkey int2vector!, indoption int2vector!, indexprs text, indpred text, indcheckxmin bool!, "
    "indcollation text, indclass text",
    per_database=True,
)
def pg_index(ctx: Context) -> Iterator[Row]:
    by_id = {r.id: r for r in relations(ctx)}
    for r in shown(ctx):
        if r.on_id is None:
            continue
        on = by_id[r.on_id]
        assert on.desc is not None
        key = tuple(index_column(on.desc, e) or 0 for e in r.key)
        exprs = "expressions" if 0 in key else None
        n = len(key)
        yield (
            r.oid, on.oid, n, n, False, False, True, False, True, True, True, False, False, key, (0,) * n, exprs, None,
            False, None, None,
        )  # fmt: skip


@relation(
    "pg_catalog.pg_description", "objoid oid!, classoid oid!, objsubid int4!, description text!", per_database=True
)
def pg_description(ctx: Context) -> Iterator[Row]:
    class_oid = next((r.oid for r in relations(ctx) if r.name == "pg_class"), 1259)
    for r in shown(ctx):
        for column in (None, *range(1, (len(r.desc.names) if r.desc is not None else 0) + 1)):
            text = ctx.state.comments.get(CommentKey(r.kind, str(r.id), column))
            if text is not None:
                yield (r.oid, class_oid, column or 0, text)


@relation("pg_catalog.pg_attrdef", "oid oid!, adrelid oid!, adnum int2!, adbin text!, adsrc text!", per_database=True)
def pg_attrdef(ctx: Context) -> Iterator[Row]:
    for r in shown(ctx):
        for i, text in enumerate(column_defaults(ctx, r.id)):
            if text is not None:
                yield (r.oid, r.oid, i + 1, text, text)


@relation(
    "pg_catalog.pg_roles",
    "oid oid!, rolname text!, rolsuper bool, rolinherit bool!, rolcreaterole bool, rolcreatedb bool, rolcanlogin bool, "
    "rolreplication bool!, rolconnlimit int4!, rolpassword text!, rolvaliduntil timestamptz, rolbypassrls bool!, "
    "rolconfig text[]",
)
def pg_roles(ctx: Context) -> Iterator[Row]:
    for r in ctx.state.roles.values():
        superuser = r.id == MZ_SYSTEM_ROLE
        yield (
            r.oid, r.name, superuser, r.inherit, superuser, superuser, True, False, -1, "********", None, False, None,
        )  # fmt: skip


@relation(
    "pg_catalog.pg_authid",
    "oid oid!, rolname text!, rolsuper bool, rolinherit bool!, rolcreaterole bool, rolcreatedb bool, rolcanlogin bool, "
    "rolreplication bool!, rolbypassrls bool!, rolconnlimit int4!, rolpassword text, rolvaliduntil timestamptz",
)
def pg_authid(ctx: Context) -> Iterator[Row]:
    for r in ctx.state.roles.values():
        superuser = r.id == MZ_SYSTEM_ROLE
        yield (r.oid, r.name, superuser, r.inherit, superuser, superuser, True, False, False, -1, None, None)


@relation(
    "pg_catalog.pg_user",
    "usename text!, usesysid oid!, usecreatedb bool!, usesuper bool!, userepl bool!, usebypassrls bool!, passwd text, "
    "valuntil timestamptz, useconfig text[]",
)
def pg_user(ctx: Context) -> Iterator[Row]:
    for r in ctx.state.roles.values():
        superuser = r.id == MZ_SYSTEM_ROLE
        yield (r.name, r.oid, superuser, superuser, False, False, None, None, None)


@relation("pg_catalog.pg_auth_members", "roleid oid!, member oid!, grantor oid!, admin_option bool!")
def pg_auth_members(ctx: Context) -> Iterator[Row]:
    for r in ctx.state.roles.values():
        for group in r.member_of:
            yield (role_oid(ctx, group), r.oid, role_oid(ctx, MZ_SYSTEM_ROLE), False)


@relation(
    "pg_catalog.pg_tables",
    "schemaname text, tablename text!, tableowner text!, tablespace text, hasindexes bool!, hasrules bool!, "
    "hastriggers bool!, rowsecurity bool!",
    per_database=True,
)
def pg_tables(ctx: Context) -> Iterator[Row]:
    for r in shown(ctx):
        if r.kind == "table":
            schema = ctx.state.schemas[r.schema_id].name
            has_index = bool(ctx.state.indexes.get(r.id))
            yield (schema, r.name, ctx.state.owner_name(r.owner), None, has_index, False, False, False)


@relation(
    "pg_catalog.pg_views", "schemaname text, viewname text!, viewowner text!, definition text!", per_database=True
)
def pg_views(ctx: Context) -> Iterator[Row]:
    for r in shown(ctx):
        if r.kind == "view":
            owner = ctx.state.owner_name(r.owner)
            yield (ctx.state.schemas[r.schema_id].name, r.name, owner, definition(ctx.state, r.id))


@relation(
    "pg_catalog.pg_matviews",
    "schemaname text, matviewname text!, matviewowner text!, tablespace text, hasindexes bool!, ispopulated bool!, "
    "definition text!",
    per_database=True,
)
def pg_matviews(ctx: Context) -> Iterator[Row]:
    for r in shown(ctx):
        if r.kind == "materialized-view":
            owner = ctx.state.owner_name(r.owner)
            has_index = bool(ctx.state.indexes.get(r.id))
            text = definition(ctx.state, r.id)
            yield (ctx.state.schemas[r.schema_id].name, r.name, owner, None, has_index, True, text)


@relation(
    "pg_catalog.pg_indexes",
    "schemaname text, tablename text!, indexname text!, tablespace text, indexdef text",
    per_database=True,
)
def pg_indexes(ctx: Context) -> Iterator[Row]:
    by_id = {r.id: r for r in relations(ctx)}
    for r in shown(ctx):
        if r.on_id is not None:
            schema = ctx.state.schemas[r.schema_id].name
            yield (schema, by_id[r.on_id].name, r.name, None, create_sql(ctx.state, r.id))


@relation(
    "pg_catalog.pg_proc",
    "oid oid!, proname text!, pronamespace oid!, proowner oid!, proargdefaults text, prorettype oid!, proretset bool!, "
    "prokind char!, proargtypes oid[], pronargs int2!, provariadic oid!, proisagg bool!",
)
def pg_proc(ctx: Context) -> Iterator[Row]:
    from adapter.catalog.builtin.describe import array
    from adapter.catalog.builtin.functions import functions

    owner = role_oid(ctx, MZ_SYSTEM_ROLE)
    yield (750, "array_in", schema_oid(ctx, "s2"), owner, None, 2277, False, "f", array(), 1, 0, False)
    for f in functions():
        args = array(*f.argument_oids)
        namespace = schema_oid(ctx, AMBIENT_IDS[f.schema])
        yield (
            f.oid, f.name, namespace, owner, None, f.return_oid, f.returns_set, "f", args, len(f.argument_oids),
            f.variadic_oid, False,
        )  # fmt: skip


@relation("pg_catalog.pg_range", "rngtypid oid!, rngsubtype oid!, rngmultitypid oid!, rngcollation oid!")
def pg_range(ctx: Context) -> Iterator[Row]:
    for b in bt.BUILTIN_TYPES:
        if b.range_of:
            yield (b.oid, b.range_of, 0, 0)


@relation(
    "pg_catalog.pg_collation",
    "oid oid!, collname text!, collnamespace oid!, collowner oid!, collprovider char!, collencoding int4!, "
    "collcollate text!, collctype text!",
)
def pg_collation(ctx: Context) -> Iterator[Row]:
    return iter(())


@relation("pg_catalog.pg_am", "oid oid!, amname text!, amhandler regproc!, amtype char!")
def pg_am(ctx: Context) -> Iterator[Row]:
    yield (BTREE, "btree", 0, "i")


@relation("pg_catalog.pg_tablespace", "oid oid!, spcname text!, spcowner oid, spcacl mz_aclitem[], spcoptions text[]")
def pg_tablespace(ctx: Context) -> Iterator[Row]:
    yield (1663, "pg_default", None, None, None)


@relation(
    "pg_catalog.pg_settings",
    "name text!, setting text!, unit text, category text, short_desc text, context text!, vartype text!, source text!",
    live=True,
)
def pg_settings(ctx: Context) -> Iterator[Row]:
    if ctx.runtime is not None:
        for name, value, description in ctx.runtime.settings():
            yield (name, value, None, None, description, "user", "string", "default")


@relation("pg_catalog.pg_timezone_names", "name text!, abbrev text!, utc_offset interval!, is_dst bool!")
def pg_timezone_names(ctx: Context) -> Iterator[Row]:
    import zoneinfo

    from mzlite.repr.datum import Interval

    for name in sorted(zoneinfo.available_timezones()):
        yield (name, name, Interval(0, 0, 0), False)


_ACL = no_privileges
empty("pg_catalog.pg_enum", "oid oid!, enumtypid oid!, enumsortorder float4!, enumlabel text!")
empty("pg_catalog.pg_constraint",
    "oid oid!, conname text!, connamespace oid!, contype char!, condeferrable bool!, condeferred bool!, "
    "convalidated bool!, conrelid oid!, contypid oid!, conindid oid!, conparentid oid!, confrelid oid!, confupdtype char!, "
    "confdeltype char!, confmatchtype char!, conislocal bool!, coninhcount int4!, connoinherit bool!, conkey int2[], "
    "confkey int2[], conpfeqop oid[], conppeqop oid[], conffeqop oid[], conexclop oid[], conbin text")  # fmt: skip
empty("pg_catalog.pg_inherits", "inhrelid oid!, inhparent oid!, inhseqno int4!, inhdetachpending bool!")
empty("pg_catalog.pg_policy",
    "oid oid!, polname text!, polrelid oid!, polcmd char!, polpermissive bool!, polroles oid[], polqual text, polwithcheck text")  # fmt: skip
empty("pg_catalog.pg_trigger",
    "oid oid!, tgrelid oid!, tgparentid oid!, tgname text!, tgfoid oid!, tgtype int2!, tgenabled char!, tgisinternal bool!, "
    "tgconstrrelid oid!, tgconstrindid oid!, tgconstraint oid!, tgdeferrable bool!, tginitdeferred bool!, tgnargs int2!")  # fmt: skip
empty(
    "pg_catalog.pg_rewrite",
    "oid oid!, rulename text!, ev_class oid!, ev_type char!, ev_enabled char!, is_instead bool!",
)
empty("pg_catalog.pg_depend",
    "classid oid, objid oid!, objsubid int4!, refclassid oid, refobjid oid!, refobjsubid int4!, deptype char!")  # fmt: skip
empty("pg_catalog.pg_shdepend",
    "dbid oid!, classid oid!, objid oid!, objsubid int4!, refclassid oid!, refobjid oid!, deptype char!")  # fmt: skip
empty("pg_catalog.pg_shdescription", "objoid oid!, classoid oid!, description text!")
empty("pg_catalog.pg_extension", "oid oid!, extname text!, extowner oid!, extnamespace oid!, extversion text!")
empty("pg_catalog.pg_language", "oid oid!, lanname text!, lanowner oid!, lanispl bool!, lanpltrusted bool!")
empty("pg_catalog.pg_aggregate", "aggfnoid oid!, aggkind char!, aggnumdirectargs int2!")
empty("pg_catalog.pg_event_trigger",
    "oid oid!, evtname text!, evtevent text!, evtowner oid!, evtfoid oid!, evtenabled char!, evttags text[]")  # fmt: skip
empty("pg_catalog.pg_publication",
    "oid oid!, pubname text!, pubowner oid!, puballtables bool!, pubinsert bool!, pubupdate bool!, pubdelete bool!, "
    "pubtruncate bool!, pubviaroot bool!")  # fmt: skip
empty("pg_catalog.pg_publication_rel", "oid oid!, prpubid oid!, prrelid oid!")
empty("pg_catalog.pg_publication_namespace", "oid oid!, pnpubid oid!, pnnspid oid!")
empty("pg_catalog.pg_publication_tables", "pubname text!, schemaname text!, tablename text!")
empty("pg_catalog.pg_subscription", "oid oid!, subdbid oid!, subname text!, subowner oid!, subenabled bool!")
empty("pg_catalog.pg_statistic_ext",
    "oid oid!, stxrelid oid!, stxname text!, stxnamespace oid!, stxowner oid!, stxstattarget int4!, stxkeys int2vector, "
    "stxkind text[]")  # fmt: skip
empty("pg_catalog.pg_partitioned_table", "partrelid oid!, partstrat char!, partnatts int2!, partdefid oid!")
empty("pg_catalog.pg_foreign_table", "ftrelid oid!, ftserver oid!, ftoptions text[]")
empty("pg_catalog.pg_foreign_server",
    "oid oid!, srvname text!, srvowner oid!, srvfdw oid!, srvtype text, srvversion text, srvacl mz_aclitem[], srvoptions text[]")  # fmt: skip
empty(
    "pg_catalog.pg_foreign_data_wrapper", "oid oid!, fdwname text!, fdwowner oid!, fdwhandler oid!, fdwvalidator oid!"
)
empty("pg_catalog.pg_sequence",
    "seqrelid oid!, seqtypid oid!, seqstart int8!, seqincrement int8!, seqmax int8!, seqmin int8!, seqcache int8!, seqcycle bool!")  # fmt: skip
empty("pg_catalog.pg_locks",
    "locktype text, database oid, relation oid, page int4, tuple int2, virtualxid text, transactionid text, classid oid, "
    "objid oid, objsubid int2, virtualtransaction text, pid int4, mode text, granted bool, fastpath bool, "
    "waitstart timestamptz")  # fmt: skip
empty("pg_catalog.pg_opclass", "oid oid!, opcname text!, opcmethod oid!, opcintype oid!, opcdefault bool!")
empty(
    "pg_catalog.pg_operator", "oid oid!, oprname text!, oprnamespace oid!, oprleft oid!, oprright oid!, oprresult oid!"
)
empty(
    "pg_catalog.pg_cast",
    "oid oid!, castsource oid!, casttarget oid!, castfunc oid!, castcontext char!, castmethod char!",
)
empty("pg_catalog.pg_conversion", "oid oid!, conname text!, connamespace oid!, conowner oid!")
empty(
    "pg_catalog.pg_default_acl",
    "oid oid!, defaclrole oid!, defaclnamespace oid!, defaclobjtype char!, defaclacl mz_aclitem[]!",
)
empty("pg_catalog.pg_largeobject_metadata", "oid oid!, lomowner oid!")
empty("pg_catalog.pg_seclabel", "objoid oid!, classoid oid!, objsubid int4!, provider text!, label text!")
empty("pg_catalog.pg_timezone_abbrevs", "abbrev text!, utc_offset interval, is_dst bool")
empty("pg_catalog.pg_ts_config", "oid oid!, cfgname text!, cfgnamespace oid!")
empty("pg_catalog.pg_ts_dict", "oid oid!, dictname text!, dictnamespace oid!")
empty("pg_catalog.pg_stat_activity",
    "datid oid, datname text, pid int4, usesysid oid, usename text, application_name text, client_addr text, state text, query text")  # fmt: skip
empty("pg_catalog.pg_stat_user_tables", "relid oid, schemaname text, relname text")
empty("pg_catalog.pg_sequences", "schemaname text, sequencename text, sequenceowner text")
empty("pg_catalog.pg_rules", "schemaname text, tablename text, rulename text, definition text")
