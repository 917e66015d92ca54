"""The whole of compute in one process: the real controller, multiplexer and workers; fake sockets, a fake shard store.

Nothing moves by itself: `Simulation.act` picks one thing that can happen (a worker takes a command, runs a slice, hears
its twin, ...) with the given random generator, so a run is determined by its seed.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from typing import Any

from compute.client.controller import ComputeController
from compute.client.orchestrator import Orchestrator
from tests.sim.replica import SimReplica, SimWorker
from tests.sim.shards import SimShards


class SimConnection:
    """The controller's end of a worker's control socket."""

    def __init__(self, sim: SimWorker, on_frames: Callable[[list[bytes]], None], on_close: Callable[[], None]) -> None:
        self.sim = sim
        self.on_close = on_close
        self.open = True
        self.broken = False
        self.on_frames = on_frames
        sim.on_response = self._deliver

    def _deliver(self, data: bytes) -> None:
        if self.open:
            self.on_frames([data])

    def send(self, data: bytes) -> None:
        if self.open and not self.broken:
            self.sim.send(data)

    def close(self) -> None:
        self.open = False


class SimProcesses:
    def __init__(self, replica: SimReplica, name: str) -> None:
        self.replica = replica
        self.name = name
        self.maintenance: list[Any] = list(replica.runtimes[0])
        self.interactive: list[Any] | None = list(replica.runtimes[1]) if len(replica.runtimes) > 1 else None
        self.connections: list[SimConnection] = []
        self.survives = False

    def kill(self) -> None:
        if not self.replica.dead and not self.survives:
            self.replica.kill()


class SimOrchestrator(Orchestrator):
    """Replicas of queues instead of processes."""

    def __init__(self, shards: SimShards, now_ms: Callable[[], int]) -> None:
        super().__init__(None)
        self.shards = shards
        self.now_ms = now_ms
        self.replicas: list[SimProcesses] = []

    def start(self) -> None:
        return

    def shutdown(self) -> None:
        return

    def spawn(self, name: str, workers: int, interactive: bool) -> Any:
        orphan = next((p for p in self.replicas if p.survives and p.name == name and not p.replica.dead), None)
        if orphan is not None:
            self.replicas.remove(orphan)
            replica = orphan.replica
        else:
            replica = SimReplica(self.shards, workers, interactive, self.now_ms)
        processes = SimProcesses(replica, name)
        self.replicas = [p for p in self.replicas if not p.replica.dead]
        self.replicas.append(processes)
        return processes

    def connect(self, sock: Any, on_frames: Callable[[list[bytes]], None], on_close: Callable[[], None]) -> Any:
        connection = SimConnection(sock, on_frames, on_close)
        for processes in self.replicas:
            if any(sock is worker for worker in processes.replica.workers):
                processes.connections.append(connection)
        return connection

    def live(self) -> list[SimProcesses]:
        return [p for p in self.replicas if not p.replica.dead]

    def forget_orphans(self) -> None:
        """Processes whose replica was dropped while the connection was broken."""
        for processes in self.live():
            if processes.survives:
                processes.replica.kill()

    def lose_connection(self, processes: SimProcesses) -> None:
        """The controller's connection breaks, the processes live: the next spawn is a reconnection to them."""
        processes.survives = True
        for connection in processes.connections:
            connection.broken = True
        for sim in processes.replica.workers:  # everything that was sent before has arrived
            while sim.take_command():
                pass
        self._close(processes)

    def crash(self, processes: SimProcesses) -> None:
        """A worker of the replica ends without a word."""
        processes.replica.kill()
        self._close(processes)

    @staticmethod
    def _close(processes: SimProcesses) -> None:
        for connection in processes.connections:
            if connection.open:
                asyncio.get_running_loop().call_soon(connection.on_close)


class Simulation:
    """act(): one random step. settle(): everything until nothing moves."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.shards = SimShards()
        self._pace: dict[int, float] = {}
        self.clock_ms = 1_000
        self.orchestrator = SimOrchestrator(self.shards, lambda: self.clock_ms)
        self.since_log: deque[tuple[str, int | None]] = deque(maxlen=1000)
        self.controller = ComputeController(None, on_storage_since=self._since, orchestrator=self.orchestrator)

    def _since(self, shard: str, since: int | None) -> None:
        state = self.shards.shard(shard)
        if since is not None:
            state.since = max(state.since, since)
        self.since_log.append((shard, since))

    def _actions(self) -> list[Callable[[], bool]]:
        return [a for p in self.orchestrator.live() for sim in p.replica.workers for a in sim.actions()]

    async def act(self) -> None:
        """One worker does one thing. Workers differ in speed, and for stretches some stand still."""
        workers = [sim for p in self.orchestrator.live() for sim in p.replica.workers]
        if workers:
            if self.random.random() < 0.05:
                self._pace.clear()
            for sim in workers:
                if id(sim) not in self._pace:
                    self._pace[id(sim)] = self.random.choice((0.0, 0.0, 0.1, 1.0, 1.0))
            paces = [self._pace[id(sim)] for sim in workers]
            if any(paces):
                sim = self.random.choices(workers, paces)[0]
                action = self.random.choice(sim.actions())
                for _ in range(self.random.choice((1, 1, 10))):
                    action()
        await asyncio.sleep(0)

    async def settle(self) -> None:
        idle = 0
        while idle < 3:
            moved = False
            for action in self._actions():
                while action():
                    moved = True
            await asyncio.sleep(0)
            idle = 0 if moved else idle + 1
