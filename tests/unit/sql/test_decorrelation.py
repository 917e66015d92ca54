"""Correlated queries where decorrelation is easy to get wrong: empty groups, NULLs, multiplicities, errors that must (not) happen."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.unit.sql.test_against_postgres import Rows, ours

ROWS: Rows = {
    "t": [(1, 10, None), (2, 20, 1), (2, 20, 1), (None, 30, 2)],
    "u": [(1, 5), (1, 6), (3, None)],
    "v": [(10, 1), (20, None)],
}

CASES: dict[str, list[tuple[Any, ...]]] = {
    # A group without rows counts zero; its sum is NULL; what is computed from the count is computed from zero.
    "SELECT a, (SELECT count(*) FROM u WHERE u.a = t.a) FROM t": [(1, 2), (2, 0), (2, 0), (None, 0)],
    "SELECT b, (SELECT sum(u.b) FROM u WHERE u.a = t.a)::int FROM t": [(10, 11), (20, None), (20, None), (30, None)],
    "SELECT b, (SELECT count(*) + 1 FROM u WHERE u.a = t.a) FROM t": [(10, 3), (20, 1), (20, 1), (30, 1)],
    "SELECT a, (SELECT count(*) FROM u WHERE u.a > t.a) FROM t": [(1, 1), (2, 1), (2, 1), (None, 0)],
    # The aggregate's argument is an outer column; a NULL one still makes a row.
    "SELECT b, (SELECT max(t.a + u.a) FROM u) FROM t": [(10, 4), (20, 5), (20, 5), (30, None)],
    # Nothing equals NULL, and NOT IN is never true beside one.
    "SELECT b FROM t WHERE a IN (SELECT a FROM u)": [(10,)],
    "SELECT b FROM t WHERE a NOT IN (SELECT a FROM u)": [(20,), (20,)],
    "SELECT b FROM t WHERE 7 NOT IN (SELECT b FROM u)": [],
    "SELECT b FROM t WHERE 5 NOT IN (SELECT b FROM u WHERE u.a = t.a)": [(20,), (20,), (30,)],
    "SELECT b FROM t WHERE a <> ALL (SELECT b FROM u WHERE false)": [(10,), (20,), (20,), (30,)],
    "SELECT b FROM t WHERE (a IN (SELECT a FROM u)) IS NULL": [(30,)],
    "SELECT b FROM t WHERE (6 = ANY (SELECT b FROM u WHERE u.a <> t.a)) IS NULL": [
        (10,),
    ],
    # Equal outer rows stay as many as they are.
    "SELECT b FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a <= t.a)": [(10,), (20,), (20,)],
    "SELECT b FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.a = t.a)": [(20,), (20,), (30,)],
    "SELECT t.b, x.b FROM t, LATERAL (SELECT u.b FROM u WHERE u.a = t.a) AS x": [(10, 5), (10, 6)],
    "SELECT t.b, x.b FROM t LEFT JOIN LATERAL (SELECT u.b FROM u WHERE u.a = t.a AND u.b > 5) AS x ON true": [
        (10, 6),
        (20, None),
        (20, None),
        (30, None),
    ],
    "SELECT t.b, x.n FROM t LEFT JOIN LATERAL (SELECT count(*) AS n FROM u WHERE u.a = t.a) AS x ON x.n > 0": [
        (10, 2),
        (20, None),
        (20, None),
        (30, None),
    ],
    "SELECT t.b, v.k FROM t LEFT JOIN v ON v.k = t.b AND EXISTS (SELECT 1 FROM u WHERE u.a = t.a)": [
        (10, 10),
        (20, None),
        (20, None),
        (30, None),
    ],
    "SELECT t.a, v.k FROM t FULL JOIN v ON t.a = v.a": [(1, 10), (2, None), (2, None), (None, None), (None, 20)],
    # Two scopes out, and a correlated CTE read from a deeper query.
    "SELECT b, (SELECT count(*) FROM u WHERE EXISTS (SELECT 1 FROM v WHERE v.k = t.b AND u.a = v.a)) FROM t": [
        (10, 2),
        (20, 0),
        (20, 0),
        (30, 0),
    ],
    "SELECT b, (WITH c AS (SELECT u.b AS x FROM u WHERE u.a = t.a) SELECT count(*) FROM c WHERE x = (SELECT max(x) FROM c)) FROM t": [
        (10, 1),
        (20, 0),
        (20, 0),
        (30, 0),
    ],
    # Branches are computed for their own rows only.
    "SELECT b, CASE WHEN (SELECT count(*) FROM u WHERE u.a = t.a) = 0 THEN -1 ELSE (SELECT 10 / count(*) FROM u WHERE u.a = t.a) END FROM t": [
        (10, 5),
        (20, -1),
        (20, -1),
        (30, -1),
    ],
    # Recursion and limits that depend on the outer row.
    "SELECT b, (WITH MUTUALLY RECURSIVE r (n int) AS (SELECT 1 UNION SELECT n + 1 FROM r WHERE n < t.a) SELECT count(*) FROM r) FROM t": [
        (10, 1),
        (20, 2),
        (20, 2),
        (30, 1),
    ],
    "SELECT b, (SELECT count(*) FROM (SELECT 1 FROM u LIMIT t.a) AS x) FROM t": [(10, 1), (20, 2), (20, 2), (30, 3)],
    "SELECT b, (SELECT min(x.b) FROM (SELECT b FROM u WHERE u.a = t.a ORDER BY b DESC LIMIT 1) AS x) FROM t": [
        (10, 6),
        (20, None),
        (20, None),
        (30, None),
    ],
    "SELECT b, (SELECT sum(u.b) OVER (ORDER BY u.b) FROM u WHERE u.a = t.a ORDER BY 1 DESC LIMIT 1)::int FROM t": [
        (10, 11),
        (20, None),
        (20, None),
        (30, None),
    ],
}


@pytest.mark.parametrize("sql", CASES)
def test_rows(sql: str) -> None:
    assert ours(sql, ROWS) == Counter(CASES[sql])


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT (SELECT a FROM u)",
        "SELECT b FROM t WHERE a = (SELECT a FROM u WHERE a = 1)",
        "SELECT (SELECT u.b FROM u WHERE u.a = t.a) FROM t",
        "SELECT (SELECT u.b FROM u WHERE u.a >= t.a) FROM t",
        "SELECT b FROM t WHERE 1 = (SELECT 1 UNION ALL SELECT 1)",
    ],
)
def test_a_scalar_subquery_of_two_rows_is_an_error(sql: str) -> None:
    assert ours(sql, ROWS) == "21000"
