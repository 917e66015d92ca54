"""SUBSCRIBE: a sink dataflow on the session's cluster, its batches handed to the client as they come.

    replica ─▶ controller ─▶ queue ─▶ Rows.batches (async) ─▶ front end or cursor

The sink is dropped when the stream ends, fails, is closed, or its session is cancelled.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from adapter.catalog.builtin.relation import is_local
from adapter.coord.planning import Prepared
from adapter.coord.result import Batch, ExecuteResult, Rows
from adapter.coord.timestamp_selection import ReadWhen
from adapter.sequencer.dataflows import Imports, description, find_imports, lower_objects, single_time
from adapter.sequencer.inline import inline_views
from adapter.sequencer.maintained import check_maintainable
from adapter.sequencer.peek_answer import compute_error
from adapter.sequencer.peek_plan import PeekPlan, SlowPath
from adapter.sequencer.scalars import substitute, substitute_scalar, unmaterializable
from adapter.sequencer.subscribe_output import SubscribeOutput
from adapter.sequencer.values import session_value, time_literal
from adapter.sql.plans import SubscribePlan
from adapter.transform import optimize_dataflow
from compute.client.errors import ComputeError
from compute.plan.description import SinkExport, SubscribeSink
from compute.protocol.response import SubscribeBatch, SubscribeDropped
from mzlite.expr import relation as r
from mzlite.repr.encode import decode_updates
from mzlite.repr.errors import SqlError, decode_error
from mzlite.repr.ids import ClusterId, GlobalId
from mzlite.repr.timestamp import MAX, Frontier, Timestamp

if TYPE_CHECKING:
    from adapter.coord.coordinator import Coordinator
    from adapter.coord.session import Session


@dataclass(slots=True)
class ActiveSubscribe:
    """One running SUBSCRIBE. queue: what came and was not taken yet. ended: no more will come."""

    sink_id: GlobalId
    session: Session
    cluster_id: str
    reads: frozenset[GlobalId]
    output: SubscribeOutput
    with_progress: bool
    as_of: Timestamp
    up_to: Frontier
    created_at_us: int = field(default_factory=lambda: time.time_ns() // 1000)
    queue: deque[Batch] = field(default_factory=deque)
    error: SqlError | None = None
    ended: bool = False
    started: bool = False
    waiter: asyncio.Future[None] | None = None

    def wake(self) -> None:
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    def receive(self, message: SubscribeBatch | SubscribeDropped) -> None:
        match message:
            case SubscribeBatch(_, lower, upper, updates, error):
                if error is not None:
                    self.fail(decode_error(error))
                    return
                if self.with_progress and not self.started:
                    self.queue.append(self.output.progress(self.as_of))
                self.started = True
                if updates is not None:
                    rows = self.output.rows(decode_updates(updates))
                    if rows is not None:
                        self.queue.append(rows)
                if upper is None:
                    self.ended = True
                elif self.with_progress and (lower is None or upper > lower) and upper > self.as_of:
                    self.queue.append(self.output.progress(upper))
            case SubscribeDropped():
                self.ended = True
        self.wake()

    def fail(self, error: SqlError) -> None:
        self.error = error
        self.ended = True
        self.wake()


class SubscribeSequencer:
    def __init__(self, coordinator: Coordinator) -> None:
        self._c = coordinator
        self.active: dict[GlobalId, ActiveSubscribe] = {}

    async def subscribe(
        self, session: Session, prepared: Prepared, plan: SubscribePlan, params: tuple[Any, ...]
    ) -> ExecuteResult:
        active = await self.start(session, prepared, plan, params)
        stream = self.stream(session, active)
        if plan.copy_to is not None:
            return self._c.sequencer.copies.copy_out(plan.output_desc, plan.copy_to, stream)
        return Rows(plan.output_desc, stream, verb="SUBSCRIBE")

    async def start(
        self, session: Session, prepared: Prepared, plan: SubscribePlan, params: tuple[Any, ...]
    ) -> ActiveSubscribe:
        """Install the sink dataflow."""
        c = self._c
        value = session_value(session, c, params, prepared.param_types)
        when = ReadWhen()
        if plan.as_of is not None:
            when = ReadWhen(time_literal(substitute_scalar(plan.as_of.time, value)), plan.as_of.at_least)
        else:
            session.txn.add_subscribe()
        up_to = time_literal(substitute_scalar(plan.up_to, value)) if plan.up_to is not None else None
        mir = plan.mir
        names = unmaterializable(mir)
        if names - {"mz_now"}:
            mir = substitute(mir, value)
        cluster = c.session_cluster(session)
        reads = r.global_ids(mir)
        inlined = substitute(inline_views(mir, c.definition), value)
        indexes = c.index_infos(cluster, reads)
        if any(id not in r.global_ids(inlined) for id in indexes):
            inlined = substitute(inline_views(mir, c.definition, lambda id: id in indexes), value)
        planned = await c.in_thread(optimize_dataflow, inlined, indexes)
        optimized = c.with_builtins(session, planned)
        check_maintainable(optimized)
        imports = find_imports([optimized], indexes, c.shard_of)
        typ = c.type_of(mir)
        mz_now = "mz_now" in unmaterializable(optimized)
        dependent = mz_now or any(c.time_dependent(id) for id in reads)
        peek_plan = PeekPlan(
            SlowPath(optimized, typ, imports), typ, optimized, reads, imports.ids(), dependent, mz_now, cluster, indexes
        )
        determination = c.sequencer.peeks.determine(session, peek_plan, when)
        as_of = determination.timestamp
        if not imports.ids() and not mz_now and not any(is_local(i) for i in reads):
            as_of = MAX  # constants: complete at every time
        if up_to is not None:
            if as_of > up_to:
                raise SqlError(
                    "22023",
                    f"subscription lower bound (`AS OF`) is greater than its upper bound (`UP TO`): {as_of} > {up_to}",
                )
            if as_of == up_to:
                session.notice(
                    f"subscription lower bound is equal to its upper bound: {as_of}; no results will be produced"
                )
        return self._install(session, plan, optimized, imports, as_of, up_to, reads, ClusterId(cluster.id))

    def _install(
        self,
        session: Session,
        plan: SubscribePlan,
        mir: r.Mir,
        imports: Imports,
        as_of: Timestamp,
        up_to: Frontier,
        reads: frozenset[GlobalId],
        cluster: ClusterId,
    ) -> ActiveSubscribe:
        c = self._c
        object_id, sink_id = c.transient_id(), c.transient_id()
        uppers: dict[GlobalId, Frontier] = {id: c.controller.frontiers(id)[1] for id in imports.sources}
        dataflow = description(
            f"subscribe-{sink_id}",
            lower_objects([(object_id, mir)], single_time=single_time(as_of, up_to)),
            imports,
            as_of,
            uppers=uppers,
            until=up_to,
            sink_exports={sink_id: SinkExport(object_id, plan.desc, SubscribeSink(up_to), plan.with_snapshot)},
        )
        active = ActiveSubscribe(
            sink_id, session, cluster, reads, SubscribeOutput(plan), plan.with_progress, as_of, up_to
        )
        state_cluster = c.state.clusters[cluster]
        try:
            c.controller.create_dataflow(cluster, dataflow, replica=c.target_replica(session, state_cluster))
            c.controller.on_subscribe(sink_id, active.receive)
        except ComputeError as error:
            raise compute_error(error) from None
        self.active[sink_id] = active
        return active

    async def stream(self, session: Session, active: ActiveSubscribe) -> AsyncIterator[Batch]:
        """The batches as they come. Closing the generator ends the SUBSCRIBE."""
        session.interrupt.begin(0)
        try:
            while True:
                batch = await self.next(session, active)
                if batch is None:
                    return
                yield batch
        finally:
            session.interrupt.end()
            self.stop(active)

    async def next(self, session: Session, active: ActiveSubscribe, timeout_s: float | None = None) -> Batch | None:
        """The next batch; None at the end or when the timeout passes first."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            session.interrupt.check()
            if active.queue:
                return active.queue.popleft()
            if active.error is not None:
                raise active.error
            if active.ended:
                return None
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return None
            active.waiter = asyncio.get_running_loop().create_future()
            handle = None
            if left is not None:
                handle = asyncio.get_running_loop().call_later(left, active.wake)
            try:
                await session.interrupt.wait(active.waiter)
            finally:
                active.waiter = None
                if handle is not None:
                    handle.cancel()

    def stop(self, active: ActiveSubscribe) -> None:
        """Drop the sink; idempotent."""
        if self.active.pop(active.sink_id, None) is None:
            return
        active.ended = True
        if self._c.controller.collection_exists(active.sink_id):
            self._c.controller.drop_collection(active.sink_id)

    def fail_readers(self, ids: set[GlobalId], name: str) -> None:
        """Something subscribed to was dropped."""
        for active in list(self.active.values()):
            if active.reads & ids:
                active.fail(
                    SqlError("XX000", f'subscribe has been terminated because underlying relation "{name}" was dropped')
                )
                self.stop(active)
