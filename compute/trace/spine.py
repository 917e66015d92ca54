"""Spine: a trace as a short chain of batches, oldest first, of geometrically falling sizes.

    [ 1,000,000 | 40,000 | 900 | 30 ]      chain, oldest first

A new batch goes to the end. Every few inserts the small ones at the end are merged at once; a large merge makes progress by *fuel*: every insert
pays for a few rows of it, and idle time for the rest. While a merge runs, readers see its inputs.
Merging advances times to `since` (logical compaction), so updates that cancel at `since` disappear.

Source: differential's Spine; its proof that fuel proportional to inserts keeps the chain logarithmic carries over.
"""

from __future__ import annotations

from collections.abc import Callable

from compute.trace.batch import Batch, Description
from compute.trace.merge import SLICE_ROWS, Merge
from mzlite.repr.timestamp import Frontier

RATIO = 4
FRESH = 4
SMALL_ROWS = 4_096
FUEL_PER_ROW = 12
FUEL_PER_INSERT = 64
FUEL_STEP = 4_096


class Spine:
    """Invariants (`check`):

    1. the batches' descriptions abut: upper of one is lower of the next; the last one's upper is `upper`
       (unless the spine was made without times, as inside a loop).
    2. times in a batch are at least its description's lower, or have been advanced to a since <= `since`.
    3. a merge under way covers two neighbouring batches that are still in the chain.
    """

    def __init__(self, since: int = 0, on_change: Callable[[], None] | None = None) -> None:
        self.batches: list[Batch] = []
        self.since = since
        self.upper: Frontier = 0
        self.merge: Merge | None = None
        self.merge_at = 0
        self.debt = 0
        self.fresh = 0
        self.on_change = on_change

    def chain(self) -> tuple[Batch, ...]:
        return tuple(self.batches)

    @property
    def row_count(self) -> int:
        return sum(map(len, self.batches))

    @property
    def nbytes(self) -> int:
        return sum(b.nbytes for b in self.batches)

    def advance_since(self, since: int) -> None:
        """Times before `since` need no longer be told apart. Never goes back."""
        if since > self.since:
            self.since = since

    def insert(self, batch: Batch | None, upper: Frontier) -> None:
        """Append a batch (or just progress) and pay for merging."""
        self.upper = upper
        if batch is None or not len(batch):
            return
        self.batches.append(batch)
        self._merge_small()
        if self.merge is not None or len(self.batches) > FRESH:
            self.debt += FUEL_PER_ROW * len(batch) + FUEL_PER_INSERT
            if self.debt >= FUEL_STEP:
                self.work(min(self.debt, SLICE_ROWS))
                self.debt = 0
        if self.on_change is not None:
            self.on_change()

    def work(self, rows: int) -> bool:
        """Merge about `rows` rows. True if there is more to merge."""
        if self.merge is None and not self._start_merge():
            return False
        assert self.merge is not None
        if self.merge.work(rows):
            at = self.merge_at
            result = self.merge.result
            assert result is not None
            self.batches[at : at + 2] = [result] if len(result) else []
            self.merge = None
            if self.on_change is not None:
                self.on_change()
            return self._mergeable() is not None
        return True

    def _merge_small(self) -> None:
        """Once there are a few fresh small batches, merge them, and older ones of like size, in one go."""
        batches = self.batches
        self.fresh += 1
        if self.fresh < FRESH and len(batches[-1]) < SMALL_ROWS:
            return
        floor = self.merge_at + 2 if self.merge is not None else 0
        first = max(floor, len(batches) - self.fresh)
        self.fresh = 0
        total = sum(len(b) for b in batches[first:])
        while first > floor and len(batches[first - 1]) < RATIO * total:
            first -= 1
            total += len(batches[first])
            if total > SMALL_ROWS:
                break
        while total > SMALL_ROWS and first < len(batches):
            total -= len(batches[first])
            first += 1
        if len(batches) - first < 2:
            return
        runs = batches[first:]
        joint = Description(runs[0].description.lower, runs[-1].description.upper, self.since)
        merge = Merge(runs, self.since, joint)
        while not merge.work(SLICE_ROWS):
            pass
        assert merge.result is not None
        batches[first:] = [merge.result] if len(merge.result) else []

    def _mergeable(self) -> int | None:
        batches = self.batches
        for i in range(len(batches) - 2, -1, -1):
            if len(batches[i]) < RATIO * len(batches[i + 1]):
                return i
        return None

    def _start_merge(self) -> bool:
        at = self._mergeable()
        if at is None:
            return False
        older, newer = self.batches[at], self.batches[at + 1]
        self.merge = Merge([older, newer], self.since, self._joint(older, newer))
        self.merge_at = at
        return True

    def _joint(self, older: Batch, newer: Batch) -> Description:
        return Description(older.description.lower, newer.description.upper, self.since)

    def replace(self, old: Batch, new: Batch) -> bool:
        """Swap a batch for an equal one (its mapped segment). False if it has been merged away."""
        for i, batch in enumerate(self.batches):
            if batch is old:
                self.batches[i] = new
                if self.merge is not None:
                    self.merge.runs = [new if r is old else r for r in self.merge.runs]
                return True
        return False

    def check(self) -> None:
        for older, newer in zip(self.batches, self.batches[1:]):
            upper = older.description.upper
            assert upper is None or upper <= newer.description.lower, (older.description, newer.description)
        for batch in self.batches:
            batch.check()
            assert not len(batch) or batch.time_min >= batch.description.lower, (batch.time_min, batch.description)
        if self.merge is not None:
            assert self.merge_at + 1 < len(self.batches), (self.merge_at, len(self.batches))
