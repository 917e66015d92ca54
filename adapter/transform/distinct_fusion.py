"""Distincts that a later one makes needless.

    Distinct [#0]                          Distinct [#1]
      Project / Filter / Map / Union ->      Project / Filter / Map / Union
        Distinct [#1, #2]                      Project (#1, #2)

The same under aggregates that do not count copies (min, max, bool_and, bool_or, DISTINCT ones). The walk stops where
multiplicities matter: at Negate, Threshold, TopK, Window, a Reduce that counts, a join (whose inputs would grow).
"""

from __future__ import annotations

from adapter.transform.context import Context
from mzlite.expr import relation as r
from mzlite.expr.aggregates import AGGREGATES
from mzlite.expr.scalar import Aggregate, Ref

_IDEMPOTENT = ("min", "max", "bool_and", "bool_or", "every", "mz_any", "mz_all")


def distinct_fusion(e: r.Mir, context: Context) -> r.Mir:
    def visit(node: r.Mir) -> r.Mir:
        if isinstance(node, r.Reduce) and all(map(_ignores_copies, node.aggregates)):
            below = _loosen(node.input)
            return node if below is node.input else r.with_children(node, (below,))
        return node

    return r.rewrite(e, visit)


def _ignores_copies(a: Aggregate) -> bool:
    return a.distinct or AGGREGATES[a.func].name in _IDEMPOTENT


def _loosen(e: r.Mir) -> r.Mir:
    match e:
        case r.Reduce(input, group_key, ()):
            below = _loosen(input)
            if all(isinstance(k, Ref) for k in group_key):
                return r.Project(below, tuple(k.column for k in group_key if isinstance(k, Ref)))
            return e if below is input else r.with_children(e, (below,))
        case r.Project() | r.Filter() | r.Map():
            below = _loosen(e.input)
            return e if below is e.input else r.with_children(e, (below,))
        case r.Union(inputs) if not any(isinstance(n, r.Negate) for i in inputs for n in _linear(i)):
            new = tuple(map(_loosen, inputs))
            return e if all(a is b for a, b in zip(new, inputs)) else r.Union(new)
        case _:
            return e


def _linear(e: r.Mir) -> list[r.Mir]:
    """The nodes from e down to where multiplicities start afresh."""
    out: list[r.Mir] = []
    todo = [e]
    while todo:
        node = todo.pop()
        out.append(node)
        if isinstance(node, r.Project | r.Filter | r.Map | r.Union | r.Negate):
            todo.extend(r.children(node))
    return out
