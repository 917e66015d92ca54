"""Files run on a server: scoring, broken connections, dead and hanging servers, rewriting."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from sqllogictest.records import Kind
from sqllogictest.report import FileReport, Status
from sqllogictest.runner import FileRunner, Options, Scoring
from sqllogictest.server import Server, ServerFailure
from sqllogictest.session import ServerError
from sqllogictest.subprocess_server import Subprocess

BASIC = """\
statement ok
CREATE TABLE t (a int)

query IT
SELECT 1, 'x'
----
1
x

statement error the de.ail
fail

query error db error: ERROR: division by zero
fail

simple
SELECT 1, 'x'; SELECT 2
----
1,x
COMPLETE 1
2
COMPLETE 1

simple conn=other
SELECT 1; fail; SELECT 2
----
db error: ERROR: division by zero
DETAIL: the detail
HINT: the hint
"""


def run(server: Server, tmp_path: Path, text: str, **options: object) -> FileReport:
    path = tmp_path / "test.slt"
    path.write_text(text)
    return FileRunner(server, replace(Options(), **options)).run(str(path))  # type: ignore[arg-type]


def test_a_file_that_passes(server: Server, tmp_path: Path) -> None:
    report = run(server, tmp_path, BASIC)
    assert report.failures == []
    assert report.status is Status.OK
    assert {str(k): t.passed for k, t in report.tallies.items() if t.total} == {
        "results": 2,
        "statements": 1,
        "errors": 3,
    }


def test_each_kind_of_failure_has_its_place_and_diff(server: Server, tmp_path: Path) -> None:
    text = """\
query I
SELECT 1
----
2

query II
SELECT 1
----
1

query I
fail
----
1

statement error
fine

query error no such thing
fail

query I colnames
SELECT 1
----
x
1

simple
SELECT 1
----
2
COMPLETE 1

query B
SELECT 1
----
true

query I
SELECT 1
----
1 values hashing to 00
"""
    report = run(server, tmp_path, text)
    assert [(f.line, f.reason) for f in report.failures] == [
        (1, "wrong result"),
        (6, "expected 2 columns, got 1"),
        (11, "an error, where rows were expected"),
        (16, "success, where an error was expected"),
        (19, "wrong error"),
        (22, "wrong column names"),
        (28, "wrong output"),
        (34, "a value of the type with OID 23 cannot be shown as B"),
        (39, "wrong hash"),
    ]
    assert report.failures[0].diff == ["- 2", "+ 1"]
    assert report.failures[2].diff == [
        "+ db error: ERROR: division by zero",
        "+ DETAIL: the detail",
        "+ HINT: the hint",
    ]
    assert report.failures[6].diff == ["- 2", "+ 1", "  COMPLETE 1"]
    assert report.failures[8].diff[1] == "+ 1 values hashing to b026324c6904b2a9cb4b88d6d61c81d1"
    assert report.status is Status.FAILED and report.passed == 0


STOPS = "statement ok\nfail\n\nquery I\nSELECT 1\n----\n1\n\nstatement error\nfail\n"


def test_a_failed_statement_stops_the_file(server: Server, tmp_path: Path) -> None:
    report = run(server, tmp_path, STOPS)
    assert report.status is Status.STOPPED
    assert (report.passed, report.failed, report.not_run, report.total) == (0, 1, 2, 3)
    assert report.tallies[Kind.RESULTS].total == 1


def test_or_the_file_continues(server: Server, tmp_path: Path) -> None:
    report = run(server, tmp_path, STOPS, scoring=Scoring.CONTINUE)
    assert report.status is Status.FAILED
    assert (report.passed, report.failed, report.not_run, report.total) == (2, 1, 0, 3)


def test_fail_fast_stops_at_any_failure(server: Server, tmp_path: Path) -> None:
    text = "query I\nSELECT 1\n----\n2\n\nquery I\nSELECT 1\n----\n1\n"
    report = run(server, tmp_path, text, fail_fast=True)
    assert (report.status, report.not_run) == (Status.STOPPED, 1)


def test_statement_count_reads_the_command_tag(server: Server, tmp_path: Path) -> None:
    report = run(server, tmp_path, "statement count 123456\nx\n")
    assert report.failures[0].reason == "wrong number of rows affected"
    assert report.failures[0].diff[0] == "- 123456"


def test_unique_indexes_are_not_sent(server: Server, tmp_path: Path) -> None:
    assert run(server, tmp_path, "statement ok\nCREATE UNIQUE INDEX i ON fail\n\nstatement ok\nREINDEX fail\n").ok


def test_a_malformed_record_fails_behind_the_good_ones(server: Server, tmp_path: Path) -> None:
    report = run(server, tmp_path, "statement ok\nx\n\nquery Z\nx\n----\n\n")
    assert report.status is Status.MALFORMED
    assert report.message.endswith("test.slt:4: unknown type letter in 'Z': only T, I, R, B and O")
    assert (report.passed, report.failed) == (1, 1)


def test_a_server_that_hangs_up_costs_one_record(server: Server, tmp_path: Path) -> None:
    report = run(server, tmp_path, "query I\nhang up\n----\n1\n\nquery I\nSELECT 1\n----\n1\n")
    assert [f.reason for f in report.failures] == ["the server closed the connection"]
    assert report.passed == 1


def test_a_server_that_dies_is_reported_and_restarted(server: Server, tmp_path: Path) -> None:
    report = run(server, tmp_path, "statement ok\nx\n\nquery I\ndie\n----\n1\n\nstatement ok\nx\n")
    assert report.status is Status.DIED
    assert report.message.endswith("test.slt:4: the server died: exit status 3")
    assert report.failures[0].reason == "the server died in this record"
    assert "+ these are my last words" in report.failures[0].diff
    assert (report.passed, report.failed, report.not_run) == (1, 1, 1)
    assert run(server, tmp_path, BASIC).ok


@pytest.mark.parametrize("directive", ["query I\nhang\n----\n1\n", "simple\nhang\n----\n1\n"])
def test_a_hanging_file_fails_at_its_limit(server: Server, tmp_path: Path, directive: str) -> None:
    report = run(server, tmp_path, f"{directive}\nstatement ok\nx\n", timeout_s=0.2)
    assert report.status is Status.TIMEOUT
    assert "test.slt:1: still running after 0.2 s" in report.message
    assert (report.failed, report.not_run) == (1, 1)
    assert run(server, tmp_path, BASIC).ok


def test_reset_server_starts_a_new_process(server: Server, tmp_path: Path) -> None:
    before = server.dsn
    assert run(server, tmp_path, "statement ok\nx\n\nreset-server\n\nstatement ok\nx\n").ok
    assert server.dsn != before


def test_a_server_that_ends_at_once_is_a_failure() -> None:
    with pytest.raises(ServerFailure, match=r"exit status 7\ngoodbye"):
        Subprocess((sys.executable, "-c", "print('goodbye'); raise SystemExit(7)")).start()
    with pytest.raises(ServerFailure, match="cannot start"):
        Subprocess(("/no/such/program",)).start()


def test_progress_counts_records(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "test.slt"
    path.write_text("statement ok\nx\n\n" * 40)
    seen: list[tuple[int, int]] = []
    FileRunner(server, Options(), progress=lambda done, failed: seen.append((done, failed))).run(str(path))
    assert seen == [(16, 0), (32, 0), (40, 0)]


def test_copy_of_a_missing_file(server: Server, tmp_path: Path) -> None:
    report = run(server, tmp_path, "copy t absent.tsv\n")
    assert report.failures[0].reason == "cannot read absent.tsv: No such file or directory"


def test_server_error_text_has_detail_and_hint() -> None:
    assert ServerError("no", detail="d", hint="h").text == "db error: ERROR: no\nDETAIL: d\nHINT: h"


REWRITE_BEFORE = """\
# stays
query I colnames
SELECT 1
----
x
7

query I
SELECT 1
----

query I
SELECT 1
----
1 values hashing to 0

statement error something else # stays too
fail

simple
SELECT 1, 'a'
----
nothing
at all

mode cockroach

query IT
SELECT 1, 'a b'
----

query I
fail
----
1

statement error
fine
"""

REWRITE_AFTER = """\
# stays
query I colnames
SELECT 1
----
c1
1

query I
SELECT 1
----
1

query I
SELECT 1
----
1 values hashing to b026324c6904b2a9cb4b88d6d61c81d1

statement error division by zero # stays too
fail

simple
SELECT 1, 'a'
----
1,a
COMPLETE 1

mode cockroach

query IT
SELECT 1, 'a b'
----
1  a␠b

query I
fail
----
1

statement error
fine
"""


def test_rewrite_changes_only_outputs(server: Server, tmp_path: Path) -> None:
    report = run(server, tmp_path, REWRITE_BEFORE, rewrite=True, scoring=Scoring.CONTINUE)
    assert (tmp_path / "test.slt").read_text() == REWRITE_AFTER
    assert report.rewritten == 6
    assert [f.reason for f in report.failures] == [
        "an error, where rows were expected",
        "success, where an error was expected",
    ]
    again = run(server, tmp_path, REWRITE_AFTER, rewrite=True, scoring=Scoring.CONTINUE)
    assert again.rewritten == 0 and again.failed == 2


def test_rewrite_keeps_line_ends(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "test.slt"
    path.write_bytes(b"query I\r\nSELECT 1\r\n----\r\n2\r\n")
    FileRunner(server, Options(rewrite=True)).run(str(path))
    assert path.read_bytes() == b"query I\r\nSELECT 1\r\n----\r\n1\r\n"


def test_rewrite_leaves_what_it_cannot_write(server: Server, tmp_path: Path) -> None:
    text = "mode cockroach\n\nquery IT\nSELECT 1, 'a\tb'\n----\n\nquery T\nSELECT 'a\tb'\n----\n"
    report = run(server, tmp_path, text, rewrite=True)
    assert [f.line for f in report.failures] == [3]
    assert (tmp_path / "test.slt").read_text() == text + "a\tb\n"
