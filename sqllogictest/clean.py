"""The state that every file starts from on a server of Materialize's dialect.

Everything users can make is dropped (databases, clusters, roles), system parameters return to their defaults, and then
what the files take for granted is made again: the database `materialize`, the cluster `quickstart` with one replica `r1`,
the privileges of the default user, and the few parameters the corpus was written under.

The cluster is kept when it already is what is wanted: starting a replica is the slow part.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqllogictest.session import ConnectionLost, ServerError, Session, rows_of

SYSTEM_USER = "mz_system"
SYSTEM_USERS = frozenset({"mz_system", "mz_support"})

PARAMETERS = (
    "ALTER SYSTEM SET max_tables = 100",
    "ALTER SYSTEM SET enable_reduce_mfp_fusion = on",
    "ALTER SYSTEM SET unsafe_enable_unsafe_functions = on",
    "ALTER SYSTEM SET enable_logical_compaction_window = on",
)

GRANTS = (
    "GRANT USAGE ON DATABASE materialize TO PUBLIC",
    "GRANT CREATE ON DATABASE materialize TO materialize",
    "GRANT CREATE ON SCHEMA materialize.public TO materialize",
    "GRANT USAGE ON SCHEMA materialize.public TO PUBLIC",
    "GRANT USAGE ON CLUSTER quickstart TO PUBLIC",
    "GRANT CREATE ON CLUSTER quickstart TO materialize",
)


class CleanError(Exception):
    """The server would not be reset."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The part of a configuration that is set in SQL. interactive: None leaves the server's default."""

    workers: int = 2
    interactive: bool | None = None

    @property
    def size(self) -> str:
        return f"scale=1,workers={self.workers}"


def is_materialize(session: Session) -> bool:
    try:
        session.extended("SELECT mz_version()")
    except ServerError:
        return False
    return True


def run(session: Session, statements: Iterable[str]) -> None:
    """Each statement on its own. Raises `CleanError` at the first that fails."""
    for sql in statements:
        try:
            session.extended(sql)
        except (ServerError, ConnectionLost) as e:
            raise CleanError(f"{sql}: {e}") from None


def attempt(session: Session, statements: Iterable[str]) -> None:
    """Each statement on its own, going on past those that the server does not know or has no object for."""
    for sql in statements:
        try:
            session.extended(sql)
        except ServerError:
            continue
        except ConnectionLost as e:
            raise CleanError(f"{sql}: {e}") from None


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _names(session: Session, sql: str) -> list[list[str]]:
    try:
        return [list(row) for row in rows_of(session, sql)]
    except (ServerError, ConnectionLost) as e:
        raise CleanError(f"{sql}: {e}") from None


def materialize(session: Session, settings: Settings, *, provisioned: bool = True) -> None:
    """Drop and rebuild. `session` is mz_system's. Raises `CleanError`.

    provisioned: the cluster there is was made under these settings; a changed flag only reaches a new replica. A server
    that is not has just started: its database is new already (and its ids are those that files expect).
    """
    attempt(session, ["ROLLBACK", "SET cluster = mz_catalog_server", "ALTER SYSTEM RESET ALL"])
    if settings.interactive is not None:
        value = "on" if settings.interactive else "off"
        run(session, [f"ALTER SYSTEM SET enable_compute_interactive_runtime = {value}"])
    if not provisioned:
        size = f"SIZE '{settings.size}', REPLICATION FACTOR 1"
        run(session, ["ALTER CLUSTER quickstart SET (REPLICATION FACTOR 0)", f"ALTER CLUSTER quickstart SET ({size})"])
        attempt(session, PARAMETERS)
        attempt(session, GRANTS)
        return
    databases = _names(session, "SELECT name FROM mz_databases")
    run(session, [f"DROP DATABASE {quoted(name)} CASCADE" for (name,) in databases])
    keep = _drop_clusters(session, settings, provisioned or settings.interactive is None)
    roles = _names(session, "SELECT name FROM mz_roles WHERE id LIKE 'u%' AND name <> 'materialize'")
    attempt(session, [f"DROP ROLE {quoted(name)}" for (name,) in roles])
    run(session, ["CREATE DATABASE materialize"])
    if not keep:
        run(session, [f"CREATE CLUSTER quickstart REPLICAS (r1 (SIZE '{settings.size}'))"])
    attempt(session, PARAMETERS)
    attempt(session, GRANTS)


def _drop_clusters(session: Session, settings: Settings, may_keep: bool) -> bool:
    """Drop user clusters; whether `quickstart` stays because it is as wanted."""
    found = _names(
        session,
        "SELECT c.name, r.name, r.size FROM mz_clusters c LEFT JOIN mz_cluster_replicas r ON r.cluster_id = c.id"
        " WHERE c.id LIKE 'u%'",
    )
    keep = may_keep and [row[1:] for row in found if row[0] == "quickstart"] == [["r1", settings.size]]
    names = sorted({row[0] for row in found} - ({"quickstart"} if keep else set()))
    run(session, [f"DROP CLUSTER {quoted(name)} CASCADE" for name in names])
    return keep
