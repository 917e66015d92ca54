"""Operators, ports and the graph: how updates move through a dataflow.

A *port* is an operator's output. Emitting a chunk hands it at once to the operators behind the port, which either pass
it on (stateless ones) or keep it until their turn. In each round operators get their turn (`flush`) in topological
order, when all their input of that round is there. Chunks are small (<= CHUNK_ROWS) and a flush is a generator that
yields between slices, so no step is long.

Inside a loop (WITH MUTUALLY RECURSIVE) the graph's time is the iteration: `now`. An update for a later iteration waits
at the port that emitted it. Operators therefore see one time at once there, but their *history* may hold later times:
state accumulates over outer timestamps. Every operator is written for that: see `points.py`.

Source: timely's push-based channels, with rounds in place of progress tracking.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from compute.trace.batch import Batch
from compute.trace.layout import KeyLayout
from compute.trace.spine import Spine
from compute.trace.view import View
from mzlite.expr.scalar import Scalar
from mzlite.repr.column import I64
from mzlite.repr.timestamp import Frontier
from mzlite.repr.updates import Updates
from mzlite.repr.var import VarColumn

CHUNK_ROWS = 16_384
CHUNK_BYTES = 1 << 20


class Port:
    """An output. targets: (operator, which of its inputs)."""

    __slots__ = ("graph", "targets")

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.targets: list[tuple[Operator, int]] = []

    def connect(self, target: Operator, index: int = 0) -> None:
        self.targets.append((target, index))

    def emit(self, updates: Updates) -> None:
        """Hand updates on; in a loop those of later iterations wait."""
        if not len(updates) or not self.targets:
            return
        now = self.graph.now
        if now is not None:
            self.graph.emit_in_loop(self, updates, now)
            return
        for operator, index in self.targets:
            operator.intake(index, updates)

    def deliver(self, updates: Updates) -> None:
        for operator, index in self.targets:
            operator.intake(index, updates)


class Operator(abc.ABC):
    """A node of the graph. dirty: has something to do at its turn. always: takes its turn in every round."""

    always = False

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.dirty = False
        graph.operators.append(self)

    @abc.abstractmethod
    def intake(self, index: int, updates: Updates) -> None:
        """A chunk for input `index`. May emit."""

    def flush(self) -> Iterator[None] | None:
        """All input of this round (or iteration) is there: do the work, yielding between slices."""
        return None

    def close(self) -> None:  # noqa: B027  (most operators hold nothing outside of themselves)
        """The dataflow is dropped: release what is held outside of it."""


class Graph:
    """Operators in topological order (the order they were added in).

    lower, upper: the round under way carries updates with lower <= time < upper. spines: state compacted by rounds.
    """

    def __init__(self, parent: Graph | None = None) -> None:
        self.parent = parent
        self.operators: list[Operator] = []
        self.spines: list[Spine] = []
        self.arranged: list[Arranged] = []
        self.round = 0
        self.lower = 0
        self.upper: Frontier = 0
        self.now: int | None = None
        self.waiting: dict[int, list[tuple[Port, Updates]]] = {}
        self.blocked = False

    def run(self, lower: int, upper: Frontier) -> Iterator[None]:
        """One round."""
        self.round += 1
        self.lower = lower
        self.upper = upper
        for operator in self.operators:
            if operator.dirty or operator.always:
                operator.dirty = False
                work = operator.flush()
                if work is not None:
                    yield from work
        if self.now is None:
            for arranged in self.arranged:
                arranged.forget()
        if self.now is None and upper is not None and upper > 0:
            for spine in self.spines:
                if spine.since < upper - 1:
                    spine.since = upper - 1

    def emit_in_loop(self, port: Port, updates: Updates, now: int) -> None:
        time = updates.time
        if bool((time <= np.uint64(now)).all()):
            port.deliver(updates)
            return
        for at in np.unique(time).tolist():
            part = updates.filter(time == np.uint64(at))
            if at <= now:
                port.deliver(part)
            else:
                self.waiting.setdefault(at, []).append((port, part))

    def all_spines(self) -> Iterator[Spine]:
        """The state of all operators, loops included."""
        yield from self.spines
        for operator in self.operators:
            loop = getattr(operator, "loop", None)
            if loop is not None:
                yield from loop.graph.all_spines()

    def close(self) -> None:
        for operator in self.operators:
            operator.close()
        self.operators.clear()
        self.spines.clear()
        self.arranged.clear()
        self.waiting.clear()


class Arranged:
    """An arrangement as the operators of one graph see it, in the round under way.

    old: before this round; new: with it; delta: this round's updates. Set by the operator that maintains it, at its
    turn; users take their turn later and are woken when there is a delta. spine: where old and new are found in a round
    in which nothing is set (None: something is set in every round).

    Nothing is kept between rounds: an idle dataflow must not hold on to batches that its spine has merged away, or
    replaced by a shared segment.
    """

    def __init__(self, graph: Graph, layout: KeyLayout, spine: Spine | None = None) -> None:
        graph.arranged.append(self)
        self.spine = spine
        self.graph = graph
        self.layout = layout
        self.users: list[Operator] = []
        self._round = -1
        self._old = View(())
        self._new = View(())
        self._delta: tuple[Batch, ...] = ()

    def set(self, old: View, new: View, delta: Sequence[Batch]) -> None:
        self._round = self.graph.round
        self._old = old
        self._new = new
        self._delta = tuple(b for b in delta if len(b))
        if self._delta:
            for user in self.users:
                user.dirty = True

    def forget(self) -> None:
        """The round is over."""
        if self._round >= 0:
            self._round = -1
            self._old = self._new = View(())
            self._delta = ()

    @property
    def old(self) -> View:
        return self._old if self._round == self.graph.round else self.new

    @property
    def new(self) -> View:
        return self._new if self._round >= 0 or self.spine is None else View(self.spine.chain())

    @property
    def delta(self) -> tuple[Batch, ...]:
        return self._delta if self._round == self.graph.round else ()


@dataclasses.dataclass
class Collection:
    """What rendering a plan node yields.

    oks: its rows. errs: ports whose errors belong to it (a set: an error counts once however often it is reached).
    arranged: by key, where the node has arrangements.
    """

    oks: Port
    errs: tuple[Port, ...]
    arity: int
    arranged: dict[tuple[Scalar, ...], Arranged] = dataclasses.field(default_factory=dict)


def union_errs(*parts: Sequence[Port]) -> tuple[Port, ...]:
    """The ports of all parts, each once, in order."""
    return tuple(dict.fromkeys(port for part in parts for port in part))


def error_updates(updates: Updates, rows: I64, errors: Sequence[bytes]) -> Updates:
    """Errors of some rows of `updates` as updates of an errs collection."""
    return Updates((VarColumn.from_bytes(list(errors)),), updates.time[rows], updates.diff[rows])


def pieces(updates: Updates, rows: int | None = None) -> Iterator[Updates]:
    """The updates in chunks of at most `rows` (CHUNK_ROWS, or fewer where rows are wide)."""
    n = len(updates)
    if rows is None:
        rows = CHUNK_ROWS
        if n > rows // 8:
            rows = min(rows, max(rows // 16, CHUNK_BYTES * n // max(updates.nbytes, 1), 1))
    if n <= rows:
        yield updates
        return
    for start in range(0, n, rows):
        yield updates.slice(start, min(start + rows, n))
