"""The interpreter's grouped operators: Reduce, TopK, Window. Rows are sorted by group; a group is a range of the sort.

Source: the same semantics as `compute.operators`, stated once more in the most direct form.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mzlite.expr import relation as r
from mzlite.expr.aggregates import AGGREGATES, call_site
from mzlite.expr.call import RowErrors
from mzlite.expr.eval import eval_scalar
from mzlite.expr.scalar import Aggregate, ColumnOrder, Scalar
from mzlite.repr.column import I64, BoolArray, Column, nulls, rows_equal, sort_permutation
from mzlite.repr.errors import decode_error
from mzlite.repr.types import ColumnType
from mzlite.repr.updates import Updates, consolidate


def _evaluate(e: Scalar, columns: Sequence[Column], n: int) -> Column:
    result = eval_scalar(e, columns, n)
    if result.errors is not None:
        raise decode_error(result.errors[1][0])
    return result.column


def _true(column: Column) -> BoolArray:
    values: BoolArray = column.values.astype(np.bool_)  # type: ignore[attr-defined]
    return values if column.valid is None else values & column.valid


def group_starts(keys: Sequence[Column], n: int) -> tuple[I64, I64]:
    """(order, starts): rows in `order` are grouped; group g is order[starts[g]:starts[g + 1]]. NULL is a key like others."""
    if n == 0:
        return np.zeros(0, np.int64), np.zeros(1, np.int64)
    if not keys:
        return np.arange(n, dtype=np.int64), np.array([0, n], np.int64)
    order = sort_permutation(keys, [ColumnOrder(i) for i in range(len(keys))], n)
    sorted_keys = [k.take(order) for k in keys]
    before = [k.slice(0, n - 1) for k in sorted_keys]
    after = [k.slice(1, n) for k in sorted_keys]
    same = rows_equal(before, after, n - 1)
    bounds = np.flatnonzero(~same) + 1
    return order, np.concatenate(([0], bounds, [n])).astype(np.int64)


def reduce_rows(u: Updates, e: r.Reduce, types: Sequence[ColumnType]) -> Updates:
    """Keys, then aggregates; one row a group whose rows do not cancel out."""
    n = len(u)
    keys = [_evaluate(k, u.columns, n) for k in e.group_key]
    order, starts = group_starts(keys, n)
    groups = len(starts) - 1
    firsts = order[starts[:-1]]
    columns = [k.take(firsts) for k in keys]
    group_of = np.empty(n, np.int64)
    group_of[order] = np.repeat(np.arange(groups, dtype=np.int64), np.diff(starts))
    for aggregate in e.aggregates:
        columns.append(_aggregate(u, aggregate, group_of, groups))
    return Updates(tuple(columns), np.zeros(groups, np.uint64), np.ones(groups, np.int64))


def _aggregate(u: Updates, a: Aggregate, group_of: I64, groups: int) -> Column:
    entry = AGGREGATES[a.func]
    site = call_site(a.func, a.typ)
    rows = np.arange(len(u), dtype=np.int64)
    if a.filter is not None:
        rows = rows[_true(_evaluate(a.filter, u.columns, len(u)))]
    columns = [c.take(rows) for c in u.columns]
    n = len(rows)
    args = [_evaluate(x, columns, n) for x in a.args]
    orders = [_evaluate(x, columns, n) for x in a.order_exprs]
    group, diff = group_of[rows], u.diff[rows]
    if a.distinct:
        kept, diff = _distinct(args, group, diff)
        args = [c.take(kept) for c in args]
        orders = [c.take(kept) for c in orders]
        columns = [c.take(kept) for c in columns]
        group = group[kept]
        n = len(kept)
    errors = RowErrors()
    if entry.kind == "accumulable":
        assert entry.contribute is not None and entry.finish is not None
        lanes = entry.contribute(site, args, n)
        state = np.zeros((groups, entry.lanes), np.int64)
        np.add.at(state, group, lanes * diff[:, None])
        column = entry.finish(site, state, errors)
    elif entry.kind == "hierarchical":
        column = _extreme(args[0], group, groups, entry.take_last)
    else:
        assert entry.collect is not None
        column = _collect(entry.collect, entry.strict, site, args, orders, columns, a, group, diff, groups, errors)
    if errors:
        raise decode_error(next(iter(errors.first.values())))
    return column


def _distinct(args: Sequence[Column], group: I64, diff: I64) -> tuple[I64, I64]:
    """One row for each (group, args) that is there, with diff 1."""
    from mzlite.repr.fixed import FixedColumn
    from mzlite.repr.types import Layout

    n = len(group)
    group_column = FixedColumn(group, None, Layout.I64)
    order, starts = group_starts([group_column, *args], n)
    total = np.add.reduceat(diff[order], starts[:-1]) if n else np.zeros(0, np.int64)
    kept = order[starts[:-1]][total > 0]
    return kept, np.ones(len(kept), np.int64)


def _extreme(arg: Column, group: I64, groups: int, take_last: bool) -> Column:
    rows = np.flatnonzero(arg.valid) if arg.valid is not None else np.arange(len(arg), dtype=np.int64)
    if not len(rows):
        return nulls(arg.layout, groups)
    codes = arg.order_codes()[rows]
    if take_last:
        codes = ~codes
    order = np.lexsort((codes, group[rows]))
    sorted_group = group[rows][order]
    first = np.ones(len(order), np.bool_)
    first[1:] = sorted_group[1:] != sorted_group[:-1]
    winners = rows[order[first]]
    present = sorted_group[first]
    if len(present) == groups:
        return arg.take(winners)
    where: NDArray[np.int64] = np.zeros(groups, np.int64)
    where[present] = winners
    column = arg.take(where)
    missing = np.ones(groups, np.bool_)
    missing[present] = False
    return with_nulls(column, missing)


def with_nulls(column: Column, missing: BoolArray) -> Column:
    """column with NULL where missing holds."""
    from mzlite.repr.column import concat

    n = len(column)
    both = concat([column, nulls(column.layout, 1)])
    return both.take(np.where(missing, n, np.arange(n, dtype=np.int64)))


def _collect(
    collect: object,
    strict: bool,
    site: object,
    args: list[Column],
    orders: list[Column],
    columns: list[Column],
    a: Aggregate,
    group: I64,
    diff: I64,
    groups: int,
    errors: RowErrors,
) -> Column:
    n = len(group)
    if strict:
        keep = np.ones(n, np.bool_)
        for c in args:
            if c.valid is not None:
                keep &= c.valid
        idx = np.flatnonzero(keep)
        args = [c.take(idx) for c in args]
        orders = [c.take(idx) for c in orders]
        columns = [c.take(idx) for c in columns]
        group, diff = group[idx], diff[idx]
        n = len(idx)
    ties = args if a.distinct else columns
    permutation = sort_permutation([*orders, *ties], a.order_by, n, then_all=True)
    permutation = permutation[np.argsort(group[permutation], kind="stable")]
    idx = np.repeat(permutation, np.maximum(diff[permutation], 0))
    starts = np.searchsorted(group[idx], np.arange(groups + 1)).astype(np.int64)
    column: Column = collect(site, [c.take(idx) for c in args], starts, errors)  # type: ignore[operator]
    without_rows = starts[1:] == starts[:-1]
    return with_nulls(column, without_rows) if without_rows.any() else column


def _limits(u: Updates, limit: Scalar) -> I64:
    """The limit on each row: an expression over the group's columns; NULL is no limit."""
    column = _evaluate(limit, u.columns, len(u))
    values: I64 = column.values.astype(np.int64)  # type: ignore[attr-defined]
    return values if column.valid is None else np.where(column.valid, values, np.int64(2**62))


def top_rows(u: Updates, e: r.TopK) -> Updates:
    """Per group, the copies of rows numbered offset .. offset + limit in the order."""
    n = len(u)
    if n == 0:
        return u
    order = [ColumnOrder(c) for c in e.group_key] + list(e.order_by)
    perm = sort_permutation(u.columns, order, n, then_all=True)
    s = u.take(perm)
    keys = [s.columns[c] for c in e.group_key]
    diff = s.diff
    end = np.cumsum(diff)
    if keys:
        new = np.ones(n, np.bool_)
        new[1:] = ~rows_equal([k.slice(0, n - 1) for k in keys], [k.slice(1, n) for k in keys], n - 1)
        group = np.cumsum(new) - 1
        base = (end - diff)[new]
        end = end - base[group]
    start = end - diff
    low = np.maximum(start, e.offset)
    high = end if e.limit is None else np.minimum(end, e.offset + _limits(s, e.limit))
    kept = np.maximum(high - low, 0)
    return Updates(s.columns, s.time, kept).filter(kept > 0)


def window_rows(u: Updates, e: r.Window, types: Sequence[ColumnType]) -> Updates:
    """Input columns, then one a call; rows repeated by multiplicity first."""
    from mzlite.expr.window_functions import evaluate_window

    idx = np.repeat(np.arange(len(u), dtype=np.int64), np.maximum(u.diff, 0))
    columns = tuple(c.take(idx) for c in u.columns)
    n = len(idx)
    order = [ColumnOrder(c) for c in e.partition_by] + list(e.order_by)
    perm = sort_permutation(columns, order, n, then_all=True)
    columns = tuple(c.take(perm) for c in columns)
    starts = group_starts([columns[c] for c in e.partition_by], n)[1]
    out = evaluate_window(columns, starts, e.order_by, e.calls)
    return consolidate(Updates((*columns, *out), np.zeros(n, np.uint64), np.ones(n, np.int64)))
