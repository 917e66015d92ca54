"""A session: one client's conversation with the coordinator. The only interface a front end (pgwire, tests) uses.

    simple query                                     extended query
    stmts = session.parse(sql)                       await session.prepare(name, sql, oids)        Parse
    session.begin_implicit(len(stmts))               session.describe_statement(name)              Describe 'S'
    for s in stmts: await session.execute_simple(s)  session.bind(portal, name, params)            Bind
    await session.end_implicit()                     session.describe_portal(portal)               Describe 'P'
    (any SqlError: session.note_error(), stop,       await session.execute(portal)                 Execute
     await session.end_implicit())                   await session.sync()                          Sync

Any SqlError these raise has already put the transaction into its failed state where PostgreSQL would; a front end that
finds an error itself (a parameter it cannot decode, a bad message) calls `note_error()`. After an error in the
extended protocol the front end skips to Sync, then calls `sync()`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from adapter.catalog.state import temp_schema_id
from adapter.coord.planning import Prepared
from adapter.coord.result import Empty, ExecuteResult, Notice
from adapter.coord.session_vars import SessionVars
from adapter.coord.transaction import Ddl, Reads, SingleStatement, Status, Transaction, Writes, aborted_error
from adapter.coord.waiting import Interruptible, canceled
from adapter.sql import statements as st
from adapter.sql.statements import Statement
from mzlite.repr.errors import SqlError
from mzlite.repr.typenames import type_of_oid
from mzlite.repr.types import RelationDesc, ScalarType

if TYPE_CHECKING:
    from adapter.coord.coordinator import Coordinator
    from adapter.sequencer.cursors import Cursor


log = logging.getLogger(__name__)


@dataclass(slots=True)
class Portal:
    prepared: Prepared
    params: tuple[Any, ...] = ()


@dataclass(slots=True)
class Session:
    """Made by `Coordinator.connect`. pid and secret are what a cancel request carries.

    Also the planner's `SessionView`. min_read_ts: strong session serializable's lower bound for reads.
    """

    coordinator: Coordinator
    pid: int
    secret: int
    user: str
    role_id: str
    superuser: bool
    vars: SessionVars
    connected_at_us: int
    client_address: str | None = None
    txn: Transaction = field(default_factory=Transaction)
    interrupt: Interruptible = field(default_factory=Interruptible)
    min_read_ts: int = 0
    statements: dict[str, Prepared] = field(default_factory=dict)
    portals: dict[str, Portal] = field(default_factory=dict)
    cursors: dict[str, Cursor] = field(default_factory=dict)
    notices: list[Notice] = field(default_factory=list)
    has_temporary_items: bool = False
    terminated: bool = False

    # The planner's view.

    @property
    def database(self) -> str:
        return self.vars.database

    @property
    def search_path(self) -> tuple[str, ...]:
        return self.vars.search_path

    @property
    def cluster(self) -> str:
        return self.vars.cluster

    def prepared_parameters(self, name: str) -> tuple[ScalarType, ...] | None:
        found = self.statements.get(name)
        return found.param_types if found is not None else None

    def variable(self, name: str) -> str | None:
        """The text of a session or system variable as SHOW prints it; None when there is none of that name."""
        text = self.vars.show(name)
        return text if text is not None else self.coordinator.system_vars.show(name)

    # Simple protocol.

    def parse(self, sql: str) -> Sequence[Statement]:
        """The statements of a query string (empty for only blanks and comments). SqlError 42601 with a position."""
        try:
            return self.coordinator.planning.parse(sql)
        except SqlError:
            self.note_error()
            raise
        except Exception as error:
            raise self._internal(sql, error) from error

    def begin_implicit(self, statement_count: int) -> None:
        """Start the implicit transaction around a query string of that many statements."""
        txn = self.txn
        txn.statement_count = statement_count
        if txn.status is Status.IDLE:
            txn.status = Status.IMPLICIT

    async def execute_simple(self, statement: Statement) -> ExecuteResult:
        """Run one statement of the string. Rows' description goes with the rows."""
        self._check_failed(statement)
        try:
            prepared = await self.coordinator.planning.prepare(self, statement, ())
            result = await self._execute(prepared, ())
            txn = self.txn
            if txn.status is Status.IMPLICIT and txn.statement_count == 1 and isinstance(txn.ops, Writes):
                # Alone in its string: durable before the client is told that it is done.
                await self.commit()
            return result
        except SqlError as error:
            if error.position is not None:
                error.position += statement.start
            self.note_error()
            raise
        except Exception as error:
            raise self._internal(statement.text, error) from error

    async def end_implicit(self) -> None:
        """End of the string, also after an error: commits the implicit transaction if it stands (may raise SqlError)."""
        self.txn.statement_count = None
        await self.sync()

    # Extended protocol.

    async def prepare(self, name: str, sql: str, param_oids: Sequence[int]) -> None:
        """Parse: plan at most one statement under a name ("" = unnamed, replaceable). 42P05 when the name is taken."""
        try:
            if name and name in self.statements:
                raise SqlError("42P05", f'prepared statement "{name}" already exists')
            found = self.coordinator.planning.parse(sql)
            if len(found) > 1:
                raise SqlError("42601", "cannot insert multiple commands into a prepared statement")
            if not found:
                self.statements[name] = Prepared(None, (), None)
                return
            self._check_failed(found[0])
            declared = [type_of_oid(oid) if oid else None for oid in param_oids]
            self.statements[name] = await self.coordinator.planning.prepare(self, found[0], declared)
        except SqlError:
            self.note_error()
            raise
        except Exception as error:
            raise self._internal(sql, error) from error

    def describe_statement(self, name: str) -> tuple[Sequence[ScalarType], RelationDesc | None]:
        """Parameter types, and the row description (None: no rows). SqlError 26000 for an unknown name."""
        prepared = self._statement(name)
        return prepared.param_types, prepared.desc

    def bind(self, portal: str, statement: str, params: Sequence[Any]) -> None:
        """Bind: params are datums (`repr.datum`) of the described parameter types, None for NULL. Result formats are the
        front end's own to remember. SqlError 26000 (no statement), 08P01 (wrong number of parameters), 42P03 (portal exists).
        """
        prepared = self._statement(statement)
        if len(params) != len(prepared.param_types):
            self.note_error()
            raise SqlError(
                "08P01",
                f"bind message supplies {len(params)} parameters, but prepared statement "
                f'"{statement}" requires {len(prepared.param_types)}',
            )
        if portal and portal in self.portals:
            self.note_error()
            raise SqlError("42P03", f'portal "{portal}" already exists')
        self.portals[portal] = Portal(prepared, tuple(params))

    def describe_portal(self, portal: str) -> RelationDesc | None:
        """SqlError 34000 for an unknown portal. A cursor is one, too: psycopg describes those it declares."""
        if portal in self.cursors and portal not in self.portals:
            return self.cursors[portal].desc
        return self._portal(portal).prepared.desc

    async def execute(self, portal: str, max_rows: int = 0) -> ExecuteResult:
        """Run a portal. All its rows are in the result; a front end that sends them in pieces keeps the rest."""
        found = self._portal(portal)
        prepared = found.prepared
        if prepared.statement is None:
            return Empty()
        self._check_failed(prepared.statement)
        try:
            return await self._execute(prepared, found.params)
        except SqlError:
            self.note_error()
            raise
        except Exception as error:
            raise self._internal(prepared.statement.text, error) from error

    def close_statement(self, name: str) -> None:
        """No error when there is none."""
        self.statements.pop(name, None)

    def close_portal(self, portal: str) -> None:
        self.portals.pop(portal, None)

    async def sync(self) -> None:
        """Sync: ends the implicit transaction if one is open (commit may raise SqlError), drops its portals."""
        txn = self.txn
        if txn.status is not Status.IMPLICIT:
            return
        if txn.ops is None and self.vars.clean and not self.cursors:
            txn.status = Status.IDLE
            txn.wall_time_us = None
            self.portals.clear()
            return
        await self.commit()

    # Transactions.

    async def commit(self) -> None:
        """Apply what the transaction gathered; idle afterwards, also when that fails."""
        self._close_cursors()
        statement_count = self.txn.statement_count
        ops = self.txn.take()
        try:
            match ops:
                case Writes(rows):
                    if rows:
                        ts = await self.interrupt.wait(self.coordinator.group_commit.write(rows, self))
                        self.min_read_ts = max(self.min_read_ts, ts)
                case SingleStatement(statement):
                    self.txn.status = Status.IMPLICIT
                    self.txn.statement_count = 1
                    prepared = await self.coordinator.planning.prepare(self, statement, ())
                    await self._execute(prepared, ())
                    self.txn.take()
                case Ddl(tx, base_revision):
                    await self.coordinator.commit_ddl(tx, base_revision)
                case _:
                    pass
        except BaseException:
            self.txn.take()
            self.vars.end_transaction(False)
            raise
        finally:
            self.txn.statement_count = statement_count
        self.vars.end_transaction(True)
        self.portals.clear()

    def rollback(self) -> None:
        self._close_cursors()
        self.txn.take()
        self.vars.end_transaction(False)
        self.portals.clear()

    def _close_cursors(self) -> None:
        for cursor in self.cursors.values():
            cursor.close()
        self.cursors.clear()

    @property
    def transaction_status(self) -> bytes:
        """b"I" idle, b"T" in a transaction block, b"E" in a failed one: ReadyForQuery's byte."""
        match self.txn.status:
            case Status.EXPLICIT:
                return b"T"
            case Status.FAILED:
                return b"E"
            case _:
                return b"I"

    def note_error(self) -> None:
        """The front end reports an error of its own: fails the open transaction as a statement's error would."""
        txn = self.txn
        if txn.status is Status.EXPLICIT:
            txn.status = Status.FAILED
            ops, txn.ops = txn.ops, None
            if isinstance(ops, Reads):
                ops.release()
        elif txn.status is Status.IMPLICIT:
            self.rollback()

    def _internal(self, text: str, error: Exception) -> SqlError:
        """A bug met by a statement: logged whole, and told to the client as an error of that statement alone."""
        log.error("internal error in: %s", text, exc_info=error)
        self.note_error()
        return SqlError("XX000", f"internal error: {type(error).__name__}: {error}")

    def _check_failed(self, statement: Statement) -> None:
        if self.txn.status is Status.FAILED and not isinstance(statement, st.Commit | st.Rollback):
            raise aborted_error()

    # Interruption.

    def cancel(self) -> None:
        """Cancel what runs now (57014); nothing happens when nothing runs. From another connection: `Coordinator.cancel`."""
        self.interrupt.interrupt(canceled())

    async def terminate(self) -> None:
        """The client is gone: cancel what runs, roll back, drop temporary items. Idempotent."""
        if self.terminated:
            return
        self.terminated = True
        self.cancel()
        self.rollback()
        await self.coordinator.forget(self)

    # Reports.

    def notice(
        self,
        message: str,
        *,
        severity: str = "NOTICE",
        sqlstate: str = "00000",
        detail: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.notices.append(Notice(severity, sqlstate, message, detail, hint))

    def drain_notices(self) -> list[Notice]:
        """Notices since the last call that client_min_messages lets through."""
        if not self.notices:
            return []
        found, self.notices = self.notices, []
        least = _LEVELS.get(self.vars.get("client_min_messages"), 5)
        return [n for n in found if _LEVELS.get(n.severity.lower(), 5) >= least]

    def drain_parameter_changes(self) -> dict[str, str]:
        """ParameterStatus messages to send (name -> value) since the last call."""
        return self.vars.drain_reports()

    def startup_parameters(self) -> dict[str, str]:
        """All reportable parameters with their values, for the start of a connection."""
        return self.vars.reports()

    # Helpers.

    def wall_time_us(self) -> int:
        """now(): the start of the transaction."""
        txn = self.txn
        if txn.wall_time_us is None:
            txn.wall_time_us = time.time_ns() // 1000
        return txn.wall_time_us

    @property
    def temp_schema(self) -> str:
        return temp_schema_id(self.pid)

    def _statement(self, name: str) -> Prepared:
        found = self.statements.get(name)
        if found is None:
            self.note_error()
            raise SqlError("26000", f'prepared statement "{name}" does not exist')
        return found

    def _portal(self, name: str) -> Portal:
        found = self.portals.get(name)
        if found is None:
            self.note_error()
            raise SqlError("34000", f'portal "{name}" does not exist')
        return found

    async def _execute(self, prepared: Prepared, params: tuple[Any, ...]) -> ExecuteResult:
        txn = self.txn
        if txn.status is Status.IDLE:
            txn.status = Status.IMPLICIT
        self.interrupt.begin(self.vars.statement_timeout_ms)
        try:
            return await self.coordinator.sequencer.execute(self, prepared, params)
        finally:
            self.interrupt.end()


_LEVELS = {
    "debug5": 0,
    "debug4": 1,
    "debug3": 2,
    "debug2": 3,
    "debug": 3,
    "debug1": 4,
    "log": 4,
    "notice": 5,
    "info": 5,
    "warning": 6,
    "error": 7,
}
