"""VarColumn: byte strings of any length as offsets and one run of bytes: Arrow's large_binary, so zero-copy to pyarrow.

Every type of this layout has a canonical encoding (`repr.datum`) in which equal values have equal bytes and bytewise
order is SQL's order, so one class serves them all: hash, equality and order never look at the type.

pyarrow's kernels win on many rows and cost 20-35 us a call, so a handful of rows takes the plain Python way.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mzlite.repr import hashing
from mzlite.repr.column import I64, U64, BoolArray, Column
from mzlite.repr.fixed import concat_valid, equal_valid, mask_nulls
from mzlite.repr.types import Layout

U8 = NDArray[np.uint8]
_FEW = 24
_EMPTY_DATA = np.zeros(0, np.uint8)


class VarColumn(Column):
    """n byte strings: value i is data[offsets[i]:offsets[i+1]].

    offsets: int64[n+1], ascending, not necessarily from 0 (a slice is a view). data: uint8[].
    """

    __slots__ = ("data", "offsets")

    def __init__(self, offsets: I64, data: U8, valid: BoolArray | None = None) -> None:
        assert valid is None or len(valid) == len(offsets) - 1, (len(offsets), valid)
        self.offsets = offsets
        self.data = data
        self.valid = valid

    @classmethod
    def from_bytes(cls, values: Sequence[bytes | None]) -> VarColumn:
        """From Python byte strings; None is NULL."""
        n = len(values)
        if n == 1:
            value = values[0]
            if value is None:
                return cls(np.zeros(2, np.int64), _EMPTY_DATA, np.zeros(1, np.bool_))
            return cls(np.array([0, len(value)], np.int64), np.frombuffer(value, np.uint8))
        offsets = np.zeros(n + 1, np.int64)
        if None in values:
            valid: BoolArray | None = np.fromiter((v is not None for v in values), np.bool_, n)
            present = [v or b"" for v in values]
        else:
            valid, present = None, list(values)  # type: ignore[arg-type]
        np.cumsum(np.fromiter(map(len, present), np.int64, n), out=offsets[1:])
        return cls(offsets, np.frombuffer(b"".join(present), np.uint8), valid)

    @classmethod
    def from_strings(cls, values: Iterable[str | None]) -> VarColumn:
        return cls.from_bytes([None if v is None else v.encode() for v in values])

    @classmethod
    def from_arrow(cls, array: Any) -> VarColumn:
        """From a pyarrow (large_)string or (large_)binary array; zero-copy when large and without NULLs."""
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
            if isinstance(array, pa.ChunkedArray):
                array = array.chunk(0) if array.num_chunks else pa.array([], pa.large_binary())
        if array.type != pa.large_binary():
            if array.type == pa.string() or array.type == pa.large_string():
                array = array.cast(pa.large_string())
            else:
                array = array.cast(pa.large_binary())
        n = len(array)
        _, offsets_buffer, data_buffer = array.buffers()
        if n == 0:
            return cls(np.zeros(1, np.int64), _EMPTY_DATA)
        offsets = np.frombuffer(offsets_buffer, np.int64, n + 1, array.offset * 8)
        data = _EMPTY_DATA if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
        if array.null_count == 0:
            return cls(offsets, data)
        valid = pc.is_valid(array).to_numpy(zero_copy_only=False)
        return cls(offsets, data, valid)

    @property
    def layout(self) -> Layout:
        return Layout.VAR

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return f"VarColumn(n={len(self)}, bytes={int(self.offsets[-1] - self.offsets[0])})"

    def value(self, i: int) -> bytes:
        """Bytes of row i; empty when NULL."""
        return self.data[int(self.offsets[i]) : int(self.offsets[i + 1])].tobytes()

    def to_bytes(self) -> list[bytes | None]:
        """Python byte strings; None is NULL."""
        bounds = self.offsets.tolist()
        first = bounds[0]
        whole = self.data[first : bounds[-1]].tobytes()
        if first:
            bounds = [b - first for b in bounds]
        values: list[bytes | None] = [whole[a:b] for a, b in itertools.pairwise(bounds)]
        if self.valid is not None:
            for i in np.flatnonzero(~self.valid).tolist():
                values[i] = None
        return values

    def to_strings(self) -> list[str | None]:
        """The values decoded as UTF-8; None is NULL."""
        if len(self) > _FEW:
            strings: list[str | None] = self.to_arrow(text=True).to_pylist()
            return strings
        return [None if v is None else v.decode() for v in self.to_bytes()]

    def to_arrow(self, *, text: bool = False) -> Any:
        """A pyarrow large_binary (large_string if text) array over the same memory."""
        n = len(self)
        mask = null_count = None
        if self.valid is not None:
            mask = pa.py_buffer(np.packbits(self.valid, bitorder="little"))
            null_count = n - int(np.count_nonzero(self.valid))
        buffers = [mask, pa.py_buffer(np.ascontiguousarray(self.offsets)), pa.py_buffer(self.data)]
        kind = pa.large_string() if text else pa.large_binary()
        return pa.Array.from_buffers(kind, n, buffers, 0 if null_count is None else null_count)

    def lengths(self) -> I64:
        """int64[n]: bytes of each value."""
        return np.diff(self.offsets)

    def take(self, idx: NDArray[np.intp] | I64) -> VarColumn:
        m = len(idx)
        valid = None if self.valid is None else self.valid[idx]
        if m == 1:
            i = int(idx[0])
            a, b = int(self.offsets[i]), int(self.offsets[i + 1])
            return VarColumn(np.array([0, b - a], np.int64), self.data[a:b], valid)
        if m <= _FEW:
            starts, stops = self.offsets[idx].tolist(), self.offsets[np.asarray(idx) + 1].tolist()
            offsets = np.zeros(m + 1, np.int64)
            pieces = [self.data[a:b] for a, b in zip(starts, stops)]
            np.cumsum([b - a for a, b in zip(starts, stops)], out=offsets[1:])
            return VarColumn(offsets, np.concatenate(pieces) if m else _EMPTY_DATA, valid)
        bare = VarColumn(self.offsets, self.data)
        taken = bare.to_arrow().take(pa.array(np.ascontiguousarray(idx)))
        out = VarColumn.from_arrow(taken)
        out.valid = valid
        return out

    def filter(self, mask: BoolArray) -> VarColumn:
        return self.take(np.flatnonzero(mask))

    def slice(self, start: int, stop: int) -> VarColumn:
        stop = min(stop, len(self))
        start = min(start, stop)
        return VarColumn(
            self.offsets[start : stop + 1], self.data, None if self.valid is None else self.valid[start:stop]
        )

    def compact(self) -> VarColumn:
        """Same values, offsets from 0 and no bytes outside them (itself when that holds)."""
        first, last = int(self.offsets[0]), int(self.offsets[-1])
        if first == 0 and last == len(self.data):
            return self
        return VarColumn(self.offsets - first if first else self.offsets, self.data[first:last], self.valid)

    def concat_with(self, others: Sequence[Column]) -> VarColumn:
        parts: list[VarColumn] = [self.compact()]
        for other in others:
            assert isinstance(other, VarColumn), other
            parts.append(other.compact())
        offsets = [parts[0].offsets]
        base = len(parts[0].data)
        for part in parts[1:]:
            offsets.append(part.offsets[1:] + base)
            base += len(part.data)
        return VarColumn(np.concatenate(offsets), np.concatenate([p.data for p in parts]), concat_valid(parts))

    def hash(self) -> U64:
        return mask_nulls(hashing.hash_slices(self.offsets, self.data), self.valid)

    def equals(self, other: Column) -> BoolArray:
        assert isinstance(other, VarColumn), (self, other)
        n = len(self)
        same: BoolArray
        if n <= _FEW:
            a, b = self.offsets.tolist(), other.offsets.tolist()
            same = np.array(
                [
                    a[i + 1] - a[i] == b[i + 1] - b[i]
                    and self.data[a[i] : a[i + 1]].tobytes() == other.data[b[i] : b[i + 1]].tobytes()
                    for i in range(n)
                ],
                np.bool_,
            )
        else:
            ours, theirs = VarColumn(self.offsets, self.data), VarColumn(other.offsets, other.data)
            same = pc.equal(ours.to_arrow(), theirs.to_arrow()).to_numpy(zero_copy_only=False)
        return equal_valid(same, self.valid, other.valid)

    def keys(self) -> list[Any]:
        return self.to_bytes()

    def order_codes(self) -> I64:
        n = len(self)
        if n <= 1:
            return np.zeros(n, np.int64)
        if n <= _FEW:
            bare = VarColumn(self.offsets, self.data).to_bytes()
            ranks = {v: i for i, v in enumerate(sorted(set(bare)))}  # type: ignore[type-var]
            return np.array([ranks[v] for v in bare], np.int64)
        lengths = self.lengths()
        if int(lengths.max()) <= 7:
            return self._short_codes(lengths)
        bare_column = VarColumn(self.offsets, self.data).to_arrow()
        encoded = bare_column.dictionary_encode()
        ranks_of = pc.rank(encoded.dictionary, sort_keys="ascending", tiebreaker="first").to_numpy()
        codes: I64 = ranks_of.astype(np.int64)[encoded.indices.to_numpy()]
        return codes

    def _short_codes(self, lengths: I64) -> I64:
        """Values of at most 7 bytes fit an int64: the bytes big-endian, zero-padded, then the length."""
        base = int(self.offsets[0])
        padded = np.concatenate([self.data[base : int(self.offsets[-1])], np.zeros(8, np.uint8)])
        words = np.ndarray((len(padded) - 7,), np.dtype(">u8"), padded, 0, (1,))
        loaded = words[self.offsets[:-1] - base].astype(np.uint64)
        keep = np.array([((1 << (8 * k)) - 1) << (64 - 8 * k) for k in range(8)], np.uint64)
        codes = (loaded & keep[lengths]) | lengths.astype(np.uint64)
        return (codes ^ np.uint64(1 << 63)).view(np.int64)

    def buffers(self) -> tuple[tuple[Any, ...], list[NDArray[Any]]]:
        flat = self.compact()
        if flat.valid is None:
            return ("v", 0), [flat.offsets, flat.data]
        return ("v", 1), [flat.offsets, flat.data, flat.valid]

    @property
    def nbytes(self) -> int:
        used = int(self.offsets[-1] - self.offsets[0])
        return used + self.offsets.nbytes + (0 if self.valid is None else self.valid.nbytes)
