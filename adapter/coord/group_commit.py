"""Group commit: many sessions' writes become one durable commit at one timestamp.

    write(rows) ──┐
    write(rows) ──┼─▶ one oracle.write_ts ─▶ storage.commit (one fsync) ─▶ every table's upper advances
    tick ─────────┘                            ─▶ oracle.apply_write ─▶ writers answered

A commit without writes runs once a second so that tables follow the clock. While one commit is under way the next group
gathers. A table locked by a read-then-write statement defers other sessions' writes to it, so that nothing
slips between the read and the write. Source: Materialize's group commit.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from adapter.coord.oracle import TimestampOracle
from mzlite.repr.errors import SqlError
from mzlite.repr.ids import GlobalId
from mzlite.repr.timestamp import Timestamp
from mzlite.repr.updates import Updates

log = logging.getLogger(__name__)

TICK_S = 1.0

TableWrite = tuple[GlobalId, Updates]


class CommitLog(Protocol):
    """What group commit needs of storage."""

    async def commit(self, writes: Sequence[tuple[str, Updates]], ts: Timestamp, advance_to: Timestamp) -> None:
        """Durable when done. (shard, rows) pairs; all table shards advance to advance_to."""


@dataclass(slots=True)
class _Pending:
    rows: Sequence[TableWrite]
    done: asyncio.Future[Timestamp]
    owner: object


@dataclass(slots=True)
class _Lock:
    owner: object
    waiters: list[asyncio.Future[None]] = field(default_factory=list)


class GroupCommit:
    """shard_of(table): its shard, None when the table is gone. applied(advance_to): called after every commit."""

    def __init__(
        self,
        log_: CommitLog,
        oracle: TimestampOracle,
        shard_of: Callable[[GlobalId], str | None],
        applied: Callable[[Timestamp], None],
    ) -> None:
        self._log = log_
        self._oracle = oracle
        self._shard_of = shard_of
        self._applied = applied
        self._pending: list[_Pending] = []
        self._locks: dict[GlobalId, _Lock] = {}
        self._wake = asyncio.Event()
        self._ticked: list[asyncio.Future[None]] = []
        self._task: asyncio.Task[None] | None = None
        self._stopping = False
        self.commits = 0

    async def start(self) -> None:
        """Bring every table up to now, then tick."""
        await self._commit([])
        self._task = asyncio.create_task(self._run(), name="group-commit")

    async def stop(self) -> None:
        """Finish what is pending, then stop."""
        self._stopping = True
        self._wake.set()
        if self._task is not None:
            await self._task
            self._task = None

    # Writing.

    def write(self, rows: Sequence[TableWrite], owner: object) -> asyncio.Future[Timestamp]:
        """Append rows; the future is the commit's timestamp, once durable and visible. owner: who may hold locks.

        SqlError from the future when a table is gone by then. Cancelling the future before its group starts withdraws
        the write.
        """
        done: asyncio.Future[Timestamp] = asyncio.get_running_loop().create_future()
        self._pending.append(_Pending(rows, done, owner))
        self._wake.set()
        return done

    def wait_applied(self) -> asyncio.Future[None]:
        """Done after the next commit or tick."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._ticked.append(done)
        return done

    def kick(self) -> None:
        """Commit now, even without writes."""
        self._wake.set()

    # Locks.

    async def lock(self, tables: Iterable[GlobalId], owner: object) -> None:
        """Take all the locks, in id order (so two statements never wait for each other). Cancellable."""
        taken: list[GlobalId] = []
        try:
            for table in sorted(set(tables)):
                while True:
                    held = self._locks.get(table)
                    if held is None:
                        self._locks[table] = _Lock(owner)
                        taken.append(table)
                        break
                    waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                    held.waiters.append(waiter)
                    await waiter
        except BaseException:
            self.unlock(taken, owner)
            raise

    def unlock(self, tables: Iterable[GlobalId], owner: object) -> None:
        released = False
        for table in tables:
            held = self._locks.get(table)
            if held is None or held.owner is not owner:
                continue
            del self._locks[table]
            released = True
            for waiter in held.waiters:
                if not waiter.done():
                    waiter.set_result(None)
        if released and self._pending:
            self._wake.set()

    def _blocked(self, p: _Pending) -> bool:
        for table, _ in p.rows:
            held = self._locks.get(table)
            if held is not None and held.owner is not p.owner:
                return True
        return False

    # The loop.

    async def _run(self) -> None:
        while not self._stopping:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), TICK_S)
            self._wake.clear()
            group = [p for p in self._pending if not self._blocked(p)]
            self._pending = [p for p in self._pending if self._blocked(p)]
            await self._commit([p for p in group if not p.done.cancelled()])
        for p in self._pending:
            if not p.done.done():
                p.done.set_exception(SqlError("57P01", "terminating connection due to administrator command"))
        self._pending.clear()

    async def _commit(self, group: list[_Pending]) -> None:
        writes: list[tuple[str, Updates]] = []
        members: list[_Pending] = []
        for p in group:
            resolved: list[tuple[str, Updates]] = []
            for table, rows in p.rows:
                shard = self._shard_of(table)
                if shard is None:
                    p.done.set_exception(SqlError("XX000", f"unknown catalog item '{table}'"))
                    break
                resolved.append((shard, rows))
            else:
                writes += resolved
                members.append(p)
        ts, advance_to = self._oracle.write_ts()
        try:
            await self._log.commit(writes, ts, advance_to)
        except Exception as error:
            log.exception("commit failed")
            for p in members:
                if not p.done.done():
                    p.done.set_exception(SqlError("58030", f"could not write: {error}"))
            return
        self.commits += 1
        self._applied(advance_to)
        self._oracle.apply_write(ts)
        for p in members:
            if not p.done.done():
                p.done.set_result(ts)
        ticked, self._ticked = self._ticked, []
        for future in ticked:
            if not future.done():
                future.set_result(None)
