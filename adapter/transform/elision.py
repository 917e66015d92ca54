"""Elision: work whose outcome is known.

Distinct over a unique key      the rows are distinct already: a Project
Threshold of what never dips    rows of a plan without Negate have positive multiplicities
TopK of all rows                no limit, no offset
"""

from __future__ import annotations

from adapter.transform.context import Context
from mzlite.expr import relation as r
from mzlite.expr.scalar import Ref


def elision(e: r.Mir, context: Context) -> r.Mir:
    bound: dict[int, bool] = {}
    for node in r.walk(e):
        if isinstance(node, r.Let):
            bound[node.id] = any(isinstance(n, r.Negate) for n in r.walk(node.value))

    def visit(node: r.Mir) -> r.Mir:
        match node:
            case r.Reduce(input, group_key, ()) if group_key and all(isinstance(k, Ref) for k in group_key):
                columns = {k.column for k in group_key if isinstance(k, Ref)}
                if any(set(key) <= columns for key in context.types.typ(input).keys):
                    return r.Project(input, tuple(k.column for k in group_key if isinstance(k, Ref)))
                return node
            case r.Threshold(input) if not _may_dip(input, bound):
                return input
            case r.TopK(input, _, _, None, 0):
                return input
            case _:
                return node

    return r.rewrite(e, visit)


def _may_dip(e: r.Mir, bound: dict[int, bool]) -> bool:
    """Could a row's multiplicity be negative? Distinct, TopK and Reduce start afresh."""
    todo = [e]
    while todo:
        node = todo.pop()
        match node:
            case r.Negate():
                return True
            case r.Constant(rows, _, _):
                if any(diff < 0 for _, diff in rows):
                    return True
            case r.Get(id, _) if isinstance(id, int):
                if bound.get(id, True):
                    return True
            case r.Reduce() | r.TopK() | r.Threshold():
                continue
            case _:
                todo.extend(r.children(node))
    return False
