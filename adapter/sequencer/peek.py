"""SELECT: from a plan to rows.

    plan ─▶ values for now(), $1, … ─▶ views inlined ─▶ optimized with the cluster's indexes ─▶ PeekPlan   (remembered)
    PeekPlan ─▶ timestamp ─▶ constant | catalog rows here | Peek of an index or shard | dataflow + Peek ─▶ finishing

Between choosing the timestamp and handing the read to the controller nothing is awaited, so the inputs stay readable
without further holds; the controller takes its own. Source: Materialize's peek sequencing.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from adapter.catalog.initial import CATALOG_SERVER
from adapter.coord.planning import Prepared
from adapter.coord.result import Batch
from adapter.coord.timestamp_selection import (
    STRICT_SERIALIZABLE,
    Determination,
    Facts,
    ReadWhen,
    combine,
    determine,
)
from adapter.coord.transaction import Reads, Writes
from adapter.sequencer.dataflows import (
    Imports,
    default_key,
    description,
    lower_objects,
)
from adapter.sequencer.fast_path import (
    ConstantPath,
    PeekExisting,
    PeekPersist,
)
from adapter.sequencer.finishing import OFF_LOOP_ROWS, check_size, finish
from adapter.sequencer.interpret import Budget, TooMuch, constant, interpret
from adapter.sequencer.peek_answer import compute_error, evaluation_error, peek_rows, replace_mfp
from adapter.sequencer.peek_plan import LocalPath, PeekPlan, PeekPlanner, SlowPath
from adapter.sequencer.scalars import sleeps, substitute, substitute_scalar
from adapter.sequencer.values import mz_now_literal, session_value, time_literal
from adapter.sql.plans import AsOf, SelectPlan
from compute.client.errors import ComputeError
from compute.client.holds import ReadHold
from compute.plan.description import IndexDesc, IndexExport
from compute.protocol.command import IndexTarget, PersistTarget
from mzlite.expr import relation as r
from mzlite.expr.mfp import MapFilterProject
from mzlite.expr.relation import RowSetFinishing
from mzlite.expr.scalar import Unmaterializable
from mzlite.repr.errors import SqlError
from mzlite.repr.ids import ClusterId, GlobalId
from mzlite.repr.timestamp import MAX, Frontier, Timestamp
from mzlite.repr.updates import Updates, empty_updates

if TYPE_CHECKING:
    from adapter.coord.coordinator import Coordinator
    from adapter.coord.session import Session


LOCAL_ROWS = 300_000
"""Rows this process may touch for a read of constants and the catalog before the read belongs on a cluster."""


@dataclass(slots=True)
class PeekResult:
    """rows before finishing. determination None: independent of time."""

    rows: Updates
    determination: Determination | None


class PeekSequencer(PeekPlanner):
    def __init__(self, coordinator: Coordinator) -> None:
        super().__init__(coordinator)
        self._next_uuid = 0
        self._uuid_prefix = f"{time.time_ns():x}"

    # The whole of it.

    async def select(self, session: Session, prepared: Prepared, plan: SelectPlan, params: tuple[Any, ...]) -> Batch:
        """The finished rows of a SELECT."""
        peek_plan, finishing = await self.plan(session, prepared, plan, params)
        path = peek_plan.path
        if (
            isinstance(path, PeekExisting)
            and plan.as_of is None
            and session.txn.is_alone
            and peek_plan.time_dependent
            and session.vars.isolation == STRICT_SERIALIZABLE
        ):
            rows = await self._point_read(session, peek_plan, path, finishing)
        else:
            rows = (await self.run(session, peek_plan, finishing, plan.as_of)).rows
        limit = session.vars.max_query_result_size
        if len(rows) > OFF_LOOP_ROWS:
            work = asyncio.get_running_loop().run_in_executor(None, finish, rows, finishing)
            batch = await session.interrupt.wait(work)
        else:
            batch = finish(rows, finishing)
        check_size(batch, limit)
        return batch

    # Timestamps.

    def read_when(self, session: Session, as_of: AsOf | None) -> ReadWhen:
        if as_of is None:
            return ReadWhen()
        value = substitute_scalar(as_of.time, session_value(session, self._c, (), ()))
        return ReadWhen(time_literal(value), as_of.at_least)

    def determine(
        self, session: Session, plan: PeekPlan, when: ReadWhen, extra: frozenset[GlobalId] = frozenset()
    ) -> Determination:
        c = self._c
        frontiers = {id: c.controller.frontiers(id) for id in (plan.inputs | extra if extra else plan.inputs)}
        since, upper = combine(frontiers)
        dependent = plan.time_dependent
        facts = Facts(
            since,
            upper,
            session.vars.isolation,
            when,
            c.oracle.read_ts() if dependent else None,
            session.min_read_ts if dependent and session.vars.isolation == "strong session serializable" else None,
            frontiers,
        )
        try:
            return determine(facts)
        except SqlError:
            determine(replace(facts, names=c.names_of(frontiers)))  # the same error, with names
            raise

    def _quick_time(self, session: Session, plan: PeekPlan) -> Timestamp:
        """`determine` for the read that must be cheap: one index, no AS OF, no transaction block, strict serializable."""
        (index,) = plan.inputs
        since, _ = self._c.controller.frontiers(index)
        oracle_ts = self._c.oracle.read_ts()
        return oracle_ts if since is not None and since <= oracle_ts else since if since is not None else MAX

    # Running.

    async def _point_read(
        self, session: Session, plan: PeekPlan, path: PeekExisting, finishing: RowSetFinishing
    ) -> Updates:
        """A strict serializable read of one index, alone in its transaction: nothing but the peek."""
        ts = self._quick_time(session, plan)
        mfp = path.mfp if not plan.mz_now else self._timed(path.mfp, plan, ts)
        rows = await self._peek_index(session, plan, path.index, path.literals, mfp, finishing, ts)
        if ts > self._c.oracle.read_ts():
            await self._linearize(session, ts)
        return rows

    async def run(
        self,
        session: Session,
        plan: PeekPlan,
        finishing: RowSetFinishing,
        as_of: AsOf | None = None,
        *,
        freshest: bool = False,
    ) -> PeekResult:
        """The rows of a planned read, its transaction and time looked after."""
        when = ReadWhen(freshest_table_write=True) if freshest else self.read_when(session, as_of)
        independent = not plan.time_dependent and not plan.inputs
        if freshest or as_of is not None:
            reads = None
        else:
            reads = session.txn.add_read(independent)
        if session.txn.in_block and not freshest and not isinstance(session.txn.ops, Writes):
            self._same_cluster(session, plan)
        path = plan.path
        if independent and isinstance(path, ConstantPath | LocalPath) and when.as_of is None:
            return PeekResult(await self._local(session, plan, path, MAX, None), None)
        determination = self._transaction_time(session, plan, when, reads)
        ts = determination.timestamp
        match path:
            case ConstantPath() | LocalPath():
                rows = await self._local(session, plan, path, ts, None)
            case PeekExisting(on, index, literals, mfp):
                rows = await self._peek_index(session, plan, index, literals, self._timed(mfp, plan, ts), finishing, ts)
            case PeekPersist(on, mfp):
                rows = await self._peek_shard(session, plan, on, self._timed(mfp, plan, ts), finishing, ts)
            case SlowPath():
                rows = await self._slow(session, plan, path, finishing, ts)
        if when.as_of is None and plan.time_dependent and ts > self._c.oracle.read_ts() and not freshest:
            await self._linearize(session, ts)
        if session.vars.isolation == "strong session serializable":
            session.min_read_ts = max(session.min_read_ts, ts if ts != MAX else 0)
        return PeekResult(rows, determination)

    def _same_cluster(self, session: Session, plan: PeekPlan) -> None:
        """A read transaction stays on the cluster of its first read; that of constants and the catalog is routed to
        mz_catalog_server, where nothing else can be read."""
        txn = session.txn
        if txn.cluster_id is None:
            txn.cluster_id = CATALOG_SERVER if plan.cluster is None else plan.cluster.id
        elif txn.cluster_id == CATALOG_SERVER and plan.cluster is not None:
            names = ", ".join(f'"{n}"' for n in sorted(self._c.names_of(plan.reads).values()))
            raise SqlError(
                "25000",
                f'querying the following items {names} is not allowed from the "mz_catalog_server" cluster',
                detail="The transaction is executing on the mz_catalog_server cluster, maybe having been routed there by "
                "the first statement in the transaction.",
            )

    def _transaction_time(self, session: Session, plan: PeekPlan, when: ReadWhen, reads: Reads | None) -> Determination:
        """The read's time; in a transaction block, the block's time, chosen by its first read together with its domain."""
        if reads is None or not session.txn.in_block:
            found = self.determine(session, plan, when)
            if reads is not None:
                reads.determination = found if plan.time_dependent else reads.determination
            return found
        if reads.determination is None:
            if not plan.time_dependent:
                return self.determine(session, plan, when)
            domain = self._c.time_domain(plan.reads, plan.cluster)
            found = self.determine(session, plan, when, domain)
            for id in domain | plan.inputs:
                reads.holds.append(self._c.controller.acquire_hold(id, found.timestamp))
            reads.determination = found
            reads.domain = domain | plan.inputs
            return found
        outside = plan.inputs - reads.domain
        if outside:
            raise self._c.outside_time_domain(outside, reads.domain)
        return Determination(reads.determination.timestamp, reads.determination.facts)

    async def _linearize(self, session: Session, ts: Timestamp) -> None:
        """The answer is of a time ahead of the oracle's: hold it until reads are that far."""
        if ts == MAX:
            return
        while self._c.oracle.read_ts() < ts:
            waiter = self._c.group_commit.wait_applied()
            await session.interrupt.wait(waiter, lambda w=waiter: w.cancel())  # type: ignore[misc]

    def _timed(self, mfp: MapFilterProject, plan: PeekPlan, ts: Timestamp) -> MapFilterProject:
        if not plan.mz_now:
            return mfp
        now = mz_now_literal(ts)

        def value(u: Unmaterializable) -> Any:
            return now if u.func == "mz_now" else None

        return replace_mfp(mfp, value)

    async def _local(
        self, session: Session, plan: PeekPlan, path: ConstantPath | LocalPath, ts: Timestamp, budget: Budget | None
    ) -> Updates:
        if isinstance(path, ConstantPath):
            return constant(path.plan)
        mir = path.mir
        if plan.mz_now:
            now = mz_now_literal(ts)
            mir = substitute(mir, lambda u: now if u.func == "mz_now" else None)
        env = self._c.builtin_env(session)
        for id in r.global_ids(mir):
            env(id)
        budget = Budget(LOCAL_ROWS)
        if any(isinstance(n, r.LetRec | r.FlatMap) for n in r.walk(mir)) or plan.reads or sleeps(mir):
            work = asyncio.get_running_loop().run_in_executor(None, _interpret, mir, env, budget)

            def stop(b: Budget = budget) -> None:
                b.cancelled = True

            rows = await session.interrupt.wait(work, stop)
        else:
            rows = _interpret(mir, env, budget)
        if rows is not None:
            return rows
        return await self._on_cluster(session, plan, mir, ts)

    async def _on_cluster(self, session: Session, plan: PeekPlan, mir: r.Mir, ts: Timestamp) -> Updates:
        """A read of constants that is too much for this process."""
        full = self._c.with_builtins(session, mir)
        cluster = plan.cluster if plan.cluster is not None else self._c.session_cluster(session)
        slow = SlowPath(full, plan.typ, Imports({}, {}))
        moved = replace(plan, path=slow, cluster=cluster, mz_now=False)
        identity = RowSetFinishing(project=tuple(range(plan.typ.arity)))
        return await self._slow(session, moved, slow, identity, ts)

    # Peeks.

    def uuid(self) -> str:
        self._next_uuid += 1
        return f"{self._uuid_prefix}-{self._next_uuid:x}"

    async def _peek_index(
        self,
        session: Session,
        plan: PeekPlan,
        index: GlobalId,
        literals: Any,
        mfp: MapFilterProject,
        finishing: RowSetFinishing,
        ts: Timestamp,
        hold: ReadHold | None = None,
    ) -> Updates:
        return await self._await_peek(session, plan, IndexTarget(index), literals, mfp, finishing, ts, hold)

    async def _peek_shard(
        self,
        session: Session,
        plan: PeekPlan,
        on: GlobalId,
        mfp: MapFilterProject,
        finishing: RowSetFinishing,
        ts: Timestamp,
    ) -> Updates:
        shard = self._c.shard_of(on)
        assert shard is not None
        desc = self._c.desc_of(on)
        return await self._await_peek(session, plan, PersistTarget(on, shard, desc.typ), None, mfp, finishing, ts, None)

    async def _await_peek(
        self,
        session: Session,
        plan: PeekPlan,
        target: IndexTarget | PersistTarget,
        literals: Any,
        mfp: MapFilterProject,
        finishing: RowSetFinishing,
        ts: Timestamp,
        hold: ReadHold | None,
    ) -> Updates:
        c = self._c
        cluster = plan.cluster
        assert cluster is not None
        replica = c.target_replica(session, cluster, plan.logs)
        uuid = self.uuid()
        try:
            future = c.controller.peek(
                ClusterId(cluster.id),
                target,
                uuid=uuid,
                timestamp=ts,
                mfp=mfp,
                finishing=finishing,
                literal_constraints=literals,
                replica=replica,
                hold=hold,
            )
        except ComputeError as error:
            raise compute_error(error) from None
        c.pending_peeks[uuid] = (session, plan.reads)
        try:
            response = await session.interrupt.wait_for_answer(future, lambda: c.controller.cancel_peek(uuid))
        except asyncio.CancelledError:
            if future.cancelled():
                raise SqlError("XX000", "the cluster of the query was dropped") from None
            raise
        finally:
            c.pending_peeks.pop(uuid, None)
        rows = peek_rows(response, c.system_vars.get("max_result_size"))
        if not len(rows):
            return empty_updates([col.scalar.layout for col in plan.typ.columns])
        return rows

    async def _slow(
        self, session: Session, plan: PeekPlan, path: SlowPath, finishing: RowSetFinishing, ts: Timestamp
    ) -> Updates:
        """A dataflow for one read: create it, peek its index, drop it; the peek's hold keeps it until the answer."""
        c = self._c
        cluster = plan.cluster
        assert cluster is not None
        view_id, index_id = c.transient_id(), c.transient_id()
        if path.lowered is not None and ts != MAX:
            lowered = replace(path.lowered, objects=((view_id, path.lowered.objects[0][1]),))
        else:
            mir = path.mir
            if plan.mz_now:
                now = mz_now_literal(ts)
                mir = substitute(mir, lambda u: now if u.func == "mz_now" else None)
            mir = c.with_builtins(session, mir)
            lowered = lower_objects([(view_id, mir)], single_time=ts != MAX)
        key = default_key(path.typ.arity)
        uppers: dict[GlobalId, Frontier] = {id: c.controller.frontiers(id)[1] for id in path.imports.sources}
        dataflow = description(
            f"oneshot-select-{view_id}",
            lowered,
            path.imports,
            ts,
            uppers=uppers,
            one_shot=True,
            index_exports={index_id: IndexExport(IndexDesc(view_id, key), path.typ)},
        )
        replica = c.target_replica(session, cluster, plan.logs)
        try:
            c.controller.create_dataflow(ClusterId(cluster.id), dataflow, replica=replica)
        except ComputeError as error:
            raise compute_error(error) from None
        try:
            hold = c.controller.acquire_hold(index_id, ts)
        finally:
            c.controller.drop_collection(index_id)
        return await self._peek_index(
            session, plan, index_id, None, MapFilterProject.identity(path.typ.arity), finishing, ts, hold
        )


def _interpret(mir: r.Mir, env: Any, budget: Budget) -> Updates | None:
    """None: too much for this process."""
    try:
        return interpret(mir, env, budget)
    except SqlError as error:
        raise evaluation_error(error) from None
    except (TooMuch, MemoryError):
        return None
