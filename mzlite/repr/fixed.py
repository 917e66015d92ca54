"""FixedColumn: values of one fixed width as a numpy array, plus an optional validity mask.

Grouping equality is SQL's: NaN equals NaN and is the greatest float, -0.0 equals 0.0, NULL equals NULL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mzlite.repr import hashing
from mzlite.repr.column import I64, U64, BoolArray, Column
from mzlite.repr.types import Layout

DTYPES: dict[Layout, np.dtype[Any]] = {
    Layout.BOOL: np.dtype(np.bool_),
    Layout.I16: np.dtype(np.int16),
    Layout.I32: np.dtype(np.int32),
    Layout.I64: np.dtype(np.int64),
    Layout.U16: np.dtype(np.uint16),
    Layout.U32: np.dtype(np.uint32),
    Layout.U64: np.dtype(np.uint64),
    Layout.F32: np.dtype(np.float32),
    Layout.F64: np.dtype(np.float64),
    Layout.DATE: np.dtype(np.int32),
    Layout.TIME: np.dtype(np.int64),
    Layout.TIMESTAMP: np.dtype(np.int64),
}
_DEFAULT_LAYOUT: dict[np.dtype[Any], Layout] = {
    dtype: layout for layout, dtype in DTYPES.items() if layout not in (Layout.DATE, Layout.TIME, Layout.TIMESTAMP)
}
_FLOATS = (Layout.F32, Layout.F64)
_NAN_HASH = np.uint64(0x7FF8_0000_0000_0000)
_NULL_HASH = np.uint64(hashing.NULL_HASH)


class FixedColumn(Column):
    """n fixed-width values.

    values: DTYPES[layout][n], owned or borrowed, never written to after construction. layout: inferred from the dtype
    when absent (so a date, time or timestamp column must name it).
    """

    __slots__ = ("_layout", "values")

    def __init__(self, values: NDArray[Any], valid: BoolArray | None = None, layout: Layout | None = None) -> None:
        if layout is None:
            layout = _DEFAULT_LAYOUT[values.dtype]
        assert valid is None or len(valid) == len(values), (len(values), valid)
        self.values = values
        self.valid = valid
        self._layout = layout

    @property
    def layout(self) -> Layout:
        return self._layout

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._layout.value}, n={len(self)})"

    def with_values(self, values: NDArray[Any], valid: BoolArray | None) -> FixedColumn:
        """A column of the same class and layout over other arrays."""
        return FixedColumn(values, valid, self._layout)

    def take(self, idx: NDArray[np.intp] | I64) -> FixedColumn:
        return self.with_values(self.values[idx], None if self.valid is None else self.valid[idx])

    def filter(self, mask: BoolArray) -> FixedColumn:
        return self.with_values(self.values[mask], None if self.valid is None else self.valid[mask])

    def slice(self, start: int, stop: int) -> FixedColumn:
        return self.with_values(self.values[start:stop], None if self.valid is None else self.valid[start:stop])

    def concat_with(self, others: Sequence[Column]) -> FixedColumn:
        parts: list[FixedColumn] = [self]
        for other in others:
            assert isinstance(other, FixedColumn) and other._layout is self._layout, (self, other)
            parts.append(other)
        return self.with_values(np.concatenate([p.values for p in parts]), concat_valid(parts))

    def hash(self) -> U64:
        values = self.values
        if self._layout in _FLOATS:
            as_f64 = values.astype(np.float64) + 0.0  # -0.0 + 0.0 is 0.0
            bits = as_f64.view(np.uint64)
            nan = np.isnan(as_f64)
            if nan.any():
                bits = np.where(nan, _NAN_HASH, bits)
        elif self._layout is Layout.U64:
            bits = values
        else:
            bits = values.astype(np.int64).view(np.uint64)
        return mask_nulls(hashing.mix(bits), self.valid)

    def equals(self, other: Column) -> BoolArray:
        assert isinstance(other, FixedColumn), (self, other)
        a, b = self.values, other.values
        same: BoolArray = a == b
        if self._layout in _FLOATS:
            same = same | (np.isnan(a) & np.isnan(b))
        return equal_valid(same, self.valid, other.valid)

    def keys(self) -> list[Any]:
        values: list[Any] = self.values.tolist()
        if self._layout in _FLOATS:
            values = ["NaN" if v != v else v for v in values]
        return null_keys(values, self.valid)

    def order_codes(self) -> I64:
        values = self.values
        if self._layout in _FLOATS:
            as_f64 = values.astype(np.float64) + 0.0
            bits = as_f64.view(np.int64)
            codes = np.where(bits < 0, bits ^ np.int64(0x7FFF_FFFF_FFFF_FFFF), bits)
            codes[np.isnan(as_f64)] = np.iinfo(np.int64).max
            return codes
        if self._layout is Layout.U64:
            return (values ^ np.uint64(1 << 63)).view(np.int64)
        return values.astype(np.int64)

    def buffers(self) -> tuple[tuple[Any, ...], list[NDArray[Any]]]:
        if self.valid is None:
            return ("f", self._layout.value, 0), [self.values]
        return ("f", self._layout.value, 1), [self.values, self.valid]

    @property
    def nbytes(self) -> int:
        return self.values.nbytes + (0 if self.valid is None else self.valid.nbytes)


def mask_nulls(hashes: U64, valid: BoolArray | None) -> U64:
    """`hashes` with every NULL's replaced by the one constant."""
    if valid is None:
        return hashes
    return np.where(valid, hashes, _NULL_HASH)


def null_keys(keys: list[Any], valid: BoolArray | None) -> list[Any]:
    """`keys` with None for every NULL."""
    if valid is None:
        return keys
    return [k if ok else None for k, ok in zip(keys, valid.tolist())]


def equal_valid(same: BoolArray, a: BoolArray | None, b: BoolArray | None) -> BoolArray:
    """Grouping equality given equality of the values: NULL equals NULL and nothing else."""
    if a is None and b is None:
        return same
    if a is None:
        assert b is not None
        return same & b
    if b is None:
        return same & a
    return (same & a & b) | ~(a | b)


def concat_valid(parts: Sequence[Column]) -> BoolArray | None:
    """The masks of `parts` laid end to end; None when no part has one."""
    if all(p.valid is None for p in parts):
        return None
    return np.concatenate([np.ones(len(p), np.bool_) if p.valid is None else p.valid for p in parts])
