"""Type names and OIDs."""

from __future__ import annotations

import pytest

from mzlite.repr import types as t
from mzlite.repr.typenames import oid_of, type_by_name, type_name, type_of_oid


@pytest.mark.parametrize(
    ("typ", "name"),
    [
        (t.INT4, "integer"),
        (t.ScalarType("varchar", length=5), "character varying(5)"),
        (t.ScalarType("bpchar", length=3), "character(3)"),
        (t.ScalarType("numeric", precision=10, scale=2), "numeric(10,2)"),
        (t.ScalarType("numeric", scale=2), "numeric(39,2)"),
        (t.ScalarType("timestamptz", precision=3), "timestamp(3) with time zone"),
        (t.array_of(t.TEXT), "text[]"),
        (t.list_of(t.list_of(t.INT8)), "bigint list list"),
        (t.map_of(t.INT4), "map[text=>integer]"),
        (t.range_of(t.TIMESTAMPTZ), "tstzrange"),
        (t.CHAR, '"char"'),
        (t.ScalarType("list", element=t.INT4, custom="int4_list"), "int4_list"),
        (t.record_of((("a", t.ColumnType(t.INT4, False)), ("b", t.ColumnType(t.TEXT)))), "record(a: integer,b: text?)"),
    ],
)
def test_names(typ: t.ScalarType, name: str) -> None:
    assert type_name(typ) == name


@pytest.mark.parametrize(
    ("name", "typ"),
    [
        ("INT", t.INT4),
        ("pg_catalog.int8", t.INT8),
        ("double  precision", t.FLOAT8),
        ("timestamp with time zone", t.TIMESTAMPTZ),
        ("char", t.ScalarType("bpchar", length=1)),
        ('"char"', t.CHAR),
        ("text[]", t.array_of(t.TEXT)),
        ("_int4", t.array_of(t.INT4)),
        ("int4 list list", t.list_of(t.list_of(t.INT4))),
        ("map[text=>int4]", t.map_of(t.INT4)),
        ("numrange", t.range_of(t.NUMERIC)),
        ("nosuchtype", None),
    ],
)
def test_by_name(name: str, typ: t.ScalarType | None) -> None:
    assert type_by_name(name) == typ


def test_oids_round_trip() -> None:
    kinds = [k for k in t.LAYOUTS if k not in ("array", "list", "map", "record", "range")]
    for kind in kinds:
        typ = t.ScalarType(kind)
        assert type_of_oid(oid_of(typ)) == typ
        if kind not in ("unknown",):
            assert type_of_oid(oid_of(t.array_of(typ))) == t.array_of(typ)
    for subtype in (t.INT4, t.INT8, t.NUMERIC, t.DATE, t.TIMESTAMP, t.TIMESTAMPTZ):
        typ = t.range_of(subtype)
        assert type_of_oid(oid_of(typ)) == typ
        assert type_of_oid(oid_of(t.array_of(typ))) == t.array_of(typ)
    assert type_of_oid(4_000_000) is None
