"""Splitting Map, Filter and Project off the top of a plan as one MapFilterProject."""

from __future__ import annotations

from mzlite.expr import relation as r
from mzlite.expr.mfp import MapFilterProject
from mzlite.expr.scalar import Scalar, remap, support


class MfpBuilder:
    """Composes Map, Filter and Project steps, bottom up, over `arity` input columns."""

    def __init__(self, arity: int) -> None:
        self._arity = arity
        self._expressions: list[Scalar] = []
        self._predicates: list[tuple[int, Scalar]] = []
        self._columns = list(range(arity))

    def map(self, scalars: tuple[Scalar, ...]) -> None:
        for s in scalars:
            self._expressions.append(remap(s, self._columns.__getitem__))
            self._columns.append(self._arity + len(self._expressions) - 1)

    def filter(self, predicates: tuple[Scalar, ...]) -> None:
        for p in predicates:
            moved = remap(p, self._columns.__getitem__)
            position = max((c + 1 for c in support(moved)), default=0)
            self._predicates.append((position, moved))

    def project(self, outputs: tuple[int, ...]) -> None:
        self._columns = [self._columns[i] for i in outputs]

    def finish(self) -> MapFilterProject:
        predicates = tuple(sorted(self._predicates, key=lambda p: p[0]))
        return MapFilterProject(self._arity, tuple(self._expressions), predicates, tuple(self._columns))


def split_mfp(e: r.Mir, arity_of: dict[int, int] | None = None) -> tuple[list[r.Mir], r.Mir]:
    """(the Map/Filter/Project nodes from the top down, what is below them)."""
    steps: list[r.Mir] = []
    while isinstance(e, r.Map | r.Filter | r.Project):
        steps.append(e)
        e = e.input
    return steps, e


def compose(steps: list[r.Mir], arity: int) -> MapFilterProject:
    """The MapFilterProject of nodes as `split_mfp` returns them, over an input of `arity` columns."""
    builder = MfpBuilder(arity)
    for node in reversed(steps):
        match node:
            case r.Map(_, scalars):
                builder.map(scalars)
            case r.Filter(_, predicates):
                builder.filter(predicates)
            case r.Project(_, outputs):
                builder.project(outputs)
            case _:
                raise AssertionError(node)
    return builder.finish()
