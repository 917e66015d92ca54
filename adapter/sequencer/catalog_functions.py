"""Functions that look something up in the catalog: pg_get_viewdef(oid), obj_description(oid, …), pg_get_userbyid(oid).

They have no kernel of their own to ask the catalog with, so before a plan is optimized each call becomes a choice over
what the catalog holds now:

    pg_get_userbyid(#3)   ->   case when #3 = 16651 then 'mz_system' when #3 = 20000 then 'materialize' … else <the call>
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from adapter.catalog.builtin.relation import BUILTINS
from adapter.catalog.builtin.texts import create_sql, definition
from adapter.catalog.state import CatalogState
from adapter.catalog.view import StateView
from adapter.sequencer.scalars import map_scalars, scalars_of
from mzlite.expr import relation as r
from mzlite.expr.functions import FUNCTIONS
from mzlite.expr.scalar import Call, If, Literal, Scalar, rewrite, walk
from mzlite.repr.datum import encode_datum
from mzlite.repr.types import BOOL, INT4, OID, TEXT

Pairs = Iterable[tuple[int, str]]


def _users(state: CatalogState) -> Pairs:
    return [(role.oid, role.name) for role in state.roles.values()]


def _views(state: CatalogState) -> Pairs:
    return [(i.oid, definition(state, i.id)) for i in state.items.values() if i.kind in ("view", "materialized-view")]


def _indexes(state: CatalogState) -> Pairs:
    return [(i.oid, create_sql(state, i.id) or "") for i in state.items.values() if i.kind == "index"]


def _comments(state: CatalogState) -> Pairs:
    oids: dict[str, int] = {str(i.id): i.oid for i in state.items.values()}
    oids.update({s.id: s.oid for s in state.schemas.values()})
    return [(oids[k.object_id], t) for k, t in state.comments.items() if k.column is None and k.object_id in oids]


def _column_comments(state: CatalogState) -> list[tuple[int, int, str]]:
    oids = {str(i.id): i.oid for i in state.items.values()}
    return [
        (oids[k.object_id], k.column, t)
        for k, t in state.comments.items()
        if k.column is not None and k.object_id in oids
    ]


_BY_OID: dict[str, Callable[[CatalogState], Pairs]] = {
    "pg_get_userbyid": _users,
    "pg_get_viewdef": _views,
    "pg_get_indexdef": _indexes,
    "obj_description": _comments,
}
_NAMES = frozenset((*_BY_OID, "col_description", "mz_global_id_to_name", "pg_table_is_visible"))


def bind_catalog_functions(e: r.Mir, state: CatalogState, database: str, search_path: Sequence[str]) -> r.Mir:
    """e with catalog look-ups as choices; e itself when it has none. database, search_path: of the session."""
    if not any(_is_lookup(s) for node in r.walk(e) for scalar in scalars_of(node) for s in walk(scalar)):
        return e

    def visit(s: Scalar) -> Scalar:
        return _choice(s, state, database, search_path) if _is_lookup(s) else s

    return r.rewrite(e, lambda node: map_scalars(node, lambda s: rewrite(s, visit)))


def _is_lookup(s: Scalar) -> bool:
    return isinstance(s, Call) and FUNCTIONS[s.func].name in _NAMES


def _choice(call: Scalar, state: CatalogState, database: str, search_path: Sequence[str]) -> Scalar:
    assert isinstance(call, Call)
    name = FUNCTIONS[call.func].name
    result: Scalar = call
    first = call.args[0]
    first_type = FUNCTIONS[call.func].params[0]
    if name == "mz_global_id_to_name":
        names = StateView(state)
        for id in (*state.items, *BUILTINS):
            result = If(_equals_text(first, str(id)), _text(str(names.object_name(id))), result)
        return result
    if first_type.kind != "oid":
        return call
    if name == "pg_table_is_visible":
        oids = sorted(_visible(state, database, search_path))
        return Call("or", tuple(_equals_oid(first, oid) for oid in oids), BOOL) if oids else _false()
    if name == "col_description":
        for oid, column, text in _column_comments(state):
            condition = Call("and", (_equals_oid(first, oid), _equals_int(call.args[1], column)), BOOL)
            result = If(condition, _text(text), result)
        return result
    for oid, text in _BY_OID[name](state):
        result = If(_equals_oid(first, oid), _text(text), result)
    return result


def _visible(state: CatalogState, database: str, search_path: Sequence[str]) -> set[int]:
    """Relations that an unqualified name finds. Of the system's, only pg_catalog's: a listing is of what a user made."""
    found = {b.oid for b in BUILTINS.values() if b.schema == "pg_catalog"}
    taken: set[str] = set()
    for name in search_path:
        schema = state.schema(database, name)
        if schema is None:
            continue
        for item in state.items_in_schema(schema.id):
            if item.name not in taken:
                taken.add(item.name)
                found.add(item.oid)
    return found


def _false() -> Literal:
    return Literal(encode_datum(BOOL, False), BOOL)


def _text(value: str) -> Literal:
    return Literal(encode_datum(TEXT, value), TEXT)


def _equals_oid(e: Scalar, oid: int) -> Scalar:
    return Call("eq_oid", (e, Literal(encode_datum(OID, oid), OID)), BOOL)


def _equals_int(e: Scalar, n: int) -> Scalar:
    return Call("eq_int4", (e, Literal(encode_datum(INT4, n), INT4)), BOOL)


def _equals_text(e: Scalar, text: str) -> Scalar:
    return Call("eq_text", (e, _text(text)), BOOL)
