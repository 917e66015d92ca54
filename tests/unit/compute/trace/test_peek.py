"""Peeks: literal look-ups and walks agree with a filter over the whole, at every time, and LIMIT keeps what can matter."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest

from compute.trace.arrangement import Arrangement
from compute.trace.batch import Batch, Description
from compute.trace.builder import BatchBuilder
from compute.trace.peek import peek_arrangement
from mzlite.expr.mfp import MapFilterProject
from mzlite.expr.relation import RowSetFinishing
from mzlite.expr.scalar import ColumnOrder, Ref
from mzlite.repr.column import set_hash_mask
from mzlite.repr.datum import encode_datum
from mzlite.repr.errors import SqlError, encode_error
from mzlite.repr.fixed import FixedColumn
from mzlite.repr.types import INT8
from mzlite.repr.updates import Updates
from mzlite.repr.var import VarColumn

MFP = MapFilterProject.identity(2)
Row = tuple[int, int]


def batch(
    key: tuple[int, ...], columns: tuple[FixedColumn | VarColumn, ...], time: list[int], diff: list[int]
) -> Batch:
    builder = BatchBuilder(key)
    builder.push(columns, np.array(time, np.uint64), np.array(diff, np.int64))
    for _ in builder.done(Description(0, None, 0)):
        pass
    assert builder.result is not None
    return builder.result


def index(changes: list[tuple[int, int, int, int]], chunk: int) -> Arrangement:
    arrangement = Arrangement((Ref(0),), 2)
    for start in range(0, len(changes), chunk):
        a, b, time, diff = (list(c) for c in zip(*changes[start : start + chunk]))
        columns = (FixedColumn(np.array(a, np.int64)), FixedColumn(np.array(b, np.int64)))
        arrangement.insert(batch((0,), columns, time, diff), None, None)
    return arrangement


def answer(arrangement: Arrangement, at: int, keys: tuple[int, ...] | None, finishing: RowSetFinishing) -> Updates:
    literals = None if keys is None else tuple((encode_datum(INT8, k),) for k in keys)
    steps = peek_arrangement(arrangement.chains(), arrangement.layout, at, MFP, finishing, literals)
    return next(x for x in steps if x is not None)


def rows(u: Updates) -> Counter[Row]:
    out: Counter[Row] = Counter()
    if u.columns:
        lists = [c.values.tolist() for c in u.columns if isinstance(c, FixedColumn)]
        for *row, diff in zip(*lists, u.diff.tolist()):
            out[row[0], row[1]] += diff
    return out


@pytest.mark.parametrize("mask", [None, 0, 3])
@pytest.mark.parametrize("chunk", [1, 9, 1_000])
def test_lookups_and_walks_agree(mask: int | None, chunk: int) -> None:
    random = Random(chunk)
    present: list[tuple[int, int]] = []
    changes = []
    for time in range(8):
        for _ in range(10):
            row = (random.randrange(6), random.randrange(3))
            present.append(row)
            changes.append((*row, time, 1))
        for _ in range(4):
            gone = present.pop(random.randrange(len(present)))
            changes.append((*gone, time, -1))
    set_hash_mask(mask)
    try:
        arrangement = index(changes, chunk)
        for at in range(8):
            expected: Counter[Row] = Counter()
            for a, b, time, diff in changes:
                if time <= at:
                    expected[a, b] += diff
            expected = +expected
            assert rows(answer(arrangement, at, None, RowSetFinishing())) == expected
            for keys in ((2,), (99,), (1, 4), (3, 3), ()):
                wanted = Counter({row: n for row, n in expected.items() if row[0] in keys})
                assert rows(answer(arrangement, at, keys, RowSetFinishing())) == wanted
    finally:
        set_hash_mask(None)


def test_a_limit_keeps_the_first_rows_by_the_order() -> None:
    arrangement = index([(i, i % 7, 0, 2) for i in range(500)], 1_000)
    finishing = RowSetFinishing((ColumnOrder(1, True), ColumnOrder(0)), 5, 2, (0, 1))
    kept = rows(answer(arrangement, 0, None, finishing))
    assert kept[6, 6] == 2 and kept[13, 6] == 2 and kept[20, 6] == 2
    assert sum(kept.values()) <= 8


def test_an_error_that_is_there_is_the_answer() -> None:
    arrangement = index([(1, 1, 0, 1)], 10)
    error = encode_error(SqlError("22012", "division by zero"))
    column = VarColumn.from_bytes([error, error])
    arrangement.insert(None, batch((), (column,), [1, 3], [1, -1]), None)
    assert rows(answer(arrangement, 0, None, RowSetFinishing())) == {(1, 1): 1}
    with pytest.raises(SqlError, match="division by zero") as raised:
        answer(arrangement, 2, (1,), RowSetFinishing())
    assert raised.value.sqlstate == "22012"
    assert rows(answer(arrangement, 3, (1,), RowSetFinishing())) == {(1, 1): 1}


def test_a_scan_yields_between_slices() -> None:
    arrangement = index([(i, 0, 0, 1) for i in range(100_000)], 100_000)
    steps = list(peek_arrangement(arrangement.chains(), arrangement.layout, 0, MFP, RowSetFinishing()))
    assert len(steps) >= 3 and all(s is None for s in steps[:-1])
    assert steps[-1] is not None and len(steps[-1]) == 100_000
