"""SQL to MIR without a database: a catalog of a few tables, and a session with default settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adapter.sql.catalog_view import QualifiedName, SchemaRef
from adapter.sql.lower import lower_relation
from adapter.sql.parse import parse_statements
from adapter.sql.plan.context import PlanContext
from adapter.sql.plan.query import PlannedQuery, plan_query
from mzlite.expr import relation as r
from mzlite.repr.ids import GlobalId
from mzlite.repr.types import RelationDesc


@dataclass(frozen=True)
class Table:
    id: GlobalId
    name: QualifiedName
    desc: RelationDesc
    oid: int = 20_000
    kind: str = "table"
    create_sql: str = ""
    cluster: None = None
    defaults: tuple[None, ...] = ()
    scalar: None = None
    index_on: None = None
    index_key: tuple[()] = ()


class Tables:
    """`CatalogView` of tables alone; they are in materialize.public."""

    def __init__(self, tables: Mapping[str, tuple[GlobalId, RelationDesc]]) -> None:
        self._items = {
            name: Table(id, QualifiedName("materialize", "public", name), desc) for name, (id, desc) in tables.items()
        }

    def resolve_item(self, parts: tuple[str, ...], database: str, search_path: Sequence[str]) -> Table | None:
        return self._items.get(parts[-1])

    def resolve_type_item(self, parts: tuple[str, ...], database: str, search_path: Sequence[str]) -> None:
        return None

    def resolve_schema(self, parts: tuple[str, ...], database: str) -> SchemaRef | None:
        return SchemaRef("materialize", "public") if parts == ("public",) else None

    def resolve_database(self, name: str) -> str | None:
        return name if name == "materialize" else None

    def resolve_cluster(self, name: str) -> None:
        return None

    def resolve_role(self, name: str) -> None:
        return None

    def get_item(self, id: GlobalId) -> Table:
        return next(t for t in self._items.values() if t.id == id)

    def indexes_on(self, id: GlobalId) -> Sequence[Table]:
        return ()

    def object_name(self, id: GlobalId) -> QualifiedName:
        return self.get_item(id).name


class DefaultSession:
    database = "materialize"
    search_path = ("public",)
    cluster = "quickstart"
    user = "materialize"

    def variable(self, name: str) -> str | None:
        return None

    def prepared_parameters(self, name: str) -> None:
        return None


def plan_sql(text: str, catalog: Any) -> tuple[r.Mir, PlannedQuery]:
    """The MIR of a SELECT's visible columns (its order forgotten), and the planned query."""
    (statement,) = parse_statements(text)
    planned = plan_query(PlanContext(catalog, DefaultSession()), statement.query, [])  # type: ignore[attr-defined]
    return lower_relation(planned.relation()), planned
