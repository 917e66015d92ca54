"""since is the least hold, never regresses, and ends with the last hold."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compute.client.errors import ReadHoldInsufficient
from compute.client.holds import HoldSet, ReadHold
from mzlite.repr.ids import GlobalId
from mzlite.repr.timestamp import Frontier, frontier_le


def test_since_follows_the_least_hold() -> None:
    moves: list[Frontier] = []
    holds = HoldSet(GlobalId("u1"), moves.append)
    policy = holds.acquire(5)
    reader = holds.acquire()
    assert reader.since == 5
    policy.downgrade(9)
    assert (holds.since, moves) == (5, [])
    reader.downgrade(7)
    reader.downgrade(6)  # backwards: ignored
    assert (holds.since, moves) == (7, [7])
    reader.release()
    reader.release()
    policy.release()
    assert (holds.since, moves) == (None, [7, 9, None])


def test_too_early_or_too_late() -> None:
    holds = HoldSet(GlobalId("u1"), lambda since: None)
    policy = holds.acquire(5)
    with pytest.raises(ReadHoldInsufficient):
        holds.acquire(4)
    assert holds.acquire(8).since == 8
    policy.release()
    with pytest.raises(ReadHoldInsufficient):
        holds.acquire(7)


@given(st.data())
def test_any_sequence(data: st.DataObject) -> None:
    seen: list[Frontier] = [0]
    holds = HoldSet(GlobalId("u1"), seen.append)
    live: list[ReadHold] = [holds.acquire(0)]
    for _ in range(data.draw(st.integers(0, 30))):
        if not live:
            break
        hold = data.draw(st.sampled_from(live))
        match data.draw(st.integers(0, 3)):
            case 0:
                hold.downgrade(data.draw(st.integers(0, 20)))
            case 1:
                hold.release()
                live.remove(hold)
            case 2:
                live.append(hold.clone())
            case _:
                live.append(holds.acquire(holds.since))
        holds.check()
        assert all(frontier_le(holds.since, h.since) for h in live)
    assert all(frontier_le(a, b) for a, b in itertools.pairwise(seen))
