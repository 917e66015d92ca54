"""Link: frames that may carry descriptors, over a non-blocking Unix socket.

What the socket does not take is queued without bound: a reader that has stalled must never block maintenance. The
publisher looks at `backlogged` and lets changes of a trace run together instead of queueing each.
"""

from __future__ import annotations

import errno
import os
import socket
from collections import deque
from collections.abc import Sequence

from compute.protocol.framing import Deframer, frame

_READ_BYTES = 1 << 20
_MAX_FDS = 250
_FULL = {errno.EAGAIN, errno.EWOULDBLOCK, errno.ENOBUFS, getattr(errno, "ETOOMANYREFS", errno.EAGAIN)}


class LinkClosed(Exception):
    """The other side is gone."""


class Link:
    """send takes ownership of the descriptors: they are closed once they are on their way."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.sock = sock
        self._unsent: deque[tuple[memoryview, list[int]]] = deque()
        self._deframer = Deframer()
        self._fds: deque[int] = deque()

    def fileno(self) -> int:
        return self.sock.fileno()

    @property
    def backlogged(self) -> bool:
        return bool(self._unsent)

    def send(self, payload: bytes, fds: Sequence[int] = ()) -> None:
        """Send one frame, or queue it."""
        data = memoryview(frame(payload))
        fds = list(fds)
        # A message carries at most so many descriptors: extra ones ride on its first bytes.
        while len(fds) > _MAX_FDS:
            self._unsent.append((data[:1], fds[:_MAX_FDS]))
            data, fds = data[1:], fds[_MAX_FDS:]
        self._unsent.append((data, fds))
        self.flush()

    def flush(self) -> bool:
        """Write what the socket takes. True when nothing is left."""
        unsent = self._unsent
        while unsent:
            data, fds = unsent[0]
            try:
                sent = socket.send_fds(self.sock, [data], fds) if fds else self.sock.send(data)
            except OSError as error:
                if error.errno in _FULL:
                    return False
                raise LinkClosed from error
            for fd in fds:
                os.close(fd)
            if sent < len(data):
                unsent[0] = (data[sent:], [])
            else:
                unsent.popleft()
        return True

    def receive(self) -> list[bytes]:
        """Complete frames that have arrived. LinkClosed at end of file."""
        frames: list[bytes] = []
        while True:
            try:
                data, fds, _, _ = socket.recv_fds(self.sock, _READ_BYTES, _MAX_FDS)
            except BlockingIOError:
                return frames
            except OSError as error:
                raise LinkClosed from error
            self._fds.extend(fds)
            if not data:
                if frames:
                    return frames  # the end of file is seen again on the next call
                raise LinkClosed
            frames.extend(self._deframer.feed(data))
            if len(data) < _READ_BYTES and not fds:
                return frames

    def take_fd(self) -> int:
        """The next descriptor that arrived; the caller closes it. Frames are read in order, so they match."""
        return self._fds.popleft()

    def close(self) -> None:
        for _, fds in self._unsent:
            for fd in fds:
                os.close(fd)
        self._unsent.clear()
        while self._fds:
            os.close(self._fds.popleft())
        self.sock.close()
