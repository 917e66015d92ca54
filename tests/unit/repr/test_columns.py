"""Columns of many rows: the vectorised ways equal the ways for a few rows."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from mzlite.repr import types as t
from mzlite.repr.column import concat, empty, hash_rows, nulls, repeat, rows_equal, set_hash_mask
from mzlite.repr.datum import column_from_datums, column_to_datums
from mzlite.repr.fixed import FixedColumn
from mzlite.repr.hashing import hash_bytes, hash_slices, mix, mix_int
from mzlite.repr.number import decode_number, encode_number
from mzlite.repr.numeric import NumericColumn, align
from mzlite.repr.types import Layout
from mzlite.repr.var import VarColumn


def random_bytes(rng: np.random.Generator, n: int, longest: int) -> list[bytes | None]:
    alphabet = b"ab\x00\xff"
    return [
        None
        if rng.random() < 0.1
        else bytes(alphabet[i] for i in rng.integers(0, 4, int(rng.integers(0, longest + 1))))
        for _ in range(n)
    ]


@pytest.mark.parametrize("longest", [0, 3, 7, 8, 9, 40, 300])
def test_byte_strings(longest: int) -> None:
    rng = np.random.default_rng(longest)
    values = random_bytes(rng, 500, longest)
    col = VarColumn.from_bytes(values)
    assert col.to_bytes() == values
    assert VarColumn.from_arrow(col.to_arrow()).to_bytes() == values
    idx = rng.integers(0, 500, 300)
    assert col.take(idx).to_bytes() == [values[i] for i in idx]
    view = col.slice(100, 400)
    assert view.take(idx[:40] % 300).to_bytes() == [values[100 + i] for i in idx[:40] % 300]
    assert view.filter(np.arange(300) % 3 == 0).to_bytes() == values[100:400:3]
    assert concat([view, col.slice(0, 0), col.slice(7, 9)]).hash().tolist() == [
        *col.hash()[100:400].tolist(),
        *col.hash()[7:9].tolist(),
    ]
    for i in range(0, 500, 25):
        assert col.slice(i, i + 1).hash()[0] == col.hash()[i]
    bare = VarColumn(col.offsets, col.data)
    plain = bare.to_bytes()
    assert bare.hash().tolist() == [hash_bytes(v or b"") for v in plain]
    codes = bare.order_codes()
    order = sorted(range(500), key=lambda i: plain[i] or b"")
    assert (codes[order][1:] >= codes[order][:-1]).all()
    assert len(set(codes.tolist())) == len(set(plain))
    other = bare.take(np.roll(np.arange(500), 1))
    assert bare.equals(other).tolist() == [a == b for a, b in zip(plain, [plain[-1], *plain[:-1]])]


def test_arrow_strings_with_nulls_and_offsets() -> None:
    array = pa.chunked_array([pa.array(["x", None]), pa.array(["long enough", ""])])
    assert VarColumn.from_arrow(array).to_strings() == ["x", None, "long enough", ""]
    assert VarColumn.from_arrow(array.combine_chunks()[1:3]).to_strings() == [None, "long enough"]
    assert VarColumn.from_arrow(pa.chunked_array([], pa.string())).to_strings() == []


def test_mix_agrees_with_itself() -> None:
    values = np.array([0, 1, 2**64 - 1, 12345], np.uint64)
    assert mix(values).tolist() == [mix_int(v) for v in values.tolist()]
    assert hash_slices(np.zeros(1, np.int64), np.zeros(0, np.uint8)).tolist() == []


NUMBERS = [
    "0", "1", "-1", "0.1", "-0.1", "10", "100", "1e17", "999999999999999999", "-999999999999999999", "1e18", "1e38",
    "12345678901234567890", "0.00000000000000000000000000000000000001", "123456789012345.6", "1234567890123456.7",
    "9007199254740993", "900719925474099.3", "NaN", "Infinity", "-Infinity",
]  # fmt: skip


def test_numbers_order_as_bytes() -> None:
    values = [Decimal(n) for n in NUMBERS]
    encoded = [encode_number(v) for v in values]
    for v, e in zip(values, encoded):
        assert str(decode_number(e)) == str(v) or decode_number(e) == v
    finite = [v for v in values if not v.is_nan()]
    by_bytes = sorted(finite, key=encode_number)
    assert by_bytes == sorted(finite)
    assert max(encoded) == encode_number(Decimal("NaN"))
    assert encode_number(Decimal("1.0")) == encode_number(Decimal("1"))
    assert encode_number(Decimal("-0")) == encode_number(Decimal("0"))


def test_a_number_hashes_alike_in_every_form() -> None:
    for n in NUMBERS:
        value = Decimal(n)
        alone = NumericColumn.from_decimals([value])
        wide = alone.to_wide()
        hashes = {int(alone.hash()[0]), int(wide.hash()[0])}
        many = NumericColumn.from_decimals([value, Decimal("0.5"), None])
        hashes.add(int(many.hash()[0]))
        if alone.wide is None:
            for scale in range(alone.scale, 19):
                scaled = alone.rescaled(scale)
                if scaled is not None:
                    hashes.add(int(scaled.hash()[0]))
                    hashes.add(int(concat([scaled, scaled]).hash()[0]))
                    assert scaled.equals(alone).all() and alone.equals(scaled).all()
        assert len(hashes) == 1, n
        assert alone.equals(wide).all() and wide.equals(alone).all()


def test_aligning_prefers_the_narrow_form() -> None:
    a = NumericColumn(np.array([10**16]), 0)
    b = NumericColumn(np.array([150]), 2)
    assert [c.wide is None for c in align([a, b])] == [True, True], "1.50 fits one decimal"
    c = NumericColumn(np.array([1]), 9)
    assert [x.wide is None for x in align([a, c])] == [False, False]
    both = concat([a, c])
    assert column_to_datums(t.NUMERIC, both) == [Decimal(10**16), Decimal("1e-9")]


def test_integers_as_numeric() -> None:
    big = np.array([2**63 - 1, -(2**63), 5])
    valid = np.array([True, True, False])
    assert NumericColumn.from_integers(big, valid).to_decimals() == [Decimal(2**63 - 1), Decimal(-(2**63)), None]
    assert NumericColumn.from_integers(np.array([2**64 - 1], np.uint64)).to_decimals() == [Decimal(2**64 - 1)]
    assert NumericColumn.from_integers(np.array([1, 2], np.int16)).wide is None
    ignored = NumericColumn.from_integers(big, np.array([False, False, True]))
    assert ignored.wide is None


@pytest.mark.parametrize("layout", list(Layout))
def test_nulls_empty_repeat(layout: Layout) -> None:
    col = nulls(layout, 3)
    assert col.layout is layout and col.is_null().all() and len(col) == 3
    assert len(empty(layout)) == 0
    assert len(repeat(col.slice(0, 1), 40)) == 40
    assert concat([empty(layout), col, empty(layout)]) is col
    assert len(set(col.hash().tolist())) == 1
    assert col.equals(nulls(layout, 3)).all()


def test_rows_without_columns() -> None:
    assert len(set(hash_rows([], 5).tolist())) == 1
    assert rows_equal([], [], 5).all()


def test_the_hash_can_be_narrowed() -> None:
    col = FixedColumn(np.arange(100))
    set_hash_mask(1)
    try:
        assert set(hash_rows([col], 100).tolist()) == {0, 1}
    finally:
        set_hash_mask(None)


def test_column_order_matters_in_a_row_hash() -> None:
    a, b = column_from_datums(t.INT4, [1]), column_from_datums(t.INT4, [2])
    assert hash_rows([a, b], 1)[0] != hash_rows([b, a], 1)[0]
