"""A catalog to plan against: three tables of integers, one of other types, and the builtin relations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adapter.catalog.initial import new_database, system_objects
from adapter.catalog.state import CatalogState, CatalogTransaction
from adapter.catalog.view import StateView
from adapter.sql import plans as p
from adapter.sql.parse import parse_statements
from adapter.sql.plan import Planned, plan_statement
from mzlite.repr import types as t
from mzlite.repr.errors import SqlError
from mzlite.repr.ids import GlobalId
from mzlite.repr.types import ColumnType, RelationDesc, RelationType, ScalarType
from tests.support.sql_planner import DefaultSession, Tables


def desc(**columns: ScalarType) -> RelationDesc:
    return RelationDesc(tuple(columns), RelationType(tuple(ColumnType(typ) for typ in columns.values())))


TABLES = {
    "t": desc(a=t.INT4, b=t.INT4, c=t.INT4),
    "u": desc(a=t.INT4, b=t.INT4),
    "v": desc(k=t.INT4, a=t.INT4),
    "w": desc(
        i=t.INT8,
        s=t.TEXT,
        n=t.NUMERIC,
        f=t.FLOAT8,
        d=t.DATE,
        ts=t.TIMESTAMP,
        j=t.JSONB,
        arr=t.array_of(t.INT4),
        l=t.list_of(t.TEXT),
    ),
}


class Catalog:
    """The tables over the builtins of a new environment."""

    def __init__(self) -> None:
        tx = CatalogTransaction(CatalogState())
        system_objects(tx)
        new_database(tx, "scale=1,workers=1", False)
        self._base = StateView(tx.state)
        self._tables = Tables({name: (GlobalId(f"u{i}"), d) for i, (name, d) in enumerate(TABLES.items(), 1)})

    def resolve_item(self, parts: tuple[str, ...], database: str, search_path: Sequence[str]) -> Any:
        if parts[-1] in TABLES and parts[:-1] in ((), ("public",), ("materialize", "public")):
            return self._tables.resolve_item(parts, database, search_path)
        return self._base.resolve_item(parts, database, search_path)

    def get_item(self, id: GlobalId) -> Any:
        return self._tables.get_item(id) if id.startswith("u") else self._base.get_item(id)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._base, name)


CATALOG = Catalog()


class Session(DefaultSession):
    def prepared_parameters(self, name: str) -> Any:
        return (t.INT4, t.TEXT) if name == "prepared" else None


def planned(sql: str) -> Planned:
    (statement,) = parse_statements(sql)
    return plan_statement(statement, CATALOG, Session())


def plan(sql: str) -> p.Plan:
    return planned(sql).plan


def select(sql: str) -> p.SelectPlan:
    found = plan(sql)
    assert isinstance(found, p.SelectPlan)
    return found


def types(sql: str) -> list[str]:
    """Display names of a query's columns."""
    from mzlite.repr.typenames import type_name

    return [type_name(c.scalar) for c in select(sql).desc.typ.columns]


def error(sql: str) -> tuple[str, str]:
    """(SQLSTATE, message) of a statement that cannot be planned."""
    found = failure(sql)
    return found.sqlstate, found.message


def failure(sql: str) -> SqlError:
    try:
        plan(sql)
    except SqlError as e:
        return e
    raise AssertionError(f"no error: {sql}")
