"""The accumulable part of a reduce: per group a vector of int64 lanes that is a sum over the group's rows.

The trace holds one row per key whose *diff is the vector*: consolidation adds vectors, so a group costs constant state
however many rows it has, and the vector at a time is the sum of what lies at or before it. Lane 0 counts rows: the
group exists while it is positive.

Source: Materialize's accumulable reduce, where accumulators also travel in the diff.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from compute.operators.arrange import description_of
from compute.operators.base import Graph
from compute.operators.points import Points
from compute.trace.batch import Batch
from compute.trace.builder import BatchBuilder
from compute.trace.spine import Spine
from compute.trace.view import View
from mzlite.repr.column import I64, U64, Column


class Accumulator:
    """The trace of lanes. width 1 keeps plain diffs (distinct, threshold, count)."""

    def __init__(self, graph: Graph, key_count: int, width: int) -> None:
        self.graph = graph
        self.key = tuple(range(key_count))
        self.width = width
        self.builder = BatchBuilder(self.key)
        self.spine = Spine()
        graph.spines.append(self.spine)
        self.old = View(())
        self.new = View(())
        self.delta: Batch | None = None

    def push(self, keys: Sequence[Column], time: U64, lanes: I64) -> None:
        self.builder.push(keys, time, lanes)

    def seal_round(self) -> Iterator[None]:
        self.delta = None
        self.old = self.new = View(self.spine.chain())
        if not self.builder:
            return
        description = description_of(self.graph)
        batch = self.builder.done_now(description)
        if batch is None:
            yield from self.builder.done(description)
            batch = self.builder.take()
        if batch is None or not len(batch):
            return
        self.delta = batch
        self.spine.insert(batch, None)
        self.new = View(self.spine.chain())

    def state(self, points: Points, new: bool) -> I64:
        """int64[m, width] (int64[m] when width is 1): the lanes at each point."""
        view = self.new if new else self.old
        shape = (len(points),) if self.width == 1 else (len(points), self.width)
        state = np.zeros(shape, np.int64)
        for match in view.lookup(self.key, points.codes, points.keys):
            probe, diff = match.probe, match.batch.diff[match.row]
            if match.batch.time_max > match.batch.time_min or not points.single or points.next is not None:
                keep = np.flatnonzero(match.batch.time[match.row] <= points.time[probe])
                if len(keep) < len(probe):
                    probe, diff = probe[keep], diff[keep]
            if not len(probe):
                continue
            if len(probe) == 1:
                state[probe[0]] += diff[0]
                continue
            starts = np.flatnonzero(np.concatenate([[True], probe[1:] != probe[:-1]]))
            if len(starts) == len(probe):
                state[probe] += diff
            else:
                state[probe[starts]] += np.add.reduceat(diff, starts, axis=0)
        return state
