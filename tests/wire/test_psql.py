"""psql: what people type, its catalog commands, \\copy, and Ctrl-C."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.mzlite_server import Server

pytestmark = pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")
Psql = Callable[..., subprocess.CompletedProcess[str]]
LONG = "SELECT sum(a.a * b.b % 7) FROM generate_series(1, 100000) a(a), generate_series(1, 100000) b(b)"


def command(server: Server) -> list[str]:
    return ["psql", "-X", "-h", server.host, "-p", str(server.port), "-U", "materialize", "-d", "materialize"]


@pytest.fixture(scope="module")
def psql(mzlite_server: Server) -> Iterator[Psql]:
    """Run psql over commands, in a schema with a table, a view, a materialized view and an index."""

    def run(*commands: str, options: tuple[str, ...] = (), stdin: str = "") -> subprocess.CompletedProcess[str]:
        given = [part for c in commands for part in ("-c", c)]
        env = {**os.environ, "PGOPTIONS": "-c search_path=shown"}
        return subprocess.run(
            [*command(mzlite_server), *options, *given],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            env=env,
        )

    done = run(
        "CREATE SCHEMA shown",
        "CREATE TABLE shown.orders (id int NOT NULL, item text DEFAULT 'none', price numeric(8, 2))",
        "CREATE VIEW shown.per_item AS SELECT item, count(*) AS n FROM shown.orders GROUP BY item",
        "CREATE MATERIALIZED VIEW shown.dear AS SELECT * FROM shown.orders WHERE price > 100",
        "CREATE INDEX per_item_n ON shown.per_item (n)",
    )
    assert done.returncode == 0, done.stderr
    yield run
    run("DROP SCHEMA shown CASCADE")


@pytest.mark.parametrize(
    ("typed", "seen"),
    [
        (r"\d", ["orders", "per_item", "dear", "materialized view"]),
        (r"\d orders", ["id", "integer", "not null", "numeric(8,2)"]),
        (r"\d+ orders", ["item", "text"]),
        (r"\d per_item", ['View "shown.per_item"', "bigint"]),
        (r"\d dear", ['Materialized view "shown.dear"']),
        (r"\d per_item_n", ['Index "shown.per_item_n"', "btree"]),
        (r"\dt", ["orders"]),
        (r"\dt+", ["orders"]),
        (r"\dv", ["per_item"]),
        (r"\dm", ["dear"]),
        (r"\di", ["per_item_n", "per_item"]),
        (r"\l", ["materialize", "UTF8"]),
        (r"\dn", ["shown", "mz_catalog"]),
        (r"\du", ["mz_system"]),
        (r"\dT int4", ["integer"]),
        (r"\sv per_item", ["CREATE OR REPLACE VIEW shown.per_item AS"]),
        (r"\conninfo", ['database "materialize"']),
        (r"\encoding", ["UTF8"]),
    ],
)
def test_catalog_commands(psql: Psql, typed: str, seen: list[str]) -> None:
    done = psql(typed)
    assert done.returncode == 0 and not done.stderr, done.stderr
    for words in seen:
        assert words in done.stdout


def test_a_name_that_is_not_there(psql: Psql) -> None:
    assert "Did not find any relation" in psql(r"\d nowhere").stderr


def test_timing_and_expanded_output(psql: Psql) -> None:
    done = psql(r"\timing", r"\x", "SELECT 1 AS one, NULL AS nothing")
    assert "Time: " in done.stdout and "-[ RECORD 1 ]" in done.stdout


def test_copy_both_ways(psql: Psql, tmp_path: Path) -> None:
    source, target = tmp_path / "in.csv", tmp_path / "out.txt"
    source.write_text('id,item,price\n1,"a, ""b""",1.5\n2,,200\n')
    done = psql(
        rf"\copy orders FROM '{source}' (FORMAT csv, HEADER)",
        rf"\copy (SELECT * FROM orders ORDER BY id) TO '{target}'",
    )
    assert done.stdout == "COPY 2\nCOPY 2\n", done.stderr
    assert target.read_text() == '1\ta, "b"\t1.50\n2\t\\N\t200.00\n'
    done = psql(r"\copy orders FROM stdin", "SELECT 'still here'", stdin="x\ty\tz\n")
    assert "invalid input syntax" in done.stderr and "still here" in done.stdout
    assert psql("DELETE FROM orders").stdout == "DELETE 2\n"


def test_errors_point_at_the_place(psql: Psql) -> None:
    done = psql("SELECT 1 + nothing FROM orders")
    assert done.returncode == 1 and "LINE 1: SELECT 1 + nothing FROM orders\n                   ^" in done.stderr


def test_script_mode_stops_at_the_first_error(psql: Psql) -> None:
    done = psql(options=("-v", "ON_ERROR_STOP=1"), stdin="SELECT 1;\nSELECT 1/0;\nSELECT 'not reached';\n")
    assert done.returncode == 3 and "not reached" not in done.stdout


def test_transactions(psql: Psql) -> None:
    script = "BEGIN;\nINSERT INTO orders VALUES (9);\nROLLBACK;\nSELECT count(*) FROM orders;\n"
    assert "     0\n" in psql(stdin=script).stdout


def test_ctrl_c_cancels_the_statement_only(mzlite_server: Server) -> None:
    process = subprocess.Popen(
        [*command(mzlite_server), "-At", "-c", "SELECT 'started'", "-c", LONG],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline() == "started\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert "canceling statement due to user request" in errors


def test_ctrl_c_ends_a_subscribe(mzlite_server: Server) -> None:
    process = subprocess.Popen(
        [*command(mzlite_server), "-At", "-c", "COPY (SUBSCRIBE (SELECT 1 AS one)) TO STDOUT"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline().endswith("\t1\t1\n")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    with mzlite_server.connect() as conn:
        assert conn.execute("SELECT 1").fetchone() == (1,)
