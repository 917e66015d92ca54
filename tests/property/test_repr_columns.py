"""Columns of every type obey the datum model: what Python says of the datums, hash, equality and order say of columns."""

from __future__ import annotations

import functools
import math
from decimal import Decimal
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mzlite.repr import types as t
from mzlite.repr.column import concat, hash_rows, rows_equal, sort_permutation
from mzlite.repr.datum import (
    Interval,
    column_from_datums,
    column_from_literals,
    column_to_datums,
    decode_datum,
    encode_datum,
)
from mzlite.repr.encode import decode_updates, encode_updates, encoded_size, write_into
from mzlite.repr.updates import constant_updates
from tests.property.repr_strategies import typed_lists

SETTINGS = settings(max_examples=120, deadline=None)


def same(a: Any, b: Any) -> bool:
    """SQL's grouping equality on datums."""
    return compare(a, b) == 0


def compare(a: Any, b: Any) -> int:
    """SQL's order on scalar datums: NULL last, NaN greatest, intervals normalised; other values as Python has them."""
    if a is None or b is None:
        return (a is None) - (b is None)
    ka: Any
    kb: Any
    if isinstance(a, float):
        ka, kb = (math.isnan(a), 0 if math.isnan(a) else a), (math.isnan(b), 0 if math.isnan(b) else b)
    elif isinstance(a, Decimal):
        ka, kb = (a.is_nan(), 0 if a.is_nan() else a), (b.is_nan(), 0 if b.is_nan() else b)
    elif isinstance(a, Interval):
        ka, kb = total(a), total(b)
    elif isinstance(a, str):
        ka, kb = a.encode(), b.encode()
    else:
        ka, kb = a, b
    return int(ka > kb) - int(ka < kb)


def total(i: Interval) -> Any:
    return (i.months * 30 + i.days) * 86_400_000_000 + i.us


def plain(value: Any) -> Any:
    """A datum in a form `==` compares as SQL groups (NaN is one value)."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value
    if isinstance(value, Decimal):
        return "NaN" if value.is_nan() else value
    if isinstance(value, Interval):
        return tuple(value)
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return value


ORDERED = {"array", "list", "map", "range", "record", "jsonb", "int2vector"}


@SETTINGS
@given(typed_lists())
def test_round_trips(case: tuple[t.ScalarType, list[Any]]) -> None:
    typ, values = case
    col = column_from_datums(typ, values)
    assert col.layout is typ.layout
    assert plain(column_to_datums(typ, col)) == plain(values)
    literals = [None if v is None else encode_datum(typ, v) for v in values]
    assert plain([None if b is None else decode_datum(typ, b) for b in literals]) == plain(values)
    assert plain(column_to_datums(typ, column_from_literals(typ, literals))) == plain(values)


@SETTINGS
@given(typed_lists(min_size=1), st.data())
def test_take_filter_slice_concat(case: tuple[t.ScalarType, list[Any]], data: st.DataObject) -> None:
    typ, values = case
    n = len(values)
    col = column_from_datums(typ, values)
    idx = data.draw(st.lists(st.integers(0, n - 1), max_size=60))
    assert plain(column_to_datums(typ, col.take(np.array(idx, np.int64)))) == plain([values[i] for i in idx])
    mask = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    kept = [v for v, m in zip(values, mask) if m]
    assert plain(column_to_datums(typ, col.filter(np.array(mask, np.bool_)))) == plain(kept)
    start = data.draw(st.integers(0, n))
    stop = data.draw(st.integers(start, n))
    part = col.slice(start, stop)
    assert plain(column_to_datums(typ, part)) == plain(values[start:stop])
    both = concat([part, col, part])
    assert plain(column_to_datums(typ, both)) == plain(values[start:stop] + values + values[start:stop])
    assert (both.hash() == np.concatenate([part.hash(), col.hash(), part.hash()])).all()


@SETTINGS
@given(typed_lists(min_size=1))
def test_hash_equality_and_order_agree_with_the_datums(case: tuple[t.ScalarType, list[Any]]) -> None:
    typ, values = case
    n = len(values)
    col = column_from_datums(typ, values)
    left, right = np.divmod(np.arange(n * n), n)
    equal = col.take(left).equals(col.take(right))
    hashes = col.hash()
    codes = col.order_codes()
    null = col.is_null()
    keys = col.keys()
    single = np.array([column_from_datums(typ, [v]).hash()[0] for v in values], np.uint64)
    assert (hashes == single).all(), "a value's hash depends on the batch it stands in"
    for i, j, eq in zip(left.tolist(), right.tolist(), equal.tolist()):
        assert (keys[i] == keys[j]) == eq
        if eq:
            assert hashes[i] == hashes[j]
        if not null[i] and not null[j]:
            assert (codes[i] == codes[j]) == eq
        else:
            assert eq == (null[i] and null[j])
        if typ.kind not in ORDERED:
            assert eq == same(values[i], values[j])
            if not null[i] and not null[j]:
                assert int(codes[i] > codes[j]) - int(codes[i] < codes[j]) == compare(values[i], values[j])


class Order:
    def __init__(self, desc: bool, nulls_last: bool) -> None:
        self.column, self.desc, self.nulls_last = 0, desc, nulls_last


@SETTINGS
@given(typed_lists().filter(lambda c: c[0].kind not in ORDERED), st.booleans(), st.booleans())
def test_sort_permutation(case: tuple[t.ScalarType, list[Any]], desc: bool, nulls_last: bool) -> None:
    typ, values = case
    col = column_from_datums(typ, values)
    got = sort_permutation([col], [Order(desc, nulls_last)], len(values)).tolist()

    def by(i: int, j: int) -> int:
        a, b = values[i], values[j]
        if a is None or b is None:
            return ((a is None) - (b is None)) * (1 if nulls_last else -1)
        return compare(a, b) * (-1 if desc else 1)

    assert got == sorted(range(len(values)), key=functools.cmp_to_key(by))


@SETTINGS
@given(typed_lists(), typed_lists())
def test_flat_encoding(a: tuple[t.ScalarType, list[Any]], b: tuple[t.ScalarType, list[Any]]) -> None:
    n = min(len(a[1]), len(b[1]))
    columns = (column_from_datums(a[0], a[1]).slice(0, n), column_from_datums(b[0], b[1]).slice(0, n))
    u = constant_updates(columns, n, 7, -2)
    data = encode_updates(u)
    assert encoded_size(u) == len(data)
    target = bytearray(len(data))
    assert write_into(u, memoryview(target)) == len(data)
    assert bytes(target) == data
    back = decode_updates(memoryview(data))
    assert back.time.tolist() == [7] * n
    assert back.diff.tolist() == [-2] * n
    assert rows_equal(back.columns, columns, n).all()
    assert (hash_rows(back.columns, n) == hash_rows(columns, n)).all()
    assert plain(column_to_datums(b[0], back.columns[1])) == plain(b[1][:n])
