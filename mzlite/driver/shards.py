"""Shards: the driver's storage, in memory, served to the replica over the same socket as a database's."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from mzlite.driver.schema import Schema
from mzlite.driver.spec import SpecError
from mzlite.repr.updates import concat_updates, updates_from_rows
from mzlite.storage.server import ShardServer
from mzlite.storage.storage import Storage


class Shards:
    """Shards come into being when they are first named."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory()
        self.socket_path = str(Path(self._directory.name) / "shards")
        self._storage = Storage.open(None)
        self._server = ShardServer(self._storage)
        self._schemas: dict[str, Schema] = {}

    async def start(self) -> None:
        await self._server.start(self.socket_path)

    async def close(self) -> None:
        await self._server.stop()
        self._storage.close()
        self._directory.cleanup()

    def ensure(self, shard: str, schema: Schema) -> None:
        if shard not in self._schemas:
            self._schemas[shard] = schema
            self._storage.create_shard(shard, schema.types, kind="mv")

    def write(self, shard: str, schema: Schema, rows: list[tuple[tuple[Any, ...], int]], upper: int) -> None:
        """Append (row, time) pairs, complete before `upper`."""
        self.ensure(shard, schema)
        lower = self._storage.upper(shard)
        first = min((time for _, time in rows), default=upper - 1)
        if lower is None or first < lower:
            raise SpecError(f"shard {shard} is already complete before {lower}, cannot write at {first}")
        by_time: dict[int, list[tuple[Any, ...]]] = {}
        for row, time in rows:
            by_time.setdefault(time, []).append(row)
        parts = [updates_from_rows(schema.types, group, time, 1) for time, group in by_time.items()]
        done, now = self._storage.append(shard, lower, upper, concat_updates(parts) if parts else None)
        assert done, (shard, lower, now)
