"""Window functions against a row-at-a-time reference."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from mzlite.expr.scalar import ColumnOrder, Frame, Ref, WindowCall
from mzlite.expr.window_functions import by_name, evaluate_window
from mzlite.repr.datum import column_from_datums, column_to_datums
from mzlite.repr.types import INT4, INT8, TEXT, ScalarType, array_of
from tests.unit.expr.test_eval import lit

Row = tuple[int, Any, Any]


def rows_of(seed: int, n: int = 60) -> list[Row]:
    """(partition, order, value), sorted as the engine hands them over."""
    rng = random.Random(seed)
    rows = [(rng.randint(0, 3), rng.choice([None, 1, 2, 3, 4, 5]), rng.choice([None, 1, 2, 3, 10])) for _ in range(n)]
    last = 10**9
    return sorted(rows, key=lambda r: tuple(last if v is None else v for v in r))


def run(rows: list[Row], call: WindowCall) -> list[Any]:
    columns = [column_from_datums(INT4, [r[i] for r in rows]) for i in range(3)]
    partitions = [r[0] for r in rows]
    starts = [i for i in range(len(rows)) if i == 0 or partitions[i] != partitions[i - 1]]
    (column,) = evaluate_window(columns, np.array(starts), [ColumnOrder(1)], [call])
    return column_to_datums(call.typ, column)


def frame_of(rows: list[Row], i: int, frame: Frame, offsets: tuple[int, int]) -> list[int]:
    """Row numbers in the frame of row i."""
    part = [j for j in range(len(rows)) if rows[j][0] == rows[i][0]]
    groups = sorted({(rows[j][1] is None, rows[j][1] or 0) for j in part})

    def group(j: int) -> int:
        return groups.index((rows[j][1] is None, rows[j][1] or 0))

    def position(bound: str, offset: int) -> float:
        sign = -1 if bound == "preceding" else 1
        return {"unbounded_preceding": -1e9, "unbounded_following": 1e9, "current_row": 0}.get(bound, sign * offset)

    low, high = position(frame.start, offsets[0]), position(frame.end, offsets[1])
    if frame.units == "rows":
        inside = [j for j in part if low <= j - i <= high]
    else:
        inside = [j for j in part if low <= group(j) - group(i) <= high]
    if frame.exclude == "current_row":
        inside = [j for j in inside if j != i]
    elif frame.exclude == "group":
        inside = [j for j in inside if group(j) != group(i)]
    elif frame.exclude == "ties":
        inside = [j for j in inside if j == i or group(j) != group(i)]
    return inside


BOUNDS = [
    ("unbounded_preceding", "current_row"),
    ("unbounded_preceding", "unbounded_following"),
    ("preceding", "following"),
    ("preceding", "preceding"),
    ("current_row", "following"),
    ("following", "unbounded_following"),
]


@pytest.mark.parametrize("units", ["rows", "groups"])
@pytest.mark.parametrize(("start", "end"), BOUNDS)
@pytest.mark.parametrize("exclude", ["no_others", "current_row", "group", "ties"])
def test_frames(units: str, start: str, end: str, exclude: str) -> None:
    rows = rows_of(7)
    frame = Frame(units, start, lit(INT8, 2), end, lit(INT8, 1), exclude)
    frames = [frame_of(rows, i, frame, (2, 1)) for i in range(len(rows))]
    values = [[rows[j][2] for j in f] for f in frames]
    valid = [[v for v in vs if v is not None] for vs in values]

    def call(func: str, typ: ScalarType, *args: Any, **options: Any) -> WindowCall:
        return WindowCall(func, (Ref(2), *args), typ, frame, **options)

    assert run(rows, call("sum_int4", INT8)) == [sum(v) if v else None for v in valid]
    assert run(rows, call("count", INT8)) == [len(v) for v in valid]
    assert run(rows, call("count", INT8, distinct=True)) == [len(set(v)) for v in valid]
    assert run(rows, call("max_int4", INT4)) == [max(v) if v else None for v in valid]
    assert run(rows, call("min_int4", INT4)) == [min(v) if v else None for v in valid]
    arrays = run(rows, call("array_agg<int4>", array_of(INT4)))
    assert [None if a is None else list(a.elements) for a in arrays] == [v or None for v in values]
    assert run(rows, call("first_value", INT4)) == [v[0] if v else None for v in values]
    assert run(rows, call("last_value", INT4)) == [v[-1] if v else None for v in values]
    assert run(rows, call("nth_value", INT4, lit(INT4, 2))) == [v[1] if len(v) > 1 else None for v in values]


def test_range_offset() -> None:
    rows = [r for r in rows_of(8) if r[1] is not None]
    frame = Frame("range", "preceding", lit(INT4, 1), "following", lit(INT4, 1))
    expected = []
    for p, o, _ in rows:
        near = [r[2] for r in rows if r[0] == p and abs(r[1] - o) <= 1 and r[2] is not None]
        expected.append(sum(near) if near else None)
    assert run(rows, WindowCall("sum_int4", (Ref(2),), INT8, frame)) == expected


def test_ranks() -> None:
    rows = rows_of(9)
    numbers, ranks, dense = [], [], []
    for i, (p, o, _) in enumerate(rows):
        part = [j for j in range(len(rows)) if rows[j][0] == p]
        numbers.append(part.index(i) + 1)
        ranks.append(next(k for k, j in enumerate(part) if rows[j][1] == o) + 1)
        dense.append(len({rows[j][1] for j in part if j <= i}))
    assert run(rows, WindowCall("row_number", (), INT8)) == numbers
    assert run(rows, WindowCall("rank", (), INT8)) == ranks
    assert run(rows, WindowCall("dense_rank", (), INT8)) == dense


@pytest.mark.parametrize("ignore_nulls", [False, True])
@pytest.mark.parametrize(("func", "step"), [("lag", -1), ("lead", 1)])
def test_lag_and_lead(func: str, step: int, ignore_nulls: bool) -> None:
    rows = rows_of(10)
    expected = []
    for i, (p, _, _) in enumerate(rows):
        part = [j for j in range(len(rows)) if rows[j][0] == p]
        ahead = [j for j in part if (j < i if step < 0 else j > i)]
        if step < 0:
            ahead.reverse()
        if ignore_nulls:
            ahead = [j for j in ahead if rows[j][2] is not None]
        expected.append(rows[ahead[1]][2] if len(ahead) > 1 else -1)
    call = WindowCall(f"{func}_default", (Ref(2), lit(INT4, 2), lit(INT4, -1)), INT4, ignore_nulls=ignore_nulls)
    assert run(rows, call) == expected


def test_ntile_and_names() -> None:
    rows: list[Row] = [(0, i, i) for i in range(7)]
    assert run(rows, WindowCall("ntile", (lit(INT4, 3),), INT4)) == [1, 1, 1, 2, 2, 3, 3]
    assert [e.id for e in by_name("lag")] == ["lag", "lag_offset", "lag_default"]


def test_string_agg_and_filter() -> None:
    columns = [column_from_datums(INT4, [1, 2, 3]), column_from_datums(TEXT, ["a", "b", "c"])]
    from mzlite.expr.scalar import Call
    from mzlite.repr.types import BOOL

    odd = Call("not_eq_int4", (Ref(0), lit(INT4, 2)), BOOL)
    call = WindowCall("string_agg_text", (Ref(1), lit(TEXT, ",")), TEXT, filter=odd)
    (column,) = evaluate_window(columns, np.array([0]), [ColumnOrder(0)], [call])
    assert column_to_datums(TEXT, column) == ["a", "a", "a,c"]


def test_no_rows() -> None:
    empty = column_from_datums(INT4, [])
    (column,) = evaluate_window([empty], np.zeros(1, np.int64), [], [WindowCall("sum_int4", (Ref(0),), INT8)])
    assert len(column) == 0
