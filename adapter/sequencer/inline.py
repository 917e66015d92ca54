"""Views are definitions: before a query is optimized, each view it reads is replaced by the view's own plan.

    Get u7 (a view)  ->  the view's optimized MIR, its local bindings renumbered; recursively

Tables, sources, materialized views and builtins stay as Gets. Source: Materialize's `DataflowBuilder::import_view`,
but inlined at once, since the optimizer looks through views anyway.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from mzlite.expr import relation as r
from mzlite.repr.ids import GlobalId, LocalId

Definition = Callable[[GlobalId], r.Mir | None]
"""The MIR of a view, None for anything that is read as it stands."""


def inline_views(e: r.Mir, definition: Definition, keep: Callable[[GlobalId], bool] = lambda id: False) -> r.Mir:
    """e without views. keep(id): a view that stays a Get (an index on it can be read)."""
    fresh = itertools.count(_next_local(e))
    parts: dict[GlobalId, r.Mir] = {}

    def resolve(id: GlobalId) -> r.Mir | None:
        found = parts.get(id)
        if found is None:
            mir = None if keep(id) else definition(id)
            if mir is None:
                return None
            found = parts[id] = r.rewrite(mir, visit)
        return found

    def visit(node: r.Mir) -> r.Mir:
        match node:
            case r.Get(id, _) if isinstance(id, str):
                found = resolve(id)
                return node if found is None else renumber(found, fresh)
            case _:
                return node

    return r.rewrite(e, visit)


def _next_local(e: r.Mir) -> int:
    highest = -1
    for node in r.walk(e):
        match node:
            case r.Let(id, _, _):
                highest = max(highest, id)
            case r.LetRec(ids=ids):
                highest = max(highest, *ids)
            case _:
                pass
    return highest + 1


def renumber(e: r.Mir, fresh: itertools.count[int]) -> r.Mir:
    """e with new ids for all its bindings."""
    mapping: dict[LocalId, LocalId] = {}
    for node in r.walk(e):
        match node:
            case r.Let(id, _, _):
                mapping.setdefault(id, next(fresh))
            case r.LetRec(ids=ids):
                for i in ids:
                    mapping.setdefault(i, next(fresh))
            case _:
                pass
    if not mapping:
        return e

    def visit(node: r.Mir) -> r.Mir:
        match node:
            case r.Get(id, typ) if isinstance(id, int) and id in mapping:
                return r.Get(mapping[id], typ)
            case r.Let(id, value, body):
                return r.Let(mapping[id], value, body)
            case r.LetRec():
                ids = tuple(mapping[i] for i in node.ids)
                return r.LetRec(ids, node.values, node.typs, node.body, node.limit, node.return_at_limit)
            case _:
                return node

    return r.rewrite(e, visit)
