"""Fast paths: reads that need no dataflow.

    Constant       the optimized plan is a constant
    PeekExisting   Map/Filter/Project over an indexed collection (full scan), or over an IndexedFilter join (lookup)
    PeekPersist    Map/Filter/Project over a stored collection, when few rows are wanted

A TopK at the root is looked through when the finishing does its work anyway. Source: Materialize's
`create_fast_path_plan`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from adapter.sequencer.mfp import compose, split_mfp
from mzlite.expr import relation as r
from mzlite.expr.eval import eval_constant
from mzlite.expr.mfp import MapFilterProject
from mzlite.expr.relation import Datums, RowSetFinishing
from mzlite.expr.scalar import Literal
from mzlite.repr.ids import GlobalId


@dataclass(frozen=True, slots=True)
class ConstantPath:
    plan: r.Constant


@dataclass(frozen=True, slots=True)
class PeekExisting:
    """literals None: full scan of the index. mfp: over the rows of `on`."""

    on: GlobalId
    index: GlobalId
    literals: tuple[Datums, ...] | None
    mfp: MapFilterProject


@dataclass(frozen=True, slots=True)
class PeekPersist:
    on: GlobalId
    mfp: MapFilterProject


FastPath = ConstantPath | PeekExisting | PeekPersist


@dataclass(frozen=True, slots=True)
class FastPathContext:
    """any_index(id): an index on id that this cluster can read, or None. stored(id): a shard holds id.
    persist_limit: below this many rows a stored collection is read directly."""

    any_index: Callable[[GlobalId], GlobalId | None]
    stored: Callable[[GlobalId], bool]
    persist_limit: int
    enabled: bool = True


def find_fast_path(e: r.Mir, finishing: RowSetFinishing, context: FastPathContext) -> FastPath | None:
    """The fast path of an optimized plan, None when it needs a dataflow."""
    if isinstance(e, r.Constant):
        return ConstantPath(e)
    if not context.enabled:
        return None
    e = look_through_top_k(e, finishing)
    steps, below = split_mfp(e)
    match below:
        case r.Get(id, typ) if isinstance(id, str):
            mfp = compose(steps, typ.arity)
            index = context.any_index(id)
            if index is not None:
                return PeekExisting(id, index, None, mfp)
            if context.stored(id) and _few_rows(mfp, finishing, context.persist_limit):
                return PeekPersist(id, mfp)
            return None
        case r.Join((r.Get(id, typ), _), _, r.IndexedFilter(coll, index, _, values)) if id == coll:
            # The join's columns are the collection's, then the looked-up keys; the plan reads only the former.
            mfp = compose(steps, typ.arity + (len(values[0]) if values else 0))
            if not _reads_only(mfp, typ.arity):
                return None
            return PeekExisting(coll, index, values, _narrow(mfp, typ.arity))
        case _:
            return None


def look_through_top_k(e: r.Mir, finishing: RowSetFinishing) -> r.Mir:
    if not isinstance(e, r.TopK) or e.group_key or e.offset or e.order_by != finishing.order_by:
        return e
    if e.limit is None:
        return e.input
    if finishing.limit is None or not isinstance(e.limit, Literal):
        return e
    limit = eval_constant(e.limit)
    return e.input if limit is None or limit >= finishing.limit + finishing.offset else e


def _few_rows(mfp: MapFilterProject, finishing: RowSetFinishing, limit: int) -> bool:
    if mfp.predicates or finishing.limit is None or finishing.order_by:
        return False
    return finishing.limit + finishing.offset < limit


def _key_width(mfp: MapFilterProject, arity: int) -> int:
    return mfp.input_arity - arity


def _reads_only(mfp: MapFilterProject, arity: int) -> bool:
    """Are the columns between arity and the input's end unused?"""
    from mzlite.expr.scalar import support

    used = set(mfp.projection)
    for e in (*mfp.expressions, *(p for _, p in mfp.predicates)):
        used |= support(e)
    return not any(arity <= c < mfp.input_arity for c in used)


def _narrow(mfp: MapFilterProject, arity: int) -> MapFilterProject:
    """mfp over the first `arity` columns only."""
    from mzlite.expr.scalar import remap

    width = _key_width(mfp, arity)
    if width == 0:
        return mfp

    def move(c: int) -> int:
        return c if c < arity else c - width

    return MapFilterProject(
        arity,
        tuple(remap(e, move) for e in mfp.expressions),
        tuple((max(0, p - width) if p > arity else p, remap(e, move)) for p, e in mfp.predicates),
        tuple(move(c) for c in mfp.projection),
    )
