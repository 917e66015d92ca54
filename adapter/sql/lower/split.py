"""Correlation by equalities only: `select … from u where u.k = t.k and p(u)` needs no domain.

`split(r)` writes r as  project(outputs, filter(inner = outer for each pair, base))  with an uncorrelated base, so that "the rows of r for
this outer row" is a join of the outer relation with base on the pairs.
"""

from __future__ import annotations

import dataclasses

from adapter.sql import hir
from adapter.sql.lower.frame import Frame
from adapter.sql.lower.free import free_keys


@dataclasses.dataclass(frozen=True, slots=True)
class Split:
    """pairs: (outer scalar, as seen from r's scope; inner scalar over base's columns). outputs: r's columns among base's."""

    base: hir.Relation
    pairs: tuple[tuple[hir.Scalar, hir.Scalar], ...]
    outputs: tuple[int, ...]


def split(r: hir.Relation, frame: Frame, depth: int) -> Split | None:
    """None when r's correlation has another form. depth: scope of r's rows."""
    if not free_keys(r, frame, depth):
        return Split(r, (), tuple(range(hir.arity(r))))
    match r:
        case hir.Project(input, outputs):
            inner = split(input, frame, depth)
            return (
                None if inner is None else dataclasses.replace(inner, outputs=tuple(inner.outputs[o] for o in outputs))
            )
        case hir.Filter(input, predicates):
            inner = split(input, frame, depth)
            return None if inner is None else _filtered(inner, predicates)
        case hir.Map(input, scalars):
            inner = split(input, frame, depth)
            if inner is None or any(_reads_outside(e) for e in scalars):
                return None
            base, places = inner.base, list(inner.outputs)
            width = hir.arity(base)
            new: list[hir.Scalar] = []
            for e in scalars:
                new.append(_moved(e, tuple(places)))
                places.append(width + len(new) - 1)
            return Split(hir.Map(base, tuple(new)), inner.pairs, tuple(places))
        case hir.Join(left, right, on, "inner"):
            a, b = split(left, frame, depth), split(right, frame, depth)
            if a is None or b is None:
                return None
            width = hir.arity(a.base)
            moved = tuple((outer, _shifted(inner_side, width)) for outer, inner_side in b.pairs)
            joined = Split(
                hir.Join(a.base, b.base, None, "inner"),
                a.pairs + moved,
                a.outputs + tuple(width + o for o in b.outputs),
            )
            return _filtered(joined, hir.conjuncts(on))
        case _:
            return None


def _filtered(inner: Split, predicates: tuple[hir.Scalar, ...]) -> Split | None:
    local: list[hir.Scalar] = []
    pairs = list(inner.pairs)
    for p in predicates:
        if not _reads_outside(p):
            local.append(_moved(p, inner.outputs))
            continue
        pair = _pair(p)
        if pair is None:
            return None
        outer, own = pair
        pairs.append((outer, _moved(own, inner.outputs)))
    base = hir.Filter(inner.base, tuple(local)) if local else inner.base
    return Split(base, tuple(pairs), inner.outputs)


def _pair(p: hir.Scalar) -> tuple[hir.Scalar, hir.Scalar] | None:
    """(outer side, own side) of an equality between the two."""
    if not isinstance(p, hir.Call) or not p.func.startswith("eq_") or len(p.args) != 2:
        return None
    a, b = p.args
    if _only_outside(a) and not _reads_outside(b) and _reads_own(b):
        return a, b
    if _only_outside(b) and not _reads_outside(a) and _reads_own(a):
        return b, a
    return None


def _reads_outside(e: hir.Scalar) -> bool:
    return any(isinstance(n, hir.Column) and n.level > depth for n, depth in hir.walk(e))


def _reads_own(e: hir.Scalar) -> bool:
    return any(isinstance(n, hir.Column) and n.level == depth for n, depth in hir.walk(e))


def _only_outside(e: hir.Scalar) -> bool:
    """Outer columns and no own ones, and nothing with a subquery."""
    for n, _ in hir.walk(e):
        if isinstance(n, hir.Exists | hir.ScalarQuery | hir.Quantified):
            return False
        if isinstance(n, hir.Column) and n.level == 0:
            return False
    return _reads_outside(e)


def _moved(e: hir.Scalar, outputs: tuple[int, ...]) -> hir.Scalar:
    """e over r's columns, restated over base's."""

    def g(n: hir.Scalar, depth: int) -> hir.Scalar | None:
        if isinstance(n, hir.Column):
            return hir.Column(n.level, outputs[n.column], n.typ, n.name) if n.level == depth else n
        return None

    return hir.rewrite(e, g)


def _shifted(e: hir.Scalar, by: int) -> hir.Scalar:
    def g(n: hir.Scalar, depth: int) -> hir.Scalar | None:
        if isinstance(n, hir.Column):
            return hir.Column(n.level, n.column + by, n.typ, n.name) if n.level == depth else n
        return None

    return hir.rewrite(e, g)
