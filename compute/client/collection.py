"""ComputeCollection: what the controller knows of one export of a dataflow: an index, a sink, or a log index.

Two kinds of holds protect its inputs. The collection's own stay at its since, so that a new replica can be built from
history at any moment. A replica's follow what that replica has output, so that a slow one still finds what it reads.
"""

from __future__ import annotations

from collections.abc import Callable

from compute.client.holds import HoldSet, ReadHold
from compute.protocol.response import SubscribeBatch, SubscribeDropped
from mzlite.repr.ids import GlobalId, ReplicaId
from mzlite.repr.timestamp import Frontier, Timestamp

SubscribeCallback = Callable[[SubscribeBatch | SubscribeDropped], None]


class ComputeCollection:
    """lag_ms: since trails upper by it (None: since stays). upper: of the most advanced replica, at least as_of.

    awaiting: replicas that still run it after the drop; it is forgotten when none is left.
    """

    def __init__(
        self,
        id: GlobalId,
        as_of: Timestamp,
        *,
        lag_ms: int | None,
        inputs: tuple[GlobalId, ...],
        input_holds: list[ReadHold],
        on_since: Callable[[Frontier], None],
        is_subscribe: bool = False,
        is_log: bool = False,
        target: ReplicaId | None = None,
    ) -> None:
        self.id = id
        self.as_of = as_of
        self.lag_ms = lag_ms
        self.inputs = inputs
        self.input_holds = input_holds
        self.holds = HoldSet(id, on_since)
        self.policy = self.holds.acquire(as_of)
        self.upper: Frontier = as_of
        self.replica_uppers: dict[ReplicaId, Frontier] = {}
        self.replica_holds: dict[ReplicaId, list[ReadHold]] = {}
        self.awaiting: set[ReplicaId] = set()
        self.is_subscribe = is_subscribe
        self.is_log = is_log
        self.target = target
        self.scheduled = False
        self.dropped = False
        self.subscribe_callback: SubscribeCallback | None = None
        self.subscribe_error: bytes | None = None

    def apply_policy(self) -> None:
        """Let since follow upper. A complete collection (upper None) keeps its last since: it stays readable."""
        if self.lag_ms is not None and self.upper is not None and self.upper - self.lag_ms > self.as_of:
            self.policy.downgrade(self.upper - self.lag_ms)

    def hold_for_replica(self, replica: ReplicaId) -> None:
        """The replica is about to build it from the collection's since."""
        self.release_replica(replica)
        self.replica_holds[replica] = [h.clone() for h in self.input_holds if h.since is not None]

    def replica_advanced(self, replica: ReplicaId, upper: Frontier) -> None:
        """The replica has output everything before upper and reads its inputs no earlier than the time before."""
        if upper is None:
            self.release_replica(replica)
            return
        for hold in self.replica_holds.get(replica, ()):
            if upper > 0:
                hold.downgrade(upper - 1)

    def release_replica(self, replica: ReplicaId) -> None:
        for hold in self.replica_holds.pop(replica, ()):
            hold.release()

    def release_inputs(self) -> None:
        for hold in self.input_holds:
            hold.release()
        self.input_holds = []
