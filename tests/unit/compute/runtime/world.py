"""A replica of queues with the two runtimes moved by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compute.client.multiplexer import Multiplexer
from compute.client.placement import Role
from compute.protocol.command import ComputeCommand, CreateInstance, Hello, InitializationComplete
from compute.protocol.framing import decode_responses
from compute.protocol.response import (
    ComputeResponse,
    Frontiers,
    PeekCanceled,
    PeekError,
    PeekRows,
    Status,
    SubscribeBatch,
)
from compute.runtime.reports import decode_rendered
from mzlite.repr.datum import column_to_datums
from mzlite.repr.encode import decode_updates
from tests.sim.replica import SimReplica, SimWorker
from tests.sim.shards import SimShards
from tests.unit.compute.dataflows import TYPES, rows


class World:
    """send puts commands into the workers' queues; run moves one side until it stands still, settle everything."""

    def __init__(self, interactive: bool = True, workers: int = 1, start: bool = True) -> None:
        self.shards = SimShards()
        self.replica = SimReplica(self.shards, workers, interactive, lambda: 1_000)
        self.said: list[tuple[Role, int, ComputeResponse]] = []
        for sim in self.replica.workers:
            sim.on_response = self._heard(sim)
        self.multiplexer = Multiplexer(self.replica.runtimes[0], self.replica.runtimes[1] if interactive else None)
        self.upper = 0
        if start:
            self.send(Hello("first"), CreateInstance({}), InitializationComplete())

    def _heard(self, sim: SimWorker) -> Any:
        return lambda data: self.said.extend((sim.role, sim.ordinal, r) for r in decode_responses(data))

    def write(self, values: Sequence[tuple[int, str]], time: int, diff: int = 1) -> None:
        assert self.shards.append("table", self.upper, time + 1, rows(values, time, diff) if values else None)
        self.upper = time + 1

    def send(self, *commands: ComputeCommand) -> None:
        self.multiplexer.send(commands)

    @property
    def maintenance(self) -> SimWorker:
        return self.replica.runtimes[0][0]

    @property
    def reader(self) -> SimWorker:
        return self.replica.runtimes[-1][0]

    def run(self, sim: SimWorker) -> None:
        moved = True
        while moved:
            moved = False
            for action in sim.actions():
                while action():
                    moved = True

    def run_for(self, rounds: int) -> None:
        """Every worker does each thing it can, so many times: for what never comes to rest."""
        for _ in range(rounds):
            for sim in self.replica.workers:
                for action in sim.actions():
                    action()

    def settle(self) -> None:
        self.replica.settle()

    # -- what was said

    def answers(self, uuid: str) -> list[ComputeResponse]:
        return [r for _, _, r in self.said if isinstance(r, PeekRows | PeekError | PeekCanceled) and r.uuid == uuid]

    def keys(self, uuid: str) -> list[int]:
        """First column of all workers' answers, sorted; every one must be rows."""
        found: list[int] = []
        for answer in self.answers(uuid):
            assert isinstance(answer, PeekRows), answer
            updates = decode_updates(answer.rows)
            if len(updates):
                for key, diff in zip(column_to_datums(TYPES[0], updates.columns[0]), updates.diff.tolist()):
                    found += [key] * diff
        return sorted(found)

    def frontiers(self, id: str) -> list[int | None]:
        return [r.write for _, _, r in self.said if isinstance(r, Frontiers) and r.id == id]

    def batches(self, id: str) -> list[SubscribeBatch]:
        return [r for _, _, r in self.said if isinstance(r, SubscribeBatch) and r.id == id]

    def rendered(self, id: str) -> list[Role]:
        return [
            role
            for role, _, r in self.said
            if isinstance(r, Status) and r.kind == "rendered" and id in decode_rendered(r.payload).exports
        ]

    def violations(self) -> list[tuple[Role, str]]:
        return [
            (role, r.payload.decode())
            for role, _, r in self.said
            if isinstance(r, Status) and r.kind == "protocol_violation"
        ]

    def assert_empty(self) -> None:
        for sim in self.replica.workers:
            assert not any(sim.worker.leftovers().values()), (sim.role, sim.worker.leftovers())
            assert sim.storage.open_count == 0
            if sim.worker.publisher is not None:
                assert sim.worker.publisher.leftovers() == 0
            if sim.worker.registry is not None:
                assert sim.worker.registry.counts == (0, 0, 0)
