"""Instance: the controller's state for one cluster: replicas, collections, pending peeks, history.

Everything is a reaction: to a call of the controller, to a response, to a hold that moved, to a replica that died.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from compute.client.collection import ComputeCollection, SubscribeCallback
from compute.client.errors import CollectionMissing, ReadHoldInsufficient, ReplicaMissing
from compute.client.holds import ReadHold
from compute.client.replica import Replica
from compute.plan.description import DataflowDescription, SubscribeSink
from compute.protocol.command import (
    AllowCompaction,
    AllowWrites,
    CancelPeek,
    ComputeCommand,
    CreateDataflow,
    CreateInstance,
    IndexTarget,
    InitializationComplete,
    Peek,
    Schedule,
    UpdateConfiguration,
)
from compute.protocol.history import ComputeCommandHistory
from compute.protocol.response import (
    ComputeResponse,
    Frontiers,
    PeekCanceled,
    PeekError,
    PeekResponse,
    PeekRows,
    Status,
    SubscribeBatch,
    SubscribeDropped,
)
from mzlite.repr.encode import decode_updates, encode_updates
from mzlite.repr.errors import SqlError, encode_error
from mzlite.repr.ids import ClusterId, GlobalId, ReplicaId, is_transient
from mzlite.repr.timestamp import Frontier, frontier_le, join

if TYPE_CHECKING:
    from compute.client.controller import ComputeController

INDEX_LAG_MS = 1000


class ReplicaStatus(enum.Enum):
    STARTED = "started"
    DIED = "died"  # and is being restarted
    DROPPED = "dropped"


class PendingPeek:
    """A peek without answer. target: the only replica that may answer. asked: replicas that got the command."""

    __slots__ = ("asked", "command", "future", "hold", "target")

    def __init__(
        self, command: Peek, future: asyncio.Future[PeekResponse], hold: ReadHold, target: ReplicaId | None
    ) -> None:
        self.command = command
        self.future = future
        self.hold = hold
        self.target = target
        self.asked: set[ReplicaId] = set()


class Instance:
    """One cluster. `controller` is told of what concerns others: uppers, finished peeks, collections come and gone."""

    def __init__(
        self,
        controller: ComputeController,
        id: ClusterId,
        logs: dict[str, GlobalId],
        logging_interval_ms: int,
        parameters: dict[str, Any],
    ) -> None:
        self.id = id
        self.replicas: dict[ReplicaId, Replica] = {}
        self.collections: dict[GlobalId, ComputeCollection] = {}
        self.peeks: dict[str, PendingPeek] = {}
        self._controller = controller
        self._loop = asyncio.get_running_loop()
        self._unscheduled: dict[GlobalId, None] = {}
        self._status_listeners: list[Callable[[ReplicaId, Status], None]] = []
        self.history = ComputeCommandHistory(
            [
                CreateInstance(logs, logging_interval_ms, parameters),
                *([UpdateConfiguration(parameters)] if parameters else []),
                InitializationComplete(),
            ]
        )
        for log in logs.values():
            collection = ComputeCollection(
                log,
                0,
                lag_ms=INDEX_LAG_MS,
                inputs=(),
                input_holds=[],
                on_since=partial(self._since_moved, log),
                is_log=True,
            )
            collection.scheduled = True
            self._add(collection)

    # -- replicas

    def add_replica(self, id: ReplicaId, workers: int, interactive: bool) -> None:
        assert id not in self.replicas, f"replica {id} exists"
        replica = Replica(
            self._controller.orchestrator,
            id,
            f"{self.id}-{id}",
            workers,
            interactive,
            replay=self._replay,
            on_response=self._response,
            on_death=self._replica_died,
        )
        self.replicas[id] = replica
        replica.start()

    def drop_replica(self, id: ReplicaId) -> None:
        replica = self.replicas.pop(id, None)
        if replica is None:
            raise ReplicaMissing(id)
        replica.stop()
        self._forget_replica(id, "was dropped")
        self._controller._replica_status(self.id, id, ReplicaStatus.DROPPED)

    def shutdown(self) -> None:
        for uuid in list(self.peeks):
            self._finish_peek(uuid, PeekCanceled(uuid))
        for replica in list(self.replicas):
            self.drop_replica(replica)
        for collection in list(self.collections.values()):
            collection.awaiting.clear()
            collection.policy.release()
        for collection in list(self.collections.values()):
            # Still held by a reader that outlives the cluster: nothing can answer it any more.
            collection.release_inputs()
            self._remove(collection)

    def _replay(self, replica: Replica) -> list[ComputeCommand]:
        """The reduced history for a fresh process, with what only concerns other replicas left out."""
        self.history.reduce()
        commands: list[ComputeCommand] = []
        for command in self.history:
            if isinstance(command, CreateDataflow):
                for export_id in command.dataflow.export_ids():
                    collection = self.collections.get(export_id)
                    if collection is not None and not collection.dropped:
                        collection.hold_for_replica(replica.id)
                        collection.awaiting.add(replica.id)
            elif isinstance(command, Peek):
                peek = self.peeks.get(command.uuid)
                if peek is None or (peek.target is not None and peek.target != replica.id):
                    continue
                peek.asked.add(replica.id)
            commands.append(command)
        for collection in self.collections.values():
            if collection.is_log:
                collection.awaiting.add(replica.id)
        self._controller._replica_status(self.id, replica.id, ReplicaStatus.STARTED)
        return commands

    def _replica_died(self, replica: Replica) -> None:
        self._forget_replica(replica.id, "failed")
        self._controller._replica_status(self.id, replica.id, ReplicaStatus.DIED)

    def _forget_replica(self, id: ReplicaId, what_happened: str) -> None:
        """Targeted reads fail; nothing waits for the replica any more."""
        message = f"target replica {what_happened}"
        for uuid, peek in list(self.peeks.items()):
            peek.asked.discard(id)
            if peek.target == id:
                error = encode_error(SqlError("57P01", message))
                self._finish_peek(uuid, PeekError(uuid, error))
        for collection in list(self.collections.values()):
            collection.replica_uppers.pop(id, None)
            collection.release_replica(id)
            if collection.is_subscribe and collection.target == id and collection.subscribe_callback is not None:
                callback = collection.subscribe_callback
                collection.subscribe_callback = None
                error = encode_error(SqlError("57P01", message))
                callback(SubscribeBatch(collection.id, collection.upper, None, None, error))
            if id in collection.awaiting:
                collection.awaiting.discard(id)
                if collection.dropped and not collection.awaiting:
                    self._remove(collection)

    # -- commands

    def _send(self, command: ComputeCommand) -> None:
        self.history.push(command)
        for replica in self.replicas.values():
            replica.send(command)

    def update_configuration(self, parameters: dict[str, Any]) -> None:
        self._send(UpdateConfiguration(parameters))

    def create_dataflow(self, dataflow: DataflowDescription, target: ReplicaId | None) -> None:
        if target is not None and target not in self.replicas:
            raise ReplicaMissing(target)
        as_of = dataflow.as_of
        inputs = (*dataflow.source_imports, *dataflow.index_imports)
        exports = dataflow.export_ids()
        assert exports, f"dataflow {dataflow.name} exports nothing"
        for id in exports:
            assert id not in self.collections, f"export {id} exists"
        for id in dataflow.index_imports:
            if id not in self.collections:
                raise CollectionMissing(id)
        held: list[list[ReadHold]] = []
        try:
            for _ in exports:
                holds: list[ReadHold] = []
                held.append(holds)
                for id in inputs:
                    holds.append(self._acquire_input(dataflow, id, as_of))
        except (CollectionMissing, ReadHoldInsufficient):
            for holds in held:
                for hold in holds:
                    hold.release()
            raise
        for id, holds in zip(exports, held, strict=True):
            sink = dataflow.sink_exports.get(id)
            if sink is not None:
                lag_ms: int | None = 1  # restarted from the last complete time: see `collection`
            else:
                lag_ms = None if is_transient(id) else INDEX_LAG_MS
            collection = ComputeCollection(
                id,
                as_of,
                lag_ms=lag_ms,
                inputs=inputs,
                input_holds=holds,
                on_since=partial(self._since_moved, id),
                is_subscribe=sink is not None and isinstance(sink.connection, SubscribeSink),
                target=target,
            )
            self._add(collection)
            for replica in self.replicas.values():
                if replica.connected:
                    collection.hold_for_replica(replica.id)
                    collection.awaiting.add(replica.id)
        self._send(CreateDataflow(dataflow))
        for id in exports:
            self._unscheduled[id] = None
            self._schedule_if_ready(id)
            if dataflow.sink_exports.get(id) is not None:
                self.allow_writes(id)

    def _acquire_input(self, dataflow: DataflowDescription, id: GlobalId, as_of: int) -> ReadHold:
        if id in dataflow.index_imports:
            return self.collection(id).holds.acquire(as_of)
        return self._controller.acquire_hold(id, as_of)

    def allow_writes(self, id: GlobalId) -> None:
        self.collection(id)
        self._send(AllowWrites(id))

    def drop_collection(self, id: GlobalId) -> None:
        collection = self.collection(id)
        collection.subscribe_callback = None
        collection.policy.release()

    def set_read_policy(self, id: GlobalId, lag_ms: int | None) -> None:
        collection = self.collection(id)
        collection.lag_ms = lag_ms
        collection.apply_policy()

    def on_subscribe(self, id: GlobalId, callback: SubscribeCallback) -> None:
        self.collection(id).subscribe_callback = callback

    def collection(self, id: GlobalId) -> ComputeCollection:
        collection = self.collections.get(id)
        if collection is None:
            raise CollectionMissing(id)
        return collection

    # -- scheduling

    def _schedule_if_ready(self, id: GlobalId) -> None:
        """Transient collections run at once; others when their inputs are scheduled and have passed as_of."""
        collection = self.collections[id]
        if not is_transient(id):
            for input in collection.inputs:
                upstream = self.collections.get(input)
                if upstream is not None and not upstream.scheduled:
                    return
                _, upper = self._input_frontiers(input)
                if frontier_le(upper, collection.as_of):
                    return
        collection.scheduled = True
        self._unscheduled.pop(id, None)
        self._send(Schedule(id))
        for other in list(self._unscheduled):
            if id in self.collections[other].inputs:
                self._schedule_if_ready(other)

    def _input_frontiers(self, id: GlobalId) -> tuple[Frontier, Frontier]:
        upstream = self.collections.get(id)
        if upstream is not None and upstream.is_subscribe is False and id not in self._controller._storage:
            return upstream.holds.since, upstream.upper
        return self._controller.frontiers(id)

    def input_advanced(self, id: GlobalId) -> None:
        if self._unscheduled:
            for other in list(self._unscheduled):
                if other in self._unscheduled and id in self.collections[other].inputs:
                    self._schedule_if_ready(other)

    # -- collections

    def _add(self, collection: ComputeCollection) -> None:
        self.collections[collection.id] = collection
        self._controller._collection_created(collection.id, self)

    def _since_moved(self, id: GlobalId, since: Frontier) -> None:
        collection = self.collections.get(id)
        if collection is None:
            return
        self._send(AllowCompaction(id, since))
        if since is None:
            collection.dropped = True
            self._unscheduled.pop(id, None)
            collection.release_inputs()
            if not collection.awaiting:
                self._remove(collection)
        else:
            for hold in collection.input_holds:
                hold.downgrade(since)

    def _remove(self, collection: ComputeCollection) -> None:
        if self.collections.pop(collection.id, None) is None:
            return
        for replica in list(collection.replica_holds):
            collection.release_replica(replica)
        self._controller._collection_removed(collection.id, self)

    # -- peeks

    def peek(self, command: Peek, target: ReplicaId | None, hold: ReadHold) -> asyncio.Future[PeekResponse]:
        if target is not None and target not in self.replicas:
            raise ReplicaMissing(target)
        if isinstance(command.target, IndexTarget) and command.target.id not in self.collections:
            raise CollectionMissing(command.target.id)
        uuid = command.uuid
        assert uuid not in self.peeks, f"peek {uuid} exists"
        future: asyncio.Future[PeekResponse] = self._loop.create_future()
        peek = PendingPeek(command, future, hold, target)
        self.peeks[uuid] = peek
        self.history.push(command)
        for replica in self.replicas.values():
            if replica.connected and (target is None or replica.id == target):
                peek.asked.add(replica.id)
                replica.send_now(command)
        future.add_done_callback(partial(self._peek_done, uuid))
        return future

    def _peek_done(self, uuid: str, future: asyncio.Future[PeekResponse]) -> None:
        if future.cancelled():
            self.cancel_peek(uuid)

    def cancel_peek(self, uuid: str) -> None:
        if uuid in self.peeks:
            self._finish_peek(uuid, PeekCanceled(uuid))

    def _finish_peek(self, uuid: str, response: PeekResponse, answered_by: ReplicaId | None = None) -> None:
        peek = self.peeks.pop(uuid)
        if not peek.future.done():
            peek.future.set_result(response)
        cancel = CancelPeek(uuid)
        self.history.push(cancel)
        for id in peek.asked:
            if id != answered_by:
                replica = self.replicas.get(id)
                if replica is not None:
                    replica.send(cancel)
        peek.hold.release()
        self._controller._peek_finished(uuid)

    # -- responses

    def _response(self, replica: Replica, response: ComputeResponse) -> None:
        match response:
            case PeekRows() | PeekError() | PeekCanceled():
                peek = self.peeks.get(response.uuid)
                if peek is not None and (peek.target is None or peek.target == replica.id):
                    self._finish_peek(response.uuid, response, replica.id)
            case Frontiers():
                self._frontiers(replica, response)
            case SubscribeBatch() | SubscribeDropped():
                self._subscribe(replica, response)
            case Status():
                for listener in self._status_listeners:
                    listener(replica.id, response)

    def on_status(self, listener: Callable[[ReplicaId, Status], None]) -> None:
        """Observe the replicas' Status reports (gauges, placement)."""
        self._status_listeners.append(listener)

    def _frontiers(self, replica: Replica, response: Frontiers) -> None:
        if response.has_write:
            collection = self.collections.get(response.id)
            if collection is not None:
                self._write_frontier(replica, collection, response.write)

    def _write_frontier(self, replica: Replica, collection: ComputeCollection, write: Frontier) -> None:
        known = collection.replica_uppers.get(replica.id, 0)
        assert frontier_le(known, write), f"upper of {collection.id} on {replica.id} regressed from {known} to {write}"
        collection.replica_uppers[replica.id] = write
        collection.replica_advanced(replica.id, write)
        if collection.dropped:
            if write is None:
                collection.awaiting.discard(replica.id)
                if not collection.awaiting:
                    self._remove(collection)
            return
        upper = join(collection.upper, write)
        if upper != collection.upper:
            collection.upper = upper
            collection.apply_policy()
            self._controller._compute_upper(collection.id, upper)
            self.input_advanced(collection.id)

    def _subscribe(self, replica: Replica, response: SubscribeBatch | SubscribeDropped) -> None:
        collection = self.collections.get(response.id)
        if collection is None or (collection.target is not None and collection.target != replica.id):
            return
        if isinstance(response, SubscribeDropped):
            self._write_frontier(replica, collection, None)
            return
        batch = trim(response, collection.upper)
        if batch is not None and collection.subscribe_callback is not None:
            collection.subscribe_callback(batch)
        self._write_frontier(replica, collection, response.upper)


def trim(batch: SubscribeBatch, seen: Frontier) -> SubscribeBatch | None:
    """What of a batch is news to a client that has seen everything before `seen` (None: it has seen all there is)."""
    if frontier_le(batch.upper, seen) and batch.error is None:
        return None
    if seen is None or batch.lower is None or batch.lower >= seen:
        return batch
    fresh: bytes | None = None
    if batch.updates is not None:
        updates = decode_updates(batch.updates)
        fresh = encode_updates(updates.filter(updates.time >= np.uint64(seen)))
    return SubscribeBatch(batch.id, seen, batch.upper, fresh, batch.error)
