"""The shard server and its client over a real socket: snapshots, pushes, appends, a client that does not read."""

from __future__ import annotations

import asyncio
import select
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mzlite.repr import types as t
from mzlite.repr.datum import column_from_datums
from mzlite.repr.updates import Updates, updates_from_rows
from mzlite.storage.client import Append, Appended, Event, Failed, Progress, ShardClient, Snapshot
from mzlite.storage.server import ShardServer
from mzlite.storage.storage import Storage

TYPES = (t.INT4,)


class World:
    """A storage, its server, and clients that are polled while the loop runs."""

    def __init__(self, storage: Storage, server: ShardServer, path: Path) -> None:
        self.storage = storage
        self.server = server
        self.path = path

    def connect(self) -> ShardClient:
        return ShardClient.connect(self.path)

    async def commit(self, writes: list[tuple[str, Updates]], ts: int) -> None:
        await asyncio.wrap_future(self.storage.commit_begin(writes, ts, ts + 1))

    async def until(self, client: ShardClient, condition: Callable[[list[Event]], bool]) -> list[Event]:
        events: list[Event] = []
        for _ in range(5000):
            if select.select([client], [], [], 0)[0]:
                events += client.poll()
            if condition(events):
                return events
            await asyncio.sleep(0.001)
        raise AssertionError(f"gave up waiting; got {events}")


@asynccontextmanager
async def world(path: Path, durable: bool) -> AsyncIterator[World]:
    storage = Storage.open(path / "data" if durable else None)
    server = ShardServer(storage)
    await server.start(path / "socket")
    try:
        yield World(storage, server, path / "socket")
    finally:
        await server.stop()
        storage.close()


def ints(values: list[int], diff: int = 1) -> Updates:
    return updates_from_rows(TYPES, [(v,) for v in values], 0, diff)


def total(parts: list[Updates]) -> Counter[int]:
    out: Counter[int] = Counter()
    for part in parts:
        for value, diff in zip(part.columns[0].values.tolist(), part.diff.tolist()):  # type: ignore[attr-defined]
            out[value] += diff
    return out


def big(n: int) -> Updates:
    return Updates((column_from_datums(t.INT4, list(range(n))),), np.zeros(n, np.uint64), np.ones(n, np.int64))


@pytest.mark.parametrize("durable", [False, True], ids=["memory", "disk"])
def test_a_reader_gets_a_snapshot_and_then_changes(tmp_path: Path, durable: bool) -> None:
    async def run() -> None:
        async with world(tmp_path, durable) as w:
            w.storage.create_shard("a", TYPES)
            w.storage.create_shard("b", TYPES)
            await w.commit([("a", ints([1, 2]))], 10)
            await w.commit([("a", big(30_000))], 20)
            client = w.connect()
            calls: list[tuple[int, Any]] = []
            a = client.open("a", 20, lambda parts, upper: calls.append((sum(map(len, parts)), upper)))
            b = client.open("b", 20)
            events = await w.until(client, lambda e: len(e) >= 2)
            first = events[0]
            assert isinstance(first, Snapshot) and first.reader == a and first.upper == 21
            assert sum(total(first.parts).values()) == 30_002
            assert all((p.time >= 20).all() for p in first.parts)
            assert events[1] == Snapshot(b, [], [], 21)
            await w.commit([("a", ints([5], -1)), ("b", ints([9]))], 30)
            events = await w.until(client, lambda e: len(e) >= 2)
            by_reader = {e.reader: e for e in events if isinstance(e, Append)}
            assert total(by_reader[a].parts) == {5: -1} and by_reader[a].upper == 31
            assert total(by_reader[b].parts) == {9: 1}
            await w.commit([("b", big(30_000))], 40)
            events = await w.until(client, lambda e: sum(isinstance(x, Append) for x in e) == 1 and len(e) >= 2)
            assert Progress(a, 41) in events
            client.close(b)
            await w.commit([("b", ints([1]))], 50)
            events = await w.until(client, lambda e: Progress(a, 51) in e)
            assert all(e.reader == a for e in events if isinstance(e, Append | Progress))
            assert calls == [(30_002, 21), (1, 31), (0, 41), (0, 51)]
            client.disconnect()

    asyncio.run(run())


@pytest.mark.parametrize("durable", [False, True], ids=["memory", "disk"])
def test_views_are_appended_to_and_echoed(tmp_path: Path, durable: bool) -> None:
    async def run() -> None:
        async with world(tmp_path, durable) as w:
            w.storage.create_shard("v", TYPES, kind="mv", since=3, upper=3)
            writer, reader = w.connect(), w.connect()
            id = reader.open("v", 3)
            assert await w.until(reader, bool) == [Snapshot(id, [], [], 3)]
            answers: list[Any] = []
            request = writer.append(
                "v", 3, 7, ints([1]).with_time(np.array([4], np.uint64)), lambda *a: answers.append(a)
            )
            assert await w.until(writer, bool) == [Appended(request, True, 7)]
            assert answers == [(True, 7)]
            events = await w.until(reader, bool)
            assert isinstance(events[0], Append) and events[0].upper == 7 and total(events[0].parts) == {1: 1}
            request = writer.append("v", 3, 8, None)
            assert await w.until(writer, bool) == [Appended(request, False, 7)]
            writer.append("v", 7, 9, big(40_000))
            events = await w.until(reader, bool)
            assert isinstance(events[0], Append) and sum(map(len, events[0].parts)) == 40_000
            writer.append("v", 9, 12, None)
            assert await w.until(reader, bool) == [Progress(id, 12)]
            w.storage.drop_shard("v")
            assert await w.until(reader, bool) == [Failed(id, "shard v was dropped")]

    asyncio.run(run())


def test_a_time_before_since_fails_to_open(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path, False) as w:
            w.storage.create_shard("a", TYPES)
            await w.commit([], 10)
            w.storage.advance_since("a", 10)
            client = w.connect()
            told: list[str] = []
            id = client.open("a", 5, on_failed=told.append)
            events = await w.until(client, bool)
            assert isinstance(events[0], Failed) and events[0].reader == id
            assert told == [events[0].message]
            gone = client.open("nowhere", 5)
            events = await w.until(client, bool)
            assert isinstance(events[0], Failed) and events[0].reader == gone

    asyncio.run(run())


def test_a_client_that_does_not_read_holds_nobody_up(tmp_path: Path) -> None:
    """Commits go on while a client's socket is full; progress is coalesced; nothing is lost or reordered."""

    async def run() -> None:
        async with world(tmp_path, False) as w:
            w.storage.create_shard("a", TYPES)
            client = w.connect()
            id = client.open("a", 0)
            await w.until(client, bool)
            ts = 1
            for _ in range(400):
                await w.commit([("a", ints(list(range(1000))))], ts)
                ts += 1
            for _ in range(1000):
                await w.commit([], ts)
                ts += 1
            events = await w.until(
                client, lambda e: bool(e) and isinstance(e[-1], Append | Progress) and e[-1].upper == ts
            )
            parts = [p for e in events if isinstance(e, Append) for p in e.parts]
            assert total(parts) == dict.fromkeys(range(1000), 400)
            uppers = [e.upper for e in events if isinstance(e, Append | Progress)]
            assert uppers == sorted(uppers)  # type: ignore[type-var]
            assert sum(isinstance(e, Progress) and e.reader == id for e in events) < 100

    asyncio.run(run())


def test_a_client_that_leaves_is_forgotten(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path, False) as w:
            w.storage.create_shard("a", TYPES)
            client = w.connect()
            client.open("a", 0)
            await w.until(client, bool)
            assert len(w.server._connections) == 1
            client.disconnect()
            for _ in range(1000):
                if not w.server._connections:
                    break
                await asyncio.sleep(0.001)
            await w.commit([("a", ints([1]))], 1)
            assert not w.server._connections

    asyncio.run(run())


def test_the_server_going_away_is_seen(tmp_path: Path) -> None:
    async def run() -> None:
        async with world(tmp_path, False) as w:
            client = w.connect()
            await asyncio.sleep(0)
            await w.server.stop()
            for _ in range(1000):
                client.poll()
                if client.closed:
                    return
                await asyncio.sleep(0.001)
            raise AssertionError("the client did not notice")

    asyncio.run(run())
