"""INSERT, UPDATE, DELETE.

    constant INSERT               rows now, applied by group commit at the transaction's end
    INSERT … SELECT, UPDATE,      lock the tables ─▶ read at the latest write's time ─▶ diffs ─▶ group commit ─▶ unlock
    DELETE (read then write)

The read is an ordinary one-shot read. The locks keep other writers out between the read's time and the write's, so the
statement is as if it ran at the write's time alone. Source: Materialize's read-then-write.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import numpy as np

from adapter.catalog.builtin.relation import BUILTINS
from adapter.catalog.objects import SourceDetails, TableDetails
from adapter.coord.planning import Prepared
from adapter.coord.result import Done, ExecuteResult, Rows
from adapter.coord.transaction import Status
from adapter.sequencer.finishing import finish, split
from adapter.sequencer.inline import inline_views
from adapter.sequencer.interpret import expand_diffs
from adapter.sequencer.scalars import substitute_scalar, unmaterializable
from adapter.sequencer.values import session_value
from adapter.sql.plans import DeletePlan, InsertPlan, Returning, UpdatePlan
from mzlite.expr import relation as r
from mzlite.expr.eval import eval_scalar
from mzlite.expr.relation import RowSetFinishing
from mzlite.repr.column import Column
from mzlite.repr.errors import SqlError, decode_error
from mzlite.repr.ids import GlobalId
from mzlite.repr.types import RelationDesc
from mzlite.repr.updates import Updates, concat_updates, consolidate

if TYPE_CHECKING:
    from adapter.coord.coordinator import Coordinator
    from adapter.coord.session import Session


class DmlSequencer:
    def __init__(self, coordinator: Coordinator) -> None:
        self._c = coordinator

    # Statements.

    def is_constant(self, session: Session, plan: InsertPlan) -> bool:
        """Does the statement read nothing?"""
        return not r.global_ids(plan.mir)

    async def insert(
        self, session: Session, prepared: Prepared, plan: InsertPlan, params: tuple[Any, ...]
    ) -> ExecuteResult:
        desc = self._table(plan.table)
        if "mz_now" in unmaterializable(plan.mir):
            raise mz_now_in_write()
        if self.is_constant(session, plan):
            session.txn.add_writes()
            rows = await self._read(session, prepared, plan.mir, desc.typ.arity, params, freshest=True)
            check_not_null(rows, desc)
            session.txn.add_writes().rows.append((plan.table, rows))
            return self._answer(session, plan.returning, rows, params, prepared, "INSERT 0")
        return await self._read_then_write(session, prepared, plan.table, plan.mir, params, "INSERT 0", plan.returning)

    async def update(
        self, session: Session, prepared: Prepared, plan: UpdatePlan, params: tuple[Any, ...]
    ) -> ExecuteResult:
        if "mz_now" in unmaterializable(plan.mir):
            raise mz_now_in_write()
        return await self._read_then_write(session, prepared, plan.table, plan.mir, params, "UPDATE")

    async def delete(
        self, session: Session, prepared: Prepared, plan: DeletePlan, params: tuple[Any, ...]
    ) -> ExecuteResult:
        if "mz_now" in unmaterializable(plan.mir):
            raise mz_now_in_write()
        return await self._read_then_write(session, prepared, plan.table, plan.mir, params, "DELETE")

    async def _read_then_write(
        self,
        session: Session,
        prepared: Prepared,
        table: GlobalId,
        mir: r.Mir,
        params: tuple[Any, ...],
        verb: str,
        returning: Returning | None = None,
    ) -> ExecuteResult:
        c = self._c
        desc = self._table(table)
        if session.txn.read_only or (session.txn.status is Status.EXPLICIT and session.txn.ops is not None):
            session.txn.add_writes()
        tables = self._tables_read(mir) | {table}
        await session.interrupt.wait(asyncio.ensure_future(c.group_commit.lock(tables, session)))
        try:
            arity = desc.typ.arity
            width = 2 * arity if verb == "UPDATE" else arity
            rows = await self._read(session, prepared, mir, width, params, freshest=True)
            count = int(rows.diff.sum())
            if verb == "UPDATE":
                old, new = rows.columns[:arity], rows.columns[arity:]
                added = Updates(new, rows.time, rows.diff)
                check_not_null(added, desc)
                changes = consolidate(concat_updates([Updates(old, rows.time, -rows.diff), added]))
            elif verb == "DELETE":
                added = rows
                changes = rows.negate()
            else:
                added = rows
                check_not_null(rows, desc)
                changes = rows
            if len(changes):
                ts = await session.interrupt.wait(c.group_commit.write([(table, changes)], session))
                session.min_read_ts = max(session.min_read_ts, ts)
        finally:
            c.group_commit.unlock(tables, session)
        return self._answer(session, returning, added, params, prepared, verb, count)

    # Parts.

    def _table(self, id: GlobalId) -> RelationDesc:
        item = self._c.state.items.get(id)
        if item is None or not isinstance(item.details, TableDetails):
            name = self._c.names_of([id]).get(id, id)
            kind = item.kind if item is not None else "view"
            raise SqlError("42809", f"cannot insert into {kind} '{name}'")
        return item.details.desc

    def _tables_read(self, mir: r.Mir) -> set[GlobalId]:
        """Tables under a read; SqlError for what a write must not read."""
        found: set[GlobalId] = set()
        for id in r.global_ids(inline_views(mir, self._c.definition)):
            item = self._c.state.items.get(id)
            if id in BUILTINS or (item is not None and isinstance(item.details, SourceDetails)):
                name = self._c.names_of([id]).get(id, id)
                raise SqlError(
                    "0A000", f"{name} cannot be read in a write statement", hint="only user tables may be read"
                )
            found.add(id)
        return found

    async def _read(
        self, session: Session, prepared: Prepared, mir: r.Mir, arity: int, params: tuple[Any, ...], *, freshest: bool
    ) -> Updates:
        finishing = RowSetFinishing(project=tuple(range(arity)))
        peeks = self._c.sequencer.peeks
        key = ("write", session.vars.cluster)
        plan = prepared.artifacts.get(key) if not params else None
        if plan is None:
            plan, lasting = await peeks.plan_read(session, mir, finishing, params, prepared.param_types)
            if lasting:
                prepared.artifacts[key] = plan
        result = await peeks.run(session, plan, finishing, freshest=freshest)
        return result.rows

    def _answer(
        self,
        session: Session,
        returning: Returning | None,
        rows: Updates,
        params: tuple[Any, ...],
        prepared: Prepared,
        verb: str,
        count: int | None = None,
    ) -> ExecuteResult:
        if count is None:
            count = int(rows.diff.sum())
        if returning is None:
            return Done(f"{verb} {count}")
        value = session_value(session, self._c, params, prepared.param_types)
        columns, n = expand_diffs(rows)
        out: list[Column] = []
        for scalar in returning.scalars:
            result = eval_scalar(substitute_scalar(scalar, value), columns, n)
            if result.errors is not None:
                raise decode_error(result.errors[1][0])
            out.append(result.column)
        made = Updates(tuple(out), np.zeros(n, np.uint64), np.ones(n, np.int64))
        batch = finish(made, RowSetFinishing(project=tuple(range(len(out)))))
        return Rows(returning.desc, split(batch), tag=f"{verb} {count}")


def check_not_null(rows: Updates, desc: RelationDesc) -> None:
    for name, column, typ in zip(desc.names, rows.columns, desc.typ.columns):
        if not typ.nullable and column.valid is not None and not column.valid.all():
            raise SqlError("23502", f'null value in column "{name}" violates not-null constraint')


def mz_now_in_write() -> SqlError:
    return SqlError("0A000", "calls to mz_now in write statements are not supported")
