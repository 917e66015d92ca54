"""Look-ups in the catalog become choices before a plan is optimized."""

from __future__ import annotations

from adapter.catalog.objects import CommentKey
from adapter.catalog.state import CatalogState
from adapter.sequencer.catalog_functions import bind_catalog_functions
from adapter.sequencer.ddl_alter import renamed
from adapter.sequencer.interpret import Budget, interpret
from adapter.sequencer.scalars import scalars_of
from mzlite.expr import relation as r
from mzlite.expr.functions import FUNCTIONS
from mzlite.expr.scalar import Call, Ref
from mzlite.repr.datum import column_to_datums
from mzlite.repr.ids import user
from mzlite.repr.types import BOOL, OID, TEXT, ColumnType, RelationType, ScalarType
from mzlite.repr.updates import updates_from_rows
from tests.unit.catalog.test_state import fresh, table

OIDS = RelationType((ColumnType(OID, False),))


def answer(name: str, typ: ScalarType, state: CatalogState, oids: list[int]) -> list[object]:
    entry = next(f for f in FUNCTIONS.by_name(name) if [p.kind for p in f.params] == ["oid"])
    plan = r.Map(r.Get(user(99), OIDS), (Call(entry.id, (Ref(0),), typ),))
    bound = bind_catalog_functions(plan, state, "materialize", ("public",))
    rows = interpret(bound, lambda id: updates_from_rows([OID], [(o,) for o in oids], 0), Budget())
    values = dict(zip(column_to_datums(OID, rows.columns[0]), column_to_datums(typ, rows.columns[1])))
    return [values[o] for o in oids]


def test_names_comments_and_visibility_by_oid() -> None:
    tx = fresh()
    t = table(tx, "t")
    tx.set_comment(CommentKey("table", str(t.id)), "a table")
    role = tx.state.role("materialize")
    assert role is not None
    assert answer("pg_get_userbyid", TEXT, tx.state, [role.oid, 1]) == ["materialize", "unknown (OID=1)"]
    assert answer("obj_description", TEXT, tx.state, [t.oid, 1]) == ["a table", None]
    assert answer("pg_table_is_visible", BOOL, tx.state, [t.oid, 1]) == [True, False]


def test_a_plan_without_look_ups_is_left_alone() -> None:
    plan = r.Filter(r.Get(user(1), OIDS), ())
    assert bind_catalog_functions(plan, fresh().state, "materialize", ()) is plan
    assert list(scalars_of(plan)) == []


def test_renaming_rewrites_qualified_names_and_nothing_else() -> None:
    sql = "CREATE VIEW d.s.v AS SELECT 'd.s.t', t.a FROM d.s.t AS t, d.s.t2, d.s.\"T\""
    assert renamed(sql, ("d", "s", "t"), ("d", "s", "u")) == (
        "CREATE VIEW d.s.v AS SELECT 'd.s.t', t.a FROM d.s.u AS t, d.s.t2, d.s.\"T\""
    )
    assert renamed("SELECT * FROM d.s.t", ("d", "s"), ("d", "My S")) == 'SELECT * FROM d."My S".t'
