"""View: a chain of batches as one reader sees it, up to a time.

A lookup answers all probes at once: two binary searches per probe and batch give a row range, ranges are expanded to
(probe, row) pairs, and the keys are compared, because codes only order.

Source: differential's cursors over a trace, for a vector of keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from compute.trace.batch import LOW_MASK, Batch
from compute.trace.sorting import key_codes
from mzlite.repr.column import I64, U64, Column, concat
from mzlite.repr.timestamp import Frontier


class Match(NamedTuple):
    """Rows `row` of `batch` found under probes `probe` (parallel, probe ascending)."""

    batch: Batch
    probe: I64
    row: I64


class Found(NamedTuple):
    """Matches gathered over the batches: parallel arrays. columns: the stored columns that were asked for."""

    probe: I64
    columns: tuple[Column, ...]
    time: U64
    diff: I64


class View:
    """chain: batches, oldest first. before: only updates with time < before are seen (None = all)."""

    __slots__ = ("before", "chain")

    def __init__(self, chain: Sequence[Batch], before: Frontier = None) -> None:
        self.chain = tuple(b for b in chain if len(b) and (before is None or b.time_min < before))
        self.before = before

    def __bool__(self) -> bool:
        return bool(self.chain)

    def lookup(self, key: Sequence[int], codes: U64, probes: Sequence[Column]) -> Iterator[Match]:
        """key: positions of the key in the batches. codes: key_codes of the probes. probes: m key values each."""
        for batch in self.chain:
            match = lookup(batch, key, codes, probes)
            if match is not None:
                if self.before is not None and batch.time_max >= self.before:
                    keep = batch.time[match.row] < np.uint64(self.before)
                    match = Match(batch, match.probe[keep], match.row[keep])
                yield match

    def find(self, key: Sequence[int], codes: U64, probes: Sequence[Column], wanted: Sequence[int]) -> Found | None:
        """All matches gathered (unordered); None when there are none."""
        return gather(list(self.lookup(key, codes, probes)), wanted)

    def scan(self, rows: int) -> Iterator[Batch]:
        """The updates in pieces of at most `rows` rows; pieces may be smaller."""
        for batch in self.chain:
            for start in range(0, len(batch), rows):
                piece = batch.slice(start, min(start + rows, len(batch)))
                if self.before is not None and batch.time_max >= self.before:
                    piece = restrict(piece, 0, self.before)
                yield piece


def lookup(batch: Batch, key: Sequence[int], codes: U64, probes: Sequence[Column]) -> Match | None:
    """Rows of `batch` under each probe key; None when there are none.

    codes: uint64[m], key_codes of the probes. cost: O(m log n) plus the matches; sorted codes are faster.
    """
    m = len(codes)
    code = batch.code
    if m == 1:
        low = codes[0]
        start = int(code.searchsorted(low))
        if start == len(code):
            return None
        stop = int(code.searchsorted(low | LOW_MASK, "right"))
        if start == stop:
            return None
        row = np.arange(start, stop)
        probe = np.zeros(stop - start, np.int64)
    else:
        starts = code.searchsorted(codes)
        stops = code.searchsorted(codes | LOW_MASK, "right")
        counts = stops - starts
        total = int(counts.sum())
        if total == 0:
            return None
        probe, row = expand(starts, counts, total)
    return verified(batch, key, probe, row, probes)


def expand(starts: I64, counts: I64, total: int) -> tuple[I64, I64]:
    """Ranges starts[i] .. starts[i]+counts[i] as (i, position) pairs."""
    if total == len(counts) and bool((counts == 1).all()):
        return np.arange(total), starts
    probe = np.repeat(np.arange(len(counts)), counts)
    ends = np.cumsum(counts)
    row = np.arange(total) + np.repeat(starts - (ends - counts), counts)
    return probe, row


def verified(batch: Batch, key: Sequence[int], probe: I64, row: I64, probes: Sequence[Column]) -> Match | None:
    """Drop pairs whose keys differ although their hashes agree."""
    same = None
    for position, values in zip(key, probes):
        equal = batch.columns[position].take(row).equals(values.take(probe))
        same = equal if same is None else same & equal
    if same is not None and not same.all():
        keep = np.flatnonzero(same)
        if not len(keep):
            return None
        probe, row = probe[keep], row[keep]
    return Match(batch, probe, row)


def gather(matches: Sequence[Match], wanted: Sequence[int]) -> Found | None:
    if not matches:
        return None
    if len(matches) == 1:
        batch, probe, row = matches[0]
        return Found(probe, tuple(batch.columns[i].take(row) for i in wanted), batch.time[row], batch.diff[row])
    return Found(
        np.concatenate([m.probe for m in matches]),
        tuple(concat([m.batch.columns[i].take(m.row) for m in matches]) for i in wanted),
        np.concatenate([m.batch.time[m.row] for m in matches]),
        np.concatenate([m.batch.diff[m.row] for m in matches]),
    )


def restrict(batch: Batch, lower: int, upper: Frontier) -> Batch:
    """The updates of `batch` with lower <= time < upper, still sorted."""
    if batch.time_min >= lower and (upper is None or batch.time_max < upper):
        return batch
    keep = batch.time >= np.uint64(lower)
    if upper is not None:
        keep &= batch.time < np.uint64(upper)
    rows = np.flatnonzero(keep)
    return Batch(
        batch.code[rows],
        [c.take(rows) for c in batch.columns],
        batch.time[rows],
        batch.diff[rows],
        batch.description,
        None if batch.order is None else batch.order[rows],
    )


def probe_codes(probes: Sequence[Column], n: int) -> U64:
    return key_codes(probes, n)
