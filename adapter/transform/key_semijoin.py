"""A semijoin with the partners found by key is the join itself.

    With                                           With
      cte l0 =                                       cte l0 =
        Join (#0 = #2)  of A, B; #2 a key of B         Join (#0 = #2) of A, B
    Return                                  ->     Return
      Join (#0 = #2)                                 Project (#0, #1, #0)
        A                                              Get l0
        Distinct [#0] (Get l0)

Every row of A meets at most one row of B, so l0 projected to A's columns is exactly the rows of A that found a partner.
An outer join subtracts those: with a key on the far side it then needs no distinct and no second join, and when the
far side's columns are not read, what it adds and subtracts cancels.
"""

from __future__ import annotations

from dataclasses import dataclass

from adapter.transform.context import Context
from mzlite.expr import relation as r
from mzlite.expr.scalar import Call, Literal, Ref, Scalar, support
from mzlite.repr.types import BOOL


def key_semijoin(e: r.Mir, context: Context) -> r.Mir:
    values = {n.id: n.value for n in r.walk(e) if isinstance(n, r.Let)}
    if not values:
        return e

    def visit(node: r.Mir) -> r.Mir:
        if isinstance(node, r.Join) and node.implementation is None and len(node.inputs) == 2:
            return _rewrite(node, values, context) or node
        return node

    return r.rewrite(e, visit)


@dataclass(frozen=True, slots=True)
class _Found:
    """position: of each column of A among the joined relation's columns. reads: A's columns that decide who meets whom."""

    position: tuple[int, ...]
    reads: frozenset[int]


def _rewrite(join: r.Join, values: dict[int, r.Mir], context: Context) -> r.Mir | None:
    side, distinct = join.inputs
    if not isinstance(distinct, r.Reduce) or distinct.aggregates:
        return None
    get: r.Mir = distinct.input
    outputs: tuple[int, ...] | None = None
    if isinstance(get, r.Project):
        outputs = get.outputs
        get = get.input
    if not isinstance(get, r.Get) or not isinstance(get.id, int) or get.id not in values:
        return None
    found = _joined_by_key(values[get.id], side, context)
    if found is None:
        return None
    width = context.types.arity(side)
    columns: list[int] = []  # A's column behind each column of the distinct
    for k in distinct.group_key:
        if not isinstance(k, Ref):
            return None
        at = k.column if outputs is None else outputs[k.column]
        if at not in found.position:
            return None
        columns.append(found.position.index(at))
    nullable = [c.nullable for c in context.types.columns(get)]
    if not found.reads <= set(columns) or not _pairs_up(join, width, columns, found, nullable):
        return None
    return r.Project(get, (*found.position, *(found.position[c] for c in columns)))


def _pairs_up(join: r.Join, width: int, columns: list[int], found: _Found, nullable: list[bool]) -> bool:
    """Do the join's classes compare exactly A's columns with the distinct's, plainly or NULL for NULL?"""
    left = set(map(frozenset, join.equivalences))
    for i, c in enumerate(columns):
        a, b = Ref(c), Ref(width + i)
        plain = frozenset((a, b))
        if plain in left:
            if nullable[found.position[c]]:
                return False
            left.remove(plain)
            continue
        nulls = frozenset(Call("is_null", (x,), BOOL) for x in (a, b))
        filled = next((cls for cls in left if _filled(cls, a, b)), None)
        if nulls not in left or filled is None:
            return False
        left -= {nulls, filled}
    return not left


def _filled(cls: frozenset[Scalar], a: Ref, b: Ref) -> bool:
    """{coalesce(a, x), coalesce(b, x)} for a literal x."""
    if len(cls) != 2:
        return False
    seen: dict[Scalar, Scalar] = {}
    for m in cls:
        if not isinstance(m, Call) or m.func != "coalesce" or len(m.args) != 2 or not isinstance(m.args[1], Literal):
            return False
        seen[m.args[0]] = m.args[1]
    return set(seen) == {a, b} and len(set(seen.values())) == 1


def _joined_by_key(value: r.Mir, side: r.Mir, context: Context) -> _Found | None:
    """value as a join of `side` with one input that has a key among the columns it is compared by."""
    layers: list[r.Project | r.Filter] = []
    while isinstance(value, r.Project | r.Filter):
        layers.append(value)
        value = value.input
    if not isinstance(value, r.Join) or len(value.inputs) != 2 or side not in value.inputs:
        return None
    i = value.inputs.index(side)
    other = value.inputs[1 - i]
    width, other_width = context.types.arity(side), context.types.arity(other)
    base, other_base = (0, width) if i == 0 else (other_width, 0)
    shown = list(range(width + other_width))  # the join's column behind each column of the result
    reads: set[int] = set()
    for layer in reversed(layers):
        if isinstance(layer, r.Project):
            shown = [shown[c] for c in layer.outputs]
        else:
            for p in layer.predicates:
                reads |= {shown[c] for c in support(p)}
    compared: set[int] = set()
    for cls in value.equivalences:
        reads |= {c for m in cls for c in support(m)}
        if any(isinstance(m, Ref) and base <= m.column < base + width for m in cls):
            compared |= {
                m.column - other_base
                for m in cls
                if isinstance(m, Ref) and other_base <= m.column < other_base + other_width
            }
    if not any(set(key) <= compared for key in context.types.typ(other).keys):
        return None
    if any(base + c not in shown for c in range(width)):
        return None
    mine = frozenset(c - base for c in reads if base <= c < base + width)
    return _Found(tuple(shown.index(base + c) for c in range(width)), mine)
