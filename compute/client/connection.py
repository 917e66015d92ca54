"""Connection: frames over one non-blocking Unix socket inside an asyncio loop.

Callbacks instead of streams: a reply reaches its handler in the same turn of the loop in which the socket became
readable, without a task switch. Writes go out at once and are queued only when the socket is full.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable

from compute.protocol.framing import Deframer

_READ_BYTES = 1 << 20


class Connection:
    """on_frames(frames): at least one complete frame. on_close(): once, at end of file or error, not after close()."""

    def __init__(
        self,
        sock: socket.socket,
        on_frames: Callable[[list[bytes]], None],
        on_close: Callable[[], None],
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._fd = sock.fileno()
        self._on_frames = on_frames
        self._on_close = on_close
        self._loop = loop if loop is not None else asyncio.get_running_loop()
        self._deframer = Deframer()
        self._unsent: deque[memoryview] = deque()
        self._open = True
        self._loop.add_reader(self._fd, self._readable)

    def send(self, data: bytes) -> None:
        if not self._open:
            return
        if self._unsent:
            self._unsent.append(memoryview(data))
            return
        try:
            sent = self._sock.send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._lost()
            return
        if sent < len(data):
            self._unsent.append(memoryview(data)[sent:])
            self._loop.add_writer(self._fd, self._writable)

    def close(self) -> None:
        """Forget the peer; what was not sent yet is lost."""
        if self._open:
            self._open = False
            self._loop.remove_reader(self._fd)
            self._loop.remove_writer(self._fd)
            self._unsent.clear()
            self._sock.close()

    def _lost(self) -> None:
        if self._open:
            self.close()
            # Not from inside send(): its caller is in the middle of something.
            self._loop.call_soon(self._on_close)

    def _readable(self) -> None:
        try:
            data = self._sock.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lost()
            return
        frames = self._deframer.feed(data)
        if frames:
            self._on_frames(frames)

    def _writable(self) -> None:
        unsent = self._unsent
        try:
            while unsent:
                sent = self._sock.send(unsent[0])
                if sent < len(unsent[0]):
                    unsent[0] = unsent[0][sent:]
                    return
                unsent.popleft()
        except BlockingIOError:
            return
        except OSError:
            self._lost()
            return
        self._loop.remove_writer(self._fd)
