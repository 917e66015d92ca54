"""Frames between the shard server and its clients: u32 length, then a msgpack list; some carry one descriptor.

    client to server
        open      reader, shard, as_of                      answered with part*, then snapshot; or failed
        close     reader                                    no answer; unknown readers are ignored
        stage     request, batch                            a piece of a large append; no answer
        append    request, shard, lower, upper, batch       answered with appended; the staged pieces belong to it
    server to client
        part      reader, batch                             a piece of the snapshot
        snapshot  reader, upper, is_table                   the pieces so far hold everything before upper
        commit    upper, [readers, batch]*                  tables: every reader of a table is now at upper
        progress  reader, upper, batch | nil                a view's shard; upper nil: complete
        appended  request, done, upper
        failed    reader, message                           not opened, or the shard was dropped

A batch is [bytes | nil, errs bytes | nil, segment kind, segment size]: rows inline in the flat encoding, or (bytes nil) in
the segment whose descriptor travels with the frame. A commit with large batches is split, so that a frame has at most
one descriptor.
"""

from __future__ import annotations

import array
import contextlib
import os
import socket
from collections import deque
from typing import Any

import msgspec

from mzlite.repr.encode import decode_updates
from mzlite.repr.updates import Updates
from mzlite.storage.model import Part
from mzlite.storage.segment import Segment, read_segment

OPEN, CLOSE, APPEND, PART, SNAPSHOT, COMMIT, PROGRESS, APPENDED, FAILED, STAGE = range(10)
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode
_ANCILLARY = socket.CMSG_SPACE(64 * 4)
_CLOEXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
_READ = 1 << 18


def frame(kind: int, *fields: Any, segment: bool = False) -> bytes:
    """Bytes of one frame. segment: a descriptor is sent with it."""
    body = _encode((kind, segment, *fields))
    return len(body).to_bytes(4, "little") + body


def batch_of(part: Part) -> tuple[tuple[bytes | None, bytes | None, str, int], Segment | None]:
    """A part as a frame field, and the segment that must travel with it."""
    segment = part.segment
    if segment is None:
        return (part.encoded(), part.encoded_errs(), "", 0), None
    return (None, part.encoded_errs(), segment.kind, segment.size), segment


def read_batch(batch: Any, fd: int | None) -> tuple[Updates, Updates | None]:
    """(rows, errors) of a batch field; maps and closes the descriptor."""
    rows, errs, kind, size = batch
    if rows is None:
        assert fd is not None
        try:
            oks = read_segment(fd, size, kind)
        finally:
            os.close(fd)
    else:
        oks = decode_updates(rows)
    return oks, None if errs is None else decode_updates(errs)


def keep_batch(batch: Any, fd: int | None) -> tuple[Updates, Segment | None]:
    """(rows, segment): as `read_batch`, for rows alone, keeping the segment to share it further."""
    rows, _, kind, size = batch
    if rows is not None:
        return decode_updates(rows), None
    assert fd is not None
    segment = Segment(fd, size, kind)
    return segment.read(), segment


class FrameReader:
    """Cuts a stream socket's bytes into frames and hands each its descriptor."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._fds: deque[int] = deque()

    def receive(self, sock: socket.socket) -> bool:
        """Read what is there without waiting. False at the end of the stream."""
        while True:
            try:
                data, ancillary, _, _ = sock.recvmsg(_READ, _ANCILLARY, socket.MSG_DONTWAIT | _CLOEXEC)
            except (BlockingIOError, InterruptedError):
                return True
            except ConnectionError:
                return False
            for level, kind, payload in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    fds = array.array("i")
                    fds.frombytes(payload[: len(payload) - len(payload) % fds.itemsize])
                    self._fds.extend(fds)
            if not data:
                return False
            self._buffer += data
            if len(data) < _READ and not ancillary:
                return True

    def frames(self) -> list[tuple[list[Any], int | None]]:
        """The complete frames so far: ([kind, fields...], descriptor or None)."""
        out: list[tuple[list[Any], int | None]] = []
        buffer = self._buffer
        at = 0
        while len(buffer) - at >= 4:
            end = at + 4 + int.from_bytes(buffer[at : at + 4], "little")
            if end > len(buffer):
                break
            message = _decode(memoryview(buffer)[at + 4 : end])
            fd = self._fds.popleft() if message[1] else None
            del message[1]
            out.append((message, fd))
            at = end
        if at:
            del buffer[:at]
        return out

    def close(self) -> None:
        while self._fds:
            with contextlib.suppress(OSError):
                os.close(self._fds.popleft())


def send_now(sock: socket.socket, data: memoryview | bytes, segment: Segment | None, flags: int = 0) -> int:
    """One send; returns the bytes taken. The descriptor goes with the first byte."""
    if segment is None:
        return sock.send(data, flags)
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [segment.fd]))]
    return sock.sendmsg([data], rights, flags)
