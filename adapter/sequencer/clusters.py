"""Clusters and replicas: CREATE, ALTER. A managed cluster's replicas r1 … rn are its own; an unmanaged one's are named.

`enable_compute_interactive_runtime` is read when a managed replica is provisioned, and only then; replicas of
unmanaged clusters have one runtime.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from adapter.catalog.initial import parse_workers
from adapter.catalog.objects import Cluster, Replica
from adapter.catalog.state import CatalogTransaction
from adapter.sql import plans as p
from mzlite.repr.errors import SqlError
from mzlite.repr.ids import ClusterId, ReplicaId

if TYPE_CHECKING:
    from adapter.coord.coordinator import Coordinator
    from adapter.coord.session import Session

MAX_WORKERS = 64


class ClusterSequencer:
    def __init__(self, coordinator: Coordinator) -> None:
        self._c = coordinator

    def _workers(self, size: str) -> int:
        workers = parse_workers(size)
        if workers is None or workers > MAX_WORKERS:
            raise SqlError("22023", f"unknown cluster replica size {size}", hint="sizes are 'scale=1,workers=N'")
        return workers

    def _replica(
        self, tx: CatalogTransaction, session: Session, cluster_id: str, name: str, size: str, managed: bool
    ) -> Replica:
        interactive = managed and bool(self._c.system_vars.get("enable_compute_interactive_runtime"))
        return Replica(
            tx.named_id("replica"), cluster_id, name, size, self._workers(size), interactive, session.role_id
        )

    async def create(self, session: Session, plan: p.CreateClusterPlan) -> None:
        c = self._c
        if plan.name.startswith(("mz_", "pg_")):
            raise SqlError(
                "42939",
                f"cluster name '{plan.name}' is reserved",
                detail='The prefixes "mz_" and "pg_" are reserved for system clusters.',
            )
        if c.state.cluster(plan.name) is not None:
            raise SqlError("42710", f"cluster '{plan.name}' already exists")
        self._check_limit("max_clusters", "cluster", sum(1 for i in c.state.clusters if i.startswith("u")))
        tx = CatalogTransaction(c.state)
        id = tx.named_id("cluster")
        if plan.replicas is not None:
            self._check_replicas(len(plan.replicas))
            replicas = tuple(
                self._replica(tx, session, id, r.name, r.size or "scale=1,workers=1", False) for r in plan.replicas
            )
            if len({r.name for r in replicas}) < len(replicas):
                raise SqlError("42710", "cluster replica names must be unique")
            cluster = Cluster(id, plan.name, session.role_id, None, 0, replicas)
        else:
            size = plan.size or "scale=1,workers=1"
            self._workers(size)
            self._check_replicas(plan.replication_factor)
            replicas = tuple(
                self._replica(tx, session, id, f"r{i + 1}", size, True) for i in range(plan.replication_factor)
            )
            cluster = Cluster(id, plan.name, session.role_id, size, plan.replication_factor, replicas)
        tx.put_cluster(cluster)
        await c.commit_catalog(tx)
        c.provision_cluster(cluster)

    def _check_limit(self, variable: str, what: str, current: int) -> None:
        limit = self._c.system_vars.get(variable)
        if current + 1 > limit:
            raise SqlError(
                "53400",
                f"creating {what} would violate {variable} limit (desired: {current + 1}, limit: {limit}, current: {current})",
            )

    def _check_replicas(self, count: int) -> None:
        limit = self._c.system_vars.get("max_replicas_per_cluster")
        if count > limit:
            raise SqlError(
                "53400",
                "creating cluster replica would violate max_replicas_per_cluster limit "
                f"(desired: {count}, limit: {limit}, current: 0)",
            )

    async def create_replica(self, session: Session, plan: p.CreateClusterReplicaPlan) -> None:
        c = self._c
        cluster = c.state.cluster(plan.cluster)
        if cluster is None:
            raise SqlError("42704", f"unknown cluster '{plan.cluster}'")
        if cluster.managed:
            raise SqlError("0A000", f"cannot modify managed cluster {cluster.name}", hint="Use ALTER CLUSTER.")
        spec = plan.replica
        if cluster.replica(spec.name) is not None:
            raise SqlError("42710", f"cluster replica '{cluster.name}.{spec.name}' already exists")
        self._check_replicas(len(cluster.replicas) + 1)
        tx = CatalogTransaction(c.state)
        replica = self._replica(tx, session, cluster.id, spec.name, spec.size or "scale=1,workers=1", False)
        tx.put_cluster(replace(cluster, replicas=(*cluster.replicas, replica)))
        await c.commit_catalog(tx)
        c.provision_replica(replica)

    async def alter(self, session: Session, plan: p.AlterClusterPlan) -> None:
        c = self._c
        cluster = c.state.cluster(plan.name)
        if cluster is None:
            raise SqlError("42704", f"unknown cluster '{plan.name}'")
        if cluster.id.startswith("s"):
            raise SqlError("42501", f"system cluster '{plan.name}' cannot be modified")
        options = {k.lower().replace("_", " "): v for k, v in plan.set}
        resets = {k.lower().replace("_", " ") for k in plan.reset}
        tx = CatalogTransaction(c.state)
        managed = cluster.managed
        if "managed" in options:
            managed = options["managed"].lower() in ("true", "on", "t", "1", "")
        size = options.get("size", cluster.size)
        if managed and size is None:
            size = cluster.replicas[0].size if cluster.replicas else "scale=1,workers=1"
        factor = cluster.replication_factor if cluster.managed else len(cluster.replicas)
        if "replication factor" in options:
            factor = _count(options["replication factor"])
        if "replication factor" in resets:
            factor = c.system_vars.get("default_cluster_replication_factor")
        if not managed:
            if "size" in options or "replication factor" in options:
                raise SqlError("0A000", f"Cannot change REPLICATION FACTOR or SIZE of unmanaged cluster {cluster.name}")
            new = replace(cluster, size=None, replication_factor=0)
        else:
            assert size is not None
            self._workers(size)
            self._check_replicas(factor)
            kept = tuple(r for r in cluster.replicas if r.size == size)[:factor]
            made: list[Replica] = list(kept)
            names = {r.name for r in kept}
            n = 1
            while len(made) < factor:
                while f"r{n}" in names:
                    n += 1
                names.add(f"r{n}")
                made.append(self._replica(tx, session, cluster.id, f"r{n}", size, True))
            new = replace(cluster, size=size, replication_factor=factor, replicas=tuple(made))
        tx.put_cluster(new)
        await c.commit_catalog(tx)
        before = {r.id for r in cluster.replicas}
        after = {r.id for r in new.replicas}
        # New replicas first, so that reads always find one.
        for replica in new.replicas:
            if replica.id not in before:
                c.provision_replica(replica)
        for id in before - after:
            c.controller.drop_replica(ClusterId(cluster.id), ReplicaId(id))


def _count(text: str) -> int:
    if not text.isdigit():
        raise SqlError("22023", "invalid REPLICATION FACTOR: invalid digit found in string")
    return int(text)
