"""The sequencer's front door: one plan in, one result out. Each kind of statement has its module.

reads       peek, cursors, subscribe, copy, explain          definitions   ddl, ddl_drop, clusters
writes      dml, copy                                        session       settings
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adapter.coord.planning import Prepared
from adapter.coord.result import Done, Empty, ExecuteResult, Rows
from adapter.coord.transaction import Status, prohibits
from adapter.sequencer.copy import CopySequencer
from adapter.sequencer.cursors import CursorSequencer
from adapter.sequencer.ddl import DdlSequencer
from adapter.sequencer.dml import DmlSequencer
from adapter.sequencer.explain import ExplainSequencer
from adapter.sequencer.finishing import split
from adapter.sequencer.peek import PeekSequencer
from adapter.sequencer.roles import alter_role
from adapter.sequencer.settings import SettingsSequencer
from adapter.sequencer.subscribe import SubscribeSequencer
from adapter.sql import plans as p
from adapter.sql import statements as st

if TYPE_CHECKING:
    from adapter.coord.coordinator import Coordinator
    from adapter.coord.session import Session

_ANYWHERE = (
    p.SelectPlan,
    p.SubscribePlan,
    p.ExplainPlan,
    p.ExplainTimestampPlan,
    p.CopyFromPlan,
    p.SetVariablePlan,
    p.ResetAllPlan,
    p.ShowVariablePlan,
    p.ShowAllVariablesPlan,
    p.BeginPlan,
    p.SetTransactionPlan,
    p.CommitPlan,
    p.RollbackPlan,
    p.PreparePlan,
    p.ExecutePlan,
    p.DeallocatePlan,
    p.DeclarePlan,
    p.FetchPlan,
    p.ClosePlan,
    p.DiscardPlan,
)
"""What a transaction block may hold besides writes and renames."""

_SINGLE = (
    p.CreateDatabasePlan,
    p.CreateSchemaPlan,
    p.CreateTablePlan,
    p.CreateViewPlan,
    p.CreateMaterializedViewPlan,
    p.CreateIndexPlan,
    p.CreateTypePlan,
    p.CreateSourcePlan,
    p.CreateRolePlan,
    p.CreateClusterPlan,
    p.CreateClusterReplicaPlan,
    p.DropItemsPlan,
    p.DropNamedPlan,
    p.CommentPlan,
    p.NoopPlan,
)
"""What may stand alone in an explicit transaction; it runs at COMMIT."""

_RENAMES = (p.RenameItemPlan, p.RenameNamedPlan)


class Sequencer:
    def __init__(self, coordinator: Coordinator) -> None:
        self._c = coordinator
        self.peeks = PeekSequencer(coordinator)
        self.ddl = DdlSequencer(coordinator)
        self.dml = DmlSequencer(coordinator)
        self.subscribes = SubscribeSequencer(coordinator)
        self.cursors = CursorSequencer(coordinator)
        self.copies = CopySequencer(coordinator)
        self.explains = ExplainSequencer(coordinator)
        self.settings = SettingsSequencer(coordinator)

    async def execute(self, session: Session, prepared: Prepared, params: tuple[Any, ...]) -> ExecuteResult:
        """Run a prepared statement. It is planned again first if the catalog or the settings moved since."""
        if prepared.statement is None:
            return Empty()
        prepared = await self._c.planning.refresh(session, prepared)
        plan = prepared.plan
        if isinstance(plan, p.SelectPlan) and plan.copy_to is None:
            if plan.unplannable_parameters:
                plan = await self._c.planning.with_values(session, prepared, params)
                assert isinstance(plan, p.SelectPlan)
            batch = await self.peeks.select(session, prepared, plan, params)
            return Rows(plan.desc, split(batch))
        assert plan is not None
        if session.txn.in_block and not isinstance(plan, _ANYWHERE):
            deferred = self._in_block(session, prepared, plan)
            if deferred is not None:
                return deferred
        return await self._dispatch(session, prepared, plan, params)

    def _in_block(self, session: Session, prepared: Prepared, plan: p.Plan) -> ExecuteResult | None:
        """Check a statement that not every transaction may hold; a result if it was put off until COMMIT."""
        assert prepared.statement is not None
        text = self._c.planning.display(prepared.statement)
        if isinstance(plan, p.InsertPlan):
            if plan.returning is None and self.dml.is_constant(session, plan):
                return None
            if session.txn.ops is not None:
                session.txn.add_writes()  # a read-only transaction has its own error
            raise prohibits(text)
        if isinstance(plan, _RENAMES) and session.txn.status is Status.EXPLICIT:
            return None
        if isinstance(plan, p.NoopPlan) and session.txn.status is not Status.EXPLICIT:
            return None
        if isinstance(plan, _SINGLE) and session.txn.status is Status.EXPLICIT:
            session.txn.add_single(prepared.statement)
            return Done(self.ddl.tag(plan))
        if session.txn.ops is not None and session.txn.status is Status.EXPLICIT:
            session.txn.add_single(prepared.statement)
        raise prohibits(text)

    async def _dispatch(
        self, session: Session, prepared: Prepared, plan: p.Plan, params: tuple[Any, ...]
    ) -> ExecuteResult:
        statement = prepared.statement
        if isinstance(statement, st.Accepted) and statement.words[:2] == ("alter", "role"):
            await alter_role(self._c, session, statement.words)
        match plan:
            case p.SelectPlan():
                return await self.copies.copy_select(session, prepared, plan, params)
            case p.SubscribePlan():
                return await self.subscribes.subscribe(session, prepared, plan, params)
            case p.ExplainPlan():
                return await self.explains.explain(session, prepared, plan, params)
            case p.ExplainTimestampPlan():
                return await self.explains.explain_timestamp(session, prepared, plan)
            case p.InsertPlan():
                return await self.dml.insert(session, prepared, plan, params)
            case p.UpdatePlan():
                return await self.dml.update(session, prepared, plan, params)
            case p.DeletePlan():
                return await self.dml.delete(session, prepared, plan, params)
            case p.CopyFromPlan():
                return await self.copies.copy_from(session, plan)
            case p.PreparePlan():
                return await self.cursors.prepare(session, plan)
            case p.ExecutePlan():
                return await self.cursors.execute(session, plan, params)
            case p.DeallocatePlan():
                return self.cursors.deallocate(session, plan)
            case p.DeclarePlan():
                return await self.cursors.declare(session, plan, params)
            case p.FetchPlan():
                return await self.cursors.fetch(session, prepared, plan)
            case p.ClosePlan():
                return self.cursors.close(session, plan)
            case (
                p.AlterSystemSetPlan()
                | p.SetVariablePlan()
                | p.ResetAllPlan()
                | p.ShowVariablePlan()
                | p.ShowAllVariablesPlan()
                | p.BeginPlan()
                | p.SetTransactionPlan()
                | p.CommitPlan()
                | p.RollbackPlan()
                | p.DiscardPlan()
            ):
                return await self.settings.execute(session, plan)
            case _:
                return await self.ddl.execute(session, plan)
