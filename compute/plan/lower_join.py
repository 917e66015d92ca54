"""Joins from MIR to LIR: an order of lookups becomes stages with stream keys and closures.

An equivalence class says that its members are all equal and not NULL. A lookup by key enforces that for the pairs of
(stream member, lookup member) in its key; every other member is compared, in the closure of the first stage at which
it can be computed, with one that is already known. Closures keep only the columns that something later reads.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from compute.plan.lir import DeltaJoin, JoinStage, LinearJoin
from compute.plan.mfp_builder import MfpBuilder, columns_read, narrowed
from mzlite.expr.functions import FUNCTIONS
from mzlite.expr.functions.registry import bind
from mzlite.expr.mfp import MapFilterProject
from mzlite.expr.scalar import Call, Scalar, remap, shift, support
from mzlite.expr.typing import can_error, scalar_type
from mzlite.repr.types import BOOL, ColumnType, ScalarType

Order = Sequence[tuple[int, tuple[Scalar, ...]]]


def equality(a: Scalar, b: Scalar, typ: ScalarType) -> Scalar:
    """a = b, for values of `typ`."""
    kind = typ.kind
    if f"eq_{kind}" in FUNCTIONS:
        return Call(f"eq_{kind}", (a, b), BOOL)
    entry = bind(FUNCTIONS[f"eq_any{kind}"], (typ, typ))
    FUNCTIONS.setdefault(entry.id, entry)
    return Call(entry.id, (a, b), BOOL)


class JoinLowering:
    """One join. types: of the concatenated columns; arities: of the inputs. outer: the mfp above the join."""

    def __init__(
        self,
        arities: Sequence[int],
        types: Sequence[ColumnType],
        equivalences: Sequence[tuple[Scalar, ...]],
        outer: MapFilterProject,
    ) -> None:
        self.arities = tuple(arities)
        self.types = tuple(types)
        self.classes = [tuple(dict.fromkeys(c)) for c in equivalences]
        self.offsets = [0]
        for a in arities:
            self.offsets.append(self.offsets[-1] + a)
        # Predicates that cannot fail run as soon as their columns are there, not on top of the last stage.
        total = self.offsets[-1]
        self.early = [p for _, p in outer.predicates if not can_error(p) and all(c < total for c in support(p))]
        rest = tuple((at, p) for at, p in outer.predicates if p not in self.early)
        self.outer = msgspec.structs.replace(outer, predicates=rest) if self.early else outer
        self.demanded = _columns(self.outer, total)

    def linear(self, start: int, order: Order) -> LinearJoin:
        path = _Path(self, start)
        source_mfp = path.source(order)
        stages = [path.stage(i, key, order[n + 1 :], n + 1 == len(order)) for n, (i, key) in enumerate(order)]
        last = stages[-1]
        # What the last stage leaves are the demanded columns in order: the outer mfp goes on top of them.
        stages[-1] = JoinStage(last.input, last.stream_key, last.lookup_key, _on_top(last.closure, path.final()))
        return LinearJoin(start, source_mfp, tuple(stages))

    def delta(self, orders: Sequence[Order]) -> DeltaJoin:
        paths: list[tuple[JoinStage, ...]] = []
        sources: list[MapFilterProject] = []
        finals: list[MapFilterProject] = []
        for start, order in enumerate(orders):
            path = _Path(self, start)
            sources.append(path.source(order))
            paths.append(
                tuple(path.stage(i, key, order[n + 1 :], n + 1 == len(order)) for n, (i, key) in enumerate(order))
            )
            finals.append(path.final())
        return DeltaJoin(tuple(paths), tuple(sources), tuple(finals))

    def filter(self) -> MapFilterProject:
        """A join of one input: its equivalences are predicates."""
        builder = MfpBuilder(self.offsets[-1])
        predicates = []
        for members in self.classes:
            for m in members[1:]:
                predicates.append(self.equal(members[0], m))
        return builder.filter([*predicates, *self.early]).then(self.outer).build()

    def equal(self, a: Scalar, b: Scalar) -> Scalar:
        return equality(a, b, scalar_type(a, self.types).scalar)


class _Path:
    """An order under construction. stream: the global column at each position of the stream."""

    def __init__(self, join: JoinLowering, start: int) -> None:
        self.join = join
        self.bound: set[int] = set(range(join.offsets[start], join.offsets[start + 1]))
        self.start = start
        self.stream: list[int] = sorted(self.bound)
        self.visible = set(self.bound)
        self.settled: list[set[Scalar]] = [set() for _ in join.classes]
        self.pending = list(join.early)

    def source(self, order: Order) -> MapFilterProject:
        """Over the start input: classes that it can check alone, then the columns that are needed later."""
        join = self.join
        base = join.offsets[self.start]
        builder = MfpBuilder(join.arities[self.start])
        builder.filter([shift(p, -base) for p in (*self._new_equalities(()), *self._ready())])
        self.stream = self._needed(order)
        return builder.project([c - base for c in self.stream]).build()

    def stage(self, input: int, key: tuple[Scalar, ...], rest: Order, last: bool) -> JoinStage:
        join = self.join
        base = join.offsets[input]
        arity = join.arities[input]
        stream_key: list[Scalar] = []
        enforced: list[tuple[int, Scalar, Scalar]] = []
        position = {c: i for i, c in enumerate(self.stream)}
        for k in key:
            wanted = shift(k, base)
            cls, member = self._partner(wanted)
            stream_key.append(remap(member, position))
            enforced.append((cls, member, wanted))
        self.bound |= set(range(base, base + arity))
        self.visible = set(self.stream) | set(range(base, base + arity))
        predicates = [*self._new_equalities(enforced), *self._ready()]
        before = len(self.stream)
        columns = position | {base + j: before + j for j in range(arity)}
        builder = MfpBuilder(before + arity)
        builder.filter([remap(p, columns) for p in predicates])
        self.stream = list(join.demanded) if last else self._needed(rest)
        builder.project([columns[c] for c in self.stream])
        return JoinStage(input, tuple(stream_key), key, builder.build())

    def _ready(self) -> list[Scalar]:
        """Predicates whose columns are all bound by now, each once."""
        ready = [p for p in self.pending if support(p) <= self.bound]
        self.pending = [p for p in self.pending if not support(p) <= self.bound]
        return ready

    def final(self) -> MapFilterProject:
        """The outer mfp over the stream that the last stage leaves."""
        return narrowed(self.join.outer, self.stream)

    def _partner(self, wanted: Scalar) -> tuple[int, Scalar]:
        for i, members in enumerate(self.join.classes):
            if wanted in members:
                here = set(self.stream)
                usable = [m for m in members if m != wanted and support(m) <= here]
                for m in usable:
                    if m in self.settled[i]:
                        return i, m
                if usable:
                    return i, usable[0]
        raise AssertionError(f"no stream expression equals lookup key {wanted}")

    def _new_equalities(self, enforced: Sequence[tuple[int, Scalar, Scalar]]) -> list[Scalar]:
        """Predicates for members that can be computed now and are not yet known to be equal to the rest."""
        predicates: list[Scalar] = []
        for i, members in enumerate(self.join.classes):
            known = self.settled[i]
            for cls, a, b in enforced:
                if cls == i:
                    if not known or a in known:
                        known |= {a, b}
                    elif b in known:
                        known.add(a)
            for m in members:
                if m in known or not support(m) <= self.bound:
                    continue
                if known:
                    anchor = next(x for x in members if x in known and support(x) <= self.visible)
                    predicates.append(self.join.equal(anchor, m))
                    known.add(m)
                elif sum(support(x) <= self.bound for x in members) >= 2:
                    known.add(m)
        return predicates

    def _needed(self, rest: Order) -> list[int]:
        """Bound columns that later stages or the output read, ascending."""
        needed = set(self.join.demanded).union(*map(support, self.pending))
        for i, members in enumerate(self.join.classes):
            open_members = [m for m in members if m not in self.settled[i]]
            if open_members:
                # One settled member stands for all of them.
                anchors = [m for m in members if m in self.settled[i] and support(m) <= self.visible][:1]
                for m in (*anchors, *open_members):
                    needed |= support(m)
        return sorted(needed & self.visible)


def _columns(mfp: MapFilterProject, arity: int) -> tuple[int, ...]:
    return tuple(c for c in columns_read(mfp) if c < arity)


def _on_top(closure: MapFilterProject, outer: MapFilterProject) -> MapFilterProject:
    return MfpBuilder(closure.input_arity).then(closure).then(outer).build()
