"""Registry: interactive worker i's half: what maintenance worker i has published, as publication points to read.

A point is created by whichever comes first: the command that creates the collection, or the publisher's word. Until the
publisher has backed it its upper is {MIN} (nothing is known), never {} (which would mean: complete, and empty). A peek
or an import takes the chain of immutable batches as it stands once both uppers have passed its time.

What the reader needs of a point is the least of its *peer hold*, moved by the AllowCompaction commands this worker has
processed, and the as_of of every import that still runs. It is reported to the publisher whenever it moves.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from compute.shared import segments
from compute.shared.messages import (
    BatchParcel,
    HoldMoved,
    LogChanges,
    Published,
    RegistryMessage,
    TraceChanged,
    TraceDropped,
    Unpublished,
    decode_messages,
    encode_messages,
)
from compute.trace.batch import Batch
from compute.trace.layout import KeyLayout
from mzlite.repr.ids import GlobalId
from mzlite.repr.timestamp import Frontier, Timestamp, meet

Chains = tuple[tuple[Batch, ...], tuple[Batch, ...]]
_EMPTY: Chains = ((), ())
_UNDECLARED = KeyLayout((), 0)


class SharedTrace:
    """A published arrangement as it stands: both chains, both uppers, since. Batches are mapped read-only."""

    __slots__ = ("batches", "chains", "errs_upper", "oks_upper", "since")

    def __init__(self) -> None:
        self.batches: dict[int, Batch] = {}
        self.chains: Chains = _EMPTY
        self.oks_upper: Frontier = 0
        self.errs_upper: Frontier = 0
        self.since: Timestamp = 0

    def apply(self, change: TraceChanged, batches: Sequence[Batch]) -> None:
        fresh = {parcel.uid: batch for parcel, batch in zip(change.batches, batches, strict=True)}
        known = self.batches
        wanted = (*change.oks, *change.errs)
        self.batches = {uid: fresh[uid] if uid in fresh else known[uid] for uid in wanted}
        self.chains = (
            tuple(self.batches[uid] for uid in change.oks),
            tuple(self.batches[uid] for uid in change.errs),
        )
        self.oks_upper = change.oks_upper
        self.errs_upper = change.errs_upper
        self.since = change.since


class PublicationPoint:
    """One export of maintenance as seen from here: the TraceSource that peeks and imports read.

    Invariants:
    1. unbacked: upper is 0, the chains are empty.
    2. upper is the meet of both halves' uppers: an index is complete only where its errors are too.
    3. reported is what the publisher was last told; it never regresses.
    """

    def __init__(self, id: GlobalId, incarnation: int, registry: Registry) -> None:
        self.id = id
        self.incarnation = incarnation
        self.layout = _UNDECLARED
        self.trace: SharedTrace | None = None
        self.as_of: Timestamp = 0
        self.peer_hold: Frontier = 0
        self.declared = False  # the creating command was processed here
        self.writer_gone = False
        self.imports: dict[Timestamp, int] = {}
        self.reported: Frontier = 0
        self._registry = registry

    @property
    def upper(self) -> Frontier:
        return meet(self.trace.oks_upper, self.trace.errs_upper) if self.trace is not None else 0

    @property
    def since(self) -> Timestamp:
        """The least time that can be read here."""
        published = self.trace.since if self.trace is not None else 0
        return max(published, self.as_of)

    @property
    def version(self) -> int:
        return self._registry.version

    def chains(self) -> Chains:
        return self.trace.chains if self.trace is not None else _EMPTY

    def hold(self, at: Timestamp) -> ImportHold:
        """An import at `at`, or a re-export of it: since stays at or before `at` until it is released."""
        return ImportHold(self, at)

    def needed(self) -> Frontier:
        """The least time that this worker may still read."""
        needed: Frontier = self.peer_hold if self.declared else self.reported
        for at in self.imports:
            needed = meet(needed, at)
        return needed


class ImportHold:
    """One import's hold. Moves forward only; release is idempotent."""

    __slots__ = ("_point", "released", "time")

    def __init__(self, point: PublicationPoint, at: Timestamp) -> None:
        self._point = point
        self.time = at
        self.released = False
        point.imports[at] = point.imports.get(at, 0) + 1

    def downgrade(self, time: Timestamp) -> None:
        if time > self.time and not self.released:
            imports = self._point.imports
            imports[time] = imports.get(time, 0) + 1
            self._leave()
            self.time = time

    def release(self) -> None:
        if not self.released:
            self.released = True
            self._leave()

    def _leave(self) -> None:
        imports = self._point.imports
        imports[self.time] -= 1
        if not imports[self.time]:
            del imports[self.time]
        self._point._registry.hold_moved(self._point)


class Registry:
    """Points by id and incarnation. `current` is the latest incarnation this worker's command stream has declared.

    send(payload) reports holds to the publisher. take_fd() yields the descriptors that came with a payload, in order.
    """

    def __init__(self, send: Callable[[bytes], None], take_fd: Callable[[], int]) -> None:
        self._send = send
        self._take_fd = take_fd
        self._points: dict[tuple[GlobalId, int], PublicationPoint] = {}
        self._current: dict[GlobalId, PublicationPoint] = {}
        self._traces: dict[int, SharedTrace] = {}
        self._moved: dict[tuple[GlobalId, int], PublicationPoint] = {}
        self.position = -1
        """Incarnation of the last creating command that this worker has processed."""
        self.version = 0
        """Grows with every word of the publisher: queued reads are worth another look."""

    # -- the command stream

    def declare_peer(self, id: GlobalId, incarnation: int, layout: KeyLayout, as_of: Timestamp) -> PublicationPoint:
        """A collection that maintenance renders was created: a peer hold at as_of."""
        self.position = max(self.position, incarnation)
        point = self._point(id, incarnation)
        point.layout = layout
        point.as_of = as_of
        point.peer_hold = as_of
        point.declared = True
        self._current[id] = point
        self.hold_moved(point)
        return point

    def peer(self, id: GlobalId) -> PublicationPoint | None:
        return self._current.get(id)

    def allow_compaction(self, id: GlobalId, frontier: Frontier) -> bool:
        """Move the peer hold (None: forget the peer). False if no such peer is known. Idempotent, never regresses."""
        point = self._current.get(id)
        if point is None:
            return False
        if frontier is None:
            point.peer_hold = None
            del self._current[id]
        elif point.peer_hold is not None:
            point.peer_hold = max(point.peer_hold, frontier)
        self.hold_moved(point)
        return True

    # -- the publisher

    def handle(self, payload: bytes) -> None:
        self.version += 1
        for message in decode_messages(payload):
            self._apply(message)

    def _apply(self, message: RegistryMessage) -> None:
        match message:
            case TraceChanged():
                trace = self._traces.get(message.trace)
                if trace is None:
                    trace = self._traces[message.trace] = SharedTrace()
                trace.apply(message, [self._receive(parcel) for parcel in message.batches])
            case Published(id, incarnation, number):
                if (id, incarnation) in self._points or incarnation > self.position:
                    self._point(id, incarnation).trace = self._traces[number]
                # else: created and dropped here before the publisher heard of the drop
            case Unpublished(id, incarnation):
                point = self._points.get((id, incarnation))
                if point is not None:
                    point.writer_gone = True
            case TraceDropped(number):
                del self._traces[number]
            case HoldMoved() | LogChanges():
                raise AssertionError(f"a reader's report came back: {message}")

    def _receive(self, parcel: BatchParcel) -> Batch:
        if parcel.inline is not None:
            return Batch.read_from(memoryview(parcel.inline))
        fd = self._take_fd()
        try:
            return segments.read(fd, parcel.size)
        finally:
            os.close(fd)

    def forward_log(self, variant: str, updates: bytes) -> None:
        """Introspection of this worker, for the twin that keeps the log relations."""
        self._send(encode_messages([LogChanges(variant, updates)]))

    # -- holds

    def hold_moved(self, point: PublicationPoint) -> None:
        self._moved[point.id, point.incarnation] = point

    def flush(self) -> None:
        """Report the holds that moved."""
        if not self._moved:
            return
        moved, self._moved = self._moved, {}
        messages = []
        for key, point in moved.items():
            needed = point.needed()
            if needed != point.reported:
                point.reported = needed
                messages.append(HoldMoved(point.id, point.incarnation, needed))
            if needed is None:
                self._points.pop(key, None)
        if messages:
            self._send(encode_messages(messages))

    def _point(self, id: GlobalId, incarnation: int) -> PublicationPoint:
        point = self._points.get((id, incarnation))
        if point is None:
            point = self._points[id, incarnation] = PublicationPoint(id, incarnation, self)
        return point

    @property
    def counts(self) -> tuple[int, int, int]:
        """(points, traces, imports) alive, for leak checks."""
        return len(self._points), len(self._traces), sum(sum(p.imports.values()) for p in self._points.values())
