"""Pins: holds that keep what refreshes rarely readable now.

A materialized view with a refresh schedule has an upper at its next refresh, hours ahead. `since` trails `upper`, so
without more it would run ahead of the clock, and a read together with anything fresh would wait for it. A pin holds it,
and everything computed from it, at one second behind the oracle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.catalog.objects import Item, MaterializedViewDetails
from compute.client.holds import ReadHold
from mzlite.repr.ids import GlobalId
from mzlite.repr.timestamp import Timestamp

if TYPE_CHECKING:
    from adapter.coord.coordinator import Coordinator

LAG_MS = 1000


class Pins:
    def __init__(self, coordinator: Coordinator) -> None:
        self._c = coordinator
        self._holds: dict[GlobalId, ReadHold] = {}

    def needed(self, item: Item) -> bool:
        """Does a refresh schedule stand anywhere below the item, itself included?"""
        seen: set[GlobalId] = set()
        stack = [item]
        while stack:
            found = stack.pop()
            if found.id in seen:
                continue
            seen.add(found.id)
            details = found.details
            if isinstance(details, MaterializedViewDetails) and (details.refresh_at or details.refresh_every):
                return True
            stack += [self._c.state.items[i] for i in found.depends_on if i in self._c.state.items]
        return False

    def pin(self, item: Item) -> None:
        """Hold a collection from its since on; right after it was made known to the controller."""
        if item.id not in self._holds:
            self._holds[item.id] = self._c.controller.acquire_hold(item.id)

    def unpin(self, id: GlobalId) -> None:
        hold = self._holds.pop(id, None)
        if hold is not None:
            hold.release()

    def advance(self, now: Timestamp) -> None:
        for hold in self._holds.values():
            hold.downgrade(max(0, now - LAG_MS))
