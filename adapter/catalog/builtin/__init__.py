"""Builtin relations: the catalog describing itself.

relation              what a builtin is, and the registry      <- start here
mz_catalog, mz_internal, pg_catalog, information_schema        one schema each
describe, texts, types, functions                              facts they share
rows                  a builtin's rows as columns, cached by catalog revision
"""

from adapter.catalog.builtin import information_schema, introspection, mz_catalog, mz_internal, pg_catalog

__all__ = ["information_schema", "introspection", "mz_catalog", "mz_internal", "pg_catalog"]
