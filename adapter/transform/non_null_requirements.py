"""Non-null requirements: rows with a NULL that a reader above throws away need not be made.

    Filter (#3 > 5)                           Filter (#3 > 5)
      Union                          ->         Join (#0 = #2) …
        Join (#0 = #2) …
        Map (null, null) …

So an outer join below a predicate (or a join) that NULL fails becomes an inner join. Requirements travel down from
filters, join classes and aggregates that ignore NULLs; a union's branch whose required column is always NULL goes.
A binding must satisfy what all its readers require.
"""

from __future__ import annotations

from collections.abc import Iterable

from adapter.transform.context import Context
from adapter.transform.facts import FactsOf
from mzlite.expr import relation as r
from mzlite.expr.nulls import rejects_null, strict_columns
from mzlite.expr.scalar import Ref

Required = frozenset[int]
NOTHING: Required = frozenset()


def non_null_requirements(e: r.Mir, context: Context) -> r.Mir:
    if not any(isinstance(n, r.Union) for n in r.walk(e)):
        return e
    return _Walk(e, context).run(e, NOTHING)


class _Walk:
    def __init__(self, root: r.Mir, context: Context) -> None:
        self.context = context
        self.facts = FactsOf(root, context)
        self.readers: dict[int, list[Required]] = {}

    def run(self, e: r.Mir, required: Required) -> r.Mir:
        match e:
            case r.Get(id, _) if isinstance(id, int):
                self.readers.setdefault(id, []).append(required)
                return e
            case r.Let(id, value, body):
                # The body first: only then are all readers known.
                body = self.run(body, required)
                readers = self.readers.pop(id, [])
                common = frozenset.intersection(*readers) if readers else NOTHING
                return _rebuilt(e, (self.run(value, common), body))
            case r.LetRec():
                body = self.run(e.body, required)
                return _rebuilt(e, (*(self.run(v, NOTHING) for v in e.values), body))
            case r.Union(inputs):
                kept = [i for i in inputs if not self._always_null(i, required)]
                if not kept:
                    return r.Constant((), self.context.types.typ(e))
                new = tuple(self.run(i, required) for i in kept)
                if len(new) == 1:
                    return new[0]
                return _rebuilt(e, new) if len(kept) == len(inputs) else r.Union(new)
            case _:
                needs = self._needs(e, required)
                return _rebuilt(e, tuple(self.run(k, n) for k, n in zip(r.children(e), needs)))

    def _always_null(self, e: r.Mir, required: Required) -> bool:
        if not required:
            return False
        constants = self.facts.of(e).constants
        return any(c in constants and constants[c].value is None for c in required)

    def _needs(self, e: r.Mir, required: Required) -> Iterable[Required]:
        """Per child: columns whose NULLs make no difference to e's own required result."""
        match e:
            case r.Project(_, outputs):
                return (frozenset(outputs[c] for c in required),)
            case r.Map(input, scalars):
                n = self.context.types.arity(input)
                out = set(required)
                for i in range(len(scalars) - 1, -1, -1):
                    if n + i in out:
                        out |= strict_columns(scalars[i])
                return (frozenset(c for c in out if c < n),)
            case r.FlatMap(input, _, _):
                n = self.context.types.arity(input)
                return (frozenset(c for c in required if c < n),)
            case r.Filter(_, predicates):
                return (required.union(*map(rejects_null, predicates)),)
            case r.Join(inputs, equivalences, _):
                out = set(required)
                for cls in equivalences:
                    for m in cls:
                        out |= strict_columns(m)
                parts, base = [], 0
                for input in inputs:
                    n = self.context.types.arity(input)
                    parts.append(frozenset(c - base for c in out if base <= c < base + n))
                    base += n
                return parts
            case r.Reduce(_, group_key, _):
                keys = [k for i, k in enumerate(group_key) if i in required]
                return (frozenset(k.column for k in keys if isinstance(k, Ref)),)
            case r.TopK(_, group_key, _, _, _) | r.Window(_, group_key, _, _):
                return (required & frozenset(group_key),)
            case r.Negate() | r.ArrangeBy():
                return (required,)
            case _:
                # Threshold compares whole rows: a row's copies go or stay together.
                return (required,) if isinstance(e, r.Threshold) else (NOTHING,) * len(r.children(e))


def _rebuilt(e: r.Mir, kids: tuple[r.Mir, ...]) -> r.Mir:
    return e if all(a is b for a, b in zip(kids, r.children(e))) else r.with_children(e, kids)
