"""Union cancellation: A + B - A is B.

Branches are compared without the Negates on their way down, which linear nodes (Project, Map, Filter) let pass.
"""

from __future__ import annotations

from adapter.transform.context import Context
from mzlite.expr import relation as r


def union_cancellation(e: r.Mir, context: Context) -> r.Mir:
    def visit(node: r.Mir) -> r.Mir:
        if not isinstance(node, r.Union):
            return node
        kept: list[tuple[int, r.Mir, r.Mir]] = []
        for input in node.inputs:
            sign, bare = _signed(input)
            opposite = next((i for i, (s, b, _) in enumerate(kept) if s == -sign and b == bare), None)
            if opposite is None:
                kept.append((sign, bare, input))
            else:
                del kept[opposite]
        if len(kept) == len(node.inputs):
            return node
        if not kept:
            return r.Constant((), context.types.typ(node))
        return kept[0][2] if len(kept) == 1 else r.Union(tuple(i for _, _, i in kept))

    return r.rewrite(e, visit)


def _signed(e: r.Mir) -> tuple[int, r.Mir]:
    """(-1 or 1, e without the Negates that linear nodes let pass)."""
    sign = 1
    layers: list[r.Mir] = []
    while isinstance(e, r.Negate | r.Project | r.Map | r.Filter):
        if isinstance(e, r.Negate):
            sign = -sign
        else:
            layers.append(e)
        e = e.input
    for layer in reversed(layers):
        e = r.with_children(layer, (e,))
    return sign, e
