"""Pending reads: one answer each, a look-up is not behind a scan, and nothing is left of what was cancelled."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from compute.protocol.command import Peek
from compute.protocol.response import PeekCanceled, PeekError, PeekResponse, PeekRows
from compute.runtime.events import EventLog, bucket
from compute.runtime.peeks import Peeks
from mzlite.repr.errors import SqlError, decode_error
from mzlite.repr.timestamp import Frontier
from mzlite.repr.updates import Updates
from tests.unit.compute.dataflows import peek, rows


class Source:
    """A `Readable` of so many slices."""

    def __init__(self, slices: int = 1, upper: Frontier = 1, since: int = 0, error: SqlError | None = None) -> None:
        self.slices = slices
        self.upper = upper
        self.since = since
        self.error = error
        self.closed = 0

    def walk(self, command: Peek) -> Iterator[Updates | None]:
        for _ in range(self.slices - 1):
            yield None
        if self.error is not None:
            raise self.error
        yield rows([(1, "a")])

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def said() -> list[PeekResponse]:
    return []


@pytest.fixture
def events() -> EventLog:
    return EventLog()


@pytest.fixture
def peeks(said: list[PeekResponse], events: EventLog) -> Peeks:
    return Peeks(said.append, events)


def test_a_look_up_overtakes_a_scan(peeks: Peeks, said: list[PeekResponse]) -> None:
    peeks.add(peek("u5", "scan"), Source(slices=50))
    assert peeks.step()
    peeks.add(peek("u5", "lookup"), Source())
    assert [r.uuid for r in said] == ["lookup"]
    steps = 0
    while peeks.step():
        steps += 1
    assert [r.uuid for r in said] == ["lookup", "scan"] and steps == 48
    assert not peeks.runnable and len(peeks) == 0


def test_scans_take_turns(peeks: Peeks, said: list[PeekResponse]) -> None:
    for name in ("a", "b", "c"):
        peeks.add(peek("u5", name), Source(slices=5))
    for _ in range(11):
        peeks.step()
    assert [r.uuid for r in said] == ["a", "b"]


def test_parked_until_complete(peeks: Peeks, said: list[PeekResponse], events: EventLog) -> None:
    source = Source(upper=5)
    peeks.add(peek("u5", "p", 5), source)
    peeks.wake()
    assert said == [] and set(events.peeks) == {"p"} and not peeks.runnable
    source.upper = 6
    peeks.wake()
    assert isinstance(said[0], PeekRows) and source.closed == 1
    assert events.peeks == {} and sum(events.peek_durations.values()) == 1


@pytest.mark.parametrize("upper", [0, 1], ids=["parked", "walking"])
def test_cancel_answers_once(peeks: Peeks, said: list[PeekResponse], events: EventLog, upper: int) -> None:
    source = Source(slices=3, upper=upper)
    peeks.add(peek("u5", "p"), source)
    peeks.cancel("p")
    peeks.cancel("p")
    peeks.cancel("nobody")
    source.upper = 9
    peeks.wake()
    assert not peeks.step()
    assert said == [PeekCanceled("p")] and len(peeks) == 0 and source.closed == 1 and events.peeks == {}


def test_errors_are_answers(peeks: Peeks, said: list[PeekResponse]) -> None:
    peeks.add(peek("u5", "p"), Source(error=SqlError("22012", "division by zero")))
    peeks.add(peek("u5", "q"), Source(since=3))
    assert all(isinstance(r, PeekError) for r in said)
    assert [decode_error(r.error).sqlstate for r in said if isinstance(r, PeekError)] == ["22012", "XX000"]


def test_discard_says_nothing(peeks: Peeks, said: list[PeekResponse], events: EventLog) -> None:
    sources = [Source(upper=0), Source(slices=4)]
    for i, source in enumerate(sources):
        peeks.add(peek("u5", f"p{i}"), source)
    peeks.discard()
    assert said == [] and len(peeks) == 0 and [s.closed for s in sources] == [1, 1] and events.peeks == {}


def test_what_is_read_has_failed(peeks: Peeks, said: list[PeekResponse]) -> None:
    peeks.add(peek("t7", "parked"), Source(upper=0))
    peeks.add(peek("t7", "walking"), Source(slices=4))
    peeks.add(peek("u5", "other"), Source(upper=0))
    peeks.fail_target(peek("t7", "x").target.id, SqlError("XX000", "gone"))
    assert sorted(r.uuid for r in said) == ["parked", "walking"] and len(peeks) == 1


@pytest.mark.parametrize("ns, expected", [(1, 1), (2, 2), (3, 4), (1024, 1024), (1025, 2048)])
def test_buckets(ns: int, expected: int) -> None:
    assert bucket(ns) == expected
