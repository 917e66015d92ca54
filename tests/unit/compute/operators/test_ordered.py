"""Orders as integers: they never contradict SQL's order, whatever the type, direction and place of NULLs."""

from __future__ import annotations

import itertools
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pytest

from compute.operators.ordered import order_of, packed
from mzlite.expr.scalar import ColumnOrder
from mzlite.repr.column import sort_permutation
from mzlite.repr.datum import column_from_datums
from mzlite.repr.interval import Interval
from mzlite.repr.types import BOOL, DATE, FLOAT8, INT4, INT8, INTERVAL, NUMERIC, TEXT, UINT8, ScalarType

N = 300
VALUES: dict[ScalarType, Any] = {
    INT4: lambda r: r.choice([r.randint(-3, 3), r.randint(-(2**31), 2**31 - 1), 2**31 - 1, -(2**31)]),
    INT8: lambda r: r.choice([r.randint(-3, 3), r.randint(-(2**63), 2**63 - 1), 2**63 - 1, -(2**63)]),
    UINT8: lambda r: r.choice([0, 1, 2**64 - 1, r.randrange(2**64)]),
    BOOL: lambda r: r.random() < 0.5,
    DATE: lambda r: r.randint(-5, 5),
    FLOAT8: lambda r: r.choice([0.0, -0.0, float("nan"), float("inf"), -float("inf"), r.uniform(-2, 2), 1e300]),
    NUMERIC: lambda r: r.choice(
        [Decimal(r.randint(-5, 5)), Decimal(r.randint(-99, 99)) / 10, Decimal(10**17 + r.randint(0, 9))]
    ),
    TEXT: lambda r: r.choice(["", "a", "b", "long common prefix 1", "long common prefix 2", "z" * r.randint(0, 9)]),
    INTERVAL: lambda r: Interval(r.randint(-1, 1), r.randint(-31, 31), r.randint(-5, 5)),
}
KINDS = list(VALUES)


def column(t: ScalarType, random: Random) -> Any:
    return column_from_datums(t, [None if random.random() < 0.2 else VALUES[t](random) for _ in range(N)])


@pytest.mark.parametrize("kind", KINDS, ids=lambda t: t.kind)
@pytest.mark.parametrize(("desc", "nulls_last"), list(itertools.product([False, True], repeat=2)))
def test_one_column(kind: ScalarType, desc: bool, nulls_last: bool) -> None:
    values = column(kind, Random(1))
    by = ColumnOrder(0, desc, nulls_last)
    order = order_of(values, by)[sort_permutation((values,), (by,), N)]
    assert (order[1:] >= order[:-1]).all()


@pytest.mark.parametrize("first", [INT4, BOOL, DATE], ids=lambda t: t.kind)
@pytest.mark.parametrize("second", KINDS, ids=lambda t: t.kind)
@pytest.mark.parametrize(("desc", "nulls_last"), list(itertools.product([False, True], repeat=2)))
def test_two_columns_in_one(first: ScalarType, second: ScalarType, desc: bool, nulls_last: bool) -> None:
    random = Random(2)
    a, b = column(first, random), column(second, random)
    by, then = ColumnOrder(0, desc, nulls_last), ColumnOrder(1, not desc, nulls_last)
    order = packed(a, by, b, then)[sort_permutation((a, b), (by, then), N)]
    assert (order[1:] >= order[:-1]).all()
    assert len(np.unique(order)) > len(np.unique(order_of(a, by))), "the second column tells rows apart"


@pytest.mark.parametrize("kind", [NUMERIC, FLOAT8, INTERVAL], ids=lambda t: t.kind)
def test_equal_values_have_equal_orders_in_any_batch(kind: ScalarType) -> None:
    pairs: dict[ScalarType, Any] = {
        NUMERIC: (Decimal("1.10"), Decimal("1.1")),
        FLOAT8: (0.0, -0.0),
        INTERVAL: (Interval(0, 1, 0), Interval(0, 0, 86_400_000_000)),
    }
    a, b = pairs[kind]
    left = order_of(column_from_datums(kind, [a]), ColumnOrder(0))
    right = order_of(column_from_datums(kind, [b, VALUES[kind](Random(3))]), ColumnOrder(0))
    assert left[0] == right[0]
