"""Durable shards, the transaction log, the oracle's bound, the catalog's records.

    commit(writes, ts) ─▶ committer thread ─▶ SQLite (one fsync a group) + Arrow IPC files ─▶ shards in memory ─▶ listeners
                                                                                                     │
    worker ─▶ ShardClient ═══ Unix socket, descriptors of memory files ═══ ShardServer ◀─────────────┘

Reading order: `model` (what a shard holds), `segment` (memory shared with workers), `shard` (one shard's parts and
their compaction), `arrowfile` and `disk` (the files), `committer` (group commit), `storage` (the interface), then
`frames`, `server`, `client` (the way to the workers).
"""

from mzlite.storage.client import ShardClient
from mzlite.storage.model import ShardWrite, StorageError
from mzlite.storage.server import ShardServer
from mzlite.storage.storage import Storage

__all__ = ["ShardClient", "ShardServer", "ShardWrite", "Storage", "StorageError"]
