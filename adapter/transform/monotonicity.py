"""Monotonicity: reduces and limits over inputs that only grow say so.

An input only grows when it reads append-only collections through nodes that never take a row back: Project, Map, Filter
(not on mz_now(): its rows leave), FlatMap, Join, Union, a Distinct. An aggregate's or a limit's own output changes its
rows, so it does not. Recursive bindings are taken to change. Physical plans may then keep less state.
"""

from __future__ import annotations

import msgspec

from adapter.transform.context import Context
from mzlite.expr import relation as r
from mzlite.expr.scalar import Unmaterializable, walk


def monotonicity(e: r.Mir, context: Context) -> r.Mir:
    if not context.append_only:
        return e
    grows: dict[int, bool] = {}
    values: dict[int, r.Mir] = {n.id: n.value for n in r.walk(e) if isinstance(n, r.Let)}

    def only_grows(node: r.Mir) -> bool:
        match node:
            case r.Constant(rows, _, _):
                return all(diff > 0 for _, diff in rows)
            case r.Get(id, _) if isinstance(id, int):
                if id not in grows:
                    grows[id] = id in values and only_grows(values[id])
                return grows[id]
            case r.Get(id, _):
                return id in context.append_only
            case r.Filter(input, predicates):
                timeless = not any(isinstance(n, Unmaterializable) for p in predicates for n in walk(p))
                return timeless and only_grows(input)
            case r.FlatMap(input, func, _):
                return "repeat_row" not in func.func and only_grows(input)
            case r.Project() | r.Map() | r.ArrangeBy() | r.Reduce(_, _, ()):
                return only_grows(node.input)
            case r.Join() | r.Union():
                return all(map(only_grows, node.inputs))
            case r.Let():
                return only_grows(node.body)
            case _:
                return False

    def visit(node: r.Mir) -> r.Mir:
        if isinstance(node, r.Reduce | r.TopK) and not node.monotonic and only_grows(node.input):
            return msgspec.structs.replace(node, monotonic=True)
        return node

    return r.rewrite(e, visit)
