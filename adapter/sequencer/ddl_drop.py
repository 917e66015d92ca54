"""DROP: what depends on the dropped, RESTRICT's refusal, CASCADE, and the effects outside the catalog.

Effects come after the catalog transaction is durable: dataflows and shards go, reads of them in flight are cancelled,
subscribes end.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from adapter.catalog.builtin.relation import BUILTINS
from adapter.catalog.objects import KIND_NAMES, Cluster, IndexDetails, Item, MaterializedViewDetails
from adapter.catalog.state import TEMP_SCHEMA, CatalogTransaction
from adapter.sql import plans as p
from compute.client.errors import ComputeError
from mzlite.repr.errors import SqlError
from mzlite.repr.ids import ClusterId, GlobalId, ReplicaId

if TYPE_CHECKING:
    from adapter.coord.coordinator import Coordinator
    from adapter.coord.session import Session


class DropSequencer:
    def __init__(self, coordinator: Coordinator) -> None:
        self._c = coordinator

    async def items(self, session: Session, plan: p.DropItemsPlan) -> None:
        c = self._c
        for name in plan.missing:
            session.notice(f'{plan.kind} "{name}" does not exist, skipping', sqlstate="00000")
        if not plan.ids:
            return
        for id in plan.ids:
            if id in BUILTINS:
                builtin = BUILTINS[id]
                raise SqlError("42501", f"system item '{builtin.schema}.{builtin.name}' cannot be modified")
        tx = CatalogTransaction(c.state)
        effects = self.remove(session, tx, list(plan.ids), cascade=plan.cascade)
        await c.commit_catalog(tx)
        self.apply(effects)

    def remove(
        self, session: Session, tx: CatalogTransaction, ids: list[GlobalId], *, cascade: bool, replacing: bool = False
    ) -> list[Item]:
        """Take items out of the catalog with what goes with them; the removed, most dependent first.

        Indexes go with what they are on; anything else that depends needs CASCADE.
        """
        state = tx.state
        dropped = set(ids)
        for id in ids:
            item = state.items.get(id)
            if item is None:
                continue
            blocking = [
                state.items[d] for d in state.used_by.get(id, ()) if d not in dropped and state.items[d].kind != "index"
            ]
            if blocking and not cascade:
                raise self._depended(item, blocking)
        order = state.dependents(ids)
        removed: list[Item] = []
        for id in [*order, *sorted(ids, key=lambda i: int(i[1:]), reverse=True)]:
            item = state.items.get(id)
            if item is not None:
                tx.remove_item(id)
                removed.append(item)
        return removed

    def _depended(self, item: Item, blocking: Sequence[Item]) -> SqlError:
        by = ", ".join(sorted({f'{KIND_NAMES[b.kind]} "{b.name}"' for b in blocking}))
        return SqlError("2BP01", f'cannot drop {KIND_NAMES[item.kind]} "{item.name}": still depended upon by {by}')

    def apply(self, removed: Sequence[Item]) -> None:
        """Effects outside the catalog."""
        c = self._c
        if not removed:
            return
        for item in removed:
            name = item.name
            for uuid, (session, reads) in list(c.pending_peeks.items()):
                if item.id in reads:
                    session.interrupt.interrupt(
                        SqlError("XX000", f'query could not complete because relation "{name}" was dropped')
                    )
                    c.controller.cancel_peek(uuid)
            c.sequencer.subscribes.fail_readers({item.id}, name)
        for item in removed:
            c.pins.unpin(item.id)
            if isinstance(item.details, IndexDetails) and c.controller.collection_exists(item.id):
                c.controller.drop_collection(item.id)
            elif isinstance(item.details, MaterializedViewDetails):
                with contextlib.suppress(ComputeError):  # no dataflow once the view is complete
                    c.controller.drop_collection(item.id)
                c.controller.drop_storage_collection(item.id)
            elif item.shard is not None:
                c.sequencer.ddl.sources.stop(item.id)
                c.controller.drop_storage_collection(item.id)

    # Databases, schemas, clusters, replicas, roles.

    async def named(self, session: Session, plan: p.DropNamedPlan) -> None:
        c = self._c
        kind = plan.kind.lower()
        for name in plan.missing:
            session.notice(f'{kind} "{name}" does not exist, skipping', sqlstate="00000")
        tx = CatalogTransaction(c.state)
        effects: list[Item] = []
        clusters: list[Cluster] = []
        replicas: list[tuple[str, str]] = []
        for names in plan.names:
            match kind:
                case "database":
                    effects += self._database(session, tx, names[-1], plan.cascade)
                case "schema":
                    effects += self._schema(session, tx, names, plan.cascade)
                case "cluster":
                    found = self._cluster(session, tx, names[-1], plan.cascade, effects)
                    clusters.append(found)
                case "cluster replica":
                    replicas.append(self._replica(tx, names))
                case "role" | "user":
                    self._role(session, tx, names[-1])
                case _:
                    raise SqlError("0A000", f"DROP {kind.upper()} not yet supported")
        if not tx.changes and not effects:
            return
        await c.commit_catalog(tx)
        self.apply(effects)
        for cluster in clusters:
            c.controller.drop_cluster(ClusterId(cluster.id))
        for cluster_id, replica_id in replicas:
            c.controller.drop_replica(ClusterId(cluster_id), ReplicaId(replica_id))

    def _database(self, session: Session, tx: CatalogTransaction, name: str, cascade: bool) -> list[Item]:
        database = tx.state.database(name)
        if database is None:
            raise SqlError("3D000", f"unknown database '{name}'")
        schemas = tx.state.schemas_in_database(database.id)
        if not cascade and schemas:
            raise SqlError("2BP01", f"database '{name}' cannot be dropped with RESTRICT while it contains schemas")
        effects: list[Item] = []
        for schema in schemas:
            effects += self._empty_schema(session, tx, schema.id)
            tx.remove_schema(schema.id)
        tx.remove_database(database.id)
        return effects

    def _schema(self, session: Session, tx: CatalogTransaction, names: tuple[str, ...], cascade: bool) -> list[Item]:
        name = names[-1]
        if name == TEMP_SCHEMA:
            raise SqlError("42501", f"cannot drop schema {name} because it is a temporary schema")
        database = names[0] if len(names) > 1 else session.vars.database
        schema = tx.state.schema(database, name)
        if schema is None:
            raise SqlError("3F000", f"unknown schema '{name}'")
        if schema.database_id is None:
            raise SqlError("42501", f"cannot drop schema {name} because it is required by the database system")
        inside = tx.state.items_in_schema(schema.id)
        if inside and not cascade:
            full = f"{database}.{name}"
            raise SqlError("2BP01", f"schema '{full}' cannot be dropped without CASCADE while it contains objects")
        effects = self._empty_schema(session, tx, schema.id)
        tx.remove_schema(schema.id)
        return effects

    def _empty_schema(self, session: Session, tx: CatalogTransaction, schema_id: str) -> list[Item]:
        ids = [i.id for i in tx.state.items_in_schema(schema_id)]
        return self.remove(session, tx, ids, cascade=True) if ids else []

    def _cluster(
        self, session: Session, tx: CatalogTransaction, name: str, cascade: bool, effects: list[Item]
    ) -> Cluster:
        cluster = tx.state.cluster(name)
        if cluster is None:
            raise SqlError("42704", f"unknown cluster '{name}'")
        if cluster.id.startswith("s"):
            raise SqlError("42501", f"system cluster '{name}' cannot be modified")
        bound = tx.state.items_in_cluster(cluster.id)
        if bound and not cascade:
            raise SqlError(
                "2BP01",
                f'cannot drop cluster "{name}" because other objects depend on it',
                hint="Use DROP ... CASCADE to drop the dependent objects too.",
            )
        if bound:
            effects += self.remove(session, tx, [i.id for i in bound], cascade=True)
        tx.remove_cluster(cluster.id)
        return cluster

    def _replica(self, tx: CatalogTransaction, names: tuple[str, ...]) -> tuple[str, str]:
        from dataclasses import replace

        cluster = tx.state.cluster(names[0])
        if cluster is None:
            raise SqlError("42704", f"unknown cluster '{names[0]}'")
        replica = cluster.replica(names[-1])
        if replica is None:
            raise SqlError("42704", f'CLUSTER {cluster.name} has no CLUSTER REPLICA named "{names[-1]}"')
        if cluster.managed:
            raise SqlError("0A000", f"cannot modify managed cluster {cluster.name}", hint="Use ALTER CLUSTER.")
        tx.put_cluster(replace(cluster, replicas=tuple(r for r in cluster.replicas if r.id != replica.id)))
        return cluster.id, replica.id

    def _role(self, session: Session, tx: CatalogTransaction, name: str) -> None:
        role = tx.state.role(name)
        if role is None:
            raise SqlError("42704", f"unknown role '{name}'")
        if role.id.startswith("s"):
            raise SqlError("42939", f'role name "{name}" is reserved')
        if role.id == session.role_id:
            raise SqlError("55006", "current role cannot be dropped")
        owned = [i for i in tx.state.items.values() if i.owner == role.id]
        if owned:
            detail = "\n".join(f"owner of {KIND_NAMES[i.kind]} {i.name}" for i in owned)
            raise SqlError("2BP01", f'role "{name}" cannot be dropped because some objects depend on it', detail=detail)
        tx.remove_role(role.id)
