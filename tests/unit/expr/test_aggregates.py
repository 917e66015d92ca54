"""Aggregates: lanes are exact, so any split, order and retraction gives the same result as starting over."""

from __future__ import annotations

import math
import random
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mzlite.expr.aggregates import AGGREGATES, aggregate_name, by_name, call_site
from mzlite.expr.call import RowErrors
from mzlite.repr.datum import ArrayDatum, Interval, column_from_datums, column_to_datums
from mzlite.repr.types import FLOAT4, FLOAT8, INT4, INT8, INTERVAL, NUMERIC, TEXT, UINT8, ScalarType, array_of


def state_of(func: str, typ: ScalarType, values: list[Any], diffs: list[int] | None = None) -> Any:
    entry = AGGREGATES[func]
    assert entry.contribute is not None
    result = entry.returns
    assert isinstance(result, ScalarType)
    column = column_from_datums(typ, values)
    lanes = entry.contribute(call_site(func, result), [column], len(values))
    assert lanes.shape == (len(values), entry.lanes) and lanes.dtype == np.int64
    return (lanes * np.array(diffs or [1] * len(values))[:, None]).sum(axis=0)


def finish(func: str, state: Any) -> Any:
    entry = AGGREGATES[func]
    assert entry.finish is not None
    result = entry.returns
    assert isinstance(result, ScalarType)
    errors = RowErrors()
    column = entry.finish(call_site(func, result), state[None, :], errors)
    if errors:
        return "error"
    return column_to_datums(result, column)[0]


def aggregate(func: str, typ: ScalarType, values: list[Any], diffs: list[int] | None = None) -> Any:
    return finish(func, state_of(func, typ, values, diffs))


def test_result_types() -> None:
    for kind, result in (("int2", "int8"), ("int4", "int8"), ("int8", "numeric"), ("float4", "float4")):
        entry = next(e for e in by_name("sum") if e.params[0].kind == kind)
        assert entry.result_type([ScalarType(kind)]) == ScalarType(result)
    assert aggregate_name("sum_int4") == "sum"
    assert AGGREGATES["array_agg<int4>"].returns == array_of(INT4)


def test_integers() -> None:
    assert aggregate("sum_int4", INT4, [1, 2, None]) == 3
    assert aggregate("sum_int4", INT4, [None]) is None
    assert aggregate("count", INT4, [1, None, 2]) == 2
    assert aggregate("sum_int8", INT8, [2**63 - 1] * 3) == 3 * (2**63 - 1)
    assert aggregate("sum_int8", INT8, [-(2**63)] * 3) == -3 * 2**63
    assert aggregate("sum_uint8", UINT8, [2**64 - 1] * 2) == 2 * (2**64 - 1)
    assert aggregate("avg_int4", INT4, [1, 2]) == Decimal("1.5")


def test_float_sums_are_exact() -> None:
    rng = random.Random(1)
    values = [rng.uniform(-1, 1) * 10.0 ** rng.randint(-20, 30) for _ in range(500)]
    assert aggregate("sum_float8", FLOAT8, values) == float(sum(map(Fraction, values)))
    assert aggregate("sum_float8", FLOAT8, [0.1] * 10) == 1.0


def test_a_huge_value_leaves_no_trace() -> None:
    kept = state_of("sum_float8", FLOAT8, [0.1, 0.2])
    there_and_back = state_of("sum_float8", FLOAT8, [0.1, 1e30, 0.2, 1e30], [1, 1, 1, -1])
    assert (kept == there_and_back).all()
    nan = state_of("sum_float8", FLOAT8, [0.1, math.nan, 0.2, math.nan], [1, 1, 1, -1])
    assert (kept == nan).all()


def test_special_floats() -> None:
    assert aggregate("sum_float8", FLOAT8, [1.0, math.inf]) == math.inf
    assert math.isnan(aggregate("sum_float8", FLOAT8, [math.inf, -math.inf]))
    assert aggregate("sum_float4", FLOAT4, [1.5, 2.5]) == 4.0
    assert aggregate("avg_float8", FLOAT8, [1.0, 2.0, 4.5]) == 2.5


def test_numeric_sums() -> None:
    rng = random.Random(2)
    small = [Decimal(rng.randint(-(10**12), 10**12)).scaleb(-rng.randint(0, 6)) for _ in range(300)]
    assert aggregate("sum_numeric", NUMERIC, small) == sum(map(Fraction, small))
    wide = [*small, Decimal("123456789012345678901234567.000000001"), None]
    assert aggregate("sum_numeric", NUMERIC, wide) == sum(Fraction(d) for d in wide if d is not None)
    assert aggregate("sum_numeric", NUMERIC, [Decimal("9e38"), Decimal("9e38")]) == Decimal("Infinity")
    assert aggregate("avg_numeric", NUMERIC, [Decimal(1), Decimal(2)]) == Decimal("1.5")


def test_intervals() -> None:
    assert aggregate("sum_interval", INTERVAL, [Interval(1, 2, 3), Interval(1, -1, 4)]) == Interval(2, 1, 7)
    assert aggregate("avg_interval", INTERVAL, [Interval(1, 0, 0), Interval(2, 0, 0)]) == Interval(1, 15, 0)


@pytest.mark.parametrize("typ", [INT4, NUMERIC, FLOAT8])
def test_variance(typ: ScalarType) -> None:
    values: list[Any] = [1, 1, 2, 3]
    if typ is NUMERIC:
        values = [Decimal(v) for v in values]
    if typ is FLOAT8:
        values = [float(v) for v in values]
    assert float(aggregate(f"variance_{typ.kind}", typ, values)) == 11 / 12
    assert float(aggregate(f"var_pop_{typ.kind}", typ, values)) == 0.6875
    assert aggregate(f"stddev_{typ.kind}", typ, values[:1]) is None
    assert aggregate(f"stddev_pop_{typ.kind}", typ, values[:1]) == 0


@pytest.mark.parametrize("func", ["sum_float8", "variance_float8", "sum_numeric", "stddev_numeric", "stddev_int4"])
def test_any_split_gives_the_same_state(func: str) -> None:
    rng = random.Random(3)
    typ = AGGREGATES[func].params[0]
    make = {"float8": lambda: rng.uniform(-1e6, 1e6), "int4": lambda: rng.randint(-(2**31), 2**31 - 1)}.get(
        typ.kind, lambda: Decimal(rng.randint(-(10**15), 10**15)).scaleb(-3)
    )
    values = [make() for _ in range(60)]
    whole = state_of(func, typ, values)
    rng.shuffle(values)
    parts = state_of(func, typ, values[:20]) + state_of(func, typ, values[20:])
    assert (whole == parts).all()
    assert (whole + state_of(func, typ, values, [-1] * len(values)) == 0).all()


def collect(func: str, typ: ScalarType, args: list[tuple[ScalarType, list[Any]]], starts: list[int]) -> list[Any]:
    entry = AGGREGATES[func]
    assert entry.collect is not None
    columns = [column_from_datums(t, values) for t, values in args]
    out = entry.collect(call_site(func, typ), columns, np.array(starts), RowErrors())
    return column_to_datums(typ, out)


def test_collecting() -> None:
    groups = [0, 2, 3]
    assert collect("array_agg<int4>", array_of(INT4), [(INT4, [1, None, 3])], groups) == [
        ArrayDatum.of((1, None)),
        ArrayDatum.of((3,)),
    ]
    texts = [(TEXT, ["a", "b", None]), (TEXT, ["-", "+", "*"])]
    assert collect("string_agg_text", TEXT, texts, groups) == ["a+b", None]
