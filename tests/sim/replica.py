"""A replica in one process: real workers, queues in place of sockets. Whoever drives it chooses which queue moves next."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable

from compute.client.placement import Role
from compute.protocol.framing import Deframer, decode_commands, encode_message, frame
from compute.runtime.exchange import WorkerExchange
from compute.runtime.worker import Worker
from compute.shared.publisher import Publisher
from compute.shared.registry import Registry
from tests.sim.shards import SimShards, SimStorage


class SimLink:
    """A registry link's sending half. backlogged: set by a test to play a reader that has stalled."""

    def __init__(self) -> None:
        self.queue: deque[tuple[bytes, list[int]]] = deque()
        self.backlogged = False
        self.fds: deque[int] = deque()

    def send(self, payload: bytes, fds: list[int] | tuple[int, ...] = ()) -> None:
        self.queue.append((payload, list(fds)))

    def take_fd(self) -> int:
        return self.fds.popleft()

    def close(self) -> None:
        for _, fds in self.queue:
            for fd in fds:
                os.close(fd)
        for fd in self.fds:
            os.close(fd)
        self.queue.clear()
        self.fds.clear()


class SimWorker:
    """One worker and everything that flows into it."""

    def __init__(self, role: Role, ordinal: int) -> None:
        self.role = role
        self.ordinal = ordinal
        self.commands: deque[bytes] = deque()
        self.responses: deque[bytes] = deque()
        self.deframer = Deframer()
        self.exchange_in: deque[tuple[int, bytes]] = deque()
        self.to_twin = SimLink()
        self.storage: SimStorage
        self.worker: Worker
        self.twin: SimWorker | None = None
        self.on_response: Callable[[bytes], None] = lambda data: None

    # The command sink of the multiplexer.
    def send(self, data: bytes) -> None:
        self.commands.append(data)

    def actions(self) -> list[Callable[[], bool]]:
        return [self.take_command, self.take_registry, self.take_exchange, self.take_shard, self.slice, self.answer]

    def take_command(self) -> bool:
        if not self.commands:
            return False
        for data in self.deframer.feed(self.commands.popleft()):
            for command in decode_commands(data):
                self.worker.handle(command)
        self._collect()
        return True

    def take_registry(self) -> bool:
        twin = self.twin
        if twin is None or not twin.to_twin.queue:
            return False
        payload, fds = twin.to_twin.queue.popleft()
        twin.to_twin.fds.extend(fds)
        if self.worker.registry is not None:
            self.worker.registry.handle(payload)
            self.worker.registry_moved()
        else:
            assert self.worker.publisher is not None
            self.worker.publisher.handle(payload)
        self._collect()
        return True

    def take_exchange(self) -> bool:
        if not self.exchange_in:
            return False
        sender, payload = self.exchange_in.popleft()
        assert self.exchange is not None
        self.exchange.receive(sender, payload)
        self._collect()
        return True

    def take_shard(self) -> bool:
        moved = self.storage.step()
        if moved:
            self._collect()
        return moved

    def slice(self) -> bool:
        ran = self.worker.step()
        self._collect()
        return ran

    def answer(self) -> bool:
        """Deliver one frame of responses."""
        if not self.responses:
            return False
        self.on_response(self.responses.popleft())
        return True

    def _collect(self) -> None:
        outbox = self.worker.take_outbox()
        if outbox:
            self.responses.append(encode_message(outbox))

    exchange: WorkerExchange | None = None


def _deliver(runtime: list[SimWorker], sender: int) -> Callable[[int, bytes], None]:
    return lambda to, payload: runtime[to].exchange_in.append((sender, payload))


class SimReplica:
    """All workers of a replica."""

    def __init__(self, shards: SimShards, workers: int, interactive: bool, now_ms: Callable[[], int]) -> None:
        roles = [Role.MAINTENANCE, Role.INTERACTIVE] if interactive else [Role.SOLO]
        self.runtimes: list[list[SimWorker]] = [[SimWorker(role, i) for i in range(workers)] for role in roles]
        self.dead = False
        for runtime in self.runtimes:
            for sim in runtime:
                sim.storage = SimStorage(shards)
                exchange = WorkerExchange(sim.ordinal, _deliver(runtime, sim.ordinal))
                sim.exchange = exchange
                publisher = registry = None
                if interactive:
                    sim.twin = self.runtimes[1 if sim.role is Role.MAINTENANCE else 0][sim.ordinal]
                    if sim.role is Role.MAINTENANCE:
                        publisher = Publisher(sim.to_twin)
                    else:
                        # Descriptors that the twin sent wait on its link.
                        registry = Registry(sim.to_twin.send, sim.twin.to_twin.take_fd)
                sim.worker = Worker(
                    sim.role,
                    sim.ordinal,
                    workers,
                    storage=sim.storage,
                    exchange=exchange,
                    publisher=publisher,
                    registry=registry,
                    now_ms=now_ms,
                )

    @property
    def workers(self) -> list[SimWorker]:
        return [sim for runtime in self.runtimes for sim in runtime]

    def send(self, *commands: object) -> None:
        """To every worker, past the multiplexer."""
        for sim in self.workers:
            sim.send(frame(encode_message(list(commands))))

    def settle(self) -> None:
        """Let everything happen until nothing moves."""
        moved = True
        while moved:
            moved = False
            for sim in self.workers:
                for action in sim.actions():
                    while action():
                        moved = True

    def kill(self) -> None:
        self.dead = True
        for sim in self.workers:
            sim.storage.kill()
            sim.to_twin.close()
