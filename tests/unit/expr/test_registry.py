"""The registry: ids, binding of polymorphic entries, casts and common types."""

from __future__ import annotations

import pytest

from mzlite.expr.aggregates import AGGREGATES
from mzlite.expr.casts import CASTS, best_common_type, find_cast
from mzlite.expr.functions import FUNCTIONS, by_name
from mzlite.expr.functions.polymorphic import solve
from mzlite.expr.functions.type_ids import parse_type, type_text
from mzlite.repr.types import (
    BOOL,
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    JSONB,
    NUMERIC,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    UINT4,
    UINT8,
    UNKNOWN,
    VARCHAR,
    ColumnType,
    ScalarType,
    array_of,
    list_of,
    map_of,
    range_of,
    record_of,
)

RECORD = record_of((("a", ColumnType(INT4)), ('odd "name,', ColumnType(list_of(array_of(TEXT))))))


@pytest.mark.parametrize("typ", [INT4, array_of(TEXT), list_of(list_of(INT4)), map_of(range_of(DATE)), RECORD])
def test_types_in_ids(typ: ScalarType) -> None:
    parsed = parse_type(type_text(typ))
    assert type_text(parsed) == type_text(typ)
    assert parsed.kind == typ.kind and parsed.element == typ.element


def test_ids_are_unique_and_found() -> None:
    for id, entry in FUNCTIONS.items():
        assert entry.id == id
    assert [e.id for e in by_name("abs")] == [
        "abs_int2",
        "abs_int4",
        "abs_int8",
        "abs_float4",
        "abs_float8",
        "abs_numeric",
    ]
    assert by_name("no such function") == []


def test_binding() -> None:
    (entry,) = by_name("array_cat")
    bound = entry.bind([array_of(INT4), array_of(INT4)])
    assert bound.id == "array_cat<int4[],int4[]>" and bound.returns == array_of(INT4)
    assert FUNCTIONS[bound.id].params == bound.params
    assert by_name("abs")[0].bind([INT2]) is by_name("abs")[0]
    # One id serves every type where evaluation does not look at it.
    assert FUNCTIONS["is_null"].bind([INT4]).id == "is_null"
    assert AGGREGATES["count"].bind([TEXT]).id == "count"
    with pytest.raises(KeyError):
        FUNCTIONS["nothing<int4>"]


def test_solving() -> None:
    any_array = (ScalarType("anyarray"), ScalarType("anyelement"))
    assert solve(any_array, (array_of(INT4), INT4), best_common_type) == (array_of(INT4), INT4)
    assert solve(any_array, (array_of(INT4), UNKNOWN), best_common_type) == (array_of(INT4), INT4)
    assert solve(any_array, (array_of(INT4), TEXT), best_common_type) is None
    assert solve(any_array, (UNKNOWN, UNKNOWN), best_common_type) is None
    compatible = (ScalarType("anycompatiblelist"), ScalarType("anycompatible"))
    assert solve(compatible, (list_of(INT4), INT8), best_common_type) == (list_of(INT8), INT8)


def test_every_cast_has_its_function() -> None:
    for source, target in CASTS:
        if (source, target) == ("array", "list"):
            continue  # by element, see cast_elements
        assert f"cast_{source}_{target}" in FUNCTIONS, (source, target)


def test_contexts() -> None:
    assert find_cast(INT4, INT8, "implicit") == "cast_int4_int8"
    assert find_cast(INT8, INT4, "implicit") is None
    assert find_cast(INT8, INT4, "assignment") == "cast_int8_int4"
    assert find_cast(TEXT, INT4, "assignment") is None
    assert find_cast(TEXT, INT4, "explicit") == "cast_text_int4"
    assert find_cast(VARCHAR, TEXT, "implicit") == ""
    assert find_cast(BOOL, DATE, "explicit") is None
    assert find_cast(INT4, INT4, "implicit") == ""


def test_modifiers_need_a_cast() -> None:
    three = ScalarType("varchar", length=3)
    assert find_cast(TEXT, three, "explicit") == "cast_text_varchar"
    assert find_cast(TEXT, three, "assignment") == "cast_text_varchar_strict"
    assert find_cast(three, VARCHAR, "implicit") == ""
    assert find_cast(three, three, "implicit") == ""
    cents = ScalarType("numeric", precision=10, scale=2)
    assert find_cast(NUMERIC, cents, "assignment") == "cast_numeric_numeric"
    assert find_cast(cents, TEXT, "explicit") == "cast_numeric_text_scale_2"


def test_casts_inside_containers() -> None:
    assert find_cast(list_of(INT4), list_of(INT8), "explicit") == "cast_elements<list<int4>,list<int8>>"
    assert find_cast(array_of(INT4), array_of(INT8), "implicit") is None
    assert find_cast(array_of(INT4), array_of(INT8), "explicit") == "cast_elements<int4[],int8[]>"
    assert find_cast(array_of(INT4), array_of(DATE), "explicit") is None
    assert find_cast(array_of(INT4), list_of(INT4), "explicit") == "cast_elements<int4[],list<int4>>"


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        ([INT4], INT4),
        ([INT2, INT4, INT8], INT8),
        ([INT4, NUMERIC], NUMERIC),
        ([NUMERIC, INT4], NUMERIC),
        ([INT4, NUMERIC, FLOAT8], FLOAT8),
        ([FLOAT4, FLOAT8], FLOAT8),
        ([INT4, UINT4], INT8),
        ([UINT8, INT4], NUMERIC),
        ([DATE, TIMESTAMP, TIMESTAMPTZ], TIMESTAMPTZ),
        ([VARCHAR, TEXT], TEXT),
        ([INT4, TEXT], None),
        ([BOOL, INT4], None),
        ([JSONB, TEXT], None),
        ([ScalarType("varchar", length=3), ScalarType("varchar", length=5)], VARCHAR),
        ([array_of(INT4), array_of(INT4)], array_of(INT4)),
    ],
)
def test_common_type(types: list[ScalarType], expected: ScalarType | None) -> None:
    assert best_common_type(types) == expected
