"""Binary values to text, and the table of (letter, type, mode)."""

from __future__ import annotations

import math
import struct
import uuid

import pytest

from sqllogictest import cells, values
from sqllogictest.records import Mode


def text(oid: int, data: bytes) -> str:
    return values.text_of(oid)(data)


def numeric(sign: int, weight: int, *digits: int, scale: int = 0) -> bytes:
    return struct.pack(f"!hhHH{len(digits)}H", len(digits), weight, sign, scale, *digits)


def array(element: int, dims: list[tuple[int, int]], *items: bytes | None) -> bytes:
    out = struct.pack("!iiI", len(dims), 0, element) + b"".join(struct.pack("!ii", *dim) for dim in dims)
    for item in items:
        out += struct.pack("!i", -1) if item is None else struct.pack("!i", len(item)) + item
    return out


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (numeric(0, 0), "0"),
        (numeric(0, 0, 7, scale=3), "7"),
        (numeric(0, -1, 2000, scale=2), "0.2"),
        (numeric(0x4000, 1, 1, 2345, 6700, scale=4), "-12345.67"),
        (numeric(0, 2, 5), "500000000"),
        (numeric(0, -3, 12), "0.000000000012"),
        (numeric(0xC000, 0), "NaN"),
        (numeric(0xD000, 0), "Infinity"),
        (numeric(0xF000, 0), "-Infinity"),
    ],
)
def test_numeric_has_no_trailing_zeros_and_no_exponent(data: bytes, expected: str) -> None:
    assert text(values.NUMERIC, data) == expected


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        (0, "2000-01-01"),
        (-1, "1999-12-31"),
        (59, "2000-02-29"),
        (-730119, "0001-01-01"),
        (-730120, "0001-12-31 BC"),
        (-730120 - 366, "0002-12-31 BC"),
        (2921939, "9999-12-31"),
        (2921940, "10000-01-01"),
        (0x7FFFFFFF, "infinity"),
    ],
)
def test_dates_of_any_year(days: int, expected: str) -> None:
    assert values.date_text(days) == expected


def test_times() -> None:
    assert values.clock_text(0) == "00:00:00"
    assert values.clock_text(86_399_999_999) == "23:59:59.999999"
    assert values.timestamp_text(-1_000) == "1999-12-31 23:59:59.999"
    assert values.timestamp_text(0, "+00") == "2000-01-01 00:00:00+00"
    bc = -63_113_904_000_000_000 - 86_400_000_000
    assert values.timestamp_text(bc, "+00").endswith("+00 BC")
    assert text(values.TIMETZ, struct.pack("!qi", 3_600_000_000, 12_600)) == "01:00:00-03:30"


@pytest.mark.parametrize(
    ("us", "days", "months", "expected"),
    [
        (0, 0, 0, "00:00:00"),
        (0, 1, 14, "1 year 2 months 1 day"),
        (-5_400_000_000, 0, 0, "-01:30:00"),
        (1, -1, 0, "-1 days +00:00:00.000001"),
        (-1, 3, -13, "-1 years -1 months +3 days -00:00:00.000001"),
        (360_000_000_000, 0, 0, "100:00:00"),
    ],
)
def test_intervals(us: int, days: int, months: int, expected: str) -> None:
    assert text(values.INTERVAL, struct.pack("!qii", us, days, months)) == expected


def test_jsonb_is_compact_and_sorted() -> None:
    data = b'\x01{"b": [1, 2.50, true, null], "a": {"x": "\xc3\xa9\\n"}, "c": 12345678901234567890123.5}'
    assert text(values.JSONB, data) == '{"a":{"x":"é\\n"},"b":[1,2.50,true,null],"c":12345678901234567890123.5}'
    with pytest.raises(values.UnknownValue):
        text(values.JSONB, b"\x02{}")


def test_arrays() -> None:
    assert text(1009, array(25, [])) == "{}"
    words = (b"a b", b"", b"NULL", None, b'q"', b"\\", b"plain")
    assert text(1009, array(25, [(7, 1)], *words)) == '{"a b","","NULL",NULL,"q\\"","\\\\",plain}'
    ints = [struct.pack("!i", i) for i in range(4)]
    assert text(1007, array(23, [(2, 1), (2, 1)], *ints)) == "{{0,1},{2,3}}"
    assert text(1007, array(23, [(2, 0)], *ints[:2])) == "[0:1]={0,1}"
    assert text(1000, array(16, [(2, 1)], b"\x01", b"\x00")) == "{t,f}"
    floats = [struct.pack("!d", v) for v in (1.0, 1e20, math.inf, 0.1)]
    assert text(1022, array(701, [(4, 1)], *floats)) == "{1,1e+20,Infinity,0.1}"
    assert text(values.INT2VECTOR, array(21, [(2, 0)], b"\0\1", b"\0\2")) == "1 2"


def test_records_and_ranges() -> None:
    fields = struct.pack("!i", 4)
    for oid, item in ((23, struct.pack("!i", 1)), (25, b'a "b'), (25, None), (25, b"")):
        fields += struct.pack("!I", oid) + (
            struct.pack("!i", -1) if item is None else struct.pack("!i", len(item)) + item
        )
    assert text(values.RECORD, fields) == '(1,"a ""b",,"")'
    bound = struct.pack("!ii", 4, 5)
    assert text(3904, b"\x01") == "empty"
    assert text(3904, b"\x02" + struct.pack("!ii", 4, 1) + bound) == "[1,5)"
    assert text(3904, b"\x08" + bound) == "(,5)"
    assert text(3908, b"\x12" + struct.pack("!iq", 8, 0)) == '["2000-01-01 00:00:00",)'


def test_other_types() -> None:
    some = uuid.UUID("12345678-1234-5678-1234-567812345678")
    assert text(values.UUID, some.bytes) == str(some)
    assert text(values.BYTEA, b"\xff\x00") == "\\xff00"
    assert text(values.REGCLASS, struct.pack("!I", 3_000_000_000)) == "3000000000"
    assert text(values.UINT8, b"\xff" * 8) == str(2**64 - 1)
    assert text(values.MZ_TIMESTAMP, b"123") == "123"
    assert text(99_999, b"happy") == "happy"
    with pytest.raises(values.UnknownValue):
        text(99_999, b"\xff")


def cell(letter: str, oid: int, data: bytes | None, mode: Mode = Mode.STANDARD) -> str:
    return cells.format_rows([[data]], cells.formatters(letter, (oid,), mode))[0][0]


def f8(value: float) -> bytes:
    return struct.pack("!d", value)


def test_null_comes_before_any_rule() -> None:
    assert cell("I", values.INT4, None) == "NULL"


def test_text_letter() -> None:
    assert cell("T", values.TEXT, b"") == "(empty)"
    assert cell("T", values.BOOL, b"\x01") == "true"
    assert cell("T", values.FLOAT8, f8(1.5)) == "1.500"
    assert cell("T", values.FLOAT8, f8(1.5), Mode.COCKROACH) == "1.500"
    assert cell("T", values.BYTEA, b"abc") == "abc"
    assert cell("T", values.BYTEA, b"\xff\xfe") == "[255, 254]"
    assert cell("T", values.NUMERIC, numeric(0, 0, 1, 5000)) == "1.5"
    assert cell("T", values.INT4, struct.pack("!i", -7)) == "-7"


def test_integer_letter() -> None:
    assert cell("I", values.INT8, struct.pack("!q", -(2**62))) == str(-(2**62))
    assert cell("I", values.TEXT, b"12") == "0"
    assert cell("I", values.BOOL, b"\x00") == "0"
    assert cell("I", values.FLOAT8, f8(-1.9)) == "-1"
    assert cell("I", values.FLOAT8, f8(math.nan)) == "0"
    assert cell("I", values.FLOAT8, f8(1e300)) == str(2**63 - 1)
    assert cell("I", values.FLOAT8, f8(-math.inf)) == str(-(2**63))
    two_and_a_half = numeric(0, 0, 2, 5000)
    assert cell("I", values.NUMERIC, two_and_a_half) == "2"
    assert cell("I", values.NUMERIC, two_and_a_half, Mode.COCKROACH) == "3"
    assert cell("I", values.NUMERIC, numeric(0x4000, -1, 1000)) == "0"


def test_real_letter() -> None:
    assert cell("R", values.INT4, struct.pack("!i", 5)) == "5"
    assert cell("R", values.FLOAT8, f8(2 / 3)) == "0.667"
    assert cell("R", values.FLOAT8, f8(math.inf)) == "inf"
    assert cell("R", values.FLOAT8, f8(1.0), Mode.COCKROACH) == "1"
    assert cell("R", values.FLOAT8, f8(1e-7), Mode.COCKROACH) == "0.0000001"
    assert cell("R", values.FLOAT8, f8(1e25), Mode.COCKROACH) == "1" + "0" * 25
    assert cell("R", values.FLOAT8, f8(-0.0), Mode.COCKROACH) == "-0"
    assert cell("R", values.FLOAT4, struct.pack("!f", 0.1), Mode.COCKROACH) == "0.1"
    largest = struct.unpack("!f", b"\x7f\x7f\xff\xff")[0]
    assert cell("R", values.FLOAT4, struct.pack("!f", largest), Mode.COCKROACH) == "34028235" + "0" * 31
    assert cell("R", values.NUMERIC, numeric(0, 0, 1, 2345)) == "1.235"
    assert cell("R", values.NUMERIC, numeric(0, 0, 1, 2000)) == "1.2"
    assert cell("R", values.NUMERIC, numeric(0, 0, 1, 4, 9000)) == "1.000"
    assert cell("R", values.NUMERIC, numeric(0, 0, 1, 2345), Mode.COCKROACH) == "1.2345"


def test_other_letters_and_bad_pairs() -> None:
    assert cell("B", values.BOOL, b"\x00") == "false"
    assert cell("O", values.OID, struct.pack("!I", 16)) == "16"
    for letter, oid in (("B", values.INT4), ("R", values.TEXT), ("I", values.DATE), ("O", values.INT4), ("R", 16460)):
        with pytest.raises(cells.BadPair):
            cells.formatters(letter, (oid,), Mode.STANDARD)
