"""Fusing Map, Filter and Project into one MapFilterProject, and taking temporal bounds out of predicates."""

from __future__ import annotations

from collections.abc import Sequence

from mzlite.expr.functions import FUNCTIONS
from mzlite.expr.mfp import MapFilterProject
from mzlite.expr.scalar import Call, Ref, Scalar, Unmaterializable, remap, support, walk
from mzlite.expr.text import print_scalar
from mzlite.repr.errors import SqlError
from mzlite.repr.types import MZ_TIMESTAMP

_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


class MfpBuilder:
    """Steps are added from the input upwards; `projection` are the columns visible to the next step."""

    def __init__(self, arity: int) -> None:
        self.arity = arity
        self.expressions: list[Scalar] = []
        self.predicates: list[tuple[int, Scalar]] = []
        self.lower_bounds: list[Scalar] = []
        self.upper_bounds: list[Scalar] = []
        self.projection: list[int] = list(range(arity))

    def _here(self, e: Scalar) -> Scalar:
        """e over the visible columns, as an expression over input and added columns."""
        projection = self.projection
        return remap(e, lambda c: projection[c])

    def map(self, scalars: Sequence[Scalar]) -> MfpBuilder:
        for e in scalars:
            e = self._here(e)
            if isinstance(e, Ref):
                self.projection.append(e.column)
            elif e in self.expressions:
                self.projection.append(self.arity + self.expressions.index(e))
            else:
                self.projection.append(self.arity + len(self.expressions))
                self.expressions.append(e)
        return self

    def filter(self, predicates: Sequence[Scalar]) -> MfpBuilder:
        for e in predicates:
            e = self._here(e)
            for part in _conjuncts(e) if mentions_now(e) else (e,):
                if mentions_now(part):
                    self._bound(part)
                else:
                    self.predicates.append((max(support(part), default=-1) + 1, part))
        return self

    def project(self, outputs: Sequence[int]) -> MfpBuilder:
        self.projection = [self.projection[i] for i in outputs]
        return self

    def then(self, mfp: MapFilterProject) -> MfpBuilder:
        """All of another mfp over the visible columns."""
        self.map(mfp.expressions)
        self.filter([p for _, p in mfp.predicates])
        self.lower_bounds += [self._here(b) for b in mfp.lower_bounds]
        self.upper_bounds += [self._here(b) for b in mfp.upper_bounds]
        return self.project(mfp.projection)

    def build(self) -> MapFilterProject:
        """The mfp, without expressions that nothing reads."""
        needed = set(self.projection)
        for e in (*(p for _, p in self.predicates), *self.lower_bounds, *self.upper_bounds):
            needed |= support(e)
        for i in range(len(self.expressions) - 1, -1, -1):
            if self.arity + i in needed:
                needed |= support(self.expressions[i])
        kept = [i for i in range(len(self.expressions)) if self.arity + i in needed]
        moved = {i: i for i in range(self.arity)}
        moved |= {self.arity + old: self.arity + new for new, old in enumerate(kept)}
        predicates = [remap(p, moved) for _, p in self.predicates]
        return MapFilterProject(
            self.arity,
            tuple(remap(self.expressions[i], moved) for i in kept),
            tuple(sorted(((max(support(p), default=-1) + 1, p) for p in predicates), key=lambda item: item[0])),
            tuple(moved[i] for i in self.projection),
            tuple(remap(b, moved) for b in self.lower_bounds),
            tuple(remap(b, moved) for b in self.upper_bounds),
        )

    def _bound(self, e: Scalar) -> None:
        """mz_now() compared with an expression that does not mention it."""
        if isinstance(e, Call) and len(e.args) == 2:
            entry = FUNCTIONS[e.func]
            left, right = e.args
            op = entry.name
            if is_now(right):
                left, right = right, left
                op = _FLIPPED.get(op, "")
            if entry.operator and op in _FLIPPED and is_now(left) and not mentions_now(right):
                after = Call("step_mz_timestamp", (right,), MZ_TIMESTAMP)
                if op in (">=", ">", "="):
                    self.lower_bounds.append(after if op == ">" else right)
                if op in ("<=", "<", "="):
                    self.upper_bounds.append(right if op == "<" else after)
                return
        raise SqlError(
            "0A000",
            "Unsupported temporal predicate. Note: `mz_now()` must be directly compared to a non-temporal expression "
            f"of mz_timestamp-castable type. Expression found: {print_scalar(e)}",
        )


def is_now(e: Scalar) -> bool:
    return isinstance(e, Unmaterializable) and e.func == "mz_now"


def mentions_now(e: Scalar) -> bool:
    return any(isinstance(n, Unmaterializable) for n in walk(e))


def _conjuncts(e: Scalar) -> tuple[Scalar, ...]:
    if isinstance(e, Call) and e.func == "and":
        return tuple(part for a in e.args for part in _conjuncts(a))
    return (e,)


def columns_read(mfp: MapFilterProject) -> tuple[int, ...]:
    """Input columns that mfp reads, ascending."""
    read: set[int] = {i for i in mfp.projection if i < mfp.input_arity}
    scalars = [*mfp.expressions, *(p for _, p in mfp.predicates), *mfp.lower_bounds, *mfp.upper_bounds]
    for e in scalars:
        read |= {i for i in support(e) if i < mfp.input_arity}
    return tuple(sorted(read))


def narrowed(mfp: MapFilterProject, columns: Sequence[int]) -> MapFilterProject:
    """mfp over only `columns` of its input (which must hold all it reads)."""
    arity = len(columns)
    mapping = {c: i for i, c in enumerate(columns)}
    for j in range(len(mfp.expressions)):
        mapping[mfp.input_arity + j] = arity + j

    def move(position: int) -> int:
        if position >= mfp.input_arity:
            return position - mfp.input_arity + arity
        return sum(1 for c in columns if c < position)

    return MapFilterProject(
        arity,
        tuple(remap(e, mapping) for e in mfp.expressions),
        tuple((move(p), remap(e, mapping)) for p, e in mfp.predicates),
        tuple(mapping[i] for i in mfp.projection),
        tuple(remap(e, mapping) for e in mfp.lower_bounds),
        tuple(remap(e, mapping) for e in mfp.upper_bounds),
    )
