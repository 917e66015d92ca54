"""ShardSocket: a worker's `StorageLink` over the shard server's socket."""

from __future__ import annotations

from compute.runtime.storage_link import OnAppended, OnFailed, OnUpdates
from compute.shared.link import LinkClosed
from mzlite.repr.timestamp import Frontier, Timestamp
from mzlite.repr.updates import Updates
from mzlite.storage.client import ShardClient


class ShardSocket:
    """path None: a worker without storage, for tests of everything else."""

    def __init__(self, path: str | None) -> None:
        self._client = ShardClient.connect(path) if path is not None else None

    @property
    def connected(self) -> bool:
        return self._client is not None

    def fileno(self) -> int:
        return self._connected().fileno()

    @property
    def backlogged(self) -> bool:
        """Requests are small and the server always reads: nothing is ever queued here."""
        return False

    def flush(self) -> None:
        return

    def dispatch(self) -> None:
        """Read what arrived; the callbacks run inside."""
        client = self._connected()
        client.poll()
        if client.closed:
            raise LinkClosed

    def open(
        self,
        shard: str,
        as_of: Timestamp,
        on_updates: OnUpdates,
        on_errors: OnUpdates | None = None,
        on_failed: OnFailed | None = None,
        any_since: bool = False,
    ) -> int:
        return self._connected().open(shard, as_of, on_updates, on_errors, on_failed, any_since)

    def close(self, reader: int) -> None:
        self._connected().close(reader)

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
        self._connected().append(shard, lower, upper, updates, on_appended, errs, request)

    def begin_append(self) -> int:
        return self._connected().begin_append()

    def stage(self, request: int, updates: Updates) -> None:
        self._connected().stage(request, updates)

    def _connected(self) -> ShardClient:
        assert self._client is not None, "this worker has no storage"
        return self._client
