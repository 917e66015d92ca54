"""What each catalog revision changed, so that plans outlive DDL that does not concern them.

A plan made at revision r is still right at revision s if none of the changes between them

    touched anything it reads (the item itself, an index on it), or
    made or dropped an item whose name stands in its text (it might resolve differently now), or
    changed what every plan may depend on: databases, schemas, clusters, system variables.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from adapter.catalog.objects import IndexDetails
from adapter.catalog.state import CatalogTransaction

KEPT = 1_000
_HARMLESS = ("alloc", "comment/", "role/", "item/")


@dataclass(frozen=True, slots=True)
class Change:
    """everything: no plan survives. touched: item ids. names: of items that are new, renamed or gone."""

    revision: int
    everything: bool
    touched: frozenset[str]
    names: tuple[str, ...]


class Revisions:
    def __init__(self) -> None:
        self._changes: deque[Change] = deque(maxlen=KEPT)

    def record(self, tx: CatalogTransaction) -> None:
        """A transaction became the current state."""
        ids = {i.id for i in (*tx.created, *tx.dropped)}
        ids |= {k.removeprefix("item/") for k in tx.changes if k.startswith("item/")}  # type: ignore[misc]
        touched: set[str] = set()
        names: list[str] = []
        for id in ids:
            touched.add(id)
            old, new = tx.base.items.get(id), tx.state.items.get(id)
            for item in (old, new):
                if item is not None and isinstance(item.details, IndexDetails):
                    touched.add(item.details.on_id)
            if new is None or old is None or old.name != new.name or old.schema_id != new.schema_id:
                names += [item.name.lower() for item in (old, new) if item is not None]
        everything = any(not k.startswith(_HARMLESS) for k in tx.changes)
        self._changes.append(Change(tx.state.revision, everything, frozenset(touched), tuple(names)))

    def survives(self, made_at: int, now: int, reads: frozenset[str], text: str) -> bool:
        """Is a plan of that text, over those items, made at revision made_at, right at revision now?"""
        if made_at == now:
            return True
        if not self._changes or self._changes[0].revision > made_at + 1:
            return False  # too long ago to know
        lowered = text.lower()
        for change in reversed(self._changes):
            if change.revision <= made_at:
                return True
            if change.everything or not change.touched.isdisjoint(reads):
                return False
            if any(name in lowered for name in change.names):
                return False
        return True
