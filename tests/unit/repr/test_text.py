"""Text in and out, by example: the forms people write, and the words of the errors."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from mzlite.repr import types as t
from mzlite.repr.datum import JSON_NULL, ArrayDatum, Interval, RangeDatum
from mzlite.repr.errors import SqlError
from mzlite.repr.intervaltext import parse_interval_literal
from mzlite.repr.text import format_datum, parse_datum

NUMERIC_2 = t.ScalarType("numeric", scale=2)
VARCHAR_3 = t.ScalarType("varchar", length=3)
CHAR_3 = t.ScalarType("bpchar", length=3)

# (type, text read, text printed)
FORMS: list[tuple[t.ScalarType, str, str]] = [
    (t.BOOL, " YES ", "t"),
    (t.BOOL, "off", "f"),
    (t.INT4, " +42 ", "42"),
    (t.OID, "-1", "4294967295"),
    (t.UINT8, "18446744073709551615", "18446744073709551615"),
    (t.FLOAT8, "1e20", "1e+20"),
    (t.FLOAT8, "1e-5", "0.00001"),
    (t.FLOAT8, "1e-6", "1e-6"),
    (t.FLOAT8, "100000000000000000", "1e+17"),
    (t.FLOAT8, "-0", "-0"),
    (t.FLOAT8, "-inf", "-Infinity"),
    (t.FLOAT8, "nan", "NaN"),
    (t.FLOAT8, "1.50", "1.5"),
    (t.FLOAT4, "0.1", "0.1"),
    (t.FLOAT4, "16777217", "16777216"),
    (t.FLOAT4, "1e14", "1e+14"),
    (t.FLOAT4, "123456.7", "123456.7"),
    (t.NUMERIC, "1.500", "1.5"),
    (t.NUMERIC, "1e3", "1000"),
    (t.NUMERIC, "-0.0", "0"),
    (t.NUMERIC, ".5", "0.5"),
    (t.NUMERIC, "NaN", "NaN"),
    (NUMERIC_2, "1.005", "1.01"),
    (NUMERIC_2, "-1.005", "-1.01"),
    (NUMERIC_2, "7", "7.00"),
    (NUMERIC_2, "-0.001", "0.00"),
    (VARCHAR_3, "abc  ", "abc"),
    (CHAR_3, "a", "a  "),
    (t.BYTEA, r"\x00Ff 10", r"\x00ff10"),
    (t.BYTEA, r"a\\b\001", r"\x615c6201"),
    (t.UUID, "{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    (t.DATE, "2024-02-29", "2024-02-29"),
    (t.DATE, "20240229", "2024-02-29"),
    (t.DATE, "2024 02 29", "2024-02-29"),
    (t.DATE, "0044-03-15 BC", "0044-03-15 BC"),
    (t.DATE, "epoch", "1970-01-01"),
    (t.TIME, "1:2", "01:02:00"),
    (t.TIME, "23:59:59.5000", "23:59:59.5"),
    (t.TIMESTAMP, "2024-02-29T12:00:00.1234567", "2024-02-29 12:00:00.123457"),
    (t.TIMESTAMP, "2024-02-29", "2024-02-29 00:00:00"),
    (t.TIMESTAMP, "2024-02-29 12:00:00+05", "2024-02-29 12:00:00"),
    (t.TIMESTAMP, "0001-01-01 00:00:00 BC", "0001-01-01 00:00:00 BC"),
    (t.TIMESTAMP, "2024-12-31 23:59:60", "2025-01-01 00:00:00"),
    (t.ScalarType("timestamp", precision=1), "2024-01-01 00:00:00.25", "2024-01-01 00:00:00.3"),
    (t.TIMESTAMPTZ, "2024-07-01 12:00:00 Europe/Berlin", "2024-07-01 10:00:00+00"),
    (t.TIMESTAMPTZ, "2024-07-01 12:00:00 -03:30", "2024-07-01 15:30:00+00"),
    (t.TIMESTAMPTZ, "2024-07-01 12:00:00 PST", "2024-07-01 20:00:00+00"),
    (t.TIMESTAMPTZ, "2024-03-10 02:30:00 America/New_York", "2024-03-10 07:30:00+00"),  # skipped by the clocks
    (t.TIMESTAMPTZ, "2024-11-03 01:30:00 America/New_York", "2024-11-03 06:30:00+00"),  # repeated by them
    (t.TIMESTAMPTZ, "2024-07-01 12:00:00Z", "2024-07-01 12:00:00+00"),
    (t.INTERVAL, "1 year 2 mons -3 days 04:05:06.7", "1 year 2 months -3 days +04:05:06.7"),
    (t.INTERVAL, "P1Y2M3DT4H5M6.7S", "1 year 2 months 3 days 04:05:06.7"),
    (t.INTERVAL, "P1W", "7 days"),
    (t.INTERVAL, "PT-1.5H", "-01:30:00"),
    (t.INTERVAL, "1.5 weeks", "10 days 12:00:00"),
    (t.INTERVAL, "@ 1 day ago", "-1 days"),
    (t.INTERVAL, "1-2", "1 year 2 months"),
    (t.INTERVAL, "0", "00:00:00"),
    (t.JSONB, ' {"b": [1.0, null], "a": "x\\u00e9", "b": 2} ', '{"a":"xé","b":2}'),
    (t.JSONB, "1e2", "100"),
    (t.JSONB, '"\\n\\u0001"', '"\\n\\u0001"'),
    (t.array_of(t.INT4), "{ 1, NULL ,3}", "{1,NULL,3}"),
    (t.array_of(t.INT4), "{{1,2},{3,4}}", "{{1,2},{3,4}}"),
    (t.array_of(t.INT4), "{{},{}}", "{}"),
    (t.array_of(t.TEXT), r'{a b, "c,\"d", "", "NULL", \"}', r'{"a b","c,\"d","","NULL","\""}'),
    (t.array_of(t.BOOL), "{true,f}", "{t,f}"),
    (t.list_of(t.list_of(t.TEXT)), '{{a,"b,c"},{}}', '{{a,"b,c"},{}}'),
    (t.map_of(t.INT4), "{b=>2, a => 1, b=>NULL}", "{a=>1,b=>NULL}"),
    (t.map_of(t.map_of(t.INT4)), "{x=>{a=>1}}", "{x=>{a=>1}}"),
    (t.range_of(t.INT4), "[1,5]", "[1,6)"),
    (t.range_of(t.INT4), "(1,2)", "empty"),
    (t.range_of(t.INT4), "(,5)", "(,5)"),
    (t.range_of(t.NUMERIC), "(1.50,2]", "(1.5,2]"),
    (t.range_of(t.TIMESTAMP), "[2024-01-01,)", '["2024-01-01 00:00:00",)'),
    (t.INT2VECTOR, " 1  2 3", "1 2 3"),
]


@pytest.mark.parametrize(("typ", "text", "printed"), FORMS)
def test_forms(typ: t.ScalarType, text: str, printed: str) -> None:
    assert format_datum(typ, parse_datum(typ, text)) == printed


DATUMS: list[tuple[t.ScalarType, str, Any]] = [
    (t.JSONB, "null", JSON_NULL),
    (t.JSONB, "[1.50]", [Decimal("1.5")]),
    (t.array_of(t.INT4), "{{1},{2}}", ArrayDatum(((2, 1), (1, 1)), (1, 2))),
    (t.range_of(t.INT4), "empty", RangeDatum(empty=True)),
    (t.INTERVAL, "1 mon 1 day 1 us", Interval(1, 1, 1)),
    (t.BPCHAR, "a  ", "a"),
    (t.TEXT, " a ", " a "),
]


@pytest.mark.parametrize(("typ", "text", "datum"), DATUMS)
def test_datums(typ: t.ScalarType, text: str, datum: Any) -> None:
    assert parse_datum(typ, text) == datum


ERRORS: list[tuple[t.ScalarType, str, str, str]] = [
    (t.INT4, "x", "22P02", 'invalid input syntax for type integer: invalid digit found in string: "x"'),
    (t.INT4, "", "22P02", 'invalid input syntax for type integer: cannot parse integer from empty string: ""'),
    (t.INT2, "40000", "22003", "number too large to fit in target type"),
    (t.INT8, "-9223372036854775809", "22003", "number too small to fit in target type"),
    (t.UINT4, "-1", "22P02", "invalid digit found in string"),
    (t.FLOAT8, "1_0", "22P02", 'invalid input syntax for type double precision: "1_0"'),
    (t.FLOAT8, "1e400", "22003", '"1e400" is out of range for type double precision'),
    (t.FLOAT8, "1e-400", "22003", '"1e-400" is out of range for type double precision'),
    (t.FLOAT4, "1e39", "22003", '"1e39" is out of range for type real'),
    (t.NUMERIC, "1.2.3", "22P02", 'invalid input syntax for type numeric: "1.2.3"'),
    (t.NUMERIC, "1e99999999", "22003", "exceeds maximum precision 39"),
    (t.ScalarType("numeric", scale=38), "99", "22003", "numeric field overflow"),
    (t.BOOL, "maybe", "22P02", 'invalid input syntax for type boolean: "maybe"'),
    (VARCHAR_3, "abcd", "22001", "value too long for type character varying(3)"),
    (CHAR_3, "abcd", "22001", "value too long for type character(3)"),
    (t.BYTEA, r"\xf", "22P02", "invalid hexadecimal data: odd number of digits"),
    (t.BYTEA, "a\\", "22P02", "ends with escape character"),
    (t.UUID, "123", "22P02", "invalid input syntax for type uuid"),
    (t.DATE, "2024-02-30", "22P02", "invalid or out-of-range date"),
    (t.DATE, "2024-13-01", "22P02", "MONTH must be [1, 12], got 13"),
    (t.DATE, "0000-01-01", "22P02", "YEAR cannot be zero"),
    (t.DATE, "", "22P02", "timestamp string is empty"),
    (t.TIME, "25:00", "22P02", "HOUR must be [0, 23], got 25"),
    (t.TIMESTAMPTZ, "2024-01-01 00:00:00 Nowhere/City", "22P02", "'Nowhere/City' is not a valid timezone"),
    (t.TIMESTAMPTZ, "2024-01-01 00:00:00+16", "22P02", "timezone hour invalid 16"),
    (t.INTERVAL, "1 fortnight", "22P02", "unknown units fortnight"),
    (t.INTERVAL, "99999999999 days", "22P02", "Overflows maximum days"),
    (t.JSONB, "{", "22P02", "EOF while parsing an object at line 1 column 1"),
    (t.JSONB, "[1,]", "22P02", "invalid input syntax for type jsonb"),
    (t.JSONB, "NaN", "22P02", "expected value at line 1 column 1"),
    (t.JSONB, '"\\ud800"', "22P02", "surrogate"),
    (t.JSONB, "[" * 10_000, "22P02", "invalid input syntax for type jsonb"),
    (t.array_of(t.INT4), "1,2", "22P02", 'Array value must start with "{": "1,2"'),
    (
        t.array_of(t.INT4),
        "{a}",
        "22P02",
        'type array: invalid input syntax for type integer: invalid digit found in string: "a": "{a}"',
    ),
    (
        t.array_of(t.INT4),
        "{{1},{2,3}}",
        "22P02",
        "Multidimensional arrays must have sub-arrays with matching dimensions.",
    ),
    (t.array_of(t.INT4), "{1", "22P02", "Unexpected end of input."),
    (t.array_of(t.INT4), "{1} x", "22P02", "Junk after closing right brace."),
    (t.list_of(t.TEXT), "{a}b", "22P02", "contains 'b' after terminal '}'"),
    (t.list_of(t.TEXT), "{{a}}", "22P02", "unescaped '{' at beginning of element"),
    (t.map_of(t.INT4), "{a:1}", "22P02", "invalid input syntax for type map"),
    (t.map_of(t.INT4), "{a=1}", "22P02", "expected =>"),
    (t.range_of(t.INT4), "1,2", "22P02", "Missing left parenthesis or bracket."),
    (t.range_of(t.INT4), "[1", "22P02", "Unexpected end of input."),
    (t.range_of(t.INT4), "[5,1]", "22P02", "range lower bound must be less than or equal to range upper bound"),
    (t.INT2VECTOR, "1 x", "22P02", "invalid input syntax for type int2vector"),
]


@pytest.mark.parametrize(("typ", "text", "sqlstate", "words"), ERRORS, ids=lambda v: repr(v)[:30])
def test_errors(typ: t.ScalarType, text: str, sqlstate: str, words: str) -> None:
    with pytest.raises(SqlError) as caught:
        parse_datum(typ, text)
    assert caught.value.sqlstate == sqlstate
    assert words in caught.value.message


# (text, leading field, last field, precision, printed)
QUALIFIED = [
    ("3", None, "month", None, "3 months"),
    ("3", None, "hour", None, "03:00:00"),
    ("1-2 3 4:05:06", None, "day", None, "1 year 2 months 3 days"),
    ("1-2 3 4:05:06", "day", "hour", None, "3 days 04:00:00"),
    ("12:34", "minute", "second", None, "00:12:34"),
    ("1.23456", None, "second", 2, "00:00:01.23"),
    ("-1.235", None, "second", 2, "-00:00:01.24"),
    ("14", None, "month", None, "1 year 2 months"),
]


@pytest.mark.parametrize(("text", "high", "low", "precision", "printed"), QUALIFIED)
def test_qualified_intervals(text: str, high: str | None, low: str | None, precision: int | None, printed: str) -> None:
    assert format_datum(t.INTERVAL, parse_interval_literal(text, high, low, precision)) == printed


def test_arrays_print_their_lower_bounds() -> None:
    value = ArrayDatum(((2, 0), (1, 3)), (1, None))
    assert format_datum(t.array_of(t.INT4), value) == "[0:1][3:3]={{1},{NULL}}"


def test_records_quote_as_postgres_does() -> None:
    typ = t.record_of(tuple((n, t.ColumnType(t.TEXT)) for n in "abcde"))
    assert format_datum(typ, ("x", None, "", 'q"u\\', "a b")) == r'(x,,"","q""u\\","a b")'
