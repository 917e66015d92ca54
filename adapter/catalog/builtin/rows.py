"""A builtin relation's rows as columns. Cached while the catalog revision (and the database, where it matters) stays."""

from __future__ import annotations

from adapter.catalog.builtin.relation import BUILTINS, Context, RuntimeFacts
from adapter.catalog.state import CatalogState
from mzlite.repr.column import Column
from mzlite.repr.datum import column_from_datums
from mzlite.repr.ids import GlobalId

Rows = tuple[tuple[Column, ...], int]
_KEPT_REVISIONS = 2


class BuiltinRows:
    """columns(id, …) -> (columns, row count)."""

    def __init__(self) -> None:
        self._cache: dict[tuple[GlobalId, int, str], Rows] = {}
        self._contexts: dict[tuple[int, str], Context] = {}

    def columns(self, id: GlobalId, state: CatalogState, database: str, runtime: RuntimeFacts | None) -> Rows:
        builtin = BUILTINS[id]
        key = (id, state.revision, database if builtin.per_database else "")
        if not builtin.live:
            cached = self._cache.get(key)
            if cached is not None:
                return cached
        rows = list(builtin.rows(self._context(state, database, runtime)))
        types = [c.scalar for c in builtin.desc.typ.columns]
        columns = tuple(column_from_datums(typ, [row[i] for row in rows]) for i, typ in enumerate(types))
        made = (columns, len(rows))
        if not builtin.live:
            self._forget_before(state.revision - _KEPT_REVISIONS)
            self._cache[key] = made
        return made

    def _context(self, state: CatalogState, database: str, runtime: RuntimeFacts | None) -> Context:
        key = (state.revision, database)
        context = self._contexts.get(key)
        if context is None:
            context = self._contexts[key] = Context(state, database, runtime)
        return Context(state, database, runtime, context.cache)

    def _forget_before(self, revision: int) -> None:
        for key in [k for k in self._cache if k[1] < revision]:
            del self._cache[key]
        for context_key in [k for k in self._contexts if k[0] < revision]:
            del self._contexts[context_key]
