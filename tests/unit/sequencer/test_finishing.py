"""Finishing: order, multiplicity, offset, limit, projection; and the size limit."""

from __future__ import annotations

import numpy as np
import pytest

from adapter.coord.result import Batch
from adapter.sequencer.finishing import check_size, finish, split
from mzlite.expr.relation import RowSetFinishing
from mzlite.expr.scalar import ColumnOrder
from mzlite.repr.datum import column_from_datums, column_to_datums
from mzlite.repr.errors import SqlError
from mzlite.repr.types import INT4
from mzlite.repr.updates import Updates


def rows(*items: tuple[int | None, int]) -> Updates:
    """(value, multiplicity)"""
    column = column_from_datums(INT4, [v for v, _ in items])
    return Updates((column,), np.zeros(len(items), np.uint64), np.array([d for _, d in items], np.int64))


def values(batch: Batch) -> list[int | None]:
    return column_to_datums(INT4, batch.columns[0])


def test_rows_are_repeated_sorted_and_cut() -> None:
    u = rows((3, 1), (1, 2), (None, 1), (2, 1))
    order = (ColumnOrder(0),)
    assert values(finish(u, RowSetFinishing(order, project=(0,)))) == [1, 1, 2, 3, None]
    assert values(finish(u, RowSetFinishing(order, limit=2, offset=1, project=(0,)))) == [1, 2]
    assert values(finish(u, RowSetFinishing((ColumnOrder(0, True, False),), limit=2, project=(0,)))) == [None, 3]


def test_an_offset_beyond_the_end_leaves_nothing() -> None:
    assert finish(rows((1, 1)), RowSetFinishing(offset=5, project=(0,))).n == 0


def test_a_projection_may_repeat_and_drop_columns() -> None:
    assert len(finish(rows((1, 1)), RowSetFinishing(project=(0, 0))).columns) == 2
    empty = finish(rows((1, 3)), RowSetFinishing(project=()))
    assert empty.columns == () and empty.n == 3


def test_results_beyond_the_limit_are_refused() -> None:
    small = finish(rows((1, 10)), RowSetFinishing(project=(0,)))
    check_size(small, 100)
    with pytest.raises(SqlError, match="result exceeds max size of 100 B"):
        check_size(finish(rows((1, 60)), RowSetFinishing(project=(0,))), 100)


def test_large_results_are_split() -> None:
    batch = finish(rows((1, 25)), RowSetFinishing(project=(0,)))
    assert [b.n for b in split(batch, 10)] == [10, 10, 5]


def test_without_an_order_shorter_rows_come_first() -> None:
    u = rows((1000, 1), (-1, 1), (7, 1), (None, 1), (300, 1), (0, 1))
    assert values(finish(u, RowSetFinishing(project=(0,)))) == [None, -1, 0, 7, 300, 1000]
