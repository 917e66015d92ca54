"""How the coordinator meets storage: blocking calls become awaitable, and views' progress comes to the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from mzlite.repr.timestamp import Frontier, Timestamp
from mzlite.repr.updates import Updates
from mzlite.storage.model import Part
from mzlite.storage.storage import Storage


async def durable(future: Future[None]) -> None:
    """Wait for storage; costs nothing when it is done already (in memory)."""
    if not future.done():
        await asyncio.wrap_future(future)
    else:
        future.result()


class StorageLog:
    """Storage as group commit sees it."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    async def commit(self, writes: Sequence[tuple[str, Updates]], ts: Timestamp, advance_to: Timestamp) -> None:
        await durable(self._storage.commit_begin(writes, ts, advance_to))


class ViewProgress:
    """A storage listener: uppers of materialized views' shards, delivered on the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, moved: Callable[[str, Frontier], None]) -> None:
        self._loop = loop
        self._moved = moved

    def committed(self, writes: Sequence[tuple[str, Part]], upper: Timestamp) -> None:
        """Tables: the coordinator knows, it commits."""

    def appended(self, shard: str, parts: Sequence[Part], upper: Frontier) -> None:
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is self._loop:
            self._moved(shard, upper)
        else:
            self._loop.call_soon_threadsafe(self._moved, shard, upper)

    def dropped(self, shard: str) -> None:
        """The coordinator dropped it."""
