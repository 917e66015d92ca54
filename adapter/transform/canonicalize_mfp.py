"""One shape for chains of Map, Filter and Project: Project over Filter over Map over Filter, each at most once.

Expressions that nobody reads go. Equal chains are then equal plans, and what EXPLAIN shows is what a fused
MapFilterProject does. Joins' and other operators' inputs keep their meaning: only the chain itself is rewritten.
"""

from __future__ import annotations

from adapter.transform.context import Context
from mzlite.expr import relation as r
from mzlite.expr.scalar import Ref, Scalar, remap, support


def canonicalize_mfp(e: r.Mir, context: Context) -> r.Mir:
    return _walk(e, context)


def _walk(e: r.Mir, context: Context) -> r.Mir:
    if isinstance(e, r.Map | r.Filter | r.Project):
        chain: list[r.Mir] = []
        below: r.Mir = e
        while isinstance(below, r.Map | r.Filter | r.Project):
            chain.append(below)
            below = below.input
        new = _walk(below, context)
        if len(chain) == 1 and new is below:
            return e
        return _canonical(chain, new, context.types.arity(below))
    kids = r.children(e)
    rebuilt = tuple(_walk(k, context) for k in kids)
    return e if all(a is b for a, b in zip(rebuilt, kids)) else r.with_children(e, rebuilt)


def _canonical(chain: list[r.Mir], below: r.Mir, arity: int) -> r.Mir:
    """chain: from the top down."""
    expressions: list[Scalar] = []
    predicates: dict[Scalar, None] = {}
    columns = list(range(arity))
    for node in reversed(chain):
        match node:
            case r.Map(_, scalars):
                for s in scalars:
                    moved = remap(s, columns.__getitem__)
                    if isinstance(moved, Ref):
                        columns.append(moved.column)
                    else:
                        expressions.append(moved)
                        columns.append(arity + len(expressions) - 1)
            case r.Filter(_, ps):
                predicates.update((remap(p, columns.__getitem__), None) for p in ps)
            case r.Project(_, outputs):
                columns = [columns[c] for c in outputs]
    needed = set(columns).union(*(support(p) for p in predicates))
    for i in range(len(expressions) - 1, -1, -1):
        if arity + i in needed:
            needed |= support(expressions[i])
    kept = [i for i in range(len(expressions)) if arity + i in needed]
    at = {c: c for c in range(arity)} | {arity + i: arity + n for n, i in enumerate(kept)}
    out = below
    # Filters that read no new expression come first: rows they drop are not mapped.
    early = tuple(p for p in predicates if all(c < arity for c in support(p)))
    late = tuple(remap(p, at) for p in predicates if p not in early)
    if early and (late or kept):
        out, early = r.Filter(out, early), ()
    if kept:
        out = r.Map(out, tuple(remap(expressions[i], at) for i in kept))
    if early or late:
        out = r.Filter(out, early + late)
    outputs = tuple(at[c] for c in columns)
    return out if outputs == tuple(range(arity + len(kept))) else r.Project(out, outputs)
