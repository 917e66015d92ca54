"""For every test: plan checks are on, and hypothesis sets no deadline (a shared machine may be slow for a moment)."""

from __future__ import annotations

import os

from hypothesis import settings

os.environ.setdefault("MZLITE_CHECKS", "1")
# Where a run decides whether a change lands, it must say the same of the same tree: examples are then derived from the test.
settings.register_profile("project", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("project")
