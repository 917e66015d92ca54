"""Projection pushdown: carry only the columns that somebody reads.

Two walks. `_collect` finds, from the root down, which columns of each Let binding its readers want. `_prune` then
rebuilds every node so that it yields exactly the wanted columns, in their old order.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from adapter.transform.context import Context
from mzlite.expr import relation as r
from mzlite.expr.scalar import ColumnOrder, Scalar, remap, support
from mzlite.repr.types import RelationType

Wanted = frozenset[int]


def projection_pushdown(e: r.Mir, context: Context) -> r.Mir:
    everything = frozenset(range(context.types.arity(e)))
    locals_: dict[int, Wanted] = {}
    _collect(e, everything, locals_, context)
    return _prune(e, everything, locals_, context)


def _supports(scalars: Iterable[Scalar]) -> Wanted:
    out: set[int] = set()
    for s in scalars:
        out |= support(s)
    return frozenset(out)


def _inputs_wanted(e: r.Mir, wanted: Wanted, context: Context) -> tuple[Wanted, ...]:
    """Which columns each child must yield (Let and LetRec apart)."""
    match e:
        case r.Project(_, outputs):
            return (frozenset(outputs[c] for c in wanted),)
        case r.Map(input, scalars):
            n = context.types.arity(input)
            need = set(wanted)
            for i in range(len(scalars) - 1, -1, -1):
                if n + i in need:
                    need |= support(scalars[i])
            return (frozenset(c for c in need if c < n),)
        case r.FlatMap(input, _, exprs):
            n = context.types.arity(input)
            return (frozenset(c for c in wanted if c < n) | _supports(exprs),)
        case r.Filter(_, predicates):
            return (wanted | _supports(predicates),)
        case r.Join(inputs, equivalences):
            joined = wanted | _supports(s for cls in equivalences for s in cls)
            out, at = [], 0
            for part in inputs:
                n = context.types.arity(part)
                out.append(frozenset(c - at for c in joined if at <= c < at + n))
                at += n
            return tuple(out)
        case r.Reduce(_, group_key, aggregates):
            k = len(group_key)
            need = set(_supports(group_key))
            for i, a in enumerate(aggregates):
                if k + i in wanted:
                    need |= _supports((*a.args, *a.order_exprs, *(() if a.filter is None else (a.filter,))))
            return (frozenset(need),)
        case r.TopK(_, group_key, order_by, _, _):
            return (wanted | frozenset(group_key) | frozenset(o.column for o in order_by),)
        case r.Window(input, partition_by, order_by, calls):
            n = context.types.arity(input)
            need = set(c for c in wanted if c < n) | set(partition_by) | {o.column for o in order_by}
            for i, call in enumerate(calls):
                if n + i in wanted:
                    need |= _supports((*call.args, *(() if call.filter is None else (call.filter,))))
            return (frozenset(need),)
        case r.Union(inputs):
            return (wanted,) * len(inputs)
        case r.Negate():
            return (wanted,)
        case _:
            # Threshold counts whole rows; ArrangeBy hands out whole rows.
            return tuple(frozenset(range(context.types.arity(k))) for k in r.children(e))


def _collect(e: r.Mir, wanted: Wanted, locals_: dict[int, Wanted], context: Context) -> None:
    match e:
        case r.Get(id, _) if isinstance(id, int):
            locals_[id] = locals_.get(id, frozenset()) | wanted
        case r.Let(id, value, body):
            _collect(body, wanted, locals_, context)
            _collect(value, locals_.setdefault(id, frozenset()), locals_, context)
        case r.LetRec(ids, values, typs, body):
            # Recursive bindings read each other: keep their shape.
            for id, t in zip(ids, typs):
                locals_[id] = frozenset(range(len(t.columns)))
            _collect(body, wanted, locals_, context)
            for v, t in zip(values, typs):
                _collect(v, frozenset(range(len(t.columns))), locals_, context)
        case _:
            for k, w in zip(r.children(e), _inputs_wanted(e, wanted, context)):
                _collect(k, w, locals_, context)


def _project(e: r.Mir, have: Iterable[int], wanted: Wanted) -> r.Mir:
    """have: the old columns e yields, in order."""
    order = list(have)
    outputs = tuple(order.index(c) for c in sorted(wanted))
    return e if outputs == tuple(range(len(order))) else r.Project(e, outputs)


def _prune(e: r.Mir, wanted: Wanted, locals_: dict[int, Wanted], context: Context) -> r.Mir:
    """e with exactly the columns sorted(wanted)."""
    match e:
        case r.Constant(rows, t, error):
            keep = sorted(wanted)
            if len(keep) == len(t.columns):
                return e
            narrow = RelationType(tuple(t.columns[c] for c in keep))
            counts: dict[r.Datums, int] = {}
            for datums, diff in rows:
                row = tuple(datums[c] for c in keep)
                counts[row] = counts.get(row, 0) + diff
            return r.Constant(tuple((row, d) for row, d in counts.items() if d), narrow, error)
        case r.Get(id, t):
            if isinstance(id, int):
                have = sorted(locals_[id])
                if len(have) < len(t.columns):
                    e = r.Get(id, RelationType(tuple(t.columns[c] for c in have)))
                return _project(e, have, wanted)
            return _project(e, range(len(t.columns)), wanted)
        case r.Let(id, value, body):
            return r.Let(id, _prune(value, locals_[id], locals_, context), _prune(body, wanted, locals_, context))
        case r.LetRec(_, values, typs, body):
            whole = [_prune(v, frozenset(range(len(t.columns))), locals_, context) for v, t in zip(values, typs)]
            return r.with_children(e, (*whole, _prune(body, wanted, locals_, context)))
    needs = _inputs_wanted(e, wanted, context)
    kids = tuple(_prune(k, w, locals_, context) for k, w in zip(r.children(e), needs))
    # Old column of the (only) input -> new column.
    at = {c: i for i, c in enumerate(sorted(needs[0]))} if needs else {}
    match e:
        case r.Project(_, outputs):
            return r.Project(kids[0], tuple(at[outputs[c]] for c in sorted(wanted)))
        case r.Map(input, scalars):
            n = context.types.arity(input)
            need = set(wanted)
            for i in range(len(scalars) - 1, -1, -1):
                if n + i in need:
                    need |= support(scalars[i])
            kept = [i for i in range(len(scalars)) if n + i in need]
            have = sorted(needs[0])
            for i in kept:
                at[n + i] = len(have)
                have.append(n + i)
            out = r.Map(kids[0], tuple(remap(scalars[i], at) for i in kept)) if kept else kids[0]
            return _project(out, have, wanted)
        case r.FlatMap(input, func, exprs):
            n = context.types.arity(input)
            flat = r.FlatMap(kids[0], func, tuple(remap(x, at) for x in exprs))
            return _project(flat, [*sorted(needs[0]), *range(n, n + len(func.typ.columns))], wanted)
        case r.Filter(_, predicates):
            return _project(r.Filter(kids[0], tuple(remap(p, at) for p in predicates)), sorted(needs[0]), wanted)
        case r.Join(inputs, equivalences, implementation):
            have, mapping, base = [], dict[int, int](), 0
            for part, wants in zip(inputs, needs):
                for c in sorted(wants):
                    mapping[base + c] = len(have)
                    have.append(base + c)
                base += context.types.arity(part)
            if implementation is not None and len(have) < base:
                # Planned joins keep their columns: keys in the plan refer to them.
                return _project(e, range(base), wanted)
            classes = tuple(tuple(remap(s, mapping) for s in cls) for cls in equivalences)
            return _project(r.Join(kids, classes, implementation), have, wanted)
        case r.Reduce(_, group_key, aggregates):
            k = len(group_key)
            kept = [i for i in range(len(aggregates)) if k + i in wanted]
            new = msgspec.structs.replace(
                e,
                input=kids[0],
                group_key=tuple(remap(s, at) for s in group_key),
                aggregates=tuple(
                    msgspec.structs.replace(
                        a,
                        args=tuple(remap(s, at) for s in a.args),
                        order_exprs=tuple(remap(s, at) for s in a.order_exprs),
                        filter=None if a.filter is None else remap(a.filter, at),
                    )
                    for i, a in enumerate(aggregates)
                    if i in kept
                ),
            )
            return _project(new, [*range(k), *(k + i for i in kept)], wanted)
        case r.TopK(_, group_key, order_by, limit, _):
            new_topk = msgspec.structs.replace(
                e,
                input=kids[0],
                group_key=tuple(at[c] for c in group_key),
                order_by=_orders(order_by, at),
                limit=None if limit is None else remap(limit, at),
            )
            return _project(new_topk, sorted(needs[0]), wanted)
        case r.Window(input, partition_by, order_by, calls):
            n = context.types.arity(input)
            kept = [i for i in range(len(calls)) if n + i in wanted]
            if not kept:
                return _project(kids[0], sorted(needs[0]), wanted)
            new_window = r.Window(
                kids[0],
                tuple(at[c] for c in partition_by),
                _orders(order_by, at),
                tuple(
                    msgspec.structs.replace(
                        calls[i],
                        args=tuple(remap(s, at) for s in calls[i].args),
                        filter=None if calls[i].filter is None else remap(calls[i].filter, at),  # type: ignore[arg-type]
                    )
                    for i in kept
                ),
            )
            return _project(new_window, [*sorted(needs[0]), *(n + i for i in kept)], wanted)
        case r.Union() | r.Negate():
            return r.with_children(e, kids)
        case _:
            return _project(r.with_children(e, kids), range(context.types.arity(e)), wanted)


def _orders(order_by: tuple[ColumnOrder, ...], at: dict[int, int]) -> tuple[ColumnOrder, ...]:
    return tuple(ColumnOrder(at[o.column], o.desc, o.nulls_last) for o in order_by)
