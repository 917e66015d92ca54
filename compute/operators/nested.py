"""A recursive query inside another one: evaluated from scratch at each (outer) iteration where its input changed.

The outer loop's operators see history at later iterations; a loop's state accumulates and cannot go back to an earlier
one. So this operator keeps its inputs by iteration and, at each iteration touched, runs a fresh loop on the inputs as
they stand there. Correct first: the cost is that of the inner query, not of the change.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from compute.operators.base import Graph, Operator, Port, pieces
from compute.operators.letrec import EMPTY, Loop, OverLimit, limit_error
from compute.plan.lir import LirLetRec
from compute.trace.layout import KeyLayout
from compute.trace.sorting import constant
from mzlite.repr.column import hash_rows
from mzlite.repr.updates import Updates, concat_updates, consolidate

if TYPE_CHECKING:
    from compute.render.build import Builder


class NestedLetRec(Operator):
    """history: per input, all its updates so far, consolidated. `loop` is a prototype: it names the inputs, never runs.

    With several workers one of them does it all: the inputs are sent to the owner of the empty key, and the loops it
    runs know of no other worker.
    """

    @staticmethod
    def make(builder: Builder, plan: LirLetRec) -> NestedLetRec:
        """The operator, behind exchanges where there are several workers."""
        alone = builder.nested(builder.graph, builder.environment)
        alone.context = dataclasses.replace(builder.context, worker=0, workers=1, exchange=None)
        prototype = Loop(alone, plan)
        ports = [builder.exchange(outer.oks, KeyLayout((), outer.arity)) for outer, _ in prototype.entered]
        operator = NestedLetRec(alone, plan, prototype)
        for i, port in enumerate(ports):
            port.connect(operator, i)
        workers = builder.context.workers if builder.context.exchange is not None else 1
        operator.is_owner = int(hash_rows((), 1)[0]) % workers == builder.context.worker
        return operator

    def __init__(self, builder: Builder, plan: LirLetRec, prototype: Loop) -> None:
        super().__init__(builder.graph)
        self.plan = plan
        self.builder = builder
        self.loop = prototype
        self.is_owner = True
        self.outputs = [Port(builder.graph) for _ in plan.ids]
        self.errs = Port(builder.graph)
        self.inputs: list[list[Updates]] = [[] for _ in prototype.entered]
        self.history: list[Updates] = [EMPTY for _ in prototype.entered]
        self.emitted: list[list[Updates]] = [[] for _ in range(len(plan.ids) + 1)]
        self.frozen = dict(builder.environment)
        self.dirty = True
        self.first = True

    def intake(self, index: int, updates: Updates) -> None:
        self.inputs[index].append(updates)
        self.dirty = True

    def flush(self) -> Iterator[None]:
        now = self.graph.now
        assert now is not None
        changed = self.first and self.is_owner
        self.first = False
        for i, parts in enumerate(self.inputs):
            if parts:
                fresh = concat_updates(parts)
                known = self.history[i]
                self.history[i] = consolidate(concat_updates([known, fresh]) if len(known) else fresh)
                changed = True
        self.inputs = [[] for _ in self.inputs]
        if not changed:
            return
        later: set[int] = {now}
        for part in self.history:
            later.update(t for t in np.unique(part.time).tolist() if t > now)
        for at in sorted(later):
            yield from self._evaluate(at)

    def _evaluate(self, at: int) -> Iterator[None]:
        """Make the output at `at` what a fresh loop on the inputs at `at` yields."""
        loop = Loop(self._fresh_builder(), self.plan)
        inputs = []
        for part in self.history:
            before = part.filter(part.time <= np.uint64(at)) if len(part) else part
            if len(before):
                before = consolidate(before.with_time(constant(0, len(before), np.uint64)))
            inputs.append(before)
        yield from loop.run(inputs)
        results = [leave.take() for leave in loop.leaves]
        errors = [e for e in [loop.errors.take()] if e is not None]
        limit = None if self.plan.return_at_limit else self.plan.limit
        if limit is not None and OverLimit(len(self.plan.ids)).update(loop.feedbacks):
            errors.append(limit_error(limit))
        results.append(concat_updates(errors) if errors else None)
        for slot, (result, port) in enumerate(zip(results, (*self.outputs, self.errs))):
            parts = [result] if result is not None else []
            for earlier in self.emitted[slot]:
                upto = earlier.filter(earlier.time <= np.uint64(at))
                if len(upto):
                    parts.append(upto.negate())
            if not parts:
                continue
            joint = concat_updates(parts)
            change = consolidate(joint.with_time(constant(at, len(joint), np.uint64)))
            if len(change):
                self.emitted[slot] = [consolidate(concat_updates([*self.emitted[slot], change]))]
                for piece in pieces(change):
                    port.emit(piece)
        loop.graph.close()

    def _fresh_builder(self) -> Builder:
        return self.builder.nested(Graph(self.graph), self.frozen)
