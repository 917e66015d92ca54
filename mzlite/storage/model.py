"""What storage speaks of: writes, parts, errors."""

from __future__ import annotations

from typing import NamedTuple

from mzlite.repr.encode import encode_updates
from mzlite.repr.errors import SqlError
from mzlite.repr.timestamp import Frontier, Timestamp
from mzlite.repr.updates import Updates
from mzlite.storage.segment import INLINE_BYTES, Segment

FORMAT_VERSION = 1


class StorageError(SqlError):
    """The data directory cannot serve: locked, of a newer format, or failing."""

    def __init__(self, message: str, *, sqlstate: str = "58030", detail: str | None = None) -> None:
        super().__init__(sqlstate, message, detail=detail)


class ShardWrite(NamedTuple):
    """Rows for a table's shard; their times are set by the commit."""

    shard: str
    updates: Updates


class Part:
    """Some of a shard's updates, immutable: those with lower <= time < upper (or advanced into it by compaction).

    errs: error rows (one column of encoded errors) beside the rows, or None. seq: its place in the log, ascending.
    segment: where `oks` lives when it is large, so that workers map it instead of being sent it.
    """

    __slots__ = ("_encoded", "errs", "lower", "oks", "segment", "seq", "upper")

    def __init__(
        self,
        seq: int,
        lower: Timestamp,
        upper: Frontier,
        oks: Updates,
        errs: Updates | None = None,
        segment: Segment | None = None,
    ) -> None:
        self.seq = seq
        self.lower = lower
        self.upper = upper
        self.oks = oks
        self.errs = errs
        self.segment = segment
        self._encoded: bytes | None = None

    @property
    def rows(self) -> int:
        return len(self.oks) + (0 if self.errs is None else len(self.errs))

    def encoded(self) -> bytes:
        """Flat bytes of the rows, made once; for parts without a segment."""
        if self._encoded is None:
            self._encoded = encode_updates(self.oks)
        return self._encoded

    def encoded_errs(self) -> bytes | None:
        return None if self.errs is None else encode_updates(self.errs)


def make_part(seq: int, lower: Timestamp, upper: Frontier, oks: Updates, errs: Updates | None = None) -> Part:
    """A part in memory; a large one moves into a segment, so that it exists once for all processes."""
    if oks.nbytes >= INLINE_BYTES:
        segment = Segment.of(oks)
        return Part(seq, lower, upper, segment.read(), errs, segment)
    return Part(seq, lower, upper, oks, errs)
