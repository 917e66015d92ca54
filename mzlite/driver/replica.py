"""DriverReplica: one replica process group, spoken to only over the compute protocol; everything it says is remembered.

send(commands) ──▶ Multiplexer ──▶ workers          frontiers, peek answers, subscribe batches, who rendered what
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from functools import partial

from compute.client.connection import Connection
from compute.client.merge import PartitionedState
from compute.client.multiplexer import Multiplexer
from compute.client.orchestrator import Orchestrator, ReplicaProcesses
from compute.client.placement import Role
from compute.protocol.command import ComputeCommand, Hello, Peek
from compute.protocol.framing import decode_responses
from compute.protocol.response import (
    ComputeResponse,
    Frontiers,
    PeekCanceled,
    PeekError,
    PeekResponse,
    PeekRows,
    Status,
    SubscribeBatch,
    SubscribeDropped,
)
from compute.runtime.reports import decode_rendered
from mzlite.driver.spec import SpecError
from mzlite.repr.ids import GlobalId
from mzlite.repr.timestamp import Frontier, frontier_le


class DriverReplica:
    """rendered: export id -> roles of the runtimes that built its dataflow, as they reported it themselves."""

    def __init__(self, orchestrator: Orchestrator, workers: int, interactive: bool) -> None:
        self._loop = asyncio.get_running_loop()
        self._workers = workers
        self.frontiers: dict[GlobalId, Frontier] = {}
        self.subscribes: dict[GlobalId, list[SubscribeBatch]] = {}
        self.subscribe_uppers: dict[GlobalId, Frontier] = {}
        self.rendered: dict[GlobalId, set[Role]] = {}
        self.violations: list[str] = []
        self.gauges: list[bytes] = []
        self._peeks: dict[str, asyncio.Future[PeekResponse]] = {}
        self._changed = asyncio.Event()
        self.dead = False
        self._processes: ReplicaProcesses = orchestrator.spawn("driver", workers, interactive)
        processes = self._processes
        sides = [processes.maintenance] + ([processes.interactive] if processes.interactive is not None else [])
        self._states = [PartitionedState(workers) for _ in sides]
        self._connections: list[list[Connection]] = [
            [
                Connection(sock, partial(self._frames, side, shard), self._lost, self._loop)
                for shard, sock in enumerate(socks)
            ]
            for side, socks in enumerate(sides)
        ]
        self._multiplexer = Multiplexer(self._connections[0], self._connections[1] if len(sides) > 1 else None)

    def hello(self) -> None:
        """A new connection: nothing that the replica said before counts any more."""
        nonce = uuid.uuid4().hex
        self._states = [PartitionedState(self._workers, nonce) for _ in self._states]
        self.frontiers.clear()
        self.subscribes.clear()
        self.subscribe_uppers.clear()
        self.send([Hello(nonce)])

    def send(self, commands: list[ComputeCommand]) -> None:
        if self.dead:
            raise SpecError("the replica has died")
        self._multiplexer.send(commands)

    def peek(self, command: Peek) -> asyncio.Future[PeekResponse]:
        future: asyncio.Future[PeekResponse] = self._loop.create_future()
        self._peeks[command.uuid] = future
        self.send([command])
        return future

    async def wait_until(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Wait for the replica to say something that makes condition true."""
        deadline = self._loop.time() + timeout_s
        while not condition():
            if self.dead:
                raise SpecError("the replica has died")
            left_s = deadline - self._loop.time()
            if left_s <= 0:
                return False
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), left_s)
            except TimeoutError:
                return condition()
        return True

    def reached(self, id: GlobalId, ts: int) -> bool:
        return id in self.frontiers and frontier_le(ts, self.frontiers[id])

    def close(self) -> None:
        for side in self._connections:
            for connection in side:
                connection.close()
        self._processes.kill()

    def _lost(self) -> None:
        self.dead = True
        for future in self._peeks.values():
            if not future.done():
                future.set_exception(SpecError("the replica has died"))
        self._changed.set()

    def _frames(self, side: int, shard: int, frames: list[bytes]) -> None:
        for data in frames:
            for response in decode_responses(data):
                merged = self._states[side].absorb(shard, response)
                if merged is not None:
                    self._handle(merged)
        self._changed.set()

    def _handle(self, response: ComputeResponse) -> None:
        match response:
            case Frontiers():
                if response.has_write:
                    self.frontiers[response.id] = response.write
            case PeekRows() | PeekError() | PeekCanceled():
                future = self._peeks.pop(response.uuid, None)
                if future is not None and not future.done():
                    future.set_result(response)
            case SubscribeBatch():
                self.subscribes.setdefault(response.id, []).append(response)
                self.subscribe_uppers[response.id] = response.upper
            case SubscribeDropped():
                self.subscribe_uppers[response.id] = None
            case Status(kind, payload):
                if kind == "rendered":
                    report = decode_rendered(payload)
                    for id in report.exports:
                        self.rendered.setdefault(GlobalId(id), set()).add(Role(report.role))
                elif kind == "protocol_violation":
                    self.violations.append(payload.decode())
                elif kind == "gauges":
                    self.gauges.append(payload)
