"""`\\d` and its family on a server that answers SHOW, here one that is made of canned answers."""

from __future__ import annotations

import io

import psycopg
import pytest

from mzlite.repl import commands
from mzlite.repl.catalog import open_catalog, parse_array
from mzlite.repl.catalog_materialize import MaterializeCatalog
from mzlite.repl.catalog_postgres import PostgresCatalog
from mzlite.repl.client import Client, ResultColumn, Table
from mzlite.repl.patterns import parse_pattern
from mzlite.repl.script import Meta, Script
from mzlite.repl.shell import Shell


def answer(columns: str, *rows: tuple[str | None, ...]) -> Table:
    return Table(tuple(ResultColumn(name) for name in columns.split()), list(rows))


ANSWERS = {
    "SELECT version()": answer("version", ("PostgreSQL 9.5.0 (mzlite 0.1.0)",)),
    "SELECT current_schema()": answer("current_schema", ("public",)),
    "SHOW SCHEMAS": answer("name comment", ("public", ""), ("archive", ""), ("mz_catalog", "")),
    'SHOW TABLES FROM "public"': answer("name comment", ("orders", "what was sold"), ("Odd", "")),
    'SHOW TABLES FROM "archive"': answer("name comment", ("orders_2020", "")),
    'SHOW VIEWS FROM "public"': answer("name comment", ("big_orders", "")),
    'SHOW MATERIALIZED VIEWS FROM "public"': answer("name cluster comment", ("totals", "quickstart", "")),
    'SHOW INDEXES FROM "public"': answer(
        "name on cluster key comment", ("orders_idx", "orders", "quickstart", '{id,"upper(note)"}', "")
    ),
    'SHOW COLUMNS FROM "public"."orders"': answer(
        "name nullable type comment", ("id", "f", "integer", ""), ("note", "t", "text", "free text")
    ),
    'SHOW INDEXES ON "public"."orders"': answer(
        "name on cluster key comment", ("orders_idx", "orders", "quickstart", '{id,"upper(note)"}', "")
    ),
    'SHOW COLUMNS FROM "public"."totals"': answer("name nullable type comment", ("total", "t", "numeric", "")),
    'SHOW INDEXES ON "public"."totals"': answer("name on cluster key comment"),
    'SHOW CREATE MATERIALIZED VIEW "public"."totals"': answer(
        "name create_sql", ("materialize.public.totals", "CREATE MATERIALIZED VIEW totals AS SELECT 1;")
    ),
    "SHOW CLUSTERS": answer("name replicas comment", ("quickstart", "r1 (scale=1,workers=1)", None)),
    "SHOW DATABASES": answer("name comment", ("materialize", "")),
}


class CannedClient(Client):
    """Knows its questions by heart and refuses the others as a server does."""

    def __init__(self) -> None:
        super().__init__("")

    @property
    def is_connected(self) -> bool:
        return True

    def parameter(self, name: str) -> str | None:
        return None

    def query(self, sql: str) -> Table:
        try:
            return ANSWERS[sql]
        except KeyError:
            raise psycopg.errors.FeatureNotSupported(f"not supported: {sql}") from None


@pytest.fixture
def shell() -> Shell:
    shell = Shell("", out=io.StringIO(), err=io.StringIO())
    shell.client = CannedClient()
    return shell


def say(shell: Shell, name: str, args: str = "") -> str:
    commands.dispatch(shell, Meta(name, args), Script([]))
    out, err = shell.output.stream, shell.output.err
    assert isinstance(out, io.StringIO) and isinstance(err, io.StringIO)
    text = out.getvalue() + err.getvalue()
    for stream in (out, err):
        stream.seek(0)
        stream.truncate()
    return text


def test_the_server_is_known_by_its_version() -> None:
    assert isinstance(open_catalog(CannedClient().query, None), MaterializeCatalog)
    other = answer("version", ("PostgreSQL 15.1 on x86_64",))
    assert isinstance(open_catalog(lambda sql: other, None), PostgresCatalog)
    assert isinstance(open_catalog(lambda sql: other, "v0.130.0"), MaterializeCatalog)


def test_the_list_of_relations(shell: Shell) -> None:
    assert say(shell, "d") == (
        "                  List of relations\n"
        " Schema |    Name    |       Type        |  Cluster   \n"
        "--------+------------+-------------------+------------\n"
        " public | Odd        | table             | \n"
        " public | big_orders | view              | \n"
        " public | orders     | table             | \n"
        " public | totals     | materialized view | quickstart\n"
        "(4 rows)\n\n"
    )


def test_lists_by_kind_and_pattern(shell: Shell) -> None:
    assert "orders_2020" in say(shell, "dt", "archive.*")
    assert "totals" in say(shell, "dm") and "totals" not in say(shell, "dv")
    listed = say(shell, "dtv", "*orders")
    assert " orders " in listed and " big_orders " in listed and "Odd" not in listed
    assert "orders_idx | index | orders | quickstart" in say(shell, "di")
    assert "what was sold" in say(shell, "dt+")
    assert say(shell, "dt", "none*") == 'Did not find any relation named "none*".\n'


def test_a_table_described(shell: Shell) -> None:
    assert say(shell, "d+", "orders") == (
        '          Table "public.orders"\n'
        " Column |  Type   | Nullable |  Comment  \n"
        "--------+---------+----------+-----------\n"
        " id     | integer | not null | \n"
        " note   | text    |          | free text\n"
        "Comment: what was sold\n"
        "Indexes:\n"
        "    \"orders_idx\" (id, upper(note)) in cluster 'quickstart'\n\n"
    )


def test_a_materialized_view_described(shell: Shell) -> None:
    text = say(shell, "d+", "totals")
    assert text.lstrip().startswith('Materialized view "public.totals"\n')
    assert 'In cluster: "quickstart"\n' in text
    assert "View definition:\nCREATE MATERIALIZED VIEW totals AS SELECT 1;\n" in text
    assert say(shell, "sv", "totals") == "CREATE MATERIALIZED VIEW totals AS SELECT 1;\n"


def test_an_index_described(shell: Shell) -> None:
    assert say(shell, "d", "orders_idx") == (
        'Index "public.orders_idx"\n'
        "   Column    |  Type   \n"
        "-------------+---------\n"
        " id          | integer\n"
        " upper(note) | \n"
        'index on "orders" in cluster "quickstart"\n\n'
    )


def test_schemas_databases_clusters(shell: Shell) -> None:
    assert "mz_catalog" not in say(shell, "dn") and "mz_catalog" in say(shell, "dnS")
    assert "materialize" in say(shell, "l")
    assert "r1 (scale=1,workers=1)" in say(shell, "dC", "quick*")


def test_arrays_as_text() -> None:
    assert parse_array('{a,"b c","d\\"e"}') == ["a", "b c", 'd"e']
    assert parse_array("{}") == []


def test_patterns() -> None:
    pattern = parse_pattern("Pub?ic.Ord*")
    assert pattern.schema is not None and pattern.schema.match("public")
    assert pattern.name.match("orders") and not pattern.name.match("big_orders")
    assert parse_pattern('"A.b*"').name.match("A.b*") and not parse_pattern('"A.b*"').name.match("A.bc")
    assert parse_pattern("materialize.public.t").schema is not None
    assert not parse_pattern("a.b").name.match("bc")
