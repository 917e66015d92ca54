"""A portal's rows, read in pieces (Execute with a row limit, as JDBC's setFetchSize does).

A portal that has delivered its last row within the limit is still suspended: only the next fetch learns that nothing is
left. An exhausted portal answers no rows for ever; it is never run again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from adapter.coord.result import Batch, Rows
from mzlite.pgwire.rows import data_rows


class PortalRows:
    """sent: rows handed out so far. done: a fetch has met the end. live: batches arrive over time (flush each)."""

    def __init__(self, result: Rows, formats: tuple[int, ...]) -> None:
        self._result = result
        self._formats = formats
        self._next = 0
        self._left: Batch | None = None
        self.live = not isinstance(result.batches, Sequence)
        self.sent = 0
        self.done = False

    def command_tag(self, count: int) -> str:
        return self._result.command_tag(count)

    async def close(self) -> None:
        """End the statement behind rows that still arrive."""
        self.done = True
        batches = self._result.batches
        if not isinstance(batches, Sequence):
            await batches.aclose()  # type: ignore[attr-defined]

    async def _batch(self) -> Batch | None:
        batches = self._result.batches
        if isinstance(batches, Sequence):
            if self._next == len(batches):
                return None
            self._next += 1
            return batches[self._next - 1]
        return await anext(batches, None)

    async def fetch(self, limit: int) -> AsyncIterator[bytes]:
        """DataRow messages of up to `limit` rows (0 = all)."""
        remaining = limit if limit > 0 else 2**62
        while remaining > 0 and not self.done:
            batch = self._left or await self._batch()
            self._left = None
            if batch is None:
                self.done = True
                return
            n = min(batch.n, remaining)
            if n < batch.n:
                self._left = batch.slice(n, batch.n)
                batch = batch.slice(0, n)
            remaining -= n
            self.sent += n
            for chunk in data_rows(self._result.desc, batch.columns, n, self._formats):
                yield chunk
