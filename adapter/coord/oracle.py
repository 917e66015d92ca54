"""The timestamp oracle of the epoch-milliseconds timeline: one order for all reads and writes.

    write_ts()      a new time, greater than every earlier one, following the clock     -> (timestamp, advance_to)
    apply_write(t)  the write at t is durable and visible: reads may see it
    read_ts()       the latest applied write: what a strict serializable read must see

Durability is batched: a time is handed out only below a bound that storage has recorded; one record reserves
`RESERVATION_MS` ahead, so most calls touch no disk. After a restart the oracle starts at the recorded bound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from mzlite.repr.timestamp import Timestamp

RESERVATION_MS = 2_000

Clock = Callable[[], Timestamp]


class WriteTimestamp(NamedTuple):
    """advance_to: every table's upper after a commit at `timestamp`."""

    timestamp: Timestamp
    advance_to: Timestamp


class TimestampOracle:
    """Invariants: read_ts <= last write_ts < reserved bound; both only rise.

    reserve: records a new bound durably (blocking, rare). It is called on the event loop; a record is one small row.
    """

    def __init__(self, clock: Clock, initial: Timestamp, reserve: Callable[[Timestamp], None]) -> None:
        self._clock = clock
        self._reserve = reserve
        self._write = initial
        self._read = initial
        self._bound = initial

    def read_ts(self) -> Timestamp:
        return self._read

    def peek_write_ts(self) -> Timestamp:
        """The latest time handed out."""
        return self._write

    def write_ts(self) -> WriteTimestamp:
        now = self._clock()
        ts = now if now > self._write else self._write + 1
        if ts >= self._bound:
            self._bound = ts + RESERVATION_MS
            self._reserve(self._bound)
        self._write = ts
        return WriteTimestamp(ts, ts + 1)

    def apply_write(self, ts: Timestamp) -> None:
        """Reads from now on are at ts or later. An older ts is ignored."""
        if ts > self._read:
            self._read = ts
            if ts > self._write:
                self._write = ts
