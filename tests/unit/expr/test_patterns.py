"""LIKE and regular expressions: both ways of evaluating LIKE agree; Rust's regular expressions on Python's engine."""

from __future__ import annotations

import itertools

import pytest

from mzlite.expr.eval import eval_scalar
from mzlite.expr.kernels import patterns
from mzlite.expr.scalar import Call, Ref
from mzlite.repr.datum import column_from_datums, column_to_datums
from mzlite.repr.errors import SqlError
from mzlite.repr.types import BOOL, TEXT
from tests.unit.expr.planning import text
from tests.unit.expr.test_eval import lit

TEXTS = ["", "a", "ab", "abc", "aXc", "a%c", "a_c", "héllo", "h\u00e9\nllo", "A\\B", "ABC", "äbc", None]
PATTERNS = [
    "",
    "%",
    "_",
    "a%",
    "%c",
    "%b%",
    "a_c",
    "a\\%c",
    "a\\_c",
    "h_llo",
    "h%o",
    "_%_",
    "A\\\\B",
    "abc",
    "Ä%",
    "%%a%%",
]


@pytest.mark.parametrize("func", ["like_text", "ilike_text", "not_like_text", "not_ilike_text"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_like_over_many_rows(func: str, pattern: str) -> None:
    many = list(itertools.islice(itertools.cycle(TEXTS), 400))
    call = Call(func, (Ref(0), lit(TEXT, pattern)), BOOL)
    whole = column_to_datums(BOOL, eval_scalar(call, [column_from_datums(TEXT, many)], len(many)).column)
    for value, found in zip(TEXTS, whole):
        one = eval_scalar(call, [column_from_datums(TEXT, [value])], 1).column
        assert column_to_datums(BOOL, one) == [found], (value, pattern)


def test_like_ending_in_an_escape() -> None:
    with pytest.raises(SqlError, match="unterminated escape sequence"):
        text("'a' LIKE 'a\\'")
    assert patterns.like_escape("a!%b\\", "!") == "a\\%b\\\\"


@pytest.mark.parametrize(
    ("pattern", "value", "found"),
    [
        ("a$", "a\n", False),  # $ is the very end, not before a final newline
        ("a.b", "a\nb", True),  # . matches newlines, as in PostgreSQL
        ("^[[:alpha:]]+$", "abc", True),
        ("[[:digit:][:space:]]{2}", "1 ", True),
        ("(?<year>[0-9]{4})", "in 2024", True),
        (r"\x{41}", "A", True),
        (r"\pL+", "é", True),
        (r"\z", "", True),
        ("[^]a]", "b", True),
    ],
)
def test_syntax(pattern: str, value: str, found: bool) -> None:
    assert (patterns.regex(pattern).search(value) is not None) is found


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(a", "unclosed group"),
        ("a)", "unopened group"),
        ("[a", "unclosed character class"),
        ("*a", "repetition operator missing expression"),
        ("a\\", "incomplete escape sequence"),
        (r"(a)\1", "backreferences are not supported"),
        ("(?=a)", "look-around"),
    ],
)
def test_errors(pattern: str, message: str) -> None:
    with pytest.raises(SqlError, match=message) as caught:
        patterns.regex(pattern)
    assert caught.value.message.startswith("invalid regular expression: regex parse error:")


def test_flags() -> None:
    assert patterns.regex("a", "ic").search("A") is None
    assert patterns.regex("a", "ci").search("A") is not None
    assert patterns.regex("^b", "n").search("a\nb") is not None
    with pytest.raises(SqlError, match="invalid regular expression flag: x"):
        patterns.regex("a", "x")


def test_empty_matches() -> None:
    assert patterns.split(patterns.regex(r"\s*"), "12  34") == ["1", "2", "3", "4"]
    assert patterns.split(patterns.regex(""), "ab") == ["a", "b"]
    assert patterns.replace(patterns.regex("x*"), "abxc", "-", everywhere=True) == "-a-b-c-"
    assert patterns.replace(patterns.regex("(b)(.)"), "abc", "<$2${1}$$>", everywhere=False) == "a<cb$>"
