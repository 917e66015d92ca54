"""Flat bytes for columns and updates: what frames, segments and shard logs carry.

    u32 header size | msgpack header (n, with updates?, column headers, buffer sizes) | pad | buffer | pad | buffer ...

Every buffer starts 8-aligned, so decoding borrows the memory it is given: no copy, a few microseconds a row batch of
any size. The writer's and the reader's process share an architecture (they share a machine or a data directory).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from mzlite.repr.column import Column
from mzlite.repr.layouts import buffer_dtypes, from_buffers
from mzlite.repr.updates import Updates

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode
_U32 = struct.Struct("<I")
_PAD = [b"", *(bytes(8 - k) for k in range(1, 8))]
_U64 = np.dtype(np.uint64)
_I64 = np.dtype(np.int64)
Buffer = bytes | bytearray | memoryview


class Encoding:
    """An encoding planned but not yet written: its size is known and `write_into` copies once.

    parts: byte strings and arrays, alternating with padding, `size` bytes in all.
    """

    __slots__ = ("parts", "size")

    def __init__(self, parts: list[Any], size: int) -> None:
        self.parts = parts
        self.size = size

    def to_bytes(self) -> bytes:
        return b"".join(self.parts)

    def write_into(self, target: memoryview) -> int:
        """Write at the start of `target` (at least `size` bytes); returns `size`."""
        at = 0
        for part in self.parts:
            view = memoryview(part).cast("B") if len(part) else b""
            end = at + len(view)
            target[at:end] = view
            at = end
        assert at == self.size, (at, self.size)
        return at


def plan_columns(columns: Sequence[Column], n: int) -> Encoding:
    """Encoding of n rows of `columns` (n matters when there are none)."""
    headers: list[Any] = []
    arrays: list[NDArray[Any]] = []
    for col in columns:
        header, buffers = col.buffers()
        headers.append(header)
        arrays += buffers
    return _plan(n, 0, headers, arrays)


def plan_updates(u: Updates) -> Encoding:
    headers: list[Any] = []
    arrays: list[NDArray[Any]] = [u.time, u.diff]
    for col in u.columns:
        header, buffers = col.buffers()
        headers.append(header)
        arrays += buffers
    return _plan(len(u), 1, headers, arrays)


def _plan(n: int, timed: int, headers: list[Any], arrays: list[NDArray[Any]]) -> Encoding:
    sizes = [a.nbytes for a in arrays]
    head = _encode((n, timed, headers, sizes))
    start = 4 + len(head)
    pad = -start & 7
    parts: list[Any] = [_U32.pack(len(head)), head, bytes(pad)]
    total = start + pad
    for array, size in zip(arrays, sizes):
        if not size:
            continue
        parts.append(array.tobytes() if size < 4096 else np.ascontiguousarray(array).view(np.uint8).data)
        total += size
        if size & 7:
            parts.append(_PAD[size & 7])
            total += -size & 7
    return Encoding(parts, total)


def encode_columns(columns: Sequence[Column], n: int) -> bytes:
    return plan_columns(columns, n).to_bytes()


def encode_updates(u: Updates) -> bytes:
    return plan_updates(u).to_bytes()


def decode_columns(buffer: Buffer) -> tuple[tuple[Column, ...], int]:
    """Columns over the memory of `buffer`, and the number of rows."""
    n, timed, columns, _ = _read(buffer)
    assert not timed
    return columns, n


def decode_updates(buffer: Buffer) -> Updates:
    """Updates over the memory of `buffer` (8-aligned if its start is; numpy copes when it is not)."""
    _, timed, columns, arrays = _read(buffer)
    assert timed
    return Updates(columns, arrays[0], arrays[1])


def _read(buffer: Buffer) -> tuple[int, int, tuple[Column, ...], list[NDArray[Any]]]:
    size = _U32.unpack_from(buffer)[0]
    start = 4 + size
    n, timed, headers, sizes = _decode(memoryview(buffer)[4:start])
    at = start + (-start & 7)
    arrays: list[NDArray[Any]] = []
    columns: list[Column] = []
    nth = 0
    if timed:
        for dtype in (_U64, _I64):
            arrays.append(np.frombuffer(buffer, dtype, n, at))
            at += 8 * n
        nth = 2
    for header in headers:
        mine: list[NDArray[Any]] = []
        for dtype in buffer_dtypes(header):
            nbytes = sizes[nth]
            nth += 1
            if nbytes:
                mine.append(np.frombuffer(buffer, dtype, nbytes // dtype.itemsize, at))
                at += nbytes + (-nbytes & 7)
            else:
                mine.append(np.zeros(0, dtype))
        columns.append(from_buffers(header, mine))
    return n, timed, tuple(columns), arrays


def encoded_size(u: Updates) -> int:
    """Bytes of `encode_updates(u)`, without making them."""
    return plan_updates(u).size


def write_into(u: Updates, target: memoryview) -> int:
    """Write `encode_updates(u)` at the start of `target`; returns the bytes written."""
    return plan_updates(u).write_into(target)
