"""What executing one statement hands to the front end: the closed union `ExecuteResult`.

    Done     no rows: CREATE TABLE, INSERT 0 3, SET            CommandComplete(tag)
    Empty    an empty query string                             EmptyQueryResponse
    Rows     rows to send, all here or arriving in batches     [RowDescription] DataRow* CommandComplete | PortalSuspended
    CopyOut  COPY … TO STDOUT: encoded lines in chunks         CopyOutResponse CopyData* CopyDone CommandComplete
    CopyIn   COPY … FROM STDIN: a sink for the client's bytes  CopyInResponse, then feed/finish/abort

Rows travel as columns (`Batch`); the front end formats them as text or binary. Nothing here does I/O.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from mzlite.repr.column import Column
from mzlite.repr.types import RelationDesc


@dataclass(frozen=True, slots=True)
class Notice:
    """severity: NOTICE, WARNING, INFO, DEBUG, LOG."""

    severity: str
    sqlstate: str
    message: str
    detail: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """n rows as columns (n matters when there are no columns)."""

    columns: tuple[Column, ...]
    n: int

    def slice(self, start: int, stop: int) -> Batch:
        return Batch(tuple(c.slice(start, stop) for c in self.columns), stop - start)


@dataclass(slots=True)
class Rows:
    """Rows for the client.

    batches: a list (everything is here) or an async iterator (they arrive: SUBSCRIBE, large results); when iteration
    raises SqlError the statement failed after rows were sent. verb: the command tag is `f"{verb} {rows sent}"`.
    tag: when set, the whole command tag (INSERT … RETURNING: "INSERT 0 2"). suspended: the portal has more rows
    (only from `execute` with max_rows > 0): answer PortalSuspended instead of CommandComplete.
    An abandoned iterator must be closed with `aclose()`; that ends the statement.
    """

    desc: RelationDesc
    batches: Sequence[Batch] | AsyncIterator[Batch]
    verb: str = "SELECT"
    tag: str | None = None
    suspended: bool = False

    def command_tag(self, rows_sent: int) -> str:
        return self.tag if self.tag is not None else f"{self.verb} {rows_sent}"


@dataclass(frozen=True, slots=True)
class Done:
    tag: str


@dataclass(frozen=True, slots=True)
class Empty:
    """The statement was empty."""


@dataclass(slots=True)
class CopyOut:
    """chunks: payloads of CopyData messages, one a row, in `format`. command tag: `COPY n`, n from `row_count()` at the end."""

    desc: RelationDesc
    format: Literal["text", "csv", "binary"]
    chunks: AsyncIterator[list[bytes]]
    row_count: Callable[[], int]

    def command_tag(self) -> str:
        return f"COPY {self.row_count()}"


@dataclass(slots=True)
class CopyIn:
    """A sink for what the client sends.

    feed(bytes): the payload of any number of CopyData messages, cut anywhere; parses and holds whole lines (off the
    event loop when large); raises SqlError on a malformed line: the front end then reports it and discards CopyData
    until CopyDone/CopyFail/Sync. finish(): CopyDone; writes and returns the command tag ("COPY 5"). abort(message):
    CopyFail or a lost client; nothing is written; returns the SqlError (57014) to report.
    """

    column_count: int
    format: Literal["text", "csv", "binary"]
    feed: Callable[[bytes], Awaitable[None]]
    finish: Callable[[], Awaitable[str]]
    abort: Callable[[str], Awaitable[Exception]]
    columns: tuple[str, ...] = field(default=())


ExecuteResult = Rows | Done | Empty | CopyOut | CopyIn
