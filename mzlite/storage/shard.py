"""One shard in memory: its parts, since, upper, and which parts compaction should merge next.

    parts   [ 1M rows | 60k | 3k | 40 | 1 | 1 | 1 ]      oldest and largest first

A part is appended by every commit. Merging follows sizes, not counts, so a row is copied a logarithmic number of times
however it arrives; what comes after the first part never outgrows it for long, so deleted rows go away.
"""

from __future__ import annotations

from mzlite.repr.timestamp import Frontier, Timestamp
from mzlite.repr.types import ScalarType
from mzlite.repr.updates import Updates, concat_updates, consolidate, empty_updates
from mzlite.storage.model import Part

TABLE, MV = "table", "mv"
_FAN_IN = 16
_MIN_DELTA = 1024


class Shard:
    """Invariants:

    1. parts are ordered by lower; every update lies at a time < upper.
    2. since only rises; reads at as_of need since <= as_of.
    3. a TABLE's upper is storage's one table upper; an MV's is its own.

    parts is replaced, never changed in place, so a reader may keep it without a lock.
    """

    __slots__ = ("compacting", "id", "kind", "parts", "since", "types", "upper")

    def __init__(self, id: str, types: tuple[ScalarType, ...], kind: str, since: Timestamp, upper: Frontier) -> None:
        assert kind in (TABLE, MV), kind
        self.id = id
        self.types = types
        self.kind = kind
        self.since = since
        self.upper = upper
        self.parts: tuple[Part, ...] = ()
        self.compacting = False

    def append(self, part: Part) -> None:
        self.parts = (*self.parts, part)

    def advance_since(self, since: Timestamp) -> bool:
        """Whether it moved."""
        if since <= self.since:
            return False
        self.since = since
        return True

    def empty(self) -> Updates:
        return empty_updates([t.layout for t in self.types])

    def snapshot(self, as_of: Timestamp) -> tuple[list[Updates], list[Updates]]:
        """(rows, errors) of the collection at as_of, in parts, every time as_of; since <= as_of < upper."""
        oks: list[Updates] = []
        errs: list[Updates] = []
        for part in self.parts:
            if part.lower > as_of:
                continue
            _at(part.oks, as_of, oks)
            if part.errs is not None:
                _at(part.errs, as_of, errs)
        return oks, errs

    def merge_candidates(self) -> tuple[Part, ...]:
        """A run of parts at the end worth merging; () when there is none."""
        parts = self.parts
        if len(parts) < 2:
            return ()
        rows = [p.rows for p in parts]
        delta = sum(rows) - rows[0]
        if delta > rows[0] and delta >= _MIN_DELTA:
            return parts
        if len(parts) < _FAN_IN:
            return ()
        # The longest run at the end of parts no larger than a tier, for the smallest tier with a full fan-in.
        bound = _FAN_IN
        while True:
            start = len(parts)
            while start > 0 and rows[start - 1] < bound:
                start -= 1
            if len(parts) - start >= _FAN_IN:
                return parts[start:]
            if start == 0:
                return ()
            bound *= _FAN_IN

    def replace(self, old: tuple[Part, ...], new: Part | None) -> None:
        """Put `new` where the run `old` stands; later parts stay."""
        at = self.parts.index(old[0])
        assert self.parts[at : at + len(old)] == old, "the merged parts are no longer there"
        middle = () if new is None else (new,)
        self.parts = (*self.parts[:at], *middle, *self.parts[at + len(old) :])


def _at(updates: Updates, as_of: Timestamp, out: list[Updates]) -> None:
    if not len(updates):
        return
    if int(updates.time.max()) > as_of:
        updates = updates.filter(updates.time <= as_of)
        if not len(updates):
            return
    out.append(updates.advance_to(as_of))


def merge_parts(parts: tuple[Part, ...], since: Timestamp) -> tuple[Updates, Updates | None]:
    """(rows, errors) of the parts in one, times advanced to since, consolidated."""
    oks = consolidate(concat_updates([p.oks for p in parts]).advance_to(since))
    errs_in = [p.errs for p in parts if p.errs is not None]
    errs = consolidate(concat_updates(errs_in).advance_to(since)) if errs_in else None
    return oks, errs if errs is not None and len(errs) else None
