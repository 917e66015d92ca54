"""ShardRead: a peek that reads a storage shard directly. One worker of the runtime, chosen by uuid, does it.

The shard's reader delivers the contents at the peek's time and then what follows; once its upper has passed that time,
everything at or before it is the answer, after the peek's MapFilterProject.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from compute.protocol.command import Peek
from compute.runtime.storage_link import StorageLink
from mzlite.expr.mfp_eval import MfpPlan
from mzlite.repr.errors import SqlError, decode_error
from mzlite.repr.timestamp import Frontier, Timestamp
from mzlite.repr.updates import Updates, concat_updates, consolidate
from mzlite.repr.var import VarColumn

SLICE_ROWS = 65_536


def owner_of(uuid: str, workers: int) -> int:
    """The worker that answers."""
    return zlib.crc32(uuid.encode()) % workers


class ShardRead:
    """A `peeks.Readable` over a reader of the shard. wake() is called when its upper moved."""

    def __init__(self, command: Peek, shard: str, storage: StorageLink, wake: Callable[[], None]) -> None:
        self.upper: Frontier = 0
        self.since: Timestamp = 0
        self._parts: list[Updates] = []
        self._time = command.timestamp
        self._storage = storage
        self._wake = wake
        self._errs: list[Updates] = []
        self._failure: str | None = None
        self._reader: int | None = storage.open(shard, command.timestamp, self._arrived, self._errors, self._failed)

    def _arrived(self, parts: Sequence[Updates], upper: Frontier) -> None:
        if self._reader is None:
            return
        self._parts.extend(parts)
        self.upper = upper
        self._wake()

    def _errors(self, parts: Sequence[Updates], upper: Frontier) -> None:
        self._errs.extend(parts)

    def _failed(self, message: str) -> None:
        """The shard is gone, or was compacted beyond the time."""
        self._failure = message
        self.upper = None
        self._wake()

    def close(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            self._storage.close(reader)
        self._parts = []

    def walk(self, command: Peek) -> Iterator[Updates | None]:
        """Slices of MapFilterProject, then one consolidated answer. An evaluation error is raised."""
        if self._failure is not None:
            raise SqlError("XX000", self._failure)
        self._check_errors()
        plan = MfpPlan(command.mfp)
        limit = command.finishing.limit
        enough = None if limit is None or command.finishing.order_by else limit + command.finishing.offset
        done: list[Updates] = []
        count = 0
        for part in self._parts:
            for start in range(0, max(len(part), 1), SLICE_ROWS):
                piece = part.slice(start, min(start + SLICE_ROWS, len(part)))
                if len(piece) and int(piece.time.max()) > self._time:
                    piece = piece.filter(piece.time <= np.uint64(self._time))
                done.append(_apply(plan, piece))
                count += len(done[-1])
                # Retractions may still take rows away, so only an all-positive prefix may end the read early.
                if enough is not None and count >= enough and len(self._parts) == 1 and bool((part.diff > 0).all()):
                    yield concat_updates(done)
                    return
                yield None
        # Without a part there is no row; the columns' types do not matter then.
        yield consolidate(concat_updates(done)) if done else Updates((), np.zeros(0, np.uint64), np.zeros(0, np.int64))

    def _check_errors(self) -> None:
        """An error row that is present at the time is the answer."""
        present = [e.filter(e.time <= np.uint64(self._time)) for e in self._errs]
        if not present:
            return
        joint = concat_updates(present)
        total = consolidate(joint.with_time(np.zeros(len(joint), np.uint64)))
        at = np.flatnonzero(total.diff > 0)
        if len(at):
            column = total.columns[0]
            assert isinstance(column, VarColumn), column
            raise decode_error(min(column.value(int(i)) for i in at))


def _apply(plan: MfpPlan, piece: Updates) -> Updates:
    """The piece through the plan, all at time 0."""
    rows, columns, errors = plan.apply(piece.columns, len(piece))
    if errors is not None:
        raise decode_error(errors[1][0])
    return Updates(tuple(columns), np.zeros(len(rows), np.uint64), piece.diff[rows])
