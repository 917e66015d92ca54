"""MaterializedViewWriter: writes what a dataflow computes back to the view's shard, correcting what stands there.

    correction = desired - persisted        append correction at [persisted upper, desired upper)

Desired updates come from the dataflow, persisted ones from a reader of the shard. After a restart the shard holds an
earlier writer's output: whatever it lacks or has too much is written at its upper. Two replicas writing one view take
turns by compare-and-append; what one writes cancels the other's correction. Source: Materialize's self-correcting sink.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from compute.runtime.storage_link import StorageLink
from mzlite.repr.timestamp import Frontier, Timestamp, frontier_le, less_equal, meet
from mzlite.repr.updates import Updates, concat_updates, consolidate


class MaterializedViewWriter:
    """Invariants:

    1. at most one append is under way; its updates are out of `pending` until it fails.
    2. persisted_upper is the reader's: everything the shard holds before it has been subtracted.
    """

    def __init__(self, shard: str, as_of: Timestamp, storage: StorageLink, moved: Callable[[], None]) -> None:
        self.shard = shard
        self._as_of = as_of
        self._storage = storage
        self._moved = moved
        self._reader: int | None = None
        self._writable = False
        self._started = False
        self._desired_upper: Frontier = 0
        self._persisted_upper: Frontier = 0
        self._seen_shard = False
        self._pending: list[Updates] = []
        self._mixed = False  # pending holds both desired and persisted updates: consolidate before writing
        self._in_flight: tuple[Frontier, Updates | None] | None = None
        self._appended: set[Frontier] = set()

    @property
    def frontier(self) -> Frontier:
        """What of the output is in the shard."""
        return meet(self._persisted_upper, self._desired_upper)

    def poll(self) -> None:
        """Nothing to gather: there is one worker."""

    def start(self) -> None:
        if not self._started:
            self._started = True
            self._reader = self._storage.open(self.shard, self._as_of, self._persisted)

    def stop(self) -> None:
        """The sink was dropped: nothing more is written."""
        self._started = False
        if self._reader is not None:
            self._storage.close(self._reader)
            self._reader = None
        self._pending = []

    def allow_writes(self) -> None:
        self._writable = True
        self._write()

    def push(self, updates: Updates | None, errs: Updates | None, upper: Frontier) -> None:
        """The dataflow's output is complete before upper; updates are what changed."""
        if updates is not None and len(updates):
            self._pending.append(updates)
        self._desired_upper = upper
        self._write()

    def _persisted(self, parts: Sequence[Updates], upper: Frontier) -> None:
        if self._reader is None:
            return
        if upper in self._appended:
            self._appended.discard(upper)  # the echo of our own append
        else:
            fresh = [p.negate() for p in parts if len(p)]
            if fresh:
                self._pending.extend(fresh)
                self._mixed = True
        self._seen_shard = True
        self._persisted_upper = upper
        self._write()
        self._moved()

    def _write(self) -> None:
        lower, upper = self._persisted_upper, self._desired_upper
        if not (self._writable and self._started and self._seen_shard) or self._in_flight is not None or lower is None:
            return
        if frontier_le(upper, lower) or less_equal(upper, self._as_of):
            return
        ready, later = self._split(upper, lower)
        self._pending = later
        self._in_flight = (upper, ready)
        self._appended.add(upper)
        self._storage.append(self.shard, lower, upper, ready, self._done)

    def _split(self, upper: Frontier, lower: Timestamp) -> tuple[Updates | None, list[Updates]]:
        """(updates before upper, brought up to lower; the rest)."""
        ready: list[Updates] = []
        later: list[Updates] = []
        for u in self._pending:
            if upper is None or not len(u) or int(u.time.max()) < upper:
                ready.append(u)
            else:
                before = u.time < np.uint64(upper)
                ready.append(u.filter(before))
                later.append(u.filter(~before))
        ready = [u.advance_to(lower) if int(u.time.min()) < lower else u for u in ready if len(u)]
        later = [u for u in later if len(u)]
        if not ready:
            return None, later
        joint = concat_updates(ready)
        if self._mixed:
            joint = consolidate(joint)
            self._mixed = bool(later)
        return (joint if len(joint) else None), later

    def _done(self, done: bool, upper: Frontier) -> None:
        assert self._in_flight is not None
        (target, updates), self._in_flight = self._in_flight, None
        if not self._started:
            return
        if done:
            self._persisted_upper = target
            self._moved()
        else:
            # Somebody else wrote: take ours back; the reader brings theirs, and the two cancel.
            self._appended.discard(target)
            if updates is not None:
                self._pending.append(updates)
                self._mixed = True
            self._seen_shard = not frontier_le(self._persisted_upper, upper) or self._persisted_upper == upper
        self._write()
