"""Real processes: replicas answer, share one fate, come back from history, and end with their parent."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from compute.client.controller import ComputeController, ReplicaConfig
from compute.client.instance import ReplicaStatus
from compute.protocol.command import IndexTarget
from compute.protocol.response import PeekCanceled, PeekError, PeekResponse, PeekRows
from mzlite.expr.mfp import MapFilterProject
from mzlite.expr.relation import RowSetFinishing
from mzlite.repr.datum import column_to_datums
from mzlite.repr.encode import decode_updates
from mzlite.repr.errors import decode_error
from mzlite.repr.ids import ClusterId, GlobalId, ReplicaId
from mzlite.repr.types import INT8
from mzlite.storage.server import ShardServer
from mzlite.storage.storage import Storage
from tests.unit.compute.dataflows import TABLE, TYPES, index, over_index, rows

CLUSTER = ClusterId("c")
R1, R2 = ReplicaId("r1"), ReplicaId("r2")
INDEX = GlobalId("u5")


class World:
    def __init__(self, controller: ComputeController, storage: Storage) -> None:
        self.controller = controller
        self.storage = storage
        self.statuses: asyncio.Queue[tuple[ReplicaId, ReplicaStatus]] = asyncio.Queue()
        self.peeks = 0

    def commit(self, values: list[tuple[int, str]], ts: int) -> None:
        self.storage.commit([("table", rows(values, ts))], ts, ts + 1)
        self.controller.storage_frontier(TABLE, ts + 1)

    def peek(self, ts: int, replica: ReplicaId | None = None, target: GlobalId = INDEX) -> asyncio.Future[PeekResponse]:
        self.peeks += 1
        return self.controller.peek(
            CLUSTER,
            IndexTarget(target),
            uuid=f"p{self.peeks}",
            timestamp=ts,
            mfp=MapFilterProject.identity(2),
            finishing=RowSetFinishing(project=(0, 1)),
            replica=replica,
        )

    async def keys(self, ts: int, replica: ReplicaId | None = None) -> list[int]:
        response = await self.peek(ts, replica)
        assert isinstance(response, PeekRows), response
        return sorted(column_to_datums(INT8, decode_updates(response.rows).columns[0]))

    def worker_pids(self) -> list[int]:
        server = self.controller.orchestrator.fork_server_pid
        return [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit() and parent(p) == server]


def parent(process: Path) -> int | None:
    try:
        return int((process / "stat").read_text().rsplit(")", 1)[1].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return None


@asynccontextmanager
async def world(directory: Path, config: ReplicaConfig) -> AsyncIterator[World]:
    storage = Storage.open(None)
    server = ShardServer(storage)
    path = str(directory / "shards")
    await server.start(path)
    made: list[World] = []
    controller = ComputeController(
        path, on_replica_status=lambda cluster, replica, status: made[0].statuses.put_nowait((replica, status))
    )
    made.append(World(controller, storage))
    await controller.start()
    try:
        storage.create_shard("table", TYPES)
        controller.register_storage_collection(TABLE, "table")
        controller.create_cluster(CLUSTER)
        controller.create_replica(CLUSTER, R1, config)
        made[0].commit([(1, "one"), (2, "two")], 10)
        controller.create_dataflow(CLUSTER, index(INDEX, as_of=10))
        await controller.wait_for(INDEX, 10)
        yield made[0]
    finally:
        await controller.shutdown()
        await server.stop()
        storage.close()


def run(
    directory: Path, body: Callable[[World], Coroutine[Any, Any, None]], config: ReplicaConfig | None = None
) -> None:
    async def main() -> None:
        async with world(directory, config or ReplicaConfig()) as w:
            await asyncio.wait_for(body(w), 60)

    asyncio.run(main())


@pytest.mark.parametrize("config", [ReplicaConfig(1, True), ReplicaConfig(2, True), ReplicaConfig(2, False)])
def test_reads_follow_commits(tmp_path: Path, config: ReplicaConfig) -> None:
    async def body(w: World) -> None:
        assert await w.keys(10) == [1, 2]
        pending = w.peek(11)  # not complete yet: waits
        w.commit([(3, "three")], 11)
        response = await pending
        assert isinstance(response, PeekRows)
        assert len(decode_updates(response.rows)) == 3

    run(tmp_path, body, config)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds the workers in /proc")
@pytest.mark.parametrize("victim", [0, 1], ids=["maintenance", "interactive"])
def test_a_dead_worker_takes_the_replica_down_and_it_comes_back(tmp_path: Path, victim: int) -> None:
    async def body(w: World) -> None:
        while not w.statuses.empty():
            w.statuses.get_nowait()
        before = sorted(w.worker_pids())
        assert len(before) == 2
        pending = w.peek(11)
        os.kill(before[victim], signal.SIGKILL)
        assert await w.statuses.get() == (R1, ReplicaStatus.DIED)
        w.commit([(3, "three")], 11)
        assert isinstance(await pending, PeekRows)  # replayed to the new processes
        assert await w.keys(11) == [1, 2, 3]
        assert not set(before) & set(w.worker_pids())

    run(tmp_path, body)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds the workers in /proc")
def test_with_two_replicas_a_death_is_not_noticed_by_readers(tmp_path: Path) -> None:
    async def body(w: World) -> None:
        w.controller.create_replica(CLUSTER, R2, ReplicaConfig())
        assert await w.keys(10, replica=R2) == [1, 2]
        for pid in w.worker_pids()[:1]:
            os.kill(pid, signal.SIGKILL)
        assert await w.keys(10) == [1, 2]

    run(tmp_path, body)


def test_dropping_the_target_replica_fails_its_peeks_only(tmp_path: Path) -> None:
    async def body(w: World) -> None:
        targeted, untargeted = w.peek(11, replica=R1), w.peek(11)
        w.controller.create_replica(CLUSTER, R2, ReplicaConfig())
        w.controller.drop_replica(CLUSTER, R1)
        response = await targeted
        assert isinstance(response, PeekError)
        assert "target replica was dropped" in decode_error(response.error).message
        w.commit([], 11)
        assert isinstance(await untargeted, PeekRows)

    run(tmp_path, body)


def test_cancel_answers_at_once_and_a_cancelled_future_cancels(tmp_path: Path) -> None:
    async def body(w: World) -> None:
        pending = w.peek(99)
        w.controller.cancel_peek(f"p{w.peeks}")
        assert isinstance(await pending, PeekCanceled)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(w.peek(99), 0.01)
        w.controller.cancel_peek("unknown")
        assert w.controller.acquire_hold(INDEX).since is not None

    run(tmp_path, body)


def test_dropping_a_cluster_answers_what_pends(tmp_path: Path) -> None:
    async def body(w: World) -> None:
        pending = w.peek(99)
        w.controller.drop_cluster(CLUSTER)
        assert isinstance(await pending, PeekCanceled)

    run(tmp_path, body)


def test_since_follows_upper_and_a_drop_releases_the_inputs(tmp_path: Path) -> None:
    async def body(w: World) -> None:
        w.controller.create_dataflow(CLUSTER, over_index("u6", INDEX, 10))
        await w.controller.wait_for(GlobalId("u6"), 10)
        w.commit([], 5000)
        await w.controller.wait_for(GlobalId("u6"), 5000)
        assert w.controller.frontiers(GlobalId("u6")) == (4001, 5001)
        w.controller.drop_collection(INDEX)
        assert await w.keys(5000) == [1, 2]  # u6 still holds it
        w.controller.drop_collection(GlobalId("u6"))
        for _ in range(500):
            if not w.controller.collection_exists(INDEX):
                break
            await asyncio.sleep(0.01)
        assert not w.controller.collection_exists(INDEX)

    run(tmp_path, body)
