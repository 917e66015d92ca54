"""Sealing: unsorted updates become sorted, consolidated ones. Everything a batch promises is made true here.

Rows are ordered by code (and `order`, if any). Runs of equal codes are almost always copies of one row; whether they
are is verified on the values, and when two different rows share a code (a collision; tests narrow the hash to force
it) the run is split by an exact rank of its values. So a hash decides order and cost, never equality.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from compute.trace.batch import KEY_SHIFT, LOW_MASK
from mzlite.repr.column import I64, U64, BoolArray, Column, concat, hash_rows


class Rows(NamedTuple):
    """The parallel arrays of a batch, without its description."""

    code: U64
    columns: tuple[Column, ...]
    time: U64
    diff: I64
    order: I64 | None


def codes_of(key: Sequence[Column], rest: Sequence[Column], n: int) -> U64:
    """uint64[n]: key hash in the upper half, hash of the other columns (or more of the key's) in the lower half."""
    hashed = hash_rows(key, n)
    low = hash_rows(rest, n) & LOW_MASK if rest else hashed >> KEY_SHIFT
    codes: U64 = (hashed << KEY_SHIFT) | low
    return codes


def key_codes(key: Sequence[Column], n: int) -> U64:
    """The least code under each key."""
    codes: U64 = hash_rows(key, n) << KEY_SHIFT
    return codes


def constant(value: int, n: int, dtype: type) -> NDArray[Any]:
    """One stored value seen n times; read-only."""
    return np.broadcast_to(np.array(value, dtype), (n,))


def is_constant(a: NDArray[Any]) -> bool:
    """Is a known to hold one value? (constant time; False does not mean that it varies)"""
    return a.ndim == 1 and a.strides[0] == 0


def shrink(a: NDArray[Any]) -> NDArray[Any]:
    """The same values, stored once if they are all equal. cost: O(n)."""
    if len(a) > 1 and a.ndim == 1 and a.strides[0] != 0 and a[0] == a[-1] and bool((a == a[0]).all()):
        return constant(a[0], len(a), a.dtype.type)
    return a


def cat(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """np.concatenate that keeps constants constant."""
    if len(arrays) == 1:
        return arrays[0]
    first = arrays[0]
    if is_constant(first) and all(is_constant(a) and len(a) and a[0] == first[0] for a in arrays):
        return constant(first[0], sum(map(len, arrays)), first.dtype.type)
    return np.concatenate(arrays)


def cat_rows(parts: Sequence[Rows]) -> Rows:
    if len(parts) == 1:
        return parts[0]
    return Rows(
        cat([p.code for p in parts]),
        tuple(concat(cols) for cols in zip(*(p.columns for p in parts))),
        cat([p.time for p in parts]),
        cat([p.diff for p in parts]),
        None if parts[0].order is None else cat([p.order for p in parts if p.order is not None]),
    )


def take_rows(rows: Rows, idx: I64) -> Rows:
    n = len(idx)
    return Rows(
        rows.code[idx],
        tuple(c.take(idx) for c in rows.columns),
        constant(rows.time[0], n, np.uint64) if is_constant(rows.time) and n else rows.time[idx],
        constant(rows.diff[0], n, np.int64) if is_constant(rows.diff) and n else rows.diff[idx],
        None if rows.order is None else rows.order[idx],
    )


def dense_rank(columns: Sequence[Column], n: int) -> I64:
    """int64[n]: equal iff the rows are equal (grouping equality), otherwise arbitrary. cost: a sort per column."""
    rank = np.zeros(n, np.int64)
    for column in columns:
        codes = column.order_codes()
        _, inverse = np.unique(codes, return_inverse=True)
        inverse = inverse.reshape(n) + 1
        if column.valid is not None:
            inverse = np.where(column.valid, inverse, 0)
        _, rank = np.unique(rank * np.int64(n + 2) + inverse, return_inverse=True)
        rank = rank.reshape(n)
    return rank.astype(np.int64)


def rows_equal_at(columns: Sequence[Column], left: I64, right: I64) -> BoolArray:
    """bool[m]: is row left[i] equal to row right[i]?"""
    same = np.ones(len(left), np.bool_)
    for column in columns:
        same &= column.take(left).equals(column.take(right))
    return same


def seal(rows: Rows) -> Rows:
    """Sort and consolidate: afterwards invariants 2 and 3 of Batch hold. cost: one sort of n integers, one gather."""
    code, columns, time, diff, order = rows
    n = len(code)
    if n <= 1:
        return rows if n == 0 or np.any(diff) else take_rows(rows, np.zeros(0, np.int64))
    if order is None:
        perm = code.argsort()
    else:
        perm = np.lexsort((code, order, code >> KEY_SHIFT))
    sorted_code = code[perm]
    same: BoolArray = sorted_code[1:] == sorted_code[:-1]
    if order is not None:
        sorted_order = order[perm]
        same &= sorted_order[1:] == sorted_order[:-1]
    tied = np.flatnonzero(same)
    if not len(tied):
        if is_constant(diff):
            keep = perm if diff[0] else perm[:0]
        else:
            nonzero = diff[perm] != 0 if diff.ndim == 1 else (diff[perm] != 0).any(axis=1)
            keep = perm if nonzero.all() else perm[nonzero]
        return take_rows(rows, keep)
    starts_mask = np.ones(n, np.bool_)
    starts_mask[1:] = ~same
    _split_ties(perm, starts_mask, tied, columns, time)
    starts = np.flatnonzero(starts_mask)
    sums = np.add.reduceat(diff[perm], starts, axis=0)
    keep_mask = sums != 0 if sums.ndim == 1 else (sums != 0).any(axis=1)
    kept = starts if keep_mask.all() else starts[keep_mask]
    taken = take_rows(rows, perm[kept])
    return taken._replace(diff=sums if len(kept) == len(starts) else sums[keep_mask])


def _split_ties(perm: I64, starts: BoolArray, tied: I64, columns: Sequence[Column], time: U64) -> None:
    """Order each run of equal codes by (row, time) and mark where a new (row, time) starts; perm, starts in place.

    tied: positions i where i and i+1 have equal codes.
    """
    one_time = is_constant(time) or bool((time == time[0]).all())
    equal = rows_equal_at(columns, perm[tied], perm[tied + 1])
    if one_time and equal.all():
        return
    member = np.zeros(len(perm), np.bool_)
    member[tied] = True
    member[tied + 1] = True
    at = np.flatnonzero(member)
    rows = perm[at]
    run = np.cumsum(starts[at])
    times = time[rows]
    if equal.all():
        by = np.lexsort((times, run))
        rank = None
    else:
        rank = dense_rank([c.take(rows) for c in columns], len(rows))
        by = np.lexsort((times, rank, run))
    perm[at] = rows[by]
    times = times[by]
    new = np.ones(len(at), np.bool_)
    new[1:] = (run[1:] != run[:-1]) | (times[1:] != times[:-1])
    if rank is not None:
        rank = rank[by]
        new[1:] |= rank[1:] != rank[:-1]
    starts[at] = new
