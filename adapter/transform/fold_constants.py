"""Constant folding: scalars over literals, relations over constants, and what follows from emptiness.

Row-wise nodes over a constant of at most MAX_ROWS rows are evaluated here, with the engine's own kernels; reduces and
joins of constants are left to the engine (a constant query is still one dataflow, and there is one implementation).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from adapter.transform.context import Context
from mzlite.expr import relation as r
from mzlite.expr.eval import eval_scalar, fold
from mzlite.expr.nulls import is_literal_true
from mzlite.expr.scalar import Literal, Ref, Scalar, Unmaterializable, walk
from mzlite.repr.column import Column
from mzlite.repr.datum import column_from_literals, column_to_datums, encode_datum
from mzlite.repr.types import RelationType

MAX_ROWS = 10_000


def fold_constants(e: r.Mir, context: Context) -> r.Mir:
    return r.rewrite(e, lambda node: _fold(_fold_scalars(node), context))


def _fold_scalars(node: r.Mir) -> r.Mir:
    match node:
        case r.Map(input, scalars):
            new = tuple(map(fold, scalars))
            return node if new == scalars else r.Map(input, new)
        case r.FlatMap(input, func, exprs):
            return r.FlatMap(input, func, tuple(map(fold, exprs)))
        case r.Filter(input, predicates):
            return r.Filter(input, tuple(map(fold, predicates)))
        case r.Join(inputs, equivalences, None):
            return r.Join(inputs, tuple(tuple(map(fold, cls)) for cls in equivalences))
        case r.Reduce(_, group_key, aggregates):
            return msgspec.structs.replace(
                node,
                group_key=tuple(map(fold, group_key)),
                aggregates=tuple(
                    msgspec.structs.replace(
                        a, args=tuple(map(fold, a.args)), filter=None if a.filter is None else fold(a.filter)
                    )
                    for a in aggregates
                ),
            )
        case r.TopK(_, _, _, limit, _) if limit is not None:
            return msgspec.structs.replace(node, limit=fold(limit))
        case _:
            return node


def is_empty(e: r.Mir) -> bool:
    return isinstance(e, r.Constant) and e.error is None and not e.rows


def _empty(e: r.Mir, context: Context) -> r.Constant:
    return r.Constant((), context.types.typ(e))


def _fold(node: r.Mir, context: Context) -> r.Mir:
    kids = r.children(node)
    for k in kids:
        if isinstance(k, r.Constant) and k.error is not None and not isinstance(node, r.Let | r.LetRec | r.Union):
            return r.Constant((), context.types.typ(node), k.error)
    match node:
        case r.Filter(input, predicates):
            kept = tuple(p for p in predicates if not is_literal_true(p))
            if any(isinstance(p, Literal) and p.error is None for p in kept):
                return _empty(node, context)
            if not kept:
                return input
            if isinstance(input, r.Constant) and len(input.rows) <= MAX_ROWS and _foldable(kept):
                return _filter_constant(input, kept) or r.Filter(input, kept)
            return r.Filter(input, kept) if kept != predicates else node
        case r.Map(r.Constant() as input, scalars) if len(input.rows) <= MAX_ROWS and _foldable(scalars):
            return _map_constant(input, scalars, context.types.typ(node)) or node
        case r.Project(r.Constant(rows, _, None), outputs):
            return r.Constant(
                tuple((tuple(row[c] for c in outputs), diff) for row, diff in rows), context.types.typ(node)
            )
        case r.Negate(r.Constant(rows, t, None)):
            return r.Constant(tuple((row, -diff) for row, diff in rows), t)
        case r.Threshold(r.Constant(rows, t, None)) if _equal_as_bytes(t):
            return r.Constant(tuple(x for x in _consolidate(rows) if x[1] > 0), t)
        case r.Union(inputs):
            return _fold_union(node, inputs, context)
        case r.Join(inputs, _, _) if any(map(is_empty, inputs)):
            return _empty(node, context)
        case r.Reduce(r.Constant(rows, t, None) as input, _, ()) if _is_identity(node) and _equal_as_bytes(t):
            return r.Constant(tuple((row, 1) for row, diff in _consolidate(rows) if diff > 0), t)
        case r.Reduce(input) | r.TopK(input) | r.Window(input) | r.FlatMap(input) | r.ArrangeBy(input) if is_empty(
            input
        ):
            return _empty(node, context)
        case r.TopK(_, _, _, limit, _) if (
            isinstance(limit, Literal) and limit.value is not None and not any(limit.value)
        ):
            return _empty(node, context)
        case r.Let(_, value, _) if isinstance(value, r.Constant) and len(value.rows) <= 1:
            return _inline(node)
        case _:
            return node


def _inline(let: r.Let) -> r.Mir:
    return r.rewrite(let.body, lambda n: let.value if isinstance(n, r.Get) and n.id == let.id else n)


def _is_identity(reduce: r.Reduce) -> bool:
    assert isinstance(reduce.input, r.Constant)
    return reduce.group_key == tuple(Ref(i) for i in range(len(reduce.input.typ.columns)))


def _equal_as_bytes(typ: RelationType) -> bool:
    """Are equal rows the same bytes? Not with intervals (1 month = 30 days), which print differently, nor with 0 and -0."""
    return not any(t.scalar.kind in ("interval", "float4", "float8") for t in typ.columns)


def _foldable(scalars: Sequence[Scalar]) -> bool:
    return not any(isinstance(n, Unmaterializable) for s in scalars for n in walk(s))


def _consolidate(rows: tuple[tuple[r.Datums, int], ...]) -> list[tuple[r.Datums, int]]:
    counts: dict[r.Datums, int] = {}
    for row, diff in rows:
        counts[row] = counts.get(row, 0) + diff
    return [(row, diff) for row, diff in counts.items() if diff]


def _columns(c: r.Constant) -> list[Column]:
    return [column_from_literals(t.scalar, [row[i] for row, _ in c.rows]) for i, t in enumerate(c.typ.columns)]


def _filter_constant(c: r.Constant, predicates: Sequence[Scalar]) -> r.Mir | None:
    columns, n = _columns(c), len(c.rows)
    keep = np.ones(n, np.bool_)
    for p in predicates:
        result = eval_scalar(p, columns, n)
        if result.errors is not None:
            return None  # which rows fail depends on the order of predicates: leave it to the engine
        truth = result.column
        values = np.asarray(truth.values, np.bool_)  # type: ignore[attr-defined]
        keep &= values if truth.valid is None else values & truth.valid
    return r.Constant(tuple(row for row, k in zip(c.rows, keep) if k), c.typ)


def _map_constant(c: r.Constant, scalars: Sequence[Scalar], typ: RelationType) -> r.Mir | None:
    columns, n = _columns(c), len(c.rows)
    for s in scalars:
        result = eval_scalar(s, columns, n)
        if result.errors is not None:
            return r.Constant((), typ, result.errors[1][0])
        columns.append(result.column)
    first = len(c.typ.columns)
    new = [
        [None if d is None else encode_datum(t.scalar, d) for d in column_to_datums(t.scalar, col)]
        for t, col in zip(typ.columns[first:], columns[first:])
    ]
    return r.Constant(tuple((row + extra, diff) for (row, diff), extra in zip(c.rows, zip(*new))), typ)


def _fold_union(node: r.Union, inputs: tuple[r.Mir, ...], context: Context) -> r.Mir:
    rows: list[tuple[r.Datums, int]] = []
    rest: list[r.Mir] = []
    constants = 0
    for i in inputs:
        if isinstance(i, r.Constant):
            if i.error is not None:
                return r.Constant((), context.types.typ(node), i.error)
            rows.extend(i.rows)
            constants += 1
        else:
            rest.append(i)
    if not constants:
        return node
    merged = _consolidate(tuple(rows))
    if merged or not rest:
        if constants == 1 and rest:
            return node
        rest.append(r.Constant(tuple(merged), context.types.typ(node)))
    return rest[0] if len(rest) == 1 else r.Union(tuple(rest))
