"""FrontierWaiters: futures that end when a collection's upper passes a time."""

from __future__ import annotations

import asyncio
import heapq
import itertools

from mzlite.repr.ids import GlobalId
from mzlite.repr.timestamp import Frontier, Timestamp, less_equal

_Waiter = tuple[Timestamp, int, "asyncio.Future[None]"]


class FrontierWaiters:
    """Per collection a heap by time; the sequence number keeps futures out of comparisons."""

    def __init__(self) -> None:
        self._heaps: dict[GlobalId, list[_Waiter]] = {}
        self._sequence = itertools.count()

    def add(self, id: GlobalId, ts: Timestamp, upper: Frontier) -> asyncio.Future[None]:
        """A future for `upper > ts`, already done if that holds now."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if less_equal(upper, ts):
            heapq.heappush(self._heaps.setdefault(id, []), (ts, next(self._sequence), future))
        else:
            future.set_result(None)
        return future

    def advance(self, id: GlobalId, upper: Frontier) -> None:
        heap = self._heaps.get(id)
        if heap is None:
            return
        while heap and not less_equal(upper, heap[0][0]):
            future = heapq.heappop(heap)[2]
            if not future.done():
                future.set_result(None)
        if not heap:
            del self._heaps[id]

    def drop(self, id: GlobalId) -> None:
        for _, _, future in self._heaps.pop(id, ()):
            future.cancel()

    def cancel_all(self) -> None:
        for id in list(self._heaps):
            self.drop(id)
