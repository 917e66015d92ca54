"""RowsTrace: whole rows by a key, for operators that read a group again when it is touched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compute.operators.arrange import description_of
from compute.operators.base import Graph
from compute.trace.builder import BatchBuilder
from compute.trace.spine import Spine
from compute.trace.view import View
from mzlite.repr.column import I64, U64, Column


class RowsTrace:
    """key: positions among the columns pushed. old, new: views before and after the round under way."""

    def __init__(self, graph: Graph, key: Sequence[int]) -> None:
        self.graph = graph
        self.key = tuple(key)
        self.builder = BatchBuilder(self.key)
        self.spine = Spine()
        graph.spines.append(self.spine)
        self.old = View(())
        self.new = View(())

    def push(self, columns: Sequence[Column], time: U64, diff: I64) -> None:
        self.builder.push(columns, time, diff)

    def seal_round(self) -> Iterator[None]:
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
        self.spine.insert(batch, None)
        self.new = View(self.spine.chain())
