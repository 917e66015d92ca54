"""What the shell's tests share: a PostgreSQL server, where one is installed."""

from __future__ import annotations

from tests.support.postgres import postgres_dsn, postgres_server  # noqa: F401
