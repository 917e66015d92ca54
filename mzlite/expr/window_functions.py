"""Window functions: names and types for the planner, and their values over sorted partitions for the engine.

    columns = evaluate_window(input columns, partition starts, order_by, calls)

The rows come sorted by (partition, ORDER BY, whole row), one a copy. Results are one column a call, in the same order.
Aggregates over frames reuse `aggregates`: accumulable ones by prefix sums of their exact lanes (any frame in O(1), no
rounding), min and max by a range-minimum table, the rest from the frame's rows, each distinct frame once.

Source: Materialize's `expr/relation/func.rs`; frames as in PostgreSQL.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from mzlite.expr.aggregates import AGGREGATES, AggregateEntry, aggregate_type, call_site
from mzlite.expr.call import RowErrors
from mzlite.expr.eval import eval_scalar
from mzlite.expr.functions.registry import Registry, Signature, bind, parse_signature
from mzlite.expr.kernels.compare import choose
from mzlite.expr.kernels.frames import RangeMinimum, Rows, exclude, frame_bounds, frame_rows, layout_rows
from mzlite.expr.scalar import Aggregate, ColumnOrder, WindowCall
from mzlite.repr.column import I64, BoolArray, Column, hash_rows, nulls, sort_permutation
from mzlite.repr.errors import decode_error
from mzlite.repr.fixed import FixedColumn
from mzlite.repr.types import ColumnType, ScalarType


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WindowEntry(Signature):
    """One overload of a pure window function. nullable: whether it may give NULL for non-NULL input."""

    nullable: bool = True
    uses_frame: bool = False

    def bind(self, arg_types: Sequence[ScalarType]) -> WindowEntry:
        return bind(self, arg_types)


WINDOW_FUNCTIONS: Registry[WindowEntry] = Registry()
_RANKS = ("row_number", "rank", "dense_rank")


def by_name(name: str) -> list[WindowEntry]:
    return WINDOW_FUNCTIONS.by_name(name)


def _register(name: str, signature: str, *, id: str, nullable: bool = True, uses_frame: bool = False) -> None:
    params, _, returns = parse_signature(signature)
    WINDOW_FUNCTIONS.add(
        WindowEntry(
            id=id, name=name, params=params, returns=returns, typed=False, nullable=nullable, uses_frame=uses_frame
        )
    )


for _name in _RANKS:
    _register(_name, "-> int8", id=_name, nullable=False)
for _name in ("percent_rank", "cume_dist"):
    _register(_name, "-> float8", id=_name, nullable=False)
_register("ntile", "int4 -> int4", id="ntile")
for _name in ("lag", "lead"):
    _register(_name, "anyelement -> anyelement", id=_name)
    _register(_name, "anyelement, int4 -> anyelement", id=f"{_name}_offset")
    _register(_name, "anycompatible, int4, anycompatible -> anycompatible", id=f"{_name}_default")
for _name in ("first_value", "last_value"):
    _register(_name, "anyelement -> anyelement", id=_name, uses_frame=True)
_register("nth_value", "anyelement, int4 -> anyelement", id="nth_value", uses_frame=True)


def window_type(call: WindowCall, input_types: Sequence[ColumnType]) -> ColumnType:
    """Type of a call's column."""
    base = call.func.partition("<")[0]
    if base in WINDOW_FUNCTIONS:
        return ColumnType(call.typ, WINDOW_FUNCTIONS[base].nullable)
    whole = aggregate_type(Aggregate(call.func, call.args, call.typ, filter=call.filter), input_types)
    # A frame may be empty where a group is not.
    return ColumnType(call.typ, whole.nullable or AGGREGATES[call.func].nullable != "never")


def evaluate_window(
    columns: Sequence[Column],
    starts: I64,
    order_by: Sequence[ColumnOrder],
    calls: Sequence[WindowCall],
    types: Sequence[ScalarType] = (),
    errors: RowErrors | None = None,
) -> list[Column]:
    """One column a call, aligned with the rows.

    starts: first row of each partition (a closing n is welcome). types: not needed. errors: failures by row; without
    it the first failure is raised.
    """
    n = len(columns[0]) if columns else int(starts[-1])
    own = RowErrors() if errors is None else errors
    rows = layout_rows(columns, starts, order_by, n)
    out = [_call(call, columns, rows, order_by, own) for call in calls]
    if errors is None and own:
        raise decode_error(own.first[min(own.first)])
    return out


def _call(
    call: WindowCall, columns: Sequence[Column], rows: Rows, order_by: Sequence[ColumnOrder], errors: RowErrors
) -> Column:
    args = [_evaluate(a, columns, rows.n, errors) for a in call.args]
    name = call.func.partition("<")[0]
    if name not in WINDOW_FUNCTIONS:
        return _aggregate(call, args, columns, rows, order_by, errors)
    kernel = _KERNELS.get(WINDOW_FUNCTIONS[name].name)
    if kernel is not None:
        return kernel(call, args, rows)
    return _valued(call, WINDOW_FUNCTIONS[name].name, args, columns, rows, order_by)


def _evaluate(e: object, columns: Sequence[Column], n: int, errors: RowErrors) -> Column:
    result = eval_scalar(e, columns, n)  # type: ignore[arg-type]
    if result.errors is not None:
        for row, error in zip(result.errors[0].tolist(), result.errors[1]):
            errors.add_encoded(row, error)
    return result.column


def take_or_null(column: Column, idx: I64) -> Column:
    """Rows idx; NULL where idx is negative."""
    missing = idx < 0
    if not missing.any():
        return column.take(idx)
    if not len(column):
        return nulls(column.layout, len(idx))
    out = column.take(np.where(missing, 0, idx))
    empty = nulls(column.layout, len(idx))
    return choose(missing, empty, out)


# --- ranks ------------------------------------------------------------------------------------------------------------


def _row_number(call: WindowCall, args: list[Column], rows: Rows) -> Column:
    return FixedColumn(np.arange(rows.n, dtype=np.int64) - rows.part_lo + 1)


def _rank(call: WindowCall, args: list[Column], rows: Rows) -> Column:
    return FixedColumn(rows.peer_lo - rows.part_lo + 1)


def _dense_rank(call: WindowCall, args: list[Column], rows: Rows) -> Column:
    if not rows.n:
        return FixedColumn(np.zeros(0, np.int64))
    return FixedColumn(rows.peer - rows.peer[rows.part_lo] + 1)


def _percent_rank(call: WindowCall, args: list[Column], rows: Rows) -> Column:
    others = rows.part_hi - rows.part_lo - 1
    return FixedColumn(np.where(others > 0, (rows.peer_lo - rows.part_lo) / np.maximum(others, 1), 0.0))


def _cume_dist(call: WindowCall, args: list[Column], rows: Rows) -> Column:
    return FixedColumn((rows.peer_hi - rows.part_lo) / np.maximum(rows.part_hi - rows.part_lo, 1))


def _ntile(call: WindowCall, args: list[Column], rows: Rows) -> Column:
    column = args[0]
    assert isinstance(column, FixedColumn)
    buckets = np.maximum(column.values.astype(np.int64), 1)
    size = rows.part_hi - rows.part_lo
    place = np.arange(rows.n, dtype=np.int64) - rows.part_lo
    each, extra = np.divmod(size, buckets)
    in_large = extra * (each + 1)
    tile = np.where(place < in_large, place // (each + 1), extra + (place - in_large) // np.maximum(each, 1))
    return FixedColumn((tile + 1).astype(np.int32), column.valid)


# --- lag and lead -----------------------------------------------------------------------------------------------------


def _shifted(sign: int) -> Callable[[WindowCall, list[Column], Rows], Column]:
    def kernel(call: WindowCall, args: list[Column], rows: Rows) -> Column:
        column = args[0]
        offset = np.ones(rows.n, np.int64)
        unknown: BoolArray | None = None
        if len(args) > 1:
            amounts = args[1]
            assert isinstance(amounts, FixedColumn)
            offset = amounts.values.astype(np.int64)
            unknown = amounts.is_null()
        if call.ignore_nulls and column.valid is not None:
            target = _shift_valid(column.valid, rows, sign * offset)
        else:
            target = np.arange(rows.n, dtype=np.int64) + sign * offset
        outside = (target < rows.part_lo) | (target >= rows.part_hi)
        out = take_or_null(column, np.where(outside, -1, target))
        if len(args) > 2:
            out = choose(outside, args[2], out)
        if unknown is not None and unknown.any():
            out = choose(unknown, nulls(out.layout, rows.n), out)
        return out

    return kernel


def _shift_valid(valid: BoolArray, rows: Rows, shift: I64) -> I64:
    """The shift-th valid row away from each row (0 = the row itself); outside any partition when there is none."""
    places = np.flatnonzero(valid)
    before: I64 = np.cumsum(valid) - valid  # valid rows before each row
    ordinal = np.where(shift < 0, before + shift, before + valid + shift - 1)
    exists = (ordinal >= 0) & (ordinal < len(places))
    if not len(places):
        return np.where(shift == 0, np.arange(rows.n), -1)
    target = np.where(exists, places[np.clip(ordinal, 0, len(places) - 1)], -1)
    return np.where(shift == 0, np.arange(rows.n), target)


_KERNELS: dict[str, Callable[[WindowCall, list[Column], Rows], Column]] = {
    "row_number": _row_number,
    "rank": _rank,
    "dense_rank": _dense_rank,
    "percent_rank": _percent_rank,
    "cume_dist": _cume_dist,
    "ntile": _ntile,
    "lag": _shifted(-1),
    "lead": _shifted(1),
}


# --- values of the frame ------------------------------------------------------------------------------------------------


def _valued(
    call: WindowCall,
    name: str,
    args: list[Column],
    columns: Sequence[Column],
    rows: Rows,
    order_by: Sequence[ColumnOrder],
) -> Column:
    lo, hi = frame_bounds(call.frame, rows, columns, order_by)
    column = args[0]
    nth: I64 | None = None
    if name == "nth_value":
        amounts = args[1]
        assert isinstance(amounts, FixedColumn)
        nth = amounts.values.astype(np.int64) - 1
        if amounts.valid is not None:
            nth = np.where(amounts.valid, nth, -1)
    valid = column.valid if call.ignore_nulls else None
    if call.frame.exclude == "no_others" and valid is None:
        if nth is not None:
            target = np.where((nth >= 0) & (lo + nth < hi), lo + nth, -1)
        else:
            target = np.where(hi > lo, lo if name == "first_value" else hi - 1, -1)
        return take_or_null(column, target)
    owner, row = frame_rows(lo, hi)
    if call.frame.exclude != "no_others":
        owner, row = exclude(call.frame.exclude, rows, owner, row)
    if valid is not None:
        keep = valid[row]
        owner, row = owner[keep], row[keep]
    counts = np.bincount(owner, minlength=rows.n)
    first = np.cumsum(counts) - counts
    if nth is not None:
        place = np.where((nth >= 0) & (nth < counts), first + nth, -1)
    else:
        place = np.where(counts > 0, first if name == "first_value" else first + counts - 1, -1)
    padded = np.append(row, -1)
    return take_or_null(column, padded[place])


# --- aggregates -------------------------------------------------------------------------------------------------------


def _aggregate(
    call: WindowCall,
    args: list[Column],
    columns: Sequence[Column],
    rows: Rows,
    order_by: Sequence[ColumnOrder],
    errors: RowErrors,
) -> Column:
    entry = AGGREGATES[call.func]
    lo, hi = frame_bounds(call.frame, rows, columns, order_by)
    included: BoolArray | None = None
    if call.filter is not None:
        truth = _evaluate(call.filter, columns, rows.n, errors)
        assert isinstance(truth, FixedColumn)
        included = truth.values if truth.valid is None else truth.values & truth.valid
    plain = call.frame.exclude == "no_others" and not call.distinct
    if plain and entry.kind == "accumulable":
        return _by_prefix_sums(entry, call, args, lo, hi, included, errors)
    if plain and entry.kind == "hierarchical":
        return _by_range_minimum(entry, args[0], lo, hi, included)
    return _by_rows(entry, call, args, rows, lo, hi, included, errors)


def _contributions(entry: AggregateEntry, call: WindowCall, args: list[Column], n: int) -> I64:
    assert entry.contribute is not None
    return entry.contribute(call_site(call.func, call.typ), args, n)


def _finish(entry: AggregateEntry, call: WindowCall, state: I64, errors: RowErrors) -> Column:
    assert entry.finish is not None
    return entry.finish(call_site(call.func, call.typ), state, errors)


def _by_prefix_sums(
    entry: AggregateEntry,
    call: WindowCall,
    args: list[Column],
    lo: I64,
    hi: I64,
    included: BoolArray | None,
    errors: RowErrors,
) -> Column:
    n = len(lo)
    lanes = _contributions(entry, call, args, n)
    if included is not None:
        lanes[~included] = 0
    prefix = np.zeros((n + 1, lanes.shape[1]), np.int64)
    np.cumsum(lanes, axis=0, out=prefix[1:])
    return _finish(entry, call, prefix[hi] - prefix[lo], errors)


def _by_range_minimum(entry: AggregateEntry, column: Column, lo: I64, hi: I64, included: BoolArray | None) -> Column:
    n = len(lo)
    codes = column.order_codes()
    order = np.argsort(codes, kind="stable")
    if entry.take_last:
        order = order[::-1]
    ranks = np.empty(n, np.int64)
    ranks[order] = np.arange(n)
    skip = column.is_null() if included is None else column.is_null() | ~included
    ranks[skip] = n
    least = RangeMinimum(ranks).query(lo, hi, n) if n else ranks
    return take_or_null(column, np.append(order, -1)[least])


def _by_rows(
    entry: AggregateEntry,
    call: WindowCall,
    args: list[Column],
    rows: Rows,
    lo: I64,
    hi: I64,
    included: BoolArray | None,
    errors: RowErrors,
) -> Column:
    """From the rows of each frame; frames that cover the same rows are computed once."""
    everything, args = args, args[: len(entry.params)]
    back: I64 | None = None
    if call.frame.exclude == "no_others" and rows.n:
        pairs, back = np.unique(np.stack([lo, hi]), axis=1, return_inverse=True)
        lo, hi = pairs[0], pairs[1]
        back = back.reshape(-1)
    count = len(lo)
    owner, row = frame_rows(lo, hi)
    if call.frame.exclude != "no_others":
        owner, row = exclude(call.frame.exclude, rows, owner, row)
    keep = np.ones(len(row), np.bool_)
    if included is not None:
        keep &= included[row]
    if entry.strict and entry.kind != "accumulable":
        for arg in args:
            if arg.valid is not None:
                keep &= arg.valid[row]
    owner, row = owner[keep], row[keep]
    if call.order_by:
        ranks = np.empty(rows.n, np.int64)
        ranks[sort_permutation(everything, call.order_by, rows.n, then_all=True)] = np.arange(rows.n)
        order = np.lexsort((ranks[row], owner))
        owner, row = owner[order], row[order]
    if call.distinct:
        owner, row = _distinct(args, owner, row)
    own = RowErrors()
    starts = np.searchsorted(owner, np.arange(count + 1))
    if entry.kind == "hierarchical":
        order = np.argsort(args[0].order_codes(), kind="stable")
        ranks = np.empty(rows.n, np.int64)
        ranks[order[::-1] if entry.take_last else order] = np.arange(rows.n)
        best = np.full(count, rows.n, np.int64)
        np.minimum.at(best, owner, ranks[row])
        back_order = order[::-1] if entry.take_last else order
        out = take_or_null(args[0], np.append(back_order, -1)[best])
    elif entry.kind == "accumulable":
        lanes = _contributions(entry, call, args, rows.n)
        state = np.zeros((count, lanes.shape[1]), np.int64)
        np.add.at(state, owner, lanes[row])
        out = _finish(entry, call, state, own)
    else:
        assert entry.collect is not None
        taken = [a.take(row) for a in args]
        out = entry.collect(call_site(call.func, call.typ), taken, starts, own)
        nothing = np.diff(starts) == 0
        if nothing.any():
            out = choose(nothing, nulls(out.layout, count), out)
    if back is None:
        errors.add_all(own)
        return out
    for frame, error in own.first.items():
        for at in np.flatnonzero(back == frame).tolist():
            errors.add_encoded(at, error)
    return out.take(back)


def _distinct(args: list[Column], owner: I64, row: I64) -> tuple[I64, I64]:
    """The first of equal argument rows in each frame. (By hash; 64 bits and one frame's rows make a collision moot.)"""
    hashes = hash_rows(args, len(args[0]) if args else 0)[row]
    _, first = np.unique(np.stack([owner.view(np.uint64), hashes]), axis=1, return_index=True)
    first.sort()
    return owner[first], row[first]
