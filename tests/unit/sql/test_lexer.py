from __future__ import annotations

import pytest

from adapter.sql.parse.lexer import tokenize
from mzlite.repr.errors import SqlError


def kinds(sql: str) -> list[tuple[str, str]]:
    return [(t.kind, t.value) for t in tokenize(sql)[:-1]]


def test_words_fold_and_quoted_names_do_not() -> None:
    assert kinds('SELECT Foo "Foo" "a""b"') == [
        ("word", "select"),
        ("word", "foo"),
        ("quoted", "Foo"),
        ("quoted", 'a"b'),
    ]


@pytest.mark.parametrize(
    ("sql", "operators"),
    [
        ("a->>'x'", ["->>"]),
        ("a>-1", [">", "-"]),
        ("a@-1", ["@-"]),
        ("a !~~* b", ["!~~*"]),
        ("a != b", ["<>"]),
        ("a=-b", ["=", "-"]),
        ("map[a=>1]", ["=>"]),
        ("a<@b @> c", ["<@", "@>"]),
        ("2*-3", ["*", "-"]),
    ],
)
def test_operators_are_postgres_longest_match(sql: str, operators: list[str]) -> None:
    assert [value for kind, value in kinds(sql) if kind == "op"] == operators


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("'it''s'", "it's"),
        (r"'a\n'", r"a\n"),
        (r"E'a\n\x41\101é''q\''", "a\nAAé'q'"),
        ("$$it's$$", "it's"),
        ("$tag$ $$ $tag$", " $$ "),
        ("'a'\n  'b'", "ab"),
    ],
)
def test_strings(literal: str, value: str) -> None:
    assert kinds(literal) == [("string", value)]


def test_numbers_and_parameters() -> None:
    assert kinds("1 1. .5 1.5e-3 $12") == [
        ("number", "1"),
        ("number", "1."),
        ("number", ".5"),
        ("number", "1.5e-3"),
        ("param", "12"),
    ]


def test_a_dot_after_a_name_is_a_dot() -> None:
    assert [k for k, _ in kinds("t.a x[1].b")] == ["word", ".", "word", "word", "[", "number", "]", ".", "word"]


def test_comments_vanish_and_offsets_stay() -> None:
    tokens = tokenize("a /* /* nested */ */ b -- end\nc")
    assert [(t.value, t.start) for t in tokens[:-1]] == [("a", 0), ("b", 21), ("c", 30)]


@pytest.mark.parametrize(
    ("sql", "message", "position"),
    [
        ("SELECT 'abc", "unterminated quoted string", 8),
        ('SELECT "abc', "unterminated quoted identifier", 8),
        ("SELECT /* abc", "unterminated comment", 8),
        ("SELECT $x", "unexpected character in input: $", 8),
    ],
)
def test_unterminated(sql: str, message: str, position: int) -> None:
    with pytest.raises(SqlError) as caught:
        tokenize(sql)
    assert (caught.value.sqlstate, caught.value.message, caught.value.position) == ("42601", message, position)
