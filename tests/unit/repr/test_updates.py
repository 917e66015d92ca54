"""Consolidation: sums by (row, time), under honest and under colliding hashes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from mzlite.repr import column
from mzlite.repr import types as t
from mzlite.repr.datum import column_from_datums, column_to_datums
from mzlite.repr.updates import Updates, concat_updates, consolidate, empty_updates, updates_from_rows


@pytest.fixture(params=[None, 3, 0], ids=["full", "two-bits", "constant"])
def hash_mask(request: pytest.FixtureRequest) -> Iterator[int | None]:
    column.set_hash_mask(request.param)
    yield request.param
    column.set_hash_mask(None)


def summed(u: Updates, types: tuple[t.ScalarType, ...]) -> dict[Any, int]:
    counts: Counter[Any] = Counter()
    columns = [column_to_datums(typ, c) for typ, c in zip(types, u.columns)]
    rows = list(zip(*columns)) if columns else [()] * len(u)
    for row, time, diff in zip(rows, u.time.tolist(), u.diff.tolist()):
        counts[row, time] += diff
    return {k: v for k, v in counts.items() if v}


@pytest.mark.parametrize(
    "types", [(t.INT4,), (t.TEXT, t.INT4), (t.NUMERIC,), ()], ids=["int", "text,int", "numeric", "none"]
)
@pytest.mark.parametrize("times", [1, 4])
@pytest.mark.parametrize("n", [2, 9, 400])
def test_consolidate_sums(hash_mask: int | None, types: tuple[t.ScalarType, ...], times: int, n: int) -> None:
    rng = np.random.default_rng(7)
    columns = []
    for typ in types:
        picks = rng.integers(0, 12, n).tolist()
        pool: list[Any] = [None, *(str(i) if typ is t.TEXT else i for i in range(11))]
        if typ is t.NUMERIC:
            columns.append(column_from_datums(typ, [None if p == 0 else Decimal(p) / 4 for p in picks]))
        else:
            columns.append(column_from_datums(typ, [pool[p] for p in picks]))
    u = Updates(tuple(columns), rng.integers(0, times, n).astype(np.uint64), rng.integers(-2, 3, n))
    out = consolidate(u)
    assert summed(out, types) == summed(u, types)
    assert len(out) == len(summed(u, types)), "a (row, time) is left twice, or a zero is left"


def test_one_update_is_returned_itself() -> None:
    u = updates_from_rows((t.INT4,), [(1,)], time=3)
    assert consolidate(u) is u
    assert len(consolidate(u.with_diff(np.zeros(1, np.int64)))) == 0


def test_equal_intervals_are_one_row() -> None:
    one_day = column_from_datums(t.INTERVAL, [(0, 1, 0), (0, 0, 86_400_000_000), (0, 2, 0)])
    u = Updates((one_day,), np.zeros(3, np.uint64), np.array([1, 1, 1]))
    assert sorted(consolidate(u).diff.tolist()) == [1, 2]


def test_concat_and_empty() -> None:
    nothing = empty_updates((t.INT4.layout, t.TEXT.layout))
    rows = updates_from_rows((t.INT4, t.TEXT), [(1, "a"), (2, None)], time=5)
    assert concat_updates([nothing, nothing]) is nothing
    assert concat_updates([nothing, rows]) is rows
    both = concat_updates([rows, nothing, rows.negate()])
    assert len(both) == 4
    assert len(consolidate(both)) == 0


def test_advance_to() -> None:
    u = Updates((), np.array([1, 5, 9], np.uint64), np.array([1, 1, 1]))
    assert u.advance_to(5).time.tolist() == [5, 5, 9]
