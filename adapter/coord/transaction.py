"""A session's transaction: what it may do next, and what it has gathered.

    IDLE ── statement ──▶ IMPLICIT ── end of the string / Sync ──▶ commit
      └──── BEGIN ──────▶ EXPLICIT ── COMMIT / ROLLBACK
                            └── error ──▶ FAILED ── COMMIT / ROLLBACK ──▶ rolled back

A transaction is one kind of work: reads at one time, writes that are applied together at the end, one SUBSCRIBE, one
other statement, or changes of names. Constant reads mix with everything. Error texts are Materialize's.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from adapter.catalog.state import CatalogTransaction
from adapter.coord.timestamp_selection import Determination
from adapter.sql.statements import Statement
from compute.client.holds import ReadHold
from mzlite.repr.errors import SqlError
from mzlite.repr.ids import GlobalId
from mzlite.repr.updates import Updates


class Status(enum.Enum):
    IDLE = "idle"
    IMPLICIT = "implicit"
    EXPLICIT = "explicit"
    FAILED = "failed"


@dataclass(slots=True)
class Reads:
    """determination None: only constants were read. ids: the time domain, holds keep it readable."""

    determination: Determination | None = None
    domain: frozenset[GlobalId] = frozenset()
    holds: list[ReadHold] = field(default_factory=list)

    def release(self) -> None:
        for hold in self.holds:
            hold.release()
        self.holds.clear()


@dataclass(slots=True)
class Writes:
    """(table, rows with diffs), applied in order at one timestamp."""

    rows: list[tuple[GlobalId, Updates]] = field(default_factory=list)


@dataclass(slots=True)
class Subscribes:
    pass


@dataclass(slots=True)
class SingleStatement:
    """Runs at COMMIT."""

    statement: Statement


@dataclass(slots=True)
class Ddl:
    """Renames gathered so far, on top of the catalog revision they started from."""

    tx: CatalogTransaction
    base_revision: int


Ops = Reads | Writes | Subscribes | SingleStatement | Ddl


def read_only_error() -> SqlError:
    return SqlError(
        "25006",
        "transaction in read-only mode",
        detail="SELECT queries cannot be combined with other query types, including SUBSCRIBE.",
    )


def write_only_error() -> SqlError:
    return SqlError("25000", "transaction in write-only mode")


def subscribe_only_error() -> SqlError:
    return SqlError("25000", "SUBSCRIBE in transactions must be the only read statement")


def single_statement_error() -> SqlError:
    return SqlError("25000", "this transaction can only execute a single statement")


def ddl_only_error() -> SqlError:
    return SqlError("25000", "transactions which modify objects are restricted to just modifying objects")


def aborted_error() -> SqlError:
    return SqlError("25P02", "current transaction is aborted, commands ignored until end of transaction block")


def prohibits(text: str) -> SqlError:
    return SqlError("25001", f"{text} cannot be run inside a transaction block")


class Transaction:
    """Invariants: ops is None in IDLE; holds of Reads are released when the transaction ends.

    statements: executed in the implicit transaction so far. statement_count: of the query string (None: extended
    protocol). read_only: BEGIN READ ONLY. cluster_id: where the first read ran; the others run there too.
    """

    def __init__(self) -> None:
        self.status = Status.IDLE
        self.ops: Ops | None = None
        self.read_only = False
        self.cluster_id: str | None = None
        self.statement_count: int | None = None
        self.statements = 0
        self.wall_time_us: int | None = None

    @property
    def is_alone(self) -> bool:
        """The running statement is all there is of the transaction, so far."""
        return self.ops is None and self.status is Status.IMPLICIT and (self.statement_count or 1) == 1

    @property
    def in_block(self) -> bool:
        """More than one statement may belong to this transaction."""
        if self.status is Status.EXPLICIT:
            return True
        return self.status is Status.IMPLICIT and (self.statement_count or 1) > 1

    def add_read(self, constant: bool) -> Reads | None:
        """Note a read; the transaction's read context. None: a constant read beside writes, which needs none."""
        match self.ops:
            case None:
                self.ops = Reads()
                return self.ops
            case Reads() as reads:
                return reads
            case Writes():
                if constant:
                    return None
                raise write_only_error()
            case Subscribes():
                raise subscribe_only_error()
            case SingleStatement():
                raise single_statement_error()
            case Ddl():
                raise ddl_only_error()

    def add_writes(self) -> Writes:
        if self.read_only:
            raise read_only_error()
        match self.ops:
            case None:
                self.ops = Writes()
                return self.ops
            case Writes() as writes:
                return writes
            case Reads(determination=None) as reads:
                reads.release()
                self.ops = Writes()
                return self.ops
            case Reads():
                raise read_only_error()
            case Subscribes():
                raise subscribe_only_error()
            case SingleStatement():
                raise single_statement_error()
            case Ddl():
                raise ddl_only_error()

    def add_subscribe(self) -> None:
        match self.ops:
            case None:
                self.ops = Subscribes()
            case Reads():
                raise read_only_error()
            case Writes():
                raise write_only_error()
            case Subscribes():
                raise subscribe_only_error()
            case SingleStatement():
                raise single_statement_error()
            case Ddl():
                raise ddl_only_error()

    def add_single(self, statement: Statement) -> None:
        match self.ops:
            case None:
                self.ops = SingleStatement(statement)
            case Reads():
                raise read_only_error()
            case Writes():
                raise write_only_error()
            case Subscribes():
                raise subscribe_only_error()
            case SingleStatement():
                raise single_statement_error()
            case Ddl():
                raise ddl_only_error()

    def check_ddl(self) -> None:
        """May a rename join this transaction?"""
        match self.ops:
            case None | Ddl():
                if self.read_only:
                    raise read_only_error()
            case Reads(determination=None):
                self.ops = None
            case Reads():
                raise read_only_error()
            case Writes():
                raise write_only_error()
            case Subscribes():
                raise subscribe_only_error()
            case SingleStatement():
                raise single_statement_error()

    def take(self) -> Ops | None:
        """End: idle again; the caller applies or discards what is returned."""
        ops, self.ops = self.ops, None
        self.status = Status.IDLE
        self.read_only = False
        self.cluster_id = None
        self.wall_time_us = None
        if isinstance(ops, Reads):
            ops.release()
        return ops
