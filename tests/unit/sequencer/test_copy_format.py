"""COPY's formats: the fast way reads what the careful way reads, wherever the client cut its messages."""

from __future__ import annotations

import itertools
import random

import pytest

from adapter.sequencer import copy_format
from adapter.sequencer.copy_format import CopyReader, CopyWriter
from adapter.sql.plans import CopyFormat
from mzlite.repr.datum import column_from_datums, column_to_datums
from mzlite.repr.errors import SqlError
from mzlite.repr.types import INT4, TEXT, TIMESTAMP, ColumnType, RelationDesc, RelationType

DESC = RelationDesc(("a", "b", "c"), RelationType((ColumnType(INT4), ColumnType(TEXT), ColumnType(TIMESTAMP))))
ROWS = [
    (1, "plain", 0),
    (None, "", 1_000_000),
    (3, 'quote " and, comma', None),
    (-4, "tab\there\nand newline", 86_400_000_000),
    (5, None, 5),
    (6, "\\N", 6),
    (7, "back\\slash \\. é", 7),
]


def write(rows: list[tuple[object, ...]], form: CopyFormat) -> bytes:
    columns = [column_from_datums(t.scalar, [r[i] for r in rows]) for i, t in enumerate(DESC.typ.columns)]
    writer = CopyWriter(DESC, form)
    return b"".join([*writer.header(), *writer.rows(columns, len(rows)), *writer.trailer()])


def read(data: bytes, form: CopyFormat, cuts: list[int]) -> list[tuple[object, ...]]:
    reader = CopyReader(DESC, form)
    out: list[tuple[object, ...]] = []
    edges = [0, *sorted(cuts), len(data)]
    batches = []
    for start, stop in itertools.pairwise(edges):
        batches += list(reader.feed(data[start:stop]))
    batches += list(reader.finish())
    for columns, n in batches:
        values = [column_to_datums(t.scalar, c) for t, c in zip(DESC.typ.columns, columns)]
        assert all(len(v) == n for v in values)
        out += list(zip(*values))
    return out


FORMS = [
    CopyFormat("text"),
    CopyFormat("text", delimiter="|", null="<null>"),
    CopyFormat("text", header=True),
    CopyFormat("csv"),
    CopyFormat("csv", header=True, null="NA"),
    CopyFormat("csv", delimiter=";", quote="'"),
    CopyFormat("csv", escape="\\"),
    CopyFormat("binary"),
]


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("fast_bytes", [0, 1 << 30])
@pytest.mark.parametrize("batch_bytes", [1, 1 << 20])
def test_round_trip(form: CopyFormat, fast_bytes: int, batch_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copy_format, "FAST_BYTES", fast_bytes)
    monkeypatch.setattr(copy_format, "BATCH_BYTES", batch_bytes)
    rows: list[tuple[object, ...]] = ROWS * 3
    data = write(rows, form)
    rng = random.Random(7)
    for _ in range(10):
        cuts = [rng.randrange(len(data)) for _ in range(5)]
        assert read(data, form, cuts) == rows


def test_plain_rows_take_the_fast_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CopyReader, "_csv_rows", None)
    monkeypatch.setattr(CopyReader, "_text_rows", None)
    rows: list[tuple[object, ...]] = [(i, f"row {i}", i) for i in range(1000)]
    for form in (CopyFormat("csv"), CopyFormat("text")):
        assert read(write(rows, form), form, [100]) == rows


@pytest.mark.parametrize(
    ("data", "form", "sqlstate", "detail"),
    [
        (b"1\tx\n", CopyFormat("text"), "22P04", "line 1"),
        (b"1\tx\t2020-01-01\t9\n", CopyFormat("text"), "22P04", "line 1"),
        (
            b"1,x,2020-01-01 00:00:00\noops,y,2020-01-01 00:00:00\n",
            CopyFormat("csv"),
            "22P02",
            'line 2, column a: "oops"',
        ),
        (b'1,"x,2020\n', CopyFormat("csv"), "22P04", None),
        (b"\xff\t1\t2\n", CopyFormat("text"), "22021", None),
        (b"not a signature at all", CopyFormat("binary"), "22P04", None),
    ],
)
def test_bad_data_says_where(data: bytes, form: CopyFormat, sqlstate: str, detail: str | None) -> None:
    with pytest.raises(SqlError) as caught:
        read(data, form, [])
    assert caught.value.sqlstate == sqlstate
    if detail is not None:
        assert caught.value.detail == detail


def test_nothing_after_the_end_marker_is_read() -> None:
    assert read(b"1\tx\t\\N\n\\.\nrubbish\n", CopyFormat("text"), []) == [(1, "x", None)]


@pytest.mark.parametrize(
    ("null", "line", "expected"),
    [
        ("", b'1,"",\n', ""),
        ("", b"1,,\n", None),
        ("", b'1,"a,"",b",\n', 'a,",b'),
        ("", b'1,"""",\n', '"'),
        ("", b'"1","""""",\n', '""'),
        ("nil", b'1,"nil",nil\n', "nil"),
        ("nil", b"1,nil,nil\n", None),
        ("nil", b'1,"""nil""",nil\n', '"nil"'),
    ],
)
def test_null_in_quotes_is_a_string(null: str, line: bytes, expected: str | None) -> None:
    form = CopyFormat("csv", null=null)
    assert read(line, form, []) == [(1, expected, None)]
