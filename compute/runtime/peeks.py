"""Pending reads of one worker. A peek waits until its trace is complete at its time, then walks it in slices.

    arrived ──▶ parked (upper <= timestamp) ──▶ walking (slices, round robin) ──▶ exactly one response
                      ╰───────── CancelPeek ──────────╯  answers Canceled

A fresh peek gets its first slice at once, before those that already walk, so a look-up is not delayed by a full scan
that arrived first.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Protocol

from compute.protocol.command import Peek
from compute.protocol.response import PeekCanceled, PeekError, PeekResponse, PeekRows
from compute.runtime.events import EventLog
from compute.trace.arrangement import TraceSource
from compute.trace.peek import peek_arrangement
from mzlite.repr.encode import encode_updates
from mzlite.repr.errors import SqlError, encode_error
from mzlite.repr.ids import GlobalId
from mzlite.repr.timestamp import Frontier, Timestamp, less_equal
from mzlite.repr.updates import Updates

Walk = Iterator[Updates | None]
"""Yields None between slices, then the answer once; raises SqlError for an answer that is an error."""


class Readable(Protocol):
    """What a peek reads: complete before `upper`, readable from `since` on."""

    @property
    def upper(self) -> Frontier: ...

    @property
    def since(self) -> Timestamp: ...

    def walk(self, command: Peek) -> Walk: ...

    def close(self) -> None:
        """The peek is over, answered or not."""


class IndexRead:
    """Read a trace: this worker's own, or a publication point. The chain is taken when the walk starts.

    as_of: of the index; a trace knows nothing of the times before.
    """

    __slots__ = ("_as_of", "_source")

    def __init__(self, source: TraceSource, as_of: Timestamp) -> None:
        self._source = source
        self._as_of = as_of

    @property
    def upper(self) -> Frontier:
        return self._source.upper

    @property
    def since(self) -> Timestamp:
        return max(self._source.since, self._as_of)

    def walk(self, command: Peek) -> Walk:
        source = self._source
        return peek_arrangement(
            source.chains(),
            source.layout,
            command.timestamp,
            command.mfp,
            command.finishing,
            command.literal_constraints,
        )

    def close(self) -> None:
        return


class PendingPeek:
    """walk: once it runs."""

    __slots__ = ("command", "source", "started_at", "walk")

    def __init__(self, command: Peek, source: Readable) -> None:
        self.command = command
        self.source = source
        self.walk: Walk | None = None
        self.started_at = time.perf_counter_ns()


class Peeks:
    """Invariants:

    1. a peek is in exactly one of parked and walking until it has been answered, and in neither afterwards.
    2. every peek is answered exactly once: by its walk, by cancel, or not at all after discard (a new connection).
    """

    def __init__(self, emit: Callable[[PeekResponse], None], events: EventLog) -> None:
        self._emit = emit
        self._events = events
        self._parked: dict[str, PendingPeek] = {}
        self._walking: deque[PendingPeek] = deque()

    def __len__(self) -> int:
        return len(self._parked) + len(self._walking)

    def add(self, command: Peek, source: Readable) -> None:
        """A read. Runs its first slice now if what it reads is complete at its time."""
        peek = PendingPeek(command, source)
        self._events.peek_started(command)
        if less_equal(source.upper, command.timestamp):
            self._parked[command.uuid] = peek
        else:
            self._start(peek)

    def fail(self, command: Peek, error: SqlError) -> None:
        """Answer without having pended."""
        self._emit(PeekError(command.uuid, encode_error(error)))

    def cancel(self, uuid: str) -> None:
        """Best effort: an unknown (answered) peek is ignored."""
        peek = self._parked.pop(uuid, None)
        if peek is None:
            peek = next((p for p in self._walking if p.command.uuid == uuid), None)
            if peek is None:
                return
            self._walking.remove(peek)
        self._answer(peek, PeekCanceled(uuid))

    def fail_target(self, id: GlobalId, error: SqlError) -> None:
        """What is read has failed: so do its pending reads."""
        for peek in [p for p in (*self._parked.values(), *self._walking) if p.command.target.id == id]:
            if self._parked.pop(peek.command.uuid, None) is None:
                self._walking.remove(peek)
            self._answer(peek, PeekError(peek.command.uuid, encode_error(error)))

    def discard(self) -> None:
        """Forget all of them silently: their requester is gone."""
        for peek in (*self._parked.values(), *self._walking):
            peek.source.close()
            self._events.peek_finished(peek.command, 0)
        self._parked.clear()
        self._walking.clear()

    def wake(self) -> None:
        """Traces moved: start the walks of peeks that have become ready."""
        ready = [p for p in self._parked.values() if not less_equal(p.source.upper, p.command.timestamp)]
        for peek in ready:
            del self._parked[peek.command.uuid]
            self._start(peek)

    def step(self) -> bool:
        """One slice of the next walk. False if none is runnable."""
        if not self._walking:
            return False
        self._run(self._walking.popleft())
        return True

    @property
    def runnable(self) -> bool:
        return bool(self._walking)

    def _start(self, peek: PendingPeek) -> None:
        source, command = peek.source, peek.command
        if source.since > command.timestamp:
            message = (
                f"collection {command.target.id} is readable from its compaction frontier {source.since} on, "
                f"not at the attempted time {command.timestamp}"
            )
            self._answer(peek, PeekError(command.uuid, encode_error(SqlError("XX000", message))))
            return
        peek.walk = source.walk(command)
        self._run(peek)

    def _run(self, peek: PendingPeek) -> None:
        assert peek.walk is not None
        try:
            rows = next(peek.walk)
        except SqlError as error:
            self._answer(peek, PeekError(peek.command.uuid, encode_error(error)))
            return
        if rows is None:
            self._walking.append(peek)
        else:
            self._answer(peek, PeekRows(peek.command.uuid, encode_updates(rows)))

    def _answer(self, peek: PendingPeek, response: PeekResponse) -> None:
        peek.source.close()
        self._events.peek_finished(peek.command, time.perf_counter_ns() - peek.started_at)
        self._emit(response)
