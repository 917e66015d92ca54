"""Threshold: rows with positive multiplicity, as often as they occur. The whole row is the key, its count the state."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from compute.operators.accumulate import Accumulator
from compute.operators.base import Graph
from compute.operators.points import GroupOperator, Outcome, Points
from compute.trace.batch import Batch
from mzlite.repr.updates import Updates


class Threshold(GroupOperator):
    one_row = True

    def __init__(self, graph: Graph, arity: int) -> None:
        super().__init__(graph, arity)
        self.accumulator = Accumulator(graph, arity, 1)

    def intake(self, index: int, updates: Updates) -> None:
        self.accumulator.push(updates.columns, updates.time, updates.diff)
        if self.graph.now is not None:
            self.touch(updates.columns, updates.time)
        self.dirty = True

    def seal_round(self) -> Iterator[None]:
        return self.accumulator.seal_round()

    def changed_points(self) -> Batch | None:
        return self.accumulator.delta

    def had_state(self) -> bool:
        return bool(self.accumulator.old)

    def evaluate(self, points: Points, new: bool) -> Outcome:
        count = self.accumulator.state(points, new)
        present = np.flatnonzero(count > 0)
        return Outcome(present, tuple(c.take(present) for c in points.keys), count[present])
