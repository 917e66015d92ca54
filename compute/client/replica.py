"""Replica: one replica's processes as the controller sees them: a command stream out, merged responses in.

Shared fate: when any worker of either runtime ends, the whole replica is ended and started again, and the cluster's
history brings it back to the present. A replica that keeps dying is restarted ever more slowly.
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
from compute.protocol.command import ComputeCommand, Hello
from compute.protocol.framing import decode_responses
from compute.protocol.response import ComputeResponse
from mzlite.repr.ids import ReplicaId

RESTART_DELAY_S = 0.05
MAX_RESTART_DELAY_S = 5.0
STABLE_S = 10.0


class Replica:
    """on_response(replica, response), on_death(replica): the restart is already under way when it is called;
    replay(replica): the commands that a fresh process must hear after Hello."""

    def __init__(
        self,
        orchestrator: Orchestrator,
        id: ReplicaId,
        name: str,
        workers: int,
        interactive: bool,
        *,
        replay: Callable[[Replica], list[ComputeCommand]],
        on_response: Callable[[Replica, ComputeResponse], None],
        on_death: Callable[[Replica], None],
    ) -> None:
        self.id = id
        self.name = name
        self.workers = workers
        self.interactive = interactive
        self._orchestrator = orchestrator
        self._replay = replay
        self._on_response = on_response
        self._on_death = on_death
        self._loop = asyncio.get_running_loop()
        self._processes: ReplicaProcesses | None = None
        self._connections: list[Connection] = []
        self._multiplexer: Multiplexer | None = None
        self._outbox: list[ComputeCommand] = []
        self._flush_scheduled = False
        self._restart: asyncio.TimerHandle | None = None
        self._restart_delay_s = RESTART_DELAY_S
        self._started_at = 0.0
        self.connected = False

    def start(self) -> None:
        """Spawn the processes and replay. Does not wait for them."""
        self._restart = None
        self._started_at = self._loop.time()
        processes = self._orchestrator.spawn(self.name, self.workers, self.interactive)
        self._processes = processes
        runtimes = [processes.maintenance] + ([processes.interactive] if processes.interactive is not None else [])
        sides: list[list[Connection]] = []
        nonce = uuid.uuid4().hex
        for runtime in runtimes:
            state = PartitionedState(self.workers, nonce)
            side = []
            for shard, sock in enumerate(runtime):
                connection = self._orchestrator.connect(sock, partial(self._frames, state, shard), self._lost)
                side.append(connection)
            sides.append(side)
            self._connections.extend(side)
        self._multiplexer = Multiplexer(sides[0], sides[1] if len(sides) > 1 else None)
        self.connected = True
        self._outbox = []
        self._multiplexer.send([Hello(nonce), *self._replay(self)])

    def stop(self) -> None:
        """End the processes for good."""
        if self._restart is not None:
            self._restart.cancel()
            self._restart = None
        self._disconnect()

    def send(self, command: ComputeCommand) -> None:
        """Queue a command until the end of this turn of the loop: what one turn produces travels together."""
        if not self.connected:
            return  # the replay after the restart says it
        self._outbox.append(command)
        if not self._flush_scheduled:
            self._flush_scheduled = True
            self._loop.call_soon(self.flush)

    def send_now(self, command: ComputeCommand) -> None:
        """Send a command, and everything queued before it, at once."""
        if self.connected:
            self._outbox.append(command)
            self.flush()

    def flush(self) -> None:
        self._flush_scheduled = False
        if self._outbox and self._multiplexer is not None:
            outbox = self._outbox
            self._outbox = []
            self._multiplexer.send(outbox)

    def _frames(self, state: PartitionedState, shard: int, frames: list[bytes]) -> None:
        for data in frames:
            for response in decode_responses(data):
                merged = state.absorb(shard, response)
                if merged is not None and self.connected:
                    self._on_response(self, merged)

    def _lost(self) -> None:
        """A worker is gone: end the others, come back later."""
        if not self.connected:
            return
        self._disconnect()
        now = self._loop.time()
        if now - self._started_at > STABLE_S:
            self._restart_delay_s = RESTART_DELAY_S
        self._restart = self._loop.call_later(self._restart_delay_s, self.start)
        self._restart_delay_s = min(2 * self._restart_delay_s, MAX_RESTART_DELAY_S)
        self._on_death(self)

    def _disconnect(self) -> None:
        self.connected = False
        self._multiplexer = None
        self._outbox = []
        for connection in self._connections:
            connection.close()
        self._connections = []
        if self._processes is not None:
            self._processes.kill()
            self._processes = None
