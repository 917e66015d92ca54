"""Before a join is planned: inputs that read an indexed collection give up what stands between them and the index.

    Join (#0 = #2)                    Project (…)
      Project (#1, #0)                  Filter (#0 > 3)
        Filter (#0 > 3)        ->         Join (#1 = #2)
          Get u1 (index on #1)              Get u1
      …                                     …

Worth it when a key of an index is what the join looks up; the steps then run above the join. A filter by a literal
stays where it is (it leaves few rows, and arranging those is cheap), and so does one that protects an expression of
the join's equivalences from failing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from adapter.transform.context import Context
from adapter.transform.equality import literal_alternatives
from mzlite.expr import relation as r
from mzlite.expr.nulls import rejects_null
from mzlite.expr.scalar import Ref, Scalar, remap, shift, substitute, support
from mzlite.expr.typing import can_error

Above = Callable[[r.Mir], r.Mir]


@dataclass(frozen=True, slots=True)
class _Input:
    """get: what to join instead. columns: the old input's columns over it. predicates: over it."""

    get: r.Get
    columns: tuple[Scalar, ...]
    predicates: tuple[Scalar, ...]


def lift_over_indexes(join: r.Join, context: Context) -> tuple[r.Join, Above | None]:
    """The join over bare Gets where that makes an index usable, and what to put above it."""
    arities = [context.types.arity(i) for i in join.inputs]
    offsets = [0]
    for a in arities:
        offsets.append(offsets[-1] + a)
    lifted: dict[int, _Input] = {}
    for i, input in enumerate(join.inputs):
        steps = _steps(input)
        if steps is not None and _useful(join, offsets[i], arities[i], steps, context):
            lifted[i] = steps
    if not lifted:
        return join, None
    inputs = tuple(lifted[i].get if i in lifted else input for i, input in enumerate(join.inputs))
    columns: list[Scalar] = []
    predicates: list[Scalar] = []
    base = 0
    for i, input in enumerate(inputs):
        if i in lifted:
            columns += [shift(c, base) for c in lifted[i].columns]
            predicates += [shift(p, base) for p in lifted[i].predicates]
        else:
            columns += [Ref(base + c) for c in range(arities[i])]
        base += context.types.arity(input)
    moved = tuple(columns)
    classes = tuple(tuple(substitute(e, moved) for e in cls) for cls in join.equivalences)
    present = {e.column for cls in classes for e in cls if isinstance(e, Ref)}
    kept = tuple(p for p in predicates if not (_is_not_null(p) and rejects_null(p) <= present))

    def above(planned: r.Mir) -> r.Mir:
        out = r.Filter(planned, kept) if kept else planned
        if all(isinstance(c, Ref) for c in columns):
            outputs = tuple(c.column for c in columns if isinstance(c, Ref))
            return out if outputs == tuple(range(base)) else r.Project(out, outputs)
        extra = [c for c in columns if not isinstance(c, Ref)]
        at = iter(range(base, base + len(extra)))
        return r.Project(r.Map(out, tuple(extra)), tuple(c.column if isinstance(c, Ref) else next(at) for c in columns))

    return r.Join(inputs, classes), above


def _is_not_null(p: Scalar) -> bool:
    from mzlite.expr.scalar import Call

    match p:
        case Call("not", (Call("is_null", (Ref(),), _),), _):
            return True
        case _:
            return False


def _steps(e: r.Mir) -> _Input | None:
    layers: list[r.Mir] = []
    while isinstance(e, r.Map | r.Filter | r.Project):
        layers.append(e)
        e = e.input
    if not layers or not isinstance(e, r.Get) or not isinstance(e.id, str):
        return None
    columns: list[Scalar] = [Ref(i) for i in range(e.typ.arity)]
    predicates: list[Scalar] = []
    for layer in reversed(layers):
        match layer:
            case r.Map(_, scalars):
                for s in scalars:
                    columns.append(substitute(s, tuple(columns)))
            case r.Filter(_, ps):
                predicates += [substitute(p, tuple(columns)) for p in ps]
            case r.Project(_, outputs):
                columns = [columns[c] for c in outputs]
            case _:
                raise AssertionError(layer)
    return _Input(e, tuple(columns), tuple(predicates))


def _useful(join: r.Join, base: int, arity: int, steps: _Input, context: Context) -> bool:
    assert isinstance(steps.get.id, str)
    indexes = context.indexes.get(steps.get.id, ())
    if not indexes or any(literal_alternatives(p) is not None for p in steps.predicates):
        return False
    if any(can_error(c) for c in (*steps.columns, *steps.predicates)):
        return False
    keys: set[Scalar] = set()
    for cls in join.equivalences:
        for e in cls:
            reads = support(e)
            if reads and all(base <= c < base + arity for c in reads):
                if steps.predicates and can_error(e):
                    return False
                keys.add(substitute(remap(e, lambda c: c - base), steps.columns))
    return any(index.key and all(k in keys for k in index.key) for index in indexes)
