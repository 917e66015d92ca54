"""MaterializedViewWriter: writes what a dataflow computes back to the view's shard, correcting what stands there.

    correction = desired - persisted        append correction at [persisted upper, desired upper)

Desired updates come from the dataflow, persisted ones from a reader of the shard. After a restart the shard holds an
earlier writer's output: whatever it lacks or has too much is written at its upper. Two replicas writing one view take
turns by compare-and-append; what one writes cancels the other's correction. Rows and errors are corrected alike.
Source: Materialize's self-correcting sink.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from compute.runtime.storage_link import StorageLink
from mzlite.repr.timestamp import Frontier, Timestamp, frontier_le, join, less_equal, meet
from mzlite.repr.updates import Updates, concat_updates, consolidate

SMALL_ROWS = 32_768
"""What is written in one piece."""
MAX_PIECES = 12
"""Of one append: each becomes a part of the shard, and storage merges those that are many."""


class Correction:
    """Updates that are desired and not known to be persisted, less those persisted and not desired.

    mixed: both kinds are in it, so it must be consolidated before it is written.
    """

    def __init__(self) -> None:
        self.parts: list[Updates] = []
        self.mixed = False

    def add(self, updates: Updates | None) -> None:
        if updates is not None and len(updates):
            self.parts.append(updates)

    def subtract(self, parts: Sequence[Updates]) -> None:
        for part in parts:
            if len(part):
                self.parts.append(part.negate())
                self.mixed = True

    def take(self, lower: Timestamp, upper: Frontier) -> list[Updates]:
        """Remove the updates before upper; their times are brought up to lower."""
        ready: list[Updates] = []
        later: list[Updates] = []
        for part in self.parts:
            if upper is None or int(part.time.max()) < upper:
                ready.append(part)
            else:
                before = part.time < np.uint64(upper)
                ready.append(part.filter(before))
                later.append(part.filter(~before))
        self.parts = [part for part in later if len(part)]
        ready = [u.advance_to(lower) if int(u.time.min()) < lower else u for u in ready if len(u)]
        if self.mixed and ready:
            ready = [consolidate(concat_updates(ready))]
            self.mixed = bool(self.parts)
        return [u for u in ready if len(u)]

    def put_back(self, parts: Sequence[Updates]) -> None:
        """What was taken has not been written: somebody else's writing will be subtracted from it."""
        if parts:
            self.parts.extend(parts)
            self.mixed = True


class MaterializedViewWriter:
    """moved(): the written frontier has moved. run(steps): do a long job in slices, when nothing is more urgent.

    Invariants:
    1. at most one append is under way; its updates are out of the corrections until it fails.
    2. persisted_upper is what the reader or an append has confirmed: everything the shard holds before it is subtracted,
       except what the reader showed at the upper of the append under way: that is our own echo, or the same upper
       reached by somebody else; the append's answer, which comes after it, tells.
    """

    def __init__(
        self,
        shard: str,
        as_of: Timestamp,
        storage: StorageLink,
        moved: Callable[[], None],
        run: Callable[[Iterator[None]], None],
    ) -> None:
        self.shard = shard
        self._as_of = as_of
        self._storage = storage
        self._moved = moved
        self._run = run
        self._reader: int | None = None
        self._writable = False
        self._desired_upper: Frontier = 0
        self._persisted_upper: Frontier = 0
        self._in_step = False  # the reader has confirmed persisted_upper
        self._oks = Correction()
        self._errs = Correction()
        self._in_flight: tuple[Frontier, list[Updates], list[Updates]] | None = None
        self._shown_oks: list[Updates] = []  # at the upper of the append under way
        self._shown_errs: list[Updates] = []

    @property
    def frontier(self) -> Frontier:
        """What of the output is in the shard."""
        return meet(self._persisted_upper, self._desired_upper)

    def poll(self) -> None:
        """Nothing to gather: there is one worker."""

    def start(self) -> None:
        if self._reader is None:
            # What lies before the shard's upper only matters as a sum, so it may have been compacted beyond as_of.
            self._reader = self._storage.open(
                self.shard, self._as_of, self._persisted, self._persisted_errors, any_since=True
            )

    def stop(self) -> None:
        """The sink was dropped: nothing more is written."""
        if self._reader is not None:
            self._storage.close(self._reader)
            self._reader = None
        self._oks = Correction()
        self._errs = Correction()

    def allow_writes(self) -> None:
        self._writable = True
        self._write()

    def push(self, updates: Updates | None, errs: Updates | None, upper: Frontier) -> None:
        """The dataflow's output is complete before upper; updates and errs are what changed."""
        self._oks.add(updates)
        self._errs.add(errs)
        self._desired_upper = upper
        self._write()

    def _persisted_errors(self, parts: Sequence[Updates], upper: Frontier) -> None:
        if self._reader is None:
            return
        if self._in_flight is not None and self._in_flight[0] == upper:
            self._shown_errs.extend(parts)
        else:
            self._errs.subtract(parts)

    def _persisted(self, parts: Sequence[Updates], upper: Frontier) -> None:
        if self._reader is None:
            return
        if self._in_flight is not None and self._in_flight[0] == upper:
            self._shown_oks.extend(parts)
        else:
            self._oks.subtract(parts)
        if frontier_le(self._persisted_upper, upper):
            self._persisted_upper = upper
            self._in_step = True
        self._write()
        self._moved()

    def _write(self) -> None:
        lower, upper = self._persisted_upper, self._desired_upper
        if (
            self._reader is None
            or not (self._writable and self._in_step)
            or self._in_flight is not None
            or lower is None
        ):
            return
        if frontier_le(upper, lower) or less_equal(upper, self._as_of):
            return
        oks = self._oks.take(lower, upper)
        errs = self._errs.take(lower, upper)
        self._in_flight = (upper, oks, errs)
        joint_errs = concat_updates(errs) if errs else None
        if sum(map(len, oks)) <= SMALL_ROWS:
            self._storage.append(
                self.shard, lower, upper, concat_updates(oks) if oks else None, self._appended, joint_errs
            )
        else:
            self._run(self._append_in_pieces(lower, upper, oks, joint_errs))

    def _append_in_pieces(
        self, lower: Timestamp, upper: Frontier, oks: Sequence[Updates], errs: Updates | None
    ) -> Iterator[None]:
        request = self._storage.begin_append()
        piece_rows = max(SMALL_ROWS, sum(map(len, oks)) // MAX_PIECES + 1)
        for part in oks:
            for start in range(0, len(part), piece_rows):
                self._storage.stage(request, part.slice(start, min(start + piece_rows, len(part))))
                yield
                if self._reader is None:
                    return
        self._storage.append(self.shard, lower, upper, None, self._appended, errs, request)

    def _appended(self, done: bool, upper: Frontier) -> None:
        assert self._in_flight is not None
        (target, oks, errs), self._in_flight = self._in_flight, None
        shown_oks, shown_errs = self._shown_oks, self._shown_errs
        self._shown_oks, self._shown_errs = [], []
        if self._reader is None:
            return
        if done:
            self._persisted_upper = join(self._persisted_upper, target)
        else:
            # Somebody else wrote: wait for the reader to show what, unless it already has.
            self._oks.put_back(oks)
            self._errs.put_back(errs)
            self._oks.subtract(shown_oks)
            self._errs.subtract(shown_errs)
            self._in_step = self._persisted_upper == upper or not frontier_le(self._persisted_upper, upper)
        self._write()
        self._moved()
