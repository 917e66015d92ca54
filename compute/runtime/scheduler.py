"""Scheduler: which dataflow of this worker runs the next slice.

hot     up to date, and an input has moved       first: fresh data stays fresh
cold    hydrating                                 when nothing is hot, and every COLD_EVERY-th slice anyway
jobs    long writes of sinks, in slices           when nothing is hot
idle    ran lately: its traces may want merging   when there is nothing else to do
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from compute.runtime.hosted import HostedDataflow

COLD_EVERY = 16
BUILD_TURN_SLICES = 64
READ_TURN_SLICES = 4
_DONE = object()


class Scheduler:
    """turn_slices: how long one that hydrates keeps its turn. Finishing one after the other needs less memory than a
    slice of each in turn; but one that never ends must not keep the others waiting.

    Invariant: a dataflow is in at most one of hot and cold, and in `queued` exactly then (unless it was discarded).
    """

    def __init__(self, turn_slices: int) -> None:
        self.jobs: deque[Iterator[None]] = deque()
        self._turn_slices = turn_slices
        self._hot: deque[HostedDataflow] = deque()
        self._cold: deque[HostedDataflow] = deque()
        self._queued: set[HostedDataflow] = set()
        self._idle: deque[HostedDataflow] = deque()
        self._idle_set: set[HostedDataflow] = set()
        self._slices = 0

    def wake(self, hosted: HostedDataflow) -> None:
        """Something about the dataflow's inputs moved."""
        if not hosted.started or not hosted.needed or hosted.dataflow is None or hosted in self._queued:
            return
        self._queued.add(hosted)
        (self._hot if hosted.hydrated else self._cold).append(hosted)

    def again(self, hosted: HostedDataflow) -> None:
        """It ran a slice and has more to do."""
        hosted.turn_slices += 1
        if hosted.hydrated or hosted.turn_slices % self._turn_slices == 0:
            self.wake(hosted)
        elif hosted not in self._queued:
            self._queued.add(hosted)
            self._cold.appendleft(hosted)

    def rest(self, hosted: HostedDataflow) -> None:
        """It ran and has nothing to do for now, or has merged a little and can merge more."""
        if hosted not in self._idle_set:
            self._idle_set.add(hosted)
            self._idle.append(hosted)

    def discard(self, hosted: HostedDataflow) -> None:
        self._queued.discard(hosted)

    def next(self) -> HostedDataflow | None:
        """The dataflow to run a slice of."""
        self._slices += 1
        hungry = self._slices % COLD_EVERY == 0
        for queue in (self._cold, self._hot) if hungry else (self._hot, self._cold):
            while queue:
                hosted = queue.popleft()
                if hosted in self._queued:
                    self._queued.discard(hosted)
                    if hosted.needed and hosted.dataflow is not None:
                        return hosted
        return None

    def run_job(self) -> bool:
        """A slice of a long write, unless something is hot. False: nothing done."""
        if not self.jobs or self._hot:
            return False
        job = self.jobs.popleft()
        if next(job, _DONE) is not _DONE:
            self.jobs.append(job)
        return True

    def next_to_merge(self) -> HostedDataflow | None:
        """One that ran lately and is still there."""
        while self._idle:
            hosted = self._idle.popleft()
            self._idle_set.discard(hosted)
            if hosted.needed and hosted.dataflow is not None:
                return hosted
        return None
