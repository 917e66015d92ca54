"""Frames: a little-endian 32-bit length, then that many bytes of msgpack. No I/O here.

A frame on a control socket holds a *list* of messages: what one side produced in one step travels in one write.
"""

from __future__ import annotations

import struct

import msgspec

from compute.protocol.command import ComputeCommand
from compute.protocol.response import ComputeResponse

_LENGTH = struct.Struct("<I")
HEADER_BYTES = _LENGTH.size

encode_message = msgspec.msgpack.Encoder().encode
decode_commands = msgspec.msgpack.Decoder(list[ComputeCommand]).decode
decode_responses = msgspec.msgpack.Decoder(list[ComputeResponse]).decode


def frame(payload: bytes) -> bytes:
    """One frame around payload."""
    return _LENGTH.pack(len(payload)) + payload


class Deframer:
    """Cuts a byte stream into frames; keeps the incomplete tail."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """Frames completed by data, in order."""
        buffer = self._buffer
        if not buffer and len(data) >= HEADER_BYTES and _LENGTH.unpack_from(data)[0] == len(data) - HEADER_BYTES:
            return [data[HEADER_BYTES:]]  # the usual case: one read, one frame
        buffer += data
        frames = []
        at = 0
        while len(buffer) - at >= HEADER_BYTES:
            end = at + HEADER_BYTES + _LENGTH.unpack_from(buffer, at)[0]
            if len(buffer) < end:
                break
            frames.append(bytes(memoryview(buffer)[at + HEADER_BYTES : end]))
            at = end
        if at:
            del buffer[:at]
        return frames
