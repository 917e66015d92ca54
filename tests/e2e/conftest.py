"""Servers of the tests' own, and one to share."""

from __future__ import annotations

from tests.support.mzlite_server import mz, mzlite_server  # noqa: F401
