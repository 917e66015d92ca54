"""Batch: immutable sorted updates. The one idea: a row is ordered by one integer, its *code*.

    code = key hash (upper 32 bits) . row hash (lower 32 bits)

so sorting, matching and merging work on a single uint64 array, and all rows of a key lie in one code range. Hashes only
order; whoever reads a batch verifies equality of the gathered values. A batch may also carry `order`, an int64 that
embeds a column's SQL order: rows of a key are then sorted by it first, and the least row of a key is the first one.

Source: differential dataflow's OrdValBatch, with the trie replaced by hash order.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from mzlite.repr.column import I64, U64, Column
from mzlite.repr.layouts import buffer_dtypes, from_buffers
from mzlite.repr.timestamp import Frontier, Timestamp

KEY_SHIFT = np.uint64(32)
LOW_MASK = np.uint64(0xFFFFFFFF)
HIGH_MASK = np.uint64(0xFFFFFFFF00000000)

_uids = itertools.count(1)
_encoder = msgspec.msgpack.Encoder()


def _aligned(at: int) -> int:
    return (at + 7) & ~7


class Description(msgspec.Struct, frozen=True):
    """Updates at times lower <= t < upper, of which those before `since` have been advanced to it."""

    lower: Timestamp
    upper: Frontier
    since: Timestamp


class Batch:
    """Invariants (`check`):

    1. code, time, diff and all columns have n rows; diff is int64[n] or int64[n, k].
    2. rows are sorted by (code, time); with `order`, by (key hash, order, row hash, time).
    3. no two rows have equal (row, time), and no diff is zero.
    4. arrays are read-only.
    """

    __slots__ = ("code", "columns", "description", "diff", "order", "time", "time_max", "time_min", "uid")

    def __init__(
        self,
        code: U64,
        columns: Sequence[Column],
        time: U64,
        diff: I64,
        description: Description,
        order: I64 | None = None,
        time_bounds: tuple[int, int] | None = None,
    ) -> None:
        assert len(code) == len(time) == len(diff), (len(code), len(time), len(diff))
        self.code = code
        self.columns = tuple(columns)
        self.time = time
        self.diff = diff
        self.order = order
        self.description = description
        if time_bounds is not None:
            self.time_min, self.time_max = time_bounds
        elif len(time) == 1 or (len(time) and time.strides[0] == 0):
            self.time_min = self.time_max = int(time[0])
        else:
            self.time_min, self.time_max = (int(time.min()), int(time.max())) if len(time) else (0, 0)
        self.uid = next(_uids)

    def __len__(self) -> int:
        return len(self.code)

    @property
    def nbytes(self) -> int:
        """Bytes held: a constant time or diff is one stored value seen n times."""
        total = self.code.nbytes + sum(c.nbytes for c in self.columns)
        for array in (self.time, self.diff, self.order):
            if array is not None:
                total += array.itemsize if array.strides[0] == 0 else array.nbytes
        return total

    def slice(self, start: int, stop: int) -> Batch:
        return Batch(
            self.code[start:stop],
            [c.slice(start, stop) for c in self.columns],
            self.time[start:stop],
            self.diff[start:stop],
            self.description,
            None if self.order is None else self.order[start:stop],
            (self.time_min, self.time_max),
        )

    def arrays(self) -> tuple[bytes, list[NDArray[Any]]]:
        """The header and the flat arrays that a segment holds, in order."""
        n = len(self)
        arrays: list[NDArray[Any]] = [self.code]
        headers: list[Any] = []
        for column in self.columns:
            header, flat = column.buffers()
            headers.append((header, [len(a) for a in flat]))
            arrays.extend(flat)
        forms: list[int] = []
        for array in (self.time, self.diff):
            constant = n > 0 and array.ndim == 1 and array.strides[0] == 0
            forms.append(0 if constant else array.ndim)
            arrays.append(array[:1] if constant else array)
        if self.order is not None:
            arrays.append(self.order)
        d = self.description
        width = self.diff.shape[1] if self.diff.ndim == 2 else 0
        header_bytes = _encoder.encode(
            (
                n,
                headers,
                forms,
                width,
                self.order is not None,
                (d.lower, d.upper, d.since),
                (self.time_min, self.time_max),
            )
        )
        return header_bytes, arrays

    @staticmethod
    def from_arrays(header: bytes, buffer: memoryview) -> Batch:
        """Inverse of `arrays`: the arrays lie in `buffer` one after the other, each 8-aligned. No copy."""
        n, headers, forms, width, has_order, (lower, upper, since), bounds = msgspec.msgpack.decode(header)
        at = 0

        def read(dtype: Any, count: int) -> NDArray[Any]:
            nonlocal at
            array = np.frombuffer(buffer, dtype, count, at)
            at = _aligned(at + array.nbytes)
            return array

        code = read(np.uint64, n)
        columns = []
        for column_header, sizes in headers:
            flat = [read(dtype, size) for dtype, size in zip(buffer_dtypes(column_header), sizes)]
            columns.append(from_buffers(column_header, flat))
        planes: list[NDArray[Any]] = []
        for form, dtype in zip(forms, (np.uint64, np.int64)):
            if form == 0:
                planes.append(np.broadcast_to(read(dtype, 1)[0], (n,)))
            elif form == 1:
                planes.append(read(dtype, n))
            else:
                planes.append(read(dtype, n * width).reshape(n, width))
        order = read(np.int64, n) if has_order else None
        time, diff = planes
        return Batch(code, columns, time, diff, Description(lower, upper, since), order, (bounds[0], bounds[1]))

    @property
    def size_encoded(self) -> int:
        """Bytes that `write_into` needs."""
        header, arrays = self.arrays()
        return _aligned(8 + len(header)) + sum(_aligned(a.nbytes) for a in arrays)

    def write_into(self, target: memoryview) -> int:
        """One contiguous segment: header size, header, arrays. Returns the bytes written."""
        header, arrays = self.arrays()
        target[:8] = len(header).to_bytes(8, "little")
        target[8 : 8 + len(header)] = header
        at = _aligned(8 + len(header))
        for array in arrays:
            size = array.nbytes
            if size:
                np.frombuffer(target, np.uint8, size, at)[:] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            at = _aligned(at + size)
        return at

    @staticmethod
    def read_from(source: memoryview) -> Batch:
        """Map a segment; the batch borrows the memory."""
        size = int.from_bytes(source[:8], "little")
        return Batch.from_arrays(bytes(source[8 : 8 + size]), source[_aligned(8 + size) :])

    def encode(self) -> bytes:
        """A private copy in one piece, for frames and tests."""
        out = bytearray(self.size_encoded)
        self.write_into(memoryview(out))
        return bytes(out)

    def check(self) -> None:
        """Test the invariants; linear."""
        n = len(self.code)
        assert all(len(c) == n for c in self.columns), "1: lengths differ"
        if n > 1:
            assert bool((self.code[1:] & HIGH_MASK >= self.code[:-1] & HIGH_MASK).all()), "2: not sorted by key"
            if self.order is None:
                later = self.code[1:] > self.code[:-1]
                assert bool((later | (self.code[1:] == self.code[:-1])).all()), "2: not sorted by code"
            else:
                same_key = self.code[1:] & HIGH_MASK == self.code[:-1] & HIGH_MASK
                assert bool((~same_key | (self.order[1:] >= self.order[:-1])).all()), "2: not sorted by order"
        nonzero = self.diff != 0 if self.diff.ndim == 1 else (self.diff != 0).any(axis=1)
        assert bool(nonzero.all()), "3: a zero diff"
