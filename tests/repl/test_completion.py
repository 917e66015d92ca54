"""What is offered where the cursor stands (marked with ‸), and that asking the server never holds up the person."""

from __future__ import annotations

import threading

import psycopg
import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from mzlite.repl.catalog import ColumnInfo, Relation
from mzlite.repl.completion import Names, NamesCache, SqlCompleter, reader_for
from mzlite.repl.scope import locate

NAMES = Names(
    relations=(
        Relation("public", "customers", "table"),
        Relation("public", "orders", "table"),
        Relation("public", "order_totals", "materialized view"),
        Relation("public", "Odd Name", "view"),
        Relation("archive", "orders_2020", "table"),
        Relation("public", "orders_idx", "index", on="orders"),
    ),
    columns={
        ("public", "customers"): [ColumnInfo("id", "integer"), ColumnInfo("email", "text")],
        ("public", "orders"): [ColumnInfo("order_id", "integer"), ColumnInfo("customer_id", "integer")],
        ("public", "order_totals"): [ColumnInfo("total", "numeric")],
        ("archive", "orders_2020"): [ColumnInfo("old_id", "integer")],
    },
    schemas=("archive", "public"),
    search_path=("public",),
    databases=("materialize",),
    clusters=("quickstart", "reporting"),
)


def offered(marked: str) -> list[str]:
    position = marked.index("‸")
    document = Document(marked.replace("‸", ""), position)
    event = CompleteEvent(completion_requested=True)
    return [completion.text for completion in SqlCompleter(lambda: NAMES).get_completions(document, event)]


@pytest.mark.parametrize(
    ("marked", "first"),
    [
        ("sel‸", "select"),
        ("SEL‸", "SELECT"),
        ("select * from cust‸", "customers"),
        ("select * from archive.‸", "orders_2020"),
        ("select c.e‸ from customers c", "email"),
        ("select ema‸ from customers", "email"),
        ("select * from customers c join orders o on c.id = o.cu‸", "customer_id"),
        ("select customers.‸ from customers", "id"),
        ("insert into orders (order_id, cu‸", "customer_id"),
        ("select * from orders where customer_id in (select i‸ from customers)", "id"),
        ("select * from customers c where exists (select 1 from orders o where o.customer_id = c.‸)", "id"),
        ("with big as (select 1) select * from bi‸", "big"),
        ("select 1; select * from order_t‸", "order_totals"),
        ("subscribe to cus‸", "customers"),
        ("drop materialized view ord‸", "order_totals"),
        ("show create materialized view ‸", "order_totals"),
        ("create materialized view v in cluster rep‸", "reporting"),
        ("set cluster = q‸", "quickstart"),
        ("show columns from ord‸", "orders"),
        ("show tables from arch‸", "archive"),
        ("show mat‸", "materialized views"),
        ("create index on orders (cust‸", "customer_id"),
        ("select 1::int‸", "int"),
        ("update orders set cust‸", "customer_id"),
        ("delete from orders where order‸", "order_id"),
        ('select * from "Odd‸', '"Odd Name"'),
        ("\\d ord‸", "orders"),
        ("\\tim‸", "timing"),
        ("\\h create mat‸", "create materialized view"),
    ],
)
def test_the_likeliest_comes_first(marked: str, first: str) -> None:
    assert offered(marked)[:1] == [first]


def test_a_part_of_the_name_is_enough_but_ranks_after() -> None:
    assert offered("select * from tot‸") == ["order_totals"]


def test_nothing_in_strings_and_comments() -> None:
    assert offered("select 'cust‸'") == []
    assert offered("select 1 -- cust‸") == []
    assert offered("select $$ sel‸ $$") == []


def test_while_typing_only_a_name_begun_is_completed() -> None:
    typing = CompleteEvent(text_inserted=True)
    completer = SqlCompleter(lambda: NAMES)
    assert list(completer.get_completions(Document("select "), typing)) == []
    assert list(completer.get_completions(Document("sel"), typing)) != []


def test_the_scope_of_a_nested_query_ends_with_it() -> None:
    cursor = locate("select  from (select 1 from inner_t) x, outer_t y", len("select "))
    assert [(source.alias, source.name) for source in cursor.sources] == [("x", ""), ("y", "outer_t")]


def test_keywords_follow_the_case_of_what_is_typed() -> None:
    assert "where" in offered("select * from orders wh‸")
    assert "WHERE" in offered("select * from orders WH‸")


def test_refreshing_never_waits_and_requests_meanwhile_are_served_together() -> None:
    gate, reads = threading.Event(), []

    def read() -> Names:
        reads.append(1)
        assert gate.wait(20)
        return NAMES

    cache = NamesCache(read)
    for _ in range(10):
        cache.refresh()  # returns although the read is stuck
    assert cache.names.relations == ()
    gate.set()
    assert cache.wait(20)
    assert cache.names is NAMES
    assert len(reads) <= 3
    cache.stop()


def test_a_lost_server_leaves_the_last_names() -> None:
    answers = [NAMES]

    def read() -> Names:
        if not answers:
            raise psycopg.OperationalError("gone")
        return answers.pop()

    cache = NamesCache(read)
    cache.refresh()
    assert cache.wait(20)
    cache.refresh()
    assert cache.wait(20)
    assert cache.names is NAMES
    cache.stop()


def test_names_come_from_the_server_and_follow_ddl(postgres_dsn: str) -> None:
    cache = NamesCache(reader_for(lambda: postgres_dsn))
    cache.refresh()
    assert cache.wait(30)
    assert all(relation.name != "fresh" for relation in cache.names.relations)
    with psycopg.connect(postgres_dsn) as conn:
        conn.execute("create table fresh (a_column int)")
    cache.refresh()
    assert cache.wait(30)
    names = cache.names
    assert Relation("public", "fresh", "table", owner="postgres") in names.relations
    assert names.columns["public", "fresh"] == [ColumnInfo("a_column", "integer")]
    assert "generate_series" in names.functions
    cache.stop()
