"""The catalog: what exists, durably, and how it describes itself.

objects       immutable records of databases, schemas, items, clusters, roles
state         one revision, and the transaction that makes the next
durable       records as key/value pairs
view          the planner's `CatalogView` over a revision
initial       what a new database holds
builtin/      mz_catalog, pg_catalog, … computed from a revision
"""
