"""The coordinator: owns the catalog, the timeline, plans and sessions, in the environment process's event loop.

    Session ─▶ Sequencer ─▶ catalog transaction | group commit | controller (dataflows, peeks) ─▶ result

Everything here runs on one event loop; what is slow (fsync, large plans, large results) runs in threads on values
that do not change.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import secrets
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from adapter.catalog import durable
from adapter.catalog.builtin.introspection import log_indexes
from adapter.catalog.builtin.relation import is_local
from adapter.catalog.builtin.rows import BuiltinRows
from adapter.catalog.initial import new_database, system_objects
from adapter.catalog.objects import (
    Cluster,
    Item,
    MaterializedViewDetails,
    Replica,
    Role,
)
from adapter.catalog.state import MZ_SYSTEM_ROLE, CatalogState, CatalogTransaction
from adapter.coord.catalog_reads import CatalogReads
from adapter.coord.group_commit import GroupCommit
from adapter.coord.oracle import Clock, TimestampOracle
from adapter.coord.pins import Pins
from adapter.coord.planning import Planning
from adapter.coord.revisions import Revisions
from adapter.coord.runtime_facts import CoordinatorFacts
from adapter.coord.session import Session
from adapter.coord.session_vars import SESSION_VARS, SessionVars
from adapter.coord.storage_link import StorageLog, ViewProgress
from adapter.coord.storage_link import durable as until_durable
from adapter.coord.system_vars import SystemVars
from adapter.coord.waiting import canceled
from adapter.sequencer.bootstrap import load_items, start_dataflows
from adapter.sequencer.execute import Sequencer
from compute.client.controller import ComputeController, ReplicaConfig
from compute.client.instance import ReplicaStatus
from mzlite.expr import relation as r
from mzlite.repr.errors import SqlError
from mzlite.repr.ids import ClusterId, GlobalId, ReplicaId, transient
from mzlite.repr.timestamp import Frontier, Timestamp
from mzlite.storage.storage import Storage

log = logging.getLogger(__name__)

SWEEP_S = 0.2
SWITCH_INTERVAL_S = 0.0003
T = TypeVar("T")
RESERVED_USERS = frozenset(("mz_system", "mz_support"))


def system_clock() -> Timestamp:
    return time.time_ns() // 1_000_000


class Coordinator(CatalogReads):
    """`Coordinator(storage, controller)`; then `await start()`; sessions come from `connect`.

    storage and controller belong to whoever made them. default_size: of the cluster `quickstart` in a new database.
    """

    def __init__(
        self,
        storage: Storage,
        controller: ComputeController,
        *,
        clock: Clock = system_clock,
        default_size: str = "scale=1,workers=1",
    ) -> None:
        super().__init__()
        self.storage = storage
        self.controller = controller
        self.clock = clock
        self.default_size = default_size
        self.state = CatalogState()
        self.system_vars = SystemVars({})
        self.planning = Planning(self)
        self.sequencer = Sequencer(self)
        self.builtin_rows = BuiltinRows()
        self.sessions: dict[int, Session] = {}
        self.pending_peeks: dict[str, tuple[Session, frozenset[GlobalId]]] = {}
        self.ddl_lock = asyncio.Lock()
        self.started_at_us = time.time_ns() // 1000
        self.environment_id = f"mzlite-local-{secrets.token_hex(16)}-0"
        self._transient = itertools.count(1)
        self._pids = itertools.count(1)
        self._planners = ThreadPoolExecutor(2, "planner")
        self._stored_revision = -1
        self._tables: list[GlobalId] = []
        self._view_shards: dict[str, GlobalId] = {}
        self._sweeper: asyncio.Task[None] | None = None
        self.facts = CoordinatorFacts(self)
        self.pins = Pins(self)
        self.revisions = Revisions()

    # Life.

    async def start(self) -> None:
        """Load the catalog, provision clusters, recreate dataflows; the database answers afterwards."""
        pairs = self.storage.load_catalog()
        tx = CatalogTransaction(CatalogState())
        system_objects(tx)
        tx.changes.clear()
        records = durable.load_into(tx, pairs)
        self.system_vars = SystemVars(tx.state.system_vars)
        if not pairs:
            new_database(tx, self.default_size, self.system_vars.get("enable_compute_interactive_runtime"))
            self.storage.catalog_transaction(durable.encode_changes(tx.changes))
        self.state = tx.state
        self.oracle = TimestampOracle(
            self.clock,
            max(self.storage.load_oracle() or 0, self.storage.table_upper, self.clock()),
            self.storage.store_oracle,
        )
        self.group_commit = GroupCommit(StorageLog(self.storage), self.oracle, self.table_shard, self._applied)
        load_items(self, records)
        self._progress = ViewProgress(asyncio.get_running_loop(), self.storage_upper_moved)
        self.storage.add_listener(self._progress)
        self.controller.update_configuration(self.compute_parameters())
        for item in self.state.items.values():
            self.register_storage(item)
        await self.group_commit.start()
        self.controller.watch_replicas(self._replica_status)
        for cluster in self.state.clusters.values():
            self.provision_cluster(cluster)
        start_dataflows(self)
        for item in self.state.items.values():
            if item.kind == "source":
                self.sequencer.ddl.sources.run(item)
        # A planning thread must not keep the event loop from a read that has just been answered.
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        self._sweeper = asyncio.create_task(self._sweep(), name="statement-timeouts")

    async def shutdown(self) -> None:
        """Cancel everything, stop ticking. Storage and controller are closed by whoever made them."""
        for session in list(self.sessions.values()):
            session.interrupt.interrupt(SqlError("57P01", "terminating connection due to administrator command"))
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        self.sequencer.ddl.sources.stop_all()
        await self.group_commit.stop()
        self._planners.shutdown(wait=False, cancel_futures=True)
        self.storage.remove_listener(self._progress)

    async def _sweep(self) -> None:
        """Statement timeouts: a statement ends within SWEEP_S of its deadline, at no cost to those that are quick."""
        while True:
            await asyncio.sleep(SWEEP_S)
            now = time.monotonic()
            for session in list(self.sessions.values()):
                session.interrupt.check_deadline(now)

    def compute_parameters(self) -> dict[str, Any]:
        parameters = self.system_vars.compute_parameters()
        parameters["enable_compute_interactive_dataflows"] = self.system_vars.get(
            "enable_compute_interactive_dataflows"
        )
        return parameters

    # Sessions.

    def connect(self, user: str, database: str | None, params: dict[str, str], loopback: bool) -> Session:
        """A new session. params: startup parameters (and `options`); loopback: the peer is on this machine.
        SqlError: 28000 (role not allowed), 22023 (bad parameter value), 53300 (too many)."""
        if user in RESERVED_USERS and not loopback:
            raise SqlError("28000", f'role "{user}" is only allowed from the machine of the server')
        if len(self.sessions) >= self.system_vars.get("max_connections"):
            raise SqlError("53300", "creating connection would violate max_connections limit")
        if user.startswith("mz_") and user not in RESERVED_USERS:
            raise SqlError("28000", f'role "{user}" does not exist')
        role = self.state.role(user)
        if role is None:
            role = self._create_role(user)
        superuser = role.id == MZ_SYSTEM_ROLE
        defaults = {**self.system_vars.session_defaults, **{k.lower(): v for k, v in role.variables}}
        if user in RESERVED_USERS:
            defaults.setdefault("cluster", "mz_catalog_server" if user == "mz_support" else "mz_system")
        vars = SessionVars(defaults)
        if superuser:
            vars.set_base("is_superuser", "on")
        pid = next(self._pids)
        session = Session(self, pid, secrets.randbits(31), user, role.id, superuser, vars, time.time_ns() // 1000)
        settings = dict(params)
        settings.update(parse_options(settings.pop("options", "")))
        if database:
            settings["database"] = database
        for name, value in settings.items():
            key = name.lower()
            if key.startswith(("_pq_.", "replication")):
                continue
            if key in SESSION_VARS and not SESSION_VARS[key].read_only:
                vars.set(key, _startup_values(key, value))
            elif key not in SESSION_VARS:
                session.notice(
                    f'startup setting {name} not set: unrecognized configuration parameter "{name}"',
                    sqlstate="42704",
                )
        vars.end_transaction(True)
        if database and self.state.database(vars.database) is None:
            session.notice(
                f'session database "{vars.database}" does not exist',
                hint="Create the database with CREATE DATABASE or pick an extant database with SET DATABASE = name. "
                "List available databases with SHOW DATABASES.",
                sqlstate="MZ005",
            )
        self.sessions[pid] = session
        return session

    def _create_role(self, user: str) -> Role:
        """A user who got this far is let in: the role is made on first sight."""
        tx = CatalogTransaction(self.state)
        role = Role(tx.named_id("role"), tx.oid(), user)
        tx.put_role(role)
        self.storage.catalog_transaction(durable.encode_changes(tx.changes))
        self.state = tx.state
        self.revisions.record(tx)
        return role

    def cancel(self, pid: int, secret: int) -> None:
        """A cancel request: ignored unless both match a live session."""
        session = self.sessions.get(pid)
        if session is not None and session.secret == secret:
            session.interrupt.interrupt(canceled())

    async def forget(self, session: Session) -> None:
        """The session ended."""
        self.sessions.pop(session.pid, None)
        if session.has_temporary_items:
            await self.sequencer.ddl.drop_temporary(session)

    async def in_thread(self, work: Callable[..., T], *args: Any) -> T:
        """Planning that may take long, beside the event loop. What it reads must not change meanwhile."""
        return await asyncio.get_running_loop().run_in_executor(self._planners, work, *args)

    # Catalog.

    async def commit_catalog(self, tx: CatalogTransaction) -> None:
        """Make a catalog transaction durable and current. Called with ddl_lock held, tx based on the current state."""
        assert tx.base is self.state, "catalog transaction on an old revision"
        if tx.changes:
            encoded = durable.encode_changes(tx.changes)
            await until_durable(self.storage.catalog_transaction_begin(encoded))
        self.state = tx.state
        self.revisions.record(tx)

    async def commit_ddl(self, tx: CatalogTransaction, base_revision: int) -> None:
        """A DDL transaction's COMMIT."""
        async with self.ddl_lock:
            if self.state.revision != base_revision:
                raise catalog_moved()
            tx.base = self.state
            await self.commit_catalog(tx)

    # Clusters.

    def provision_cluster(self, cluster: Cluster) -> None:
        self.controller.create_cluster(ClusterId(cluster.id), log_indexes(cluster.id))
        for replica in cluster.replicas:
            self.provision_replica(replica)

    def _replica_status(self, cluster: ClusterId, replica: ReplicaId, status: ReplicaStatus) -> None:
        if status is ReplicaStatus.STARTED:
            self.facts.replica_status(replica, "online")
        elif status is ReplicaStatus.DIED:
            log.warning("replica %s of cluster %s died; it is started again", replica, cluster)
            self.facts.replica_status(replica, "offline", "died")

    def provision_replica(self, replica: Replica) -> None:
        config = ReplicaConfig(workers=replica.workers, interactive=replica.interactive)
        self.controller.create_replica(ClusterId(replica.cluster_id), ReplicaId(replica.id), config)

    def session_cluster(self, session: Session) -> Cluster:
        """The session's cluster; SqlError when there is none of that name or nothing runs on it."""
        name = session.vars.cluster
        cluster = self.state.cluster(name)
        if cluster is None:
            raise SqlError("42704", f"unknown cluster '{name}'")
        if not cluster.replicas:
            raise SqlError(
                "57P03",
                f'CLUSTER "{name}" has no replicas available to service request',
                hint="Use CREATE CLUSTER REPLICA to attach cluster replicas to the cluster",
            )
        return cluster

    def target_cluster(self, session: Session, reads: frozenset[GlobalId], inlined: r.Mir) -> Cluster | None:
        """Where a read runs: nowhere (None) when it reads only the catalog or nothing."""
        if all(is_local(id) for id in r.global_ids(inlined)) and not any(i in self.state.items for i in reads):
            return None
        return self.session_cluster(session)

    def target_replica(self, session: Session, cluster: Cluster, logs: bool = False) -> ReplicaId | None:
        """The replica that must answer, None for any. logs: the read is of one replica's logs."""
        name = session.vars.cluster_replica
        if name is None:
            if not logs:
                return None
            if len(cluster.replicas) != 1:
                raise SqlError(
                    "25000",
                    "log source reads must target a replica",
                    hint="Use `SET cluster_replica = <replica-name>` to target a specific replica in the active cluster. "
                    "Note that subsequent queries will only be answered by the selected replica, which might reduce "
                    "availability. To undo the replica selection, use `RESET cluster_replica`. "
                    f"The active cluster has {len(cluster.replicas)} replicas.",
                )
            return ReplicaId(cluster.replicas[0].id)
        replica = cluster.replica(name)
        if replica is None:
            raise SqlError("42704", f"cluster replica '{cluster.name}.{name}' does not exist")
        return ReplicaId(replica.id)

    # Storage.

    def register_storage(self, item: Item) -> None:
        """Make an item's shard known to the controller."""
        shard = item.shard
        if shard is None:
            return
        lag = item.retain_history_ms if item.retain_history_ms is not None else 1000
        pinned = self.pins.needed(item)
        self.controller.register_storage_collection(
            item.id,
            shard,
            since=self.storage.since(shard) or 0,
            upper=self.storage.upper(shard),
            lag_ms=None if pinned else lag,
        )
        if pinned:
            self.pins.pin(item)
            self.controller.set_read_policy(item.id, lag)

    def _stored(self) -> tuple[list[GlobalId], dict[str, GlobalId]]:
        """(tables and sources, shard -> materialized view) of the current revision."""
        if self._stored_revision != self.state.revision:
            items = self.state.items.values()
            self._tables = [i.id for i in items if i.kind in ("table", "source")]
            self._view_shards = {i.details.shard: i.id for i in items if isinstance(i.details, MaterializedViewDetails)}
            self._stored_revision = self.state.revision
        return self._tables, self._view_shards

    def _applied(self, advance_to: Timestamp) -> None:
        for id in self._stored()[0]:
            self.controller.storage_frontier(id, advance_to)
        self.pins.advance(advance_to)

    def storage_upper_moved(self, shard: str, upper: Frontier) -> None:
        """A materialized view's sink wrote to its shard."""
        id = self._stored()[1].get(shard)
        if id is not None:
            self.controller.storage_frontier(id, upper)

    def transient_id(self) -> GlobalId:
        return transient(next(self._transient))


def catalog_moved() -> SqlError:
    return SqlError("40001", "another session modified the catalog while this DDL transaction was open")


def parse_options(text: str) -> dict[str, str]:
    """`-c a=b --c=d` of the startup packet."""
    found: dict[str, str] = {}
    words = text.replace("\\ ", "\x00").split()
    i = 0
    while i < len(words):
        word = words[i]
        if word == "-c" and i + 1 < len(words):
            i += 1
            word = words[i]
        elif word.startswith("-c") or word.startswith("--"):
            word = word[2:]
        name, _, value = word.partition("=")
        if name:
            found[name.replace("-", "_")] = value.replace("\x00", " ")
        i += 1
    return found


def _startup_values(key: str, value: str) -> list[str]:
    from adapter.coord.session_vars import split_identifiers

    return split_identifiers(value) if key == "search_path" else [value]
