"""Fusion: neighbours of one kind become one node, and nodes that do nothing go.

    Project(Project)  Map(Map)  Filter(Filter)  Union(Union)  Negate(Negate)  Join(Join)  Filter() Map() Project(identity)

A Join below a Join is lifted through Projects and Filters between them, so that join planning sees all inputs at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from adapter.transform.context import Context
from adapter.transform.equality import equals
from mzlite.expr import relation as r
from mzlite.expr.scalar import Call, Scalar, remap, shift
from mzlite.expr.typing import scalar_type
from mzlite.repr.types import BOOL, ColumnType, RelationType


def fusion(e: r.Mir, context: Context) -> r.Mir:
    return r.rewrite(e, lambda node: _fuse(node, context))


def _fuse(node: r.Mir, context: Context) -> r.Mir:
    match node:
        case r.Project(r.Project(inner, first), outputs):
            return _fuse(r.Project(inner, tuple(first[c] for c in outputs)), context)
        case r.Project(input, outputs) if outputs == tuple(range(context.types.arity(input))):
            return input
        case r.Map(input, ()):
            return input
        case r.Map(r.Map(inner, first), scalars):
            return r.Map(inner, first + scalars)
        case r.Filter(input, ()):
            return input
        case r.Filter(r.Filter(inner, first), predicates):
            return r.Filter(inner, tuple(dict.fromkeys(first + predicates)))
        case r.Negate(r.Negate(inner)):
            return inner
        case r.Negate(r.Union(inputs)):
            return r.Union(tuple(_fuse(r.Negate(i), context) for i in inputs))
        case r.Union((only,)):
            return only
        case r.Union(inputs) if any(isinstance(i, r.Union) for i in inputs):
            flat: list[r.Mir] = []
            for i in inputs:
                flat.extend(i.inputs if isinstance(i, r.Union) else (i,))
            return r.Union(tuple(flat))
        case r.Join(inputs, _, None):
            return _fuse_join(node, context)
        case _:
            return node


def _fuse_join(join: r.Join, context: Context) -> r.Mir:
    """Splice joins among the inputs into this one; also drops inputs of no columns and one row, and joins of one input."""
    if not any(_spliceable(i) or _is_unit(i) for i in join.inputs) and len(join.inputs) > 1:
        return join
    inputs: list[r.Mir] = []
    predicates: list[Scalar] = []
    classes: list[tuple[Scalar, ...]] = []
    columns: list[int] = []  # old column -> new column
    at = 0
    for input in join.inputs:
        if _is_unit(input):
            continue
        outputs, filters, inner = _unwrap(input, context)
        if inner is None:
            inputs.append(input)
            n = context.types.arity(input)
            columns += range(at, at + n)
            at += n
            continue
        base = at
        inputs.extend(inner.inputs)
        classes.extend(tuple(shift(s, base) for s in cls) for cls in inner.equivalences)
        predicates.extend(shift(p, base) for p in filters)
        columns += [base + c for c in outputs]
        at += context.types.arity(inner)
    classes.extend(tuple(remap(s, columns.__getitem__) for s in cls) for cls in join.equivalences)
    out: r.Mir
    merged = merge_classes(classes)
    if len(inputs) > 1:
        out = r.Join(tuple(inputs), merged)
    else:
        out = inputs[0] if inputs else r.Constant((((), 1),), RelationType(()))
        stated = class_predicates(merged, context.types.columns(out))
        if stated is None:
            return join
        predicates += stated
    if predicates:
        out = r.Filter(out, tuple(predicates))
    if columns != list(range(at)):
        out = r.Project(out, tuple(columns))
    return out


def class_predicates(classes: Sequence[tuple[Scalar, ...]], columns: Sequence[ColumnType]) -> list[Scalar] | None:
    """Equivalence classes over one relation, as predicates. None: a type without an equality operator."""
    out: list[Scalar] = []
    for cls in classes:
        first, *others = cls
        if not others:
            out.append(Call("not", (Call("is_null", (first,), BOOL),), BOOL))
        for other in others:
            made = equals(first, other, scalar_type(first, columns).scalar)
            if made is None:
                return None
            out.append(made)
    return out


def _is_unit(e: r.Mir) -> bool:
    return isinstance(e, r.Constant) and e.error is None and e.rows == (((), 1),)


def _spliceable(e: r.Mir) -> bool:
    while isinstance(e, r.Project | r.Filter):
        e = e.input
    return isinstance(e, r.Join) and e.implementation is None


def _unwrap(e: r.Mir, context: Context) -> tuple[tuple[int, ...], list[Scalar], r.Join | None]:
    """Projects and Filters above a Join, as (output columns over the join, predicates over the join, the join)."""
    if not _spliceable(e):
        return (), [], None
    layers: list[r.Project | r.Filter] = []
    while isinstance(e, r.Project | r.Filter):
        layers.append(e)
        e = e.input
    assert isinstance(e, r.Join)
    outputs = tuple(range(context.types.arity(e)))
    predicates: list[Scalar] = []
    for layer in reversed(layers):
        if isinstance(layer, r.Project):
            outputs = tuple(outputs[c] for c in layer.outputs)
        else:
            predicates += [remap(p, outputs.__getitem__) for p in layer.predicates]
    return outputs, predicates, e


def merge_classes(classes: list[tuple[Scalar, ...]]) -> tuple[tuple[Scalar, ...], ...]:
    """Equivalence classes that share an expression become one; classes of one expression stay (they exclude NULL)."""
    owner: dict[Scalar, int] = {}
    merged: dict[int, dict[Scalar, None]] = {}
    for i, cls in enumerate(classes):
        target = i
        merged[i] = dict.fromkeys(cls)
        for e in cls:
            j = owner.get(e)
            if j is not None and j != target:
                a, b = min(j, target), max(j, target)
                merged[a].update(merged.pop(b))
                for x in merged[a]:
                    owner[x] = a
                target = a
        for e in merged[target]:
            owner[e] = target
    return tuple(tuple(c) for c in merged.values())
