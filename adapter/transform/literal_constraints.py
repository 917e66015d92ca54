"""Literal constraints: `key = 5` on an indexed collection becomes an index lookup.

    Filter (#0 = 5) AND p          Filter p
      Get u1              ->         Project (columns of u1)
                                       Join type=indexed_filter   Get u1, Constant (5)

Every key expression of the index must be pinned to literals, by `=` or by alternatives (IN lists, also of rows); the
lookup rows are their product. Among usable indexes the one with the longest key wins.
"""

from __future__ import annotations

from itertools import product

from adapter.transform.context import Context, IndexInfo
from adapter.transform.equality import literal_alternatives
from mzlite.expr import relation as r
from mzlite.expr.scalar import Call, Literal, Ref, Scalar
from mzlite.expr.typing import scalar_type
from mzlite.repr.ids import GlobalId
from mzlite.repr.types import RelationType

MAX_LOOKUPS = 10_000


def literal_constraints(e: r.Mir, context: Context) -> r.Mir:
    def visit(node: r.Mir) -> r.Mir:
        match node:
            case r.Filter(r.Get(id, _) as get, predicates) if isinstance(id, str):
                return _lookup(get, id, predicates, context) or node
            case _:
                return node

    return r.rewrite(e, visit) if context.indexes else e


def _lookup(get: r.Get, id: GlobalId, predicates: tuple[Scalar, ...], context: Context) -> r.Mir | None:
    pinned: dict[Scalar, tuple[tuple[Literal, ...], Scalar | None]] = {}

    def pin(subject: Scalar, literals: tuple[Literal, ...], stated_by: Scalar | None) -> None:
        if subject not in pinned or len(literals) < len(pinned[subject][0]):
            pinned[subject] = (literals, stated_by)

    for p in predicates:
        found = literal_alternatives(p)
        if found is not None:
            pin(*found, p)
            continue
        # The predicate says more than that, so it stays.
        for subject, literals in _implied(p).items():
            pin(subject, literals, None)
    usable = [i for i in context.indexes.get(id, ()) if i.key and all(k in pinned for k in i.key)]
    if not usable:
        return None
    index: IndexInfo = max(usable, key=lambda i: len(i.key))
    columns = get.typ.columns
    types = RelationType(tuple(scalar_type(k, columns) for k in index.key))
    if any(lit.typ.kind != t.scalar.kind for k, t in zip(index.key, types.columns) for lit in pinned[k][0]):
        return None
    values = tuple(
        dict.fromkeys(tuple(lit.value for lit in row) for row in _bounded_product([pinned[k][0] for k in index.key]))
    )
    if len(values) > MAX_LOOKUPS:
        return None
    used = {pinned[k][1] for k in index.key}
    n = len(columns)
    join = r.Join(
        (get, r.Constant(tuple((v, 1) for v in values), types)),
        tuple((k, Ref(n + i)) for i, k in enumerate(index.key)),
        r.IndexedFilter(id, index.id, index.key, values),
    )
    out: r.Mir = r.Project(join, tuple(range(n)))
    rest = tuple(p for p in predicates if p not in used)
    return r.Filter(out, rest) if rest else out


def _implied(p: Scalar) -> dict[Scalar, tuple[Literal, ...]]:
    """What every alternative of `(a = 1 AND b = 2) OR (a = 3 AND b = 4)` pins: a to 1 or 3, b to 2 or 4."""
    if not isinstance(p, Call) or p.func != "or":
        return {}
    found: dict[Scalar, tuple[Literal, ...]] | None = None
    for option in p.args:
        here: dict[Scalar, tuple[Literal, ...]] = {}
        for conjunct in option.args if isinstance(option, Call) and option.func == "and" else (option,):
            one = literal_alternatives(conjunct)
            if one is not None:
                here.setdefault(*one)
        found = here if found is None else {s: found[s] + here[s] for s in found if s in here}
    return {s: tuple(dict.fromkeys(literals)) for s, literals in (found or {}).items()}


def _bounded_product(options: list[tuple[Literal, ...]]) -> list[tuple[Literal, ...]]:
    size = 1
    for o in options:
        size *= len(o)
    return list(product(*options)) if size <= MAX_LOOKUPS else [()] * (MAX_LOOKUPS + 1)
