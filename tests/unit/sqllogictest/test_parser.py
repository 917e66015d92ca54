"""Text to records: every directive, and the place and reason of what cannot be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqllogictest.parser import parse_file, parse_text
from sqllogictest.records import (
    Copy,
    ExpectedError,
    Hashed,
    Kind,
    Malformed,
    Mode,
    Query,
    Record,
    ResetServer,
    Simple,
    Sort,
    Statement,
    kind_of,
)


def one(text: str) -> Record:
    records = parse_text(text).records
    assert len(records) == 1, records
    return records[0]


def query(text: str) -> Query:
    record = one(text)
    assert isinstance(record, Query), record
    return record


def malformed(text: str) -> Malformed:
    record = parse_text(text, "f.slt").records[-1]
    assert isinstance(record, Malformed), record
    return record


def test_statement_runs_to_the_blank_line() -> None:
    records = parse_text("statement ok\nCREATE TABLE t (\n  a int\n)\n\nstatement OK\nDROP TABLE t\n").records
    assert records == [
        Statement("<text>", 1, "CREATE TABLE t (\n  a int\n)"),
        Statement("<text>", 6, "DROP TABLE t"),
    ]


def test_comments_and_blank_lines_separate() -> None:
    text = "# a comment\n\n\nstatement ok # why\nSELECT 1\n\n   # indented\nstatement count 3\nDELETE FROM t"
    first, second = parse_text(text).records
    assert first == Statement("<text>", 4, "SELECT 1")
    assert isinstance(second, Statement) and (second.line, second.rows) == (8, 3)


def test_error_patterns() -> None:
    record = one("statement error pgcode 22012 division by \\w+ # always\nSELECT 1/0\n")
    assert isinstance(record, ExpectedError)
    assert (record.pattern, record.pgcode, record.directive) == ("division by \\w+", "22012", "statement")
    record = one("query error\nSELECT 1/0\n")
    assert isinstance(record, ExpectedError)
    assert (record.pattern, record.pgcode) == ("", None)
    assert "regular expression" in malformed("query error (\nSELECT 1\n").reason


def test_query_sql_may_hold_blank_lines() -> None:
    record = query("query I\nSELECT\n\n1\n----\n1\n")
    assert record.sql == "SELECT\n\n1"
    assert record.expected == ["1"]


def test_query_without_output() -> None:
    for text in ("query I\nSELECT 1 WHERE false\n----\n\n", "query I\nSELECT 1\n----\n", "query I\nSELECT 1\n----"):
        assert query(text).expected == []


def test_standard_mode_is_a_value_a_line() -> None:
    record = query("query IT nosort label-1\nSELECT\n----\n1\na  b␠\n2\none⏎two\n")
    assert record.expected == ["1", "a  b␠", "2", "one\ntwo"]
    assert record.label == "label-1"


def test_cockroach_mode_is_a_row_a_line() -> None:
    record = query("mode cockroach\n\nquery IT rowsort\nSELECT\n----\n 2   b␠c\n1 a⏎b\n")
    assert record.mode is Mode.COCKROACH and record.sort is Sort.ROW
    assert record.expected == ["1", "a\nb", "2", "b c"]
    assert query("mode cockroach\n\nquery T\nSELECT\n----\n  a b  \n").expected == ["a b"]


def test_standard_mode_rows_are_not_sorted_but_values_are() -> None:
    assert query("query I rowsort\nSELECT\n----\n2\n1\n").expected == ["2", "1"]
    assert query("query I valuesort\nSELECT\n----\n2\n1\n").expected == ["1", "2"]


def test_hashed_output() -> None:
    assert query("query I\nSELECT\n----\n12 values hashing to abc\n").expected == Hashed(12, "abc")


def test_colnames_are_the_first_output_line() -> None:
    record = query("query II colnames\nSELECT\n----\na␠b  c\n1\n2\n")
    assert record.names == ["a b", "c"]
    assert record.expected == ["1", "2"]


def test_multiline_runs_to_eof() -> None:
    records = parse_text("query T multiline\nSELECT\n----\none\n\ntwo\nEOF\n\nstatement ok\nx\n").records
    assert isinstance(records[0], Query) and records[0].expected == ["one\n\ntwo"]
    assert records[1].line == 9
    assert query("query T multiline\nSELECT\n----\none\nEOF").expected == ["one"]
    assert "excludes" in malformed("query T multiline,rowsort\nSELECT\n----\n1\nEOF\n").reason


def test_partialsort_swallows_the_other_options() -> None:
    assert query("query II partialsort(1,2)\nSELECT\n----\n1\n2\n").sort is Sort.ROW


def test_simple() -> None:
    text = "simple conn=c,user=joe,password=pw,rowsort\nSELECT 1;\n\nSELECT 2\n----\n1\nCOMPLETE 1\n"
    record = one(text)
    assert record == Simple(
        "<text>",
        1,
        "SELECT 1;\n\nSELECT 2",
        ["1", "COMPLETE 1"],
        "c",
        "joe",
        "pw",
        rowsort=True,
        span=(text.index("1\nCOMPLETE"), len(text) - 1),
    )
    text = "simple multiline\nSELECT\n----\na\nb\nEOF\nCOMPLETE 1\n\nstatement ok\nx\n"
    first, second = parse_text(text).records
    assert isinstance(first, Simple) and first.expected == ["a\nb", "COMPLETE 1"]
    assert second.line == 9
    assert "needs conn" in malformed("simple user=joe\nSELECT\n----\n1\n").reason


def test_conditions_take_the_next_record_and_stack() -> None:
    text = """
skipif postgresql # not ours
statement ok
one

onlyif mysql
skipif sqlite
statement ok
two

skipif mysql
onlyif postgresql
statement ok
three

onlyif mysql
halt

statement ok
four

halt

statement ok
five
"""
    script = parse_text(text)
    assert [record.sql for record in script.records] == ["three", "four"]
    assert script.skipped == 2
    assert [record.sql for record in parse_text(text, engine="mysql").records] == ["one", "two"]


def test_ignored_and_small_directives() -> None:
    text = "subtest a\nuser root\nkv-batch-size 1\nhash-threshold 8\nmode sqlite\ncopy t data.tsv\nreset-server\n"
    assert parse_text(text).records == [Copy("<text>", 6, "t", "data.tsv"), ResetServer("<text>", 7)]


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("statement ok\nSELECT 1\n\nbogus x\n", 4, "unknown directive 'bogus'"),
        ("statement maybe\nSELECT 1\n", 1, "not 'maybe'"),
        ("statement count x\nSELECT 1\n", 1, "number"),
        ("statement ok\n\nstatement ok\nx\n", 1, "no SQL"),
        ("query X\nSELECT 1\n----\n1\n", 1, "type letter"),
        ("query I sorted\nSELECT 1\n----\n1\n", 1, "'sorted'"),
        ("\nquery I\nSELECT 1\n", 2, "'----'"),
        ("query I\nSELECT 1\n---- x\n1\n", 1, "behind ----"),
        ("mode postgres\n", 1, "unknown mode"),
        ("mode cockroach\n\nquery II rowsort\nSELECT\n----\n1\n", 3, "has 1 values, not 2"),
        ("loop i 0 3\nstatement ok\nx\n", 1, "endloop"),
        ("loop i 0 x\nendloop\n", 1, "whole numbers"),
        ("foreach i\nendloop\n", 1, "values"),
        ("include nothing-*.slt\n", 1, "no file matches"),
        ("skipif\n", 1, "engine"),
    ],
)
def test_malformed_records_name_their_line(text: str, line: int, reason: str) -> None:
    record = malformed(text)
    assert (record.file, record.line) == ("f.slt", line)
    assert reason in record.reason


def test_records_before_a_malformed_one_still_count() -> None:
    records = parse_text("statement ok\nSELECT 1\n\nnonsense\n\nstatement ok\nSELECT 2\n").records
    assert [type(record) for record in records] == [Statement, Malformed]


def test_loops_nest_and_substitute_everywhere() -> None:
    text = "loop i 0 2\nforeach t int text\nquery I\nSELECT ${i}::${t}\n----\n${i}\n\nendloop\n\nendloop\n\nstatement ok\nx\n"
    records = parse_text(text).records
    assert [record.sql for record in records] == [
        "SELECT 0::int",
        "SELECT 0::text",
        "SELECT 1::int",
        "SELECT 1::text",
        "x",
    ]
    assert isinstance(records[2], Query) and records[2].expected == ["1"]
    assert [record.line for record in records] == [3, 3, 3, 3, 12]
    assert records[0].span is None  # type: ignore[union-attr]


def test_include_reads_beside_the_file_and_keeps_the_mode(tmp_path: Path) -> None:
    (tmp_path / "part_b.slt").write_text("statement ok\nb\n\nmode cockroach\n")
    (tmp_path / "part_a.slt").write_text("statement ok\na\n")
    main = tmp_path / "main.slt"
    main.write_text("include part_*.slt\n\nquery II\nSELECT\n----\n1 2\n")
    records = parse_file(str(main)).records
    assert [record.sql for record in records] == ["a", "b", "SELECT"]
    assert records[1].file == str(tmp_path / "part_b.slt")
    assert isinstance(records[2], Query) and records[2].expected == ["1", "2"]


def test_include_replaces_names_in_what_it_reads(tmp_path: Path) -> None:
    (tmp_path / "part.inc").write_text("statement ok\nCREATE ${KIND} ${NAME}\n")
    main = tmp_path / "main.slt"
    main.write_text("include part.inc KIND=MATERIALIZED␠VIEW NAME=v\n\ninclude part.inc oops\n")
    first, second = parse_file(str(main)).records
    assert first.sql == "CREATE MATERIALIZED VIEW v"
    assert isinstance(second, Malformed) and "NAME=VALUE" in second.reason


def test_a_file_that_includes_itself_is_malformed(tmp_path: Path) -> None:
    main = tmp_path / "main.slt"
    main.write_text("include main.slt\n")
    record = parse_file(str(main)).records[-1]
    assert isinstance(record, Malformed) and "deeper" in record.reason


def test_an_unreadable_file_is_a_malformed_record(tmp_path: Path) -> None:
    (record,) = parse_file(str(tmp_path / "absent.slt")).records
    assert isinstance(record, Malformed) and "cannot read" in record.reason


def test_windows_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "crlf.slt"
    path.write_bytes(b"query I\r\nSELECT 1\r\n----\r\n1\r\n\r\nstatement ok\r\nx\r\n")
    first, second = parse_file(str(path)).records
    assert isinstance(first, Query) and first.expected == ["1"]
    assert second.sql == "x" and second.line == 6


def test_kinds() -> None:
    text = """
statement ok
EXPLAIN SELECT 1

query T
EXPLAIN SELECT 1
----
x

query I
SELECT 1
----
1

statement error
x

simple
x
----
db error: ERROR: no

simple
x
----
COMPLETE 0

simple
x
----
1
COMPLETE 1
"""
    assert [kind_of(record) for record in parse_text(text).records] == [
        Kind.EXPLAIN,
        Kind.EXPLAIN,
        Kind.RESULTS,
        Kind.ERRORS,
        Kind.ERRORS,
        Kind.STATEMENTS,
        Kind.RESULTS,
    ]
