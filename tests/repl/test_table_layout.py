"""How results look: written out here for the cases that matter, and compared with psql itself where there is one."""

from __future__ import annotations

import shutil
import subprocess

import psycopg
import pytest

from mzlite.repl.client import Client, ResultColumn, Table
from mzlite.repl.messages import format_error, point_at
from mzlite.repl.settings import Settings
from mzlite.repl.table import format_table

INT, TEXT = 23, 25


def table(columns: dict[str, int], *rows: tuple[str | None, ...]) -> Table:
    return Table(tuple(ResultColumn(name, oid) for name, oid in columns.items()), list(rows))


PEOPLE = table({"id": INT, "name": TEXT}, ("7", "ada"), ("12345", None))


def test_numbers_stand_right_and_null_is_shown_as_set() -> None:
    assert format_table(PEOPLE, Settings(null="∅")) == (
        "  id   | name \n-------+------\n     7 | ada\n 12345 | ∅\n(2 rows)\n\n"
    )


def test_wide_characters_take_two_columns() -> None:
    lines = format_table(table({"w": TEXT, "x": INT}, ("漢字", "1"), ("a", "2")), Settings()).splitlines()
    assert lines[1:4] == ["------+---", " 漢字 | 1", " a    | 2"]


def test_a_value_of_several_lines_continues_under_itself() -> None:
    lines = format_table(table({"plan": TEXT, "n": INT}, ("a\nbcd", "1")), Settings()).splitlines()
    assert lines[2:4] == [" a   +| 1", " bcd  |  "]


def test_what_a_terminal_would_act_on_is_spelled_out() -> None:
    text = format_table(table({"t": TEXT}, ("\x1b[31mred\r",)), Settings())
    assert " \\x1B[31mred\\r\n" in text


def test_auto_turns_rows_that_do_not_fit() -> None:
    wide = table({"a": TEXT, "b": TEXT}, ("x" * 30, "y" * 30))
    settings = Settings(expanded="auto")
    assert format_table(wide, settings, columns=100).startswith("    ")
    turned = format_table(wide, settings, columns=40)
    assert turned.startswith("-[ RECORD 1 ]")
    assert f"a | {'x' * 30}\n" in turned
    assert not format_table(wide, settings, columns=None).startswith("-[")


def test_a_terminal_is_spared_too_many_rows_and_too_long_values() -> None:
    many = table({"i": INT}, *((str(i),) for i in range(50)))
    settings = Settings(row_limit=10, cell_limit=5)
    assert "(50 rows, the first 10 shown; \\pset row_limit 0 shows all)" in format_table(many, settings, columns=80)
    assert format_table(many, settings, columns=None).endswith("(50 rows)\n\n")
    long = format_table(table({"t": TEXT}, ("abcdefgh",)), settings, columns=80)
    assert "abcde… (8 characters)" in long


def test_other_formats() -> None:
    assert format_table(PEOPLE, Settings(format="unaligned")) == "id|name\n7|ada\n12345|\n(2 rows)\n"
    quoted = table({"a": TEXT}, ('say "hi", ok',))
    assert format_table(quoted, Settings(format="csv")) == 'a\n"say ""hi"", ok"\n'
    assert format_table(PEOPLE, Settings(tuples_only=True)) == "     7 | ada\n 12345 | \n\n"


def test_the_caret_points_into_the_line_that_holds_the_position() -> None:
    sql = "select 1,\n\tnope from t"
    assert point_at(sql, sql.index("nope") + 1) == ["LINE 2:  nope from t", "         ^"]


def test_long_lines_are_cut_around_the_caret() -> None:
    sql = "select " + ", ".join(f"column_{i}" for i in range(30))
    shown, caret = point_at(sql, sql.index("column_15") + 1)
    assert shown.startswith("LINE 1: ...") and shown.endswith("...")
    assert shown[caret.index("^") :].startswith("column_1")


QUERIES = [
    "select 1 as a, 'x' as b union all select 22222, null order by 1",
    "select 'a'||chr(10)||'bb' as x, 3 as y, 'q'||chr(10)||'w'||chr(10)||'e' as looooong",
    "select 1 where false",
    "select 'é漢字' as \"né\", 1.5::numeric as n, true as b",
    "select E'a\\tb' as t, E'\\x01' as c",
    "select array[1,2], '{\"a\":1}'::jsonb, now()-now()",
    "select 1 as \"a\nbb\", 'x' as c",
    "select i, i*1000 as k from generate_series(1,11) i",
    "select 'a'||chr(10) as a, 'b' as b",
]
FORMATS = {
    (): Settings(),
    ("-x",): Settings(expanded="on"),
    ("-t",): Settings(tuples_only=True),
    ("-t", "-x", "-P", "null=-"): Settings(tuples_only=True, expanded="on", null="-"),
    ("-A",): Settings(format="unaligned"),
    ("-A", "-x"): Settings(format="unaligned", expanded="on"),
    ("-A", "-t", "-F", ","): Settings(format="unaligned", tuples_only=True, fieldsep=","),
    ("--csv",): Settings(format="csv"),
}
MISTAKES = [
    "select * from nope",
    "select 1,\n  foo(\tbar) from x",
    "select 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', bbbbbbbbbbbbbbbbbb, cccccccccccccccccccccc, 1",
    "select '漢字漢字', x",
    "select 1 +",
    "select relnam from pg_class",
    "select 1/0",
    "do $$ begin raise exception 'x' using detail='d', hint='h'; end $$",
]
needs_psql = pytest.mark.skipif(shutil.which("psql") is None, reason="psql is not installed")


def psql(dsn: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["psql", "-X", dsn, *arguments], capture_output=True, encoding="utf-8", timeout=30, check=False
    )


@needs_psql
def test_the_same_bytes_as_psql(postgres_dsn: str) -> None:
    client = Client(postgres_dsn)
    client.connect()
    for arguments, settings in FORMATS.items():
        together = psql(postgres_dsn, *arguments, *(part for query in QUERIES for part in ("-c", query)))
        assert together.stdout == "".join(format_table(client.query(query), settings) for query in QUERIES), arguments
    client.close()


@needs_psql
@pytest.mark.parametrize("verbosity", ["default", "verbose", "terse", "sqlstate"])
def test_errors_read_as_in_psql(postgres_dsn: str, verbosity: str) -> None:
    client = Client(postgres_dsn)
    client.connect()
    for sql in MISTAKES:
        with pytest.raises(psycopg.Error) as caught:
            client.query(sql)
        expected = psql(postgres_dsn, "-v", f"VERBOSITY={verbosity}", "-c", sql).stderr
        assert format_error(caught.value, sql, verbosity) + "\n" == expected
    client.close()
