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
    return _Walk().run(e, loose=False)


def _ignores_copies(a: Aggregate) -> bool:
    return a.distinct or AGGREGATES[a.func].name in _IDEMPOTENT


class _Walk:
    """One walk from the root. loose: the reader does not count copies."""

    def __init__(self) -> None:
        self._negated: dict[int, tuple[r.Mir, bool]] = {}

    def run(self, e: r.Mir, loose: bool) -> r.Mir:
        kids = r.children(e)
        if not kids:
            return e
        new: tuple[r.Mir, ...]
        match e:
            case r.Reduce(_, group_key, aggregates):
                below = self.run(e.input, all(map(_ignores_copies, aggregates)))
                new = (below,)
                if loose and not aggregates and all(isinstance(k, Ref) for k in group_key):
                    return r.Project(below, tuple(k.column for k in group_key if isinstance(k, Ref)))
            case r.Project() | r.Filter() | r.Map():
                new = (self.run(e.input, loose),)
            case r.Union(inputs):
                loose = loose and not self._negates(e)
                new = tuple(self.run(i, loose) for i in inputs)
            case _:
                new = tuple(self.run(k, loose=False) for k in kids)
        return e if all(a is b for a, b in zip(new, kids)) else r.with_children(e, new)

    def _negates(self, e: r.Mir) -> bool:
        """Is there a Negate between e and where multiplicities start afresh?"""
        if isinstance(e, r.Negate):
            return True
        if not isinstance(e, r.Project | r.Filter | r.Map | r.Union):
            return False
        found = self._negated.get(id(e))
        if found is None:
            found = self._negated[id(e)] = (e, any(map(self._negates, r.children(e))))
        return found[1]
