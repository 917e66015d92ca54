"""Matching a chunk of rows against a view by key, in bounded pieces: the inner loop of every join.

SQL's equality: a NULL in a join key matches nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from compute.operators.base import CHUNK_ROWS
from compute.trace.batch import HIGH_MASK, LOW_MASK, Batch
from compute.trace.sorting import is_constant
from compute.trace.view import Match, View, expand, verified
from mzlite.repr.column import I64, U64, BoolArray, Column


def not_null(keys: Sequence[Column]) -> BoolArray | None:
    """bool[n]: no key column is NULL; None = all rows."""
    keep: BoolArray | None = None
    for c in keys:
        if c.valid is not None:
            keep = c.valid if keep is None else keep & c.valid
    return None if keep is None or keep.all() else keep


def matches(codes: U64, keys: Sequence[Column], view: View, key: Sequence[int]) -> Iterator[Match]:
    """(batch, probe, row) pairs with equal keys, at most CHUNK_ROWS pairs at a time; keys hold no NULL.

    codes: key codes of the probes, in any order. Equal codes are looked up once, in ascending order; where the batch
    is much the smaller side, its keys are looked up among the probes instead.
    """
    m = len(codes)
    limit = CHUNK_ROWS
    if m == 0:
        return
    if m == 1:
        yield from _match_one(codes[0], keys, view, key, limit)
        return
    distinct, run = _distinct(codes)
    top = distinct | LOW_MASK
    for batch in view.chain:
        if 4 * len(batch) < len(distinct):
            starts, counts = _ranges_from_batch(distinct, batch)
        else:
            starts = batch.code.searchsorted(distinct)
            counts = batch.code.searchsorted(top, "right") - starts
        if run is not None:
            starts, counts = starts[run], counts[run]
        total = int(counts.sum())
        if not total:
            continue
        if total <= limit:
            probe, row = expand(starts, counts, total)
            match = verified(batch, key, probe, row, keys)
            if match is not None:
                yield from _bounded(match, view)
            continue
        ends = np.cumsum(counts)
        for at in range(0, total, limit):
            probe, row = segment(starts, counts, ends, at, min(at + limit, total))
            match = verified(batch, key, probe, row, keys)
            if match is not None:
                yield from _bounded(match, view)


def _distinct(codes: U64) -> tuple[U64, I64 | None]:
    """(distinct codes ascending, which of them each row has; None when row i has the i-th)."""
    m = len(codes)
    order = None if bool((codes[1:] >= codes[:-1]).all()) else codes.argsort()
    ordered = codes if order is None else codes[order]
    new = np.empty(m, np.bool_)
    new[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
    firsts = np.flatnonzero(new)
    if order is None and len(firsts) == m:
        return codes, None
    run = np.cumsum(new) - 1
    if order is not None:
        placed = np.empty(m, np.int64)
        placed[order] = run
        run = placed
    return ordered[firsts], run


def _ranges_from_batch(distinct: U64, batch: Batch) -> tuple[I64, I64]:
    """The row range under each distinct code, when the batch is the smaller side: its keys are looked up instead."""
    codes = batch.code & HIGH_MASK
    at = distinct.searchsorted(codes)
    hit = np.flatnonzero(distinct[np.minimum(at, len(distinct) - 1)] == codes)
    at = at[hit]
    counts = np.bincount(at, minlength=len(distinct))
    starts = np.zeros(len(distinct), np.int64)
    if len(hit):
        first = np.flatnonzero(np.concatenate([[True], at[1:] != at[:-1]]))
        starts[at[first]] = hit[first]
    return starts, counts


def _match_one(code: np.uint64, keys: Sequence[Column], view: View, key: Sequence[int], limit: int) -> Iterator[Match]:
    for batch in view.chain:
        start = int(batch.code.searchsorted(code))
        if start == len(batch):
            continue
        stop = int(batch.code.searchsorted(code | LOW_MASK, "right"))
        for at in range(start, stop, limit):
            row = np.arange(at, min(at + limit, stop))
            match = verified(batch, key, np.zeros(len(row), np.int64), row, keys)
            if match is not None:
                yield from _bounded(match, view)


def _bounded(match: Match, view: View) -> Iterator[Match]:
    if view.before is None or match.batch.time_max < view.before:
        yield match
        return
    keep = np.flatnonzero(match.batch.time[match.row] < np.uint64(view.before))
    if len(keep):
        yield Match(match.batch, match.probe[keep], match.row[keep])


def segment(starts: I64, counts: I64, ends: I64, at: int, until: int) -> tuple[I64, I64]:
    """Pairs number at .. until of the expansion of ranges starts[i] .. starts[i] + counts[i]; ends = cumsum(counts)."""
    first = int(ends.searchsorted(at, "right"))
    last = int(ends.searchsorted(until - 1, "right"))
    some_starts = starts[first : last + 1].copy()
    some_counts = counts[first : last + 1].copy()
    skipped = at - int(ends[first] - counts[first])
    some_starts[0] += skipped
    some_counts[0] -= skipped
    some_counts[-1] -= int(ends[last]) - until
    probe, row = expand(some_starts, some_counts, until - at)
    return probe + first, row


def later_time(a: U64, a_rows: I64, b: Batch, b_rows: I64) -> U64:
    """Elementwise maximum of a[a_rows] and b.time[b_rows]."""
    if len(a_rows) == 1:
        return np.maximum(a[a_rows], b.time[b_rows])
    if is_constant(a) and len(a) and b.time_max <= int(a[0]):
        return np.broadcast_to(a[:1][0], (len(a_rows),))
    return np.maximum(a[a_rows], b.time[b_rows])


def product_diff(a: I64, a_rows: I64, b: I64, b_rows: I64) -> I64:
    if is_constant(a) and len(a) and a[0] == 1:
        return b[b_rows] if not is_constant(b) else np.broadcast_to(b[:1][0], (len(b_rows),))
    if is_constant(b) and len(b) and b[0] == 1:
        return a[a_rows]
    return a[a_rows] * b[b_rows]
