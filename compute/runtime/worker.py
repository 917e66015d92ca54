"""Worker: one worker of one runtime as a state machine. It does no I/O and has no threads: `process` feeds it.

    handle(command)     in stream order; builds, drops, moves holds, starts peeks
    step()              one slice: a walking peek, else an up-to-date dataflow with news, else a hydrating one, else merging
    outbox              responses to send

Dataflows that are up to date go before those that hydrate, so fresh data stays fresh while a big view builds.
What a runtime renders follows from its role (`placement.renders`); the rest of the stream concerns *peers*: collections
of the other runtime, which an interactive worker reads through its registry and a maintenance worker never needs to know
beyond their names.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

from compute.client.placement import Role, answers_peeks, renders
from compute.plan.description import DataflowDescription, MaterializedViewSink
from compute.protocol.command import (
    AllowCompaction,
    AllowWrites,
    CancelPeek,
    ComputeCommand,
    CreateDataflow,
    CreateInstance,
    Hello,
    IndexTarget,
    InitializationComplete,
    Peek,
    Schedule,
    UpdateConfiguration,
)
from compute.protocol.history import ComputeCommandHistory
from compute.protocol.response import ComputeResponse, PeekRows, Status, SubscribeBatch, SubscribeDropped
from compute.render.context import RenderContext
from compute.render.dataflow import Dataflow
from compute.render.inputs import SourceInput
from compute.runtime import logging, reconcile
from compute.runtime.events import EventLog
from compute.runtime.exchange import DataflowExchange, WorkerExchange
from compute.runtime.hosted import HostedDataflow, dropped
from compute.runtime.mv_gather import SinkForwarder, SinkGatherer, SinkWriter
from compute.runtime.mv_sink import MaterializedViewWriter
from compute.runtime.peeks import IndexRead, Peeks
from compute.runtime.reports import Gauges, Rendered, encode_report
from compute.runtime.scheduler import BUILD_TURN_SLICES, READ_TURN_SLICES, Scheduler
from compute.runtime.shard_read import ShardRead, owner_of
from compute.runtime.source_feed import SourceFeed
from compute.runtime.storage_link import StorageLink
from compute.shared.publisher import Publisher
from compute.shared.registry import Registry
from compute.trace.arrangement import Arrangement, TraceSource
from compute.trace.layout import KeyLayout
from mzlite.repr.errors import SqlError, decode_error, encode_error
from mzlite.repr.ids import GlobalId, is_transient
from mzlite.repr.timestamp import Frontier, Timestamp
from mzlite.repr.updates import Updates

MAINTAIN_BUDGET_S = 0.005
FORGOTTEN_COUNT = 1_000


class Worker:
    """role, worker (ordinal), workers (of this runtime). publisher: maintenance only. registry: interactive only.

    Invariants:
    1. an id is hosted here, or a peer, or unknown; never two of these.
    2. `incarnation` counts CreateDataflow commands and is equal on every worker of both runtimes at a stream position.
    3. after a new Hello no response concerns the old connection.
    """

    def __init__(
        self,
        role: Role,
        worker: int,
        workers: int,
        *,
        storage: StorageLink,
        exchange: WorkerExchange | None = None,
        publisher: Publisher | None = None,
        registry: Registry | None = None,
        now_ms: Callable[[], Timestamp],
    ) -> None:
        assert (publisher is not None) == (role is Role.MAINTENANCE), role
        assert (registry is not None) == (role is Role.INTERACTIVE), role
        self.role = role
        self.worker = worker
        self.workers = workers
        self.storage = storage
        self.publisher = publisher
        self.registry = registry
        self.now_ms = now_ms
        self.outbox: list[ComputeResponse] = []
        self.events = EventLog()
        self.peeks = Peeks(self._emit, self.events)
        self.parameters: dict[str, Any] = {}
        self._exchange = exchange if workers > 1 else None
        if self._exchange is not None:
            self._exchange.arrived = self._message_arrived
        self._hosted: dict[GlobalId, HostedDataflow] = {}
        self._dataflows: dict[int, HostedDataflow] = {}
        self._peers: dict[GlobalId, DataflowDescription | None] = {}
        self._forgotten: dict[GlobalId, None] = {}
        self._importers: dict[GlobalId, set[HostedDataflow]] = {}
        self._writers: dict[GlobalId, SinkWriter] = {}
        self._logging: logging.Logging | None = None
        self._log: logging.Logging | logging.LogForwarder | None = None
        # Reads take shorter turns than builds.
        self._scheduler = Scheduler(BUILD_TURN_SLICES if role is Role.MAINTENANCE else READ_TURN_SLICES)
        self._nonce: str | None = None
        self._collecting: list[ComputeCommand] | None = None
        self._history = ComputeCommandHistory()
        self._incarnation = 0

    # -- commands

    def handle(self, command: ComputeCommand) -> None:
        """Process one command, or keep it until the new connection's state is complete."""
        if isinstance(command, Hello):
            if self._nonce is not None and command.nonce != self._nonce:
                self._collecting = []
                self.peeks.discard()
            self._nonce = command.nonce
            self.outbox.clear()
            self._emit(Status("hello", command.nonce.encode()))
            return
        if self._collecting is not None:
            self._collecting.append(command)
            if isinstance(command, InitializationComplete):
                collected, self._collecting = self._collecting, None
                self._reconcile(collected)
            return
        self._apply(command)

    def _apply(self, command: ComputeCommand) -> None:
        if not isinstance(command, (Peek, CancelPeek)):
            self._history.push(command)
        match command:
            case Peek():
                self._peek(command)
            case CancelPeek(uuid):
                self.peeks.cancel(uuid)
            case CreateInstance():
                self._create_instance(command)
            case CreateDataflow(dataflow):
                self._create_dataflow(dataflow)
            case Schedule(id):
                self._schedule(id)
            case AllowWrites(id):
                writer = self._writers.get(id)
                if writer is not None:
                    writer.allow_writes()
            case AllowCompaction(id, frontier):
                self._allow_compaction(id, frontier, report=True)
            case UpdateConfiguration(parameters):
                self.parameters.update(parameters)
                if "report_gauges" in parameters:
                    self._emit(Status("gauges", self._gauges()))
            case InitializationComplete() | Hello():
                pass

    def _create_instance(self, command: CreateInstance) -> None:
        self.parameters.update(command.config)
        if self.role is Role.INTERACTIVE:
            assert self.registry is not None
            for variant, id in command.logs.items():
                self._peers[id] = None
                self.registry.declare_peer(id, 0, logging.layout_of(variant), 0)
            if command.logs:
                self._log = logging.LogForwarder(self, command.logging_interval_ms, self.registry.forward_log)
        elif command.logs:
            self._logging = logging.Logging(self, command.logs, command.logging_interval_ms, self._log_moved)
            self._log = self._logging
            if self.publisher is not None:
                self.publisher.on_log = self._logging.forward
            for id, arrangement in self._logging.arrangements.items():
                self._peers[id] = None
                if self.publisher is not None:
                    self.publisher.register(id, 0, arrangement, 0)
                    self.publisher.publish(id, 0)

    def _create_dataflow(self, description: DataflowDescription) -> None:
        self._incarnation += 1
        incarnation = self._incarnation
        if not renders(self.role, description.cls):
            for id in description.export_ids():
                self._peers[id] = description
            if self.registry is not None:
                self.registry.position = incarnation
                for id, export in description.index_exports.items():
                    layout = KeyLayout(export.desc.key, export.typ.arity)
                    self.registry.declare_peer(id, incarnation, layout, description.as_of)
            return
        if self.registry is not None:
            self.registry.position = incarnation
        hosted = HostedDataflow(description, incarnation)
        self._dataflows[incarnation] = hosted
        for id in description.export_ids():
            assert id not in self._hosted and id not in self._peers, f"export {id} exists"
            self._hosted[id] = hosted
        for id in description.index_imports:
            upstream = self._hosted.get(id)
            if upstream is not None:
                hosted.upstream.add(upstream)
                upstream.downstream.add(hosted)
            else:
                self._importers.setdefault(id, set()).add(hosted)
        self.events.dataflow_created(incarnation, hosted)
        exchange = self._exchange.open(incarnation) if self._exchange is not None else None
        for id, sink in description.sink_exports.items():
            if isinstance(sink.connection, MaterializedViewSink):
                self._create_writer(hosted, id, sink.connection.shard, exchange)
        context = RenderContext(
            worker=self.worker,
            workers=self.workers,
            trace=lambda id, desc: self._import(id, description.as_of),
            subscribe=self._subscribe_batch,
            append=self._append,
            exchange=exchange,
        )
        try:
            hosted.dataflow = Dataflow(description, context)
        except SqlError as error:
            hosted.error = error
        except Exception as error:
            if isinstance(error, AssertionError) or not all(map(is_transient, description.export_ids())):
                raise
            traceback.print_exception(error)
            hosted.error = SqlError("XX000", f"internal error: {error!r}")
        self._emit(Status("rendered", encode_report(Rendered(self.role.value, self.worker, description.export_ids()))))
        if hosted.dataflow is not None and self.publisher is not None:
            for id in description.index_exports:
                source = hosted.index_source(id)
                assert isinstance(source, Arrangement), source
                self.publisher.register(id, incarnation, source, description.as_of)
        self.outbox.extend(hosted.reports())

    def _create_writer(
        self, hosted: HostedDataflow, id: GlobalId, shard: str, exchange: DataflowExchange | None
    ) -> None:
        """One worker, chosen by id, writes; the others send it their part."""
        owner = owner_of(id, self.workers)
        if exchange is not None and owner != self.worker:
            self._writers[id] = SinkForwarder(exchange, owner)
            return
        writer = MaterializedViewWriter(
            shard, hosted.description.as_of, self.storage, lambda: self._report(hosted), self._scheduler.jobs.append
        )
        self._writers[id] = writer if exchange is None else SinkGatherer(writer, exchange, self.worker, self.workers)
        hosted.sink_frontiers[id] = lambda: writer.frontier

    def _message_arrived(self, incarnation: int) -> None:
        """Another worker sent something to a dataflow."""
        hosted = self._dataflows.get(incarnation)
        assert self._exchange is not None
        failure = self._exchange.failure(incarnation)
        if hosted is not None and failure is not None:
            self._read_failed(hosted, decode_error(failure))
        elif hosted is not None:
            for id in hosted.description.sink_exports:
                writer = self._writers.get(id)
                if writer is not None:
                    writer.poll()
            self._scheduler.wake(hosted)

    def _import(self, id: GlobalId, as_of: Timestamp) -> TraceSource:
        """The trace behind an import. A peer's is its publication point, whether published yet or not."""
        source = self._source(id)
        if source is None:
            raise AssertionError(f"import of unknown index {id}")
        assert source.since <= as_of, f"import of {id} at {as_of}, but its since is {source.since}"
        return source

    def _source(self, id: GlobalId) -> TraceSource | None:
        hosted = self._hosted.get(id)
        if hosted is not None:
            return hosted.index_source(id)
        if self._logging is not None and id in self._logging.arrangements:
            return self._logging.arrangements[id]
        return self.registry.peer(id) if self.registry is not None else None

    def _schedule(self, id: GlobalId) -> None:
        hosted = self._hosted.get(id)
        if hosted is None:
            self._expect_peer(id, "Schedule")
            return
        hosted.unscheduled.discard(id)
        if hosted.unscheduled or hosted.started:
            return
        hosted.started = True
        description = hosted.description
        dataflow = hosted.dataflow
        if dataflow is None:
            self._fail(hosted)
            return
        for import_id, source in description.source_imports.items():
            input = dataflow.inputs[import_id]
            assert isinstance(input, SourceInput), input
            feed = SourceFeed(input, partial(self._scheduler.wake, hosted), self._violation)
            hosted.readers[import_id] = feed.open(self.storage, source.shard, description.as_of)
        for sink in description.sink_exports:
            if sink in self._writers:
                self._writers[sink].start()
        if self.publisher is not None:
            for index in description.index_exports:
                self.publisher.publish(index, hosted.incarnation)
        self._scheduler.wake(hosted)

    def _panic(self, hosted: HostedDataflow, error: Exception) -> None:
        """A bug in the engine. It takes the process down, unless only a temporary read is hit: then that read fails.

        (A replica that dies of a read would be started again only to be asked the same.)
        """
        if not isinstance(error, SqlError):
            if hosted.downstream or not all(is_transient(id) for id in hosted.live):
                raise error
            traceback.print_exception(error)
            error = SqlError("XX000", f"internal error: {error!r}")
        if self._exchange is not None:
            self._exchange.fail(hosted.incarnation, self.workers, encode_error(error))
        self._read_failed(hosted, error)

    def _read_failed(self, hosted: HostedDataflow, error: SqlError) -> None:
        """The dataflow runs no further, here or on another worker."""
        if hosted.error is not None:
            return
        hosted.error = error
        hosted.started = True
        self._close_readers(hosted)
        if hosted.dataflow is not None:
            hosted.dataflow.drop()
            hosted.dataflow = None
        self._fail(hosted)

    def _fail(self, hosted: HostedDataflow) -> None:
        """A plan that cannot be rendered, or failed: its readers are told now, or when they come."""
        assert hosted.error is not None
        for id in hosted.description.index_exports:
            self.peeks.fail_target(id, hosted.error)
        for id in hosted.description.sink_exports:
            if hosted.is_subscribe(id):
                error = encode_error(hosted.error)
                self._emit(SubscribeBatch(id, hosted.description.as_of, None, None, error))

    def _allow_compaction(self, id: GlobalId, frontier: Frontier, *, report: bool) -> None:
        hosted = self._hosted.get(id)
        if hosted is None:
            if self._logging is not None and id in self._logging.arrangements:
                self._logging.allow_compaction(id, frontier)
                return
            self._expect_peer(id, "AllowCompaction")
            if self.registry is not None:
                self.registry.allow_compaction(id, frontier)
            if frontier is None and self._peers.pop(id, None) is not None:
                self._forget(id)
            return
        if frontier is None:
            self._drop_export(hosted, id, report)
            return
        hosted.compaction[id] = frontier
        if id in hosted.description.index_exports and hosted.dataflow is not None:
            hosted.dataflow.exports[id].allow_compaction(frontier)
            if self.publisher is not None:
                self.publisher.allowed(id, hosted.incarnation, frontier)
                self._changed(hosted)

    def _drop_export(self, hosted: HostedDataflow, id: GlobalId, report: bool) -> None:
        del self._hosted[id]
        self._forget(id)
        hosted.live.discard(id)
        if self.publisher is not None and id in hosted.description.index_exports:
            self.publisher.unregister(id, hosted.incarnation)
        writer = self._writers.pop(id, None)
        if writer is not None:
            writer.stop()
        self.events.export_dropped(id)
        if report:
            if hosted.is_subscribe(id):
                frontier = hosted.dataflow.frontier if hosted.dataflow is not None else None
                self._emit(SubscribeDropped(id, frontier))
            else:
                self._emit(dropped(id))
        if hosted.dataflow is not None and id in hosted.description.index_exports:
            hosted.dataflow.exports[id].allow_compaction(None)
        self._release(hosted)

    def _release(self, hosted: HostedDataflow) -> None:
        """Take the dataflow down unless an export is left, or another dataflow here that reads one."""
        if hosted.live or hosted.downstream:
            return
        self._close_readers(hosted)
        for import_id in hosted.imports:
            importers = self._importers.get(import_id)
            if importers is not None:
                importers.discard(hosted)
                if not importers:
                    del self._importers[import_id]
        if hosted.dataflow is not None:
            hosted.dataflow.drop()
        if self._exchange is not None:
            self._exchange.close(hosted.incarnation)
        del self._dataflows[hosted.incarnation]
        self._scheduler.discard(hosted)
        self.events.dataflow_dropped(hosted.incarnation)
        for upstream in hosted.upstream:
            upstream.downstream.discard(hosted)
            self._release(upstream)
        hosted.upstream.clear()

    def _close_readers(self, hosted: HostedDataflow) -> None:
        for reader in hosted.readers.values():
            self.storage.close(reader)
        hosted.readers.clear()

    def _expect_peer(self, id: GlobalId, command: str) -> None:
        """Soft panic: a command about an id that is neither hosted nor a peer is a bug of the controller."""
        if id not in self._peers and id not in self._forgotten:
            self._violation(f"{command} for unknown collection {id}")

    def _forget(self, id: GlobalId) -> None:
        """Remember for a while that the id was dropped: dropping it again is no violation."""
        self._forgotten[id] = None
        if len(self._forgotten) > FORGOTTEN_COUNT:
            del self._forgotten[next(iter(self._forgotten))]

    def _violation(self, what: str) -> None:
        message = f"{self.role.value} worker {self.worker}: {what}"
        self._emit(Status("protocol_violation", message.encode()))
        print(message, file=sys.stderr, flush=True)

    # -- reconnection

    def _reconcile(self, collected: list[ComputeCommand]) -> None:
        self.outbox = [r for r in self.outbox if isinstance(r, Status)]
        plan = reconcile.reconcile(self._history, collected)
        for id in plan.drop:
            self._allow_compaction(id, None, report=False)
        self._history = ComputeCommandHistory(CreateDataflow(d) for d in plan.kept)
        for command in plan.commands:
            self._apply(command)
        for hosted in self._dataflows.values():
            hosted.reset_reports()
            self.outbox.extend(hosted.reports())

    # -- peeks

    def _peek(self, command: Peek) -> None:
        assert answers_peeks(self.role), command
        if not isinstance(command.target, IndexTarget):
            if owner_of(command.uuid, self.workers) == self.worker:
                self.peeks.add(command, ShardRead(command, command.target.shard, self.storage, self.peeks.wake))
            else:
                self._emit(PeekRows(command.uuid, b""))
            return
        id = command.target.id
        hosted = self._hosted.get(id)
        if hosted is not None and hosted.error is not None:
            self.peeks.fail(command, hosted.error)
            return
        source = self._source(id)
        if source is None:
            self.peeks.fail(command, SqlError("XX000", f"collection {id} does not exist"))
            return
        self.peeks.add(command, IndexRead(source, hosted.description.as_of if hosted is not None else 0))

    # -- hooks of the dataflows

    def _subscribe_batch(
        self, id: GlobalId, lower: Timestamp, upper: Frontier, updates: bytes | None, error: bytes | None
    ) -> None:
        if id in self._hosted:
            self._emit(SubscribeBatch(id, lower, upper, updates, error))

    def _append(
        self, id: GlobalId, shard: str, lower: Timestamp, upper: Frontier, updates: Updates | None, errs: Updates | None
    ) -> None:
        writer = self._writers.get(id)
        if writer is not None:
            writer.push(updates, errs, upper)

    # -- running

    def registry_moved(self) -> None:
        """The publisher said something: parked reads and imports may go on."""
        self.peeks.wake()
        for importers in self._importers.values():
            for hosted in importers:
                self._scheduler.wake(hosted)

    def step(self) -> bool:
        """Run one slice. False when there is nothing to do until something arrives."""
        ran = self.peeks.step()
        if self._scheduler.run_job():
            return True
        hosted = self._scheduler.next()
        if hosted is None:
            return ran or self._maintain()
        try:
            more = hosted.step()
        except Exception as error:
            self._panic(hosted, error)
            return True
        self._after_step(hosted)
        if more:
            self._scheduler.again(hosted)
        else:
            self._scheduler.rest(hosted)
        return True

    def _after_step(self, hosted: HostedDataflow) -> None:
        elapsed_ns = hosted.newly_hydrated()
        if elapsed_ns is not None:
            for id in hosted.live:
                self.events.hydrated(id, elapsed_ns)
        self._changed(hosted)
        if hosted.moved():
            for reader in hosted.downstream:
                self._scheduler.wake(reader)
        self._report(hosted)

    def _report(self, hosted: HostedDataflow) -> None:
        """Say how far the exports have come."""
        reports = hosted.reports()
        if reports:
            self.outbox.extend(reports)
            for report in reports:
                self.events.frontier(report.id, report.write)
            if self.role is not Role.MAINTENANCE:
                self.peeks.wake()

    def _changed(self, hosted: HostedDataflow) -> None:
        """Mirror the dataflow's own arrangements to the reader."""
        if self.publisher is not None and hosted.dataflow is not None:
            for id in hosted.description.index_exports:
                source = hosted.index_source(id)
                assert isinstance(source, Arrangement), source
                self.publisher.changed(source)

    def _maintain(self) -> bool:
        """Nothing urgent: merge a little. True: something was done."""
        hosted = self._scheduler.next_to_merge()
        if hosted is None:
            return False
        assert hosted.dataflow is not None
        more = hosted.dataflow.maintain(MAINTAIN_BUDGET_S)
        self._changed(hosted)
        if more:
            self._scheduler.rest(hosted)
        return True

    def tick(self) -> None:
        """Called once per logging interval."""
        if self._log is None:
            return
        self._log.tick()
        if self._logging is not None:
            self.outbox.extend(self._logging.reports())
            if self.role is not Role.MAINTENANCE:
                self.peeks.wake()

    def _log_moved(self, id: GlobalId) -> None:
        assert self._logging is not None
        if self.publisher is not None:
            self.publisher.changed(self._logging.arrangements[id])
        for importer in self._importers.get(id, ()):
            self._scheduler.wake(importer)

    @property
    def logging_interval_s(self) -> float | None:
        return self._log.interval_ms / 1000 if self._log is not None else None

    def _emit(self, response: ComputeResponse) -> None:
        self.outbox.append(response)

    def take_outbox(self) -> list[ComputeResponse]:
        """Responses to send, and what the registry or publisher have to say goes out with them."""
        if self.publisher is not None:
            self.publisher.flush()
        if self.registry is not None:
            self.registry.flush()
        outbox, self.outbox = self.outbox, []
        if self._collecting is not None:
            # What the old connection asked for is nobody's concern; what the new one wants is not known yet.
            return [r for r in outbox if isinstance(r, Status)]
        return outbox

    def _gauges(self) -> bytes:
        gap_ms, held = self.publisher.gauges() if self.publisher is not None else (0, 0)
        return encode_report(Gauges(self.role.value, self.worker, gap_ms, held, self.leftovers()))

    def leftovers(self) -> dict[str, int]:
        """What is alive, for leak checks."""
        return {
            "dataflows": len(self._dataflows), "exports": len(self._hosted), "peers": len(self._peers),
            "peeks": len(self.peeks), "importers": len(self._importers), "writers": len(self._writers),
        }  # fmt: skip
