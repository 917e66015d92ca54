"""The tool on a real server: the SQL files that PostgreSQL can run, COPY, broken connections, what it leaves behind."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from sqllogictest.__main__ import main
from sqllogictest.report import Status
from sqllogictest.runner import FileRunner, Options
from sqllogictest.server import Against, Server
from tests.support.postgres import postgres_server  # noqa: F401

SLT = Path(__file__).resolve().parents[2] / "slt"


@pytest.fixture(scope="module")
def server(postgres_server: str) -> Server:  # noqa: F811
    return Against(postgres_server).start()


def databases(dsn: str) -> set[str]:
    with psycopg.connect(dsn) as conn:
        return {row[0] for row in conn.execute("SELECT datname FROM pg_database").fetchall()}


@pytest.mark.parametrize("path", sorted(SLT.glob("*.slt")), ids=lambda path: path.stem)
def test_sql_files_agree_with_postgres(server: Server, path: Path) -> None:
    report = FileRunner(server, Options()).run(str(path))
    assert [(f.line, f.reason, f.diff) for f in report.failures] == []
    assert report.ok and report.total > 0


def test_selects_agree_with_views_of_themselves(server: Server) -> None:
    report = FileRunner(server, Options(auto_index_selects=True)).run(str(SLT / "order_and_limit.slt"))
    assert report.ok, report.failures


def test_nothing_is_left_behind(postgres_server: str, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: F811
    before = databases(postgres_server)
    assert main(["--against", postgres_server, "--no-progress", "--jobs", "2", str(SLT / "joins.slt")]) == 0
    assert databases(postgres_server) == before
    capsys.readouterr()


def test_copy(server: Server, tmp_path: Path) -> None:
    (tmp_path / "data.tsv").write_text("1\tone\n2\t\\N\n" + "3\tmany\n" * 20_000)
    (tmp_path / "t.slt").write_text(
        "mode cockroach\n\nstatement ok\nCREATE TABLE t (a int, b text)\n\ncopy t data.tsv\n\n"
        "query IT\nSELECT count(*), min(b) FROM t\n----\n20002 many\n\n"
        "query T\nCOPY (SELECT b FROM t WHERE a < 3 ORDER BY a) TO STDOUT\n----\none\n\\N\n\n"
        "statement count 2\nCOPY (SELECT b FROM t WHERE a < 3) TO STDOUT\n\n"
        "simple\nCOPY (VALUES (1, 2)) TO STDOUT; SELECT 3\n----\n1\t2\nCOMPLETE 1\n3\nCOMPLETE 1\n\n"
        "statement error no data to copy|COPY FROM STDIN\nCOPY t FROM STDIN\n\n"
        "query I\nSELECT 1\n----\n1\n\ncopy absent data.tsv\n"
    )
    report = FileRunner(server, Options()).run(str(tmp_path / "t.slt"))
    assert [(f.reason, f.diff) for f in report.failures] == [
        ("an error, where success was expected", ['+ db error: ERROR: relation "absent" does not exist'])
    ]


def test_a_terminated_session_costs_one_record(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "t.slt"
    path.write_text(
        "query I\nSELECT pg_terminate_backend(pg_backend_pid())::int\n----\n1\n\nquery I\nSELECT 1\n----\n1\n"
    )
    report = FileRunner(server, Options()).run(str(path))
    assert [f.reason for f in report.failures] == ["the server closed the connection"]
    assert report.passed == 1


@pytest.mark.parametrize(
    "directive", ["query T\nSELECT pg_sleep(60)\n----\n\n", "simple\nSELECT pg_sleep(60)\n----\n\n"]
)
def test_the_time_limit_ends_a_query(server: Server, tmp_path: Path, directive: str) -> None:
    path = tmp_path / "t.slt"
    path.write_text(directive)
    report = FileRunner(server, Options(timeout_s=0.3)).run(str(path))
    assert report.status is Status.TIMEOUT


def test_named_sessions_keep_their_transactions(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "t.slt"
    path.write_text(
        "statement ok\nCREATE TABLE t (a int)\n\n"
        "simple conn=one\nBEGIN; INSERT INTO t VALUES (1)\n----\nCOMPLETE 0\nCOMPLETE 1\n\n"
        "query I\nSELECT count(*) FROM t\n----\n0\n\nsimple conn=one\nCOMMIT\n----\nCOMPLETE 0\n\n"
        "query I\nSELECT count(*) FROM t\n----\n1\n\n"
        "simple conn=two,user=nobody_here\nSELECT 1\n----\n1\n"
    )
    report = FileRunner(server, Options()).run(str(path))
    assert len(report.failures) == 1 and 'role "nobody_here" does not exist' in report.failures[0].reason
