"""Common subexpressions and let bindings.

A plan is read into a graph in which equal expressions are one node (existing Lets vanish into sharing), then written
back: what is read more than once and costs something becomes a Let again, everything else stands where it is used. A
node that depends on a recursive binding stays inside that LetRec; what does not is hoisted out of the loop.

Row-wise nodes over a Get are not worth a binding: they fuse into their readers.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from adapter.transform.context import Context
from mzlite.expr import relation as r
from mzlite.repr.types import RelationType

_NOTHING = RelationType(())


@dataclass(slots=True)
class _Node:
    """shape: the node with its children replaced by Get(graph id). level: how deep the innermost recursive binding it
    reads stands (0: closed). regions: graph ids of a LetRec's values and body, rebuilt as scopes of their own."""

    shape: r.Mir
    kids: tuple[int, ...]
    level: int
    typ: RelationType
    rec: r.LetRec | None = None
    rec_ids: tuple[int, ...] = ()


@dataclass(slots=True)
class _Graph:
    nodes: list[_Node] = field(default_factory=list)
    known: dict[r.Mir, int] = field(default_factory=dict)
    rec_count: int = 0


def normalize_lets(e: r.Mir, context: Context) -> r.Mir:
    graph = _Graph()
    root = _read(e, {}, 0, graph, context)
    return _Writer(graph).write(root)


def _read(e: r.Mir, env: dict[int, int], depth: int, graph: _Graph, context: Context) -> int:
    match e:
        case r.Get(id, _) if isinstance(id, int):
            return env[id]
        case r.Let(id, value, body):
            inner = dict(env)
            while True:
                inner[id] = _read(value, inner, depth, graph, context)
                if not isinstance(body, r.Let):
                    return _read(body, inner, depth, graph, context)
                id, value, body = body.id, body.value, body.body
        case r.LetRec(ids, _, _, body) if (read := _bindings_read(e)) != set(ids):
            kept = [i for i, id in enumerate(ids) if id in read]
            if not kept:
                return _read(body, env, depth, graph, context)
            pruned = msgspec.structs.replace(
                e,
                ids=tuple(ids[i] for i in kept),
                values=tuple(e.values[i] for i in kept),
                typs=tuple(e.typs[i] for i in kept),
            )
            return _read(pruned, env, depth, graph, context)
        case r.LetRec(ids, values, typs, body):
            inner = dict(env)
            rec_ids = []
            for id, t in zip(ids, typs):
                graph.rec_count += 1
                # A unique shape: no two recursive bindings are ever the same expression.
                graph.nodes.append(_Node(r.Get(-graph.rec_count, t), (), depth + 1, t))
                inner[id] = len(graph.nodes) - 1
                rec_ids.append(inner[id])
            kids = tuple(_read(v, inner, depth + 1, graph, context) for v in (*values, body))
            level = max((_outer_level(graph, k, depth) for k in kids), default=0)
            graph.nodes.append(_Node(e, kids, level, context.types.typ(e), e, tuple(rec_ids)))
            return len(graph.nodes) - 1
    kids = tuple(_read(k, env, depth, graph, context) for k in r.children(e))
    shape = r.with_children(e, tuple(r.Get(k, _NOTHING) for k in kids)) if kids else e
    found = graph.known.get(shape)
    if found is not None:
        return found
    level = max((graph.nodes[k].level for k in kids), default=0)
    graph.nodes.append(_Node(shape, kids, level, context.types.typ(e)))
    graph.known[shape] = len(graph.nodes) - 1
    return len(graph.nodes) - 1


def _bindings_read(rec: r.LetRec) -> set[int]:
    """The bindings that the body needs. The others need not come to rest: they are not computed."""
    values = dict(zip(rec.ids, rec.values))
    found: set[int] = set()
    pending = [rec.body]
    while pending:
        for node in r.walk(pending.pop()):
            if isinstance(node, r.Get) and node.id in values and node.id not in found:
                assert isinstance(node.id, int)
                found.add(node.id)
                pending.append(values[node.id])
    return found


def _outer_level(graph: _Graph, root: int, depth: int) -> int:
    """The deepest level at most `depth` that the region under root reads."""
    best, seen, todo = 0, set[int](), [root]
    while todo:
        i = todo.pop()
        if i in seen:
            continue
        seen.add(i)
        node = graph.nodes[i]
        if node.level <= depth:
            best = max(best, node.level)
            continue
        todo.extend(node.kids)
    return best


class _Writer:
    def __init__(self, graph: _Graph) -> None:
        self.graph = graph
        self.bound: dict[int, int] = {}
        self.next_local = 0

    def write(self, root: int) -> r.Mir:
        return self._region((root,), 0)[0]

    def _local(self) -> int:
        self.next_local += 1
        return self.next_local - 1

    def _region(self, roots: tuple[int, ...], level: int) -> list[r.Mir]:
        """Rebuild a scope: bind what is shared at this level, then write the root (one root, or a LetRec's parts)."""
        out = []
        for root in roots:
            counts: dict[int, int] = {root: 1}
            order: list[int] = []
            seen: set[int] = set()
            stack: list[tuple[int, bool]] = [(root, False)]
            while stack:
                i, ready = stack.pop()
                if ready:
                    order.append(i)
                    continue
                if i in seen:
                    continue
                seen.add(i)
                stack.append((i, True))
                for k in self.graph.nodes[i].kids:
                    counts[k] = counts.get(k, 0) + 1
                    stack.append((k, False))
            bindings: list[tuple[int, r.Mir]] = []
            fresh: list[int] = []
            for i in order:
                node = self.graph.nodes[i]
                if node.level == level and i != root and counts[i] > 1 and i not in self.bound and self._worth(i):
                    value = self._expr(i, level)
                    local = self._local()
                    self.bound[i] = local
                    fresh.append(i)
                    bindings.append((local, value))
            body = self._expr(root, level)
            for i in fresh:
                del self.bound[i]
            for local, value in reversed(bindings):
                body = r.Let(local, value, body)
            out.append(body)
        return out

    def _worth(self, i: int) -> bool:
        """Is a second evaluation more than fused row-wise work?"""
        node = self.graph.nodes[i]
        while isinstance(node.shape, r.Map | r.Filter | r.Project):
            node = self.graph.nodes[node.kids[0]]
        return not isinstance(node.shape, r.Get) and not (
            isinstance(node.shape, r.Constant) and len(node.shape.rows) < 10
        )

    def _expr(self, i: int, level: int) -> r.Mir:
        if i in self.bound:
            return r.Get(self.bound[i], self.graph.nodes[i].typ)
        node = self.graph.nodes[i]
        if node.rec is None:
            if not node.kids:
                return node.shape
            return r.with_children(node.shape, tuple(self._expr(k, level) for k in node.kids))
        locals_ = []
        inner = self.graph.nodes[node.rec_ids[0]].level if node.rec_ids else level + 1
        for rec in node.rec_ids:
            self.bound[rec] = self._local()
            locals_.append(self.bound[rec])
        parts = self._region(node.kids, inner)
        rec_expr = r.LetRec(
            tuple(locals_), tuple(parts[:-1]), node.rec.typs, parts[-1], node.rec.limit, node.rec.return_at_limit
        )
        for rec in node.rec_ids:
            del self.bound[rec]
        return rec_expr
