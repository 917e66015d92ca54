"""ShardClient: a worker's end of the shard server, for a select() loop without asyncio.

    client = ShardClient.connect(path)
    reader = client.open("u5", as_of, on_updates)       # calls on_updates(parts, upper) from poll() only
    select([client]) ... client.poll()

Requests are sent at once (the server always reads, so a send does not wait long); answers and changes are read by
`poll` without waiting. Times before a reader's as_of are brought up to it.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mzlite.repr.timestamp import MAX, Frontier, Timestamp, frontier_le
from mzlite.repr.updates import Updates
from mzlite.storage import frames as f
from mzlite.storage.frames import FrameReader, frame, read_batch, send_now
from mzlite.storage.model import make_part
from mzlite.storage.segment import Segment

_NOTHING = Updates((), np.zeros(0, np.uint64), np.zeros(0, np.int64))
OnUpdates = Callable[[Sequence[Updates], Frontier], None]
OnAppended = Callable[[bool, Frontier], None]
OnFailed = Callable[[str], None]


class Snapshot(NamedTuple):
    """The shard's contents before upper, in parts; errs likewise."""

    reader: int
    parts: list[Updates]
    errs: list[Updates]
    upper: Frontier


class Append(NamedTuple):
    """Changes; everything before upper has now been given."""

    reader: int
    parts: list[Updates]
    errs: list[Updates]
    upper: Frontier


class Progress(NamedTuple):
    """No changes before upper. upper None: complete."""

    reader: int
    upper: Frontier


class Appended(NamedTuple):
    """Answer to an append: done, or not because the shard's upper is not the `lower` given."""

    request: int
    done: bool
    upper: Frontier


class Failed(NamedTuple):
    """A reader could not be opened, or its shard was dropped."""

    reader: int
    message: str


Event = Snapshot | Append | Progress | Appended | Failed


class _Reader:
    __slots__ = ("as_of", "errs", "is_table", "on_errors", "on_failed", "on_updates", "parts", "ready", "upper")

    def __init__(
        self, as_of: Timestamp, on_updates: OnUpdates | None, on_errors: OnUpdates | None, on_failed: OnFailed | None
    ) -> None:
        self.as_of = as_of
        self.on_updates = on_updates
        self.on_errors = on_errors
        self.on_failed = on_failed
        self.is_table = False
        self.ready = False
        self.upper: Frontier = 0
        self.parts: list[Updates] = []  # received, waiting for the upper that completes them
        self.errs: list[Updates] = []

    def add(self, oks: Updates, errs: Updates | None) -> None:
        if len(oks):
            self.parts.append(_advanced(oks, self.as_of))
        if errs is not None:
            self.errs.append(_advanced(errs, self.as_of))

    def take(self) -> tuple[list[Updates], list[Updates]]:
        taken = self.parts, self.errs
        self.parts, self.errs = [], []
        return taken


def _advanced(updates: Updates, as_of: Timestamp) -> Updates:
    """Times brought up to as_of. A snapshot's all become one: no copy of a large array for that."""
    if len(updates) and int(updates.time.max()) <= as_of:
        return updates.with_time(np.broadcast_to(np.uint64(as_of), len(updates)))
    return updates.advance_to(as_of)


class ShardClient:
    """closed: the server has gone; a worker then ends."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._incoming = FrameReader()
        self._readers: dict[int, _Reader] = {}
        self._appends: dict[int, OnAppended | None] = {}
        self._next = 0
        self.closed = False

    @classmethod
    def connect(cls, path: Path | str) -> ShardClient:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.connect(str(path))
        return cls(sock)

    def fileno(self) -> int:
        return self._sock.fileno()

    def disconnect(self) -> None:
        self._incoming.close()
        self._sock.close()
        self.closed = True

    def open(
        self,
        shard: str,
        as_of: Timestamp,
        on_updates: OnUpdates | None = None,
        on_errors: OnUpdates | None = None,
        on_failed: OnFailed | None = None,
        any_since: bool = False,
    ) -> int:
        """Read a shard from its contents at as_of on. any_since: however far it has been compacted beyond as_of.

        Callbacks come from poll: on_errors (only when there are error rows) before on_updates, whose parts may be none.
        """
        self._next += 1
        self._readers[self._next] = _Reader(as_of, on_updates, on_errors, on_failed)
        self._request(frame(f.OPEN, self._next, shard, MAX if any_since else as_of))
        return self._next

    def close(self, reader: int) -> None:
        """No more calls or events for it. Unknown readers are ignored."""
        if self._readers.pop(reader, None) is not None:
            self._request(frame(f.CLOSE, reader))

    def append(
        self,
        shard: str,
        lower: Timestamp,
        upper: Frontier,
        updates: Updates | None,
        on_appended: OnAppended | None = None,
        errs: Updates | None = None,
        request: int | None = None,
    ) -> int:
        """Compare-and-append to a view's shard; the id that `Appended` carries. request: of pieces staged for it."""
        if request is None:
            request = self.begin_append()
        self._appends[request] = on_appended
        if updates is None and errs is None:
            self._request(frame(f.APPEND, request, shard, lower, upper, None))
            return request
        part = make_part(0, lower, upper, _NOTHING if updates is None else updates, errs)
        batch, segment = f.batch_of(part)
        self._request_with(frame(f.APPEND, request, shard, lower, upper, batch, segment=segment is not None), segment)
        return request

    def begin_append(self) -> int:
        """A request id for `stage` and the `append` that completes it: a large append in small steps."""
        self._next += 1
        return self._next

    def stage(self, request: int, updates: Updates) -> None:
        """Send a piece ahead; nobody sees it before its append is done."""
        batch, segment = f.batch_of(make_part(0, 0, None, updates))
        self._request_with(frame(f.STAGE, request, batch, segment=segment is not None), segment)

    def _request_with(self, data: bytes, segment: Segment | None) -> None:
        try:
            sent = send_now(self._sock, data, segment)
        except OSError:
            self.closed = True
            return
        if sent < len(data):
            self._request(data[sent:])

    def _request(self, data: bytes) -> None:
        try:
            self._sock.sendall(data)
        except OSError:
            self.closed = True

    def poll(self) -> list[Event]:
        """Read what has arrived, call the callbacks, return the same as events. Does not wait."""
        if not self._incoming.receive(self._sock):
            self.closed = True
        events: list[Event] = []
        for message, fd in self._incoming.frames():
            self._handle(message, fd, events)
        return events

    def _handle(self, message: list[Any], fd: int | None, events: list[Event]) -> None:
        match message:
            case [f.COMMIT, upper, batches]:
                self._commit(upper, batches, events)
            case [f.PART, id, batch]:
                oks, errs = read_batch(batch, fd)
                reader = self._readers.get(id)
                if reader is not None:
                    reader.add(oks, errs)
            case [f.SNAPSHOT, id, upper, is_table]:
                reader = self._readers.get(id)
                if reader is not None:
                    reader.is_table, reader.ready, reader.upper = is_table, True, upper
                    parts, errors = reader.take()
                    events.append(Snapshot(id, parts, errors, upper))
                    _call(reader, parts, errors, upper)
            case [f.PROGRESS, id, upper, batch]:
                reader = self._readers.get(id)
                if batch is not None:
                    oks, errs = read_batch(batch, fd)
                    if reader is not None:
                        reader.add(oks, errs)
                if reader is not None:
                    self._advance(id, reader, upper, events)
            case [f.APPENDED, request, done, upper]:
                on_appended = self._appends.pop(request, None)
                events.append(Appended(request, done, upper))
                if on_appended is not None:
                    on_appended(done, upper)
            case [f.FAILED, id, text]:
                reader = self._readers.pop(id, None)
                if reader is not None:
                    events.append(Failed(id, text))
                    if reader.on_failed is not None:
                        reader.on_failed(text)
            case _:
                raise AssertionError(f"unknown frame {message[0]!r}")

    def _commit(self, upper: Timestamp, batches: list[Any], events: list[Event]) -> None:
        for ids, batch in batches:
            oks, errs = read_batch(batch, None)
            for id in ids:
                reader = self._readers.get(id)
                if reader is not None:
                    reader.add(oks, errs)
        for id, reader in list(self._readers.items()):
            if reader.is_table and reader.ready:
                self._advance(id, reader, upper, events)

    def _advance(self, id: int, reader: _Reader, upper: Frontier, events: list[Event]) -> None:
        if self._readers.get(id) is not reader:
            return  # closed by a callback
        if upper is not None and frontier_le(upper, reader.upper):
            return  # news from before its snapshot
        reader.upper = upper
        parts, errs = reader.take()
        events.append(Append(id, parts, errs, upper) if parts or errs else Progress(id, upper))
        _call(reader, parts, errs, upper)


def _call(reader: _Reader, parts: list[Updates], errs: list[Updates], upper: Frontier) -> None:
    if errs and reader.on_errors is not None:
        reader.on_errors(errs, upper)
    if reader.on_updates is not None:
        reader.on_updates(parts, upper)
