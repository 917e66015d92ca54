"""Updates: rows with the time at which they change and by how much: the change currency of the whole system.

    columns   (a: [1, 1, 2])        time [5, 6, 6]        diff [+1, -1, +1]

A collection at time t is the sum of the diffs of all updates with time <= t, row by row. Consolidating sums the diffs
of equal (row, time) and drops zeros; it changes the updates, not the collection.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mzlite.repr import column as columns_module
from mzlite.repr.column import I64, U64, BoolArray, Column, hash_rows, rows_equal
from mzlite.repr.datum import column_from_datums
from mzlite.repr.hashing import combine
from mzlite.repr.types import Layout, ScalarType

_NO_TIMES: U64 = np.zeros(0, np.uint64)
_FEW = 12
_NO_DIFFS: I64 = np.zeros(0, np.int64)


class Updates:
    """n updates of rows of `columns`.

    columns: any number of columns of length n (none: the rows of a relation without columns). time: uint64[n].
    diff: int64[n]. Immutable; arrays may be shared with other objects.
    """

    __slots__ = ("columns", "diff", "time")

    def __init__(self, columns: tuple[Column, ...], time: U64, diff: I64) -> None:
        assert len(time) == len(diff), (len(time), len(diff))
        assert not columns or len(columns[0]) == len(time), (columns, len(time))
        self.columns = columns
        self.time = time
        self.diff = diff

    def __len__(self) -> int:
        return len(self.diff)

    def __repr__(self) -> str:
        return f"Updates(n={len(self)}, columns={list(self.columns)!r})"

    def take(self, idx: NDArray[np.intp] | I64) -> Updates:
        return Updates(tuple(c.take(idx) for c in self.columns), self.time[idx], self.diff[idx])

    def filter(self, mask: BoolArray) -> Updates:
        return self.take(np.flatnonzero(mask))

    def slice(self, start: int, stop: int) -> Updates:
        """Updates start..stop as a view."""
        return Updates(tuple(c.slice(start, stop) for c in self.columns), self.time[start:stop], self.diff[start:stop])

    def with_columns(self, columns: tuple[Column, ...]) -> Updates:
        return Updates(columns, self.time, self.diff)

    def with_time(self, time: U64) -> Updates:
        return Updates(self.columns, time, self.diff)

    def with_diff(self, diff: I64) -> Updates:
        return Updates(self.columns, self.time, diff)

    def negate(self) -> Updates:
        return Updates(self.columns, self.time, -self.diff)

    def advance_to(self, time: int) -> Updates:
        """Every time brought up to at least `time`."""
        return Updates(self.columns, np.maximum(self.time, np.uint64(time)), self.diff)

    @property
    def layouts(self) -> tuple[Layout, ...]:
        return tuple(c.layout for c in self.columns)

    @property
    def nbytes(self) -> int:
        return sum(c.nbytes for c in self.columns) + 16 * len(self)


def empty_updates(layouts: Sequence[Layout]) -> Updates:
    """No updates of rows with these layouts."""
    return Updates(tuple(columns_module.empty(layout) for layout in layouts), _NO_TIMES, _NO_DIFFS)


def constant_updates(columns: tuple[Column, ...], n: int, time: int, diff: int = 1) -> Updates:
    """n rows, all at one time with one diff."""
    return Updates(columns, np.full(n, time, np.uint64), np.full(n, diff, np.int64))


def concat_updates(parts: Sequence[Updates]) -> Updates:
    """The updates end to end; at least one part, all of the same layouts."""
    full = [p for p in parts if len(p)]
    if len(full) <= 1:
        return full[0] if full else parts[0]
    columns = tuple(columns_module.concat(cols) for cols in zip(*(p.columns for p in full)))
    return Updates(columns, np.concatenate([p.time for p in full]), np.concatenate([p.diff for p in full]))


def consolidate(u: Updates) -> Updates:
    """Sum the diffs of equal (row, time) and drop zeros. The order of the result is unspecified.

    cost: O(1) for one update, which is returned itself; else one sort of a 64-bit hash.
    """
    n = len(u)
    if n <= 1:
        if n == 0 or u.diff[0] != 0:
            return u
        return u.slice(0, 0)
    if n <= _FEW:
        return _consolidate_few(u)
    hashes = hash_rows(u.columns, n)
    time = u.time
    one_time = bool((time[1:] == time[0]).all())
    if not one_time:
        hashes = combine(hashes, time)
        if columns_module.HASH_MASK is not None:
            hashes = hashes & np.uint64(columns_module.HASH_MASK)
    order = np.argsort(hashes, kind="stable")
    hashes = hashes[order]
    candidate = hashes[1:] == hashes[:-1]
    if not candidate.any():
        nonzero = u.diff != 0
        return u if nonzero.all() else u.take(np.flatnonzero(nonzero))
    # Verify what the hash claims, on the rows that share one only.
    at = np.flatnonzero(candidate)
    left, right = order[at], order[at + 1]
    same = _equal_at(u, left, right)
    if not same.all():
        order = _exact_order(u)
        same_next = _equal_at(u, order[:-1], order[1:])
    else:
        same_next = candidate
    starts = np.concatenate([[0], np.flatnonzero(~same_next) + 1])
    sums = np.add.reduceat(u.diff[order], starts)
    keep = sums != 0
    out = u.take(order[starts[keep]])
    return Updates(out.columns, out.time, sums[keep])


def _consolidate_few(u: Updates) -> Updates:
    """`consolidate` by dictionary: an update of one row by SQL is two of these, and numpy would cost four times as much."""
    sums: dict[Any, list[int]] = {}
    diffs = u.diff.tolist()
    for i, key in enumerate(zip(u.time.tolist(), *(c.keys() for c in u.columns))):
        entry = sums.get(key)
        if entry is None:
            sums[key] = [i, diffs[i]]
        else:
            entry[1] += diffs[i]
    kept = [e for e in sums.values() if e[1]]
    if len(kept) == len(diffs):
        return u
    idx = np.array([e[0] for e in kept], np.int64)
    return Updates(tuple(c.take(idx) for c in u.columns), u.time[idx], np.array([e[1] for e in kept], np.int64))


def _equal_at(u: Updates, left: NDArray[np.intp], right: NDArray[np.intp]) -> BoolArray:
    same: BoolArray = u.time[left] == u.time[right]
    if u.columns:
        a = [c.take(left) for c in u.columns]
        b = [c.take(right) for c in u.columns]
        same = same & rows_equal(a, b, len(left))
    return same


def _exact_order(u: Updates) -> NDArray[np.intp]:
    """A sort by value: equal (row, time) are adjacent. Only for batches in which two different rows share a hash."""
    keys: list[NDArray[np.generic]] = [u.time]
    for col in u.columns:
        codes = col.order_codes()
        if col.valid is not None:
            keys.append(col.valid)
            codes = np.where(col.valid, codes, 0)
        keys.append(codes)
    return np.lexsort(keys)


def updates_from_rows(types: Sequence[ScalarType], rows: Sequence[Sequence[Any]], time: int, diff: int = 1) -> Updates:
    """Updates of rows of Python datums, all at one time with one diff. A row at a time: constants and tests."""
    columns = tuple(column_from_datums(typ, [row[i] for row in rows]) for i, typ in enumerate(types))
    return constant_updates(columns, len(rows), time, diff)
