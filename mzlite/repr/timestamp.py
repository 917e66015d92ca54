"""Timestamps and frontiers.

A timestamp is a uint64 of milliseconds, totally ordered. A frontier is one timestamp (every later update is at or
beyond it) or `None`, the empty frontier: done for ever. `since`, `upper`, `as_of`, `until` have Materialize's meaning.
"""

from __future__ import annotations

Timestamp = int
Frontier = int | None

MIN: Timestamp = 0
MAX: Timestamp = 2**64 - 1


def less_equal(frontier: Frontier, time: Timestamp) -> bool:
    """May an update at `time` still come? (`frontier <= time`; the empty frontier is beyond every time.)"""
    return frontier is not None and frontier <= time


def frontier_le(a: Frontier, b: Frontier) -> bool:
    """`a <= b` in the order of progress; the empty frontier is the greatest."""
    if b is None:
        return True
    return a is not None and a <= b


def meet(a: Frontier, b: Frontier) -> Frontier:
    """The lesser (least advanced) of two frontiers."""
    if a is None:
        return b
    if b is None:
        return a
    return min(a, b)


def join(a: Frontier, b: Frontier) -> Frontier:
    """The greater (most advanced) of two frontiers."""
    if a is None or b is None:
        return None
    return max(a, b)


def step_forward(time: Timestamp) -> Frontier:
    """The successor of `time`; MAX has none (the empty frontier)."""
    return None if time >= MAX else time + 1
