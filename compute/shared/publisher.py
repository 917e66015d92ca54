"""Publisher: maintenance worker i's half of the registry. It mirrors arrangements to interactive worker i.

The arrangement's own holds decide how far it compacts; each publication point adds one, on the reader's behalf:

1. taken when the dataflow is created, at as_of, before the reader has said anything;
2. moved only by the reader's reports, which carry its position in the command stream (AllowCompaction it has
   processed, imports it still runs);
3. released when the reader lets go, or when the arrangement itself goes away.

So an arrangement compacts as far as the slower of the two streams allows, and no command's frontier is rewritten.
Changes of a trace that the socket does not take at once run together: the reader gets the chain as it stands later.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Protocol

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
from compute.trace.arrangement import Arrangement, ArrangementHold
from compute.trace.batch import Batch
from mzlite.repr.encode import decode_updates
from mzlite.repr.ids import GlobalId
from mzlite.repr.timestamp import Frontier, Timestamp
from mzlite.repr.updates import Updates

PointKey = tuple[GlobalId, int]


class PublisherLink(Protocol):
    """`shared.link.Link`, or its stand-in in a simulation."""

    @property
    def backlogged(self) -> bool: ...

    def send(self, payload: bytes, fds: list[int]) -> None: ...


class PublishedTrace:
    """One arrangement as the reader knows it. sent: uids of batches it holds. points: what is backed by it."""

    __slots__ = ("arrangement", "dirty", "number", "points", "sent", "version")

    def __init__(self, number: int, arrangement: Arrangement) -> None:
        self.number = number
        self.arrangement = arrangement
        self.points: set[PointKey] = set()
        self.sent: set[int] = set()
        self.version = -1
        self.dirty = False


class Point:
    """allowed: since as the controller allows it (for the gauges). writer_gone: dropped here, still held there."""

    __slots__ = ("allowed", "hold", "trace", "writer_gone")

    def __init__(self, trace: PublishedTrace, hold: ArrangementHold, allowed: Timestamp) -> None:
        self.trace = trace
        self.hold = hold
        self.allowed: Frontier = allowed
        self.writer_gone = False


class Publisher:
    """Invariants:

    1. a point's hold is at or before every time its reader may still read.
    2. the reader is told of a trace before any point that is backed by it.
    3. a trace without points is forgotten on both sides.
    """

    def __init__(self, link: PublisherLink) -> None:
        self._link = link
        self._numbers = itertools.count(1)
        self._traces: dict[int, PublishedTrace] = {}  # id(arrangement) -> trace; the trace keeps the object alive
        self._points: dict[PointKey, Point] = {}
        self._dirty: list[PublishedTrace] = []
        self.on_log: Callable[[str, Updates], None] = lambda variant, updates: None
        """Receives the reader's changes of log relations."""
        self._early: dict[PointKey, Frontier] = {}  # reports about points whose creation has not been processed here

    # -- writers

    def register(self, id: GlobalId, incarnation: int, arrangement: Arrangement, as_of: Timestamp) -> None:
        """A dataflow that exports `arrangement` as `id` was created: take the reader's initial hold."""
        key = (id, incarnation)
        assert key not in self._points, key
        at = max(as_of, arrangement.since)
        if key in self._early:
            reported = self._early.pop(key)
            if reported is None:
                return  # the reader is further in the stream, and has seen the drop
            at = max(at, reported)
        trace = self._traces.get(_key(arrangement))
        if trace is None:
            trace = PublishedTrace(next(self._numbers), arrangement)
            self._traces[_key(arrangement)] = trace
        trace.points.add(key)
        self._points[key] = Point(trace, arrangement.hold(at), as_of)

    def publish(self, id: GlobalId, incarnation: int) -> None:
        """The dataflow started: from now on the point shows what the trace holds."""
        point = self._points.get((id, incarnation))
        if point is None:
            return
        self._send_trace(point.trace)
        self._send([Published(id, incarnation, point.trace.number)])

    def changed(self, arrangement: Arrangement) -> None:
        """The arrangement may have changed: mirror it, now or when the socket has room."""
        trace = self._traces.get(_key(arrangement))
        if trace is None or trace.version < 0 or trace.version == arrangement.version:
            return
        if not trace.dirty:
            trace.dirty = True
            self._dirty.append(trace)

    def flush(self) -> None:
        """Mirror what changed, unless the reader is behind; then the next call does it."""
        if not self._dirty or self._link.backlogged:
            return
        dirty, self._dirty = self._dirty, []
        messages: list[RegistryMessage] = []
        fds: list[int] = []
        for trace in dirty:
            trace.dirty = False
            if trace.points:
                messages.append(self._delta(trace, fds))
        if messages:
            self._link.send(encode_messages(messages), fds)

    def allowed(self, id: GlobalId, incarnation: int, frontier: Frontier) -> None:
        """The controller's permission, remembered for the gauges; the arrangement has its own hold for it."""
        point = self._points.get((id, incarnation))
        if point is not None:
            point.allowed = frontier

    def unregister(self, id: GlobalId, incarnation: int) -> None:
        """The export was dropped. The reader keeps its hold on the arrangement as long as it needs."""
        point = self._points.get((id, incarnation))
        if point is None:
            return
        point.writer_gone = True
        point.allowed = None
        if point.hold.released:
            self._forget((id, incarnation))
        elif point.trace.version >= 0:
            self._send([Unpublished(id, incarnation)])

    # -- the reader's reports

    def handle(self, payload: bytes) -> None:
        for message in decode_messages(payload):
            if isinstance(message, LogChanges):
                self.on_log(message.variant, decode_updates(message.updates))
                continue
            assert isinstance(message, HoldMoved), message
            key = (message.id, message.incarnation)
            point = self._points.get(key)
            if point is None:
                self._early[key] = message.time
            elif message.time is None:
                point.hold.release()
                if point.writer_gone:
                    self._forget(key)
            else:
                point.hold.downgrade(message.time)

    # -- gauges

    def gauges(self) -> tuple[int, int]:
        """(hold gap in ms, held points): how far readers hold since behind what the controller allows. Zero is healthy."""
        gap_ms = 0
        held = 0
        for point in self._points.values():
            if point.writer_gone:
                held += not point.hold.released
            elif not point.hold.released and point.allowed is not None and point.hold.time < point.allowed:
                held += 1
                gap_ms = max(gap_ms, point.allowed - point.hold.time)
        return gap_ms, held

    @property
    def point_count(self) -> int:
        return len(self._points)

    def leftovers(self) -> int:
        """What is alive, for leak checks."""
        return len(self._points) + len(self._traces) + len(self._early)

    # -- internal

    def _forget(self, key: PointKey) -> None:
        point = self._points.pop(key)
        point.hold.release()
        trace = point.trace
        trace.points.discard(key)
        if not trace.points:
            del self._traces[_key(trace.arrangement)]
            if trace.version >= 0:
                self._send([TraceDropped(trace.number)])

    def _send_trace(self, trace: PublishedTrace) -> None:
        if trace.version != trace.arrangement.version:
            fds: list[int] = []
            message = self._delta(trace, fds)
            self._link.send(encode_messages([message]), fds)

    def _send(self, messages: list[RegistryMessage]) -> None:
        self._link.send(encode_messages(messages), [])

    def _delta(self, trace: PublishedTrace, fds: list[int]) -> TraceChanged:
        """The trace as it stands, with the batches the reader lacks. Descriptors are appended to fds in order."""
        arrangement = trace.arrangement
        trace.version = arrangement.version
        parcels: list[BatchParcel] = []
        chains = []
        for spine in (arrangement.oks, arrangement.errs):
            uids = []
            for batch in spine.chain():
                if batch.uid not in trace.sent:
                    parcels.append(self._parcel(batch, fds, arrangement))
                uids.append(batch.uid)
            chains.append(tuple(uids))
        oks, errs = chains
        trace.sent = {*oks, *errs}
        return TraceChanged(
            trace.number, oks, errs, arrangement.oks.upper, arrangement.errs.upper, arrangement.since, tuple(parcels)
        )

    def _parcel(self, batch: Batch, fds: list[int], arrangement: Arrangement) -> BatchParcel:
        size = batch.size_encoded
        if size < segments.INLINE_BYTES:
            data = bytearray(size)
            batch.write_into(memoryview(data))
            return BatchParcel(batch.uid, size, bytes(data))
        fd = segments.write(batch)
        mapped = segments.read(fd, size)
        mapped.uid = batch.uid
        # From here on the segment is our copy too: the private one goes once nobody reads it.
        if not arrangement.oks.replace(batch, mapped):
            arrangement.errs.replace(batch, mapped)
        fds.append(fd)
        return BatchParcel(batch.uid, size, None)


def _key(arrangement: Arrangement) -> int:
    return id(arrangement)
