"""Reduce elision: grouping by a unique key finds one row a group, so aggregates are expressions of that row.

    Reduce group_by=[#0] aggregates=[sum(#1), count(*)]   ->   Map (integer_to_bigint(#1), 1), Project

Also: DISTINCT within an aggregate goes where it changes nothing (min, max, bool_and, bool_or; values already unique
in their group), and so do equal aggregates computed twice.
"""

from __future__ import annotations

import msgspec

from adapter.transform.context import Context
from mzlite.expr import relation as r
from mzlite.expr.aggregates import AGGREGATES
from mzlite.expr.casts import find_cast
from mzlite.expr.scalar import Aggregate, Call, If, Literal, Ref, Scalar
from mzlite.expr.typing import can_error, scalar_type
from mzlite.repr.datum import encode_datum
from mzlite.repr.types import BOOL, INT8, ColumnType, RelationType

_ONE, _ZERO = (Literal(encode_datum(INT8, n), INT8) for n in (1, 0))
_IDEMPOTENT = ("min", "max", "bool_and", "bool_or", "every", "mz_any", "mz_all")


def reduce_elision(e: r.Mir, context: Context) -> r.Mir:
    return r.rewrite(e, lambda n: _elide(n, context) if isinstance(n, r.Reduce) else n)


def _elide(node: r.Reduce, context: Context) -> r.Mir:
    types = context.types.typ(node.input)
    grouped = {k.column for k in node.group_key if isinstance(k, Ref)}
    if any(set(key) <= grouped for key in types.keys):
        scalars = [_of_one_row(a, types.columns) for a in node.aggregates]
        if all(s is not None for s in scalars):
            made = tuple(s for s in (*node.group_key, *scalars) if s is not None)
            n = len(types.columns)
            if all(isinstance(s, Ref) for s in made):
                return r.Project(node.input, tuple(s.column for s in made if isinstance(s, Ref)))
            return r.Project(r.Map(node.input, made), tuple(range(n, n + len(made))))
    return _shared(_without_distinct(node, grouped, types))


def _without_distinct(node: r.Reduce, grouped: set[int], types: RelationType) -> r.Reduce:
    def plain(a: Aggregate) -> Aggregate:
        if not a.distinct:
            return a
        args = {x.column for x in a.args if isinstance(x, Ref)}
        unique = any(set(key) <= grouped | args for key in types.keys)
        if AGGREGATES[a.func].name in _IDEMPOTENT or unique:
            return msgspec.structs.replace(a, distinct=False)
        return a

    aggregates = tuple(map(plain, node.aggregates))
    return node if aggregates == node.aggregates else msgspec.structs.replace(node, aggregates=aggregates)


def _shared(node: r.Reduce) -> r.Mir:
    """Each aggregate once, in the order of first use; a Project repeats it."""
    first: dict[Aggregate, int] = {}
    for a in node.aggregates:
        first.setdefault(a, len(first))
    if len(first) == len(node.aggregates):
        return node
    k = len(node.group_key)
    outputs = (*range(k), *(k + first[a] for a in node.aggregates))
    return r.Project(msgspec.structs.replace(node, aggregates=tuple(first)), outputs)


def _of_one_row(a: Aggregate, columns: tuple[ColumnType, ...]) -> Scalar | None:
    """The aggregate's value over a group of one row; None when there is no such expression here."""
    name = AGGREGATES[a.func].name
    value: Scalar
    if name == "count":
        if not a.args:
            value = _ONE
        else:
            counted = scalar_type(a.args[0], columns).nullable or can_error(a.args[0])
            value = If(Call("is_null", (a.args[0],), BOOL), _ZERO, _ONE) if counted else _ONE
        return value if a.filter is None else If(a.filter, value, _ZERO)
    if name not in ("min", "max", "sum", *_IDEMPOTENT):
        return None
    value = a.args[0]
    if name == "sum":
        source = scalar_type(value, columns).scalar
        cast = find_cast(source, a.typ, "explicit")
        if cast is None or source.kind.startswith(("float", "interval")):
            return None
        value = Call(cast, (value,), a.typ) if cast else value
    return value if a.filter is None else If(a.filter, value, Literal(None, a.typ))
