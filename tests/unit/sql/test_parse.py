"""Syntax: precedence, statement splitting, error positions, and text that parses back to the same tree."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from adapter.sql import ast
from adapter.sql import statements as st
from adapter.sql.parse import parse_statements
from adapter.sql.unparse import Printer
from mzlite.repr.errors import SqlError


def query(sql: str) -> ast.Query:
    (statement,) = parse_statements(sql)
    assert isinstance(statement, st.SelectStatement)
    return statement.query


def expr(sql: str) -> ast.Expr:
    body = query(f"SELECT {sql}").body
    assert isinstance(body, ast.Select)
    return body.items[0].expr


def bare(node: Any) -> Any:
    """The tree as plain data without positions."""
    if isinstance(node, ast.Node):
        fields = {f: bare(getattr(node, f)) for f in node.__struct_fields__ if f != "pos"}
        return type(node).__name__, fields
    if isinstance(node, tuple):
        return tuple(bare(n) for n in node)
    return node


@pytest.mark.parametrize(
    ("sql", "grouped"),
    [
        ("1 + 2 * 3", "1 + (2 * 3)"),
        ("-2 ^ 2", "(-2) ^ 2"),
        ("- a::int", "-(a::int)"),
        ("~1 + 2", "~ (1 + 2)"),
        ("a @> b || c", "(a @> b) || c"),
        ("a = b IS NULL", "(a = b) IS NULL"),
        ("NOT a = b", "NOT (a = b)"),
        ("a OR b AND c", "a OR (b AND c)"),
        ("a BETWEEN 1 AND 2 AND c", "(a BETWEEN 1 AND 2) AND c"),
        ("a < b + 1", "a < (b + 1)"),
        ("a || b LIKE c", "(a || b) LIKE c"),
        ("a -> 'x' || 'y'", "(a -> 'x') || 'y'"),
        ("a AT TIME ZONE 'UTC' + b", "(a AT TIME ZONE 'UTC') + b"),
        ("a IN (1, 2) = b", "(a IN (1, 2)) = b"),
        ("a[1] + 1", "(a[1]) + 1"),
        ("1 - 2 - 3", "(1 - 2) - 3"),
    ],
)
def test_precedence(sql: str, grouped: str) -> None:
    assert bare(expr(sql)) == bare(expr(grouped))


ROUND_TRIPS = """
SELECT DISTINCT ON (a, b + 1) a AS x, t.*, * FROM t AS y (p, q), LATERAL (SELECT 1) AS z WHERE NOT a ORDER BY a DESC NULLS LAST LIMIT 5 OFFSET 2
SELECT count(*) FILTER (WHERE a > 1), array_agg(DISTINCT a ORDER BY b DESC) FROM t GROUP BY 1, a + 1 HAVING count(*) > 1
SELECT lag(a, 1) IGNORE NULLS OVER (PARTITION BY b ORDER BY c ROWS BETWEEN 1 PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE TIES) FROM t
SELECT sum(a) OVER w FROM t WINDOW w AS (ORDER BY b) QUALIFY row_number() OVER () = 1
SELECT CASE a WHEN 1 THEN 'x' ELSE NULL END, CASE WHEN a THEN b END, a::numeric(10, 2)::text[], INTERVAL '1' DAY TO SECOND(2), DATE '2020-01-01'
SELECT ARRAY[[1, 2], [3]], LIST[1]::int list list, MAP['a' => 1], ROW(1, 2), (r).f, (r).*, x[1][2:3], x[:]
SELECT a IN (SELECT 1), a NOT IN (1, 2), a = ANY (SELECT 2), a <> ALL (ARRAY[1]), EXISTS (SELECT 1), ARRAY(SELECT 1), (SELECT 2)
SELECT a LIKE 'x' ESCAPE '!', a NOT ILIKE b, a IS NOT DISTINCT FROM b, a IS NOT TRUE, a BETWEEN SYMMETRIC 1 AND 2, EXTRACT(year FROM a), POSITION('a' IN b)
SELECT * FROM a JOIN b USING (x) AS j LEFT JOIN (c NATURAL FULL JOIN d) ON a.y = c.y CROSS JOIN e
SELECT * FROM ROWS FROM (generate_series(1, 2), unnest(a)) WITH ORDINALITY AS f (x, y, z), generate_series(1, 3) WITH ORDINALITY
WITH a (x) AS (SELECT 1), b AS (VALUES (1, 2), (3, 4)) (SELECT * FROM a) UNION ALL (SELECT 2 EXCEPT SELECT 3) UNION ALL TABLE b ORDER BY 1
WITH MUTUALLY RECURSIVE (RETURN AT RECURSION LIMIT = 5) r (a int, b text list) AS (SELECT 1, NULL UNION SELECT * FROM r) SELECT * FROM r
WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT 2) SELECT "Mixed Case", "select" FROM "r s"
SELECT a FROM t GROUP BY a OPTIONS (AGGREGATE INPUT GROUP SIZE = 10)
"""


@pytest.mark.parametrize("sql", ROUND_TRIPS.strip().splitlines())
def test_printed_queries_parse_back(sql: str) -> None:
    tree = query(sql)
    printed = Printer().query(tree)
    assert bare(query(printed)) == bare(tree), printed


def test_statements_are_split_with_their_texts() -> None:
    found = parse_statements("SELECT 1;;\n -- nothing\n INSERT INTO t VALUES ($2); ")
    assert [(s.tag, s.text, s.start, s.parameter_count) for s in found] == [
        ("SELECT", "SELECT 1", 0, 0),
        ("INSERT", "INSERT INTO t VALUES ($2)", 24, 2),
    ]
    assert parse_statements(" /* nothing */ ; ") == []


@pytest.mark.parametrize(
    ("sql", "message", "position"),
    [
        ("SELECT 1 2", 'Expected end of statement, found number "2"', 10),
        ("SELECT (1", "Expected right parenthesis, found EOF", 10),
        ("SELECT a FILTER (WHERE b)", "Expected end of statement, found left parenthesis", 17),
        ("SELEC 1", 'Expected a keyword at the beginning of a statement, found identifier "selec"', 1),
        ("SELECT * FROM", "Expected identifier, found EOF", 14),
        ("SELECT 1 LIMIT 1 LIMIT 2", "multiple LIMIT/FETCH clauses not allowed", 18),
        ("SELECT count(DISTINCT *) FROM t", "DISTINCT * not supported as function args", 23),
        ("SELECT a IS 5", None, 13),
        ("CREATE TABLE t (a int, )x", 'Expected end of statement, found identifier "x"', 25),
    ],
)
def test_syntax_errors_have_words_and_a_place(sql: str, message: str | None, position: int) -> None:
    with pytest.raises(SqlError) as caught:
        parse_statements(sql)
    assert caught.value.sqlstate == "42601"
    assert caught.value.position == position
    assert message is None or caught.value.message == message


def test_positions_count_from_the_start_of_the_string() -> None:
    with pytest.raises(SqlError) as caught:
        parse_statements("SELECT 1; SELECT 2 3")
    assert caught.value.position == 20


STATEMENTS = {
    "SUBSCRIBE (SELECT 1) WITH (PROGRESS, SNAPSHOT = false) AS OF AT LEAST 5 UP TO 9": st.Subscribe,
    "SUBSCRIBE t ENVELOPE UPSERT (KEY (a))": st.Subscribe,
    "SUBSCRIBE t WITHIN TIMESTAMP ORDER BY mz_diff DESC": st.Subscribe,
    "COPY t (a, b) FROM STDIN WITH (FORMAT csv, HEADER, DELIMITER ';')": st.Copy,
    "COPY (SELECT 1) TO STDOUT CSV HEADER": st.Copy,
    "EXPLAIN OPTIMIZED PLAN WITH (arity, types) AS VERBOSE TEXT FOR MATERIALIZED VIEW v": st.Explain,
    "EXPLAIN ANALYZE MEMORY, CPU WITH SKEW FOR INDEX i": st.Explain,
    "EXPLAIN TIMESTAMP AS JSON FOR SELECT 1": st.Explain,
    "CREATE MATERIALIZED VIEW v (a) IN CLUSTER c WITH (ASSERT NOT NULL a, REFRESH EVERY '1 day' ALIGNED TO mz_now()) AS SELECT 1": (
        st.CreateMaterializedView
    ),
    "CREATE DEFAULT INDEX i IN CLUSTER c ON t": st.CreateIndex,
    "CREATE INDEX ON t (a DESC, (b + 1)) WITH (RETAIN HISTORY = FOR '1h')": st.CreateIndex,
    "CREATE CLUSTER c (SIZE 'x', REPLICATION FACTOR 2)": st.CreateCluster,
    "CREATE CLUSTER c REPLICAS (r1 (SIZE 'x'), r2 (SIZE 'y'))": st.CreateCluster,
    "CREATE TYPE p AS (a int, b text)": st.CreateType,
    "CREATE SOURCE s FROM LOAD GENERATOR COUNTER (TICK INTERVAL '1s', MAX CARDINALITY 5)": st.CreateSource,
    "ALTER CLUSTER c SET (SIZE 'y')": st.Alter,
    "ALTER SCHEMA a SWAP WITH b": st.Alter,
    "ALTER SYSTEM SET x TO 'a', 'b'": st.SetVariable,
    "SET TIME ZONE 'UTC'": st.SetVariable,
    "SHOW TRANSACTION ISOLATION LEVEL": st.ShowVariable,
    "SHOW INDEXES ON t WHERE name = 'x'": st.Show,
    "SHOW CREATE MATERIALIZED VIEW v": st.ShowCreate,
    "START TRANSACTION READ ONLY, ISOLATION LEVEL STRICT SERIALIZABLE": st.Begin,
    "PREPARE p (int) AS SELECT $1": st.Prepare,
    "EXECUTE p (1, 'a')": st.Execute,
    "DECLARE c NO SCROLL CURSOR WITHOUT HOLD FOR SELECT 1": st.Declare,
    "FETCH FORWARD 5 FROM c WITH (TIMEOUT = '1s')": st.Fetch,
    "COMMENT ON COLUMN t.a IS 'x'": st.Comment,
    "DROP TABLE IF EXISTS a, b.c CASCADE": st.Drop,
    "GRANT SELECT ON t TO r": st.Accepted,
    "DISCARD ALL": st.Discard,
}


@pytest.mark.parametrize("sql", STATEMENTS)
def test_statements_parse(sql: str) -> None:
    (statement,) = parse_statements(sql)
    assert type(statement) is STATEMENTS[sql]
    assert statement.text == sql
    assert msgspec.structs.replace(statement, tag="") != statement


N = 20_000


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT " + "(" * N + "1" + ")" * N,
        "SELECT 1" + " + 1" * N,
        "SELECT " + "NOT " * N + "true",
        "SELECT " + "(SELECT " * N + "1" + ")" * N,
        "SELECT * FROM " + "(SELECT * FROM " * N + "t" + ") x" * N,
        "SELECT 1" + " UNION ALL SELECT 1" * N,
        "SELECT 1" + "::int" * N,
        "SELECT " + "ARRAY[" * N + "1" + "]" * N,
        "SELECT " + "abs(" * N + "1" + ")" * N,
    ],
    ids=lambda sql: sql[7:24],
)
def test_absurd_depth_is_an_error(sql: str) -> None:
    with pytest.raises(SqlError) as caught:
        parse_statements(sql)
    assert caught.value.sqlstate == "54001"
