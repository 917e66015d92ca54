"""One server for the tests of the wire."""

from __future__ import annotations

from tests.support.mzlite_server import mz, mzlite_server  # noqa: F401
from tests.support.postgres import postgres_dsn, postgres_server  # noqa: F401
