"""Definitions: CREATE of items and namespaces, and the dispatch of all DDL.

Every DDL statement is one catalog transaction under one lock: checks, then durable, then effects (shards exist before
the item that names them; dataflows start after). Dropping, altering and clusters have their own modules.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from adapter.catalog.builtin.relation import is_log
from adapter.catalog.objects import (
    KIND_NAMES,
    CommentKey,
    Database,
    Details,
    IndexDetails,
    Item,
    ItemKind,
    MaterializedViewDetails,
    Role,
    Schema,
    TableDetails,
    TypeDetails,
    ViewDetails,
)
from adapter.catalog.state import ITEM_NAMESPACE, TEMP_SCHEMA, TYPE_NAMESPACE, CatalogState, CatalogTransaction
from adapter.coord.result import Done, ExecuteResult
from adapter.coord.storage_link import durable
from adapter.sequencer.clusters import ClusterSequencer
from adapter.sequencer.ddl_alter import AlterSequencer
from adapter.sequencer.ddl_drop import DropSequencer
from adapter.sequencer.inline import inline_views
from adapter.sequencer.maintained import (
    MaintainedPlan,
    create_index_dataflow,
    create_view_dataflow,
    freshest,
    plan_index,
    plan_view,
    since_of,
)
from adapter.sequencer.refresh import resolve_refresh
from adapter.sequencer.sources import SourceSequencer
from adapter.sql import plans as p
from adapter.sql.catalog_view import QualifiedName
from adapter.transform import optimize_local
from mzlite.expr import relation as r
from mzlite.repr.errors import SqlError
from mzlite.repr.ids import GlobalId

if TYPE_CHECKING:
    from adapter.coord.coordinator import Coordinator
    from adapter.coord.session import Session

TAGS: dict[type, str] = {
    p.CreateDatabasePlan: "CREATE DATABASE",
    p.CreateSchemaPlan: "CREATE SCHEMA",
    p.CreateTablePlan: "CREATE TABLE",
    p.CreateViewPlan: "CREATE VIEW",
    p.CreateMaterializedViewPlan: "CREATE MATERIALIZED VIEW",
    p.CreateIndexPlan: "CREATE INDEX",
    p.CreateTypePlan: "CREATE TYPE",
    p.CreateSourcePlan: "CREATE SOURCE",
    p.CreateRolePlan: "CREATE ROLE",
    p.CreateClusterPlan: "CREATE CLUSTER",
    p.CreateClusterReplicaPlan: "CREATE CLUSTER REPLICA",
    p.AlterClusterPlan: "ALTER CLUSTER",
    p.CommentPlan: "COMMENT",
}


class DdlSequencer:
    def __init__(self, coordinator: Coordinator) -> None:
        self._c = coordinator
        self.drops = DropSequencer(coordinator)
        self.alters = AlterSequencer(coordinator)
        self.clusters = ClusterSequencer(coordinator)
        self.sources = SourceSequencer(coordinator)

    def tag(self, plan: p.Plan) -> str:
        match plan:
            case p.DropItemsPlan(kind=kind) | p.DropNamedPlan(kind=kind):
                return f"DROP {kind.upper()}"
            case p.RenameItemPlan(kind=kind) | p.RenameNamedPlan(kind=kind):
                return f"ALTER {kind.upper()}"
            case p.NoopPlan(tag):
                return tag
            case _:
                return TAGS[type(plan)]

    async def execute(self, session: Session, plan: p.Plan) -> ExecuteResult:
        match plan:
            case p.NoopPlan(tag):
                return Done(tag)
            case p.RenameItemPlan() | p.RenameNamedPlan():
                return await self.alters.rename(session, plan, self.tag(plan))
            case _:
                pass
        async with self._c.ddl_lock:
            match plan:
                case p.CreateDatabasePlan():
                    await self._database(session, plan)
                case p.CreateSchemaPlan():
                    await self._schema(session, plan)
                case p.CreateTablePlan():
                    await self._table(session, plan)
                case p.CreateViewPlan():
                    await self._view(session, plan)
                case p.CreateMaterializedViewPlan():
                    await self._materialized_view(session, plan)
                case p.CreateIndexPlan():
                    await self._index(session, plan)
                case p.CreateTypePlan():
                    await self._type(session, plan)
                case p.CreateSourcePlan():
                    await self.sources.create(session, plan)
                case p.CreateRolePlan():
                    await self._role(session, plan)
                case p.DropItemsPlan():
                    await self.drops.items(session, plan)
                case p.DropNamedPlan():
                    await self.drops.named(session, plan)
                case p.CommentPlan():
                    await self._comment(session, plan)
                case p.CreateClusterPlan():
                    await self.clusters.create(session, plan)
                case p.CreateClusterReplicaPlan():
                    await self.clusters.create_replica(session, plan)
                case p.AlterClusterPlan():
                    await self.clusters.alter(session, plan)
                case p.AlterSetClusterPlan():
                    return await self.alters.set_cluster(session, plan)
                case p.AlterRetainHistoryPlan():
                    return await self.alters.retain_history(session, plan)
                case p.AlterTableAddColumnPlan():
                    raise SqlError("0A000", "ALTER TABLE ... ADD COLUMN ... not yet supported")
                case _:
                    raise SqlError("0A000", f"{type(plan).__name__.removesuffix('Plan')} not yet supported")
        return Done(self.tag(plan))

    # Namespaces.

    async def _database(self, session: Session, plan: p.CreateDatabasePlan) -> None:
        c = self._c
        if c.state.database(plan.name) is not None:
            if plan.if_not_exists:
                session.notice(f'database "{plan.name}" already exists, skipping', sqlstate="42P04")
                return
            raise SqlError("42P04", f"database '{plan.name}' already exists")
        tx = CatalogTransaction(c.state)
        database = Database(tx.named_id("database"), tx.oid(), plan.name, session.role_id)
        tx.put_database(database)
        tx.put_schema(Schema(tx.named_id("schema"), tx.oid(), database.id, "public", session.role_id))
        await c.commit_catalog(tx)

    async def _schema(self, session: Session, plan: p.CreateSchemaPlan) -> None:
        c = self._c
        database = c.state.database(plan.database)
        if database is None:
            raise SqlError("3F000", f"unknown database '{plan.database}'")
        if plan.name.startswith(("mz_", "pg_")):
            raise SqlError(
                "42939",
                f"unacceptable schema name '{plan.name}'",
                detail='The prefixes "mz_" and "pg_" are reserved for system schemas.',
            )
        if (database.id, plan.name) in c.state.schema_names:
            if plan.if_not_exists:
                session.notice(f'schema "{plan.name}" already exists, skipping', sqlstate="42P06")
                return
            raise SqlError("42P06", f"schema '{plan.name}' already exists")
        tx = CatalogTransaction(c.state)
        tx.put_schema(Schema(tx.named_id("schema"), tx.oid(), database.id, plan.name, session.role_id))
        await c.commit_catalog(tx)

    async def _role(self, session: Session, plan: p.CreateRolePlan) -> None:
        c = self._c
        if plan.name.startswith(("mz_", "pg_")) or plan.name.lower() in ("public", "none", "external"):
            raise SqlError("42939", f'role name "{plan.name}" is reserved')
        if c.state.role(plan.name) is not None:
            raise SqlError("42710", f"role '{plan.name}' already exists")
        tx = CatalogTransaction(c.state)
        words = [o.lower() for o in plan.options]
        attributes = tuple((w, True) for w in ("superuser", "login") if w in words)
        tx.put_role(Role(tx.named_id("role"), tx.oid(), plan.name, attributes=attributes))
        await c.commit_catalog(tx)

    # Items.

    def schema_id(self, session: Session, name: QualifiedName) -> str:
        """The id of the schema an item is made in."""
        if name.database is None and name.schema == TEMP_SCHEMA:
            session.has_temporary_items = True
            return session.temp_schema
        schema = self._c.state.schema(name.database, name.schema)
        if schema is None:
            raise SqlError("3F000", f"unknown schema '{name.schema}'")
        if schema.database_id is None:
            raise SqlError("42501", f"system schema '{name.schema}' cannot be modified")
        return schema.id

    def taken(self, state: CatalogState, schema_id: str, name: str) -> Item | None:
        """What has that name already: types and relations resolve apart, but must not share one."""
        return state.item_in(schema_id, name, TYPE_NAMESPACE) or state.item_in(schema_id, name, ITEM_NAMESPACE)

    def _exists(self, session: Session, name: QualifiedName, schema_id: str, if_not_exists: bool) -> bool:
        """True: there is one already and that is fine. SqlError: and it is not."""
        found = self.taken(self._c.state, schema_id, name.item)
        if found is None:
            return False
        if if_not_exists:
            session.notice(f'{KIND_NAMES[found.kind]} "{name.item}" already exists, skipping', sqlstate="42P07")
            return True
        raise SqlError("42P07", f'{KIND_NAMES[found.kind]} "{name}" already exists')

    def new_item(
        self,
        session: Session,
        tx: CatalogTransaction,
        name: str,
        schema_id: str,
        kind: ItemKind,
        create_sql: str,
        depends_on: tuple[GlobalId, ...],
        details: Details,
        *,
        id: GlobalId | None = None,
        retain_history_ms: int | None = None,
    ) -> Item:
        known = tuple(i for i in dict.fromkeys(depends_on) if i in tx.state.items)
        temporary = schema_id == session.temp_schema
        item = Item(
            id if id is not None else tx.item_id(),
            tx.oid(),
            schema_id,
            name,
            kind,
            create_sql,
            session.role_id,
            known,
            details,
            session.pid if temporary else None,
            retain_history_ms,
        )
        tx.put_item(item)
        return item

    async def _table(self, session: Session, plan: p.CreateTablePlan) -> None:
        c = self._c
        schema_id = self.schema_id(session, plan.name)
        if self._exists(session, plan.name, schema_id, plan.if_not_exists):
            return
        limit = c.system_vars.get("max_tables")
        count = sum(1 for i in c.state.items.values() if i.kind == "table")
        if count >= limit:
            raise SqlError(
                "53400",
                f"creating table would violate max_tables limit (desired: {count + 1}, limit: {limit}, current: {count})",
                hint="Drop an existing table or contact support to request a limit increase.",
            )
        tx = CatalogTransaction(c.state)
        id = tx.item_id()
        shard = f"table-{id}"
        details = TableDetails(plan.desc, plan.defaults, shard)
        item = self.new_item(
            session, tx, plan.name.item, schema_id, "table", plan.create_sql, plan.depends_on, details, id=id
        )
        types = [col.scalar for col in plan.desc.typ.columns]
        await durable(c.storage.create_shard_begin(shard, types, "table", since=c.oracle.read_ts()))
        await c.commit_catalog(tx)
        c.register_storage(item)
        c.controller.storage_frontier(item.id, c.storage.table_upper)

    async def _view(self, session: Session, plan: p.CreateViewPlan) -> None:
        c = self._c
        schema_id = self.schema_id(session, plan.name)
        tx = CatalogTransaction(c.state)
        effects: list[Item] = []
        if plan.or_replace is not None:
            effects = self.drops.remove(session, tx, [plan.or_replace], cascade=False, replacing=True)
        elif self._exists(session, plan.name, schema_id, plan.if_not_exists):
            return
        optimized = await c.in_thread(optimize_local, plan.mir)
        details = ViewDetails(plan.desc, plan.mir, optimized, plan.temporary)
        self.new_item(session, tx, plan.name.item, schema_id, "view", plan.create_sql, plan.depends_on, details)
        await c.commit_catalog(tx)
        self.drops.apply(effects)

    async def _materialized_view(self, session: Session, plan: p.CreateMaterializedViewPlan) -> None:
        c = self._c
        schema_id = self.schema_id(session, plan.name)
        tx = CatalogTransaction(c.state)
        effects: list[Item] = []
        if plan.or_replace is not None:
            effects = self.drops.remove(session, tx, [plan.or_replace], cascade=False, replacing=True)
        elif self._exists(session, plan.name, schema_id, plan.if_not_exists):
            return
        cluster = c.state.clusters[plan.cluster]
        self._no_logs("materialized view", plan.mir)
        refreshes = plan.refresh is not None and (plan.refresh.at or plan.refresh.at_creation or plan.refresh.every)
        if refreshes and not c.system_vars.get("enable_refresh_every_mvs"):
            raise SqlError("0A000", "REFRESH EVERY and REFRESH AT materialized views is not available")
        optimized = await c.in_thread(optimize_local, plan.mir)
        id = tx.item_id()
        shard = f"view-{id}"
        now = c.oracle.read_ts()
        refresh_at, refresh_every = resolve_refresh(plan.refresh, now)
        details = MaterializedViewDetails(
            plan.desc,
            plan.mir,
            optimized,
            cluster.id,
            shard,
            plan.not_null_assertions,
            refresh_at,
            refresh_every,
        )
        maintained = await c.in_thread(plan_view, c, id, details)
        with self._held(maintained):
            since = since_of(c, maintained.imports)
            as_of = plan.as_of if plan.as_of is not None else freshest(c, maintained.imports)
            first = first_refresh(refresh_at, refresh_every, now)
            if first is not None:
                if refresh_at is not None and min(refresh_at) < since:
                    raise SqlError(
                        "22023",
                        "REFRESH AT requested for a time where not all the inputs are readable",
                        detail=f"The requested REFRESH AT time is {min(refresh_at)}. Inputs are readable from {since}.",
                    )
                as_of = max(as_of, first)
            item = self.new_item(
                session,
                tx,
                plan.name.item,
                schema_id,
                "materialized-view",
                plan.create_sql,
                plan.depends_on,
                replace(details, initial_as_of=as_of),
                id=id,
                retain_history_ms=plan.retain_history_ms,
            )
            types = [col.scalar for col in plan.desc.typ.columns]
            await durable(c.storage.create_shard_begin(shard, types, "mv", since=as_of, upper=as_of))
            await c.commit_catalog(tx)
            c.register_storage(item)
            create_view_dataflow(c, item, maintained)
        self.drops.apply(effects)

    def _no_logs(self, what: str, mir: r.Mir) -> None:
        """A maintained object cannot stand on the logs of one replica."""
        logs = [i for i in r.global_ids(inline_views(mir, self._c.definition)) if is_log(i)]
        if logs:
            names = "\n".join(f"    {n}" for n in sorted(self._c.names_of(logs).values()))
            raise SqlError(
                "0A000",
                f"{what} objects cannot depend on log sources",
                detail=f"the object depends on the following log sources:\n{names}",
            )

    @contextlib.contextmanager
    def _held(self, plan: MaintainedPlan) -> Iterator[None]:
        """What a planned dataflow imports stays readable while the item is made."""
        holds = [self._c.controller.acquire_hold(id) for id in plan.imports.ids()]
        try:
            yield
        finally:
            for hold in holds:
                hold.release()

    async def _index(self, session: Session, plan: p.CreateIndexPlan) -> None:
        c = self._c
        on = c.state.items.get(plan.on)
        if on is None:
            raise SqlError("42501", "cannot create an index on a system object")
        self._no_logs("index", c.get_of(plan.on))
        schema_id = on.schema_id if plan.name is None else self.schema_id(session, plan.name)
        tx = CatalogTransaction(c.state)
        if plan.name is not None:
            if self._exists(session, plan.name, schema_id, plan.if_not_exists):
                return
            name = plan.name.item
        else:
            name, n = plan.base_name, 1
            while self.taken(c.state, schema_id, name) is not None:
                name, n = f"{plan.base_name}{n}", n + 1
        details = IndexDetails(plan.on, plan.key, plan.cluster)
        depends = (*plan.depends_on, plan.on)
        sql = plan.create_sql
        if plan.name is None and name != plan.base_name:
            sql = sql.replace(plan.base_name, name, 1)
        item = self.new_item(
            session,
            tx,
            name,
            schema_id,
            "index",
            sql,
            depends,
            details,
            retain_history_ms=plan.retain_history_ms,
        )
        maintained = await c.in_thread(plan_index, c, item.id, details)
        with self._held(maintained):
            await c.commit_catalog(tx)
            create_index_dataflow(c, item, maintained)
        cluster = c.state.clusters[plan.cluster]
        if not cluster.replicas:
            session.notice(
                f'index "{name}" is on cluster "{cluster.name}", which has no replicas',
                hint="Use CREATE CLUSTER REPLICA to attach cluster replicas to the cluster",
            )

    async def _type(self, session: Session, plan: p.CreateTypePlan) -> None:
        c = self._c
        schema_id = self.schema_id(session, plan.name)
        self._exists(session, plan.name, schema_id, False)
        tx = CatalogTransaction(c.state)
        details = TypeDetails(plan.typ, "composite" if plan.typ.kind == "record" else plan.typ.kind)
        self.new_item(session, tx, plan.name.item, schema_id, "type", plan.create_sql, plan.depends_on, details)
        await c.commit_catalog(tx)

    async def _comment(self, session: Session, plan: p.CommentPlan) -> None:
        c = self._c
        tx = CatalogTransaction(c.state)
        if isinstance(plan.target, tuple):
            kind, target = self._named_target(plan.kind, plan.target)
        else:
            item = c.state.items.get(plan.target)
            if item is None:
                raise SqlError("42501", "cannot comment on a system object")
            kind, target = item.kind, str(item.id)
        tx.set_comment(CommentKey(kind, target, plan.column), plan.comment)
        await c.commit_catalog(tx)

    def _named_target(self, kind: str, names: tuple[str, ...]) -> tuple[str, str]:
        state = self._c.state
        name = names[-1]
        match kind.lower():
            case "database":
                found = state.database(name)
            case "schema":
                schema = state.schema(names[0] if len(names) > 1 else None, name)
                return ("schema", schema.id) if schema is not None else ("schema", "")
            case "role":
                role = state.role(name)
                return ("role", role.id) if role is not None else ("role", "")
            case "cluster":
                cluster = state.cluster(name)
                return ("cluster", cluster.id) if cluster is not None else ("cluster", "")
            case _:
                cluster = state.cluster(names[0])
                replica = cluster.replica(name) if cluster is not None else None
                return ("cluster-replica", replica.id) if replica is not None else ("cluster-replica", "")
        return ("database", found.id) if found is not None else ("database", "")

    async def drop_temporary(self, session: Session) -> None:
        """DISCARD TEMP, and a session's end."""
        c = self._c
        async with c.ddl_lock:
            ids = [i.id for i in c.state.items.values() if i.conn_id == session.pid]
            session.has_temporary_items = False
            if not ids:
                return
            tx = CatalogTransaction(c.state)
            effects = self.drops.remove(session, tx, ids, cascade=True)
            await c.commit_catalog(tx)
            self.drops.apply(effects)


def first_refresh(at: tuple[int, ...] | None, every: tuple[int, int] | None, now: int) -> int | None:
    """The first refresh at or after now; None without a schedule."""
    best: int | None = None
    for t in at or ():
        if t >= now:
            best = t if best is None else min(best, t)
    if every is not None:
        interval, aligned = every
        following = aligned + -(-(now - aligned) // interval) * interval
        best = following if best is None else min(best, following)
    if best is None and at:
        return max(at)
    return best
