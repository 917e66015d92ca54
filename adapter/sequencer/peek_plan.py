"""What a SELECT does on a cluster, short of its time: values put in, views inlined, optimized, a path chosen.

    plan ─▶ values for now(), $1, … ─▶ views inlined ─▶ optimized with the cluster's indexes ─▶ PeekPlan   (remembered)

A `PeekPlan` is a value; it is kept with the prepared statement and serves until the catalog changes under it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adapter.catalog.builtin.relation import BUILTINS, is_local, is_log
from adapter.catalog.objects import Cluster
from adapter.coord.planning import Prepared
from adapter.coord.transaction import Reads
from adapter.sequencer.catalog_functions import bind_catalog_functions
from adapter.sequencer.dataflows import (
    Imports,
    Lowered,
    find_imports,
    lower_objects,
)
from adapter.sequencer.fast_path import (
    FastPath,
    FastPathContext,
    PeekExisting,
    PeekPersist,
    find_fast_path,
)
from adapter.sequencer.inline import inline_views
from adapter.sequencer.mfp import split_mfp
from adapter.sequencer.scalars import sleeps, substitute, unmaterializable
from adapter.sequencer.values import session_value
from adapter.sql.plans import SelectPlan
from adapter.transform import optimize_read
from adapter.transform.context import IndexInfo
from mzlite.expr import relation as r
from mzlite.expr.relation import RowSetFinishing
from mzlite.repr.ids import GlobalId
from mzlite.repr.types import RelationType, ScalarType

if TYPE_CHECKING:
    from adapter.coord.coordinator import Coordinator
    from adapter.coord.session import Session

THREAD_NODES = 8
"""Plans with more nodes than this are optimized in a thread."""


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


class PeekPlanner:
    def __init__(self, coordinator: Coordinator) -> None:
        self._c = coordinator

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
