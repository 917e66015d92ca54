"""Hypothesis strategies for types and their datums, shared by the repr property tests."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from mzlite.repr import types as t
from mzlite.repr.datum import JSON_NULL, ArrayDatum, Interval, RangeDatum

I32 = st.integers(-(2**31), 2**31 - 1)
I64 = st.integers(-(2**63), 2**63 - 1)
# Inside arrays PostgreSQL quotes the word null in any case; we quote only NULL, as Materialize does.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20).filter(
    lambda s: s == "NULL" or s.upper() != "NULL"
)


def decimals() -> st.SearchStrategy[Decimal]:
    small = st.builds(lambda m, s: Decimal(m).scaleb(-s), st.integers(-(10**17), 10**17), st.integers(0, 17))
    close = st.builds(lambda m, s: Decimal(m).scaleb(-s), st.integers(-20, 20), st.integers(0, 3))
    wide = st.builds(lambda m, s: Decimal(f"{m}E-{s}"), st.integers(-(10**38), 10**38), st.integers(0, 38))
    special = st.sampled_from([Decimal("NaN"), Decimal("Infinity"), Decimal("-Infinity"), Decimal("-0"), Decimal(0)])
    return st.one_of(small, close, wide, special)


def finite_decimals() -> st.SearchStrategy[Decimal]:
    return decimals().filter(lambda d: d.is_finite())


def json_values() -> st.SearchStrategy[Any]:
    leaves = st.one_of(st.just(JSON_NULL), st.booleans(), finite_decimals(), TEXT)
    return st.recursive(
        leaves,
        lambda kids: st.one_of(st.lists(kids, max_size=4), st.dictionaries(TEXT, kids, max_size=4)),
        max_leaves=8,
    )


SCALARS: dict[t.ScalarType, st.SearchStrategy[Any]] = {
    t.BOOL: st.booleans(),
    t.INT2: st.integers(-(2**15), 2**15 - 1),
    t.INT4: I32,
    t.INT8: I64,
    t.UINT2: st.integers(0, 2**16 - 1),
    t.UINT4: st.integers(0, 2**32 - 1),
    t.UINT8: st.integers(0, 2**64 - 1),
    t.FLOAT4: st.floats(width=32),
    t.FLOAT8: st.one_of(st.floats(), st.sampled_from([0.0, -0.0, 1.0])),
    t.NUMERIC: decimals(),
    t.OID: st.integers(0, 2**32 - 1),
    t.MZ_TIMESTAMP: st.integers(0, 2**64 - 1),
    t.DATE: st.integers(-2_000_000, 2_000_000),
    t.TIME: st.integers(0, 86_400_000_000 - 1),
    t.TIMESTAMP: st.integers(-(2**57), 2**57),
    t.TIMESTAMPTZ: st.integers(-(2**57), 2**57),
    t.INTERVAL: st.one_of(
        st.builds(Interval, I32, I32, I64),
        st.builds(Interval, st.integers(-2, 2), st.integers(-60, 60), st.sampled_from([0, 1, -1, 86_400_000_000])),
    ),
    t.TEXT: TEXT,
    t.BYTEA: st.binary(max_size=40),
    t.JSONB: json_values(),
    t.UUID: st.binary(min_size=16, max_size=16),
    t.INT2VECTOR: st.lists(st.integers(-(2**15), 2**15 - 1), max_size=4).map(tuple),
}


def datums(typ: t.ScalarType) -> st.SearchStrategy[Any]:
    """Non-NULL datums of `typ`."""
    if typ in SCALARS:
        return SCALARS[typ]
    if typ.kind == "record":
        assert typ.fields is not None
        return st.tuples(*(nullable(f.scalar) for _, f in typ.fields))
    assert typ.element is not None
    element = typ.element
    if typ.kind == "array":
        flat = st.lists(nullable(element), max_size=4).map(ArrayDatum.of)
        square = st.lists(nullable(element), min_size=4, max_size=4).map(
            lambda e: ArrayDatum(((2, 1), (2, 0)), tuple(e))
        )
        return st.one_of(flat, square)
    if typ.kind == "list":
        return st.lists(nullable(element), max_size=4).map(tuple)
    if typ.kind == "map":
        return st.dictionaries(TEXT, nullable(element), max_size=3)
    assert typ.kind == "range"
    bound = nullable(element)
    full = st.builds(
        lambda lo, hi, li, ui: RangeDatum(lo, hi, li and lo is not None, ui and hi is not None),
        bound, bound, st.booleans(), st.booleans(),
    )  # fmt: skip
    return st.one_of(st.just(RangeDatum(empty=True)), full)


def nullable(typ: t.ScalarType) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), datums(typ))


CONTAINERS: list[t.ScalarType] = [
    t.array_of(t.INT4),
    t.array_of(t.TEXT),
    t.list_of(t.NUMERIC),
    t.list_of(t.list_of(t.TEXT)),
    t.map_of(t.INT8),
    t.range_of(t.INT4),
    t.range_of(t.NUMERIC),
    t.record_of((("a", t.ColumnType(t.INT4)), ("b", t.ColumnType(t.TEXT)))),
]
TYPES: list[t.ScalarType] = [*SCALARS, *CONTAINERS]


def typed_lists(*, min_size: int = 0, max_size: int = 40) -> st.SearchStrategy[tuple[t.ScalarType, list[Any]]]:
    """(type, nullable datums), with repeats likely."""

    def values(typ: t.ScalarType) -> st.SearchStrategy[tuple[t.ScalarType, list[Any]]]:
        pool = st.lists(nullable(typ), min_size=1, max_size=6)
        picked = pool.flatmap(lambda p: st.lists(st.sampled_from(p), min_size=min_size, max_size=max_size))
        return st.tuples(st.just(typ), st.one_of(picked, st.lists(nullable(typ), min_size=min_size, max_size=8)))

    return st.sampled_from(TYPES).flatmap(values)
