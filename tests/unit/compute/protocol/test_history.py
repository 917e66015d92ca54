"""Reduction keeps what still has an effect, in the order in which a fresh replica must hear it."""

from __future__ import annotations

from compute.protocol.command import (
    AllowCompaction,
    AllowWrites,
    CancelPeek,
    ComputeCommand,
    CreateDataflow,
    CreateInstance,
    Hello,
    InitializationComplete,
    Schedule,
    UpdateConfiguration,
)
from compute.protocol.history import REDUCTION_FLOOR, ComputeCommandHistory
from mzlite.repr.ids import GlobalId
from tests.unit.compute.dataflows import index, over_index, peek

A, B, C = GlobalId("u10"), GlobalId("u11"), GlobalId("u12")


def reduced(*commands: ComputeCommand) -> list[ComputeCommand]:
    history = ComputeCommandHistory(commands)
    history.reduce()
    history.check()
    return list(history)


def test_order_of_a_reduced_history() -> None:
    commands: list[ComputeCommand] = [
        Hello("n"),
        CreateInstance({}),
        InitializationComplete(),
        CreateDataflow(index(A)),
        AllowCompaction(A, 3),
        peek(A, "p", 5),
        UpdateConfiguration({"a": 1}),
        Schedule(A),
        AllowWrites(A),
        UpdateConfiguration({"a": 2, "b": 3}),
    ]
    assert [type(c) for c in reduced(*commands)] == [
        Hello,
        CreateInstance,
        UpdateConfiguration,
        CreateDataflow,
        Schedule,
        type(commands[5]),
        AllowCompaction,
        AllowWrites,
        InitializationComplete,
    ]
    assert UpdateConfiguration({"a": 2, "b": 3}) in reduced(*commands)


def test_a_dropped_dataflow_leaves_nothing() -> None:
    left = reduced(
        CreateInstance({}),
        CreateDataflow(index(A)),
        Schedule(A),
        AllowWrites(A),
        AllowCompaction(A, 4),
        AllowCompaction(A, None),
    )
    assert left == [CreateInstance({})]


def test_as_of_advances_to_what_must_still_be_readable() -> None:
    left = reduced(CreateDataflow(index(A, as_of=2)), AllowCompaction(A, 7), AllowCompaction(A, 5))
    assert left[0] == CreateDataflow(index(A, as_of=7))
    assert left[1] == AllowCompaction(A, 7)


def test_compaction_behind_as_of_does_not_move_it_back() -> None:
    assert reduced(CreateDataflow(index(A, as_of=9)), AllowCompaction(A, 3))[0] == CreateDataflow(index(A, as_of=9))


def test_answered_and_cancelled_peeks_go() -> None:
    left = reduced(
        CreateDataflow(index(A)), peek(A, "gone"), peek(A, "here"), CancelPeek("gone"), CancelPeek("unknown")
    )
    assert [c.uuid for c in left if hasattr(c, "uuid")] == ["here"]


def test_log_indexes_are_live_without_a_dataflow() -> None:
    assert AllowCompaction(C, 8) in reduced(CreateInstance({"Operates": C}), AllowCompaction(C, 8))


def test_a_long_history_reduces_itself() -> None:
    history = ComputeCommandHistory([CreateDataflow(index(A)), CreateDataflow(over_index(B, A))])
    for i in range(10 * REDUCTION_FLOOR):
        history.push(peek(A, f"p{i}"))
        history.push(CancelPeek(f"p{i}"))
    assert len(history) <= REDUCTION_FLOOR + 1


def test_discarded_peeks_do_not_come_back() -> None:
    history = ComputeCommandHistory([CreateDataflow(index(A)), peek(A, "p"), CancelPeek("p")])
    history.discard_peeks()
    assert list(history) == [CreateDataflow(index(A))]
