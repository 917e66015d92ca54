"""Statements about objects as a whole (DROP, ALTER, COMMENT), clusters, roles, and the session."""

from __future__ import annotations

from adapter.sql import plans as p
from adapter.sql import statements as st
from adapter.sql.catalog_view import CatalogItem
from adapter.sql.plan import expr
from adapter.sql.plan.coerce import try_cast
from adapter.sql.plan.constants import to_scalar
from adapter.sql.plan.context import PlanContext
from adapter.sql.plan.ddl import history_ms, target_cluster
from adapter.sql.plan.expr import ExprContext
from adapter.sql.plan.types import resolve_type, type_words
from mzlite.expr.scalar import Scalar
from mzlite.repr.errors import SqlError, unsupported

_NAMED = frozenset(("database", "schema", "cluster", "cluster replica", "role"))


def _words(kind: str) -> str:
    return kind.replace("-", " ")


def _article(words: str) -> str:
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


# ---- DROP


def plan_drop(ctx: PlanContext, statement: st.Drop) -> p.Plan:
    kind = statement.kind
    if kind in ("secret", "connection", "sink", "network policy"):
        if statement.if_exists:
            return p.DropItemsPlan(kind, (), statement.cascade, tuple(".".join(n) for n in statement.names))
        raise SqlError("42P01", f"unknown catalog item '{'.'.join(statement.names[0])}'")
    if kind in _NAMED:
        return _drop_named(ctx, statement)
    ids = []
    missing: list[str] = []
    for parts in statement.names:
        item = _find(ctx, parts, kind)
        if item is None:
            if not statement.if_exists:
                raise ctx.missing_item(parts, None)
            missing.append(".".join(parts))
            continue
        _check_kind(item, kind, "DROP", "remove")
        if item.id not in ids:
            ids.append(item.id)
    return p.DropItemsPlan(kind, tuple(ids), statement.cascade, tuple(missing))


def _find(ctx: PlanContext, parts: tuple[str, ...], kind: str) -> CatalogItem | None:
    session = ctx.session
    if kind == "type":
        return ctx.catalog.resolve_type_item(parts, session.database, session.search_path)
    return ctx.catalog.resolve_item(parts, session.database, session.search_path)


def _check_kind(item: CatalogItem, kind: str, verb: str, action: str) -> None:
    have = _words(item.kind)
    if have == kind:
        if item.id.startswith("s"):
            raise SqlError("42501", f"system item '{item.name}' cannot be modified")
        return
    hint = None
    if {have, kind} == {"view", "materialized view"}:
        hint = f"Use {verb} {have.upper()} to {action} {_article(have)}."
    raise SqlError("42809", f"{item.name} is not {_article(kind)}", hint=hint)


def _drop_named(ctx: PlanContext, statement: st.Drop) -> p.Plan:
    names: list[tuple[str, ...]] = []
    missing: list[str] = []
    for parts in statement.names:
        shown = ".".join(parts)
        match statement.kind:
            case "database":
                found = ctx.catalog.resolve_database(parts[-1]) is not None
                full: tuple[str, ...] = (parts[-1],)
                error = SqlError("3D000", f"unknown database '{shown}'")
            case "schema":
                ref = ctx.catalog.resolve_schema(parts, ctx.session.database)
                found = ref is not None
                if ref is not None and ref.schema == "mz_temp":
                    raise SqlError("42501", "cannot drop schema mz_temp because it is a temporary schema")
                if ref is not None and ref.database is None:
                    raise SqlError(
                        "42501", f"cannot drop schema {ref.schema} because it is required by the database system"
                    )
                full = parts if ref is None else (ref.database or "", ref.schema)
                error = SqlError("3F000", f"unknown schema '{shown}'")
                if len(parts) == 2 and ctx.catalog.resolve_database(parts[0]) is None:
                    error = SqlError("3D000", f"unknown database '{parts[0]}'")
            case "cluster":
                found = ctx.catalog.resolve_cluster(parts[-1]) is not None
                full = parts
                error = SqlError("42704", f"unknown cluster '{shown}'")
            case "cluster replica":
                if len(parts) != 2:
                    raise SqlError("42601", "Expected dot, found EOF")
                cluster = ctx.catalog.resolve_cluster(parts[0])
                if cluster is None and not statement.if_exists:
                    raise SqlError("42704", f"unknown cluster '{parts[0]}'")
                found = cluster is not None and any(r.name == parts[1] for r in cluster.replicas)
                full = parts
                error = SqlError("42704", f'CLUSTER {parts[0]} has no CLUSTER REPLICA named "{parts[1]}"')
            case _:
                found = ctx.catalog.resolve_role(parts[-1]) is not None
                full = parts
                error = SqlError("42704", f"unknown role '{shown}'")
        if found:
            names.append(full)
        elif statement.if_exists:
            missing.append(shown)
        else:
            raise error
    return p.DropNamedPlan(statement.kind, tuple(names), statement.cascade, tuple(missing))


# ---- ALTER


def plan_alter(ctx: PlanContext, statement: st.Alter) -> p.Plan:
    kind = statement.kind
    action = statement.action
    if action == "owner":
        return p.NoopPlan(statement.tag)
    if kind in ("schema", "database", "cluster", "cluster replica"):
        return _alter_named(ctx, statement)
    item = _find(ctx, statement.name, kind)
    if item is None:
        if statement.if_exists:
            return p.NoopPlan(statement.tag)
        raise ctx.missing_item(statement.name, statement.pos)
    if not (kind == "table" and item.kind in ("source", "view")) or item.kind == "view":
        _check_kind(item, kind, "ALTER", {"rename": "rename"}.get(action, "alter"))
    match action:
        case "rename":
            assert statement.to is not None
            return p.RenameItemPlan(item.id, kind, statement.to)
        case "set_cluster":
            if kind != "materialized view":
                raise unsupported(f"ALTER {kind.upper()} SET CLUSTER")
            return p.AlterSetClusterPlan(item.id, target_cluster(ctx, statement.to)[0])
        case "set":
            for name, value in statement.options:
                if name == "retain history":
                    return p.AlterRetainHistoryPlan(item.id, history_ms(value))
                raise SqlError("42601", f"invalid {kind} option: {name.upper()}")
        case "reset":
            return p.AlterRetainHistoryPlan(item.id, None)
        case "add_column":
            assert statement.column is not None
            column = statement.column
            exists = any(o == "if not exists" for o, _ in statement.options)
            if column.not_null or column.default is not None:
                raise unsupported("ALTER TABLE ... ADD COLUMN with constraints or defaults")
            assert item.desc is not None
            if column.name in item.desc.names and not exists:
                raise SqlError("42701", f'column "{column.name}" of relation "{item.name.item}" already exists')
            return p.AlterTableAddColumnPlan(item.id, column.name, resolve_type(ctx, column.typ), exists)
    raise unsupported(f"{statement.tag} ... {action.upper()}")


def _alter_named(ctx: PlanContext, statement: st.Alter) -> p.Plan:
    kind, parts = statement.kind, statement.name
    shown = ".".join(parts)
    full: tuple[str, ...] = parts
    match kind:
        case "schema":
            ref = ctx.catalog.resolve_schema(parts, ctx.session.database)
            if ref is None:
                if statement.if_exists:
                    return p.NoopPlan(statement.tag)
                raise SqlError("3F000", f"unknown schema '{shown}'")
            if ref.database is None:
                raise SqlError("42501", f"system schema '{ref.schema}' cannot be modified")
            full = (ref.database, ref.schema)
            other = statement.to if statement.action == "swap" else None
            if other is not None and ctx.catalog.resolve_schema((ref.database, other), ctx.session.database) is None:
                raise SqlError("3F000", f"unknown schema '{other}'")
        case "cluster":
            if ctx.catalog.resolve_cluster(parts[-1]) is None:
                if statement.if_exists:
                    return p.NoopPlan(statement.tag)
                raise SqlError("42704", f"unknown cluster '{shown}'")
            if (
                statement.action == "swap"
                and statement.to is not None
                and ctx.catalog.resolve_cluster(statement.to) is None
            ):
                raise SqlError("42704", f"unknown cluster '{statement.to}'")
        case "cluster replica":
            cluster = ctx.catalog.resolve_cluster(parts[0])
            if cluster is None:
                raise SqlError("42704", f"unknown cluster '{parts[0]}'")
            if not any(r.name == parts[-1] for r in cluster.replicas):
                raise SqlError("42704", f'CLUSTER {parts[0]} has no CLUSTER REPLICA named "{parts[-1]}"')
        case _:
            if ctx.catalog.resolve_database(parts[-1]) is None:
                raise SqlError("3D000", f"unknown database '{shown}'")
    match statement.action:
        case "rename" | "swap":
            assert statement.to is not None
            return p.RenameNamedPlan(kind, full, statement.to, statement.action == "swap")
        case "set" | "reset" if kind == "cluster":
            values = tuple((name, _text(value)) for name, value in statement.options)
            given = dict(values)
            if given.get("schedule", "manual") != "manual" and "replication factor" in given:
                raise SqlError(
                    "42601", "REPLICATION FACTOR cannot be given together with any SCHEDULE other than MANUAL"
                )
            return p.AlterClusterPlan(parts[-1], values, statement.names)
        case "set" | "reset":
            return p.NoopPlan(statement.tag)
    raise unsupported(f"{statement.tag} ... {statement.action.upper()}")


def _text(value: st.OptionValue) -> str:
    if value is None:
        return "true"
    return value if isinstance(value, str) else ",".join(value)


# ---- COMMENT


def plan_comment(ctx: PlanContext, statement: st.Comment) -> p.Plan:
    kind, parts = statement.kind, statement.name
    if kind == "function":
        raise unsupported("COMMENT ON FUNCTION")
    if kind in _NAMED:
        full: tuple[str, ...] = parts
        if kind == "schema":
            ref = ctx.catalog.resolve_schema(parts, ctx.session.database)
            if ref is None:
                raise SqlError("3F000", f"unknown schema '{'.'.join(parts)}'")
            full = (ref.database or "", ref.schema)
        elif kind == "database" and ctx.catalog.resolve_database(parts[-1]) is None:
            raise SqlError("3D000", f"unknown database '{parts[-1]}'")
        elif kind == "cluster" and ctx.catalog.resolve_cluster(parts[-1]) is None:
            raise SqlError("42704", f"unknown cluster '{parts[-1]}'")
        elif kind == "role" and ctx.catalog.resolve_role(parts[-1]) is None:
            raise SqlError("42704", f"unknown role '{parts[-1]}'")
        elif kind == "cluster replica":
            cluster = ctx.catalog.resolve_cluster(parts[0])
            if cluster is None or not any(r.name == parts[-1] for r in cluster.replicas):
                raise SqlError("42704", f'CLUSTER {parts[0]} has no CLUSTER REPLICA named "{parts[-1]}"')
        return p.CommentPlan(kind, full, None, statement.comment)
    if kind == "column":
        if len(parts) < 2:
            raise SqlError("42601", "column name must be qualified")
        item = ctx.resolve(parts[:-1], statement.pos)
        names = () if item.desc is None else item.desc.names
        if parts[-1] not in names:
            raise SqlError("42703", f'column "{".".join(parts)}" does not exist')
        return p.CommentPlan(kind, item.id, names.index(parts[-1]) + 1, statement.comment)
    found = _find(ctx, parts, kind)
    if found is None:
        if kind == "type":
            raise SqlError("42704", f'type "{".".join(parts)}" does not exist')
        raise ctx.missing_item(parts, statement.pos)
    if _words(found.kind) != kind:
        raise SqlError("42809", f"{found.name} is {_article(_words(found.kind))} not {_article(kind)}")
    return p.CommentPlan(kind, found.id, None, statement.comment)


def plan_accepted(ctx: PlanContext, statement: st.Accepted) -> p.Plan:
    words = statement.words
    if statement.tag == "ALTER ROLE" and len(words) > 2 and ctx.catalog.resolve_role(words[2]) is None:
        raise SqlError("42704", f"unknown role '{words[2]}'")
    return p.NoopPlan(statement.tag)


# ---- clusters and roles


def plan_create_cluster(ctx: PlanContext, statement: st.CreateCluster) -> p.Plan:
    if statement.if_not_exists and ctx.catalog.resolve_cluster(statement.name) is not None:
        return p.NoopPlan(statement.tag)
    size: str | None = None
    factor: int | None = None
    rest: list[tuple[str, str]] = []
    seen: set[str] = set()
    for name, value in statement.options:
        if name in seen:
            raise SqlError("42601", f"{name.upper()} specified more than once")
        seen.add(name)
        if name == "size":
            size = _text(value)
        elif name == "replication factor":
            text = _text(value)
            if not text.isdigit():
                raise SqlError("22023", "invalid REPLICATION FACTOR: cannot use value as number")
            factor = int(text)
        else:
            rest.append((name, _text(value)))
    schedule = dict(rest).get("schedule", "manual")
    if schedule != "manual":
        if factor is not None:
            raise SqlError("42601", "REPLICATION FACTOR cannot be given together with any SCHEDULE other than MANUAL")
        if statement.replicas is not None or dict(rest).get("managed", "true").lower() in ("false", "off"):
            raise SqlError("0A000", "cluster schedules other than MANUAL are not supported for unmanaged clusters")
    if statement.replicas is not None:
        if size is not None:
            raise SqlError("42601", "SIZE not supported for unmanaged clusters")
        if factor is not None:
            raise SqlError("42601", "REPLICATION FACTOR not supported for unmanaged clusters")
        replicas = tuple(_replica(name, options) for name, options in statement.replicas)
        return p.CreateClusterPlan(statement.name, None, len(replicas), replicas, tuple(rest))
    if size is None:
        if dict(rest).get("managed", "true").lower() in ("false", "off"):
            return p.CreateClusterPlan(statement.name, None, 0, (), tuple(rest))
        raise SqlError("42601", "SIZE must be specified for managed clusters")
    return p.CreateClusterPlan(statement.name, size, 1 if factor is None else factor, None, tuple(rest))


def _replica(name: str, options: st.Options) -> p.ReplicaSpec:
    size = None
    rest: list[tuple[str, str]] = []
    for option, value in options:
        if option == "size":
            size = _text(value)
        else:
            rest.append((option, _text(value)))
    return p.ReplicaSpec(name, size, tuple(rest))


def plan_create_cluster_replica(ctx: PlanContext, statement: st.CreateClusterReplica) -> p.Plan:
    if ctx.catalog.resolve_cluster(statement.cluster) is None:
        raise SqlError("42704", f"unknown cluster '{statement.cluster}'")
    return p.CreateClusterReplicaPlan(statement.cluster, _replica(statement.name, statement.options))


def plan_create_role(ctx: PlanContext, statement: st.CreateRole) -> p.Plan:
    return p.CreateRolePlan(statement.name, statement.options)


# ---- session


def plan_set_variable(ctx: PlanContext, statement: st.SetVariable) -> p.Plan:
    if statement.scope == "system":
        return p.AlterSystemSetPlan(statement.name, statement.values)
    if statement.name is None:
        return p.ResetAllPlan()
    return p.SetVariablePlan(statement.name, statement.values, statement.scope == "local")


def plan_show_variable(ctx: PlanContext, statement: st.ShowVariable) -> p.Plan:
    return p.ShowAllVariablesPlan() if statement.name is None else p.ShowVariablePlan(statement.name)


def plan_begin(ctx: PlanContext, statement: st.Begin) -> p.Plan:
    return p.BeginPlan(statement.isolation, statement.read_only, statement.starts)


def plan_set_transaction(ctx: PlanContext, statement: st.SetTransaction) -> p.Plan:
    return p.SetTransactionPlan(statement.isolation, statement.read_only, statement.session)


def plan_commit(ctx: PlanContext, statement: st.Commit) -> p.Plan:
    if statement.chain:
        raise unsupported("CHAIN")
    return p.CommitPlan()


def plan_rollback(ctx: PlanContext, statement: st.Rollback) -> p.Plan:
    if statement.chain:
        raise unsupported("CHAIN")
    return p.RollbackPlan()


def plan_prepare(ctx: PlanContext, statement: st.Prepare) -> p.Plan:
    types = tuple(resolve_type(ctx, t) for t in statement.types)
    return p.PreparePlan(statement.name, statement.statement, types)


def plan_execute(ctx: PlanContext, statement: st.Execute) -> p.Plan:
    wanted = ctx.session.prepared_parameters(statement.name)
    if wanted is None:
        raise SqlError("26000", f"prepared statement {statement.name} does not exist")
    if len(wanted) != len(statement.args):
        raise SqlError("08P01", f"expected {len(wanted)} params but got {len(statement.args)}")
    x = ExprContext(ctx, [], "EXECUTE")
    args: list[Scalar] = []
    for i, (node, typ) in enumerate(zip(statement.args, wanted)):
        planned = expr.plan_expr(x, node)
        converted = try_cast(ctx, planned, typ, "assignment")
        scalar = None if converted is None else to_scalar(converted)
        if scalar is None:
            from adapter.sql import hir

            source = type_words(hir.type_of(planned))
            raise SqlError(
                "42804", f"unable to cast given parameter ${i + 1}: expected {type_words(typ)}, got {source}"
            )
        args.append(scalar)
    return p.ExecutePlan(statement.name, tuple(args))


def plan_deallocate(ctx: PlanContext, statement: st.Deallocate) -> p.Plan:
    return p.DeallocatePlan(statement.name)


def plan_declare(ctx: PlanContext, statement: st.Declare) -> p.Plan:
    if statement.hold:
        raise unsupported("WITH HOLD")
    inner = statement.statement
    if not isinstance(
        inner, st.SelectStatement | st.Subscribe | st.Show | st.ShowVariable | st.ShowCreate | st.Explain | st.Fetch
    ):
        raise unsupported(f"DECLARE CURSOR ... FOR {inner.tag}")
    return p.DeclarePlan(statement.name, inner)


def plan_fetch(ctx: PlanContext, statement: st.Fetch) -> p.Plan:
    timeout: int | None = None
    for name, value in statement.options:
        if name != "timeout":
            raise SqlError("42601", f"invalid FETCH option: {name.upper()}")
        timeout = _timeout_ms(value)
    return p.FetchPlan(statement.name, statement.count, timeout)


def _timeout_ms(value: st.OptionValue) -> int:
    from mzlite.repr.text import parse_datum
    from mzlite.repr.types import INTERVAL

    interval = parse_datum(INTERVAL, _text(value))
    us = (interval.months * 30 + interval.days) * 86_400_000_000 + interval.us
    if us < 0:
        raise SqlError("22023", "invalid TIMEOUT: cannot convert negative interval to duration")
    if us >= 1 << 62:
        raise SqlError("22008", "timeout out of range")
    return int(us // 1000)


def plan_close(ctx: PlanContext, statement: st.Close) -> p.Plan:
    return p.ClosePlan(statement.name)


def plan_discard(ctx: PlanContext, statement: st.Discard) -> p.Plan:
    if statement.what in ("plans", "sequences"):
        raise unsupported(f"DISCARD {statement.what.upper()}")
    return p.DiscardPlan(statement.what)
