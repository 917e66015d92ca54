"""ComputeController: the one object through which the environment runs dataflows and reads.

All methods run on the event loop's thread and return at once; nothing here waits for a replica. Storage collections
(tables, sources, materialized views' shards) are registered here too, so that one kind of read hold protects both.

    create_dataflow ─▶ holds on imports ─▶ history ─▶ every replica of the cluster
    peek            ─▶ hold at timestamp ─▶ every replica (or the target); first answer wins
                       answer, then CancelPeek to the others, then release the hold: in this order, because
                       releasing first would let compaction overtake a peek that still runs

Source: Materialize's compute controller, with the parts of the storage controller that keep read holds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from compute.client.errors import ClusterMissing, CollectionMissing
from compute.client.holds import HoldSet, ReadHold
from compute.client.instance import Instance, ReplicaStatus
from compute.client.orchestrator import Orchestrator
from compute.client.placement import place
from compute.client.waiters import FrontierWaiters
from compute.plan.description import DataflowDescription
from compute.protocol.command import IndexTarget, Peek, PersistTarget
from compute.protocol.response import PeekResponse, Status, SubscribeBatch, SubscribeDropped
from mzlite.expr.mfp import MapFilterProject
from mzlite.expr.relation import Datums, RowSetFinishing
from mzlite.repr.ids import ClusterId, GlobalId, ReplicaId
from mzlite.repr.timestamp import Frontier, Timestamp, frontier_le

DEFAULT_LAG_MS = 1000


class ReplicaConfig(msgspec.Struct, frozen=True):
    """workers: processes per runtime. interactive: two runtimes (False: one, role Solo). Fixed while the replica lives."""

    workers: int = 1
    interactive: bool = True


class StorageCollection:
    """A shard as seen by readers: its upper, its holds, and the policy hold that trails the upper."""

    __slots__ = ("holds", "id", "lag_ms", "policy", "shard", "upper")

    def __init__(
        self,
        id: GlobalId,
        shard: str,
        since: Timestamp,
        upper: Frontier,
        lag_ms: int | None,
        on_since: Callable[[str, Frontier], None],
    ) -> None:
        self.id = id
        self.shard = shard
        self.upper = upper
        self.lag_ms = lag_ms
        self.holds = HoldSet(id, lambda since: on_since(shard, since))
        self.policy = self.holds.acquire(since)
        self.apply_policy()

    def apply_policy(self) -> None:
        lag_ms = self.lag_ms
        upper = self.upper
        # A sealed shard (upper None) keeps its last since: it must stay readable.
        if lag_ms is not None and upper is not None and upper > lag_ms:
            self.policy.downgrade(upper - lag_ms)


class ComputeController:
    """See the module. Every method that names an unknown cluster, replica or collection raises a `ComputeError`.

    shard_socket: path of the ShardServer's Unix socket, for the workers. on_storage_since(shard, since): a storage
    collection may be compacted to since (None: dropped). on_replica_status(cluster, replica, status): started, died
    (a restart follows by itself), dropped.
    """

    def __init__(
        self,
        shard_socket: str | None,
        *,
        on_storage_since: Callable[[str, Frontier], None] = lambda shard, since: None,
        on_replica_status: Callable[[ClusterId, ReplicaId, ReplicaStatus], None] = lambda cluster, replica, status: (
            None
        ),
        orchestrator: Orchestrator | None = None,
    ) -> None:
        self.orchestrator = orchestrator if orchestrator is not None else Orchestrator(shard_socket)
        self.interactive_dataflows = True
        """`enable_compute_interactive_dataflows`: read when a dataflow is created."""
        self._on_storage_since = on_storage_since
        self._on_replica_status = on_replica_status
        self._parameters: dict[str, Any] = {}
        self._instances: dict[ClusterId, Instance] = {}
        self._storage: dict[GlobalId, StorageCollection] = {}
        self._home: dict[GlobalId, Instance] = {}  # compute collection -> its cluster
        self._peeks: dict[str, Instance] = {}
        self._waiters = FrontierWaiters()

    # -- lifecycle

    async def start(self) -> None:
        """Start the fork server. Replicas may be created before or after; their commands wait in the sockets."""
        self.orchestrator.start()

    def watch_replicas(self, callback: Callable[[ClusterId, ReplicaId, ReplicaStatus], None]) -> None:
        """Hear of replicas that start, die (they come back by themselves) and are dropped, instead of the constructor's."""
        self._on_replica_status = callback

    async def shutdown(self) -> None:
        """Drop every cluster and end the processes."""
        for cluster in list(self._instances):
            self.drop_cluster(cluster)
        self.orchestrator.shutdown()
        self._waiters.cancel_all()

    def update_configuration(self, parameters: Mapping[str, Any]) -> None:
        """Parameters by name, for every replica now and later. `enable_compute_interactive_dataflows` is applied here."""
        self._parameters.update(parameters)
        if "enable_compute_interactive_dataflows" in parameters:
            self.interactive_dataflows = bool(parameters["enable_compute_interactive_dataflows"])
        for instance in self._instances.values():
            instance.update_configuration(dict(parameters))

    # -- clusters and replicas

    def create_cluster(
        self, id: ClusterId, logs: Mapping[str, GlobalId] | None = None, logging_interval_ms: int = 1000
    ) -> None:
        """A cluster without replicas. logs: log variant -> id of its index in this cluster (readable on each replica)."""
        assert id not in self._instances, f"cluster {id} exists"
        instance = Instance(self, id, dict(logs or {}), logging_interval_ms, dict(self._parameters))
        self._instances[id] = instance

    def drop_cluster(self, id: ClusterId) -> None:
        """Drop its replicas and collections. Pending peeks are answered PeekCanceled."""
        instance = self._instance(id)
        instance.shutdown()
        del self._instances[id]

    def create_replica(self, cluster: ClusterId, replica: ReplicaId, config: ReplicaConfig) -> None:
        """Provision a replica and replay the cluster's history to it. Returns before its processes run."""
        self._instance(cluster).add_replica(replica, config.workers, config.interactive)

    def drop_replica(self, cluster: ClusterId, replica: ReplicaId) -> None:
        """End its processes. Peeks and subscribes targeted at it fail; others go on elsewhere."""
        self._instance(cluster).drop_replica(replica)

    def replicas(self, cluster: ClusterId) -> dict[ReplicaId, ReplicaConfig]:
        return {id: ReplicaConfig(r.workers, r.interactive) for id, r in self._instance(cluster).replicas.items()}

    # -- storage collections

    def register_storage_collection(
        self,
        id: GlobalId,
        shard: str,
        *,
        since: Timestamp = 0,
        upper: Frontier = 0,
        lag_ms: int | None = DEFAULT_LAG_MS,
    ) -> None:
        """Make a shard known: importable and holdable. lag_ms: how far `since` trails `upper` (None: by hand)."""
        assert id not in self._storage, f"storage collection {id} exists"
        self._storage[id] = StorageCollection(id, shard, since, upper, lag_ms, self._on_storage_since)

    def drop_storage_collection(self, id: GlobalId) -> None:
        """Give up the policy hold; on_storage_since(shard, None) follows once no reader is left."""
        self._storage_collection(id).policy.release()
        del self._storage[id]
        self._waiters.drop(id)

    def storage_frontier(self, id: GlobalId, upper: Frontier) -> None:
        """The shard's upper moved. Call it for every storage collection that a commit advances."""
        collection = self._storage.get(id)
        if collection is None or not frontier_le(collection.upper, upper) or collection.upper == upper:
            return
        collection.upper = upper
        collection.apply_policy()
        self._waiters.advance(id, upper)
        for instance in self._instances.values():
            instance.input_advanced(id)

    # -- collections

    def create_dataflow(
        self, cluster: ClusterId, dataflow: DataflowDescription, *, replica: ReplicaId | None = None
    ) -> None:
        """Install a dataflow on every replica of the cluster, or only on `replica` (then its subscribes are targeted).

        Its imports must be readable at as_of (ReadHoldInsufficient otherwise; hold them across the call), its export
        ids new. Transient exports start at once, others when their inputs have passed as_of. An export's own since
        starts at as_of; transient indexes stay there, others trail their upper by 1000 ms until `set_read_policy`.
        """
        self._instance(cluster).create_dataflow(
            place(dataflow, interactive_dataflows=self.interactive_dataflows), replica
        )

    def drop_collection(self, id: GlobalId) -> None:
        """Drop an index or sink. It stays readable for holders of a ReadHold, and leaves the replicas after the last."""
        self._compute_home(id).drop_collection(id)

    def collection_exists(self, id: GlobalId) -> bool:
        return id in self._home or id in self._storage

    def acquire_hold(self, id: GlobalId, at: Timestamp | None = None) -> ReadHold:
        """Keep `id` readable from `at` on (default: from its since). Of a materialized view: its shard."""
        collection = self._storage.get(id)
        if collection is not None:
            return collection.holds.acquire(at)
        return self._compute_home(id).collection(id).holds.acquire(at)

    def frontiers(self, id: GlobalId) -> tuple[Frontier, Frontier]:
        """(since, upper). A storage id answers for its shard, a compute id for the most advanced replica."""
        collection = self._storage.get(id)
        if collection is not None:
            return collection.holds.since, collection.upper
        compute = self._compute_home(id).collection(id)
        return compute.holds.since, compute.upper

    def set_read_policy(self, id: GlobalId, lag_ms: int | None) -> None:
        """How far since trails upper. None: since stays where it is."""
        collection = self._storage.get(id)
        if collection is not None:
            collection.lag_ms = lag_ms
            collection.apply_policy()
        else:
            self._compute_home(id).set_read_policy(id, lag_ms)

    def allow_writes(self, id: GlobalId) -> None:
        """Let a storage sink write (sinks created here may write from the start; for read-only environments)."""
        self._compute_home(id).allow_writes(id)

    def wait_for(self, id: GlobalId, ts: Timestamp) -> asyncio.Future[None]:
        """Done once upper > ts (ts is complete). Cancelled if the collection is dropped before."""
        _, upper = self.frontiers(id)
        return self._waiters.add(id, ts, upper)

    def replica_frontiers(self, id: GlobalId) -> dict[ReplicaId, Frontier]:
        """Upper of a compute collection on each replica that has reported one."""
        return dict(self._compute_home(id).collection(id).replica_uppers)

    def hydrated(self, id: GlobalId, replica: ReplicaId | None = None) -> bool:
        """Has (any, or that) replica output at as_of or beyond?"""
        collection = self._compute_home(id).collection(id)
        uppers = collection.replica_uppers
        seen = uppers.values() if replica is None else [uppers[replica]] if replica in uppers else []
        return any(not frontier_le(upper, collection.as_of) for upper in seen)

    # -- reads

    def peek(
        self,
        cluster: ClusterId,
        target: IndexTarget | PersistTarget,
        *,
        uuid: str,
        timestamp: Timestamp,
        mfp: MapFilterProject,
        finishing: RowSetFinishing,
        literal_constraints: tuple[Datums, ...] | None = None,
        replica: ReplicaId | None = None,
        hold: ReadHold | None = None,
    ) -> asyncio.Future[PeekResponse]:
        """Read at timestamp. The future ends with exactly one response; it never raises, except by being cancelled.

        replica: ask only it; if it dies or is dropped the response is a PeekError (57014-like text names the
        replica). hold: a hold on the target at or before timestamp, handed over (released when the peek finishes);
        None: one is acquired here, ReadHoldInsufficient if the target's since has passed timestamp. On a cluster
        without replicas the peek stays pending until one is created. A raised ComputeError leaves nothing behind.
        """
        instance = self._instance(cluster)
        command = Peek(target, uuid, timestamp, mfp, finishing, literal_constraints)
        if hold is None:
            hold = self.acquire_hold(target.id, timestamp)
        future = instance.peek(command, replica, hold)
        self._peeks[uuid] = instance
        return future

    def cancel_peek(self, uuid: str) -> None:
        """End a pending peek with PeekCanceled. An unknown or finished uuid is ignored."""
        instance = self._peeks.get(uuid)
        if instance is not None:
            instance.cancel_peek(uuid)

    def on_subscribe(self, id: GlobalId, callback: Callable[[SubscribeBatch | SubscribeDropped], None]) -> None:
        """Set the receiver of a subscribe's batches; call it right after create_dataflow, in the same turn of the loop."""
        self._compute_home(id).on_subscribe(id, callback)

    def on_status(self, cluster: ClusterId, listener: Callable[[ReplicaId, Status], None]) -> None:
        """Observe what the workers of a cluster report about themselves (`runtime.reports`): gauges, placement."""
        self._instance(cluster).on_status(listener)

    # -- for Instance

    def _peek_finished(self, uuid: str) -> None:
        self._peeks.pop(uuid, None)

    def _collection_created(self, id: GlobalId, instance: Instance) -> None:
        self._home[id] = instance

    def _collection_removed(self, id: GlobalId, instance: Instance) -> None:
        if self._home.get(id) is instance:
            del self._home[id]
            if id not in self._storage:
                self._waiters.drop(id)

    def _compute_upper(self, id: GlobalId, upper: Frontier) -> None:
        if id not in self._storage:
            self._waiters.advance(id, upper)

    def _replica_status(self, cluster: ClusterId, replica: ReplicaId, status: ReplicaStatus) -> None:
        self._on_replica_status(cluster, replica, status)

    # -- look-ups

    def _instance(self, cluster: ClusterId) -> Instance:
        instance = self._instances.get(cluster)
        if instance is None:
            raise ClusterMissing(cluster)
        return instance

    def _storage_collection(self, id: GlobalId) -> StorageCollection:
        collection = self._storage.get(id)
        if collection is None:
            raise CollectionMissing(id)
        return collection

    def _compute_home(self, id: GlobalId) -> Instance:
        instance = self._home.get(id)
        if instance is None:
            raise CollectionMissing(id)
        return instance
