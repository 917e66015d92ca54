"""SET, SHOW, RESET, ALTER SYSTEM, DISCARD, and the statements that begin and end transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adapter.catalog.state import CatalogTransaction
from adapter.coord.describe import text_desc
from adapter.coord.result import Done, ExecuteResult, Rows
from adapter.coord.session_vars import SESSION_VARS, unrecognized
from adapter.coord.system_vars import SYSTEM_VARS
from adapter.coord.transaction import Reads, Status
from adapter.sequencer.rows import constant_rows
from adapter.sql import plans as p
from mzlite.repr.errors import SqlError

if TYPE_CHECKING:
    from adapter.coord.coordinator import Coordinator
    from adapter.coord.session import Session

_ISOLATION = "transaction_isolation"


class SettingsSequencer:
    def __init__(self, coordinator: Coordinator) -> None:
        self._c = coordinator

    async def execute(self, session: Session, plan: p.Plan) -> ExecuteResult:
        match plan:
            case p.SetVariablePlan():
                return self._set(session, plan)
            case p.ResetAllPlan():
                session.vars.reset_all()
                return Done("RESET")
            case p.ShowVariablePlan(name):
                return self._show(session, name)
            case p.ShowAllVariablesPlan():
                rows = [(n, v, d) for n, v, d in sorted(self._c.facts.for_session(session).settings())]
                return _rows(("name", "setting", "description"), rows)
            case p.BeginPlan():
                return self._begin(session, plan)
            case p.SetTransactionPlan():
                return self._set_transaction(session, plan)
            case p.CommitPlan():
                return await self._commit(session)
            case p.RollbackPlan():
                return self._rollback(session)
            case p.AlterSystemSetPlan():
                return await self._alter_system(session, plan)
            case p.DiscardPlan(what):
                return await self._discard(session, what)
            case _:
                raise AssertionError(plan)

    # Variables.

    def _set(self, session: Session, plan: p.SetVariablePlan) -> Done:
        name, values = plan.name.lower(), plan.values
        if name == "schema":
            name = "search_path"
            if values is not None and len(values) > 1:
                raise SqlError("42601", "Expected end of statement, found comma")
        if name == "names":
            name = "client_encoding"
        if name == "time zone":
            name = "timezone"
        busy = session.txn.status is not Status.IDLE and _has_read(session)
        if busy and name == _ISOLATION:
            raise SqlError("25001", "SET TRANSACTION ISOLATION LEVEL must be called before any query")
        if busy and name in ("cluster", "cluster_replica") and session.txn.status is Status.EXPLICIT:
            raise SqlError("25001", f"SET {name} cannot be called in an active transaction")
        if name not in SESSION_VARS and name in SYSTEM_VARS:
            raise SqlError("55P02", f'parameter "{name}" cannot be set in a session', hint="Use ALTER SYSTEM SET.")
        if values is None:
            session.vars.reset(name, plan.local)
        else:
            session.vars.set(plan.name if name == plan.name.lower() else name, values, plan.local)
            self._warn(session, name)
        if plan.local and not session.txn.in_block and session.txn.status is not Status.EXPLICIT:
            session.notice("SET LOCAL can only be used in transaction blocks", severity="WARNING", sqlstate="25P01")
        return Done("SET" if values is not None else "RESET")

    def _warn(self, session: Session, name: str) -> None:
        """Notices for values that name something that is not there."""
        if not session.vars.get("current_object_missing_warnings"):
            return
        state = self._c.state
        if name == "database" and state.database(session.vars.database) is None:
            session.notice(
                f'database "{session.vars.database}" does not exist',
                hint="Create the database with CREATE DATABASE or pick an extant database with SET DATABASE = name. "
                "List available databases with SHOW DATABASES.",
                sqlstate="MZ005",
            )
        elif name == "cluster" and state.cluster(session.vars.cluster) is None:
            session.notice(
                f'cluster "{session.vars.cluster}" does not exist',
                hint="Create the cluster with CREATE CLUSTER or pick an extant cluster with SET CLUSTER = name. "
                "List available clusters with SHOW CLUSTERS.",
                sqlstate="MZ006",
            )
        elif name == "search_path":
            found = self._c.planning.view(session).current_schemas(
                session.vars.database, session.vars.search_path, False
            )
            if not found:
                session.notice(
                    f'schema "{", ".join(session.vars.search_path)}" does not exist',
                    hint="Create the schema with CREATE SCHEMA or pick an extant schema with SET SCHEMA = name. "
                    "List available schemas with SHOW SCHEMAS.",
                    sqlstate="MZ004",
                )

    def _show(self, session: Session, name: str) -> Rows:
        key = name.lower()
        if key == "schema":
            found = self._c.planning.view(session).current_schemas(
                session.vars.database, session.vars.search_path, False
            )
            return _rows((name,), [(found[0] if found else None,)])
        key = {"time zone": "timezone", "transaction isolation level": _ISOLATION}.get(key, key)
        text = session.variable(key)
        if text is None:
            raise unrecognized(name)
        return _rows((name,), [(text,)])

    # Transactions.

    def _begin(self, session: Session, plan: p.BeginPlan) -> Done:
        txn = session.txn
        if txn.status is Status.EXPLICIT:
            session.notice("there is already a transaction in progress", severity="WARNING", sqlstate="25001")
        if plan.read_only is not None:
            if plan.read_only is False and txn.read_only and txn.ops is not None:
                raise SqlError("25001", "transaction read-write mode must be set before any query")
            txn.read_only = plan.read_only
        txn.status = Status.EXPLICIT
        if plan.isolation is not None:
            self._isolation(session, plan.isolation, local=True)
        return Done("START TRANSACTION" if plan.start else "BEGIN")

    def _isolation(self, session: Session, level: str, *, local: bool) -> None:
        if _has_read(session):
            raise SqlError("25001", "SET TRANSACTION ISOLATION LEVEL must be called before any query")
        session.vars.set(_ISOLATION, [level], local)

    def _set_transaction(self, session: Session, plan: p.SetTransactionPlan) -> Done:
        if plan.read_only is not None:
            raise SqlError("0A000", "SET TRANSACTION <access-mode> are not supported")
        if plan.isolation is not None:
            self._isolation(session, plan.isolation, local=not plan.session)
        return Done("SET")

    async def _commit(self, session: Session) -> Done:
        txn = session.txn
        if txn.status is Status.FAILED:
            session.rollback()
            return Done("ROLLBACK")
        explicit = txn.status is Status.EXPLICIT
        if not explicit and txn.ops is None:
            session.notice("there is no transaction in progress", severity="WARNING", sqlstate="25P01")
        await session.commit()
        self._implicit_again(session)
        return Done("COMMIT")

    def _rollback(self, session: Session) -> Done:
        if session.txn.status not in (Status.EXPLICIT, Status.FAILED) and session.txn.ops is None:
            session.notice("there is no transaction in progress", severity="WARNING", sqlstate="25P01")
        session.rollback()
        self._implicit_again(session)
        return Done("ROLLBACK")

    def _implicit_again(self, session: Session) -> None:
        """The rest of a query string is a new implicit transaction."""
        if session.txn.statement_count is not None:
            session.txn.status = Status.IMPLICIT

    # The system.

    async def _alter_system(self, session: Session, plan: p.AlterSystemSetPlan) -> Done:
        c = self._c
        if plan.name is not None and not session.superuser and not c.system_vars.known(plan.name):
            raise unrecognized(plan.name)
        if not session.superuser:
            raise SqlError(
                "42501",
                "permission denied to alter system"
                if plan.name is None
                else f'permission denied to set parameter "{plan.name}"',
                detail="You must be the 'mz_system' role",
            )
        async with c.ddl_lock:
            tx = CatalogTransaction(c.state)
            changes: dict[str, str | None] = {}
            if plan.name is None:
                changes = dict.fromkeys(c.state.system_vars)
            elif plan.values is None:
                if not c.system_vars.known(plan.name):
                    raise unrecognized(plan.name)
                changes[plan.name.lower()] = None
            else:
                key, text = c.system_vars.check(plan.name, plan.values)
                changes[key] = text
            for key, value in changes.items():
                tx.set_system_var(key, value)
            await c.commit_catalog(tx)
            for key, value in changes.items():
                c.system_vars.apply(key, value)
            c.controller.update_configuration(c.compute_parameters())
        return Done("ALTER SYSTEM")

    async def _discard(self, session: Session, what: str) -> Done:
        if what in ("all", "temp", "temporary"):
            await self._c.sequencer.ddl.drop_temporary(session)
        if what == "all":
            session.vars.reset_all()
        if what in ("all", "plans"):
            session.statements.clear()
        return Done(f"DISCARD {what.upper()}")


def _has_read(session: Session) -> bool:
    ops = session.txn.ops
    return isinstance(ops, Reads) and ops.determination is not None


def _rows(names: tuple[str, ...], rows: list[tuple[Any, ...]]) -> Rows:
    return constant_rows(text_desc(*names), rows)
