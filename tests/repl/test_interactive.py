"""The shell as a person types into it: keys go in through a pipe, what is printed comes out."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import DummyCompleter
from prompt_toolkit.formatted_text import to_plain_text
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from mzlite.repl import app
from mzlite.repl.app import Repl
from mzlite.repl.highlight import SqlLexer
from mzlite.repl.prompt import Prompt, open_history, prefers_vi

ENTER, CTRL_C, CTRL_D, ESCAPE, UP = "\r", "\x03", "\x04", "\x1b", "\x1b[A"
Type = Callable[[str], Prompt]


@pytest.fixture
def typed() -> Iterator[Type]:
    """A prompt into which the given keys have been typed."""
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):

        def make(text: str) -> Prompt:
            keys.send_text(text)
            return Prompt(
                completer=DummyCompleter(),
                history_path=None,
                database=lambda: "materialize=",
                transaction_mark=lambda: "*",
            )

        yield make


def test_enter_sends_only_what_is_complete(typed: Type) -> None:
    assert typed(f"select 'a;{ENTER}b'{ENTER};{ENTER}").read() == "select 'a;\nb'\n;"


def test_enter_sends_a_command_at_once(typed: Type) -> None:
    assert typed(f"\\dt{ENTER}").read() == "\\dt"
    assert typed(f"select 1{ENTER}\\g{ENTER}").read() == "select 1\n\\g"


def test_a_new_line_is_indented_like_the_one_above(typed: Type) -> None:
    assert typed(f"select{ENTER}  a,{ENTER}b;{ENTER}").read() == "select\n  a,\n  b;"


def test_words_for_leaving_are_understood(typed: Type) -> None:
    assert typed(f"quit{ENTER}").read() == "quit"


def test_ctrl_c_and_ctrl_d(typed: Type) -> None:
    with pytest.raises(KeyboardInterrupt):
        typed(f"select{CTRL_C}").read()
    with pytest.raises(EOFError):
        typed(CTRL_D).read()


def test_a_default_can_be_continued(typed: Type) -> None:
    assert typed(f" 2;{ENTER}").read(default="select") == "select 2;"


def test_the_prompt_shows_database_and_transaction(typed: Type) -> None:
    prompt = typed("")
    assert to_plain_text(prompt.message()) == "materialize=*> "


def test_copy_data_ends_with_backslash_dot(typed: Type, capsys: pytest.CaptureFixture[str]) -> None:
    assert list(typed(f"1\\tone{ENTER}2\\ttwo{ENTER}\\.{ENTER}").copy_lines()) == ["1\\tone\n", "2\\ttwo\n"]
    assert "Enter data to be copied" in capsys.readouterr().out


def test_history_that_cannot_be_written_is_kept_in_memory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    history = open_history(tmp_path / "file" / "below" / "history")
    history.append_string("select 1;")
    assert list(history.get_strings()) == ["select 1;"]


def test_materialize_words_are_keywords_and_commands_are_marked() -> None:
    tokens = dict(reversed(pair) for pair in SqlLexer().get_tokens("subscribe to my_view"))
    assert "Keyword" in str(tokens["subscribe"])
    assert "Keyword" not in str(tokens["my_view"])
    assert "Builtin" in str(next(iter(SqlLexer().get_tokens("\\dt foo")))[0])


@pytest.fixture
def session(
    postgres_dsn: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[..., tuple[str, str]]]:
    """Types the keys into a shell on PostgreSQL until it ends; what it printed."""
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):

        def run(text: str, initial: str | None = None, expect: int = 0) -> tuple[str, str]:
            keys.send_text(text)
            repl = Repl(postgres_dsn, history_path=tmp_path / "state" / "history")
            assert repl.loop(banner="welcome", initial=initial) == expect
            captured = capsys.readouterr()
            return captured.out, captured.err

        yield run


Session = Callable[..., tuple[str, str]]


def test_a_session(session: Session) -> None:
    out, err = session(f"select 1 as one,{ENTER}null as none;{ENTER}{CTRL_D}")
    assert out == "welcome\n one |  none  \n-----+--------\n   1 | <null>\n(1 row)\n\n\\q\n"
    assert err == ""


def test_errors_do_not_end_it_and_quit_does(session: Session) -> None:
    out, err = session(f"selec;{ENTER}select{CTRL_C}select 3 as three;{ENTER}exit{ENTER}")
    assert err.startswith('ERROR:  syntax error at or near "selec"\nLINE 1: selec;\n        ^\n')
    assert "three" in out and "\\q" not in out


def test_what_a_command_leaves_in_the_buffer_is_offered_again(session: Session) -> None:
    out, _ = session(f"select 5 as five{ENTER}\\p{ENTER};{ENTER}\\q{ENTER}")
    assert out.startswith("welcome\nselect 5 as five\n five \n")


def test_statements_before_the_first_prompt(session: Session) -> None:
    out, _ = session(f"select * from early;{ENTER}\\q{ENTER}", initial="create table early (a int); select 1 as first;")
    assert out.index("first") < out.index(" a \n")


def test_history_is_kept_across_sessions(session: Session) -> None:
    session(f"select{ENTER}'kept' as it;{ENTER}\\q{ENTER}")
    out, _ = session(f"{UP}{UP}{UP}{ENTER}\\q{ENTER}")
    assert "kept" in out


def test_copy_from_the_keyboard(session: Session) -> None:
    out, err = session(
        f"create table t (a int);{ENTER}copy t from stdin;{ENTER}1{ENTER}2{ENTER}\\.{ENTER}table t;{ENTER}\\q{ENTER}"
    )
    assert "COPY 2" in out and err == ""


def test_the_edited_query_is_run(session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\necho "select \'edited\' as \\"from $(head -c 8 $1)\\";" > $1\n')
    editor.chmod(0o755)
    monkeypatch.setenv("EDITOR", str(editor))
    monkeypatch.delenv("PSQL_EDITOR", raising=False)
    out, err = session(f"select 1{ENTER}\\e{ENTER}\\q{ENTER}")
    assert err == ""
    assert "from select 1" in out and "edited" in out


def test_no_server_no_shell(capsys: pytest.CaptureFixture[str]) -> None:
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        assert Repl("host=127.0.0.1 port=1 connect_timeout=2", history_path=None).loop() == 2
    assert capsys.readouterr().err.startswith("mzlite: error: ")


def test_without_a_terminal_standard_input_is_run(
    postgres_dsn: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("select 9 as nine"))
    assert app.run(postgres_dsn, history_path=None, banner="not shown") == 0
    assert capsys.readouterr().out == " nine \n------\n    9\n(1 row)\n\n"


def test_vi_keys_for_those_who_have_asked_readline_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INPUTRC", str(tmp_path / "inputrc"))
    assert not prefers_vi()
    (tmp_path / "inputrc").write_text("# mine\nset editing-mode vi\n")
    assert prefers_vi()
