"""WITH MUTUALLY RECURSIVE: a graph inside an operator, iterated to a fixpoint, incrementally over outer time.

    outer changes at t ──▶ iteration 0 ──▶ values ──▶ iteration 1 ──▶ … until nothing changes ──▶ outer output at t

Inside, the time of an update is its iteration. Outer timestamps are processed one after the other and the state of the
inner operators accumulates over them, so it holds the whole history by iteration; a change at a later outer time only
touches what it changes at each iteration. A binding read before its definition is the previous iteration's value (a
*variable*: the value's changes delayed by one), read after it is this iteration's.

Source: Materialize's render_recursive_plan; differential's Variable, with (outer time, iteration) walked in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from compute.operators.base import Collection, Graph, Operator, Port, pieces, union_errs
from compute.operators.exchange import agree_least
from compute.plan.lir import LirLetRec
from compute.render.context import Exchange as Channels
from compute.trace.sorting import constant
from mzlite.repr.errors import SqlError, encode_error
from mzlite.repr.ids import GlobalId, LocalId
from mzlite.repr.updates import Updates, concat_updates, consolidate
from mzlite.repr.var import VarColumn

if TYPE_CHECKING:
    from compute.render.build import Builder

_NONE = 2**64  # beyond every time: constants are read at 2**64 - 1


class Enter(Operator):
    """An outer collection inside the loop: its changes arrive at iteration 0."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.oks = Port(graph)

    def intake(self, index: int, updates: Updates) -> None:
        self.oks.emit(updates)


class Feedback(Operator):
    """A binding's changes of this iteration become its variable's changes of the next one."""

    def __init__(self, graph: Graph, variable: Port, limit: int | None) -> None:
        super().__init__(graph)
        self.variable = variable
        self.limit = limit
        self.parts: list[Updates] = []
        self.over: list[Updates] = []

    def intake(self, index: int, updates: Updates) -> None:
        self.parts.append(updates)
        self.dirty = True

    def flush(self) -> None:
        now = self.graph.now
        assert now is not None
        changes = consolidate(concat_updates(self.parts))
        self.parts = []
        if not len(changes):
            return
        if self.limit is not None and now >= self.limit - 1:
            self.over.append(changes.with_time(constant(0, len(changes), np.uint64)))
            return
        for piece in pieces(changes.with_time(constant(now + 1, len(changes), np.uint64))):
            self.variable.emit(piece)


class Leave(Operator):
    """Collects a binding's (or the errors') changes over all iterations of one outer time."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.parts: list[Updates] = []

    def intake(self, index: int, updates: Updates) -> None:
        self.parts.append(updates)

    def take(self) -> Updates | None:
        """The net change, at time 0."""
        if not self.parts:
            return None
        joint = concat_updates(self.parts)
        self.parts = []
        net = consolidate(joint.with_time(constant(0, len(joint), np.uint64)))
        return net if len(net) else None


class Environment(dict["GlobalId | LocalId", Collection]):
    """What the loop's body sees: its bindings, and outer collections, entered when first used."""

    def __init__(self, outer: dict[GlobalId | LocalId, Collection], loop: Loop) -> None:
        super().__init__()
        self.outer = outer
        self.loop = loop

    def __missing__(self, id: GlobalId | LocalId) -> Collection:
        outer = self.outer[id]
        enter = Enter(self.loop.graph)
        self.loop.entered.append((outer, enter))
        inside = Collection(enter.oks, (), outer.arity)
        self[id] = inside
        return inside


class Loop:
    """The inner graph. run(changes) iterates it from one outer time's changes to the fixpoint."""

    def __init__(self, builder: Builder, plan: LirLetRec) -> None:
        self.graph = Graph(builder.graph)
        self.graph.now = 0
        self.entered: list[tuple[Collection, Enter]] = []
        self.channels: Channels | None = builder.context.exchange if builder.context.workers > 1 else None
        self.worker = builder.context.worker
        self.workers = builder.context.workers
        if self.channels is not None:
            builder.channels[0] += 1
        self.number = builder.channels[0]
        environment = Environment(builder.environment, self)
        inner = builder.nested(self.graph, environment)
        limit = plan.limit
        feedbacks: list[Feedback] = []
        variables: list[Port] = []
        for id, typ in zip(plan.ids, plan.typs):
            variable = Port(self.graph)
            variables.append(variable)
            environment[id] = Collection(variable, (), typ.arity)
        errs: tuple[Port, ...] = ()
        for id, value, variable in zip(plan.ids, plan.values, variables):
            made = inner.render(value)
            made = Collection(made.oks, made.errs, made.arity, made.arranged)
            environment[id] = made
            errs = union_errs(errs, made.errs)
            feedback = Feedback(self.graph, variable, limit)
            made.oks.connect(feedback)
            feedbacks.append(feedback)
        self.feedbacks = feedbacks
        self.leaves: list[Leave] = []
        for id in plan.ids:
            leave = Leave(self.graph)
            environment[id].oks.connect(leave)
            self.leaves.append(leave)
            errs = union_errs(errs, environment[id].errs)
        self.errors = Leave(self.graph)
        for port in errs:
            port.connect(self.errors)

    def run(self, changes: Sequence[Updates]) -> Iterator[None]:
        """changes: per entered collection. Yields at least once an iteration, so that divergence can be cancelled."""
        graph = self.graph
        iteration = 0
        for (_, enter), part in zip(self.entered, changes):
            if len(part):
                entering = part.with_time(constant(0, len(part), np.uint64))
                graph.waiting.setdefault(0, []).extend((enter.oks, piece) for piece in pieces(entering))
        while True:
            graph.now = iteration
            for port, updates in graph.waiting.pop(iteration, ()):
                port.deliver(updates)
                yield
            yield from graph.run(0, None)
            yield
            following = min(graph.waiting, default=_NONE)
            if self.channels is not None:
                for least in agree_least(graph, self.channels, self.number, self.worker, self.workers, following):
                    if least is None:
                        yield
                    else:
                        following = least
            if following == _NONE:
                return
            iteration = following


class OverLimit:
    """Whether any binding is still changing at the limit, accumulated over outer time."""

    def __init__(self, count: int) -> None:
        self.totals: list[Updates | None] = [None] * count
        self.reported = False

    def update(self, feedbacks: Sequence[Feedback]) -> int:
        """+1: the limit is now exceeded; -1: no longer; 0: as before."""
        for i, feedback in enumerate(feedbacks):
            parts = feedback.over
            feedback.over = []
            total = self.totals[i]
            if total is not None:
                parts = [total, *parts]
            if parts:
                joint = consolidate(concat_updates(parts))
                self.totals[i] = joint if len(joint) else None
        exceeded = any(t is not None for t in self.totals)
        change = int(exceeded) - int(self.reported)
        self.reported = exceeded
        return change


def limit_error(limit: int) -> Updates:
    """The error row of an exceeded limit, at time 0."""
    message = (
        f"Recursive query exceeded the recursion limit {limit}. (Use RETURN AT RECURSION LIMIT to not error, "
        "but return the current state as the final result when reaching the limit.)"
    )
    encoded = encode_error(SqlError("XX000", message))
    return Updates((VarColumn.from_bytes([encoded]),), np.zeros(1, np.uint64), np.ones(1, np.int64))


class LetRec(Operator):
    """The loop as an operator of an outer graph without iterations of its own."""

    def __init__(self, graph: Graph, loop: Loop, plan: LirLetRec) -> None:
        super().__init__(graph)
        self.loop = loop
        self.outputs = [Port(graph) for _ in plan.ids]
        self.errs = Port(graph)
        self.inputs: list[list[Updates]] = [[] for _ in loop.entered]
        self.limit = plan.limit
        self.over = OverLimit(len(plan.ids)) if plan.limit is not None and not plan.return_at_limit else None
        self.first = True
        self.dirty = True
        self.always = loop.channels is not None
        for i, (outer, _) in enumerate(loop.entered):
            outer.oks.connect(self, i)

    @staticmethod
    def build(builder: Builder, plan: LirLetRec) -> Collection:
        """Render a LetRec node: the loop, then its body over the loop's results."""
        from compute.operators.nested import NestedLetRec

        operator: LetRec | NestedLetRec
        if builder.graph.now is not None:
            operator = NestedLetRec.make(builder, plan)
        else:
            operator = LetRec(builder.graph, Loop(builder, plan), plan)
        outer_errs = union_errs(*(outer.errs for outer, _ in operator.loop.entered), (operator.errs,))
        environment = builder.environment
        for id, typ, port in zip(plan.ids, plan.typs, operator.outputs):
            environment[id] = Collection(port, outer_errs, typ.arity)
        result = builder.render(plan.body)
        for id in plan.ids:
            del environment[id]
        return Collection(result.oks, union_errs(result.errs, outer_errs), result.arity, result.arranged)

    def intake(self, index: int, updates: Updates) -> None:
        self.inputs[index].append(updates)
        self.dirty = True

    def flush(self) -> Iterator[None]:
        pending = [concat_updates(parts) if parts else None for parts in self.inputs]
        self.inputs = [[] for _ in self.inputs]
        times: set[int] = set()
        for part in pending:
            if part is not None:
                times.update(np.unique(part.time).tolist())
        if self.first:
            times.add(self.graph.lower)
            self.first = False
        loop = self.loop
        queue = sorted(times)
        while True:
            at = queue[0] if queue else _NONE
            if loop.channels is not None:
                for least in agree_least(self.graph, loop.channels, loop.number, loop.worker, loop.workers, at):
                    if least is None:
                        yield
                    else:
                        at = least
            if at == _NONE:
                return
            if queue and queue[0] == at:
                queue.pop(0)
            changes = [at_time(part, at) for part in pending]
            yield from loop.run(changes)
            yield from self._emit(at)

    def _emit(self, at: int) -> Iterator[None]:
        loop = self.loop
        for leave, port in zip(loop.leaves, self.outputs):
            net = leave.take()
            if net is not None:
                for piece in pieces(net.with_time(constant(at, len(net), np.uint64))):
                    port.emit(piece)
                    yield
        errors = loop.errors.take()
        if errors is not None:
            self.errs.emit(errors.with_time(constant(at, len(errors), np.uint64)))
        if self.over is not None:
            change = self.over.update(loop.feedbacks)
            if change and loop.worker == 0:
                assert self.limit is not None
                error = limit_error(self.limit).advance_to(at)
                self.errs.emit(error if change > 0 else error.negate())
        else:
            for feedback in loop.feedbacks:
                feedback.over = []

    def close(self) -> None:
        self.loop.graph.close()


EMPTY = Updates((), np.zeros(0, np.uint64), np.zeros(0, np.int64))


def at_time(part: Updates | None, at: int) -> Updates:
    """The updates at one time."""
    if part is None:
        return EMPTY
    here = part.time == np.uint64(at)
    if here.all():
        return part
    return part.filter(here) if here.any() else EMPTY
