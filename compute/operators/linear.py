"""The operators that need no state: negate, union, constant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compute.operators.base import Graph, Operator, Port, pieces
from compute.trace.batch import Description
from compute.trace.builder import BatchBuilder
from mzlite.repr.updates import Updates


class Negate(Operator):
    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.oks = Port(graph)

    def intake(self, index: int, updates: Updates) -> None:
        self.oks.emit(updates.negate())


class Union(Operator):
    """All inputs together, unconsolidated."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.oks = Port(graph)

    def intake(self, index: int, updates: Updates) -> None:
        self.oks.emit(updates)


class Consolidate(Operator):
    """All inputs together; updates of one round that cancel do not come out."""

    def __init__(self, graph: Graph, arity: int) -> None:
        super().__init__(graph)
        self.oks = Port(graph)
        self.builder = BatchBuilder(range(arity))

    def intake(self, index: int, updates: Updates) -> None:
        self.builder.push(updates.columns, updates.time, updates.diff)
        self.dirty = True

    def flush(self) -> Iterator[None]:
        yield from self.builder.done(Description(0, None, 0))
        batch = self.builder.take()
        if batch is not None and len(batch):
            for piece in pieces(Updates(batch.columns, batch.time, batch.diff)):
                self.oks.emit(piece)
                yield


class Constant(Operator):
    """Rows (or errors) that are there from the first round on, at the dataflow's as_of (in a loop: iteration 0)."""

    def __init__(self, graph: Graph, rows: Sequence[Updates], errors: Sequence[Updates]) -> None:
        super().__init__(graph)
        self.oks = Port(graph)
        self.errs = Port(graph)
        self.rows = list(rows)
        self.errors = list(errors)
        self.dirty = True

    def intake(self, index: int, updates: Updates) -> None:
        raise AssertionError("a constant has no input")

    def flush(self) -> Iterator[None]:
        at = 0 if self.graph.now is not None else self.graph.lower
        for part in self.errors:
            self.errs.emit(part.advance_to(at))
        for part in self.rows:
            for piece in pieces(part.advance_to(at)):
                self.oks.emit(piece)
                yield
        self.rows = []
        self.errors = []
