"""Group commit: concurrent writes share a commit, locks keep others out, ticks follow the clock."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from adapter.coord.group_commit import GroupCommit
from adapter.coord.oracle import TimestampOracle
from mzlite.repr.errors import SqlError
from mzlite.repr.ids import GlobalId, user
from mzlite.repr.types import INT4
from mzlite.repr.updates import Updates, updates_from_rows


class Log:
    def __init__(self) -> None:
        self.commits: list[tuple[list[str], int, int]] = []
        self.gate: asyncio.Event | None = None

    async def commit(self, writes: Sequence[tuple[str, Updates]], ts: int, advance_to: int) -> None:
        if self.gate is not None:
            await self.gate.wait()
        self.commits.append(([shard for shard, _ in writes], ts, advance_to))


def rows(n: int) -> Updates:
    return updates_from_rows([INT4], [(n,)], 0)


def shard_of(id: GlobalId) -> str | None:
    return None if id == user(9) else f"shard-{id}"


async def started(log: Log) -> tuple[GroupCommit, TimestampOracle, list[int]]:
    now = iter(range(1_000, 1_000_000))
    oracle = TimestampOracle(lambda: next(now), 0, lambda bound: None)
    applied: list[int] = []
    commit = GroupCommit(log, oracle, shard_of, applied.append)
    await commit.start()
    return commit, oracle, applied


def test_writes_that_come_together_share_one_commit() -> None:
    async def run() -> None:
        log = Log()
        commit, oracle, applied = await started(log)
        first, second = commit.write([(user(1), rows(1))], "a"), commit.write([(user(2), rows(2))], "b")
        ts = await first
        assert await second == ts
        assert log.commits[-1][0] == ["shard-u1", "shard-u2"]
        assert oracle.read_ts() == ts
        assert applied[-1] == ts + 1
        await commit.stop()

    asyncio.run(run())


def test_a_write_to_a_dropped_table_fails_alone() -> None:
    async def run() -> None:
        log = Log()
        commit, _, _ = await started(log)
        bad, good = commit.write([(user(9), rows(1))], "a"), commit.write([(user(1), rows(2))], "b")
        with pytest.raises(SqlError, match="unknown catalog item 'u9'"):
            await bad
        await good
        assert log.commits[-1][0] == ["shard-u1"]
        await commit.stop()

    asyncio.run(run())


def test_a_lock_defers_other_writers_until_it_is_released() -> None:
    async def run() -> None:
        log = Log()
        commit, _, _ = await started(log)
        await commit.lock([user(1)], "mine")
        theirs = commit.write([(user(1), rows(1))], "theirs")
        elsewhere = commit.write([(user(2), rows(1))], "theirs")
        await elsewhere
        assert not theirs.done()
        mine = await commit.write([(user(1), rows(2))], "mine")
        assert not theirs.done()
        commit.unlock([user(1)], "mine")
        assert await theirs > mine
        await commit.stop()

    asyncio.run(run())


def test_a_cancelled_wait_for_locks_gives_up_those_it_got() -> None:
    async def run() -> None:
        commit, _, _ = await started(Log())
        await commit.lock([user(2)], "other")
        waiting = asyncio.ensure_future(commit.lock([user(1), user(2)], "me"))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.wait_for(commit.lock([user(1)], "third"), 5)
        await commit.stop()

    asyncio.run(run())


def test_commits_without_writes_move_the_read_time() -> None:
    async def run() -> None:
        log = Log()
        commit, oracle, _ = await started(log)
        before = oracle.read_ts()
        waiter = commit.wait_applied()
        commit.kick()
        await waiter
        assert oracle.read_ts() > before
        assert log.commits[-1][0] == []
        await commit.stop()

    asyncio.run(run())
