"""The catalog of mzlite and Materialize, read with SHOW commands.

SHOW is preferred to pg_catalog: it knows clusters, sources and comments, and it is what a person would type. Where a command
is not there (an older server), its kind of object is left out instead of failing the whole listing.
"""

from __future__ import annotations

import psycopg

from mzlite.repl.catalog import ColumnInfo, Description, FunctionInfo, Query, Relation, parse_array, records
from mzlite.repl.client import Table
from mzlite.repl.keywords import words
from mzlite.repl.tokens import quote_ident, quote_literal

SYSTEM_SCHEMAS = frozenset(
    words(
        """
    mz_catalog mz_catalog_unstable mz_internal mz_introspection mz_unsafe pg_catalog information_schema
    """
    )
)
_SHOW = {
    "table": "TABLES",
    "view": "VIEWS",
    "materialized view": "MATERIALIZED VIEWS",
    "source": "SOURCES",
    "index": "INDEXES",
    "sink": "SINKS",
}
_UNKNOWN_COMMAND = (psycopg.errors.FeatureNotSupported, psycopg.errors.SyntaxError, psycopg.errors.UndefinedObject)
# One question for every column there is; SHOW COLUMNS would be one a relation.
_ALL_COLUMNS = """
SELECT s.name, o.name, c.name, c.type
FROM mz_catalog.mz_columns c
JOIN mz_catalog.mz_objects o ON o.id = c.id
JOIN mz_catalog.mz_schemas s ON s.id = o.schema_id
LEFT JOIN mz_catalog.mz_databases d ON d.id = s.database_id
WHERE o.type IN ('table', 'source', 'view', 'materialized-view')
  AND (d.name IS NULL OR d.name = current_database())
ORDER BY s.name, o.name, c.position
"""
_ALL_COLUMNS_PG = """
SELECT n.nspname, c.relname, a.attname, t.typname
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
WHERE a.attnum > 0 AND c.relkind IN ('r', 'v', 'm', 'f', 'p')
ORDER BY n.nspname, c.relname, a.attnum
"""


class MaterializeCatalog:
    has_clusters = True

    def __init__(self, query: Query) -> None:
        self._query = query

    def _show(self, command: str) -> list[dict[str, str]]:
        return records(self._query(f"SHOW {command}"))

    def current_schemas(self) -> list[str]:
        rows = self._query("SELECT current_schema()").rows
        return [row[0] for row in rows if row[0]]

    def relations(self, kinds: frozenset[str], schemas: list[str] | None, *, system: bool = False) -> list[Relation]:
        visible = self.current_schemas()
        if schemas is None:
            chosen = [*visible, *(sorted(SYSTEM_SCHEMAS) if system else ())]
        else:
            chosen = schemas
        found: list[Relation] = []
        for schema in chosen:
            for kind in _SHOW:
                if kind in kinds:
                    found += self._relations_of(kind, schema, schema in visible)
        return sorted(found, key=lambda relation: (relation.schema, relation.name))

    def _relations_of(self, kind: str, schema: str, is_visible: bool) -> list[Relation]:
        try:
            rows = self._show(f"{_SHOW[kind]} FROM {quote_ident(schema)}")
        except _UNKNOWN_COMMAND:
            return []
        return [
            Relation(
                schema=schema,
                name=row["name"],
                kind=kind,
                cluster=row.get("cluster", ""),
                on=row.get("on", ""),
                comment=row.get("comment", ""),
                is_visible=is_visible,
            )
            for row in rows
        ]

    def columns(self, relation: Relation) -> list[ColumnInfo]:
        return [
            ColumnInfo(
                name=row["name"],
                type=row["type"],
                nullable=row["nullable"] in ("t", "true"),
                comment=row.get("comment", ""),
            )
            for row in self._show(f"COLUMNS FROM {_qualified(relation)}")
        ]

    def describe(self, relation: Relation, *, verbose: bool) -> Description:
        if relation.kind == "index":
            return self._describe_index(relation)
        columns = [] if relation.kind == "sink" else self.columns(relation)
        description = Description(relation, columns)
        if relation.kind != "sink":
            indexes = self._show(f"INDEXES ON {_qualified(relation)}")
            if indexes:
                description.footers.append(("Indexes", [_index_line(row) for row in indexes]))
        if relation.cluster:
            description.footers.append((f'In cluster: "{relation.cluster}"', []))
        if relation.kind == "sink" or (verbose and relation.kind != "table"):
            description.definition = self._definition(relation)
        return description

    def _describe_index(self, relation: Relation) -> Description:
        key: list[str] = []
        for row in self._show(f"INDEXES FROM {quote_ident(relation.schema)}"):
            if row["name"] == relation.name:
                key = parse_array(row.get("key", ""))
        by_name: dict[str, ColumnInfo] = {}
        if relation.on:
            over = Relation(relation.schema, relation.on, "table")
            by_name = {column.name: column for column in self.columns(over)}
        columns = [by_name.get(name.strip('"'), ColumnInfo(name, "")) for name in key]
        description = Description(relation, columns)
        description.footers.append((f'index on "{relation.on}" in cluster "{relation.cluster}"', []))
        return description

    def _definition(self, relation: Relation) -> str:
        rows = self._show(f"CREATE {relation.kind.upper()} {_qualified(relation)}")
        return rows[0].get("create_sql", "") if rows else ""

    def all_columns(self) -> dict[tuple[str, str], list[ColumnInfo]]:
        found: dict[tuple[str, str], list[ColumnInfo]] = {}
        for sql in (_ALL_COLUMNS, _ALL_COLUMNS_PG):
            try:
                rows = self._query(sql).rows
            except psycopg.errors.Error as error:
                if error.sqlstate is None:
                    raise
                continue
            for schema, relation, column, type_name in rows:
                found.setdefault((schema or "", relation or ""), []).append(ColumnInfo(column or "", type_name or ""))
            if found:
                return found
        kinds = frozenset({"table", "view", "materialized view", "source"})
        for each in self.relations(kinds, [name for name, _ in self.schemas()]):
            found[each.schema, each.name] = self.columns(each)
        return found

    def schemas(self, *, system: bool = False) -> list[tuple[str, str]]:
        rows = self._show("SCHEMAS")
        return [(row["name"], row.get("comment", "")) for row in rows if system or row["name"] not in SYSTEM_SCHEMAS]

    def databases(self) -> Table:
        return self._query("SHOW DATABASES")

    def clusters(self) -> Table:
        return self._query("SHOW CLUSTERS")

    def roles(self) -> Table:
        return self._query("SHOW ROLES")

    def functions(self, *, system: bool) -> list[FunctionInfo]:
        sql = """
            SELECT DISTINCT n.nspname, p.proname FROM pg_catalog.pg_proc p
            JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace ORDER BY 1, 2"""
        try:
            rows = self._query(sql).rows
        except psycopg.errors.UndefinedTable:
            return []
        found = [FunctionInfo(schema or "", name or "") for schema, name in rows]
        return [each for each in found if system or each.schema not in SYSTEM_SCHEMAS]


def _qualified(relation: Relation) -> str:
    return f"{quote_ident(relation.schema)}.{quote_ident(relation.name)}"


def _index_line(row: dict[str, str]) -> str:
    key = ", ".join(parse_array(row.get("key", "")))
    return f'"{row["name"]}" ({key}) in cluster {quote_literal(row.get("cluster", ""))}'
