"""Which plans survive which DDL."""

from __future__ import annotations

from dataclasses import replace

from adapter.catalog.objects import Schema
from adapter.catalog.state import CatalogTransaction
from adapter.coord.revisions import KEPT, Revisions
from tests.unit.catalog.test_state import fresh, index, table, view


def test_other_items_do_not_matter() -> None:
    tx = fresh()
    t = table(tx, "t")
    made_at = tx.state.revision
    revisions = Revisions()
    later = CatalogTransaction(tx.state)
    table(later, "elsewhere")
    revisions.record(later)
    reads = frozenset((t.id,))
    assert revisions.survives(made_at, later.state.revision, reads, "select * from t")
    assert not revisions.survives(made_at, later.state.revision, reads, "select * from t -- ELSEWHERE")


def test_an_index_on_what_is_read_and_its_drop_matter() -> None:
    tx = fresh()
    t, u = table(tx, "t"), table(tx, "u")
    revisions = Revisions()
    made = CatalogTransaction(tx.state)
    i = index(made, "i", t)
    revisions.record(made)
    assert not revisions.survives(tx.state.revision, made.state.revision, frozenset((t.id,)), "x")
    assert revisions.survives(tx.state.revision, made.state.revision, frozenset((u.id,)), "x")
    dropped = CatalogTransaction(made.state)
    dropped.remove_item(i.id)
    revisions.record(dropped)
    assert not revisions.survives(made.state.revision, dropped.state.revision, frozenset((t.id,)), "x")
    assert revisions.survives(made.state.revision, dropped.state.revision, frozenset((u.id,)), "x")


def test_schemas_and_renames_matter() -> None:
    tx = fresh()
    t = table(tx, "t")
    v = view(tx, "v", t)
    revisions = Revisions()
    renamed = CatalogTransaction(tx.state)
    renamed.put_item(replace(v, name="w"))
    revisions.record(renamed)
    assert not revisions.survives(tx.state.revision, renamed.state.revision, frozenset((v.id, t.id)), "x")
    assert not revisions.survives(tx.state.revision, renamed.state.revision, frozenset((t.id,)), "select * from w")
    schema = CatalogTransaction(renamed.state)
    schema.put_schema(Schema(schema.named_id("schema"), schema.oid(), "u1", "s", "u1"))
    revisions.record(schema)
    assert not revisions.survives(renamed.state.revision, schema.state.revision, frozenset((t.id,)), "x")


def test_what_is_too_old_to_judge_is_planned_again() -> None:
    tx = fresh()
    revisions = Revisions()
    state = tx.state
    for _ in range(KEPT + 5):
        later = CatalogTransaction(state)
        revisions.record(later)
        state = later.state
    assert not revisions.survives(tx.state.revision, state.revision, frozenset(), "x")
    assert revisions.survives(state.revision - 3, state.revision, frozenset(), "x")
