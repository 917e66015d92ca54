"""Catalog transactions: derived tables stay in step, the base never changes, durable records bring everything back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapter.catalog.durable import encode_changes, load_into
from adapter.catalog.initial import new_database, parse_workers, system_objects
from adapter.catalog.objects import CommentKey, IndexDetails, Item, ItemKind, TableDetails, ViewDetails
from adapter.catalog.state import CatalogState, CatalogTransaction
from adapter.catalog.view import StateView
from mzlite.expr.relation import Get
from mzlite.expr.scalar import Ref
from mzlite.repr.ids import GlobalId, user
from mzlite.repr.types import INT4, ColumnType, RelationDesc, RelationType

DESC = RelationDesc(("a",), RelationType((ColumnType(INT4),)))
PUBLIC = "u3"


def fresh() -> CatalogTransaction:
    tx = CatalogTransaction(CatalogState())
    system_objects(tx)
    new_database(tx, "scale=1,workers=1", True)
    return tx


def table(tx: CatalogTransaction, name: str) -> Item:
    id = tx.item_id()
    item = Item(
        id, tx.oid(), PUBLIC, name, "table", f"CREATE TABLE {name}", "u1", (), TableDetails(DESC, (None,), f"s-{id}")
    )
    tx.put_item(item)
    return item


def view(tx: CatalogTransaction, name: str, on: Item, kind: ItemKind = "view") -> Item:
    get = Get(on.id, DESC.typ)
    item = Item(tx.item_id(), tx.oid(), PUBLIC, name, kind, "", "u1", (on.id,), ViewDetails(DESC, get, get))
    tx.put_item(item)
    return item


def index(tx: CatalogTransaction, name: str, on: Item) -> Item:
    details = IndexDetails(on.id, (Ref(0),), "u1")
    item = Item(tx.item_id(), tx.oid(), PUBLIC, name, "index", "", "u1", (on.id,), details)
    tx.put_item(item)
    return item


def test_a_transaction_leaves_its_base_alone() -> None:
    base = fresh().state
    tx = CatalogTransaction(base)
    item = table(tx, "t")
    assert item.id == user(1)
    assert item.id in tx.state.items and item.id not in base.items
    assert tx.state.revision == base.revision + 1


def test_dependents_come_most_dependent_first() -> None:
    tx = fresh()
    t = table(tx, "t")
    v = view(tx, "v", t)
    w = view(tx, "w", v)
    i = index(tx, "i", w)
    assert tx.state.dependents([t.id]) == [i.id, w.id, v.id]
    assert [x.id for x in tx.state.indexes_on(w.id, "u1")] == [i.id]
    assert list(tx.state.indexes_on(w.id, "u2")) == []


def test_removing_takes_names_edges_and_comments_along() -> None:
    tx = fresh()
    t = table(tx, "t")
    i = index(tx, "i", t)
    tx.set_comment(CommentKey("table", str(t.id)), "hello")
    tx.remove_item(i.id)
    tx.remove_item(t.id)
    assert tx.state.item_in(PUBLIC, "t") is None
    assert not tx.state.used_by and not tx.state.indexes and not tx.state.comments
    assert table(tx, "t").id not in (t.id, i.id)


def test_an_item_in_use_cannot_go() -> None:
    tx = fresh()
    t = table(tx, "t")
    view(tx, "v", t)
    with pytest.raises(AssertionError):
        tx.remove_item(t.id)


def test_renaming_frees_the_old_name() -> None:
    tx = fresh()
    t = table(tx, "t")
    tx.put_item(replace(t, name="u"))
    assert tx.state.item_in(PUBLIC, "t") is None
    found = tx.state.item_in(PUBLIC, "u")
    assert found is not None and found.id == t.id


def test_swapped_schemas_keep_their_items() -> None:
    from adapter.catalog.objects import Schema

    tx = fresh()
    blue = Schema(tx.named_id("schema"), tx.oid(), "u1", "blue", "u1")
    green = Schema(tx.named_id("schema"), tx.oid(), "u1", "green", "u1")
    tx.put_schema(blue)
    tx.put_schema(green)
    tx.swap_schemas(blue, green)
    assert (blue.id, green.id) == ("u9", "u10")
    found = tx.state.schema("materialize", "blue")
    assert found is not None and found.id == green.id


def test_durable_records_bring_the_catalog_back() -> None:
    tx = fresh()
    t = table(tx, "t")
    tx.set_comment(CommentKey("table", str(t.id), 1), "a column")
    tx.set_system_var("max_tables", "7")
    pairs = {k: v for k, v in encode_changes(tx.changes).items() if v is not None}
    again = CatalogTransaction(CatalogState())
    system_objects(again)
    records = load_into(again, pairs)
    assert [(r.id, r.name, r.shard) for r in records] == [(t.id, "t", "s-u1")]
    assert again.state.databases == tx.state.databases
    assert again.state.schemas == tx.state.schemas
    assert again.state.clusters == tx.state.clusters
    assert again.state.comments == tx.state.comments
    assert again.state.system_vars == {"max_tables": "7"}
    assert again.item_id() == user(2)


def test_temporary_items_are_not_recorded() -> None:
    tx = fresh()
    tx.changes.clear()
    get = Get(user(1), DESC.typ)
    tx.put_item(
        Item(tx.item_id(), tx.oid(), "temp5", "v", "view", "", "u1", (), ViewDetails(DESC, get, get), conn_id=5)
    )
    assert not any(k.startswith("item/") for k in tx.changes)


def test_names_resolve_along_the_search_path() -> None:
    tx = fresh()
    t = table(tx, "t")
    names = StateView(tx.state)
    found = names.resolve_item(("t",), "materialize", ("nowhere", "public"))
    assert found is not None and found.id == t.id and str(found.name) == "materialize.public.t"
    assert names.resolve_item(("t",), "materialize", ("nowhere",)) is None
    assert names.resolve_item(("public", "t"), "other", ()) is None
    assert names.resolve_item(("materialize", "public", "t"), "other", ()) is not None


def test_builtins_resolve_from_every_database_and_hide_behind_nothing() -> None:
    tx = fresh()
    table(tx, "mz_tables")
    found = StateView(tx.state).resolve_item(("mz_tables",), "materialize", ("public",))
    assert found is not None and found.name.schema == "mz_catalog"
    assert StateView(tx.state).resolve_item(("pg_catalog", "pg_class"), "nowhere", ()) is not None


def test_a_temporary_item_comes_first_and_only_for_its_session() -> None:
    tx = fresh()
    t = table(tx, "t")
    get = Get(t.id, DESC.typ)
    item = Item(tx.item_id(), tx.oid(), "temp5", "t", "view", "", "u1", (), ViewDetails(DESC, get, get), conn_id=5)
    tx.put_item(item)
    mine = StateView(tx.state, 5).resolve_item(("t",), "materialize", ("public",))
    theirs = StateView(tx.state).resolve_item(("t",), "materialize", ("public",))
    assert mine is not None and mine.id == item.id
    assert theirs is not None and theirs.id == t.id


@pytest.mark.parametrize(
    ("size", "workers"),
    [("scale=1,workers=4", 4), ("scale=2,workers=2", 4), ("3", 3), ("25cc", None), ("workers=0", None), ("", None)],
)
def test_sizes(size: str, workers: int | None) -> None:
    assert parse_workers(size) == workers


def test_user_ids_are_plain_numbers() -> None:
    assert GlobalId("u1") == user(1)
