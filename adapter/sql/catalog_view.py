"""What the planner asks of the catalog and of the session: read-only protocols, implemented above (`adapter.catalog`, `adapter.coord`).

The one idea: planning is a function of (statement, catalog view, session view). It never writes, and every name it
resolves comes back as an id, so that a plan stays right when names change under it.

Lookups return None for "no such thing"; the planner words the error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from mzlite.expr.scalar import Scalar
from mzlite.repr.ids import ClusterId, GlobalId
from mzlite.repr.types import RelationDesc, ScalarType


class QualifiedName(msgspec.Struct, frozen=True):
    """database: None for the system schemas (mz_catalog, pg_catalog, …), which belong to every database."""

    database: str | None
    schema: str
    item: str

    def __str__(self) -> str:
        return ".".join(part for part in (self.database, self.schema, self.item) if part is not None)


class CatalogItem(Protocol):
    """One named object of a schema."""

    @property
    def id(self) -> GlobalId: ...

    @property
    def oid(self) -> int: ...

    @property
    def name(self) -> QualifiedName: ...

    @property
    def kind(self) -> str:
        """table, view, materialized-view, index, source, sink, type, log, connection, secret, function."""

    @property
    def desc(self) -> RelationDesc | None:
        """Of relations: column names, types, keys."""

    @property
    def create_sql(self) -> str:
        """The canonical statement, as plans carry it; empty for builtins."""

    @property
    def cluster(self) -> ClusterId | None:
        """Where an index, a materialized view or a source runs."""

    @property
    def defaults(self) -> tuple[Scalar | None, ...]:
        """Of tables: per column the DEFAULT expression (no columns, casts applied), None = NULL."""

    @property
    def scalar(self) -> ScalarType | None:
        """Of types: the type it names (with `custom` set)."""

    @property
    def index_on(self) -> GlobalId | None:
        """Of indexes: the indexed relation."""

    @property
    def index_key(self) -> tuple[Scalar, ...]:
        """Of indexes: key expressions over the indexed relation's columns."""


class SchemaRef(msgspec.Struct, frozen=True):
    database: str | None
    schema: str


class ReplicaRef(msgspec.Struct, frozen=True):
    id: str
    name: str
    size: str = ""


class ClusterRef(msgspec.Struct, frozen=True):
    id: ClusterId
    name: str
    replicas: tuple[ReplicaRef, ...] = ()
    managed: bool = True


class CatalogView(Protocol):
    """Names are already folded (unquoted to lower case, quoted as written)."""

    def resolve_item(self, parts: tuple[str, ...], database: str, search_path: Sequence[str]) -> CatalogItem | None:
        """The relation, index, source, … called [database.][schema.]name; types live in a namespace of their own."""

    def resolve_type_item(
        self, parts: tuple[str, ...], database: str, search_path: Sequence[str]
    ) -> CatalogItem | None:
        """A CREATE TYPE type; the planner knows the builtin types itself."""

    def resolve_schema(self, parts: tuple[str, ...], database: str) -> SchemaRef | None:
        """[database.]schema, system schemas included."""

    def resolve_database(self, name: str) -> str | None:
        """The database's name if there is such a database."""

    def resolve_cluster(self, name: str) -> ClusterRef | None: ...

    def resolve_role(self, name: str) -> str | None: ...

    def get_item(self, id: GlobalId) -> CatalogItem: ...

    def indexes_on(self, id: GlobalId) -> Sequence[CatalogItem]: ...

    def object_name(self, id: GlobalId) -> QualifiedName: ...


class SessionView(Protocol):
    @property
    def database(self) -> str: ...

    @property
    def search_path(self) -> tuple[str, ...]:
        """As set (without the implicit pg_catalog, mz_catalog, which `resolve_item` must add)."""

    @property
    def cluster(self) -> str: ...

    @property
    def user(self) -> str: ...

    def variable(self, name: str) -> str | None:
        """A session or system variable's text value; None = no such variable."""

    def prepared_parameters(self, name: str) -> tuple[ScalarType, ...] | None:
        """Parameter types of the prepared statement, for EXECUTE; None = no such statement."""
