"""A builtin relation: a name, columns, and a function from catalog state to rows.

Builtins are not stored and not maintained. Planning sees a relation with a description; when a plan runs, its rows are
computed from the catalog's current revision, so they agree with each other and with the names the plan resolved.

    @relation("mz_catalog.mz_databases", "id text, oid oid, name text, owner_id text, privileges mz_aclitem[]")
    def databases(ctx): yield (…)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from adapter.catalog.objects import Item
from adapter.catalog.state import CatalogState
from mzlite.repr import types as t
from mzlite.repr.ids import GlobalId
from mzlite.repr.types import ColumnType, RelationDesc, RelationType, ScalarType

Row = tuple[Any, ...]
FIRST_BUILTIN_OID = 17_000


class RuntimeFacts(Protocol):
    """What some relations say beyond the catalog: asked when read."""

    def frontiers(self) -> Iterable[tuple[GlobalId, int | None, int | None]]:
        """(collection, since, upper) of every user collection."""

    def replica_frontiers(self) -> Iterable[tuple[GlobalId, str, int | None]]:
        """(collection, replica id, upper) for every index and materialized view on every replica."""

    def hydration(self) -> Iterable[tuple[GlobalId, str, bool]]:
        """(collection, replica id, hydrated)."""

    def replica_statuses(self) -> Iterable[tuple[str, str, str | None, int]]:
        """(replica id, online | offline, reason, microseconds since 1970)."""

    def sessions(self) -> Iterable[tuple[int, str, str | None, int]]:
        """(connection id, role id, client address, connected at in µs)."""

    def subscriptions(self) -> Iterable[tuple[GlobalId, int, str, int, Sequence[GlobalId]]]:
        """(sink id, connection id, cluster id, created at in µs, ids read)."""

    def settings(self) -> Iterable[tuple[str, str, str]]:
        """(name, value, description) as the asking session sees them."""


@dataclass(frozen=True, slots=True)
class Context:
    """database: the asking session's. items: relations of the catalog and the builtins, in id order (filled lazily by users)."""

    state: CatalogState
    database: str
    runtime: RuntimeFacts | None = None
    cache: dict[str, Any] = field(default_factory=dict)

    def user_items(self, *kinds: str) -> list[Item]:
        return [i for i in self.state.items.values() if i.kind in kinds]


RowsFunction = Callable[[Context], Iterable[Row]]


@dataclass(frozen=True, slots=True)
class Builtin:
    """kind: view or table, as the catalog shows it. live: rows depend on more than the catalog, so they are not cached.
    per_database: rows depend on the session's database. log: variant of a replica's log. sql: query of a view over logs."""

    id: GlobalId
    oid: int
    schema: str
    name: str
    kind: str
    desc: RelationDesc
    rows: RowsFunction
    live: bool = False
    per_database: bool = False
    comment: str = ""
    column_comments: Mapping[str, str] = field(default_factory=dict)
    log: str | None = None
    sql: str | None = None

    @property
    def local(self) -> bool:
        """Are the rows made here? Not those of logs (a replica has them) and of views over logs (planned like others)."""
        return self.log is None and self.sql is None


BUILTINS: dict[GlobalId, Builtin] = {}
BUILTIN_NAMES: dict[tuple[str, str], GlobalId] = {}

_TYPES: dict[str, ScalarType] = {
    "text": t.TEXT,
    "name": t.NAME,
    "oid": t.OID,
    "bool": t.BOOL,
    "int2": t.INT2,
    "int4": t.INT4,
    "int8": t.INT8,
    "uint2": t.UINT2,
    "uint4": t.UINT4,
    "uint8": t.UINT8,
    "float4": t.FLOAT4,
    "float8": t.FLOAT8,
    "numeric": t.NUMERIC,
    "char": t.CHAR,
    "timestamptz": t.TIMESTAMPTZ,
    "interval": t.INTERVAL,
    "jsonb": t.JSONB,
    "bytea": t.BYTEA,
    "uuid": t.UUID,
    "regproc": t.REGPROC,
    "regtype": t.REGTYPE,
    "regclass": t.REGCLASS,
    "mz_timestamp": t.MZ_TIMESTAMP,
    "int2vector": t.INT2VECTOR,
    "mz_aclitem": ScalarType("mz_aclitem"),
    "aclitem": ScalarType("aclitem"),
}


def parse_type(text: str) -> ScalarType:
    if text.endswith("[]"):
        return t.array_of(parse_type(text[:-2]))
    if text.endswith(" list"):
        return t.list_of(parse_type(text[:-5]))
    return _TYPES[text]


def parse_columns(columns: str) -> RelationDesc:
    """`id text!, name text`: `!` = not nullable; `(key a, b)` parts declare unique keys."""
    names: list[str] = []
    types: list[ColumnType] = []
    for part in columns.split(","):
        name, _, typ = part.strip().partition(" ")
        nullable = not typ.endswith("!")
        names.append(name)
        types.append(ColumnType(parse_type(typ.rstrip("!").strip()), nullable))
    return RelationDesc(tuple(names), RelationType(tuple(types)))


def relation(
    name: str,
    columns: str,
    *,
    kind: str = "view",
    live: bool = False,
    per_database: bool = False,
    comment: str = "",
    column_comments: Mapping[str, str] | None = None,
) -> Callable[[RowsFunction], RowsFunction]:
    """Register the decorated function as the rows of `schema.name`."""

    def register(rows: RowsFunction) -> RowsFunction:
        schema, _, bare = name.partition(".")
        oid = FIRST_BUILTIN_OID + len(BUILTINS)
        id = GlobalId(f"s{oid}")
        desc = parse_columns(columns)
        BUILTINS[id] = Builtin(
            id, oid, schema, bare, kind, desc, rows, live, per_database, comment, column_comments or {}
        )
        assert (schema, bare) not in BUILTIN_NAMES, name
        BUILTIN_NAMES[(schema, bare)] = id
        return rows

    return register


def is_local(id: GlobalId) -> bool:
    found = BUILTINS.get(id)
    return found is not None and found.local


def is_log(id: GlobalId) -> bool:
    found = BUILTINS.get(id)
    return found is not None and found.log is not None


def add_log(name: str, desc: RelationDesc, variant: str) -> None:
    """A log relation of mz_introspection."""
    _add(name, "log", desc, log=variant)


def add_view(name: str, columns: str, sql: str) -> None:
    """A view over logs, defined by its SQL."""
    _add(name, "view", parse_columns(columns), sql=sql)


def _add(bare: str, kind: str, desc: RelationDesc, **options: Any) -> None:
    oid = FIRST_BUILTIN_OID + len(BUILTINS)
    id = GlobalId(f"s{oid}")
    BUILTINS[id] = Builtin(id, oid, "mz_introspection", bare, kind, desc, lambda ctx: (), **options)
    BUILTIN_NAMES[("mz_introspection", bare)] = id


def empty(name: str, columns: str, **options: Any) -> None:
    """A relation that never has rows: what it lists does not exist here."""
    relation(name, columns, **options)(lambda ctx: ())
