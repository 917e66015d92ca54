"""Evaluation: errors belong to rows, and laziness decides which rows have them."""

from __future__ import annotations

from typing import Any

import pytest

from mzlite.expr.eval import eval_constant, eval_scalar, fold, is_constant
from mzlite.expr.scalar import Call, If, Literal, Ref, Scalar, Unmaterializable
from mzlite.expr.typing import can_error, rejects_null, scalar_type
from mzlite.repr.datum import column_from_datums, column_to_datums, encode_datum
from mzlite.repr.errors import SqlError, decode_error, encode_error
from mzlite.repr.types import BOOL, INT4, INT8, TEXT, TIMESTAMPTZ, ColumnType, ScalarType


def lit(typ: ScalarType, datum: Any) -> Literal:
    return Literal(None if datum is None else encode_datum(typ, datum), typ)


def run(e: Scalar, typ: ScalarType, *columns: tuple[ScalarType, list[Any]]) -> tuple[list[Any], dict[int, str]]:
    """Values, and messages by failed row."""
    n = len(columns[0][1]) if columns else 1
    result = eval_scalar(e, [column_from_datums(t, values) for t, values in columns], n)
    errors = {}
    if result.errors is not None:
        errors = {row: decode_error(data).message for row, data in zip(result.errors[0].tolist(), result.errors[1])}
    return column_to_datums(typ, result.column), errors


A = (INT4, [6, 7, None, 2147483647])
B = (INT4, [3, 0, 0, 1])
DIV = Call("div_int4", (Ref(0), Ref(1)), INT4)
BY_ZERO = "division by zero"


def test_an_error_stays_with_its_row() -> None:
    assert run(DIV, INT4, A, B) == ([2, None, None, 2147483647], {1: BY_ZERO})


def test_a_null_argument_hides_an_error() -> None:
    _, errors = run(DIV, INT4, (INT4, [None]), (INT4, [0]))
    assert errors == {}


def test_overflow() -> None:
    add = Call("add_int4", (Ref(0), Ref(1)), INT4)
    assert run(add, INT4, A, B) == ([9, 7, None, None], {3: "numeric field overflow"})


@pytest.mark.parametrize(("func", "decisive"), [("and", False), ("or", True)])
def test_a_decisive_operand_hides_errors(func: str, decisive: bool) -> None:
    fails = Call("gt_int4", (DIV, lit(INT4, 0)), BOOL)
    for args in ((Ref(2), fails), (fails, Ref(2))):
        values, errors = run(Call(func, args, BOOL), BOOL, A, B, (BOOL, [decisive, decisive, None, not decisive]))
        assert values[:2] == [decisive, decisive]
        assert errors == {}


def test_null_operands() -> None:
    both = (BOOL, [True, True, True, False, False, False, None, None, None])
    other = (BOOL, [True, False, None, True, False, None, True, False, None])
    values, _ = run(Call("and", (Ref(0), Ref(1)), BOOL), BOOL, both, other)
    assert values == [True, False, None, False, False, False, None, False, None]
    values, _ = run(Call("or", (Ref(0), Ref(1)), BOOL), BOOL, both, other)
    assert values == [True, True, True, True, False, None, True, None, None]


def test_branches_see_only_their_rows() -> None:
    safe = If(Call("not_eq_int4", (Ref(1), lit(INT4, 0)), BOOL), DIV, lit(INT4, -1))
    assert run(safe, INT4, A, B) == ([2, -1, -1, 2147483647], {})


def test_coalesce_is_lazy() -> None:
    e = Call("coalesce", (Ref(0), DIV), INT4)
    assert run(e, INT4, (INT4, [6, 7, None]), (INT4, [0, 0, 1])) == ([6, 7, None], {})
    late = Call("coalesce", (Ref(0), Call("div_int4", (lit(INT4, 1), Ref(1)), INT4)), INT4)
    assert run(late, INT4, (INT4, [None, 5, None]), (INT4, [0, 0, 1])) == ([None, 5, 1], {0: BY_ZERO})


def test_an_error_in_coalesce_is_not_a_null() -> None:
    e = Call("coalesce", (DIV, lit(INT4, 9)), INT4)
    assert run(e, INT4, (INT4, [6, 6, None]), (INT4, [0, 3, 1])) == ([None, 2, 9], {0: BY_ZERO})


def test_an_error_literal_fails_every_row() -> None:
    error = Literal(None, INT4, encode_error(SqlError("22012", BY_ZERO)))
    _, errors = run(Call("add_int4", (Ref(0), error), INT4), INT4, (INT4, [1, 2]))
    assert errors == {0: BY_ZERO, 1: BY_ZERO}


def test_no_rows() -> None:
    assert run(DIV, INT4, (INT4, []), (INT4, [])) == ([], {})
    assert run(Call("div_int4", (lit(INT4, 1), lit(INT4, 0)), INT4), INT4, (INT4, [])) == ([], {})


def test_fold() -> None:
    three = Call("add_int4", (lit(INT4, 1), lit(INT4, 2)), INT4)
    assert fold(three) == lit(INT4, 3)
    kept = fold(Call("add_int4", (Ref(0), three), INT4))
    assert kept == Call("add_int4", (Ref(0), lit(INT4, 3)), INT4)
    failed = fold(Call("div_int4", (lit(INT4, 1), lit(INT4, 0)), INT4))
    assert isinstance(failed, Literal) and failed.error is not None
    assert decode_error(failed.error).sqlstate == "22012"
    lazy = fold(If(lit(BOOL, False), failed, lit(INT4, 1)))
    assert lazy == lit(INT4, 1)


def test_constants() -> None:
    assert is_constant(Call("add_int4", (lit(INT4, 1), lit(INT4, 2)), INT4))
    assert not is_constant(Ref(0))
    assert not is_constant(Unmaterializable("now", TIMESTAMPTZ))
    with pytest.raises(SqlError, match=BY_ZERO):
        eval_constant(Call("div_int4", (lit(INT4, 1), lit(INT4, 0)), INT4))


def test_types_and_nullability() -> None:
    inputs = [ColumnType(INT4, True), ColumnType(INT4, False)]
    assert scalar_type(Ref(1), inputs) == ColumnType(INT4, False)
    assert scalar_type(Call("add_int4", (Ref(1), Ref(1)), INT4), inputs) == ColumnType(INT4, False)
    assert scalar_type(Call("add_int4", (Ref(0), Ref(1)), INT4), inputs).nullable
    assert not scalar_type(Call("is_null", (Ref(0),), BOOL), inputs).nullable
    assert not scalar_type(Call("coalesce", (Ref(0), Ref(1)), INT4), inputs).nullable
    nullif = If(Call("eq_int4", (Ref(1), lit(INT4, 1)), BOOL), lit(INT4, None), Ref(1))
    assert scalar_type(nullif, inputs) == ColumnType(INT4, True)
    assert can_error(DIV) and not can_error(Call("is_null", (Ref(0),), BOOL))


def test_rejects_null() -> None:
    greater = Call("gt_int4", (Ref(0), Ref(1)), BOOL)
    assert rejects_null(greater) == {0, 1}
    not_null = Call("not", (Call("is_null", (Ref(2),), BOOL),), BOOL)
    assert rejects_null(Call("and", (greater, not_null), BOOL)) == {0, 1, 2}
    assert rejects_null(Call("or", (greater, not_null), BOOL)) == set()
    assert rejects_null(Call("is_null", (Ref(0),), BOOL)) == set()


def test_text_casts_name_what_is_wrong() -> None:
    e = Call("cast_text_int4", (Ref(0),), INT4)
    rows = ["1", "x", None, "3"]
    expected = {1: 'invalid input syntax for type integer: invalid digit found in string: "x"'}
    assert run(e, INT4, (TEXT, rows)) == ([1, None, None, 3], expected)
    # The vectorised way must find the same row.
    values, errors = run(e, INT4, (TEXT, rows * 20))
    assert values == [1, None, None, 3] * 20
    assert set(errors) == {4 * i + 1 for i in range(20)}


def test_narrowing_casts() -> None:
    e = Call("cast_int8_int4", (Ref(0),), INT4)
    assert run(e, INT4, (INT8, [1, 1 << 40])) == ([1, None], {1: '"1099511627776" integer out of range'})
