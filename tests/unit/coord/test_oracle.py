"""The oracle: times rise, reads see applied writes, and no time is handed out above the recorded bound."""

from __future__ import annotations

from adapter.coord.oracle import TimestampOracle


class Clock:
    def __init__(self, now: int) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


def test_times_rise_although_the_clock_stands_or_goes_back() -> None:
    clock = Clock(1_000)
    oracle = TimestampOracle(clock, 500, lambda bound: None)
    first = oracle.write_ts()
    second = oracle.write_ts()
    clock.now = 10
    third = oracle.write_ts()
    assert (first.timestamp, second.timestamp, third.timestamp) == (1_000, 1_001, 1_002)
    assert first.advance_to == 1_001
    clock.now = 5_000
    assert oracle.write_ts().timestamp == 5_000


def test_a_read_sees_only_applied_writes() -> None:
    oracle = TimestampOracle(Clock(1_000), 500, lambda bound: None)
    assert oracle.read_ts() == 500
    ts = oracle.write_ts().timestamp
    assert oracle.read_ts() == 500
    oracle.apply_write(ts)
    assert oracle.read_ts() == ts
    oracle.apply_write(ts - 1)
    assert oracle.read_ts() == ts


def test_every_time_is_below_a_bound_recorded_before() -> None:
    clock = Clock(1_000)
    bounds: list[int] = []
    oracle = TimestampOracle(clock, 0, bounds.append)
    for step in range(50):
        clock.now = 1_000 + 137 * step
        ts = oracle.write_ts().timestamp
        assert ts < bounds[-1]
    assert len(bounds) < 10
    restarted = TimestampOracle(Clock(0), bounds[-1], bounds.append)
    assert restarted.write_ts().timestamp > ts
