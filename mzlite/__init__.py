"""mzlite: a mini Materialize in Python.

A SQL database whose views stay fresh incrementally. `mzlite.open()` gives an embedded database; see docs/architecture.md
for how it works, bottom up: `mzlite.repr` (vocabulary), `mzlite.expr` (expressions), `mzlite.storage`, `compute` (the
engine and its two runtimes), `adapter` (SQL), and the front ends here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mzlite.api import Database, open

__all__ = ["Database", "open"]


def __getattr__(name: str) -> Any:
    # Late, so that importing a layer below does not import the front door.
    if name in __all__:
        from mzlite import api

        return getattr(api, name)
    raise AttributeError(f"module 'mzlite' has no attribute {name!r}")
