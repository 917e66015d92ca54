"""Names, types and clauses: what plans, as what, and the words of what does not."""

from __future__ import annotations

import pytest

from adapter.sql import plans as p
from tests.unit.sql.planning import error, failure, plan, planned, select, types


@pytest.mark.parametrize(
    ("expression", "typ"),
    [
        ("1", "integer"),
        ("3000000000", "bigint"),
        ("1.5", "numeric"),
        ("'x'", "text"),
        ("NULL", "text"),
        ("1 + 1.5", "numeric"),
        ("1::float4 + 1.5::float8", "double precision"),
        ("date '2020-01-01' + interval '1 day'", "timestamp without time zone"),
        ("'2020-01-01'::date - '2019-01-01'::date", "integer"),
        ("CASE WHEN true THEN 1 ELSE 2.5 END", "numeric"),
        ("coalesce(NULL, 1, 2::bigint)", "bigint"),
        ("ARRAY[1, NULL, 2::bigint]", "bigint[]"),
        ("LIST[LIST['a']]", "text list list"),
        ("MAP['a' => 1]", "map[text=>integer]"),
        ("nullif(1, 2)", "integer"),
        ("greatest('a', 'b')", "text"),
        ("1 = '1'", "boolean"),
        ("length('abc')", "integer"),
        ("(SELECT 1)", "integer"),
        ("EXISTS (SELECT)", "boolean"),
        ("ARRAY(SELECT 1)", "integer[]"),
        ("'{1,2}'::int[]", "integer[]"),
        ("ROW(1, 'a') = ROW(1, 'b')", "boolean"),
        ("'[1,2)'::int4range", "int4range"),
        ("pg_typeof(1)", "text"),
        ("'a'::varchar(3)", "character varying(3)"),
        ("sum(1)", "bigint"),
        ("count(*)", "bigint"),
        ("1 IS DISTINCT FROM NULL", "boolean"),
    ],
)
def test_types(expression: str, typ: str) -> None:
    assert types(f"SELECT {expression}") == [typ]


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT a, a + 1, a AS x, count(*) FROM t GROUP BY a", ["a", "?column?", "x", "count"]),
        (
            "SELECT a::text, '1'::int, CASE WHEN true THEN 1 END, (SELECT b FROM u LIMIT 1), EXISTS (SELECT) FROM t",
            ["a", "int4", "case", "b", "exists"],
        ),
        ("SELECT * FROM t JOIN u USING (a)", ["a", "b", "c", "b"]),
        ("SELECT * FROM t NATURAL JOIN u", ["a", "b", "c"]),
        ("SELECT u.*, t.a FROM t, u", ["a", "b", "a"]),
        ("SELECT * FROM generate_series(1, 2) AS g", ["g"]),
        ("SELECT * FROM generate_series(1, 2) WITH ORDINALITY AS g (x)", ["x", "ordinality"]),
        ("SELECT * FROM (VALUES (1, 2)) AS v (p)", ["p", "column2"]),
        ("WITH q (x) AS (SELECT 1, 2 AS y) SELECT * FROM q", ["x", "y"]),
        ("SELECT (j).* FROM (SELECT ROW(1, 2) AS j) AS s", ["f1", "f2"]),
        ("VALUES (1), (2)", ["column1"]),
    ],
)
def test_names(sql: str, names: list[str]) -> None:
    assert list(select(sql).desc.names) == names


ERRORS = [
    ("SELECT x FROM t", "42703", 'column "x" does not exist'),
    ("SELECT t.x FROM t", "42703", 'column "t.x" does not exist'),
    ("SELECT u.a FROM t", "42703", 'column "u.a" does not exist'),
    ("SELECT a FROM t, u", "42702", 'column reference "a" is ambiguous'),
    ("SELECT * FROM t, t", "42712", 'table name "t" specified more than once'),
    ("SELECT * FROM nothere", "42P01", "unknown catalog item 'nothere'"),
    ("SELECT * FROM nope.t", "3F000", "unknown schema 'nope'"),
    ("SELECT * FROM nope.public.t", "3D000", "unknown database 'nope'"),
    ("SELECT nope(1)", "42883", 'function "nope" does not exist'),
    ("SELECT abs('a', 1)", "42883", "function abs(unknown, integer) does not exist"),
    ("SELECT 1 + true", "42883", "operator does not exist: integer + boolean"),
    ("SELECT 1 FROM t WHERE a", "42804", "WHERE clause must have type boolean, not type integer"),
    ("SELECT 1 AND true", "42804", "AND argument must have type boolean, not type integer"),
    (
        "SELECT a, count(*) FROM t",
        "42803",
        'column "t.a" must appear in the GROUP BY clause or be used in an aggregate function',
    ),
    (
        "SELECT a FROM t GROUP BY b",
        "42803",
        'column "t.a" must appear in the GROUP BY clause or be used in an aggregate function',
    ),
    (
        "SELECT (SELECT t.b) FROM t GROUP BY a",
        "42803",
        'column "t.b" must appear in the GROUP BY clause or be used in an aggregate function',
    ),
    (
        "SELECT a FROM t WHERE count(*) > 1",
        "42803",
        "aggregate functions are not allowed in WHERE clause (function pg_catalog.count)",
    ),
    ("SELECT sum(count(*)) FROM t", "42803", "nested aggregate functions are not allowed"),
    (
        "SELECT a FROM t WHERE row_number() OVER () = 1",
        "42P20",
        "window functions are not allowed in WHERE clause (function pg_catalog.row_number)",
    ),
    ("SELECT row_number()", "42809", "window function pg_catalog.row_number requires an OVER clause"),
    (
        "SELECT a FROM t WHERE generate_series(1, 2) = 1",
        "0A000",
        "table functions are not allowed in WHERE clause (function pg_catalog.generate_series)",
    ),
    ("SELECT a FROM t ORDER BY 2", "42P10", "column reference 2 in ORDER BY clause is out of range (1 - 1)"),
    ("SELECT a FROM t GROUP BY 3", "42P10", "column reference 3 in GROUP BY clause is out of range (1 - 1)"),
    (
        "SELECT DISTINCT a FROM t ORDER BY b",
        "42P10",
        "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
    ),
    ("SELECT 1 UNION SELECT 1, 2", "42601", "each UNION query must have the same number of columns: 1 vs 2"),
    ("SELECT 1 UNION SELECT true", "42804", "UNION types integer and boolean cannot be matched"),
    ("SELECT (SELECT 1, 2)", "42601", "Expected subselect to return 1 column, got 2 columns"),
    ("SELECT * FROM t JOIN u USING (c)", "42703", 'column "c" specified in USING clause does not exist in right table'),
    ("SELECT * FROM t AS x (a, b, c, d)", "42P10", "x has 3 columns available but 4 columns specified"),
    ("SELECT 'a'::nope", "42704", 'type "nope" does not exist'),
    ("SELECT 1::date", "42846", "CAST does not support casting from integer to date"),
    ("SELECT 'x'::varchar(0)", "22023", "length for type character varying must be between 1 and 10485760"),
    ("SELECT ARRAY[]", "42P18", "cannot determine type of empty array"),
    ("SELECT a FROM t LIMIT -1", "2201W", "LIMIT must not be negative"),
    (
        "SELECT * FROM t OFFSET NULL",
        "22004",
        "Invalid OFFSET clause: Expected an expression that evaluates to a non-null value, got null",
    ),
    ("SELECT *", "42601", "SELECT * with no tables specified is not valid"),
    ("SELECT $2::int", "42P18", "unable to infer type for parameter $1"),
    ("INSERT INTO t VALUES (1, 2, 3, 4)", "42601", "INSERT has more expressions than target columns"),
    ("INSERT INTO t (a, a) VALUES (1, 2)", "42701", 'column "a" specified more than once'),
    ("INSERT INTO t (a) VALUES (true)", "42804", 'column "a" is of type integer but expression is of type boolean'),
    ("CREATE VIEW x AS SELECT 1 AS a, 2 AS a", "42701", 'column "a" specified more than once'),
    ("CREATE VIEW x AS SELECT * FROM (SHOW TABLES)", "0A000", "SHOW commands are not allowed in views"),
    ("CREATE VIEW x AS SELECT $1::int", "42P02", "there is no parameter $1"),
    ("CREATE MATERIALIZED VIEW x AS SELECT now()", "0A000", "cannot materialize call to now"),
    ("CREATE TABLE x (a int, a text)", "42701", 'column "a" specified more than once'),
    ("CREATE INDEX ON t (x)", "42703", 'column "x" does not exist'),
    ("EXECUTE nope", "26000", "prepared statement nope does not exist"),
    ("EXECUTE prepared (1)", "08P01", "expected 2 params but got 1"),
    ("DROP VIEW t", "42809", "materialize.public.t is not a view"),
    (
        "SELECT * FROM t AS OF now()",
        "0A000",
        "calling an unmaterializable function in AS OF or UP TO not yet supported",
    ),
]


@pytest.mark.parametrize(("sql", "sqlstate", "message"), ERRORS, ids=[e[0] for e in ERRORS])
def test_errors(sql: str, sqlstate: str, message: str) -> None:
    assert error(sql) == (sqlstate, message)


def test_errors_point_at_the_name() -> None:
    assert failure("SELECT a, x FROM t").position == 11
    assert failure('SELECT "A" FROM t').hint == 'The similarly named column "a" does exist.'


def test_parameters_take_the_type_of_their_context() -> None:
    from mzlite.repr import types as t

    found = planned("SELECT * FROM w WHERE i = $1 AND s LIKE $2 AND d > $3 AND $4")
    assert found.param_types == (t.INT8, t.TEXT, t.DATE, t.BOOL)
    assert planned("INSERT INTO w (n, arr) VALUES ($1, $2)").param_types == (t.NUMERIC, t.array_of(t.INT4))


def test_group_by_prefers_input_columns_and_order_by_output_names() -> None:
    # c is grouped, not the alias; ORDER BY takes the alias.
    assert error("SELECT a AS c FROM t GROUP BY c")[0] == "42803"
    ordered = select("SELECT -a AS b, b AS x FROM t ORDER BY b")
    assert ordered.finishing.order_by[0].column == ordered.finishing.project[0]
    assert types("SELECT a + 1 FROM t GROUP BY a + 1") == ["integer"]
    assert types("SELECT sum(a) AS s FROM t GROUP BY b % 2 HAVING count(*) > 1 ORDER BY max(c)") == ["bigint"]


def test_an_inner_name_shadows_an_outer_one() -> None:
    assert types("SELECT (SELECT s FROM (SELECT 1 AS s) AS x) FROM w") == ["integer"]
    assert types("WITH t AS (SELECT 'x' AS a) SELECT a FROM t") == ["text"]


def test_canonical_sql_is_fully_qualified() -> None:
    found = plan("CREATE VIEW x AS WITH u AS (SELECT a FROM t) SELECT u.a, k FROM u JOIN v ON true")
    assert isinstance(found, p.CreateViewPlan)
    assert found.create_sql == (
        "CREATE VIEW materialize.public.x AS WITH u AS (SELECT a FROM materialize.public.t) "
        "SELECT u.a, k FROM u JOIN materialize.public.v ON TRUE"
    )
    assert found.depends_on == ("u1", "u3")
    index = plan("CREATE INDEX ON t (b, a + 1)")
    assert isinstance(index, p.CreateIndexPlan)
    assert index.create_sql == "CREATE INDEX IN CLUSTER quickstart ON materialize.public.t (b, (a + 1))"
    assert index.base_name == "t_b_expr_idx"


def test_update_gives_old_and_new_columns() -> None:
    from mzlite.expr.typecheck import typ

    found = plan("UPDATE t SET b = a + 1, c = DEFAULT WHERE a > (SELECT max(a) FROM u)")
    assert isinstance(found, p.UpdatePlan)
    assert typ(found.mir).arity == 6
    assert error("UPDATE t SET x = 1")[0] == "42703"
    assert error("DELETE FROM t WHERE mz_now() > 5") == (
        "0A000",
        "calls to mz_now in write statements are not supported",
    )


@pytest.mark.parametrize(
    "sql",
    [
        "SHOW TABLES",
        "SHOW COLUMNS FROM t WHERE nullable",
        "SHOW INDEXES ON t",
        "SHOW CLUSTERS LIKE 'q%'",
        "SHOW CLUSTER REPLICAS",
        "SHOW SCHEMAS",
        "SHOW DATABASES",
        "SHOW OBJECTS",
        "SHOW MATERIALIZED VIEWS IN CLUSTER quickstart",
        "SELECT name FROM (SHOW VIEWS) WHERE name LIKE 'a%'",
    ],
)
def test_show_is_a_query(sql: str) -> None:
    assert select(sql).desc.names[0] in ("name", "cluster")


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("SUBSCRIBE t WITH (PROGRESS)", p.SubscribePlan),
        ("COPY t (b, a) FROM STDIN", p.CopyFromPlan),
        ("EXPLAIN RAW PLAN FOR SELECT a FROM t WHERE b IN (SELECT a FROM u) ORDER BY 1 LIMIT 3", p.ExplainPlan),
        ("EXPLAIN TIMESTAMP FOR SELECT 1", p.ExplainTimestampPlan),
        ("CREATE SCHEMA s", p.CreateSchemaPlan),
        ("CREATE CLUSTER c (SIZE 'scale=1,workers=1')", p.CreateClusterPlan),
        ("CREATE TYPE y AS LIST (ELEMENT TYPE = int4)", p.CreateTypePlan),
        ("DROP SCHEMA public CASCADE", p.DropNamedPlan),
        ("DROP TABLE IF EXISTS nothere", p.DropItemsPlan),
        ("ALTER TABLE t RENAME TO z", p.RenameItemPlan),
        ("COMMENT ON COLUMN t.b IS 'x'", p.CommentPlan),
        ("SET x = 1", p.SetVariablePlan),
        ("BEGIN READ ONLY", p.BeginPlan),
        ("PREPARE x AS SELECT $1::int", p.PreparePlan),
        ("EXECUTE prepared (1, 'a')", p.ExecutePlan),
        ("DECLARE c CURSOR FOR SELECT 1", p.DeclarePlan),
        ("FETCH 5 c", p.FetchPlan),
        ("DISCARD ALL", p.DiscardPlan),
        ("GRANT ALL ON TABLE t TO PUBLIC", p.NoopPlan),
    ],
)
def test_statement_kinds(sql: str, kind: type) -> None:
    assert type(plan(sql)) is kind
