"""Vocabulary of the lowering: lowered relations, outer columns by absolute scope, and small builders of MIR.

A *key* `(scope, column)` names an outer column absolutely: scope 0 is the outermost query's row, scope d the row of a query
nested d deep. A `Low` is a MIR relation whose first columns are its keys (none, or all of the frame's domain in
order), followed by the relation's own columns.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from mzlite.expr import relation as mir
from mzlite.expr.functions import FUNCTIONS
from mzlite.expr.scalar import Call, Literal, Ref, Scalar
from mzlite.expr.typing import scalar_type
from mzlite.repr.datum import ArrayDatum, RangeDatum, encode_datum
from mzlite.repr.interval import Interval
from mzlite.repr.types import BOOL, ColumnType, RelationType, ScalarType

Key = tuple[int, int]
Types = tuple[ColumnType, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Low:
    """mir: keys' columns, then own ones; types of all of them."""

    mir: mir.Mir
    keys: tuple[Key, ...]
    types: Types

    @property
    def own(self) -> Types:
        return self.types[len(self.keys) :]


@dataclasses.dataclass(frozen=True, slots=True)
class Binding:
    """A Let: the MIR binding and what it is."""

    id: int
    low: Low


class Ids:
    """Fresh Let numbers for one statement."""

    def __init__(self) -> None:
        self.last = 0

    def fresh(self) -> int:
        self.last += 1
        return self.last


@dataclasses.dataclass(frozen=True, slots=True)
class Frame:
    """Where a relation stands: depth (its own rows are scope `depth`), the domain of outer columns, the Let bindings in sight.

    domain: None at the outermost level; otherwise its mir has exactly the keys' columns, without duplicates.
    """

    ids: Ids
    depth: int = 0
    domain: Low | None = None
    bindings: dict[int, Binding] = dataclasses.field(default_factory=dict)

    @property
    def keys(self) -> tuple[Key, ...]:
        return () if self.domain is None else self.domain.keys

    def bound(self, id: int, binding: Binding) -> Frame:
        return dataclasses.replace(self, bindings={**self.bindings, id: binding})

    def inside(self, domain: Low | None) -> Frame:
        """The frame of a relation one scope deeper."""
        return Frame(self.ids, self.depth + 1, domain, self.bindings)


# ---- builders


def get(id: int, types: Types) -> mir.Mir:
    return mir.Get(id, RelationType(types))


def project(input: mir.Mir, outputs: Sequence[int], width: int) -> mir.Mir:
    if len(outputs) == width and all(i == o for i, o in enumerate(outputs)):
        return input
    if isinstance(input, mir.Project):
        return mir.Project(input.input, tuple(input.outputs[o] for o in outputs))
    return mir.Project(input, tuple(outputs))


def pick(types: Types, outputs: Sequence[int]) -> Types:
    return tuple(types[o] for o in outputs)


def map_(input: mir.Mir, scalars: Sequence[Scalar]) -> mir.Mir:
    return mir.Map(input, tuple(scalars)) if scalars else input


def mapped_types(types: Types, scalars: Sequence[Scalar]) -> Types:
    for e in scalars:
        types = (*types, scalar_type(e, types))
    return types


def filter_(input: mir.Mir, predicates: Sequence[Scalar]) -> mir.Mir:
    return mir.Filter(input, tuple(predicates)) if predicates else input


def join(inputs: Sequence[mir.Mir], equivalences: Sequence[tuple[Scalar, ...]] = ()) -> mir.Mir:
    if len(inputs) == 1 and not equivalences:
        return inputs[0]
    return mir.Join(tuple(inputs), tuple(equivalences))


def distinct(input: mir.Mir, columns: Sequence[int]) -> mir.Mir:
    """Distinct values of the columns: one row without columns when there are none and the input has a row."""
    return mir.Reduce(input, tuple(Ref(c) for c in columns), ())


def union(inputs: Sequence[mir.Mir]) -> mir.Mir:
    return inputs[0] if len(inputs) == 1 else mir.Union(tuple(inputs))


UNIT = mir.Constant((((), 1),), RelationType(()))


def null(typ: ScalarType) -> Literal:
    return Literal(None, typ)


def is_null(e: Scalar, typ: ScalarType) -> Scalar:
    return Call(FUNCTIONS["is_null"].bind([typ]).id, (e,), BOOL)


def not_(e: Scalar) -> Scalar:
    return Call("not", (e,), BOOL)


def stand_in(typ: ScalarType) -> Literal:
    """Some value of the type, for NULL's place in a null-safe comparison."""
    return Literal(encode_datum(typ, _zero(typ)), typ)


def _zero(typ: ScalarType) -> object:
    match typ.kind:
        case "text" | "varchar" | "bpchar" | "char" | "name" | "aclitem" | "mz_aclitem":
            return ""
        case "bool":
            return False
        case "float4" | "float8":
            return 0.0
        case "numeric":
            from decimal import Decimal

            return Decimal(0)
        case "interval":
            return Interval(0, 0, 0)
        case "bytea":
            return b""
        case "uuid":
            return bytes(16)
        case "array":
            return ArrayDatum((), ())
        case "list" | "int2vector":
            return ()
        case "map":
            return {}
        case "jsonb":
            return False
        case "record":
            return tuple(None for _ in typ.fields or ())
        case "range":
            return RangeDatum(None, None, False, False, True)
        case _:
            return 0


def equate(left: int, right: int, typ: ColumnType, *, plain: bool = False) -> list[tuple[Scalar, ...]]:
    """Equivalence classes that hold when two columns are equal or both NULL. plain: NULL need not match (or cannot occur)."""
    if plain or not typ.nullable:
        return [(Ref(left), Ref(right))]
    scalar = typ.scalar
    default = stand_in(scalar)

    def filled(column: int) -> Scalar:
        return Call("coalesce", (Ref(column), default), scalar)

    return [(filled(left), filled(right)), (is_null(Ref(left), scalar), is_null(Ref(right), scalar))]
