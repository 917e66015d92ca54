"""The catalog of a new database: what exists before anybody creates anything."""

from __future__ import annotations

from adapter.catalog.objects import Cluster, Database, Replica, Role, Schema
from adapter.catalog.state import AMBIENT_SCHEMAS, DEFAULT_ROLE, MZ_SUPPORT_ROLE, MZ_SYSTEM_ROLE, CatalogTransaction

DEFAULT_DATABASE = "materialize"
DEFAULT_CLUSTER = "quickstart"
SYSTEM_CLUSTERS = (("s1", "mz_system"), ("s2", "mz_catalog_server"), ("s3", "mz_probe"), ("s4", "mz_support"))
CATALOG_SERVER = "s2"


def parse_workers(size: str) -> int | None:
    """Workers of a replica size: `scale=1,workers=4`, or a bare number; None for an unknown size."""
    if size.isdigit():
        return int(size) or None
    options = dict(p.partition("=")[::2] for p in size.replace(" ", "").split(","))
    scale, workers = options.get("scale", "1"), options.get("workers", "1")
    if not set(options) <= {"scale", "workers", "mem", "legacy"} or not (scale.isdigit() and workers.isdigit()):
        return None
    return int(scale) * int(workers) or None


def system_objects(tx: CatalogTransaction) -> None:
    """Ambient schemas, system roles and clusters: the same in every database, not stored."""
    for id, name in AMBIENT_SCHEMAS:
        tx.put_schema(Schema(id, 16_600 + int(id[1:]), None, name, MZ_SYSTEM_ROLE))
    for id, name in ((MZ_SYSTEM_ROLE, "mz_system"), (MZ_SUPPORT_ROLE, "mz_support")):
        tx.put_role(Role(id, 16_650 + int(id[1:]), name, attributes=(("superuser", id == MZ_SYSTEM_ROLE),)))
    for id, name in SYSTEM_CLUSTERS:
        tx.put_cluster(Cluster(id, name, MZ_SYSTEM_ROLE, "scale=1,workers=1", 0))


def new_database(tx: CatalogTransaction, size: str, interactive: bool) -> None:
    """The default database, schema, role and cluster of a fresh environment. Their ids are below the allocators' start."""
    tx.put_role(Role(DEFAULT_ROLE, tx.oid(), DEFAULT_DATABASE))
    tx.put_database(Database("u1", tx.oid(), DEFAULT_DATABASE, MZ_SYSTEM_ROLE))
    tx.put_schema(Schema("u3", tx.oid(), "u1", "public", MZ_SYSTEM_ROLE))
    workers = parse_workers(size)
    assert workers is not None, size
    replica = Replica("u1", "u1", "r1", size, workers, interactive, MZ_SYSTEM_ROLE)
    tx.put_cluster(Cluster("u1", DEFAULT_CLUSTER, MZ_SYSTEM_ROLE, size, 1, (replica,)))
