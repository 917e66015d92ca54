"""The catalog of PostgreSQL, read from pg_catalog, for whoever points the shell at one.

Source: the queries that `psql -E` prints, without what only administrators look at.
"""

from __future__ import annotations

from mzlite.repl.catalog import ColumnInfo, Description, FunctionInfo, Query, Relation, records
from mzlite.repl.client import Table
from mzlite.repl.tokens import quote_ident, quote_literal

_KINDS = {
    "r": "table",
    "p": "table",
    "f": "table",
    "v": "view",
    "m": "materialized view",
    "i": "index",
    "I": "index",
    "S": "source",
}
_SYSTEM = "n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'"


class PostgresCatalog:
    has_clusters = False

    def __init__(self, query: Query) -> None:
        self._query = query

    def current_schemas(self) -> list[str]:
        return [row[0] for row in self._query("SELECT unnest(current_schemas(false))").rows if row[0]]

    def relations(self, kinds: frozenset[str], schemas: list[str] | None, *, system: bool = False) -> list[Relation]:
        letters = ", ".join(quote_literal(letter) for letter, kind in _KINDS.items() if kind in kinds)
        if not letters or schemas == []:
            return []
        if schemas is None:
            where = "pg_catalog.pg_table_is_visible(c.oid)" + ("" if system else f" AND {_SYSTEM}")
        else:
            where = f"n.nspname IN ({', '.join(map(quote_literal, schemas))})"
        rows = self._query(
            f"""
            SELECT n.nspname, c.relname, c.relkind, pg_catalog.pg_get_userbyid(c.relowner),
                   coalesce(t.relname, ''), coalesce(pg_catalog.obj_description(c.oid, 'pg_class'), ''),
                   pg_catalog.pg_table_is_visible(c.oid)
            FROM pg_catalog.pg_class c
            JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
            LEFT JOIN pg_catalog.pg_index i ON i.indexrelid = c.oid
            LEFT JOIN pg_catalog.pg_class t ON t.oid = i.indrelid
            WHERE c.relkind IN ({letters}) AND n.nspname !~ '^pg_toast' AND {where}
            ORDER BY 1, 2"""
        ).rows
        return [
            Relation(
                schema=schema or "",
                name=name or "",
                kind=_KINDS[letter or "r"],
                owner=owner or "",
                on=on or "",
                comment=comment or "",
                is_visible=visible == "t",
            )
            for schema, name, letter, owner, on, comment, visible in rows
        ]

    def columns(self, relation: Relation) -> list[ColumnInfo]:
        return [
            ColumnInfo(
                name=row["attname"],
                type=row["type"],
                nullable=row["attnotnull"] == "f",
                default=row["default"],
                comment=row["comment"],
            )
            for row in records(
                self._query(
                    f"""
                    SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull,
                           pg_catalog.pg_get_expr(d.adbin, d.adrelid, true) AS default,
                           pg_catalog.col_description(a.attrelid, a.attnum) AS comment
                    FROM pg_catalog.pg_attribute a
                    LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
                    WHERE a.attrelid = {_oid(relation)} AND a.attnum > 0 AND NOT a.attisdropped
                    ORDER BY a.attnum"""
                )
            )
        ]

    def describe(self, relation: Relation, *, verbose: bool) -> Description:
        oid = _oid(relation)
        description = Description(relation, self.columns(relation))
        indexes = self._query(
            f"""
            SELECT '"' || c.relname || '"' ||
                   CASE WHEN x.contype = 'p' THEN ' PRIMARY KEY,'
                        WHEN x.contype = 'u' THEN ' UNIQUE CONSTRAINT,'
                        WHEN i.indisunique THEN ' UNIQUE,' ELSE '' END ||
                   substring(pg_catalog.pg_get_indexdef(i.indexrelid, 0, true) from ' USING(.*)$')
            FROM pg_catalog.pg_index i
            JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid
            LEFT JOIN pg_catalog.pg_constraint x
              ON x.conrelid = i.indrelid AND x.conindid = i.indexrelid AND x.contype IN ('p', 'u', 'x')
            WHERE i.indrelid = {oid} ORDER BY i.indisprimary DESC, c.relname"""
        ).rows
        if indexes:
            description.footers.append(("Indexes", [row[0] or "" for row in indexes]))
        for heading, contype in (("Check constraints", "c"), ("Foreign-key constraints", "f")):
            constraints = self._query(
                f"""
                SELECT '"' || conname || '" ' || pg_catalog.pg_get_constraintdef(oid, true)
                FROM pg_catalog.pg_constraint WHERE conrelid = {oid} AND contype = '{contype}' ORDER BY conname"""
            ).rows
            if constraints:
                description.footers.append((heading, [row[0] or "" for row in constraints]))
        if verbose and relation.kind in ("view", "materialized view"):
            description.definition = self._query(f"SELECT pg_catalog.pg_get_viewdef({oid}, true)").rows[0][0] or ""
        return description

    def all_columns(self) -> dict[tuple[str, str], list[ColumnInfo]]:
        found: dict[tuple[str, str], list[ColumnInfo]] = {}
        rows = self._query(
            """
            SELECT n.nspname, c.relname, a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod)
            FROM pg_catalog.pg_class c
            JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
            JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid
            WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
            ORDER BY 1, 2, a.attnum"""
        ).rows
        for schema, relation, column, type_name in rows:
            found.setdefault((schema or "", relation or ""), []).append(ColumnInfo(column or "", type_name or ""))
        return found

    def schemas(self, *, system: bool = False) -> list[tuple[str, str]]:
        where = "true" if system else _SYSTEM
        rows = self._query(
            f"""
            SELECT n.nspname, pg_catalog.pg_get_userbyid(n.nspowner)
            FROM pg_catalog.pg_namespace n WHERE {where} ORDER BY 1"""
        ).rows
        return [(name or "", owner or "") for name, owner in rows]

    def databases(self) -> Table:
        return self._query(
            """
            SELECT d.datname AS name, pg_catalog.pg_get_userbyid(d.datdba) AS owner,
                   pg_catalog.pg_encoding_to_char(d.encoding) AS encoding
            FROM pg_catalog.pg_database d ORDER BY 1"""
        )

    def clusters(self) -> Table:
        return Table(())

    def roles(self) -> Table:
        return self._query("SELECT rolname AS name FROM pg_catalog.pg_roles WHERE rolname !~ '^pg_' ORDER BY 1")

    def functions(self, *, system: bool) -> list[FunctionInfo]:
        rows = self._query(
            f"""
            SELECT n.nspname, p.proname, pg_catalog.pg_get_function_result(p.oid),
                   pg_catalog.pg_get_function_arguments(p.oid),
                   CASE p.prokind WHEN 'a' THEN 'agg' WHEN 'w' THEN 'window' WHEN 'p' THEN 'proc' ELSE 'func' END
            FROM pg_catalog.pg_proc p
            JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
            WHERE {"n.nspname <> 'information_schema'" if system else _SYSTEM} ORDER BY 1, 2, 4"""
        ).rows
        return [FunctionInfo(*(value or "" for value in row)) for row in rows]


def _oid(relation: Relation) -> str:
    qualified = f"{quote_ident(relation.schema)}.{quote_ident(relation.name)}"
    return f"{quote_literal(qualified)}::pg_catalog.regclass"
