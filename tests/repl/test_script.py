"""Where statements and shell commands end, and what a line still lacks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mzlite.repl.script import Meta, Script, Statement, split_args, wants_more
from mzlite.repl.tokens import Lexer, leading_words, tokenize


def items(text: str, **variables: str) -> list[Statement | Meta]:
    return list(Script(text.splitlines(keepends=True), variables))


@pytest.mark.parametrize(
    "text",
    [
        "select 'a;b';",
        "select 'it''s; fine';",
        r"select E'quote \'; and on';",
        "select $$ ; $$;",
        "select $fn$ ; $$ ; $fn$;",
        'select 1 as "odd;name";',
        "select /* ; /* nested ; */ still ; */ 1;",
        "select 1 -- not yet;\n;",
        "select a$b$c, 2;",
    ],
)
def test_a_semicolon_inside_something_does_not_end_the_statement(text: str) -> None:
    assert items(text) == [Statement(text)]
    assert not wants_more(text)
    assert wants_more(text[:-1])


def test_a_backslash_in_a_plain_string_is_only_a_character() -> None:
    assert items("select '\\'; select 2;") == [Statement("select '\\';"), Statement("select 2;")]


def test_statements_on_one_line_and_one_statement_on_many() -> None:
    assert items("select 1; select\n2\n; ") == [Statement("select 1;"), Statement("select\n2\n;")]


def test_a_semicolon_ends_the_statement_even_in_parentheses() -> None:
    assert items("select (1;") == [Statement("select (1;")]


def test_a_command_takes_the_rest_of_its_line_and_leaves_the_buffer() -> None:
    script = Script(["select 1 \\gx out.txt\n"])
    found = list(script)
    assert found == [Meta("gx", "out.txt")]
    assert script.buffer.strip() == "select 1"


def test_two_backslashes_end_a_command() -> None:
    assert items("\\timing on \\\\ select 1;") == [Meta("timing", "on"), Statement("select 1;")]


def test_the_handler_of_a_command_may_replace_the_buffer() -> None:
    script = Script(["select 'half \n", "' \\r\n", "2;\n"])
    iterator = iter(script)
    assert next(iterator) == Meta("r", "")
    script.buffer = "select"
    assert next(iterator) == Statement("select\n2;")


def test_copy_data_is_not_read_as_sql() -> None:
    script = Script(["copy t from stdin;\n", "1;\t\\N\n", "\\.\n", "select 1;\n"])
    iterator = iter(script)
    assert next(iterator) == Statement("copy t from stdin;")
    assert list(script.copy_data()) == ["1;\t\\N\n"]
    assert next(iterator) == Statement("select 1;")


def test_variables_are_put_in_where_they_are_set_and_not_in_strings() -> None:
    text = "select :n, :'s', :\"i\", ':n', x::n, a[1:n], :other;"
    assert items(text, n="42", s="o'clock", i="My Col") == [
        Statement("select 42, 'o''clock', \"My Col\", ':n', x::n, a[1" + "42], :other;")
    ]


def test_arguments() -> None:
    assert split_args("one 'two three' 'it''s' \"Keep Case\".t 'a\\tb'") == [
        "one",
        "two three",
        "it's",
        '"Keep Case".t',
        "a\tb",
    ]


def test_what_needs_no_more() -> None:
    assert not wants_more("")
    assert not wants_more("  \n ")
    assert not wants_more("\\d t")
    assert not wants_more("select 1 \\g")
    assert not wants_more("-- only a remark")
    assert wants_more("/* unfinished")
    assert wants_more("select 1 -- ;")


def test_the_continuation_mark_says_what_is_open() -> None:
    marks = {}
    for text in ("select", "select '", 'select "', "select (1,", "select $x$ '", "/* a /* b */", "select E'\\'"):
        lexer = Lexer()
        lexer.feed(text)
        marks[text] = lexer.inside.mark
    assert list(marks.values()) == ["-", "'", '"', "(", "$", "*", "'"]


def test_leading_words_skip_comments() -> None:
    assert leading_words("/* hm */ create -- a\n materialized view v", 2) == ("CREATE", "MATERIALIZED")
    assert leading_words("(select 1)", 2) == ()


SQL_BITS = st.sampled_from(
    ["select", " ", "\n", "'", "''", "E'", '"', "$$", "$a$", "/*", "*/", "--", ";", "(", ")", ":x", "::", "1.5e3", "é"]
)


@given(st.lists(SQL_BITS, max_size=30).map("".join))
def test_tokens_are_the_text_and_lines_at_a_time_gives_the_same_end(text: str) -> None:
    assert "".join(token.text for token in tokenize(text)) == text
    whole, by_line = Lexer(), Lexer()
    whole.feed(text)
    for line in text.splitlines(keepends=True):
        by_line.feed(line)
    assert by_line.inside.mode == whole.inside.mode
