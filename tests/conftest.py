"""For every test: plan checks are on, and hypothesis sets no deadline (a shared machine may be slow for a moment)."""

from __future__ import annotations

import os

from hypothesis import settings

os.environ.setdefault("MZLITE_CHECKS", "1")
settings.register_profile("project", deadline=None)
settings.load_profile("project")
