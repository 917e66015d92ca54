"""The compaction thread: merges parts that `Shard.merge_candidates` names, one shard at a time.

It starts with the first work and ends with storage. Merging happens outside storage's lock, on immutable parts; only
the swap is inside. It also persists sinces, in batches: they move every second and nothing depends on the last one.
"""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING

from mzlite.storage.shard import Shard, merge_parts

if TYPE_CHECKING:
    from mzlite.storage.storage import Storage

_SINCE_S = 5.0


class Compactor:
    """merges: how many were done (a counter for tests and metrics)."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._queue: queue.SimpleQueue[Shard | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._sinces: set[str] = set()
        self._closed = False
        self.merges = 0

    def consider(self, shard: Shard) -> None:
        """Queue the shard if it has parts to merge. Called under storage's lock; cheap."""
        if shard.compacting or self._closed or not shard.merge_candidates():
            return
        shard.compacting = True
        self._queue.put(shard)
        self._start()

    def since_moved(self, id: str) -> None:
        self._sinces.add(id)
        self._start()

    def _start(self) -> None:
        if self._thread is None and not self._closed:
            self._thread = threading.Thread(target=self._run, name="mzlite-compactor", daemon=True)
            self._thread.start()

    def close(self) -> None:
        self._closed = True
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()

    def _run(self) -> None:
        while True:
            try:
                shard = self._queue.get(timeout=_SINCE_S)
            except queue.Empty:
                self._persist_sinces()
                continue
            if shard is None:
                return
            self._compact(shard)

    def _compact(self, shard: Shard) -> None:
        while not self._closed:
            parts, since = self._storage.parts_to_merge(shard)
            if not parts:
                break
            oks, errs = merge_parts(parts, since)
            self._storage.merged(shard, parts, oks, errs)
            self.merges += 1
        shard.compacting = False

    def _persist_sinces(self) -> None:
        if self._sinces:
            sinces, self._sinces = self._sinces, set()
            self._storage.persist_sinces(list(sinces))
