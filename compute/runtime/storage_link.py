"""StorageLink: what a worker asks of storage. Shards in as snapshots and then updates, sink batches out.

The interface keeps sockets out of the worker: a process implements it over the shard server's socket, a simulation and
unit tests over a dictionary.
"""

from __future__ import annotations

from typing import Protocol

from mzlite.repr.timestamp import Frontier, Timestamp
from mzlite.repr.updates import Updates
from mzlite.storage.client import OnAppended, OnFailed, OnUpdates

__all__ = ["OnAppended", "OnFailed", "OnUpdates", "StorageLink"]


class StorageLink(Protocol):
    """on_updates(parts, upper): updates before upper that were not given before; first the snapshot. on_errors: the same
    for error rows, called before on_updates when there are any. on_appended(done, upper): not done means that `lower`
    was not the shard's upper."""

    def open(
        self,
        shard: str,
        as_of: Timestamp,
        on_updates: OnUpdates,
        on_errors: OnUpdates | None = None,
        on_failed: OnFailed | None = None,
        any_since: bool = False,
    ) -> int:
        """Read a shard from its contents at as_of on. Calls back only from the run loop, never from inside open.

        any_since: as it stands, however far it has been compacted beyond as_of; otherwise that is a failure.
        """

    def close(self, reader: int) -> None:
        """No more calls for it. Unknown readers are ignored."""

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
        """Compare-and-append to a materialized view's shard. request: of the pieces staged for it."""

    def begin_append(self) -> int:
        """A request whose pieces are sent ahead, so that no step of a large append is long."""

    def stage(self, request: int, updates: Updates) -> None:
        """One piece; nobody sees it before its append is done."""
