"""N workers look like one."""

from __future__ import annotations

import pytest

from compute.client.merge import PartitionedState
from compute.protocol.response import Frontiers, PeekCanceled, PeekError, PeekRows, SubscribeBatch, SubscribeDropped
from mzlite.repr.encode import decode_updates, encode_updates
from mzlite.repr.ids import GlobalId
from tests.unit.compute.dataflows import rows

ID = GlobalId("u5")


def write(frontier: int | None) -> Frontiers:
    return Frontiers(ID, frontier, True, frontier, True, frontier, True)


def test_one_worker_passes_verbatim() -> None:
    state = PartitionedState(1)
    assert state.absorb(0, write(5)) == write(5)


def test_frontiers_are_the_least_and_told_once() -> None:
    state = PartitionedState(2)
    assert state.absorb(0, write(5)) is None
    assert state.absorb(1, write(3)) == write(3)
    assert state.absorb(0, write(9)) is None
    assert state.absorb(1, write(9)) == write(9)
    assert state.absorb(0, write(None)) is None
    assert state.absorb(1, write(None)) == write(None)
    assert state.absorb(0, write(2)) is None  # the id lives again
    assert state.absorb(1, write(2)) == write(2)


def test_peek_rows_are_concatenated() -> None:
    state = PartitionedState(3)
    assert state.absorb(0, PeekRows("p", encode_updates(rows([(1, "a")])))) is None
    assert state.absorb(2, PeekRows("p", b"")) is None
    merged = state.absorb(1, PeekRows("p", encode_updates(rows([(2, "b")]))))
    assert isinstance(merged, PeekRows)
    assert len(decode_updates(merged.rows)) == 2


def test_canceled_beats_error_beats_rows() -> None:
    state = PartitionedState(3)
    state.absorb(0, PeekRows("p", b""))
    state.absorb(1, PeekError("p", b"e"))
    assert state.absorb(2, PeekCanceled("p")) == PeekCanceled("p")
    state.absorb(0, PeekError("q", b"e"))
    state.absorb(1, PeekRows("q", b""))
    assert state.absorb(2, PeekRows("q", b"")) == PeekError("q", b"e")


def test_a_second_answer_is_a_bug() -> None:
    state = PartitionedState(2)
    state.absorb(0, PeekRows("p", b""))
    with pytest.raises(AssertionError, match="twice"):
        state.absorb(0, PeekRows("p", b""))


def test_subscribes_wait_for_the_joint_frontier() -> None:
    state = PartitionedState(2)
    assert state.absorb(0, SubscribeBatch(ID, 0, 4, encode_updates(rows([(1, "a")])))) is None
    merged = state.absorb(1, SubscribeBatch(ID, 0, 4, encode_updates(rows([(2, "b")]))))
    assert isinstance(merged, SubscribeBatch)
    assert (merged.lower, merged.upper) == (0, 4)
    assert merged.updates is not None and len(decode_updates(merged.updates)) == 2
    assert state.absorb(1, SubscribeBatch(ID, 4, 6, None)) is None
    failed = state.absorb(0, SubscribeBatch(ID, 4, 6, None, b"boom"))
    assert isinstance(failed, SubscribeBatch) and failed.error == b"boom"
    assert state.absorb(0, SubscribeDropped(ID, 6)) is None
    assert state.absorb(1, SubscribeDropped(ID, 6)) == SubscribeDropped(ID, 6)
