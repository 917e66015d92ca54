"""Laying a batch out while it is merged: each slice is written to its place in arrays that were reserved for all.

Reserving costs nothing until pages are written, so no step pays for the whole batch, as joining the slices at the end
would.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from compute.trace.sorting import constant, is_constant
from mzlite.repr.column import Column, concat
from mzlite.repr.fixed import FixedColumn
from mzlite.repr.numeric import NumericColumn
from mzlite.repr.var import VarColumn

_TRIM = 0.8


class ColumnAppender(Protocol):
    def append(self, part: Column) -> None: ...

    def finish(self) -> Column: ...


class Plane:
    """A numpy array under construction; stays one stored value as long as all parts are that value."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.n = 0
        self.array: NDArray[Any] | None = None
        self.value: Any = None

    def append(self, part: NDArray[Any]) -> None:
        k = len(part)
        if not k:
            return
        if self.array is None:
            if is_constant(part) and (self.n == 0 or part[0] == self.value):
                self.value = part[0]
                self.n += k
                return
            self.array = np.empty((self.capacity, *part.shape[1:]), part.dtype)
            if self.n:
                self.array[: self.n] = self.value
        self.array[self.n : self.n + k] = part
        self.n += k

    def finish(self, dtype: type) -> NDArray[Any]:
        if self.array is None:
            return constant(self.value, self.n, dtype) if self.n else np.zeros(0, dtype)
        out = self.array[: self.n]
        return out if self.n >= _TRIM * self.capacity else out.copy()


class FixedAppender:
    """values and, once a part has one, valid."""

    def __init__(self, first: FixedColumn, capacity: int) -> None:
        self.like = first
        self.values = np.empty(capacity, first.values.dtype)
        self.valid: NDArray[np.bool_] | None = None
        self.n = 0

    def append(self, part: Column) -> None:
        assert isinstance(part, FixedColumn), part
        start, stop = self.n, self.n + len(part)
        self.values[start:stop] = part.values
        if part.valid is not None:
            if self.valid is None:
                self.valid = np.ones(len(self.values), np.bool_)
            self.valid[start:stop] = part.valid
        self.n = stop

    def finish(self) -> Column:
        values = self.values[: self.n]
        valid = None if self.valid is None else self.valid[: self.n]
        if self.n < _TRIM * len(self.values):
            values = values.copy()
            valid = None if valid is None else valid.copy()
        return self.like.with_values(values, valid)


class VarAppender:
    """offsets from 0, data, valid. data_capacity: bytes of all parts together."""

    def __init__(self, capacity: int, data_capacity: int) -> None:
        self.offsets = np.empty(capacity + 1, np.int64)
        self.offsets[0] = 0
        self.data = np.empty(data_capacity, np.uint8)
        self.valid: NDArray[np.bool_] | None = None
        self.n = 0

    def append(self, part: Column) -> None:
        assert isinstance(part, VarColumn), part
        start, stop = self.n, self.n + len(part)
        at = int(self.offsets[start])
        first = int(part.offsets[0])
        size = int(part.offsets[-1]) - first
        if at + size > len(self.data):
            self.data = np.concatenate([self.data[:at], np.empty(2 * (at + size) - at, np.uint8)])
        self.offsets[start + 1 : stop + 1] = part.offsets[1:] + (at - first)
        self.data[at : at + size] = part.data[first : first + size]
        if part.valid is not None:
            if self.valid is None:
                self.valid = np.ones(len(self.offsets) - 1, np.bool_)
            self.valid[start:stop] = part.valid
        self.n = stop

    def finish(self) -> Column:
        offsets, valid = self.offsets[: self.n + 1], None if self.valid is None else self.valid[: self.n]
        data = self.data[: int(offsets[-1])]
        if self.n < _TRIM * (len(self.offsets) - 1):
            offsets, data = offsets.copy(), data.copy()
            valid = None if valid is None else valid.copy()
        return VarColumn(offsets, data, valid)


class NumericAppender:
    """Narrow numerics of one scale: the mantissas, as a fixed column."""

    def __init__(self, scale: int, capacity: int) -> None:
        self.scale = scale
        self.inner = FixedAppender(FixedColumn(np.zeros(0, np.int64)), capacity)

    def append(self, part: Column) -> None:
        assert isinstance(part, NumericColumn) and part.wide is None and part.scale == self.scale, part
        self.inner.append(FixedColumn(part.values, part.valid))

    def finish(self) -> Column:
        column = self.inner.finish()
        assert isinstance(column, FixedColumn)
        return NumericColumn(column.values, self.scale, column.valid)


class PartsAppender:
    """Columns whose form differs from run to run (numerics of several scales): joined at the end."""

    def __init__(self) -> None:
        self.parts: list[Column] = []

    def append(self, part: Column) -> None:
        self.parts.append(part)

    def finish(self) -> Column:
        return concat(self.parts)


def appender(inputs: list[Column], capacity: int) -> ColumnAppender:
    """For a column that is merged from `inputs`."""
    first = inputs[0]
    if isinstance(first, FixedColumn):
        return FixedAppender(first, capacity)
    if isinstance(first, VarColumn):
        return VarAppender(capacity, sum(_data_size(c) for c in inputs))
    if isinstance(first, NumericColumn):
        scales = {-1 if not isinstance(c, NumericColumn) or c.wide is not None else c.scale for c in inputs}
        if len(scales) == 1 and -1 not in scales:
            return NumericAppender(first.scale, capacity)
    return PartsAppender()


def _data_size(column: Column) -> int:
    assert isinstance(column, VarColumn), column
    return int(column.offsets[-1] - column.offsets[0])
