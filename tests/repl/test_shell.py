"""Statements and commands, run without a terminal against PostgreSQL."""

from __future__ import annotations

import io
import threading
from pathlib import Path

import psycopg
import pytest

from mzlite.repl.batch import FAILED, NO_CONNECTION, OK, run_statements, run_stream
from mzlite.repl.settings import Settings
from mzlite.repl.shell import Shell


class Session:
    """Runs texts and gives back what was printed."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self.code = 0

    def run(self, *texts: str, **settings: object) -> tuple[str, str]:
        out, err = io.StringIO(), io.StringIO()
        chosen = Settings(**settings)  # type: ignore[arg-type]
        self.code = run_statements(self.dsn, list(texts), out=out, err=err, settings=chosen)
        return out.getvalue(), err.getvalue()

    def pipe(self, text: str, *, stop_on_error: bool = False) -> tuple[str, str]:
        out, err = io.StringIO(), io.StringIO()
        lines = io.StringIO(text)
        self.code = run_stream(self.dsn, lines, out=out, err=err, stop_on_error=stop_on_error)
        return out.getvalue(), err.getvalue()


@pytest.fixture
def session(postgres_dsn: str) -> Session:
    return Session(postgres_dsn)


def test_results_on_out_and_errors_on_err(session: Session) -> None:
    out, err = session.run("create table t (a int); insert into t values (1), (2); select count(*) from t")
    assert out == "CREATE TABLE\nINSERT 0 2\n count \n-------\n     2\n(1 row)\n\n"
    assert (err, session.code) == ("", OK)
    out, err = session.run("select nope from t; select 1", "select 2")
    assert out == ""
    assert err == 'ERROR:  column "nope" does not exist\nLINE 1: select nope from t;\n               ^\n'
    assert session.code == FAILED


def test_returning_shows_rows_and_tag(session: Session) -> None:
    out, _ = session.run("create table t (a int)", "insert into t values (7) returning a")
    assert out.endswith(" a \n---\n 7\n(1 row)\n\nINSERT 0 1\n")


def test_a_pipe_goes_on_after_an_error_unless_told_not_to(session: Session) -> None:
    out, err = session.pipe("select 1/0;\nselect 5 as five;\n")
    assert "division by zero" in err and "five" in out and session.code == FAILED
    out, _ = session.pipe("\\set ON_ERROR_STOP on\nselect 1/0;\nselect 5 as five;\n")
    assert "five" not in out and session.code == FAILED
    out, _ = session.pipe("select 1/0;\nselect 5 as five;\n", stop_on_error=True)
    assert "five" not in out


def test_the_last_statement_needs_no_semicolon(session: Session) -> None:
    out, _ = session.pipe("select\n 1 as a")
    assert out == " a \n---\n 1\n(1 row)\n\n"


def test_notices_are_printed(session: Session) -> None:
    _, err = session.run("drop table if exists nothing")
    assert err == 'NOTICE:  table "nothing" does not exist, skipping\n'


def test_values_are_the_servers_own_text(session: Session) -> None:
    out, _ = session.run("select 'infinity'::date, '0044-03-15 BC'::date, 1.50::numeric, true", tuples_only=True)
    assert out.split() == ["infinity", "|", "0044-03-15", "BC", "|", "1.50", "|", "t"]


def test_no_server() -> None:
    out, err = io.StringIO(), io.StringIO()
    code = run_statements("host=127.0.0.1 port=1 connect_timeout=2", ["select 1"], out=out, err=err)
    assert code == NO_CONNECTION
    assert err.getvalue().startswith("mzlite: error: connection to server at")


def test_copy_in_the_script_and_out_to_the_output(session: Session) -> None:
    out, err = session.pipe(
        "create table t (a int, b text);\ncopy t from stdin;\n1\tone\n2\t\\N\n\\.\ncopy t to stdout csv;\n"
    )
    assert out == "CREATE TABLE\nCOPY 2\n1,one\n2,\n"
    assert err == ""


def test_a_failing_copy_keeps_the_conversation_in_step(session: Session) -> None:
    out, err = session.pipe("create table t (a int);\ncopy t from stdin;\nnot a number\n\\.\nselect 1 as still;\n")
    assert "invalid input syntax" in err
    assert "still" in out


def test_copy_command_reads_and_writes_files(session: Session, tmp_path: Path) -> None:
    source, target, mail = tmp_path / "in it.csv", tmp_path / "out.csv", tmp_path / "mail.txt"
    source.write_text("b,a\nx,1\ny,2\n")
    out, err = session.run(
        "create table t (a int, b text)",
        f"\\copy t (b, a) from '{source}' with (format csv, header)",
        f"\\copy (select a, b from t order by a) to {target} csv",
        f"\\copy t to program 'sort > {mail}'",
        "\\copy t to stdout",
    )
    assert err == ""
    assert target.read_text() == "1,x\n2,y\n"
    assert mail.read_text() == "1\tx\n2\ty\n"
    assert out == "CREATE TABLE\nCOPY 2\nCOPY 2\nCOPY 2\n1\tx\n2\ty\n"
    _, err = session.run("\\copy t from '/no/such/file'")
    assert "No such file or directory" in err and session.code == FAILED


def test_output_to_a_file_and_to_a_program(session: Session, tmp_path: Path) -> None:
    kept, once = tmp_path / "kept", tmp_path / "once"
    out, _ = session.pipe(
        f"\\pset tuples_only\n\\o {kept}\nselect 1;\nselect 2;\n\\o\nselect 3 \\g {once}\nselect 4 \\g | tr 4 5 > {once}.piped\nselect 6;\n"
    )
    assert kept.read_text().split() == ["1", "2"]
    assert once.read_text().split() == ["3"]
    assert Path(f"{once}.piped").read_text().split() == ["5"]
    assert out.split()[-1:] == ["6"] and "3" not in out.split()


def test_included_files_may_include_and_fail_alone(session: Session, tmp_path: Path) -> None:
    (tmp_path / "inner.sql").write_text("select 'inner' as w;\n\\q\nselect 'unreached' as w;")
    (tmp_path / "outer.sql").write_text("select 'outer' as w;\n\\ir inner.sql\nselect 'last' as w")
    out, err = session.pipe(
        f"\\pset tuples_only\n\\i {tmp_path}/outer.sql\nselect 'after' as w;\n\\i {tmp_path}/none.sql\n"
    )
    assert [word for word in out.split() if word in ("inner", "outer", "last", "after", "unreached")] == [
        "outer",
        "inner",
        "last",
        "after",
    ]
    assert err == f"{tmp_path}/none.sql: No such file or directory\n"
    (tmp_path / "bad.sql").write_text("select 1;\nselect\n  1/0;\n")
    assert session.pipe(f"\\i {tmp_path}/bad.sql\n")[1] == f"{tmp_path}/bad.sql:3: ERROR:  division by zero\n"
    loop = tmp_path / "loop.sql"
    loop.write_text(f"\\i {loop}\n")
    _, err = session.pipe(f"\\i {loop}\n")
    assert "include each other" in err


def test_gx_gset_variables_and_echo(session: Session) -> None:
    out, _ = session.pipe(
        "select 1 as a, 'x' as b \\gx\nselect 40 + 2 as answer \\gset my_\n\\echo it is :my_answer\n"
        "select :my_answer + 1 as more, :'my_answer' as text \\gx\n"
    )
    assert out == ("-[ RECORD 1 ]\na | 1\nb | x\n\nit is 42\n-[ RECORD 1 ]\nmore | 43\ntext | 42\n\n")


def test_watch_repeats(session: Session) -> None:
    out, _ = session.pipe("\\t on\nselect 'again' \\watch i=0 c=3\n")
    assert out.count("again") == 3


def test_describe_a_table_and_a_view(session: Session) -> None:
    out, err = session.run(
        "create table t (a int primary key, b text default 'x')",
        "create view v as select a from t",
        "comment on table t is 'remarkable'",
        "\\d t",
        "\\d+ v",
        "\\d",
        "\\dt+",
        "\\di t*",
        "\\dtv nothing*",
    )
    assert '           Table "public.t"\n' in out
    assert " a      | integer | not null | \n b      | text    |          | 'x'::text\n" in out
    assert 'Indexes:\n    "t_pkey" PRIMARY KEY, btree (a)\n\n' in out
    assert "View definition:\n SELECT t.a\n   FROM t;\n" in out
    assert "remarkable" in out
    assert "t_pkey | index | postgres | t\n" in out
    assert err == 'Did not find any relation named "nothing*".\n'


def test_other_lists(session: Session) -> None:
    out, _ = session.run(
        "create schema archive", "\\dn", "\\l post*", "\\df generate_ser*", "\\d pg_class", "\\dn arch?ve"
    )
    assert " archive | postgres\n" in out
    assert " postgres | postgres | UTF8\n" in out
    assert "generate_series" in out
    assert 'Table "pg_catalog.pg_class"' in out
    assert out.count("archive") == 2
    _, err = session.run("\\dC")
    assert err == "\\dC: this server has no clusters\n"


def test_settings_say_what_they_are(session: Session) -> None:
    out, err = session.run(
        "\\x", "\\x auto", "\\timing on", "\\timing off", "\\pset null <nothing>", "\\pset null", "\\a", "\\t"
    )
    assert out.splitlines() == [
        "Expanded display is on.",
        "Expanded display is used automatically.",
        "Timing is on.",
        "Timing is off.",
        'Null display is "<nothing>".',
        'Null display is "".',
        "Output format is unaligned.",
        "Tuples only is on.",
    ]
    assert err == ""


def test_mistakes_in_commands(session: Session) -> None:
    for text, message in {
        "\\nonsense": "invalid command \\nonsense\nTry \\? for help.\n",
        "\\timing perhaps": 'unrecognized value "perhaps" for "\\timing": Boolean expected\n',
        "\\i": "\\i: missing required argument\n",
        "\\pset speed 9": "\\pset: unknown option: speed\n",
        "\\d nothing": 'Did not find any relation named "nothing".\n',
        "\\g": "\\g: there is no query yet\n",
    }.items():
        assert session.run(text)[1] == message
        assert session.code == FAILED


def test_help_lists_every_command_and_knows_statements(session: Session) -> None:
    out, _ = session.run("\\?", "\\h create mat", "\\h create table t (a int)")
    assert "\\timing" in out and "\\watch" in out
    assert "Command:     CREATE MATERIALIZED VIEW" in out
    assert "Command:     CREATE TABLE" in out


def test_connect_elsewhere_and_back(session: Session) -> None:
    out, err = session.run("\\c template1", "select current_database() as here", "\\c no_such_database")
    assert 'You are now connected to database "template1" as user "postgres".' in out
    assert 'database "no_such_database" does not exist' in err
    assert "Previous connection kept." in err


def test_cancel_from_another_thread(postgres_dsn: str) -> None:
    shell = Shell(postgres_dsn, out=io.StringIO(), err=io.StringIO())
    shell.connect()
    asleep = "select count(*) from pg_stat_activity where query like '%pg_sleep(100%' and wait_event = 'PgSleep'"

    def interrupt() -> None:
        with psycopg.connect(postgres_dsn, autocommit=True) as conn:
            while conn.execute(asleep).fetchone() != (1,):
                pass
        shell.client.cancel()

    helper = threading.Thread(target=interrupt)
    helper.start()
    assert not shell.execute("select pg_sleep(100);")
    helper.join()
    assert shell.output.err.getvalue() == "ERROR:  canceling statement due to user request\n"  # type: ignore[attr-defined]
    assert shell.execute("select 1;")
    shell.client.close()


def test_a_lost_server_is_said_and_the_next_statement_works(postgres_dsn: str) -> None:
    out, err = io.StringIO(), io.StringIO()
    shell = Shell(postgres_dsn, out=out, err=err)
    shell.connect()
    pid = shell.query("select pg_backend_pid()").rows[0][0]
    with psycopg.connect(postgres_dsn, autocommit=True) as conn:
        conn.execute(f"select pg_terminate_backend({pid}, 10000)")  # type: ignore[arg-type, unused-ignore]
    assert not shell.execute("select 1;")
    assert "The connection to the server was lost. Attempting reset: Succeeded." in err.getvalue()
    assert shell.execute("select 2 as two;")
    assert "two" in out.getvalue()
    shell.client.close()


def test_names_changed_after_ddl_only(postgres_dsn: str) -> None:
    shell = Shell(postgres_dsn, out=io.StringIO(), err=io.StringIO())
    shell.connect()
    seen: list[str] = []
    shell.on_names_changed = lambda: seen.append(shell.last_query)
    for sql in ("select 1;", "create table t (a int);", "insert into t values (1);", "/* x */ drop table t;"):
        shell.execute(sql)
    assert seen == ["create table t (a int);", "/* x */ drop table t;"]
    shell.client.close()


def test_a_stream_knows_its_columns_before_its_first_row(postgres_dsn: str) -> None:
    shell = Shell(postgres_dsn, out=io.StringIO(), err=io.StringIO())
    shell.connect()
    columns, rows = shell.client.stream("select 1 as a, 'x'::text as b where false;")
    assert [(column.name, column.type_oid) for column in columns] == [("a", 23), ("b", 25)]
    assert list(rows) == []
    columns, rows = shell.client.stream("select date 'infinity' as d, i from generate_series(1, 3) i")
    assert list(rows) == [("infinity", "1"), ("infinity", "2"), ("infinity", "3")]
    with pytest.raises(psycopg.errors.UndefinedTable):
        shell.client.stream("select * from nothing")
    assert shell.execute("select 1;")
    shell.client.close()
