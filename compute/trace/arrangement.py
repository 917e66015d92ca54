"""Arrangement: a collection under a key, held as an oks spine and an errs spine; and what it takes to read one.

An index is an arrangement; so is the inner state of a join. Whoever reads it holds its `since` back: since is the meet
of all holds. Readers get immutable chains, so they are never disturbed by a merge.

    importer at frontier f:   old rows = chain, times < lower     delta = chain, lower <= time < upper
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from compute.trace.batch import Batch
from compute.trace.layout import KeyLayout
from compute.trace.merge import SLICE_ROWS
from compute.trace.spine import Spine
from mzlite.expr.scalar import Scalar
from mzlite.repr.timestamp import Frontier, Timestamp, meet

Chains = tuple[tuple[Batch, ...], tuple[Batch, ...]]


class Hold(Protocol):
    """A promise to a reader: since stays at or before `time`."""

    @property
    def time(self) -> Timestamp: ...

    def downgrade(self, time: Timestamp) -> None:
        """Move up to `time`; never back."""

    def release(self) -> None:
        """Idempotent."""


class TraceSource(Protocol):
    """What an import reads: an Arrangement of this worker, or a publication point of the registry.

    layout: of the oks batches; errs batches have one column (encoded error) and an empty key.
    """

    @property
    def layout(self) -> KeyLayout: ...

    @property
    def upper(self) -> Frontier: ...

    @property
    def since(self) -> Timestamp: ...

    def chains(self) -> Chains: ...

    def hold(self, time: Timestamp) -> Hold: ...


class ArrangementHold:
    """A hold on an Arrangement."""

    def __init__(self, owner: Arrangement, time: Timestamp) -> None:
        self.owner = owner
        self.time = time
        self.released = False

    def downgrade(self, time: Timestamp) -> None:
        if time > self.time and not self.released:
            old, self.time = self.time, time
            self.owner.move_hold(old, time)

    def release(self) -> None:
        if not self.released:
            self.released = True
            self.owner.move_hold(self.time, None)


class Arrangement:
    """Invariants:

    1. since <= time of every live hold; since never goes back.
    2. upper never goes back; it is the meet of both spines' uppers.
    3. every oks row has the layout's width; every errs row is one encoded error.
    """

    def __init__(self, key: tuple[Scalar, ...], arity: int, since: Timestamp = 0) -> None:
        self.layout = KeyLayout(key, arity)
        self.version = 0
        self.oks = Spine(since, self._changed)
        self.errs = Spine(since, self._changed)
        self.holds: dict[Timestamp, int] = {}  # time -> how many holds are there: hundreds may share few times
        self.since = since

    def _changed(self) -> None:
        self.version += 1

    @property
    def key(self) -> tuple[Scalar, ...]:
        return self.layout.key

    @property
    def upper(self) -> Frontier:
        return meet(self.oks.upper, self.errs.upper)

    def chains(self) -> Chains:
        return self.oks.chain(), self.errs.chain()

    def insert(self, oks: Batch | None, errs: Batch | None, upper: Frontier) -> None:
        """One round's updates; both halves are then complete before `upper`."""
        self.oks.insert(oks, upper)
        self.errs.insert(errs, upper)
        self.version += 1

    def hold(self, time: Timestamp) -> ArrangementHold:
        """A new hold at max(time, since)."""
        held = ArrangementHold(self, max(time, self.since))
        self.holds[held.time] = self.holds.get(held.time, 0) + 1
        return held

    def move_hold(self, old: Timestamp, new: Timestamp | None) -> None:
        """A hold moved: since follows the least of them. Without holds nobody reads: it stays."""
        holds = self.holds
        if new is not None:
            holds[new] = holds.get(new, 0) + 1
        holds[old] -= 1
        if holds[old]:
            return
        del holds[old]
        if holds:
            since = min(holds)
            if since > self.since:
                self.since = since
                self.oks.advance_since(since)
                self.errs.advance_since(since)
                self.version += 1

    def maintain(self) -> Iterator[None]:
        """Finish pending merges, a slice a step."""
        while self.oks.work(SLICE_ROWS):
            yield
        while self.errs.work(SLICE_ROWS):
            yield

    @property
    def nbytes(self) -> int:
        return self.oks.nbytes + self.errs.nbytes

    @property
    def row_count(self) -> int:
        return self.oks.row_count + self.errs.row_count

    def check(self) -> None:
        assert all(self.since <= time for time in self.holds), (self.since, self.holds)
        self.oks.check()
        self.errs.check()


def fold(chain: Sequence[Batch]) -> int:
    """Rows in a chain."""
    return sum(map(len, chain))
