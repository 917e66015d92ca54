"""`CatalogView` for the planner: names resolved against one catalog revision, builtins included.

An unqualified name is looked for in the session's temporary items, then mz_catalog and pg_catalog, then along the
search path. Item views are made once per revision.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from adapter.catalog.builtin.relation import BUILTIN_NAMES, BUILTINS, Builtin
from adapter.catalog.objects import IndexDetails, Item, TableDetails, TypeDetails
from adapter.catalog.state import (
    ITEM_NAMESPACE,
    TEMP_SCHEMA,
    TYPE_NAMESPACE,
    CatalogState,
    temp_schema_id,
)
from adapter.sql.catalog_view import CatalogItem, ClusterRef, QualifiedName, ReplicaRef, SchemaRef
from mzlite.expr.scalar import Scalar
from mzlite.repr.ids import ClusterId, GlobalId
from mzlite.repr.types import RelationDesc, ScalarType


@dataclass(frozen=True, slots=True)
class ItemView:
    """A `CatalogItem`."""

    id: GlobalId
    oid: int
    name: QualifiedName
    kind: str
    desc: RelationDesc | None
    create_sql: str = ""
    cluster: ClusterId | None = None
    defaults: tuple[Scalar | None, ...] = ()
    scalar: ScalarType | None = None
    index_on: GlobalId | None = None
    index_key: tuple[Scalar, ...] = ()


def _of_builtin(b: Builtin) -> ItemView:
    return ItemView(b.id, b.oid, QualifiedName(None, b.schema, b.name), b.kind, b.desc)


_BUILTIN_VIEWS: dict[GlobalId, ItemView] = {}


class StateView:
    """One revision, as one session sees it (conn_id: whose temporary items)."""

    def __init__(self, state: CatalogState, conn_id: int | None = None) -> None:
        self.state = state
        self.conn_id = conn_id
        self._views: dict[GlobalId, ItemView] = {}

    # Items.

    def get_item(self, id: GlobalId) -> CatalogItem:
        found = self.find_item(id)
        assert found is not None, f"unknown item {id}"
        return found

    def find_item(self, id: GlobalId) -> ItemView | None:
        view = self._views.get(id)
        if view is not None:
            return view
        item = self.state.items.get(id)
        if item is not None:
            view = self._views[id] = self._of_item(item)
            return view
        builtin = BUILTINS.get(id)
        if builtin is None:
            return None
        view = _BUILTIN_VIEWS.get(id)
        if view is None:
            view = _BUILTIN_VIEWS[id] = _of_builtin(builtin)
        return view

    def _of_item(self, item: Item) -> ItemView:
        details = item.details
        return ItemView(
            item.id,
            item.oid,
            self.item_name(item),
            item.kind,
            item.desc,
            item.create_sql,
            ClusterId(item.cluster_id) if item.cluster_id is not None else None,
            details.defaults if isinstance(details, TableDetails) else (),
            details.typ if isinstance(details, TypeDetails) else None,
            details.on_id if isinstance(details, IndexDetails) else None,
            details.key if isinstance(details, IndexDetails) else (),
        )

    def item_name(self, item: Item) -> QualifiedName:
        schema = self.state.schemas.get(item.schema_id)
        if schema is None:
            return QualifiedName(None, TEMP_SCHEMA, item.name)
        database = self.state.databases[schema.database_id].name if schema.database_id is not None else None
        return QualifiedName(database, schema.name, item.name)

    def object_name(self, id: GlobalId) -> QualifiedName:
        return self.get_item(id).name

    def indexes_on(self, id: GlobalId) -> Sequence[CatalogItem]:
        return [self.get_item(i) for i in self.state.indexes.get(id, ())]

    def resolve_item(self, parts: tuple[str, ...], database: str, search_path: Sequence[str]) -> CatalogItem | None:
        return self._resolve(parts, database, search_path, ITEM_NAMESPACE)

    def resolve_type_item(
        self, parts: tuple[str, ...], database: str, search_path: Sequence[str]
    ) -> CatalogItem | None:
        return self._resolve(parts, database, search_path, TYPE_NAMESPACE)

    def _resolve(
        self, parts: tuple[str, ...], database: str, search_path: Sequence[str], namespace: str
    ) -> ItemView | None:
        if len(parts) == 1:
            for schema_id, schema_name in self._searched(database, search_path):
                found = self._in_schema(schema_id, schema_name, parts[0], namespace)
                if found is not None:
                    return found
            return None
        if len(parts) == 2:
            db, schema, name = database, parts[0], parts[1]
        elif len(parts) == 3:
            db, schema, name = parts
            if self.state.database(db) is None:
                return None
        else:
            return None
        if schema == TEMP_SCHEMA and self.conn_id is not None:
            return self._in_schema(temp_schema_id(self.conn_id), TEMP_SCHEMA, name, namespace)
        found_schema = self.state.schema(db, schema)
        if found_schema is None:
            return None
        return self._in_schema(found_schema.id, found_schema.name, name, namespace)

    def _searched(self, database: str, search_path: Sequence[str]) -> Iterator[tuple[str, str]]:
        if self.conn_id is not None:
            yield temp_schema_id(self.conn_id), TEMP_SCHEMA
        for name in ("mz_catalog", "pg_catalog"):
            if name not in search_path:
                ambient = self.state.schema(None, name)
                if ambient is not None:
                    yield ambient.id, name
        for name in search_path:
            schema = self.state.schema(database, name)
            if schema is not None:
                yield schema.id, name

    def _in_schema(self, schema_id: str, schema_name: str, name: str, namespace: str) -> ItemView | None:
        id = self.state.item_names.get((schema_id, namespace, name))
        if id is None and namespace == ITEM_NAMESPACE:
            id = BUILTIN_NAMES.get((schema_name, name))
            # A database may have a schema with a builtin schema's name; the builtins are only in the ambient one.
            if id is not None and self.state.schemas[schema_id].database_id is not None:
                return None
        return self.find_item(id) if id is not None else None

    # Other names.

    def resolve_schema(self, parts: tuple[str, ...], database: str) -> SchemaRef | None:
        db, name = (database, parts[0]) if len(parts) == 1 else (parts[0], parts[1])
        if name == TEMP_SCHEMA and len(parts) == 1:
            return SchemaRef(None, TEMP_SCHEMA)
        if len(parts) == 2 and self.state.database(db) is None:
            return None
        schema = self.state.schema(db, name)
        if schema is None:
            return None
        return SchemaRef(None if schema.database_id is None else db, schema.name)

    def resolve_database(self, name: str) -> str | None:
        db = self.state.database(name)
        return db.name if db is not None else None

    def resolve_cluster(self, name: str) -> ClusterRef | None:
        cluster = self.state.cluster(name)
        if cluster is None:
            return None
        replicas = tuple(ReplicaRef(r.id, r.name, r.size) for r in cluster.replicas)
        return ClusterRef(ClusterId(cluster.id), cluster.name, replicas, cluster.managed)

    def resolve_role(self, name: str) -> str | None:
        role = self.state.role(name)
        return role.id if role is not None else None

    def current_schemas(self, database: str, search_path: Sequence[str], implicit: bool) -> list[str]:
        """current_schemas(…): schemas of the path that exist, and with `implicit` those searched before it."""
        found = [name for name in search_path if self.state.schema(database, name) is not None]
        if implicit:
            found = [n for n in ("mz_catalog", "pg_catalog") if n not in found] + found
        return found
