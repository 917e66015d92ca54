"""Routing is a function of the command alone: reads to the readers, everything else to everyone, in one order."""

from __future__ import annotations

import pytest

from compute.client.multiplexer import Multiplexer
from compute.protocol.command import (
    AllowCompaction,
    AllowWrites,
    CancelPeek,
    ComputeCommand,
    CreateDataflow,
    CreateInstance,
    Hello,
    InitializationComplete,
    Peek,
    Schedule,
    UpdateConfiguration,
)
from compute.protocol.framing import Deframer, decode_commands
from mzlite.repr.ids import GlobalId
from tests.unit.compute.dataflows import index, over_index, peek

ID = GlobalId("u5")
COMMANDS: list[ComputeCommand] = [
    Hello("n"),
    CreateInstance({}),
    CreateDataflow(index(ID)),
    peek(ID, "p"),
    Schedule(ID),
    CancelPeek("p"),
    peek(ID, "q"),
    CreateDataflow(over_index("t6", ID, one_shot=True)),
    AllowWrites(ID),
    AllowCompaction(ID, 4),
    UpdateConfiguration({"a": 1}),
    InitializationComplete(),
    AllowCompaction(ID, None),
]


class Sink:
    def __init__(self) -> None:
        self.deframer = Deframer()
        self.commands: list[ComputeCommand] = []

    def send(self, data: bytes) -> None:
        for frame in self.deframer.feed(data):
            self.commands += decode_commands(frame)


@pytest.mark.parametrize("workers", [1, 2])
def test_broadcast(workers: int) -> None:
    first, second = [Sink() for _ in range(workers)], [Sink() for _ in range(workers)]
    Multiplexer(first, second).send(COMMANDS)
    assert all(sink.commands == COMMANDS for sink in second)
    assert all(sink.commands == [c for c in COMMANDS if not isinstance(c, Peek | CancelPeek)] for sink in first)


def test_solo_gets_everything() -> None:
    only = Sink()
    Multiplexer([only], None).send(COMMANDS)
    assert only.commands == COMMANDS


def test_frontiers_are_passed_on_as_they_are() -> None:
    first, second = Sink(), Sink()
    Multiplexer([first], [second]).send([AllowCompaction(ID, 2**64 - 1), AllowCompaction(ID, None)])
    assert first.commands == second.commands == [AllowCompaction(ID, 2**64 - 1), AllowCompaction(ID, None)]


def test_unequal_worker_counts_are_refused() -> None:
    with pytest.raises(AssertionError, match="worker count"):
        Multiplexer([Sink()], [Sink(), Sink()])
