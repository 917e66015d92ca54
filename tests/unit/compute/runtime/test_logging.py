"""Log relations: every one answers, they show both runtimes, and they are empty of what has gone."""

from __future__ import annotations

from typing import Any

import pytest

from compute.client.multiplexer import Multiplexer
from compute.protocol.command import (
    AllowCompaction,
    ComputeCommand,
    CreateDataflow,
    CreateInstance,
    Hello,
    IndexTarget,
    InitializationComplete,
    Peek,
    Schedule,
)
from compute.protocol.framing import decode_responses
from compute.protocol.logs import INTERACTIVE_ID_OFFSET, LOGS
from compute.protocol.response import PeekRows
from mzlite.expr.mfp import MapFilterProject
from mzlite.expr.relation import RowSetFinishing
from mzlite.repr.datum import column_to_datums
from mzlite.repr.encode import decode_updates
from mzlite.repr.ids import GlobalId
from tests.sim.replica import SimReplica
from tests.sim.shards import SimShards
from tests.unit.compute.dataflows import index, over_index, peek, rows

IDS = {variant: GlobalId(f"s{i}") for i, variant in enumerate(LOGS, 100)}


class World:
    def __init__(self, interactive: bool, workers: int = 1) -> None:
        self.now = 1_000
        self.shards = SimShards()
        self.replica = SimReplica(self.shards, workers, interactive, lambda: self.now)
        self.answers: dict[str, list[PeekRows]] = {}
        for sim in self.replica.workers:
            sim.on_response = self._response
        self.multiplexer = Multiplexer(self.replica.runtimes[0], self.replica.runtimes[1] if interactive else None)
        self.shards.append("table", 0, 1, rows([(1, "a"), (2, "b")]))
        self.send(Hello("n"), CreateInstance(IDS), InitializationComplete())
        self.reads = 0

    def _response(self, data: bytes) -> None:
        for response in decode_responses(data):
            if isinstance(response, PeekRows):
                self.answers.setdefault(response.uuid, []).append(response)

    def send(self, *commands: ComputeCommand) -> None:
        self.multiplexer.send(commands)
        self.replica.settle()

    def tick(self) -> None:
        self.now += 1_000
        # The interactive side first, so that its word is in the same read-out.
        for sim in reversed(self.replica.workers):
            sim.worker.tick()
            sim.slice()
            self.replica.settle()
        self.now += 1_000
        for sim in self.replica.workers:
            sim.worker.tick()
        self.replica.settle()

    def read(self, variant: str) -> list[tuple[Any, ...]]:
        self.reads += 1
        uuid = f"log{self.reads}"
        arity = LOGS[variant].typ.arity
        self.send(
            Peek(
                IndexTarget(IDS[variant]),
                uuid,
                self.now - 1,
                MapFilterProject.identity(arity),
                RowSetFinishing(project=tuple(range(arity))),
            )
        )
        assert uuid in self.answers, f"{variant} did not answer"
        found: list[tuple[Any, ...]] = []
        for answer in self.answers[uuid]:
            updates = decode_updates(answer.rows)
            if len(updates):
                types = [c.scalar for c in LOGS[variant].typ.columns]
                columns = [column_to_datums(t, c) for t, c in zip(types, updates.columns)]
                found += list(zip(*columns))
        return found


@pytest.mark.parametrize("interactive", [True, False])
@pytest.mark.parametrize("workers", [1, 2])
def test_every_relation_answers(interactive: bool, workers: int) -> None:
    world = World(interactive, workers)
    world.send(CreateDataflow(index("u5")), Schedule(GlobalId("u5")))
    world.tick()
    for variant in LOGS:
        world.read(variant)
    assert {row[0] for row in world.read("DataflowCurrent")} == {"u5"}
    assert sorted(row[1] for row in world.read("DataflowCurrent")) == list(range(workers))


def test_both_runtimes_are_seen_and_ids_do_not_meet() -> None:
    world = World(interactive=True)
    world.send(
        CreateDataflow(index("u5")),
        Schedule(GlobalId("u5")),
        CreateDataflow(over_index("t6", "u5", column=1, one_shot=True)),
        Schedule(GlobalId("t6")),
        peek("u5", "waits", 50),
    )
    world.tick()
    exports = {row[0]: row[2] for row in world.read("DataflowCurrent")}
    assert set(exports) == {"u5", "t6"}
    assert exports["t6"] >= INTERACTIVE_ID_OFFSET > exports["u5"]
    assert [row[2:] for row in world.read("PeekCurrent") if row[2] == "u5"] == [("u5", "index", 50)]
    names = {row[2] for row in world.read("Operates") if row[0] >= INTERACTIVE_ID_OFFSET}
    assert "Dataflow: over" in names
    assert ("u5", 0, 1) in world.read("FrontierCurrent")
    assert {row[0] for row in world.read("HydrationTime") if row[2] is not None} == {"u5", "t6"}
    operators = {row[0] for row in world.read("ArrangementRecords")}
    assert operators <= {row[0] for row in world.read("Operates")}


def test_what_is_dropped_disappears() -> None:
    world = World(interactive=True)
    world.send(CreateDataflow(index("u5")), Schedule(GlobalId("u5")))
    world.send(CreateDataflow(over_index("t6", "u5", column=1, one_shot=True)), Schedule(GlobalId("t6")))
    world.tick()
    assert world.read("Operates")
    world.send(AllowCompaction(GlobalId("t6"), None), AllowCompaction(GlobalId("u5"), None))
    world.tick()
    for variant in ("Operates", "Addresses", "DataflowCurrent", "ArrangementRecords", "Elapsed", "FrontierCurrent"):
        assert world.read(variant) == [], variant


def test_an_idle_interval_changes_little() -> None:
    world = World(interactive=True)
    world.send(CreateDataflow(index("u5")), Schedule(GlobalId("u5")))
    world.tick()
    before = {v: sorted(world.read(v), key=repr) for v in ("Operates", "Addresses", "Elapsed", "ArrangementRecords")}
    world.tick()
    assert before == {v: sorted(world.read(v), key=repr) for v in before}
