"""Arrange: keep a stream as an arrangement, shared by whatever looks it up by that key."""

from __future__ import annotations

from collections.abc import Iterator

from compute.operators.base import Arranged, Graph, Operator, Port, error_updates
from compute.trace.batch import Batch, Description
from compute.trace.builder import BatchBuilder
from compute.trace.layout import KeyLayout
from compute.trace.spine import Spine
from compute.trace.view import View
from mzlite.repr.updates import Updates


class Arrange(Operator):
    """Invariant: after its turn, the spine holds every update of the rounds so far, and `arranged` this round's views.

    Rows whose key cannot be evaluated go to errs instead.
    """

    def __init__(self, graph: Graph, layout: KeyLayout, spine: Spine | None = None) -> None:
        super().__init__(graph)
        self.errs = Port(graph)
        self.layout = layout
        self.builder = BatchBuilder(layout.positions)
        if spine is None:
            spine = Spine()
            graph.spines.append(spine)
        self.spine = spine
        self.arranged = Arranged(graph, layout, spine)

    def intake(self, index: int, updates: Updates) -> None:
        layout = self.layout
        if layout.plan is None:
            self.builder.push(updates.columns, updates.time, updates.diff)
        else:
            rows, columns, errors = layout.extend(updates.columns, len(updates))
            if rows is None:
                self.builder.push(columns, updates.time, updates.diff)
            else:
                self.builder.push(columns, updates.time[rows], updates.diff[rows])
            if errors is not None:
                self.errs.emit(error_updates(updates, *errors))
        self.dirty = True

    def flush(self) -> Iterator[None] | None:
        description = description_of(self.graph)
        batch = self.builder.done_now(description)
        if batch is not None:
            self._insert(batch)
            return None
        return self._flush_slowly(description)

    def _flush_slowly(self, description: Description) -> Iterator[None]:
        yield from self.builder.done(description)
        self._insert(self.builder.take())

    def _insert(self, batch: Batch | None) -> None:
        if batch is None or not len(batch):
            return
        spine = self.spine
        old = View(spine.chain())
        upper = spine.upper
        spine.insert(batch, upper)  # the dataflow moves upper when the round is complete
        self.arranged.set(old, View(spine.chain()), (batch,))


def description_of(graph: Graph) -> Description:
    """Of a batch made in the round under way; inside a loop times are iterations and nothing is ever complete."""
    if graph.now is not None:
        return Description(0, None, 0)
    return Description(graph.lower, graph.upper, 0)
