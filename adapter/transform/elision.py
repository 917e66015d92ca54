"""Elision of a TopK that keeps all rows, and of an ArrangeBy without keys."""

from __future__ import annotations

from adapter.transform.context import Context
from mzlite.expr import relation as r


def elision(e: r.Mir, context: Context) -> r.Mir:
    def visit(node: r.Mir) -> r.Mir:
        match node:
            case r.TopK(input, _, _, None, 0) | r.ArrangeBy(input, ()):
                return input
            case _:
                return node

    return r.rewrite(e, visit)
