"""Group commit: one thread, one SQLite transaction and one fsync for all operations that wait.

    submit(op) ──┐
    submit(op) ──┼─▶ queue ─▶ BEGIN; every op's `write`; COMMIT (fsync) ─▶ every op's `applied`, then its future
    submit(op) ──┘

While one transaction syncs, the next group gathers. Lazy operations (a view's progress, compaction) ride along with
others or wait a little, so that they cost no fsync of their own. A failing transaction is the end of the directory's
service: every later operation gets the same error, because memory and disk may no longer agree.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from mzlite.storage.disk import Disk
from mzlite.storage.model import StorageError

log = logging.getLogger(__name__)

_LAZY_S = 0.05


class Operation:
    """write: statements, run by the committer inside its transaction. applied: run after it is durable, in order."""

    __slots__ = ("applied", "done", "lazy", "write")

    def __init__(
        self, write: Callable[[Disk], None], applied: Callable[[], None] | None = None, lazy: bool = False
    ) -> None:
        self.write = write
        self.applied = applied
        self.lazy = lazy
        self.done: Future[None] = Future()


class Committer:
    """The thread. transactions: how many were committed (a counter for tests and metrics)."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._queue: queue.SimpleQueue[Operation | None] = queue.SimpleQueue()
        self._failure: StorageError | None = None
        self.transactions = 0
        self._thread = threading.Thread(target=self._run, name="mzlite-committer", daemon=True)
        self._thread.start()

    def submit(self, op: Operation) -> Future[None]:
        self._queue.put(op)
        return op.done

    def close(self) -> None:
        """Finish what was submitted, then end the thread."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        stop = False
        while not stop:
            group: list[Operation] = []
            op = self._queue.get()
            if op is None:
                break
            group.append(op)
            deadline = time.monotonic() + _LAZY_S
            while True:
                lazy = all(o.lazy for o in group)
                try:
                    wait = max(deadline - time.monotonic(), 0) if lazy else 0
                    op = self._queue.get(timeout=wait) if wait else self._queue.get_nowait()
                except queue.Empty:
                    break
                if op is None:
                    stop = True
                    break
                group.append(op)
            self._commit(group)

    def _commit(self, group: list[Operation]) -> None:
        if self._failure is None:
            try:
                self._disk.begin()
                for op in group:
                    op.write(self._disk)
                self._disk.commit()
                self.transactions += 1
            except Exception as e:  # whatever it was, the directory's state is in doubt: stop serving it
                self._disk.rollback()
                self._failure = StorageError(f"writing to the data directory failed: {e}")
                log.exception("writing to the data directory failed")
        for op in group:
            if self._failure is None and op.applied is not None:
                try:
                    op.applied()
                except Exception as e:
                    self._failure = StorageError(f"applying a write failed: {e}")
                    log.exception("applying a write failed")
            if self._failure is not None:
                op.done.set_exception(self._failure)
            else:
                op.done.set_result(None)
