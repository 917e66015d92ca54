"""How plans show calls whose pattern, format or unit is constant."""

from __future__ import annotations

import pytest

from mzlite.expr.functions.display import literal_form
from mzlite.expr.scalar import Call, Ref, Scalar
from mzlite.expr.text.print import print_scalar
from mzlite.repr.types import BOOL, NUMERIC, TEXT, TIMESTAMP, array_of
from tests.unit.expr.test_eval import lit

X = Ref(0)


def name(column: int) -> str:
    return f"#{column}"


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        (Call("like_text", (X, lit(TEXT, "a%")), BOOL), 'like["a%"](#0)'),
        (Call("not_ilike_text", (X, lit(TEXT, "a")), BOOL), 'NOT(ilike["a"](#0))'),
        (Call("iregex_text", (X, lit(TEXT, "x\n")), BOOL), 'is_regexp_match["x\\n", case_insensitive=true](#0)'),
        (
            Call("regexp_match_text_text_text", (X, lit(TEXT, "a"), lit(TEXT, "i")), array_of(TEXT)),
            'regexp_match["a", case_insensitive=true](#0)',
        ),
        (
            Call("regexp_replace_text_text_text_text", (X, lit(TEXT, "a"), X, lit(TEXT, "g")), TEXT),
            'regexp_replace["a", case_insensitive=false, limit=0](#0, #0)',
        ),
        (Call("to_char_timestamp_text", (X, lit(TEXT, "HH:MI")), TEXT), "tocharts[HH:MI](#0)"),
        (Call("date_trunc_text_timestamp", (lit(TEXT, "DAYS"), X), TIMESTAMP), "date_trunc_day_ts(#0)"),
        (Call("extract_text_timestamptz", (lit(TEXT, "year"), X), NUMERIC), "extract_year_tstz(#0)"),
    ],
)
def test_constant_arguments(call: Call, shown: str) -> None:
    assert print_scalar(call, name) == shown


@pytest.mark.parametrize(
    "e",
    [
        Call("like_text", (X, Ref(1)), BOOL),
        Call("date_trunc_text_timestamp", (lit(TEXT, "no unit"), X), TIMESTAMP),
        Call("add_int4", (X, X), BOOL),
    ],
)
def test_other_calls_have_no_such_form(e: Scalar) -> None:
    assert isinstance(e, Call)
    assert literal_form(e, lambda a: print_scalar(a, name)) is None
