"""Dataflow: one rendered DataflowDescription, stepped in slices by its worker.

    inputs' uppers ─▶ round [lower, upper) ─▶ graph.run ─▶ exports' frontiers = upper ─▶ holds move up

With several workers, worker 0 chooses each round's upper and announces it; the others wait until their own inputs are
that far. Whatever else the workers do in between, each dataflow runs the same rounds everywhere.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from compute.operators.base import Graph
from compute.plan.description import DataflowDescription
from compute.render.build import Builder
from compute.render.context import RenderContext
from compute.render.exports import Export, IndexExport
from compute.render.inputs import SourceInput, TraceInput
from compute.trace.merge import SLICE_ROWS
from mzlite.repr.ids import GlobalId
from mzlite.repr.timestamp import Frontier, frontier_le, meet

SLICE_S = 0.003
ROUNDS_CHANNEL = 0


class Dataflow:
    """Invariants:

    1. every export's frontier is the upper of the last complete round (as_of before the first), or further (sinks).
    2. frontier never goes back; once it is empty the operators are gone and only exports remain.
    """

    def __init__(self, description: DataflowDescription, context: RenderContext) -> None:
        self.description = description
        self.context = context
        self.graph = Graph()
        self.frontier: Frontier = description.as_of
        builder = Builder(description, context, self.graph)
        self.inputs: dict[GlobalId, SourceInput | TraceInput] = builder.inputs
        self.exports: dict[GlobalId, Export] = builder.exports
        self.internal_holds = builder.internal_holds
        self.lir_mapping = builder.lir_mapping
        self.hydrated = False
        self._work: Iterator[None] | None = None
        self._upper: Frontier = description.as_of
        self._dropped = False
        self._announced: list[Frontier] = []

    def _reach(self) -> Frontier:
        """How far this worker's inputs allow a round to go."""
        upper: Frontier = None
        for source in self.inputs.values():
            upper = meet(upper, source.upper)
        until = self.description.until
        if until is not None and frontier_le(until, upper):
            return None  # nothing at or beyond until is needed: this is the last round
        return upper

    def _next_upper(self) -> Frontier | bool:
        """The next round's upper, or False if there is none yet."""
        reach = self._reach()
        exchange = self.context.exchange
        if exchange is None or self.context.workers == 1:
            return False if frontier_le(reach, self.frontier) else reach
        if self.context.worker == 0:
            if frontier_le(reach, self.frontier):
                return False
            payload = b"" if reach is None else reach.to_bytes(8, "little")
            for other in range(1, self.context.workers):
                exchange.send(ROUNDS_CHANNEL, other, payload)
            return reach
        if not self._announced:
            message = exchange.receive(ROUNDS_CHANNEL, 0)
            if message is None:
                return False
            self._announced.append(int.from_bytes(message, "little") if message else None)
        if not frontier_le(self._announced[0], reach):
            return False
        return self._announced.pop()

    def can_step(self) -> bool:
        """A round is under way, or may begin as far as this worker can tell."""
        if self._dropped or self.frontier is None:
            return False
        return self._work is not None or not frontier_le(self._reach(), self.frontier)

    def step(self) -> bool:
        """Run about one slice. False: nothing to do until an input moves (or, with workers, a message arrives)."""
        if self._dropped or self.frontier is None:
            return False
        if self._work is None:
            upper = self._next_upper()
            if upper is False:
                return False
            assert not isinstance(upper, bool)
            self._upper = upper
            self._work = self.graph.run(self.frontier, upper)
        graph = self.graph
        graph.blocked = False
        deadline = time.perf_counter() + SLICE_S
        for _ in self._work:
            if graph.blocked:
                return False
            if time.perf_counter() > deadline:
                return True
        self._work = None
        self._round_done()
        return self.frontier is not None and not frontier_le(self._reach(), self.frontier)

    def _round_done(self) -> None:
        lower = self.frontier
        assert lower is not None
        upper = self._upper
        self.frontier = upper
        self.hydrated = True
        if upper is not None:
            for hold in self.internal_holds:
                hold.downgrade(upper - 1)
        for export in self.exports.values():
            export.round_done(lower, upper)
        if upper is None:
            self._finish()

    def _finish(self) -> None:
        """No input will ever change again: the operators' state is of no use any more."""
        self.graph.close()
        for hold in self.internal_holds:
            hold.release()
        self.internal_holds.clear()

    def maintain(self, budget_s: float) -> bool:
        """Merge traces for about budget_s seconds. True: there is more to merge."""
        if self._dropped:
            return False
        deadline = time.perf_counter() + budget_s
        spines = list(self.graph.all_spines())
        for export in self.exports.values():
            if isinstance(export, IndexExport) and export.arrangement is not None:
                spines += [export.arrangement.oks, export.arrangement.errs]
        for spine in spines:
            while spine.work(SLICE_ROWS):
                if time.perf_counter() > deadline:
                    return True
        return False

    @property
    def nbytes(self) -> int:
        """Bytes of the operators' own state (exported arrangements count for themselves)."""
        return sum(s.nbytes for s in self.graph.all_spines())

    def drop(self) -> None:
        """Stop at once; release holds and memory."""
        if self._dropped:
            return
        self._dropped = True
        if self._work is not None:
            close = getattr(self._work, "close", None)
            if close is not None:
                close()
            self._work = None
        self._finish()
        for source in self.inputs.values():
            source.close()
        for export in self.exports.values():
            export.close()
