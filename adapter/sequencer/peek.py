"""SELECT: from a plan to rows.

    plan ─▶ values for now(), $1, … ─▶ views inlined ─▶ optimized with the cluster's indexes ─▶ PeekPlan   (remembered)
    PeekPlan ─▶ timestamp ─▶ constant | catalog rows here | Peek of an index or shard | dataflow + Peek ─▶ finishing

Between choosing the timestamp and handing the read to the controller nothing is awaited, so the inputs stay readable
without further holds; the controller takes its own. Source: Materialize's peek sequencing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec

from adapter.catalog.builtin.relation import BUILTINS, is_local, is_log
from adapter.catalog.initial import CATALOG_SERVER
from adapter.catalog.objects import Cluster
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
from adapter.sequencer.catalog_functions import bind_catalog_functions
from adapter.sequencer.dataflows import (
    Imports,
    Lowered,
    default_key,
    description,
    find_imports,
    lower_objects,
)
from adapter.sequencer.fast_path import (
    ConstantPath,
    FastPath,
    FastPathContext,
    PeekExisting,
    PeekPersist,
    find_fast_path,
)
from adapter.sequencer.finishing import OFF_LOOP_ROWS, check_size, finish, result_too_large
from adapter.sequencer.inline import inline_views
from adapter.sequencer.interpret import Budget, TooMuch, constant, interpret
from adapter.sequencer.mfp import split_mfp
from adapter.sequencer.scalars import sleeps, substitute, substitute_scalar, unmaterializable
from adapter.sequencer.values import literal, mz_now_literal, session_value, time_literal
from adapter.sql.plans import AsOf, SelectPlan
from adapter.transform import optimize_read
from adapter.transform.context import IndexInfo
from compute.client.errors import ComputeError
from compute.client.holds import ReadHold
from compute.plan.description import IndexDesc, IndexExport
from compute.protocol.command import IndexTarget, PersistTarget
from compute.protocol.response import PeekCanceled, PeekError, PeekResponse, PeekRows
from mzlite.expr import relation as r
from mzlite.expr.mfp import MapFilterProject
from mzlite.expr.relation import RowSetFinishing
from mzlite.expr.scalar import Literal, Scalar, Unmaterializable, rewrite
from mzlite.repr.encode import decode_updates
from mzlite.repr.errors import SqlError, decode_error
from mzlite.repr.ids import ClusterId, GlobalId, ReplicaId
from mzlite.repr.timestamp import MAX, Frontier, Timestamp
from mzlite.repr.types import RelationType, ScalarType
from mzlite.repr.updates import Updates, empty_updates

if TYPE_CHECKING:
    from adapter.coord.coordinator import Coordinator
    from adapter.coord.session import Session

THREAD_NODES = 8
"""Plans with more nodes than this are optimized in a thread."""
LOCAL_ROWS = 300_000
"""Rows this process may touch for a read of constants and the catalog before the read belongs on a cluster."""


@dataclass(frozen=True, slots=True)
class LocalPath:
    """Constants and builtin relations only: evaluated in this process."""

    mir: r.Mir


@dataclass(frozen=True, slots=True)
class SlowPath:
    """lowered: of a plan that is the same at every time and for every session, made beforehand; its object's id is free."""

    mir: r.Mir
    typ: RelationType
    imports: Imports
    lowered: Lowered | None = None


@dataclass(frozen=True, slots=True)
class PeekPlan:
    """What a SELECT does on a cluster, short of its time.

    reads: catalog ids the query depends on (tables, views …). inputs: the collections whose frontiers decide the time.
    time_dependent: whether its answer depends on when. mz_now: the plan holds mz_now(), to be replaced by the time.
    logs: it reads the logs of one replica.
    """

    path: FastPath | LocalPath | SlowPath
    typ: RelationType
    mir: r.Mir
    reads: frozenset[GlobalId]
    inputs: frozenset[GlobalId]
    time_dependent: bool
    mz_now: bool
    cluster: Cluster | None
    indexes: dict[GlobalId, tuple[IndexInfo, ...]]
    logs: bool = False


@dataclass(slots=True)
class PeekResult:
    """rows before finishing. determination None: independent of time."""

    rows: Updates
    determination: Determination | None


class PeekSequencer:
    def __init__(self, coordinator: Coordinator) -> None:
        self._c = coordinator
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

    # Planning.

    async def plan(
        self, session: Session, prepared: Prepared, plan: SelectPlan, params: tuple[Any, ...]
    ) -> tuple[PeekPlan, RowSetFinishing]:
        key = ("peek", self._cluster_choice(session), session.txn.in_block)
        cached = prepared.artifacts.get(key)
        domain = self._domain(session)
        if cached is not None and not params and (not domain or cached.inputs <= domain):
            return cached, plan.finishing
        if params:
            generic = prepared.artifacts.get("generic")
            if generic is not None:
                bound = generic.bind(params)
                if bound is not None and (not domain or bound.inputs <= domain):
                    return bound, plan.finishing
        made, lasting = await self.plan_read(session, plan.mir, plan.finishing, params, prepared.param_types)
        if lasting:
            prepared.artifacts[key] = made
        elif params and prepared.param_types and "generic" not in prepared.artifacts:
            from adapter.sequencer.generic import make_generic

            prepared.artifacts["generic"] = make_generic(self._c, session, prepared, plan)
        return made, plan.finishing

    def _domain(self, session: Session) -> frozenset[GlobalId]:
        """What the transaction may read; empty while that is open."""
        ops = session.txn.ops
        return ops.domain if isinstance(ops, Reads) else frozenset()

    def _cluster_choice(self, session: Session) -> str:
        return session.vars.cluster

    async def plan_mir(self, session: Session, mir: r.Mir, finishing: RowSetFinishing) -> PeekPlan:
        """As `plan_read`, for a plan without parameters that is used once."""
        return (await self.plan_read(session, mir, finishing, (), ()))[0]

    async def plan_read(
        self,
        session: Session,
        mir: r.Mir,
        finishing: RowSetFinishing,
        params: Sequence[Any],
        param_types: Sequence[ScalarType],
    ) -> tuple[PeekPlan, bool]:
        """Values put in, views inlined, optimized (in a thread when large), a path chosen; and whether that lasts: nothing
        of this moment, of the session or of the catalog at large went into it."""
        c = self._c
        lasting = True

        def bound(e: r.Mir) -> r.Mir:
            nonlocal lasting
            if not unmaterializable(e) - {"mz_now"}:
                return e
            lasting = False
            return substitute(e, session_value(session, c, params, param_types))

        state = c.state
        reads = r.global_ids(mir)
        looked_up = bind_catalog_functions(mir, c.planning.view(session).state, session.database, session.search_path)
        lasting = looked_up is mir
        mir = bound(looked_up)
        inlined = bound(inline_views(mir, c.definition))
        cluster = c.target_cluster(session, reads, inlined)
        indexes = c.index_infos(cluster, reads)
        ops = session.txn.ops
        if isinstance(ops, Reads) and ops.domain:
            # An index made since the transaction's first read is not readable at its time.
            indexes = within(indexes, ops.domain)
            lasting = False
        # Indexed views are read through their index where the optimizer may use one, so they stay Gets.
        if any(id not in r.global_ids(inlined) for id in indexes):
            inlined = bound(inline_views(mir, c.definition, lambda id: id in indexes))
        if sleeps(inlined):
            work = asyncio.get_running_loop().run_in_executor(None, _optimize, inlined, indexes)
            optimized, lowered = await session.interrupt.wait(work)
        elif sum(1 for _ in r.walk(inlined)) > THREAD_NODES:
            optimized, lowered = await session.interrupt.wait(c.in_thread(_optimize, inlined, indexes))
        else:
            optimized, lowered = _optimize(inlined, indexes)
        assert c.state is state or c.state.revision >= state.revision
        return self.choose_path(session, mir, optimized, finishing, cluster, indexes, reads, lowered), lasting

    def choose_path(
        self,
        session: Session,
        mir: r.Mir,
        optimized: r.Mir,
        finishing: RowSetFinishing,
        cluster: Cluster | None,
        indexes: dict[GlobalId, tuple[IndexInfo, ...]],
        reads: frozenset[GlobalId],
        lowered: Lowered | None = None,
    ) -> PeekPlan:
        c = self._c
        typ = c.type_of(mir)
        mz_now = "mz_now" in unmaterializable(optimized)
        ids = r.global_ids(optimized)
        context = FastPathContext(
            lambda id: indexes[id][0].id if indexes.get(id) else None,
            lambda id: c.shard_of(id) is not None,
            c.system_vars.get("persist_fast_path_limit"),
        )
        path: FastPath | LocalPath | SlowPath | None = find_fast_path(optimized, finishing, context)
        time_dependent = mz_now or any(c.time_dependent(id) for id in reads)
        if path is None and all(is_local(id) for id in ids):
            path = LocalPath(optimized)
        inputs: frozenset[GlobalId] = frozenset()
        match path:
            case None:
                imports = find_imports([c.with_builtins(session, optimized)], indexes, c.shard_of)
                path = SlowPath(optimized, typ, imports, lowered)
                inputs = imports.ids()
            case PeekExisting(index=index):
                inputs = frozenset((index,))
            case PeekPersist(on=on):
                inputs = frozenset((on,))
            case _:
                pass
        logs = any(is_log(id) for id in ids)
        return PeekPlan(path, typ, optimized, reads, inputs, time_dependent, mz_now, cluster, indexes, logs)

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


def within(
    indexes: dict[GlobalId, tuple[IndexInfo, ...]], domain: frozenset[GlobalId]
) -> dict[GlobalId, tuple[IndexInfo, ...]]:
    """The indexes that are in the domain."""
    kept = {on: tuple(i for i in infos if i.id in domain) for on, infos in indexes.items()}
    return {on: infos for on, infos in kept.items() if infos}


def _optimize(mir: r.Mir, indexes: dict[GlobalId, tuple[IndexInfo, ...]]) -> tuple[r.Mir, Lowered | None]:
    """(optimized plan, its LIR if it may need a dataflow that is the same whenever it runs)."""
    optimized = optimize_read(mir, indexes)
    _, below = split_mfp(optimized)
    if isinstance(below, r.Constant | r.Get) or any(id in BUILTINS for id in r.global_ids(optimized)):
        return optimized, None
    if isinstance(below, r.Join) and isinstance(below.implementation, r.IndexedFilter):
        return optimized, None
    if "mz_now" in unmaterializable(optimized):
        return optimized, None
    return optimized, lower_objects([(GlobalId("t0"), optimized)], single_time=True)


def _interpret(mir: r.Mir, env: Any, budget: Budget) -> Updates | None:
    """None: too much for this process."""
    try:
        return interpret(mir, env, budget)
    except SqlError as error:
        raise evaluation_error(error) from None
    except (TooMuch, MemoryError):
        return None


def replace_literals(mfp: MapFilterProject, values: dict[bytes, bytes]) -> MapFilterProject:
    """mfp with the bytes of literals exchanged."""

    def visit(e: Scalar) -> Scalar:
        if isinstance(e, Literal) and e.value is not None and e.value in values:
            return Literal(values[e.value], e.typ)
        return e

    return msgspec.structs.replace(
        mfp,
        expressions=tuple(rewrite(e, visit) for e in mfp.expressions),
        predicates=tuple((n, rewrite(e, visit)) for n, e in mfp.predicates),
    )


def replace_mfp(mfp: MapFilterProject, value: Any) -> MapFilterProject:
    return msgspec.structs.replace(
        mfp,
        expressions=tuple(substitute_scalar(e, value) for e in mfp.expressions),
        predicates=tuple((n, substitute_scalar(e, value)) for n, e in mfp.predicates),
    )


def peek_rows(response: PeekResponse, limit: int) -> Updates:
    match response:
        case PeekRows(_, rows):
            u = decode_updates(rows)
            if len(rows) > limit and len(u) > 1:
                raise result_too_large(limit)
            return u
        case PeekError(_, error):
            raise evaluation_error(decode_error(error))
        case PeekCanceled():
            raise SqlError("57014", "canceling statement due to user request")


def evaluation_error(error: SqlError) -> SqlError:
    """An error that rows of a collection made, as a read of it tells."""
    made_by_rows = error.sqlstate[:2] in ("21", "22", "23", "2F") or error.message.startswith("Recursive query")
    if made_by_rows and not error.message.startswith("Evaluation error"):
        message = f"Evaluation error: {error.message}"
        return SqlError(error.sqlstate, message, detail=error.detail, hint=error.hint)
    return error


def compute_error(error: ComputeError) -> SqlError:
    return SqlError("XX000", str(error))


__all__ = ["PeekPlan", "PeekResult", "PeekSequencer", "ReplicaId", "literal"]
