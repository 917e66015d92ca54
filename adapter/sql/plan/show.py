"""SHOW of objects and definitions: queries over the catalog's relations, written as SQL and planned like any other."""

from __future__ import annotations

from adapter.sql import ast, hir
from adapter.sql import plans as p
from adapter.sql import statements as st
from adapter.sql.plan.coerce import literal
from adapter.sql.plan.context import PlanContext
from adapter.sql.plan.query import PlannedQuery, plan_query
from adapter.sql.plan.reads import finish_select
from adapter.sql.unparse import pretty, string
from mzlite.repr.errors import SqlError, unsupported
from mzlite.repr.types import TEXT

# what -> (catalog relation, object type in mz_objects' words)
_BY_SCHEMA = {
    "tables": "table",
    "views": "view",
    "materialized views": "materialized-view",
    "sources": "source",
    "sinks": "sink",
    "subsources": "source",
    "secrets": "secret",
    "connections": "connection",
    "types": "type",
    "objects": "",
}


def _comment(kind: str) -> str:
    """The comment on o, an object of that kind (an SQL expression): ids are unique only within a kind."""
    return (
        "coalesce((SELECT max(c.comment) FROM mz_internal.mz_comments c "
        f"WHERE c.id = o.id AND c.object_type = {kind} AND c.object_sub_id IS NULL), '')"
    )


_DATABASE_COMMENT = _comment("'database'")
_SCHEMA_COMMENT = _comment("'schema'")
_CLUSTER_COMMENT = _comment("'cluster'")
_REPLICA_COMMENT = _comment("'cluster-replica'")
_ROLE_COMMENT = _comment("'role'")
_ITEM_COMMENT = _comment("o.type")
_VIEW_COMMENT = _comment("'materialized-view'")
_SOURCE_COMMENT = _comment("'source'")
_INDEX_COMMENT = _comment("'index'")


def plan_show(ctx: PlanContext, statement: st.Show | st.ShowCreate) -> p.Plan:
    import dataclasses

    return dataclasses.replace(finish_select(ctx, plan_show_query(ctx, statement)), is_show=True)


def plan_show_query(ctx: PlanContext, statement: ast.Node) -> PlannedQuery:
    if ctx.in_view:
        raise SqlError("0A000", "SHOW commands are not allowed in views")
    match statement:
        case st.ShowCreate():
            return _show_create(ctx, statement)
        case st.Show():
            return _planned(ctx, _filtered(_query(ctx, statement), statement), statement)
        case st.ShowVariable():
            raise unsupported("SHOW variable in subqueries")
    raise unsupported("SHOW in a query")


def _rows(names: tuple[str, ...], rows: list[tuple[str | None, ...]]) -> PlannedQuery:
    types = (TEXT,) * len(names)
    encoded = tuple(tuple(literal(TEXT, v).value for v in row) for row in rows)
    rel = hir.Constant(encoded, types, (True,) * len(names))
    return PlannedQuery(rel, names, types, tuple(range(len(names))), types)


def _filtered(sql: tuple[str, str], statement: st.Show) -> str:
    """LIKE and the order; WHERE is added to the tree."""
    query, order = sql
    if statement.like is not None:
        column = "replica" if statement.what == "cluster replicas" else "name"
        query = f"SELECT * FROM ({query}) s WHERE {column} LIKE {string(statement.like)}"
    if statement.what == "columns":
        query = f"SELECT name, nullable, type, comment FROM ({query}) s"
    return f"{query} ORDER BY {order}"


def _planned(ctx: PlanContext, sql: str, statement: st.Show) -> PlannedQuery:
    from adapter.sql.parse import parse_statements

    (parsed,) = parse_statements(sql)
    assert isinstance(parsed, st.SelectStatement)
    query = parsed.query
    if statement.where is not None:
        # The filter sees the columns that SHOW shows.
        inner = ast.Derived(ast.Query(query.body), ast.Alias("s"))
        order_by = () if statement.what == "columns" else query.order_by
        query = ast.Query(ast.Select((ast.SelectItem(ast.Star()),), (inner,), statement.where), order_by=order_by)
    return plan_query(ctx, query, [])


# ---- the queries


def _query(ctx: PlanContext, statement: st.Show) -> tuple[str, str]:
    """(SELECT, ORDER BY) for a SHOW."""
    match statement.what:
        case "databases":
            return f"SELECT o.name, {_DATABASE_COMMENT} AS comment FROM mz_catalog.mz_databases o", "name"
        case "schemas":
            database = ctx.session.database if statement.on is None else statement.on[-1]
            if ctx.catalog.resolve_database(database) is None:
                raise SqlError("3D000", f"unknown database '{database}'")
            return (
                f"SELECT o.name, {_SCHEMA_COMMENT} AS comment FROM mz_catalog.mz_schemas o "
                f"LEFT JOIN mz_catalog.mz_databases d ON o.database_id = d.id WHERE d.name IS NULL OR d.name = {string(database)}",
                "name",
            )
        case "clusters":
            replicas = (
                "(SELECT string_agg(r.name || ' (' || coalesce(r.size, '') || ')', ', ' ORDER BY r.name) "
                "FROM mz_catalog.mz_cluster_replicas r WHERE r.cluster_id = o.id)"
            )
            return (
                f"SELECT o.name, coalesce({replicas}, '') AS replicas, {_CLUSTER_COMMENT} AS comment FROM mz_catalog.mz_clusters o",
                "name",
            )
        case "cluster replicas":
            return (
                "SELECT cl.name AS cluster, o.name AS replica, o.size, true AS ready, "
                f"{_REPLICA_COMMENT} AS comment FROM mz_catalog.mz_cluster_replicas o JOIN mz_catalog.mz_clusters cl ON cl.id = o.cluster_id",
                "cluster, replica",
            )
        case "roles":
            return (
                f"SELECT o.name, {_ROLE_COMMENT} AS comment FROM mz_catalog.mz_roles o WHERE o.id NOT LIKE 's%' AND o.id NOT LIKE 'g%'",
                "name",
            )
        case "columns":
            return _columns(ctx, statement)
        case "indexes":
            return _indexes(ctx, statement)
        case what if what in _BY_SCHEMA:
            return _objects(ctx, statement)
        case "privileges":
            columns = ["grantor", "grantee", "database", "schema", "name", "object_type", "privilege_type"]
            return "SELECT " + ", ".join(f"'' AS {c}" for c in columns) + " WHERE false", "grantor"
        case what:
            raise unsupported(f"SHOW {what.upper()}")


def _schema_condition(ctx: PlanContext, statement: st.Show) -> str:
    """Restriction of `s` (schemas) and `d` (databases) to the schema that is shown."""
    session = ctx.session
    if statement.on is not None:
        ref = ctx.catalog.resolve_schema(statement.on, session.database)
        if ref is None:
            if len(statement.on) == 2 and ctx.catalog.resolve_database(statement.on[0]) is None:
                raise SqlError("3D000", f"unknown database '{statement.on[0]}'")
            raise SqlError("3F000", f"unknown schema '{'.'.join(statement.on)}'")
    else:
        for schema in session.search_path:
            ref = ctx.catalog.resolve_schema((schema,), session.database)
            if ref is not None:
                break
        else:
            raise SqlError("3F000", "no valid schema selected")
    database = "d.name IS NULL" if ref.database is None else f"d.name = {string(ref.database)}"
    return f"s.name = {string(ref.schema)} AND {database}"


_SCHEMAS = (
    "JOIN mz_catalog.mz_schemas s ON s.id = o.schema_id LEFT JOIN mz_catalog.mz_databases d ON d.id = s.database_id"
)


def _objects(ctx: PlanContext, statement: st.Show) -> tuple[str, str]:
    kind = _BY_SCHEMA[statement.what]
    where = _schema_condition(ctx, statement)
    cluster = ""
    if statement.in_cluster is not None:
        if ctx.catalog.resolve_cluster(statement.in_cluster) is None:
            raise SqlError("42704", f"unknown cluster '{statement.in_cluster}'")
        cluster = f" AND cl.name = {string(statement.in_cluster)}"
    if statement.what == "objects":
        return (
            f"SELECT o.name, o.type, {_ITEM_COMMENT} AS comment FROM mz_catalog.mz_objects o {_SCHEMAS} WHERE {where}",
            "name",
        )
    if statement.what == "materialized views":
        return (
            f"SELECT o.name, cl.name AS cluster, {_VIEW_COMMENT} AS comment FROM mz_catalog.mz_materialized_views o {_SCHEMAS} "
            f"JOIN mz_catalog.mz_clusters cl ON cl.id = o.cluster_id WHERE {where}{cluster}",
            "name",
        )
    if statement.what in ("sources", "subsources"):
        return (
            f"SELECT o.name, o.type, cl.name AS cluster, {_SOURCE_COMMENT} AS comment FROM mz_catalog.mz_sources o {_SCHEMAS} "
            f"LEFT JOIN mz_catalog.mz_clusters cl ON cl.id = o.cluster_id WHERE {where}{cluster}",
            "name",
        )
    if statement.what == "sinks":
        return (
            f"SELECT o.name, o.type, '' AS cluster, {_ITEM_COMMENT} AS comment FROM mz_catalog.mz_objects o {_SCHEMAS} "
            f"WHERE o.type = 'sink' AND {where}",
            "name",
        )
    return (
        f"SELECT o.name, {_ITEM_COMMENT} AS comment FROM mz_catalog.mz_objects o {_SCHEMAS} WHERE o.type = {string(kind)} AND {where}",
        "name",
    )


def _columns(ctx: PlanContext, statement: st.Show) -> tuple[str, str]:
    assert statement.on is not None
    item = ctx.resolve(statement.on, statement.pos)
    if item.desc is None:
        raise SqlError(
            "42809",
            f"{item.name} is {'an' if item.kind[0] in 'aeiou' else 'a'} {item.kind} and so does not have columns",
        )
    comment = "coalesce((SELECT max(c.comment) FROM mz_internal.mz_comments c WHERE c.id = o.id AND c.object_sub_id = o.position::int4), '')"
    return (
        f"SELECT o.name, o.nullable, o.type, {comment} AS comment, o.position FROM mz_catalog.mz_columns o WHERE o.id = {string(item.id)}",
        "position",
    )


def _indexes(ctx: PlanContext, statement: st.Show) -> tuple[str, str]:
    where = ""
    if statement.on is not None and not _is_schema(ctx, statement):
        item = ctx.resolve(statement.on, statement.pos)
        if item.desc is None:
            raise SqlError(
                "42809",
                f"cannot show indexes on {item.name} because it is {'an' if item.kind[0] in 'aeiou' else 'a'} {item.kind}",
            )
        where = f"o.on_id = {string(item.id)}"
    else:
        where = _schema_condition(ctx, statement)
    if statement.in_cluster is not None:
        if ctx.catalog.resolve_cluster(statement.in_cluster) is None:
            raise SqlError("42704", f"unknown cluster '{statement.in_cluster}'")
        where += f" AND cl.name = {string(statement.in_cluster)}"
    key = (
        "ARRAY(SELECT coalesce(mc.name, ic.on_expression) FROM mz_catalog.mz_index_columns ic "
        "LEFT JOIN mz_catalog.mz_columns mc ON mc.id = o.on_id AND mc.position = ic.on_position "
        "WHERE ic.index_id = o.id ORDER BY ic.index_position)"
    )
    return (
        f'SELECT o.name, r.name AS "on", cl.name AS cluster, {key} AS key, {_INDEX_COMMENT} AS comment '
        "FROM mz_catalog.mz_indexes o JOIN mz_catalog.mz_relations r ON r.id = o.on_id "
        "JOIN mz_catalog.mz_clusters cl ON cl.id = o.cluster_id "
        "JOIN mz_catalog.mz_schemas s ON s.id = r.schema_id LEFT JOIN mz_catalog.mz_databases d ON d.id = s.database_id "
        f"WHERE {where}",
        "name",
    )


def _is_schema(ctx: PlanContext, statement: st.Show) -> bool:
    """SHOW INDEXES FROM schema, against SHOW INDEXES ON relation: the relation wins when both exist."""
    assert statement.on is not None
    session = ctx.session
    if ctx.catalog.resolve_item(statement.on, session.database, session.search_path) is not None:
        return False
    return len(statement.on) <= 2 and ctx.catalog.resolve_schema(statement.on, session.database) is not None


# ---- SHOW CREATE


def _show_create(ctx: PlanContext, statement: st.ShowCreate) -> PlannedQuery:
    kind = statement.kind
    if kind == "cluster":
        return _show_cluster(ctx, statement)
    session = ctx.session
    if kind == "type":
        item = ctx.catalog.resolve_type_item(statement.name, session.database, session.search_path)
        if item is None:
            raise ctx.missing_item(statement.name, statement.pos)
    else:
        item = ctx.resolve(statement.name, statement.pos)
    have = item.kind.replace("-", " ")
    if have != kind:
        hint = None
        if {have, kind} == {"view", "materialized view"}:
            hint = f"Use SHOW CREATE {have.upper()} to show a {have}."
        raise SqlError("42809", f"{item.name} is not {'an' if kind[0] in 'aeiou' else 'a'} {kind}", hint=hint)
    sql = item.create_sql
    if not sql:
        raise SqlError("0A000", f"cannot show create for system object {item.name}")
    return _rows(("name", "create_sql"), [(str(item.name), pretty(sql))])


def _show_cluster(ctx: PlanContext, statement: st.ShowCreate) -> PlannedQuery:
    cluster = ctx.catalog.resolve_cluster(statement.name[-1])
    if cluster is None:
        raise SqlError("42704", f"unknown cluster '{statement.name[-1]}'")
    from adapter.sql.unparse import ident

    if cluster.managed:
        size = cluster.replicas[0].size if cluster.replicas else ""
        options = [
            "INTROSPECTION DEBUGGING = false",
            "INTROSPECTION INTERVAL = INTERVAL '00:00:01'",
            "MANAGED = true",
            f"REPLICATION FACTOR = {len(cluster.replicas)}",
            f"SIZE = {string(size)}",
            "SCHEDULE = MANUAL",
        ]
        sql = f"CREATE CLUSTER {ident(cluster.name)} ({', '.join(options)})"
    else:
        replicas = ", ".join(f"{ident(r.name)} (SIZE = {string(r.size)})" for r in cluster.replicas)
        sql = f"CREATE CLUSTER {ident(cluster.name)} (REPLICAS ({replicas}))"
    return _rows(("name", "create_sql"), [(cluster.name, sql)])
