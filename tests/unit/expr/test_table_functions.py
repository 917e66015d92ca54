"""Table functions: which rows they make, of which input row, and which rows fail."""

from __future__ import annotations

from typing import Any

import pytest

from mzlite.expr.scalar import TableFunc
from mzlite.expr.table_functions import TABLE_FUNCTIONS, call_table_function
from mzlite.repr.datum import ArrayDatum, Interval, column_from_datums, column_to_datums
from mzlite.repr.errors import SqlError, decode_error
from mzlite.repr.types import (
    INT4,
    INT8,
    INTERVAL,
    JSONB,
    TEXT,
    TIMESTAMP,
    ColumnType,
    RelationType,
    ScalarType,
    array_of,
    map_of,
)

DAY = 86_400_000_000


def run(
    func: str, *args: tuple[ScalarType, list[Any]], typ: RelationType | None = None
) -> tuple[list[Any], dict[int, str]]:
    """[(input row, *values)], and messages by failed row."""
    entry = TABLE_FUNCTIONS[func]
    relation = typ or entry.relation_type([t for t, _ in args])
    n = len(args[0][1])
    columns = [column_from_datums(t, values) for t, values in args]
    owner, made, errors = call_table_function(TableFunc(func, relation), columns, n)
    values = [column_to_datums(c.scalar, column) for c, column in zip(relation.columns, made)]
    failed = {} if errors is None else {r: decode_error(e).message for r, e in zip(errors[0].tolist(), errors[1])}
    return list(zip(owner.tolist(), *values)), failed


def test_series() -> None:
    rows, errors = run("generate_series_int4", (INT4, [1, 5, None]), (INT4, [3, 4, 1]))
    assert rows == [(0, 1), (0, 2), (0, 3)] and errors == {}
    rows, errors = run("generate_series_int8_step", (INT8, [5, 1, 1]), (INT8, [1, 2, 9]), (INT8, [-2, 0, 4]))
    assert rows == [(0, 5), (0, 3), (0, 1), (2, 1), (2, 5), (2, 9)]
    assert errors == {1: "step size cannot equal zero"}


def test_timestamp_series() -> None:
    func = "generate_series_timestamp_timestamp_interval"
    rows, _ = run(func, (TIMESTAMP, [0]), (TIMESTAMP, [2 * DAY]), (INTERVAL, [Interval(0, 1, 0)]))
    assert rows == [(0, 0), (0, DAY), (0, 2 * DAY)]
    # From 31 January by months: once cut to 28 February, the day stays 28.
    rows, _ = run(func, (TIMESTAMP, [30 * DAY]), (TIMESTAMP, [90 * DAY]), (INTERVAL, [Interval(1, 0, 0)]))
    assert [us // DAY for _, us in rows] == [30, 58, 86]


def test_unnest() -> None:
    rows, _ = run("unnest_anyarray<int4[]>", (array_of(INT4), [ArrayDatum.of((1, None)), None, ArrayDatum.of(())]))
    assert rows == [(0, 1), (0, None)]
    rows, _ = run("unnest_anymap<map<int4>>", (map_of(INT4), [{"b": 2, "a": 1}]))
    assert rows == [(0, "a", 1), (0, "b", 2)]
    rows, _ = run("_pg_expandarray_anyarray<int4[]>", (array_of(INT4), [ArrayDatum.of((7, 8))]))
    assert rows == [(0, 7, 1), (0, 8, 2)]


def test_json() -> None:
    documents = [["a", {"k": True}], {"k": "v", "n": []}, "scalar"]
    rows, _ = run("jsonb_array_elements_jsonb", (JSONB, documents))
    assert rows == [(0, "a"), (0, {"k": True})]
    rows, _ = run("jsonb_array_elements_text_jsonb", (JSONB, documents))
    assert rows == [(0, "a"), (0, '{"k":true}')]
    rows, _ = run("jsonb_each_jsonb", (JSONB, documents))
    assert rows == [(1, "k", "v"), (1, "n", [])]
    rows, _ = run("jsonb_object_keys_jsonb", (JSONB, documents))
    assert rows == [(1, "k"), (1, "n")]


def test_regular_expressions() -> None:
    rows, errors = run("regexp_split_to_table_text_text", (TEXT, ["a b", "c"]), (TEXT, [" ", "("]))
    assert rows == [(0, "a"), (0, "b")]
    assert list(errors) == [1] and errors[1].startswith("invalid regular expression")
    entry = TABLE_FUNCTIONS["regexp_extract_text_text"]
    assert entry.pattern_columns is not None
    columns = entry.pattern_columns("(?P<year>[0-9]+)-([a-z])?")
    assert [name for name, _, _ in columns] == ["year", "column2"]
    typ = RelationType(tuple(ColumnType(t, nullable) for _, t, nullable in columns))
    pattern = "(?P<year>[0-9]+)-([a-z])?"
    rows, _ = run(entry.id, (TEXT, [pattern, pattern]), (TEXT, ["12-x", "none"]), typ=typ)
    assert rows == [(0, "12", "x")]
    with pytest.raises(SqlError, match="at least one capture group"):
        entry.pattern_columns("abc")


def test_rows_without_columns() -> None:
    rows, errors = run("repeat_row_non_negative_int8", (INT8, [2, 0, -1]))
    assert rows == [(0,), (0,)] and errors == {2: "repeat_row_non_negative got -1"}
