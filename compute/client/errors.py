"""What a call of the controller can refuse. The adapter turns these into SQL errors; none is a user's mistake by itself."""

from __future__ import annotations

from mzlite.repr.ids import GlobalId
from mzlite.repr.timestamp import Frontier, Timestamp


class ComputeError(Exception):
    """Base of the controller's refusals."""


class ClusterMissing(ComputeError):
    def __init__(self, cluster: str) -> None:
        super().__init__(f"cluster {cluster} does not exist")


class ReplicaMissing(ComputeError):
    def __init__(self, replica: str) -> None:
        super().__init__(f"replica {replica} does not exist")


class CollectionMissing(ComputeError):
    def __init__(self, id: GlobalId) -> None:
        super().__init__(f"collection {id} does not exist")
        self.id = id


class ReadHoldInsufficient(ComputeError):
    """A read at `time` was asked for where the collection is readable only from `since` on (None: not at all)."""

    def __init__(self, id: GlobalId, since: Frontier, time: Timestamp) -> None:
        super().__init__(f"collection {id} is readable from {since}, not at {time}")
        self.id = id
        self.since = since
        self.time = time
