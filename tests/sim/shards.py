"""Shards of a simulation: a dictionary in place of storage, with events that are delivered when the simulation says so."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable

from compute.runtime.storage_link import OnAppended, OnFailed, OnUpdates
from mzlite.repr.timestamp import Frontier, Timestamp, frontier_le
from mzlite.repr.updates import Updates, concat_updates


class SimShard:
    def __init__(self) -> None:
        self.upper: Frontier = 0
        self.since: Timestamp = 0
        self.parts: list[Updates] = []
        self.readers: dict[int, tuple[SimStorage, OnUpdates]] = {}


class SimShards:
    """All shards; survives the death of workers."""

    def __init__(self) -> None:
        self.shards: dict[str, SimShard] = {}
        self.ids = itertools.count(1)
        self.on_upper: Callable[[str, Frontier], None] = lambda shard, upper: None

    def shard(self, name: str) -> SimShard:
        return self.shards.setdefault(name, SimShard())

    def append(self, name: str, lower: Frontier, upper: Frontier, updates: Updates | None) -> bool:
        shard = self.shard(name)
        if shard.upper != lower or not frontier_le(lower, upper):
            return False
        if updates is not None and len(updates):
            shard.parts.append(updates)
        shard.upper = upper
        for reader, (storage, on_updates) in list(shard.readers.items()):
            parts = [updates] if updates is not None and len(updates) else []
            storage.deliver(reader, on_updates, parts, upper)
        self.on_upper(name, upper)
        return True


class SimStorage:
    """One worker's link: a queue of events."""

    def __init__(self, shards: SimShards) -> None:
        self._shards = shards
        self._events: deque[Callable[[], None]] = deque()
        self._open: dict[int, str] = {}
        self._staged: dict[int, list[Updates]] = {}

    def open(
        self,
        shard: str,
        as_of: Timestamp,
        on_updates: OnUpdates,
        on_errors: OnUpdates | None = None,
        on_failed: OnFailed | None = None,
        any_since: bool = False,
    ) -> int:
        reader = next(self._shards.ids)
        state = self._shards.shard(shard)
        if as_of < state.since and not any_since:
            assert on_failed is not None
            self._events.append(lambda: on_failed(f"shard {shard} read at {as_of}, but its since is {state.since}"))
            return reader
        self._open[reader] = shard
        state.readers[reader] = (self, on_updates)
        self.deliver(reader, on_updates, list(state.parts), state.upper)
        return reader

    def close(self, reader: int) -> None:
        shard = self._open.pop(reader, None)
        if shard is not None:
            self._shards.shard(shard).readers.pop(reader, None)

    def append(
        self,
        shard: str,
        lower: Timestamp,
        upper: Frontier,
        updates: Updates | None,
        on_appended: OnAppended,
        errs: Updates | None = None,
        request: int | None = None,
    ) -> None:
        assert errs is None, "no errors in the simulation"
        staged = self._staged.pop(request, []) if request is not None else []
        if staged:
            updates = concat_updates([*staged, *([updates] if updates is not None else [])])

        def run() -> None:
            done = self._shards.append(shard, lower, upper, updates)
            now = self._shards.shard(shard).upper
            self._events.append(lambda: on_appended(done, now))

        self._events.append(run)

    def begin_append(self) -> int:
        return next(self._shards.ids)

    def stage(self, request: int, updates: Updates) -> None:
        self._staged.setdefault(request, []).append(updates)

    def deliver(self, reader: int, on_updates: OnUpdates, parts: list[Updates], upper: Frontier) -> None:
        self._events.append(lambda: on_updates(parts, upper) if reader in self._open else None)

    @property
    def pending(self) -> int:
        return len(self._events)

    @property
    def open_count(self) -> int:
        return len(self._open)

    def step(self) -> bool:
        """Deliver one event."""
        if not self._events:
            return False
        self._events.popleft()()
        return True

    def kill(self) -> None:
        for reader in list(self._open):
            self.close(reader)
        self._events.clear()
