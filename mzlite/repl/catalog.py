"""What the shell asks a server about its objects, in words that fit both Materialize and PostgreSQL.

The one idea: `\\d` and completion speak to `Catalog`; which queries answer is the business of two implementations. One reads
SHOW commands (`catalog_materialize`), one reads pg_catalog (`catalog_postgres`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from mzlite.repl.client import Table

Query = Callable[[str], Table]

# Kinds of relation, in the words SHOW and \d use; and the letter that selects each after `\d`.
KIND_LETTERS = {
    "t": "table",
    "v": "view",
    "m": "materialized view",
    "i": "index",
    "s": "source",
    "k": "sink",
}


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation, or an index or sink; `on` is what an index is over."""

    schema: str
    name: str
    kind: str
    owner: str = ""
    cluster: str = ""
    on: str = ""
    comment: str = ""
    is_visible: bool = True


@dataclass(frozen=True, slots=True)
class ColumnInfo:
    name: str
    type: str
    nullable: bool = True
    default: str = ""
    comment: str = ""


@dataclass(slots=True)
class Description:
    """All that `\\d name` shows about one relation; `footers` are (heading, lines)."""

    relation: Relation
    columns: list[ColumnInfo]
    footers: list[tuple[str, list[str]]] = field(default_factory=list)
    definition: str = ""


@dataclass(frozen=True, slots=True)
class FunctionInfo:
    schema: str
    name: str
    result: str = ""
    arguments: str = ""
    kind: str = "func"


class Catalog(Protocol):
    """Every method raises psycopg.Error when the server refuses. System objects are left out unless asked for by schema."""

    has_clusters: bool

    def current_schemas(self) -> list[str]: ...

    def relations(self, kinds: frozenset[str], schemas: list[str] | None, *, system: bool = False) -> list[Relation]:
        """Of these kinds, in these schemas; `None` stands for the search path."""

    def columns(self, relation: Relation) -> list[ColumnInfo]: ...

    def describe(self, relation: Relation, *, verbose: bool) -> Description: ...

    def all_columns(self) -> dict[tuple[str, str], list[ColumnInfo]]:
        """Columns of every relation a person might name, by (schema, relation)."""

    def schemas(self, *, system: bool = False) -> list[tuple[str, str]]:
        """(name, owner or comment)."""

    def databases(self) -> Table: ...

    def clusters(self) -> Table: ...

    def roles(self) -> Table: ...

    def functions(self, *, system: bool) -> list[FunctionInfo]: ...


def open_catalog(query: Query, mz_version: str | None) -> Catalog:
    """The catalog of the server behind `query`; `mz_version` is the parameter of that name, if the server has sent it."""
    from mzlite.repl.catalog_materialize import MaterializeCatalog
    from mzlite.repl.catalog_postgres import PostgresCatalog

    if mz_version is None:
        version = (query("SELECT version()").rows[0][0] or "").lower()
        if "materialize" not in version and "mzlite" not in version:
            return PostgresCatalog(query)
    return MaterializeCatalog(query)


def records(table: Table) -> list[dict[str, str]]:
    """Rows by column name; NULL reads as empty."""
    names = [column.name for column in table.columns]
    return [{name: value or "" for name, value in zip(names, row, strict=True)} for row in table.rows]


def parse_array(text: str) -> list[str]:
    """The elements of a one-dimensional array or list in its text form, `{a,"b c"}`."""
    body = text[1:-1] if text.startswith("{") and text.endswith("}") else text
    items: list[str] = []
    current = ""
    quoted = False
    i = 0
    while i < len(body):
        ch = body[i]
        if ch == "\\" and i + 1 < len(body):
            current += body[i + 1]
            i += 1
        elif ch == '"':
            quoted = not quoted
        elif ch == "," and not quoted:
            items.append(current)
            current = ""
        else:
            current += ch
        i += 1
    return [*items, current] if body else []
