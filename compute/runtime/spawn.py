"""What the orchestrator asks of the fork server. Descriptors travel beside the request, in a fixed order.

SpawnRequest   control socket, [registry socket], exchange sockets to the other workers by ascending ordinal
KillRequest    no descriptors
"""

from __future__ import annotations

import msgspec


class SpawnRequest(msgspec.Struct, frozen=True, tag="spawn"):
    """One worker process. key: its replica, for KillRequest. role: a `placement.Role` value."""

    key: int
    name: str
    role: str
    worker: int
    workers: int
    shard_socket: str | None
    has_registry: bool

    @property
    def descriptor_count(self) -> int:
        return 1 + int(self.has_registry) + self.workers - 1


class KillRequest(msgspec.Struct, frozen=True, tag="kill"):
    """End every worker of the replica. Unknown keys are ignored."""

    key: int


encode_request = msgspec.msgpack.Encoder().encode
decode_request = msgspec.msgpack.Decoder(SpawnRequest | KillRequest).decode
