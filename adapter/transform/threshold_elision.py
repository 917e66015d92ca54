"""Threshold elision: what cannot dip below zero needs no Threshold.

Threshold (A)                      A, when no Negate reaches it
Threshold (A + Negate(B))          A + Negate(B), when B's rows are among A's
"""

from __future__ import annotations

from adapter.transform.context import Context
from adapter.transform.subset import contained
from mzlite.expr import relation as r


def threshold_elision(e: r.Mir, context: Context) -> r.Mir:
    thresholds = any(isinstance(n, r.Threshold) for n in r.walk(e))
    if not thresholds:
        return e
    bound: dict[int, bool] = {}
    values: dict[int, r.Mir] = {}
    for node in r.walk(e):
        if isinstance(node, r.Let):
            values[node.id] = node.value
    for id in values:
        bound[id] = any(isinstance(n, r.Negate) for n in r.walk(values[id]))

    def visit(node: r.Mir) -> r.Mir:
        match node:
            case r.Threshold(r.Threshold() as inner):
                return inner
            case r.Threshold(input) if not may_dip(input, bound):
                return input
            case r.Threshold(r.Union((a, r.Negate(b))) as difference) | r.Threshold(
                r.Union((r.Negate(b), a)) as difference
            ):
                if not may_dip(a, bound) and not may_dip(b, bound) and contained(b, a, context):
                    return difference
                return node
            case _:
                return node

    return r.rewrite(e, visit)


def may_dip(e: r.Mir, bound: dict[int, bool]) -> bool:
    """Could a row's multiplicity be negative? Distinct, TopK and Reduce start afresh. bound: of Let bindings, if known."""
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
            case r.FlatMap(_, func, _) if "repeat_row" in func.func:
                return True
            case r.Reduce() | r.TopK() | r.Threshold():
                continue
            case _:
                todo.extend(r.children(node))
    return False
