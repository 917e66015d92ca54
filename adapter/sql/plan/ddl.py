"""CREATE of namespaces, tables, views, indexes, types, sources."""

from __future__ import annotations

from typing import Any

from adapter.sql import ast, hir
from adapter.sql import plans as p
from adapter.sql import statements as st
from adapter.sql.catalog_view import CatalogItem, QualifiedName
from adapter.sql.plan import expr
from adapter.sql.plan.coerce import try_cast
from adapter.sql.plan.constants import fold_scalar, to_scalar
from adapter.sql.plan.context import PlanContext
from adapter.sql.plan.expr import ExprContext
from adapter.sql.plan.query import PlannedQuery, plan_query
from adapter.sql.plan.reads import view_relation
from adapter.sql.plan.types import resolve_type, type_words
from adapter.sql.unparse import Printer, ident, idents, string
from mzlite.expr.scalar import Literal, Ref, Scalar
from mzlite.repr.errors import SqlError, unsupported
from mzlite.repr.ids import ClusterId
from mzlite.repr.types import INTERVAL, MZ_TIMESTAMP, TEXT, ColumnType, RelationDesc, RelationType, ScalarType

# ---- names


def new_name(ctx: PlanContext, parts: tuple[str, ...]) -> QualifiedName:
    """Where an object of that name would be made."""
    session = ctx.session
    if len(parts) > 3:
        raise SqlError("42601", f"qualified name did not have between 1 and 3 components: {'.'.join(parts)}")
    if len(parts) == 1:
        for schema in session.search_path:
            found = ctx.catalog.resolve_schema((schema,), session.database)
            if found is not None:
                if found.database is None:
                    raise SqlError("42501", f"system schema '{found.schema}' cannot be modified")
                return QualifiedName(found.database, found.schema, parts[0])
        raise SqlError("3F000", "no valid schema selected")
    if len(parts) == 3 and ctx.catalog.resolve_database(parts[0]) is None:
        raise SqlError("3D000", f"unknown database '{parts[0]}'")
    ref = ctx.catalog.resolve_schema(parts[:-1], session.database)
    if ref is None:
        raise SqlError("3F000", f"unknown schema '{'.'.join(parts[:-1])}'")
    if ref.database is None:
        raise SqlError("42501", f"system schema '{ref.schema}' cannot be modified")
    return QualifiedName(ref.database, ref.schema, parts[-1])


def full_parts(name: QualifiedName) -> tuple[str, ...]:
    return (name.schema, name.item) if name.database is None else (name.database, name.schema, name.item)


def printer(ctx: PlanContext) -> Printer:
    """Prints with every catalog name in full."""
    session = ctx.session

    def qualify(parts: tuple[str, ...]) -> tuple[str, ...]:
        item = ctx.catalog.resolve_item(parts, session.database, session.search_path)
        return parts if item is None else full_parts(item.name)

    def qualify_type(parts: tuple[str, ...]) -> tuple[str, ...]:
        item = ctx.catalog.resolve_type_item(parts, session.database, session.search_path)
        return parts if item is None else full_parts(item.name)

    return Printer(qualify, qualify_type)


def replaced(ctx: PlanContext, name: QualifiedName, kind: str) -> CatalogItem | None:
    """What CREATE OR REPLACE replaces."""
    item = ctx.catalog.resolve_item(full_parts(name), ctx.session.database, ctx.session.search_path)
    if item is not None and item.kind != kind:
        words = kind.replace("-", " ")
        raise SqlError("42809", f'"{name}" is not a {words}')
    return item


# ---- namespaces


def plan_create_database(ctx: PlanContext, statement: st.CreateDatabase) -> p.Plan:
    return p.CreateDatabasePlan(statement.name, statement.if_not_exists)


def plan_create_schema(ctx: PlanContext, statement: st.CreateSchema) -> p.Plan:
    parts = statement.name
    if len(parts) > 2:
        raise SqlError("42601", f"schema name '{'.'.join(parts)}' cannot have more than two components")
    database = parts[0] if len(parts) == 2 else ctx.session.database
    if ctx.catalog.resolve_database(database) is None:
        raise SqlError("3D000", f"unknown database '{database}'")
    if parts[-1].startswith(("mz_", "pg_")):
        raise SqlError("42939", f"unacceptable schema name '{parts[-1]}'")
    return p.CreateSchemaPlan(database, parts[-1], statement.if_not_exists)


# ---- tables


def plan_create_table(ctx: PlanContext, statement: st.CreateTable) -> p.Plan:
    names: list[str] = []
    columns: list[ColumnType] = []
    defaults: list[Scalar | None] = []
    for column in statement.columns:
        if column.name in names:
            raise SqlError("42701", f'column "{column.name}" specified more than once', position=column.pos + 1)
        if column.unsupported is not None:
            raise unsupported(column.unsupported, position=column.pos + 1)
        typ = resolve_type(ctx, column.typ)
        names.append(column.name)
        columns.append(ColumnType(typ, not column.not_null))
        defaults.append(None if column.default is None else plan_default(ctx, column.default, typ, column.name))
    # Keys are declarations that nothing enforces, so plans do not rely on them; PRIMARY KEY forbids NULL.
    for primary, key_names in statement.keys:
        for key_name in key_names:
            if key_name not in names:
                raise SqlError("42703", f"unknown column in constraint: {key_name}")
            if primary:
                i = names.index(key_name)
                columns[i] = ColumnType(columns[i].scalar, False)
    if len(names) > 1600:
        raise SqlError("54011", "tables can have at most 1600 columns")
    name = _temporary_name(ctx, statement.name) if statement.temporary else new_name(ctx, statement.name)
    desc = RelationDesc(tuple(names), RelationType(tuple(columns), ()))
    depends = tuple(ctx.depends_on)
    return p.CreateTablePlan(
        name,
        desc,
        tuple(defaults),
        _table_sql(ctx, name, statement),
        statement.if_not_exists,
        statement.temporary,
        depends,
    )


def _temporary_name(ctx: PlanContext, parts: tuple[str, ...]) -> QualifiedName:
    """Temporary objects live in a schema of their own."""
    if len(parts) > 1 and parts[:-1] != ("mz_temp",):
        raise SqlError("42P16", "cannot create temporary item in non-temporary schema")
    return QualifiedName(None, "mz_temp", parts[-1])


def plan_default(ctx: PlanContext, node: ast.Expr, typ: ScalarType, name: str) -> Scalar:
    x = ExprContext(ctx, [], "DEFAULT expression")
    planned = expr.plan_expr(x, node)
    converted = try_cast(ctx, planned, typ, "assignment")
    if converted is None:
        source = type_words(hir.type_of(planned))
        raise SqlError(
            "42804", f'column "{name}" is of type {type_words(typ)} but default expression is of type {source}'
        )
    scalar = to_scalar(converted)
    if scalar is None:
        raise SqlError("0A000", "DEFAULT expression does not allow subqueries")
    return scalar


def _table_sql(ctx: PlanContext, name: QualifiedName, statement: st.CreateTable) -> str:
    out = printer(ctx)
    columns: list[str] = []
    for c in statement.columns:
        text = f"{ident(c.name)} {out.type_name(c.typ)}"
        if c.not_null and not c.primary_key:
            text += " NOT NULL"
        if c.default is not None:
            text += f" DEFAULT {out.operand(c.default)}"
        if c.primary_key:
            text += " PRIMARY KEY"
        elif c.unique:
            text += " UNIQUE"
        columns.append(text)
    for primary, names in statement.keys:
        columns.append(f"{'PRIMARY KEY' if primary else 'UNIQUE'} ({', '.join(map(ident, names))})")
    word = "CREATE TEMPORARY TABLE" if statement.temporary else "CREATE TABLE"
    return f"{word} {idents(full_parts(name))} ({', '.join(columns)})"


# ---- views


def _view_query(
    ctx: PlanContext, query: ast.Query, columns: tuple[str, ...], name: QualifiedName, kind: str
) -> PlannedQuery:
    """The query of a view: no parameters, no SHOW, names as given."""
    ctx.in_view = True
    planned = plan_query(ctx, query, [])
    names = planned.names
    if columns and len(columns) != len(names):
        words = kind.replace("-", " ")
        plural = "s" if len(columns) != 1 else ""
        have = "s" if len(names) != 1 else ""
        raise SqlError(
            "42601",
            f"{words} {name} definition names {len(columns)} column{plural}, but {words} {name} has {len(names)} column{have}",
        )
    if columns:
        names = columns
    for i, column in enumerate(names):
        if column in names[:i]:
            raise SqlError("42701", f'column "{column}" specified more than once')
    for depended in ctx.depends_on:
        item = ctx.catalog.get_item(depended)
        if kind == "materialized-view" and item.kind == "log":
            raise SqlError("0A000", "materialized view objects cannot depend on log sources")
    return PlannedQuery(
        planned.rel,
        names,
        planned.types,
        planned.project,
        planned.physical,
        planned.order_by,
        planned.limit,
        planned.offset,
        planned.untyped,
        planned.group_size,
    )


def plan_create_view(ctx: PlanContext, statement: st.CreateView) -> p.Plan:
    name = _temporary_name(ctx, statement.name) if statement.temporary else new_name(ctx, statement.name)
    planned = _view_query(ctx, statement.query, statement.columns, name, "view")
    relation, desc = view_relation(ctx, planned)
    out = printer(ctx)
    word = "CREATE TEMPORARY VIEW" if statement.temporary else "CREATE VIEW"
    sql = f"{word} {idents(full_parts(name))}{out.column_list(statement.columns)} AS {out.query(statement.query)}"
    old = replaced(ctx, name, "view") if statement.or_replace else None
    return p.CreateViewPlan(
        name,
        desc,
        relation,
        sql,
        statement.if_not_exists,
        None if old is None else old.id,
        statement.temporary,
        tuple(ctx.depends_on),
    )


def plan_create_materialized_view(ctx: PlanContext, statement: st.CreateMaterializedView) -> p.Plan:
    name = new_name(ctx, statement.name)
    planned = _view_query(ctx, statement.query, statement.columns, name, "materialized-view")
    relation, desc = view_relation(ctx, planned)
    refuse_unmaterializable(ctx, "view")
    cluster, cluster_name = target_cluster(ctx, statement.in_cluster)
    assertions: list[int] = []
    retain: int | None = None
    options: list[str] = []
    out = printer(ctx)
    at: list[Scalar] = []
    every: list[tuple[Scalar, Scalar | None]] = []
    at_creation = on_commit = False
    for key, value in statement.options:
        match key:
            case "assert not null":
                assert isinstance(value, str)
                if value not in desc.names:
                    raise SqlError("42703", f'column "{value}" in ASSERT NOT NULL option not found')
                index = desc.names.index(value)
                if index in assertions:
                    raise SqlError("42701", f'duplicate column "{value}" in non-null assertions')
                assertions.append(index)
                options.append(f"ASSERT NOT NULL = {ident(value)}")
            case "refresh on commit":
                if on_commit:
                    raise SqlError("42601", "REFRESH ON COMMIT cannot be specified multiple times")
                on_commit = True
            case "refresh at creation":
                at_creation = True
                options.append("REFRESH = AT CREATION")
            case "refresh at":
                at.append(_refresh_time(ctx, value, "REFRESH AT"))
                options.append(f"REFRESH = AT {out.expr(value)}")  # type: ignore[arg-type]
            case "refresh every":
                assert isinstance(value, tuple)
                interval, aligned = value
                every.append(_refresh_every(ctx, interval, aligned))
                text = f"REFRESH = EVERY {string(interval.value) if isinstance(interval, ast.Interval) else interval}"
                if aligned is not None:
                    text += f" ALIGNED TO {out.expr(aligned)}"  # type: ignore[arg-type]
                options.append(text)
            case "retain history":
                retain = history_ms(value)
                options.append(f"RETAIN HISTORY = FOR {string(str(value))}")
            case "partition by":
                options.append("PARTITION BY")
            case _:
                raise SqlError("42601", f"invalid materialized view option: {key.upper()}")
    if on_commit and (at or every or at_creation):
        raise SqlError("42601", "REFRESH ON COMMIT is not compatible with any of the other REFRESH options")
    refresh = None
    if at or every or at_creation:
        refresh = p.RefreshSchedule(tuple(at), at_creation, tuple(every))
    if assertions:
        typ = desc.typ
        columns = tuple(ColumnType(c.scalar, c.nullable and i not in assertions) for i, c in enumerate(typ.columns))
        desc = RelationDesc(desc.names, RelationType(columns, typ.keys))
    shown = options if refresh is not None else [*options, "REFRESH = ON COMMIT"]
    sql = (
        f"CREATE MATERIALIZED VIEW {idents(full_parts(name))}{out.column_list(statement.columns)} IN CLUSTER {ident(cluster_name)} "
        f"WITH ({', '.join(shown)}) AS {out.query(statement.query)}"
    )
    old = replaced(ctx, name, "materialized-view") if statement.or_replace else None
    as_of: int | None = None
    if statement.as_of is not None:
        from adapter.sql.plan.reads import plan_as_of
        from mzlite.expr.eval import literal_value

        time = plan_as_of(ctx, statement.as_of).time
        as_of = literal_value(time) if isinstance(time, Literal) else None
    return p.CreateMaterializedViewPlan(
        name,
        desc,
        relation,
        sql,
        cluster,
        statement.if_not_exists,
        None if old is None else old.id,
        tuple(assertions),
        refresh,
        as_of,
        retain,
        tuple(ctx.depends_on),
    )


def _refresh_time(ctx: PlanContext, node: Any, what: str) -> Scalar:
    """A constant time; mz_now() and now() are the creation's."""
    words = f"{what} argument must be an expression that can be simplified and/or cast to a constant whose type is mz_timestamp"
    x = ExprContext(ctx, [], what)
    used = set(ctx.used_unmaterializable)
    planned = expr.plan_expr(x, node)
    ctx.used_unmaterializable = used
    if any(isinstance(e, hir.Exists | hir.ScalarQuery | hir.Quantified) for e, _ in hir.walk(planned)):
        raise SqlError("0A000", f"{what} does not allow subqueries")
    converted = try_cast(ctx, planned, MZ_TIMESTAMP, "assignment")
    if converted is None:
        source = type_words(hir.type_of(planned))
        raise SqlError("42846", f"{what} does not support casting from {source} to mz_timestamp")
    scalar = to_scalar(converted)
    if scalar is None:
        raise SqlError("42804", words)
    folded = fold_scalar(ctx, converted)
    if isinstance(folded, Literal) and folded.value is None:
        raise SqlError("42804", words)
    from mzlite.expr.scalar import Unmaterializable, walk

    if any(isinstance(n, Unmaterializable) and n.func != "mz_now" for n in walk(scalar)):
        raise SqlError("42804", words)
    return scalar


def _refresh_every(ctx: PlanContext, interval: Any, aligned: Any) -> tuple[Scalar, Scalar | None]:
    from adapter.sql.plan.constants import constant_datum
    from adapter.sql.plan.intervals import interval_literal

    e = interval_literal(interval)
    _, value = constant_datum(ctx, e)
    if value.months:
        raise SqlError("0A000", "REFRESH interval must not involve units larger than days")
    if value.days * 86_400_000_000 + value.us <= 0:
        from mzlite.repr.text import format_datum

        raise SqlError("22023", f"REFRESH interval must be positive; got: {format_datum(INTERVAL, value)}")
    assert hir.type_of(e) == INTERVAL
    scalar = to_scalar(e)
    assert scalar is not None
    return scalar, None if aligned is None else _refresh_time(ctx, aligned, "REFRESH EVERY ... ALIGNED TO")


def refuse_unmaterializable(ctx: PlanContext, what: str) -> None:
    for name in sorted(ctx.used_unmaterializable):
        if name != "mz_now":
            raise SqlError(
                "0A000",
                f"cannot materialize call to {name}",
                hint="Try using `mz_now()` here instead." if name == "now" else None,
            )


def history_ms(value: object) -> int:
    """RETAIN HISTORY FOR '1h' in milliseconds."""
    from mzlite.repr.text import parse_datum

    interval = parse_datum(INTERVAL, str(value))
    ms = int(((interval.months * 30 + interval.days) * 86_400_000_000 + interval.us) // 1000)
    if ms < 0:
        raise SqlError("22023", "RETAIN HISTORY option value must not be negative")
    return ms


def target_cluster(ctx: PlanContext, name: str | None) -> tuple[ClusterId, str]:
    wanted = ctx.session.cluster if name is None else name
    cluster = ctx.catalog.resolve_cluster(wanted)
    if cluster is None:
        raise SqlError("42704", f"unknown cluster '{wanted}'")
    return cluster.id, cluster.name


# ---- indexes


def plan_create_index(ctx: PlanContext, statement: st.CreateIndex) -> p.Plan:
    item = ctx.resolve(statement.on.parts, statement.on.pos)
    if item.desc is None or item.kind not in ("table", "view", "materialized-view", "source", "log"):
        words = item.kind.replace("-", " ")
        article = "an" if words[0] in "aeiou" else "a"
        raise SqlError("42809", f"index cannot be created on {item.name} because it is {article} {words}")
    cluster, cluster_name = target_cluster(ctx, statement.in_cluster)
    desc = item.desc
    ctx.in_view = True
    from adapter.sql.plan.relations import plan_table_ref

    _, scope = plan_table_ref(ctx, statement.on)
    out = printer(ctx)
    key: tuple[Scalar, ...]
    if statement.key is None:
        best = default_key(desc)
        key = tuple(Ref(i) for i in best)
        texts = [ident(desc.names[i]) for i in best]
        base = f"{item.name.item}_primary_idx"
    else:
        scalars: list[Scalar] = []
        parts: list[str] = []
        texts = []
        x = ExprContext(ctx, [scope], "CREATE INDEX")
        for node in statement.key:
            if isinstance(node, ast.Number) and node.text.isdigit() and 1 <= int(node.text) <= len(desc.names):
                scalars.append(Ref(int(node.text) - 1))
                parts.append(desc.names[int(node.text) - 1])
                texts.append(ident(desc.names[int(node.text) - 1]))
                continue
            e = expr.plan_typed(x, node)
            scalar = to_scalar(e)
            if scalar is None:
                raise SqlError("0A000", "CREATE INDEX does not allow subqueries")
            scalars.append(scalar)
            texts.append(out.operand(node))
            parts.append(desc.names[scalar.column] if isinstance(scalar, Ref) else "expr")
        refuse_unmaterializable(ctx, "index")
        key = tuple(scalars)
        base = f"{item.name.item}_{'_'.join(parts)}_idx" if parts else f"{item.name.item}_idx"
    name: QualifiedName | None = None
    if statement.name is not None:
        if len(statement.name) == 1:
            name = QualifiedName(item.name.database, item.name.schema, statement.name[0])
        else:
            name = new_name(ctx, statement.name)
    retain = None
    for option, value in statement.options:
        if option == "retain history":
            retain = history_ms(value)
        else:
            raise SqlError("42601", f"invalid index option: {option.upper()}")
    shown = "" if name is None else f" {ident(name.item)}"
    sql = (
        f"CREATE INDEX{shown} IN CLUSTER {ident(cluster_name)} ON {idents(full_parts(item.name))} ({', '.join(texts)})"
    )
    return p.CreateIndexPlan(
        name, base, item.id, key, cluster, sql, statement.if_not_exists, retain, tuple(ctx.depends_on)
    )


def default_key(desc: RelationDesc) -> tuple[int, ...]:
    """The columns of a default index: the smallest key, or all columns."""
    keys = sorted(desc.typ.keys, key=lambda k: (len(k), k))
    return keys[0] if keys and keys[0] else tuple(range(len(desc.names)))


# ---- types


def plan_create_type(ctx: PlanContext, statement: st.CreateType) -> p.Plan:
    name = new_name(ctx, statement.name)
    custom = name.item
    types = {option: resolve_type(ctx, t) for option, t in statement.arguments}
    out = printer(ctx)
    for option, t in statement.arguments:
        if statement.kind != "record" and t.container is not None:
            raise SqlError(
                "42804",
                f"CREATE TYPE ... AS {statement.kind.upper()} option {option.upper()} TYPE can only use named data types, but found "
                f"unnamed data type {_catalog_type(types[option])}. Use CREATE TYPE to create a named type first",
            )
    match statement.kind:
        case "list":
            for option in types:
                if option != "element":
                    raise SqlError("42601", f"invalid CREATE TYPE AS LIST option: {option.upper()}")
            if "element" not in types:
                raise SqlError("42601", "ELEMENT TYPE option is required")
            element = types["element"]
            if element.kind in ("bpchar", "char"):
                raise SqlError("0A000", "CREATE TYPE AS LIST with char element not yet supported")
            typ = ScalarType("list", element=element, custom=custom)
        case "map":
            if "key" not in types or "value" not in types:
                missing = "KEY" if "key" not in types else "VALUE"
                raise SqlError("42601", f"{missing} TYPE option is required")
            if types["key"] != TEXT:
                raise SqlError("42704", f"map key type must be text, got {type_words(types['key'])}")
            typ = ScalarType("map", element=types["value"], custom=custom)
        case _:
            names = [n for n, _ in statement.arguments]
            for i, field in enumerate(names):
                if field in names[:i]:
                    raise SqlError("42701", f'column "{field}" specified more than once')
            fields = tuple((n, ColumnType(t)) for n, t in types.items())
            typ = ScalarType("record", fields=fields, custom=custom)
    full = idents(full_parts(name))
    if statement.kind == "record":
        body = ", ".join(f"{ident(n)} {out.type_name(t)}" for n, t in statement.arguments)
        sql = f"CREATE TYPE {full} AS ({body})"
    else:
        body = ", ".join(f"{n.upper()} TYPE = {out.type_name(t)}" for n, t in statement.arguments)
        sql = f"CREATE TYPE {full} AS {statement.kind.upper()} ({body})"
    return p.CreateTypePlan(name, typ, sql, tuple(ctx.depends_on))


def _catalog_type(typ: ScalarType) -> str:
    """A builtin type with its schema, containers spelled out."""
    match typ.kind:
        case "list" if typ.element is not None:
            return f"{_catalog_type(typ.element)} list"
        case "array" if typ.element is not None:
            return f"{_catalog_type(typ.element)}[]"
        case "map" if typ.element is not None:
            return f"map[pg_catalog.text=>{_catalog_type(typ.element)}]"
        case kind:
            return typ.custom or f"pg_catalog.{kind}"


# ---- sources

_GENERATOR_DESCS: dict[str, tuple[tuple[str, str], ...]] = {
    "counter": (("counter", "int8"),),
    "clock": (("time", "timestamptz"),),
    "datums": (("rowid", "int8"),),
}


def plan_create_source(ctx: PlanContext, statement: st.CreateSource) -> p.Plan:
    if statement.generator is None:
        raise unsupported(f"CREATE SOURCE ... FROM {statement.connector}")
    name = new_name(ctx, statement.name)
    cluster, cluster_name = target_cluster(ctx, statement.in_cluster)
    columns = _GENERATOR_DESCS.get(statement.generator)
    desc = None
    if columns is not None:
        types = tuple(ColumnType(ScalarType(kind), False) for _, kind in columns)
        desc = RelationDesc(tuple(n for n, _ in columns), RelationType(types))
    options = tuple((k, None if v is None else str(v)) for k, v in (*statement.generator_options, *statement.options))
    shown = ""
    if statement.generator_options:
        shown = " (" + ", ".join(f"{k.upper()} {string(str(v))}" for k, v in statement.generator_options) + ")"
    sql = (
        f"CREATE SOURCE {idents(full_parts(name))} IN CLUSTER {ident(cluster_name)} FROM LOAD GENERATOR "
        f"{statement.generator.upper()}{shown}{' FOR ALL TABLES' if statement.for_all_tables else ''}"
    )
    return p.CreateSourcePlan(
        name,
        statement.generator,
        options,
        desc,
        cluster,
        sql,
        statement.for_all_tables,
        statement.if_not_exists,
    )
