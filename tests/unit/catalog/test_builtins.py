"""Builtin relations: rows fit their descriptions, and agree with each other."""

from __future__ import annotations

import pytest

from adapter.catalog.builtin.introspection import log_indexes
from adapter.catalog.builtin.relation import BUILTIN_NAMES, BUILTINS, Context, is_local
from adapter.catalog.builtin.rows import BuiltinRows
from adapter.catalog.state import CatalogState
from mzlite.repr.datum import column_to_datums
from mzlite.repr.ids import GlobalId
from tests.unit.catalog.test_state import fresh, index, table, view


def populated() -> CatalogState:
    tx = fresh()
    t = table(tx, "t")
    view(tx, "v", t)
    index(tx, "t_idx", t)
    return tx.state


LOCAL = [id for id in BUILTINS if is_local(id)]


@pytest.mark.parametrize("id", LOCAL)
def test_rows_fit_the_description(id: GlobalId) -> None:
    builtin = BUILTINS[id]
    columns, n = BuiltinRows().columns(id, populated(), "materialize", None)
    assert len(columns) == len(builtin.desc.names)
    for name, typ, column in zip(builtin.desc.names, builtin.desc.typ.columns, columns):
        assert len(column) == n
        assert column.layout is typ.scalar.layout
        datums = column_to_datums(typ.scalar, column)
        assert typ.nullable or None not in datums, name


def read(name: str, state: CatalogState, database: str = "materialize") -> list[dict[str, object]]:
    schema, _, bare = name.partition(".")
    builtin = BUILTINS[BUILTIN_NAMES[(schema, bare)]]
    return [dict(zip(builtin.desc.names, row)) for row in builtin.rows(Context(state, database))]


def test_every_column_belongs_to_a_relation() -> None:
    state = populated()
    relations = {r["id"] for r in read("mz_catalog.mz_relations", state)}
    assert {c["id"] for c in read("mz_catalog.mz_columns", state)} == relations


def test_oids_are_unique() -> None:
    state = populated()
    oids = [r["oid"] for r in read("mz_catalog.mz_objects", state)]
    assert len(oids) == len(set(oids))


def test_pg_class_shows_only_the_session_database() -> None:
    state = populated()
    assert "t" in {r["relname"] for r in read("pg_catalog.pg_class", state)}
    assert "t" not in {r["relname"] for r in read("pg_catalog.pg_class", state, "other")}
    assert "pg_class" in {r["relname"] for r in read("pg_catalog.pg_class", state, "other")}


def test_an_index_is_listed_with_its_key_and_marks_its_table() -> None:
    state = populated()
    (entry,) = read("pg_catalog.pg_index", state)
    assert entry["indkey"] == (1,)
    t = next(r for r in read("pg_catalog.pg_class", state) if r["relname"] == "t")
    assert t["relhasindex"] and t["oid"] == entry["indrelid"]


def test_array_types_name_their_elements() -> None:
    rows = {r["oid"]: r for r in read("pg_catalog.pg_type", populated())}
    assert rows[1007]["typelem"] == 23 and rows[23]["typarray"] == 1007
    assert rows[1007]["typname"] == "_int4"


def test_rows_are_remembered_for_a_revision() -> None:
    rows, state = BuiltinRows(), populated()
    id = BUILTIN_NAMES[("mz_catalog", "mz_columns")]
    first = rows.columns(id, state, "materialize", None)
    assert rows.columns(id, state, "materialize", None) is first
    later = state.copy()
    later.revision += 1
    assert rows.columns(id, later, "materialize", None) is not first


def test_log_index_ids_differ_between_clusters() -> None:
    ids = [*log_indexes("u1").values(), *log_indexes("u2").values(), *log_indexes("s1").values()]
    assert len(ids) == len(set(ids))
