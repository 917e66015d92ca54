"""ShardServer: gives shards to workers, inside the environment process's event loop.

A reader gets the shard's parts as they stand (large ones by descriptor: nothing is copied) and then every change. The
server never waits for a worker: what a socket does not take is queued, without bound, and progress of tables is not
queued at all but coalesced, so a worker that was busy for a minute gets one upper, not sixty.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import threading
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mzlite.repr.timestamp import Frontier, Timestamp, less_equal
from mzlite.repr.updates import Updates
from mzlite.storage import frames as f
from mzlite.storage.frames import FrameReader, frame, send_now
from mzlite.storage.model import Part, StorageError
from mzlite.storage.segment import Segment
from mzlite.storage.shard import TABLE
from mzlite.storage.storage import Storage

log = logging.getLogger(__name__)


class ShardServer:
    """A `Listener` of storage. Frames of a commit go out before `committed` returns if called on the loop's thread."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = 0
        self._listening: socket.socket | None = None
        self._path: Path | None = None
        self._connections: set[_Connection] = set()

    async def start(self, path: Path | str) -> None:
        """Listen on a Unix socket."""
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._path = Path(path)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind(str(path))
        listening.listen(128)
        listening.setblocking(False)
        self._listening = listening
        self._loop.add_reader(listening.fileno(), self._accept)
        self.storage.add_listener(self)

    async def stop(self) -> None:
        """Close every connection. Idempotent."""
        if self._listening is None:
            return
        assert self._loop is not None and self._path is not None
        self.storage.remove_listener(self)
        self._loop.remove_reader(self._listening.fileno())
        self._listening.close()
        self._listening = None
        for connection in list(self._connections):
            connection.close()
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()

    close = stop

    def _accept(self) -> None:
        assert self._listening is not None and self._loop is not None
        with contextlib.suppress(BlockingIOError, InterruptedError):
            while True:
                sock, _ = self._listening.accept()
                sock.setblocking(False)
                self._connections.add(_Connection(self, sock, self._loop))

    # Listener.

    def committed(self, writes: Sequence[tuple[str, Part]], upper: Timestamp) -> None:
        self._on_loop(self._committed, writes, upper)

    def appended(self, shard: str, parts: Sequence[Part], upper: Frontier) -> None:
        self._on_loop(self._appended, shard, parts, upper)

    def dropped(self, shard: str) -> None:
        self._on_loop(self._dropped, shard)

    def _on_loop(self, call: Any, *args: Any) -> None:
        if threading.get_ident() == self._thread:
            call(*args)
        elif self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call, *args)

    def _committed(self, writes: Sequence[tuple[str, Part]], upper: Timestamp) -> None:
        for connection in list(self._connections):
            connection.committed(writes, upper)

    def _appended(self, shard: str, parts: Sequence[Part], upper: Frontier) -> None:
        for connection in list(self._connections):
            connection.appended(shard, parts, upper)

    def _dropped(self, shard: str) -> None:
        for connection in list(self._connections):
            connection.dropped(shard)

    def forget(self, connection: _Connection) -> None:
        self._connections.discard(connection)


class _Reader:
    """upper: of its snapshot, then (for a view) of what was sent. Changes below it are in the snapshot already."""

    __slots__ = ("id", "is_table", "shard", "upper")

    def __init__(self, id: int, shard: str, is_table: bool, upper: Frontier) -> None:
        self.id = id
        self.shard = shard
        self.is_table = is_table
        self.upper = upper


class _Connection:
    """One worker. Invariant: frames leave in the order they were made; `tables` is sent when the queue has run dry."""

    def __init__(self, server: ShardServer, sock: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        self._server = server
        self._sock = sock
        self._loop = loop
        self._incoming = FrameReader()
        self._queue: deque[tuple[memoryview, Segment | None]] = deque()
        self._readers: dict[int, _Reader] = {}
        self._by_shard: dict[str, list[_Reader]] = {}
        self._staged: dict[int, list[tuple[Updates, Segment | None]]] = {}
        self._tables = 0  # readers of tables
        self._pending_upper: Timestamp | None = None
        self._closed = False
        loop.add_reader(sock.fileno(), self._readable)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        fd = self._sock.fileno()
        self._loop.remove_reader(fd)
        self._loop.remove_writer(fd)
        self._incoming.close()
        self._sock.close()
        self._queue.clear()
        self._server.forget(self)

    # In.

    def _readable(self) -> None:
        alive = self._incoming.receive(self._sock)
        for message, fd in self._incoming.frames():
            self._handle(message, fd)
            if self._closed:
                return
        if not alive:
            self.close()

    def _handle(self, message: list[Any], fd: int | None) -> None:
        match message:
            case [f.OPEN, int(reader), str(shard), int(as_of)]:
                self._open(reader, shard, as_of)
            case [f.CLOSE, int(reader)]:
                self._close_reader(reader)
            case [f.APPEND, request, shard, lower, upper, batch]:
                oks = errs = None
                if batch is not None:
                    oks, errs = f.read_batch(batch, fd)
                staged = self._staged.pop(request, [])
                done, now = self._server.storage.append(shard, lower, upper, oks, errs, staged)
                self._send(frame(f.APPENDED, request, done, now))
            case [f.STAGE, int(request), batch]:
                self._staged.setdefault(request, []).append(f.keep_batch(batch, fd))
            case _:
                if fd is not None:
                    os.close(fd)
                log.error("unknown frame %r: closing the connection", message[0])
                self.close()

    def _open(self, id: int, shard: str, as_of: Timestamp) -> None:
        storage = self._server.storage
        try:
            parts, upper, state = storage.open_reader(shard, as_of)
        except StorageError as e:
            self._send(frame(f.FAILED, id, e.message))
            return
        is_table = state.kind == TABLE
        reader = _Reader(id, shard, is_table, upper)
        self._readers[id] = reader
        self._by_shard.setdefault(shard, []).append(reader)
        self._tables += is_table
        for part in parts:
            batch, segment = f.batch_of(part)
            self._send(frame(f.PART, id, batch, segment=segment is not None), segment)
        self._send(frame(f.SNAPSHOT, id, upper, is_table))

    def _close_reader(self, id: int) -> None:
        reader = self._readers.pop(id, None)
        if reader is None:
            return
        self._tables -= reader.is_table
        same = self._by_shard[reader.shard]
        same.remove(reader)
        if not same:
            del self._by_shard[reader.shard]

    # Out.

    def committed(self, writes: Sequence[tuple[str, Part]], upper: Timestamp) -> None:
        if not self._tables:
            return
        inline: list[Any] = []
        for shard, part in writes:
            readers = [r.id for r in self._by_shard.get(shard, ()) if less_equal(r.upper, part.lower)]
            if not readers:
                continue
            batch, segment = f.batch_of(part)
            if segment is None:
                inline.append((readers, batch))
            else:
                for reader in readers:
                    self._send(frame(f.PART, reader, batch, segment=True), segment)
        if inline or not self._queue:
            self._pending_upper = None
            self._send(frame(f.COMMIT, upper, inline))
        else:
            self._pending_upper = upper

    def appended(self, shard: str, parts: Sequence[Part], upper: Frontier) -> None:
        for reader in self._by_shard.get(shard, ()):
            if reader.upper is None or (upper is not None and upper <= reader.upper):
                continue  # its snapshot was newer
            reader.upper = upper
            for part in parts[:-1]:
                batch, segment = f.batch_of(part)
                self._send(frame(f.PART, reader.id, batch, segment=segment is not None), segment)
            if not parts:
                self._send(frame(f.PROGRESS, reader.id, upper, None))
            else:
                batch, segment = f.batch_of(parts[-1])
                self._send(frame(f.PROGRESS, reader.id, upper, batch, segment=segment is not None), segment)

    def dropped(self, shard: str) -> None:
        for reader in list(self._by_shard.get(shard, ())):
            # Not the empty frontier: what was not complete never will be, and must not be taken for complete.
            self._send(frame(f.FAILED, reader.id, f"shard {shard} was dropped"))
            self._close_reader(reader.id)

    def _send(self, data: bytes, segment: Segment | None = None) -> None:
        if self._closed:
            return
        view = memoryview(data)
        if not self._queue:
            try:
                sent = send_now(self._sock, view, segment)
            except (BlockingIOError, InterruptedError):
                sent = 0
            except OSError:
                self.close()
                return
            if sent == len(view):
                return
            if sent:
                view, segment = view[sent:], None
            self._loop.add_writer(self._sock.fileno(), self._writable)
        self._queue.append((view, segment))

    def _writable(self) -> None:
        while self._queue:
            view, segment = self._queue[0]
            try:
                sent = send_now(self._sock, view, segment)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                self.close()
                return
            if sent < len(view):
                self._queue[0] = (view[sent:], None if sent else segment)
                return
            self._queue.popleft()
        self._loop.remove_writer(self._sock.fileno())
        if self._pending_upper is not None:
            upper, self._pending_upper = self._pending_upper, None
            self._send(frame(f.COMMIT, upper, []))
