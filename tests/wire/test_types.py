"""Values of every type, text and binary, byte for byte as PostgreSQL sends them."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import sql

VALUES = {
    "bool": ["true", "false"],
    "int2": ["-32768", "0", "32767"],
    "int4": ["-2147483648", "7"],
    "int8": ["-9223372036854775808", "9223372036854775807"],
    "float4": ["1.5", "-0.1", "1e20", "1e-10", "NaN", "Infinity", "-Infinity", "3.4e38", "99999", "0.001"],
    "float8": ["1.5", "-0.1", "1e16", "1e-10", "123456789.125", "NaN", "Infinity", "1e300", "5e-324"],
    "numeric": ["0", "1", "-1.5", "12345678901234567890.123456789", "0.0001", "-0.00012", "10000", "1e20", "NaN"],
    "text": ["''", "'a b'", "'日本'", "'\"\\'"],
    "varchar": ["'abc'"],
    "bytea": [r"'\x00ff'", r"'\x'", r"'abc'"],
    "date": ["'2024-02-29'", "'1969-12-31'", "'0044-03-15 BC'", "'9999-12-31'"],
    "time": ["'00:00'", "'23:59:59.999999'", "'12:30:00.5'"],
    "timestamp": ["'2024-02-29 12:34:56.789'", "'1969-12-31 23:59:59.999999'", "'0044-03-15 01:02:03 BC'"],
    "timestamptz": ["'2024-02-29 12:34:56+02'", "'1900-01-01 00:00:00.25+00'"],
    "interval": ["'1 day 02:03:04.5'", "'-1 day -00:00:01'", "'00:00:00'", "'40 days -3 hours'"],
    "uuid": ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"],
    "jsonb": ["""'{"a": [1, 2.5, null, true, "x\\\\n"], "b": {}}'""", "'[]'", "'\"s\"'", "'1'"],
    "int4[]": ["'{}'", "'{1,NULL,3}'", "'{{1,2},{3,4}}'"],
    "text[]": ["""'{a,"b c","NULL",NULL,"","q\\"q","{"}'"""],
    "float8[]": ["'{1.5,NaN}'"],
    "timestamp[]": ["'{2024-01-01 00:00:00}'"],
    "bool[]": ["'{t,f}'"],
    "oid": ["1", "4294967295"],
    "name": ["'n'"],
    '"char"': ["'c'"],
    "int4range": ["'[1,5)'", "'(1,5]'", "'empty'", "'(,5)'", "'[3,)'"],
    "numrange": ["'[1.5,2.5]'"],
    "daterange": ["'[2024-01-01,2024-01-31]'"],
    "tsrange": ["'[2024-01-01 00:00,2024-01-02 00:00)'"],
}
CASES = [(typ, text) for typ, texts in VALUES.items() for text in texts]


def wire_form(
    conn: psycopg.Connection[tuple[object, ...]], typ: str, text: str, binary: bool
) -> tuple[int, bytes | None]:
    quoted = text if text.startswith("'") else f"'{text}'"
    cursor = conn.cursor(binary=binary)
    cursor.execute(sql.SQL(f"SELECT {quoted}::{typ}"))  # type: ignore[arg-type]
    result = cursor.pgresult
    assert result is not None and result.fformat(0) == binary
    return result.ftype(0), result.get_value(0, 0)


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_values_have_postgres_bytes(
    mz: psycopg.Connection[tuple[object, ...]], postgres_dsn: str, binary: bool
) -> None:
    differences = []
    with psycopg.connect(postgres_dsn, autocommit=True) as pg:
        pg.execute("SET extra_float_digits = 1")
        for typ, text in CASES:
            ours, theirs = (wire_form(c, typ, text, binary) for c in (mz, pg))
            if ours != theirs:
                differences.append((typ, text, ours, theirs))
    assert not differences, differences


def test_nulls(mz: psycopg.Connection[tuple[object, ...]]) -> None:
    for binary in (False, True):
        row = mz.cursor(binary=binary).execute("SELECT NULL::int, NULL::text, NULL::jsonb, NULL::int[]").fetchone()
        assert row == (None, None, None, None)


@pytest.mark.parametrize("binary", [False, True], ids=["text", "binary"])
def test_parameters_come_back(mz: psycopg.Connection[tuple[object, ...]], binary: bool) -> None:
    mark = "%b" if binary else "%t"
    for typ, texts in VALUES.items():
        if typ in ("name", '"char"', "oid", "interval"):
            continue
        for text in (t for t in texts if "BC" not in t):  # Python has no such years
            quoted = text if text.startswith("'") else f"'{text}'"
            (value,) = mz.cursor(binary=binary).execute(f"SELECT {quoted}::{typ}").fetchone() or ()  # type: ignore[arg-type]
            shown = f"SELECT ({mark}::{typ})::text, {quoted}::{typ}::text"
            if typ == "jsonb":
                value = psycopg.types.json.Jsonb(value)
            row = mz.cursor().execute(shown, (value,)).fetchone() or ()  # type: ignore[arg-type]
            assert row[0] == row[1], (typ, text, value)


def test_types_of_our_own(mz: psycopg.Connection[tuple[object, ...]]) -> None:
    row = mz.execute("SELECT 18446744073709551615::uint8, '{a=>1}'::map[text=>int]::text, LIST[1, 2]::text").fetchone()
    assert row is not None and [str(v) for v in row] == ["18446744073709551615", "{a=>1}", "{1,2}"]


def test_columns_say_what_they_are(mz: psycopg.Connection[tuple[object, ...]]) -> None:
    cursor = mz.execute(
        "SELECT 1::numeric(10, 2) AS n, 'x'::varchar(5) AS v, 'x'::char(3) AS c, now() AS t, 1::int2 AS s"
    )
    assert cursor.description is not None
    n, v, c, t, s = cursor.description
    assert (n.name, n.type_code, n.precision, n.scale) == ("n", 1700, 10, 2) or n.scale == 2
    assert (v.type_code, v.display_size) == (1043, 5)
    assert (c.type_code, c.display_size) == (1042, 3)
    assert (t.type_code, s.type_code, s.internal_size) == (1184, 21, 2)
