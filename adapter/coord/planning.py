"""From text to prepared statements, with everything that can be remembered remembered.

    parse cache   text -> statements
    plan cache    (text, parameter types, catalog revision, session settings) -> Prepared

A `Prepared` holds the plan and, filled in by the sequencer, what optimizing it gave; so a statement that comes again
costs a dictionary lookup. Long statements are parsed and planned in a thread, so that they do not hold up other
sessions' reads.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from adapter.catalog.builtin.relation import is_local
from adapter.catalog.view import StateView
from adapter.coord.describe import plan_desc
from adapter.coord.transaction import Ddl
from adapter.sequencer.values import literal
from adapter.sql import plans as p
from adapter.sql import statements as st
from adapter.sql.parse import parse_statements
from adapter.sql.plan import plan_statement
from adapter.sql.statements import Statement
from mzlite.expr.relation import global_ids
from mzlite.repr.errors import SqlError
from mzlite.repr.ids import GlobalId
from mzlite.repr.types import RelationDesc, ScalarType

if TYPE_CHECKING:
    from adapter.coord.coordinator import Coordinator
    from adapter.coord.session import Session

PARSE_CACHE_SIZE = 2_000
PLAN_CACHE_SIZE = 2_000
CACHED_TEXT = 20_000
THREAD_TEXT = 250
"""A statement at least this long is planned in a thread."""

_CACHEABLE = (p.SelectPlan, p.InsertPlan, p.UpdatePlan, p.DeletePlan, p.SubscribePlan)

_OF_THE_MOMENT = re.compile(r"\bshow\b|current_setting", re.IGNORECASE)
"""What planning answers from the catalog's texts and the session's settings: such plans are not kept."""


@dataclass(slots=True)
class Prepared:
    """A planned statement. plan None: it is planned when it runs (its text says so little that planning is nothing).

    revision, settings: what the plan depends on; a stale one is planned again. reads: the items it depends on, None when
    it is of no use to know. artifacts: the sequencer's, by purpose.
    """

    statement: Statement | None
    param_types: tuple[ScalarType, ...]
    desc: RelationDesc | None
    plan: p.Plan | None = None
    revision: int = -1
    settings: tuple[Any, ...] = ()
    declared: tuple[ScalarType | None, ...] = ()
    artifacts: dict[Any, Any] = field(default_factory=dict)
    reads: frozenset[GlobalId] | None = None


class Planning:
    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._parsed: OrderedDict[str, tuple[Statement, ...]] = OrderedDict()
        self._planned: OrderedDict[tuple[Any, ...], Prepared] = OrderedDict()
        self._views: dict[int | None, StateView] = {}
        self.hits = 0
        self.misses = 0

    def parse(self, sql: str) -> tuple[Statement, ...]:
        found = self._parsed.get(sql)
        if found is None:
            found = tuple(parse_statements(sql))
            if len(sql) <= CACHED_TEXT:
                self._parsed[sql] = found
                if len(self._parsed) > PARSE_CACHE_SIZE:
                    self._parsed.popitem(last=False)
        return found

    def view(self, session: Session) -> StateView:
        """The catalog as the session sees it now: its open DDL transaction's, or the current revision."""
        ops = session.txn.ops
        if isinstance(ops, Ddl):
            return StateView(ops.tx.state, session.pid)
        state = self._coordinator.state
        key = session.pid if session.has_temporary_items else None
        view = self._views.get(key)
        if view is None or view.state is not state:
            if view is not None and len(self._views) > 100:
                self._views.clear()
            view = self._views[key] = StateView(state, session.pid if session.has_temporary_items else None)
        return view

    async def prepare(self, session: Session, statement: Statement, declared: Sequence[ScalarType | None]) -> Prepared:
        """The statement's plan, from the cache if it is there. SqlError if it has no meaning."""
        revision = self._coordinator.state.revision
        settings = session.vars.key
        temporary = session.pid if session.has_temporary_items else 0
        key = (statement.text, tuple(declared), settings, temporary)
        found = self._planned.get(key)
        if (
            found is not None
            and not isinstance(session.txn.ops, Ddl)
            and type(found.statement) is type(statement)
            and self._still_right(found)
        ):
            self.hits += 1
            return found
        self.misses += 1
        if len(statement.text) >= THREAD_TEXT and isinstance(
            statement, st.SelectStatement | st.CreateView | st.CreateMaterializedView
        ):
            view = self.view(session)
            work = self._coordinator.in_thread(self._plan, session, view, statement, declared)
            prepared = await session.interrupt.wait(work)
        else:
            prepared = self._plan(session, self.view(session), statement, declared)
        prepared.revision, prepared.settings = revision, settings
        in_ddl = isinstance(session.txn.ops, Ddl)
        lasting = not in_ddl and _OF_THE_MOMENT.search(statement.text) is None
        if isinstance(prepared.plan, _CACHEABLE) and len(statement.text) <= CACHED_TEXT and lasting:
            prepared.reads = self._reads(prepared.plan)
            self._planned[key] = prepared
            if len(self._planned) > PLAN_CACHE_SIZE:
                self._planned.popitem(last=False)
        return prepared

    def _still_right(self, prepared: Prepared) -> bool:
        """Has nothing changed that the plan depends on? Then it is as good as new."""
        revision = self._coordinator.state.revision
        if prepared.revision == revision:
            return True
        if prepared.reads is None or prepared.statement is None:
            return False
        text = prepared.statement.text
        if not self._coordinator.revisions.survives(prepared.revision, revision, prepared.reads, text):
            return False
        prepared.revision = revision
        return True

    def _reads(self, plan: p.Plan | None) -> frozenset[GlobalId] | None:
        """Every item a plan depends on. None: on the catalog as a whole."""
        match plan:
            case p.SelectPlan(mir=mir) | p.SubscribePlan(mir=mir):
                reads = global_ids(mir)
            case (
                p.InsertPlan(table=table, mir=mir)
                | p.UpdatePlan(table=table, mir=mir)
                | p.DeletePlan(table=table, mir=mir)
            ):
                reads = global_ids(mir) | {table}
            case _:
                return None
        if any(is_local(id) for id in reads):
            return None
        return frozenset(self._coordinator.under(reads))

    async def with_values(self, session: Session, prepared: Prepared, params: Sequence[Any]) -> p.Plan:
        """The plan of a statement that cannot be planned without its parameters' values (LIMIT $1)."""
        assert prepared.statement is not None
        values = [literal(typ, datum) for typ, datum in zip(prepared.param_types, params)]
        return plan_statement(prepared.statement, self.view(session), session, prepared.param_types, values).plan

    def display(self, statement: Statement) -> str:
        """A statement's text for messages, in its canonical spelling as far as that is cheap."""
        text = " ".join(statement.text.split())
        if isinstance(statement, st.CreateTable):
            text = re.sub(r"\b(?:int|integer)\b", "int4", text, flags=re.IGNORECASE)
            text = re.sub(r"\bbigint\b", "int8", text, flags=re.IGNORECASE)
        return re.sub(r"\bVALUES\(", "VALUES (", text)

    async def refresh(self, session: Session, prepared: Prepared) -> Prepared:
        """prepared itself, or planned anew when the catalog or the settings moved. 0A000 if its columns changed."""
        assert prepared.statement is not None
        if prepared.settings == session.vars.key and self._still_right(prepared):
            return prepared
        fresh = await self.prepare(session, prepared.statement, prepared.declared)
        if fresh.desc != prepared.desc and not same_columns(fresh.desc, prepared.desc):
            raise result_type_changed()
        return fresh

    def _plan(
        self, session: Session, view: StateView, statement: Statement, declared: Sequence[ScalarType | None]
    ) -> Prepared:
        planned = plan_statement(statement, view, session, declared)
        desc = plan_desc(planned.plan, session)
        return Prepared(statement, tuple(planned.param_types), desc, planned.plan, declared=tuple(declared))


def same_columns(a: RelationDesc | None, b: RelationDesc | None) -> bool:
    """Equal names and types; keys and nullability may differ."""
    if a is None or b is None:
        return a is b
    return a.names == b.names and [c.scalar for c in a.typ.columns] == [c.scalar for c in b.typ.columns]


def result_type_changed() -> SqlError:
    return SqlError("0A000", "cached plan must not change result type")
