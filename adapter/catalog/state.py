"""The catalog at one revision, and the transaction that makes the next.

`CatalogState` is a value: once published it never changes, so a planner in another thread, a running statement and a
DDL transaction may each keep the one they started with. `CatalogTransaction` copies the tables it starts from, applies
changes to the copy, and records every change as key/value pairs for durable storage.

    databases, schemas, roles, clusters, items, comments, system variables        (by id)
    + derived: names -> ids, item -> items that use it, relation -> its indexes
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from adapter.catalog.objects import (
    Allocator,
    Cluster,
    CommentKey,
    Database,
    IndexDetails,
    Item,
    Role,
    Schema,
)
from mzlite.repr.ids import GlobalId, user

MZ_SYSTEM_ROLE = "s1"
MZ_SUPPORT_ROLE = "s2"
DEFAULT_ROLE = "u1"

AMBIENT_SCHEMAS: tuple[tuple[str, str], ...] = (
    ("s1", "mz_catalog"),
    ("s2", "pg_catalog"),
    ("s4", "mz_internal"),
    ("s5", "information_schema"),
    ("s6", "mz_unsafe"),
    ("s7", "mz_introspection"),
    ("s8", "mz_catalog_unstable"),
)
TEMP_SCHEMA = "mz_temp"
AMBIENT_IDS = {name: id for id, name in AMBIENT_SCHEMAS}
TYPE_NAMESPACE = "type"
ITEM_NAMESPACE = "item"


def namespace_of(kind: str) -> str:
    return TYPE_NAMESPACE if kind == "type" else ITEM_NAMESPACE


def temp_schema_id(conn_id: int) -> str:
    return f"temp{conn_id}"


class CatalogState:
    """One revision. Invariants: every item's schema, cluster and dependencies exist; names are unique in a namespace."""

    __slots__ = (
        "alloc",
        "cluster_names",
        "clusters",
        "comments",
        "database_names",
        "databases",
        "indexes",
        "item_names",
        "items",
        "revision",
        "role_names",
        "roles",
        "schema_names",
        "schemas",
        "system_vars",
        "used_by",
    )

    def __init__(self) -> None:
        self.revision = 0
        self.databases: dict[str, Database] = {}
        self.schemas: dict[str, Schema] = {}
        self.roles: dict[str, Role] = {}
        self.clusters: dict[str, Cluster] = {}
        self.items: dict[GlobalId, Item] = {}
        self.comments: dict[CommentKey, str] = {}
        self.system_vars: dict[str, str] = {}
        self.alloc = Allocator()
        self.database_names: dict[str, str] = {}
        self.schema_names: dict[tuple[str | None, str], str] = {}
        self.role_names: dict[str, str] = {}
        self.cluster_names: dict[str, str] = {}
        self.item_names: dict[tuple[str, str, str], GlobalId] = {}
        self.used_by: dict[GlobalId, tuple[GlobalId, ...]] = {}
        self.indexes: dict[GlobalId, tuple[GlobalId, ...]] = {}

    def copy(self) -> CatalogState:
        new = CatalogState.__new__(CatalogState)
        for slot in CatalogState.__slots__:
            value = getattr(self, slot)
            setattr(new, slot, dict(value) if isinstance(value, dict) else value)
        return new

    # Lookups by name.

    def database(self, name: str) -> Database | None:
        id = self.database_names.get(name)
        return self.databases[id] if id is not None else None

    def schema(self, database: str | None, name: str) -> Schema | None:
        """A schema of a database (by name), or an ambient one."""
        db = self.database(database) if database is not None else None
        if db is not None:
            id = self.schema_names.get((db.id, name))
            if id is not None:
                return self.schemas[id]
        id = self.schema_names.get((None, name))
        return self.schemas[id] if id is not None else None

    def cluster(self, name: str) -> Cluster | None:
        id = self.cluster_names.get(name)
        return self.clusters[id] if id is not None else None

    def role(self, name: str) -> Role | None:
        id = self.role_names.get(name)
        return self.roles[id] if id is not None else None

    def item_in(self, schema_id: str, name: str, namespace: str = ITEM_NAMESPACE) -> Item | None:
        id = self.item_names.get((schema_id, namespace, name))
        return self.items[id] if id is not None else None

    # Edges.

    def dependents(self, ids: Iterable[GlobalId]) -> list[GlobalId]:
        """Everything that uses `ids`, directly or not, most dependent first; `ids` themselves left out."""
        start = list(ids)
        seen = set(start)
        order: list[GlobalId] = []
        stack = list(start)
        while stack:
            for user_id in self.used_by.get(stack.pop(), ()):
                if user_id not in seen:
                    seen.add(user_id)
                    order.append(user_id)
                    stack.append(user_id)
        order.sort(key=id_number, reverse=True)
        return order

    def indexes_on(self, id: GlobalId, cluster_id: str | None = None) -> Iterator[Item]:
        for index_id in self.indexes.get(id, ()):
            item = self.items[index_id]
            if cluster_id is None or item.cluster_id == cluster_id:
                yield item

    def items_in_schema(self, schema_id: str) -> list[Item]:
        return [i for i in self.items.values() if i.schema_id == schema_id]

    def items_in_cluster(self, cluster_id: str) -> list[Item]:
        return [i for i in self.items.values() if i.cluster_id == cluster_id]

    def schemas_in_database(self, database_id: str) -> list[Schema]:
        return [s for s in self.schemas.values() if s.database_id == database_id]

    def owner_name(self, role_id: str) -> str:
        role = self.roles.get(role_id)
        return role.name if role is not None else role_id


def id_number(id: str) -> int:
    return int(id[1:])


class CatalogTransaction:
    """Changes on top of a state. `state` is the tentative result; `changes` what durable storage must record.

    Every method keeps the derived tables in step. Values are put into `changes` as objects; `adapter.catalog.durable`
    turns them into bytes. Temporary items never reach `changes`.
    """

    def __init__(self, base: CatalogState) -> None:
        self.base = base
        self.state = base.copy()
        self.state.revision = base.revision + 1
        self.changes: dict[str, object | None] = {}
        self.dropped: list[Item] = []
        self.created: list[Item] = []

    # Identifiers.

    def _next(self, what: str) -> int:
        n: int = getattr(self.state.alloc, what)
        self.state.alloc = replace(self.state.alloc, **{what: n + 1})  # type: ignore[arg-type]
        self.changes["alloc"] = self.state.alloc
        return n

    def item_id(self) -> GlobalId:
        return user(self._next("item"))

    def oid(self) -> int:
        return self._next("oid")

    def named_id(self, what: str) -> str:
        """what: schema, database, role, cluster, replica."""
        return f"u{self._next(what)}"

    # Items.

    def put_item(self, item: Item) -> None:
        """Add, or replace the item of that id."""
        state = self.state
        old = state.items.get(item.id)
        if old is not None:
            self._unlink(old)
        else:
            self.created.append(item)
        state.items[item.id] = item
        key = (item.schema_id, namespace_of(item.kind), item.name)
        assert key not in state.item_names, key
        state.item_names[key] = item.id
        for dep in item.depends_on:
            state.used_by[dep] = (*state.used_by.get(dep, ()), item.id)
        if isinstance(item.details, IndexDetails):
            on = item.details.on_id
            state.indexes[on] = (*state.indexes.get(on, ()), item.id)
        if item.conn_id is None:
            self.changes[f"item/{item.id}"] = item

    def remove_item(self, id: GlobalId) -> None:
        """Its dependents must be gone already."""
        state = self.state
        item = state.items.pop(id)
        assert not state.used_by.get(id), (id, state.used_by.get(id))
        self._unlink(item)
        state.used_by.pop(id, None)
        self.dropped.append(item)
        self.created = [c for c in self.created if c.id != id]
        if item.conn_id is None:
            self.changes[f"item/{id}"] = None
        self.drop_comments(str(id), item.kind)

    def _unlink(self, item: Item) -> None:
        state = self.state
        del state.item_names[(item.schema_id, namespace_of(item.kind), item.name)]
        for dep in item.depends_on:
            left = tuple(u for u in state.used_by.get(dep, ()) if u != item.id)
            if left:
                state.used_by[dep] = left
            else:
                state.used_by.pop(dep, None)
        if isinstance(item.details, IndexDetails):
            on = item.details.on_id
            left = tuple(i for i in state.indexes.get(on, ()) if i != item.id)
            if left:
                state.indexes[on] = left
            else:
                state.indexes.pop(on, None)

    # The rest.

    def put_database(self, database: Database) -> None:
        old = self.state.databases.get(database.id)
        if old is not None:
            del self.state.database_names[old.name]
        self.state.databases[database.id] = database
        self.state.database_names[database.name] = database.id
        self.changes[f"database/{database.id}"] = database

    def remove_database(self, id: str) -> None:
        old = self.state.databases.pop(id)
        del self.state.database_names[old.name]
        self.changes[f"database/{id}"] = None
        self.drop_comments(id, "database")

    def put_schema(self, schema: Schema) -> None:
        old = self.state.schemas.get(schema.id)
        if old is not None:
            self.state.schema_names.pop((old.database_id, old.name), None)
        self.state.schemas[schema.id] = schema
        self.state.schema_names[(schema.database_id, schema.name)] = schema.id
        self.changes[f"schema/{schema.id}"] = schema

    def swap_schemas(self, a: Schema, b: Schema) -> None:
        self.put_schema(replace(a, name=f"{a.name}\x00swap"))
        self.put_schema(replace(b, name=a.name))
        self.put_schema(replace(a, name=b.name))

    def remove_schema(self, id: str) -> None:
        old = self.state.schemas.pop(id)
        del self.state.schema_names[(old.database_id, old.name)]
        self.changes[f"schema/{id}"] = None
        self.drop_comments(id, "schema")

    def put_role(self, role: Role) -> None:
        old = self.state.roles.get(role.id)
        if old is not None:
            del self.state.role_names[old.name]
        self.state.roles[role.id] = role
        self.state.role_names[role.name] = role.id
        self.changes[f"role/{role.id}"] = role

    def remove_role(self, id: str) -> None:
        old = self.state.roles.pop(id)
        del self.state.role_names[old.name]
        self.changes[f"role/{id}"] = None
        self.drop_comments(id, "role")

    def put_cluster(self, cluster: Cluster) -> None:
        old = self.state.clusters.get(cluster.id)
        if old is not None:
            self.state.cluster_names.pop(old.name, None)
            for gone in {r.id for r in old.replicas} - {r.id for r in cluster.replicas}:
                self.drop_comments(gone, "cluster-replica")
        self.state.clusters[cluster.id] = cluster
        self.state.cluster_names[cluster.name] = cluster.id
        self.changes[f"cluster/{cluster.id}"] = cluster

    def swap_clusters(self, a: Cluster, b: Cluster) -> None:
        self.put_cluster(replace(a, name=f"{a.name}\x00swap"))
        self.put_cluster(replace(b, name=a.name))
        self.put_cluster(replace(a, name=b.name))

    def remove_cluster(self, id: str) -> None:
        old = self.state.clusters.pop(id)
        del self.state.cluster_names[old.name]
        for replica in old.replicas:
            self.drop_comments(replica.id, "cluster-replica")
        self.changes[f"cluster/{id}"] = None
        self.drop_comments(id, "cluster")

    def set_system_var(self, name: str, value: str | None) -> None:
        if value is None:
            self.state.system_vars.pop(name, None)
        else:
            self.state.system_vars[name] = value
        self.changes[f"var/{name}"] = value

    def set_comment(self, key: CommentKey, text: str | None) -> None:
        if text is None:
            self.state.comments.pop(key, None)
        else:
            self.state.comments[key] = text
        self.changes[f"comment/{key.object_type}/{key.object_id}/{key.column or 0}"] = text

    def drop_comments(self, object_id: str, object_type: str) -> None:
        for key in [k for k in self.state.comments if k.object_id == object_id]:
            if key.object_type == object_type:
                self.set_comment(key, None)
