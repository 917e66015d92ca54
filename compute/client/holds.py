"""Read holds: promises that a collection stays readable at a time.

A collection's `since` is the least of its holds; with no hold left it is empty and the collection goes away. Holds only
move forward, so `since` never regresses.
"""

from __future__ import annotations

from collections.abc import Callable

from compute.client.errors import ReadHoldInsufficient
from mzlite.repr.ids import GlobalId
from mzlite.repr.timestamp import Frontier, Timestamp, frontier_le


class HoldSet:
    """The holds of one collection.

    Invariants:
    1. counts has no zero entry.
    2. since is the least key of counts, or None when counts is empty.
    3. since never regresses.
    on_since runs after every advance of since.
    """

    __slots__ = ("_counts", "id", "on_since", "since")

    def __init__(self, id: GlobalId, on_since: Callable[[Frontier], None]) -> None:
        self.id = id
        self.on_since = on_since
        self._counts: dict[Timestamp, int] = {}
        self.since: Frontier = 0

    def acquire(self, at: Timestamp | None = None) -> ReadHold:
        """A hold at `at` (default: at since, the earliest readable time)."""
        since = self.since
        if at is None:
            at = since if since is not None else 0
        if self._counts and not (since is not None and since <= at):
            raise ReadHoldInsufficient(self.id, since, at)
        if since is None:
            raise ReadHoldInsufficient(self.id, None, at)
        if not self._counts:
            self.since = at
        self._counts[at] = self._counts.get(at, 0) + 1
        return ReadHold(self, at)

    def __len__(self) -> int:
        return sum(self._counts.values())

    def _move(self, old: Timestamp, new: Frontier) -> None:
        counts = self._counts
        if new is not None:
            counts[new] = counts.get(new, 0) + 1
        left = counts[old] - 1
        if left:
            counts[old] = left
            return
        del counts[old]
        if old == self.since:
            since = min(counts) if counts else None
            if since != old:
                assert frontier_le(self.since, since), f"since of {self.id} regressed from {self.since} to {since}"
                self.since = since
                self.on_since(since)

    def check(self) -> None:
        assert all(self._counts.values()), self._counts
        assert self.since == (min(self._counts) if self._counts else None), (self.since, self._counts)


class ReadHold:
    """One promise. `since`: the time it protects (None once released). Moves forward only; release is idempotent."""

    __slots__ = ("_set", "since")

    def __init__(self, holds: HoldSet, at: Timestamp) -> None:
        self._set = holds
        self.since: Frontier = at

    @property
    def id(self) -> GlobalId:
        return self._set.id

    def downgrade(self, to: Frontier) -> None:
        """Give up everything before `to` (None = release). An earlier `to` is ignored."""
        old = self.since
        if old is None or (to is not None and to <= old):
            return
        self.since = to
        self._set._move(old, to)

    def release(self) -> None:
        self.downgrade(None)

    def clone(self) -> ReadHold:
        """A second hold at the same time."""
        assert self.since is not None, "clone of a released hold"
        return self._set.acquire(self.since)
