"""A session: one client's conversation with the coordinator. The only interface a front end (pgwire, tests) uses.

    simple query                                     extended query
    stmts = session.parse(sql)                       await session.prepare(name, sql, oids)        Parse
    session.begin_implicit(len(stmts))               session.describe_statement(name)              Describe 'S'
    for s in stmts: await session.execute_simple(s)  session.bind(portal, name, params)            Bind
    await session.end_implicit()                     session.describe_portal(portal)               Describe 'P'
    (any SqlError: session.note_error(), stop,       await session.execute(portal, max_rows)       Execute
     await session.end_implicit())                   await session.sync()                          Sync

Any SqlError these raise has already put the transaction into its failed state where PostgreSQL would; a front end that
finds an error itself (a parameter it cannot decode, a bad message) calls `note_error()`. After an error in the
extended protocol the front end skips to Sync, then calls `sync()`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from adapter.coord.result import ExecuteResult, Notice
from mzlite.repr.types import RelationDesc, ScalarType

if TYPE_CHECKING:
    from adapter.sql.parse import Statement


class Session:
    """Made by `Coordinator.connect`. pid and secret are what a cancel request carries."""

    pid: int
    secret: int
    user: str

    # Simple protocol.

    def parse(self, sql: str) -> Sequence[Statement]:
        """The statements of a query string (empty for only blanks and comments). SqlError 42601 with a position."""
        ...

    def begin_implicit(self, statement_count: int) -> None:
        """Start the implicit transaction around a query string of that many statements."""
        ...

    async def execute_simple(self, statement: Statement) -> ExecuteResult:
        """Run one statement of the string. Rows' description goes with the rows."""
        ...

    async def end_implicit(self) -> None:
        """End of the string, also after an error: commits the implicit transaction if it stands (may raise SqlError)."""
        ...

    # Extended protocol.

    async def prepare(self, name: str, sql: str, param_oids: Sequence[int]) -> None:
        """Parse: plan at most one statement under a name ("" = unnamed, replaceable). 42P05 when the name is taken."""
        ...

    def describe_statement(self, name: str) -> tuple[Sequence[ScalarType], RelationDesc | None]:
        """Parameter types, and the row description (None: no rows). SqlError 26000 for an unknown name."""
        ...

    def bind(self, portal: str, statement: str, params: Sequence[Any]) -> None:
        """Bind: params are datums (`repr.datum`) of the described parameter types, None for NULL. Result formats are the
        front end's own to remember. SqlError 26000 (no statement), 08P01 (wrong number of parameters), 42P03 (portal exists)."""
        ...

    def describe_portal(self, portal: str) -> RelationDesc | None:
        """SqlError 34000 for an unknown portal."""
        ...

    async def execute(self, portal: str, max_rows: int = 0) -> ExecuteResult:
        """Run a portal, or continue a suspended one; max_rows 0 = all."""
        ...

    def close_statement(self, name: str) -> None:
        """No error when there is none."""
        ...

    def close_portal(self, portal: str) -> None: ...

    async def sync(self) -> None:
        """Sync: ends the implicit transaction if one is open (commit may raise SqlError), drops its portals."""
        ...

    # State.

    @property
    def transaction_status(self) -> bytes:
        """b"I" idle, b"T" in a transaction block, b"E" in a failed one: ReadyForQuery's byte."""
        ...

    def note_error(self) -> None:
        """The front end reports an error of its own: fails the open transaction as a statement's error would."""
        ...

    def cancel(self) -> None:
        """Cancel what runs now (57014); nothing happens when nothing runs. From another connection: `Coordinator.cancel`."""
        ...

    async def terminate(self) -> None:
        """The client is gone: cancel what runs, roll back, drop temporary items. Idempotent."""
        ...

    def drain_notices(self) -> list[Notice]:
        """Notices since the last call; send them before CommandComplete/ReadyForQuery."""
        ...

    def drain_parameter_changes(self) -> dict[str, str]:
        """ParameterStatus messages to send (name -> value) since the last call."""
        ...

    def startup_parameters(self) -> dict[str, str]:
        """All reportable parameters with their values, for the start of a connection."""
        ...

    def variable(self, name: str) -> str:
        """The value of a session variable as SHOW prints it (front end: client_encoding, extra_float_digits, …)."""
        ...
