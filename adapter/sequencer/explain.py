"""EXPLAIN: the stages of a plan, as text; EXPLAIN TIMESTAMP: how a read's time was chosen."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from adapter.catalog.objects import IndexDetails, MaterializedViewDetails, ViewDetails
from adapter.coord.describe import explain_column, text_desc
from adapter.coord.planning import Prepared
from adapter.coord.result import Rows
from adapter.coord.timestamp_selection import explain as explain_time
from adapter.explain import Explained, ExplainOptions, explain
from adapter.sequencer.explain_object import explain_object
from adapter.sequencer.explain_text import CatalogNames, explain_plan
from adapter.sequencer.inline import inline_views
from adapter.sequencer.peek_plan import PeekPlan
from adapter.sequencer.rows import constant_rows
from adapter.sequencer.scalars import substitute, unmaterializable
from adapter.sequencer.values import session_value
from adapter.sql.plans import (
    CreateIndexPlan,
    CreateMaterializedViewPlan,
    CreateViewPlan,
    DeletePlan,
    ExplainPlan,
    ExplainTimestampPlan,
    InsertPlan,
    Plan,
    SelectPlan,
    SubscribePlan,
    UpdatePlan,
)
from adapter.transform import optimize_local
from mzlite.expr import relation as r
from mzlite.expr.relation import RowSetFinishing
from mzlite.repr.errors import SqlError
from mzlite.repr.ids import GlobalId

if TYPE_CHECKING:
    from adapter.coord.coordinator import Coordinator
    from adapter.coord.session import Session


class ExplainSequencer:
    def __init__(self, coordinator: Coordinator) -> None:
        self._c = coordinator

    async def explain(self, session: Session, prepared: Prepared, plan: ExplainPlan, params: tuple[Any, ...]) -> Rows:
        desc = text_desc(explain_column(plan))
        if plan.stage == "raw" and plan.raw_text is not None:
            options = ExplainOptions.parse(plan.options, plan.format, plan.verbose)
            raw = Explained(raw_text=plan.raw_text, cluster=session.vars.cluster)
            return constant_rows(desc, [(explain("raw", raw, options, CatalogNames(self._c)),)])
        text = explain_object(self._c, plan)
        if text is not None:
            return constant_rows(desc, [(text,)])
        mir, finishing = self._mir(plan.explainee)
        names = unmaterializable(mir)
        if names - {"mz_now"}:
            mir = substitute(mir, session_value(session, self._c, params, prepared.param_types))
        if plan.stage in ("raw", "decorrelated"):
            return constant_rows(desc, [(explain_plan(self._c, None, mir, finishing, plan, session.vars.cluster),)])
        if plan.stage == "locally_optimized":
            local = optimize_local(inline_views(mir, self._c.definition))
            return constant_rows(desc, [(explain_plan(self._c, None, local, finishing, plan, session.vars.cluster),)])
        peek: PeekPlan = await self._c.sequencer.peeks.plan_mir(session, mir, finishing)
        return constant_rows(desc, [(explain_plan(self._c, peek, peek.mir, finishing, plan),)])

    def _mir(self, explainee: Plan | GlobalId) -> tuple[r.Mir, RowSetFinishing]:
        match explainee:
            case SelectPlan(mir=mir, finishing=finishing):
                return mir, finishing
            case (
                CreateViewPlan(mir=mir)
                | CreateMaterializedViewPlan(mir=mir)
                | SubscribePlan(mir=mir)
                | InsertPlan(mir=mir)
                | UpdatePlan(mir=mir)
                | DeletePlan(mir=mir)
            ):
                return mir, self._identity(mir)
            case CreateIndexPlan(on=on):
                get = self._c.get_of(on)
                return get, self._identity(get)
            case str() as id:
                item = self._c.state.items.get(GlobalId(id))
                details = item.details if item is not None else None
                match details:
                    case ViewDetails(mir=mir) | MaterializedViewDetails(mir=mir):
                        return mir, self._identity(mir)
                    case IndexDetails(on_id=on):
                        get = self._c.get_of(on)
                    case _:
                        get = self._c.get_of(GlobalId(id))
                return get, self._identity(get)
            case _:
                raise SqlError("0A000", "EXPLAIN of this statement not yet supported")

    def _identity(self, mir: r.Mir) -> RowSetFinishing:
        return RowSetFinishing(project=tuple(range(self._c.type_of(mir).arity)))

    async def explain_timestamp(self, session: Session, prepared: Prepared, plan: ExplainTimestampPlan) -> Rows:
        select = plan.select
        mir = select.mir
        if unmaterializable(mir) - {"mz_now"}:
            mir = substitute(mir, session_value(session, self._c, (), prepared.param_types))
        peeks = self._c.sequencer.peeks
        peek = await peeks.plan_mir(session, mir, select.finishing)
        determination = peeks.determine(session, peek, peeks.read_when(session, select.as_of))
        named = replace(determination.facts, names=self._c.names_of(determination.facts.inputs))
        return constant_rows(text_desc("Timestamp"), [(explain_time(replace(determination, facts=named)),)])
