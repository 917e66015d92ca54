"""Comparisons of two columns of one type, by SQL's order, for every layout.

Fixed layouts compare their values (floats with NaN greatest), intervals by their normal form, numerics at one scale,
everything else as canonical bytes, whose order is SQL's order for every type.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mzlite.expr.call import Args, CallSite, Kernel, RowErrors
from mzlite.expr.kernels.adapt import merge_valid, spread_valid, width
from mzlite.repr.column import BoolArray, Column, concat
from mzlite.repr.fixed import FixedColumn
from mzlite.repr.interval import IntervalColumn
from mzlite.repr.numeric import NumericColumn, align
from mzlite.repr.types import Layout
from mzlite.repr.var import VarColumn

_OPS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ARROW = {
    "=": "equal",
    "<>": "not_equal",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
}
_FLOATS = (Layout.F32, Layout.F64)
_FEW = 24


def compare(op: str) -> Kernel:
    apply = _OPS[op]

    def kernel(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
        a, b = args
        values = compare_values(op, apply, a, b)
        if a.valid is None and b.valid is None:
            return FixedColumn(values, None, Layout.BOOL)
        return FixedColumn(values, spread_valid(merge_valid(args), len(values)), Layout.BOOL)

    return kernel


def compare_values(op: str, apply: Callable[[Any, Any], Any], a: Column, b: Column) -> BoolArray:
    """bool per row (broadcast); anything where either is NULL."""
    out: BoolArray
    if isinstance(a, VarColumn):
        assert isinstance(b, VarColumn)
        return _compare_var(op, apply, a, b)
    if isinstance(a, NumericColumn):
        assert isinstance(b, NumericColumn)
        if a.wide is None and b.wide is None and a.scale == b.scale:
            out = apply(a.values, b.values)
            return out
        x, y = align([a, b])
        if x.wide is not None and y.wide is not None:
            return _compare_var(op, apply, x.wide, y.wide)
        out = apply(x.values, y.values)
        return out
    if isinstance(a, IntervalColumn):
        assert isinstance(b, IntervalColumn)
        return _compare_intervals(op, apply, a, b)
    assert isinstance(a, FixedColumn) and isinstance(b, FixedColumn)
    if a.layout in _FLOATS and (np.isnan(a.values).any() or np.isnan(b.values).any()):
        out = apply(a.order_codes(), b.order_codes())
        return out
    out = apply(a.values, b.values)
    return out


def _compare_intervals(op: str, apply: Callable[[Any, Any], Any], a: IntervalColumn, b: IntervalColumn) -> BoolArray:
    (a_days, a_us), (b_days, b_us) = a.normal(), b.normal()
    same = a_days == b_days
    if op in ("=", "<>"):
        equal: BoolArray = same & (a_us == b_us)
        return equal if op == "=" else np.logical_not(equal)
    out: BoolArray = np.where(same, apply(a_us, b_us), apply(a_days, b_days))
    return out


def _compare_var(op: str, apply: Callable[[Any, Any], Any], a: VarColumn, b: VarColumn) -> BoolArray:
    rows = width((a, b))
    if rows == 1:
        return np.array([apply(a.value(0), b.value(0))], np.bool_)
    if rows <= _FEW:
        xs = [a.value(i if len(a) == rows else 0) for i in range(rows)]
        ys = [b.value(i if len(b) == rows else 0) for i in range(rows)]
        return np.array([apply(x, y) for x, y in zip(xs, ys)], np.bool_)
    left: Any = VarColumn(a.offsets, a.data).to_arrow() if len(a) == rows else pa.scalar(a.value(0), pa.large_binary())
    right: Any = VarColumn(b.offsets, b.data).to_arrow() if len(b) == rows else pa.scalar(b.value(0), pa.large_binary())
    out: BoolArray = pc.call_function(_ARROW[op], [left, right]).to_numpy(zero_copy_only=False)
    return out


def greatest_least(*, greatest: bool) -> Kernel:
    """The greatest or least of the non-NULL arguments; NULL when there is none."""
    op = ">" if greatest else "<"

    def kernel(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
        rows = width(args)
        best = _broadcast(args[0], rows)
        for arg in args[1:]:
            other = _broadcast(arg, rows)
            better = compare_values(op, _OPS[op], other, best)
            ok = ~other.is_null()
            take = ok & (better | best.is_null())
            if take.all():
                best = other
            elif take.any():
                best = choose(take, other, best)
        return best

    return kernel


def choose(mask: BoolArray, yes: Column, no: Column) -> Column:
    """Row i of `yes` where mask holds, of `no` elsewhere; all of n rows."""
    n = len(mask)
    return concat([yes, no]).take(np.where(mask, 0, n) + np.arange(n))


def _broadcast(column: Column, rows: int) -> Column:
    return column if len(column) == rows else column.take(np.zeros(rows, np.int64))
