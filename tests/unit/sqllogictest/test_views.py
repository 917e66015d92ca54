"""--auto-index-selects: taking a SELECT apart, the statements made of it, and when two answers agree."""

from __future__ import annotations

import pytest

from sqllogictest import sqlscan, views
from sqllogictest.compare import Mismatch
from sqllogictest.records import ExpectedError, Mode, Query
from sqllogictest.session import Result, ServerError


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT 1", True),
        ("  -- why\n (select 1)", True),
        ("WITH a AS (SELECT 1) TABLE a", True),
        ("VALUES (1)", True),
        ("SHOW x", False),
        ("EXPLAIN SELECT 1", False),
        ("SELECTION", False),
    ],
)
def test_is_select(sql: str, expected: bool) -> None:
    assert sqlscan.is_select(sql) is expected


def test_order_by_is_the_outermost_one() -> None:
    sql = "SELECT a, sum(b) OVER (ORDER BY c) FROM (SELECT * FROM t ORDER BY z) s ORDER BY lower(a, 1) DESC NULLS LAST, 2 LIMIT 3;"
    parts = sqlscan.take_apart(sql)
    assert parts.order == (sqlscan.OrderItem("lower(a, 1)", "DESC NULLS LAST"), sqlscan.OrderItem("2", ""))
    assert parts.items == ("a", "sum(b) OVER (ORDER BY c)")
    assert parts.text.endswith("LIMIT 3")


def test_keywords_in_strings_names_and_comments_are_not_keywords() -> None:
    sql = """SELECT 'ORDER BY 1', "ORDER BY", $$ LIMIT $$, $q$ $$ $q$, E'\\' ORDER' /* ORDER BY 2 */ FROM t -- ORDER BY 3"""
    parts = sqlscan.take_apart(sql)
    assert parts.order == ()
    assert parts.items is not None and len(parts.items) == 5


def test_aliases_do_not_belong_to_the_expression() -> None:
    parts = sqlscan.take_apart('SELECT a + 1 AS x, b AS "y z", c FROM t')
    assert parts.items == ("a + 1", "b", "c")


@pytest.mark.parametrize("sql", ["SELECT a FROM t UNION SELECT 1", "SELECT DISTINCT a FROM t", "VALUES (1)", "TABLE t"])
def test_no_column_can_be_added(sql: str) -> None:
    assert sqlscan.take_apart(sql).items is None


def test_as_of() -> None:
    assert sqlscan.take_apart("SELECT 1 AS OF now()").as_of
    assert not sqlscan.take_apart("SELECT offset AS o FROM t").as_of


def test_plans_try_own_names_first() -> None:
    first, second = views.plans("SELECT a, b FROM t", ["a", "b"])
    assert first.create == f"CREATE VIEW {views.VIEW} AS SELECT a, b FROM t"
    assert first.select == f"SELECT * FROM {views.VIEW}" and first.named
    assert second.create == f"CREATE VIEW {views.VIEW} (a1, a2) AS SELECT a, b FROM t"
    assert second.select == f"SELECT a1, a2 FROM {views.VIEW}" and not second.named


def order_of(sql: str, names: list[str]) -> str:
    return views.plans(sql, names)[1].select.partition(" ORDER BY ")[2]


def test_order_by_becomes_ordinals() -> None:
    assert order_of("SELECT a, b FROM t ORDER BY b DESC, 1", ["a", "b"]) == "2 DESC, 1"
    assert order_of("SELECT a, b+1 AS c FROM t ORDER BY C", ["a", "c"]) == "2"
    assert order_of('SELECT a, b AS "C" FROM t ORDER BY "C"', ["a", "C"]) == "2"
    assert order_of("SELECT a, B + 1 FROM t ORDER BY b+1", ["a", "?column?"]) == "2"
    assert order_of("SELECT t.a FROM t ORDER BY t.a", ["a"]) == "1"
    assert order_of("SELECT * FROM t UNION SELECT 1, 2 ORDER BY b", ["a", "b"]) == "2"


def test_order_by_what_is_not_projected_adds_a_hidden_column() -> None:
    first, second = views.plans("SELECT a FROM t ORDER BY b DESC, a LIMIT 1", ["a"])
    assert first.create.endswith("AS SELECT a, b AS a2 FROM t ORDER BY b DESC, a LIMIT 1")
    assert first.select == f'SELECT "a" FROM {views.VIEW} ORDER BY a2 DESC, 1'
    assert second.select == f"SELECT a1 FROM {views.VIEW} ORDER BY a2 DESC, 1"
    with pytest.raises(views.NotAView):
        views.plans("SELECT DISTINCT a FROM t ORDER BY a + 1", ["a"])


def test_a_select_as_of_is_not_checked() -> None:
    with pytest.raises(views.NotAView):
        views.plans("SELECT 1 AS OF 5", ["?column?"])


class Scripted:
    """Stands in for a session: answers from a list, remembers what it was sent."""

    def __init__(self, *answers: Result | ServerError) -> None:
        self.answers = list(answers)
        self.sent: list[str] = []

    def extended(self, sql: str) -> Result:
        self.sent.append(sql.partition(" AS ")[0])
        answer = self.answers.pop(0)
        if isinstance(answer, ServerError):
            raise answer
        return answer


DONE = Result([], (), [], 0)


def rows(*cells: str) -> Result:
    return Result(["c"], (25,), [[cell.encode()] for cell in cells], len(cells))


def record(*expected: str) -> Query:
    return Query("f", 1, "SELECT c FROM t", "T", Mode.STANDARD, expected=list(expected))


def check(session: Scripted, rec: Query | ExpectedError, base: Result | ServerError, mismatch: Mismatch | None) -> str:
    found = views.check(session, rec, base, mismatch, indexed=True)  # type: ignore[arg-type]
    return "" if found is None else found.reason


def test_equal_rows_agree() -> None:
    session = Scripted(DONE, DONE, rows("x"), DONE)
    assert check(session, record("x"), rows("x"), None) == ""
    view = views.VIEW
    assert session.sent == [
        f"CREATE VIEW {view}",
        f"CREATE DEFAULT INDEX ON {view}",
        f"SELECT * FROM {view}",
        f"DROP VIEW {view}",
    ]


def test_different_rows_do_not() -> None:
    session = Scripted(DONE, DONE, rows("y"), DONE)
    assert check(session, record("x"), rows("x"), None) == "through an indexed view: wrong result"


def test_a_select_that_failed_already_is_compared_with_its_own_rows() -> None:
    wrong = Mismatch("wrong result", rows=[["z"]])
    assert check(Scripted(DONE, DONE, rows("z"), DONE), record("x"), rows("z"), wrong) == ""
    assert check(Scripted(DONE, DONE, rows("x"), DONE), record("x"), rows("z"), wrong) != ""


def test_the_second_try_renames_columns() -> None:
    twice = ServerError('column "c" specified more than once')
    session = Scripted(twice, DONE, DONE, rows("x"), DONE)
    assert check(session, record("x"), rows("x"), None) == ""
    assert session.sent[1] == f"CREATE VIEW {views.VIEW} (a1)"


def test_what_cannot_be_a_view_is_not_counted() -> None:
    refused = ServerError("cannot materialize call to current_user")
    with pytest.raises(views.NotAView):
        check(Scripted(refused, refused), record("x"), rows("x"), None)
    other = ServerError("out of luck")
    assert check(Scripted(other, other), record("x"), rows("x"), None) == "through an indexed view: an error"


def test_errors_must_agree_too() -> None:
    expected = ExpectedError("f", 1, "SELECT 1/0", "query", "division")
    zero = ServerError("division by zero")
    assert check(Scripted(DONE, DONE, zero, DONE), expected, zero, None) == ""
    assert "wrong error" in check(Scripted(DONE, DONE, ServerError("no"), DONE), expected, zero, None)
    assert "rows, where" in check(Scripted(DONE, DONE, rows("x"), DONE), expected, zero, None)
