"""Scopes: which names the columns of a relation have, and how a name finds its column.

A scope lists columns in the order `*` shows them; `index` is the physical column. JOIN … USING lists the merged column first and leaves the
sides' own columns reachable by qualified name only.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from adapter.sql import hir
from mzlite.repr.errors import SqlError
from mzlite.repr.types import ScalarType

Parts = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ScopeColumn:
    """table: full name of the table it belongs to (("db", "schema", "t"), or an alias alone); () for none.

    bare: found by its unqualified name. starred: shown by `*`. also: aliases of USING (…) AS alias that include it.
    """

    name: str
    typ: ScalarType
    index: int
    table: Parts = ()
    bare: bool = True
    starred: bool = True
    also: Parts = ()
    whole_row: bool = False


@dataclass(frozen=True, slots=True)
class Scope:
    """columns in star order. tables: names introduced, for duplicates and table.*; lateral_error: names that exist but must not be used here."""

    columns: tuple[ScopeColumn, ...] = ()
    tables: tuple[Parts, ...] = ()

    def product(self, other: Scope, offset: int) -> Scope:
        """The scope of a join: other's columns stand `offset` further right."""
        for table in other.tables:
            if (table in self.tables and len(table) == 1) or any(_same_alias(table, t) for t in self.tables):
                raise SqlError("42712", f'table name "{table[-1]}" specified more than once')
        moved = tuple(move(c, c.index + offset) for c in other.columns)
        return Scope(self.columns + moved, self.tables + other.tables)


def _same_alias(a: Parts, b: Parts) -> bool:
    """Two FROM items that one name could mean: same alias, or the very same table twice."""
    return a[-1] == b[-1] and (a == b or len(a) == 1 or len(b) == 1)


def move(c: ScopeColumn, index: int) -> ScopeColumn:
    return ScopeColumn(c.name, c.typ, index, c.table, c.bare, c.starred, c.also, c.whole_row)


@dataclass(slots=True)
class CteBinding:
    """What a CTE's name stands for in a query: its binding number and columns."""

    id: int
    names: Parts
    types: tuple[ScalarType, ...]
    nullable: bool = True


@dataclass(slots=True)
class Scopes:
    """The stack of scopes an expression sees: own first, then outward."""

    stack: list[Scope] = field(default_factory=list)

    def inner(self, scope: Scope) -> Scopes:
        return Scopes([scope, *self.stack])


def matches(column: ScopeColumn, qualifier: Parts) -> bool:
    return (bool(column.table) and column.table[-len(qualifier) :] == qualifier) or qualifier == column.also[-1:] != ()


def resolve_column(scopes: list[Scope], parts: Parts, pos: int | None = None) -> hir.Column | None:
    """The column of a (qualified) name, nearest scope first; None when there is none. SqlError 42702 when several fit."""
    *qualifier_list, name = parts
    qualifier = tuple(qualifier_list)
    for level, scope in enumerate(scopes):
        found: ScopeColumn | None = None
        for column in scope.columns:
            if column.name != name:
                continue
            if qualifier:
                if not matches(column, qualifier):
                    continue
            elif not column.bare:
                continue
            if found is not None and found.index != column.index:
                shown = ".".join(parts)
                position = None if pos is None else pos + 1
                raise SqlError("42702", f'column reference "{shown}" is ambiguous', position=position)
            found = column
        if found is not None:
            return hir.Column(level, found.index, found.typ, name)
        if qualifier and any(t[-len(qualifier) :] == qualifier for t in scope.tables):
            return None
    return None


def table_columns(scopes: list[Scope], qualifier: Parts) -> tuple[int, list[ScopeColumn]] | None:
    """Level and columns of `qualifier.*`."""
    for level, scope in enumerate(scopes):
        if any(t[-len(qualifier) :] == qualifier for t in scope.tables):
            seen: set[int] = set()
            columns: list[ScopeColumn] = []
            for column in scope.columns:
                if matches(column, qualifier) and column.index not in seen:
                    seen.add(column.index)
                    columns.append(column)
            return level, columns
    return None


def undefined_column(parts: Parts, pos: int | None, similar: list[str]) -> SqlError:
    """column "x" does not exist, with the hint Materialize gives."""
    shown = ".".join(parts)
    hint = None
    if len(similar) == 1:
        hint = f'The similarly named column "{similar[0]}" does exist.'
    elif similar:
        names = ", ".join(f'"{s}"' for s in similar)
        hint = (
            f"There are similarly named columns that do exist: {names}. "
            "Make sure to surround case sensitive names in double quotes."
        )
    return SqlError("42703", f'column "{shown}" does not exist', hint=hint, position=None if pos is None else pos + 1)


def similar_names(scopes: list[Scope], parts: Parts) -> list[str]:
    """Names that differ from the wanted one only in case."""
    wanted = parts[-1].lower()
    out: list[str] = []
    for scope in scopes:
        for column in scope.columns:
            if column.name.lower() == wanted and column.name != parts[-1]:
                shown = ".".join((*parts[:-1], column.name))
                if shown not in out:
                    out.append(shown)
    return out
