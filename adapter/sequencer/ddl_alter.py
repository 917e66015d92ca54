"""ALTER: renames and swaps (alone or gathered in a DDL transaction), SET CLUSTER, RETAIN HISTORY.

Plans hold ids, so a rename changes names only: the item's own and, in the stored SQL of what uses it, the qualified
name. Stored SQL is canonical, so a qualified name is always written out and can be found as text tokens.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from adapter.catalog.builtin.relation import BUILTINS
from adapter.catalog.objects import Item, MaterializedViewDetails
from adapter.catalog.state import ITEM_NAMESPACE, TYPE_NAMESPACE, CatalogState, CatalogTransaction
from adapter.catalog.view import StateView
from adapter.coord.result import Done
from adapter.coord.transaction import Ddl, Status
from adapter.coord.var_types import quote_ident
from adapter.sql import plans as p
from adapter.sql.catalog_view import QualifiedName
from mzlite.repr.errors import SqlError

if TYPE_CHECKING:
    from adapter.coord.coordinator import Coordinator
    from adapter.coord.session import Session


class AlterSequencer:
    def __init__(self, coordinator: Coordinator) -> None:
        self._c = coordinator

    async def rename(self, session: Session, plan: p.RenameItemPlan | p.RenameNamedPlan, tag: str) -> Done:
        c = self._c
        txn = session.txn
        if txn.status is Status.EXPLICIT:
            txn.check_ddl()
            ops = txn.ops
            if ops is None:
                ops = txn.ops = Ddl(CatalogTransaction(c.state), c.state.revision)
            assert isinstance(ops, Ddl)
            if ops.base_revision != c.state.revision:
                from adapter.coord.coordinator import catalog_moved

                raise catalog_moved()
            self.apply(session, ops.tx, plan)
            return Done(tag)
        async with c.ddl_lock:
            tx = CatalogTransaction(c.state)
            self.apply(session, tx, plan)
            await c.commit_catalog(tx)
        return Done(tag)

    def apply(self, session: Session, tx: CatalogTransaction, plan: p.RenameItemPlan | p.RenameNamedPlan) -> None:
        """The rename in a transaction; SqlError leaves tx as it was."""
        match plan:
            case p.RenameItemPlan():
                self._item(tx, plan)
            case p.RenameNamedPlan(kind=kind):
                match kind.lower():
                    case "schema":
                        self._schema(session, tx, plan)
                    case "cluster":
                        self._cluster(tx, plan)
                    case "cluster replica":
                        self._replica(tx, plan)
                    case "database":
                        self._database(tx, plan)
                    case _:
                        raise SqlError("0A000", f"ALTER {kind.upper()} ... RENAME not yet supported")

    def _item(self, tx: CatalogTransaction, plan: p.RenameItemPlan) -> None:
        if plan.id in BUILTINS:
            raise SqlError("42501", f"system item '{BUILTINS[plan.id].name}' cannot be modified")
        item = tx.state.items[plan.id]
        if any(tx.state.item_in(item.schema_id, plan.to, n) is not None for n in (TYPE_NAMESPACE, ITEM_NAMESPACE)):
            raise SqlError("42710", f"catalog item '{plan.to}' already exists")
        before = StateView(tx.state).item_name(item)
        after = replace_name(before, plan.to)
        tx.put_item(
            replace(item, name=plan.to, create_sql=renamed(item.create_sql, str_parts(before), str_parts(after)))
        )
        for user in self._direct_users(tx.state, item):
            tx.put_item(replace(user, create_sql=renamed(user.create_sql, str_parts(before), str_parts(after))))

    def _direct_users(self, state: CatalogState, item: Item) -> list[Item]:
        return [state.items[i] for i in state.used_by.get(item.id, ())]

    def _schema(self, session: Session, tx: CatalogTransaction, plan: p.RenameNamedPlan) -> None:
        database = plan.name[0] if len(plan.name) > 1 else session.vars.database
        name = plan.name[-1]
        schema = tx.state.schema(database, name)
        if schema is None:
            raise SqlError("3F000", f"unknown schema '{name}'")
        if schema.database_id is None:
            raise SqlError("42501", f"system schema '{name}' cannot be modified")
        other_id = tx.state.schema_names.get((schema.database_id, plan.to))
        if plan.swap:
            if other_id is None:
                raise SqlError("3F000", f"unknown schema '{plan.to}'")
            other = tx.state.schemas[other_id]
            ours, theirs = tx.state.items_in_schema(schema.id), tx.state.items_in_schema(other.id)
            tx.swap_schemas(schema, other)
            marker = f"{name}__swapping"
            self._rewrite_schema(tx, ours, database, name, marker)
            self._rewrite_schema(tx, theirs, database, plan.to, name)
            self._rewrite_schema(tx, tx.state.items_in_schema(schema.id), database, marker, plan.to)
            return
        if other_id is not None:
            raise SqlError("42P06", f"schema '{plan.to}' already exists")
        if plan.to.startswith(("mz_", "pg_")):
            raise SqlError("42939", f"unacceptable schema name '{plan.to}'")
        tx.put_schema(replace(schema, name=plan.to))
        self._rewrite_schema(tx, tx.state.items_in_schema(schema.id), database, name, plan.to)

    def _rewrite_schema(self, tx: CatalogTransaction, inside: list[Item], database: str, old: str, new: str) -> None:
        """Stored SQL of a schema's items and of what uses them."""
        touched = {i.id for i in inside}
        for item in inside:
            touched.update(tx.state.used_by.get(item.id, ()))
        for id in sorted(touched):
            item = tx.state.items[id]
            sql = renamed(item.create_sql, (database, old), (database, new))
            if sql != item.create_sql:
                tx.put_item(replace(item, create_sql=sql))

    def _database(self, tx: CatalogTransaction, plan: p.RenameNamedPlan) -> None:
        database = tx.state.database(plan.name[-1])
        if database is None:
            raise SqlError("3D000", f"unknown database '{plan.name[-1]}'")
        if tx.state.database(plan.to) is not None:
            raise SqlError("42P04", f"database '{plan.to}' already exists")
        raise SqlError("0A000", "ALTER DATABASE ... RENAME not yet supported")

    def _cluster(self, tx: CatalogTransaction, plan: p.RenameNamedPlan) -> None:
        name = plan.name[-1]
        cluster = tx.state.cluster(name)
        if cluster is None:
            raise SqlError("42704", f"unknown cluster '{name}'")
        if cluster.id.startswith("s"):
            raise SqlError("42501", f"system cluster '{name}' cannot be modified")
        other = tx.state.cluster(plan.to)
        if plan.swap:
            if other is None:
                raise SqlError("42704", f"unknown cluster '{plan.to}'")
            tx.swap_clusters(cluster, other)
            self._rewrite_cluster(tx, other.id, plan.to, name)
        elif other is not None:
            raise SqlError("42710", f"cluster '{plan.to}' already exists")
        elif plan.to.startswith(("mz_", "pg_")):
            raise SqlError("42939", f"cluster name '{plan.to}' is reserved")
        else:
            tx.put_cluster(replace(cluster, name=plan.to))
        self._rewrite_cluster(tx, cluster.id, name, plan.to)

    def _rewrite_cluster(self, tx: CatalogTransaction, cluster_id: str, old: str, new: str) -> None:
        pattern = re.compile(r"(\bIN CLUSTER )" + re.escape(quote_ident(old)) + r"(?![\w$\"])")
        for item in tx.state.items_in_cluster(cluster_id):
            sql = pattern.sub(lambda m: m[1] + quote_ident(new), item.create_sql)
            if sql != item.create_sql:
                tx.put_item(replace(item, create_sql=sql))

    def _replica(self, tx: CatalogTransaction, plan: p.RenameNamedPlan) -> None:
        cluster = tx.state.cluster(plan.name[0])
        replica = cluster.replica(plan.name[-1]) if cluster is not None else None
        if cluster is None or replica is None:
            raise SqlError("42704", f"unknown cluster replica '{'.'.join(plan.name)}'")
        if cluster.managed:
            raise SqlError("0A000", f"cannot modify managed cluster {cluster.name}")
        if cluster.replica(plan.to) is not None:
            raise SqlError("42710", f"cluster replica '{cluster.name}.{plan.to}' already exists")
        replicas = tuple(replace(r, name=plan.to) if r.id == replica.id else r for r in cluster.replicas)
        tx.put_cluster(replace(cluster, replicas=replicas))

    async def set_cluster(self, session: Session, plan: p.AlterSetClusterPlan) -> Done:
        item = self._c.state.items.get(plan.id)
        if item is None or item.cluster_id == plan.cluster:
            return Done("ALTER MATERIALIZED VIEW")
        raise SqlError("0A000", "ALTER MATERIALIZED VIEW ... SET CLUSTER not yet supported")

    async def retain_history(self, session: Session, plan: p.AlterRetainHistoryPlan) -> Done:
        c = self._c
        item = c.state.items.get(plan.id)
        if item is None:
            raise SqlError("42501", "system items cannot be modified")
        tx = CatalogTransaction(c.state)
        tx.put_item(replace(item, retain_history_ms=plan.milliseconds))
        await c.commit_catalog(tx)
        lag = plan.milliseconds if plan.milliseconds is not None else 1000
        if c.controller.collection_exists(item.id):
            c.controller.set_read_policy(item.id, lag)
        kind = "MATERIALIZED VIEW" if isinstance(item.details, MaterializedViewDetails) else item.kind.upper()
        return Done(f"ALTER {kind}")


def replace_name(name: QualifiedName, item: str) -> QualifiedName:
    return QualifiedName(name.database, name.schema, item)


def str_parts(name: QualifiedName) -> tuple[str, ...]:
    return tuple(x for x in (name.database, name.schema, name.item) if x is not None)


def renamed(sql: str, old: tuple[str, ...], new: tuple[str, ...]) -> str:
    """sql with the qualified name (or its prefix) `old` written as `new`; string literals stay."""
    text = ".".join(quote_ident(x) for x in old)
    pattern = re.compile(r"('(?:[^']|'')*')|(?<![\w$.\"])" + re.escape(text) + r"(?![\w$\"])")
    replacement = ".".join(quote_ident(x) for x in new)
    return pattern.sub(lambda m: m[1] if m[1] is not None else replacement, sql)
