"""PREPARE, EXECUTE, DEALLOCATE, and cursors: DECLARE, FETCH, CLOSE.

A cursor plans its statement when declared and runs it at the first FETCH. Rows that were not fetched stay with it; a
SUBSCRIBE's cursor keeps the stream open. Cursors end with their transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adapter.coord.planning import Prepared, result_type_changed, same_columns
from adapter.coord.result import Batch, Done, ExecuteResult, Rows
from adapter.sequencer.scalars import substitute_scalar
from adapter.sequencer.subscribe import ActiveSubscribe
from adapter.sequencer.values import session_value
from adapter.sql import statements as st
from adapter.sql.plans import (
    ClosePlan,
    DeallocatePlan,
    DeclarePlan,
    ExecutePlan,
    FetchPlan,
    PreparePlan,
    SubscribePlan,
)
from mzlite.expr.eval import eval_constant
from mzlite.repr.errors import SqlError
from mzlite.repr.types import RelationDesc

if TYPE_CHECKING:
    from adapter.coord.coordinator import Coordinator
    from adapter.coord.session import Session

MAX_TIMEOUT_MS = 24 * 3600 * 1000


@dataclass(slots=True)
class Cursor:
    """left: rows of a statement that ran, not fetched yet. subscribe: the running SUBSCRIBE instead."""

    name: str
    prepared: Prepared
    coordinator: Coordinator
    started: bool = False
    left: list[Batch] | None = None
    subscribe: ActiveSubscribe | None = None

    @property
    def desc(self) -> RelationDesc | None:
        return self.prepared.desc

    def close(self) -> None:
        if self.subscribe is not None:
            self.coordinator.sequencer.subscribes.stop(self.subscribe)
            self.subscribe = None


class CursorSequencer:
    def __init__(self, coordinator: Coordinator) -> None:
        self._c = coordinator

    # Prepared statements.

    async def prepare(self, session: Session, plan: PreparePlan) -> Done:
        if plan.name in session.statements:
            raise SqlError("42P05", f'prepared statement "{plan.name}" already exists')
        session.statements[plan.name] = await self._c.planning.prepare(session, plan.statement, plan.param_types)
        return Done("PREPARE")

    async def execute(self, session: Session, plan: ExecutePlan, params: tuple[Any, ...]) -> ExecuteResult:
        prepared = session.statements.get(plan.name)
        if prepared is None:
            raise SqlError("26000", f'prepared statement "{plan.name}" does not exist')
        value = session_value(session, self._c, params, ())
        args = tuple(eval_constant(substitute_scalar(a, value)) for a in plan.args)
        if isinstance(prepared.statement, st.Fetch):
            cursor = self._cursor(session, prepared.statement.name)
            if not same_columns(cursor.desc, prepared.desc):
                raise result_type_changed()
        return await self._c.sequencer.execute(session, prepared, args)

    def deallocate(self, session: Session, plan: DeallocatePlan) -> Done:
        if plan.name is None:
            session.statements.clear()
            return Done("DEALLOCATE ALL")
        if session.statements.pop(plan.name, None) is None:
            raise SqlError("26000", f'prepared statement "{plan.name}" does not exist')
        return Done("DEALLOCATE")

    # Cursors.

    async def declare(self, session: Session, plan: DeclarePlan, params: tuple[Any, ...]) -> Done:
        if plan.name in session.cursors:
            raise SqlError("42P03", f'cursor "{plan.name}" already exists')
        prepared = await self._c.planning.prepare(session, plan.statement, ())
        session.cursors[plan.name] = Cursor(plan.name, prepared, self._c)
        return Done("DECLARE CURSOR")

    def close(self, session: Session, plan: ClosePlan) -> Done:
        if plan.name == "all":
            for open_cursor in session.cursors.values():
                open_cursor.close()
            session.cursors.clear()
            return Done("CLOSE CURSOR ALL")
        cursor = session.cursors.pop(plan.name, None)
        if cursor is None:
            raise SqlError("34000", f'cursor "{plan.name}" does not exist')
        cursor.close()
        return Done("CLOSE CURSOR")

    def _cursor(self, session: Session, name: str) -> Cursor:
        cursor = session.cursors.get(name)
        if cursor is None:
            raise SqlError("34000", f'cursor "{name}" does not exist')
        return cursor

    async def fetch(self, session: Session, prepared: Prepared, plan: FetchPlan) -> Rows:
        cursor = self._cursor(session, plan.name)
        if plan.timeout_ms is not None and plan.timeout_ms > MAX_TIMEOUT_MS:
            raise SqlError("22023", "timeout out of range", detail="the timeout must be at most 24 hours")
        if not same_columns(cursor.desc, prepared.desc):
            raise result_type_changed()
        desc = cursor.desc
        assert desc is not None
        if not cursor.started:
            await self._start(session, cursor)
        wanted = plan.count
        taken: list[Batch] = []
        count = 0
        timeout_s = None if plan.timeout_ms is None else plan.timeout_ms / 1000
        waited = False
        while wanted is None or count < wanted:
            batch = await self._next(session, cursor, timeout_s, waited)
            if batch is None:
                break
            waited = True
            take = batch.n if wanted is None else min(batch.n, wanted - count)
            if take < batch.n:
                assert cursor.left is not None
                cursor.left.insert(0, batch.slice(take, batch.n))
                batch = batch.slice(0, take)
            taken.append(batch)
            count += take
        return Rows(desc, taken, verb="FETCH")

    async def _start(self, session: Session, cursor: Cursor) -> None:
        cursor.started = True
        cursor.left = []
        plan = cursor.prepared.plan
        if isinstance(plan, SubscribePlan):
            cursor.subscribe = await self._c.sequencer.subscribes.start(session, cursor.prepared, plan, ())
            return
        statement = cursor.prepared.statement
        if isinstance(statement, st.Fetch):
            inner = self._cursor(session, statement.name)
            if not same_columns(inner.desc, cursor.desc):
                raise result_type_changed()
        result = await self._c.sequencer.execute(session, cursor.prepared, ())
        if not isinstance(result, Rows):
            raise SqlError("0A000", f'cursor "{cursor.name}" has no rows')
        if isinstance(result.batches, Sequence):
            cursor.left = list(result.batches)
        else:
            cursor.left = [b async for b in result.batches]

    async def _next(self, session: Session, cursor: Cursor, timeout_s: float | None, waited: bool) -> Batch | None:
        """The next rows. Of a SUBSCRIBE without a timeout: wait once, for the first rows; then only what is ready."""
        assert cursor.left is not None
        if cursor.left:
            return cursor.left.pop(0)
        if cursor.subscribe is None:
            return None
        if timeout_s is None and waited:
            timeout_s = 0.0
        return await self._c.sequencer.subscribes.next(session, cursor.subscribe, timeout_s)
