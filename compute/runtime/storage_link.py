"""StorageLink: what a worker asks of storage. Shards in as snapshots and then updates, sink batches out.

The interface keeps sockets out of the worker: a process implements it over the shard server's socket, a simulation and
unit tests over a dictionary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from mzlite.repr.timestamp import Frontier, Timestamp
from mzlite.repr.updates import Updates

OnUpdates = Callable[[Sequence[Updates], Frontier], None]
"""Updates with times before the frontier (the new upper), none of them given before. First the snapshot, in parts."""

OnAppended = Callable[[bool, Frontier], None]
"""(done, the shard's upper now): not done means that `lower` was not the upper."""


class StorageLink(Protocol):
    def open(self, shard: str, as_of: Timestamp, on_updates: OnUpdates) -> int:
        """Read a shard from its contents at as_of on. Calls back only from the run loop, never from inside open."""

    def close(self, reader: int) -> None:
        """No more calls for it. Unknown readers are ignored."""

    def append(self, shard: str, lower: Timestamp, upper: Frontier, updates: Updates | None, on_appended: OnAppended) -> None:
        """Compare-and-append to a materialized view's shard."""
