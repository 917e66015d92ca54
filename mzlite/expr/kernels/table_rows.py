"""Kernels of table functions: columns to (owner row of each output row, output columns)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from mzlite.expr.call import Args, CallSite, RowErrors
from mzlite.expr.kernels.adapt import merge_valid
from mzlite.expr.kernels.calendar_math import add_interval
from mzlite.repr.calendar import DAY_US
from mzlite.repr.column import I64, Column
from mzlite.repr.datum import column_from_datums, column_to_datums
from mzlite.repr.errors import SqlError
from mzlite.repr.fixed import FixedColumn
from mzlite.repr.interval import Interval, IntervalColumn
from mzlite.repr.types import Layout, ScalarType
from mzlite.repr.var import VarColumn

TableKernel = Callable[[CallSite, Args, int, RowErrors], tuple[I64, list[Column]]]


def _fixed(column: Column) -> Any:
    assert isinstance(column, FixedColumn)
    return column.values


def flatten(counts: I64) -> tuple[I64, I64]:
    """(owner, position within its owner) of counts[i] rows for each i."""
    owner = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    firsts = np.cumsum(counts) - counts
    return owner, np.arange(len(owner), dtype=np.int64) - np.repeat(firsts, counts)


def series(site: CallSite, args: Args, n: int, errors: RowErrors) -> tuple[I64, list[Column]]:
    start, stop = _fixed(args[0]).astype(np.int64), _fixed(args[1]).astype(np.int64)
    step = _fixed(args[2]).astype(np.int64) if len(args) > 2 else np.ones(n, np.int64)
    valid = merge_valid(args)
    live = np.ones(n, np.bool_) if valid is None else valid
    zero = live & (step == 0)
    errors.add_mask(zero, SqlError("22023", "step size cannot equal zero"))
    live = live & ~zero
    safe = np.where(step == 0, 1, step)
    # A span of more than 2^63 cannot be counted in int64; such a series could not be held anyway.
    spans = stop.astype(np.float64) - start.astype(np.float64)
    going = live & np.where(safe > 0, spans >= 0, spans <= 0)
    counts = np.where(going, (stop - start) // safe + 1, 0)
    owner, place = flatten(np.maximum(counts, 0))
    values = start[owner] + place * safe[owner]
    if site.typ.layout is Layout.I32:
        return owner, [FixedColumn(values.astype(np.int32))]
    return owner, [FixedColumn(values)]


def timestamp_series(site: CallSite, args: Args, n: int, errors: RowErrors) -> tuple[I64, list[Column]]:
    start, stop = _fixed(args[0]), _fixed(args[1])
    steps = args[2]
    assert isinstance(steps, IntervalColumn)
    valid = merge_valid(args)
    owners: list[I64] = []
    values: list[I64] = []
    for row in range(n):
        if valid is not None and not valid[row]:
            continue
        months, days, us = steps.values[row].tolist()
        at, end = int(start[row]), int(stop[row])
        fixed = days * DAY_US + us
        if not months and not fixed:
            errors.add(row, SqlError("22023", "step size cannot equal zero"))
            continue
        if not months:
            count = (end - at) // fixed + 1 if (end >= at) == (fixed > 0) or at == end else 0
            made = at + fixed * np.arange(max(count, 0), dtype=np.int64)
        else:
            forward = months * 30 * DAY_US + fixed > 0
            if months * 30 * DAY_US + fixed == 0:
                errors.add(row, SqlError("22023", "step size cannot equal zero"))
                continue
            listed = []
            # Step by step: a day cut to a short month's end stays cut.
            while (at <= end) if forward else (at >= end):
                listed.append(at)
                try:
                    at = add_interval(at, months, days, us)
                except SqlError as error:
                    errors.add(row, error)
                    break
            made = np.array(listed, np.int64)
        owners.append(np.full(len(made), row, np.int64))
        values.append(made)
    owner = np.concatenate(owners) if owners else np.zeros(0, np.int64)
    out = np.concatenate(values) if values else np.zeros(0, np.int64)
    return owner, [FixedColumn(out, None, Layout.TIMESTAMP)]


def hopping(hop: Interval, width: Interval, source: int, origin: int = 0) -> list[tuple[int]]:
    """Starts of the windows of `width`, one every `hop`, that hold the timestamp."""
    hop_us, width_us = hop.days * DAY_US + hop.us, width.days * DAY_US + width.us
    if hop.months or width.months:
        raise SqlError("0A000", "timestamps cannot be binned into intervals containing months or years")
    if hop_us <= 0 or width_us <= 0:
        raise SqlError("22008", "stride must be greater than zero")
    first = origin + (source - origin) // hop_us * hop_us + hop_us - width_us
    return [(start,) for start in range(first, source + 1, hop_us)]


def per_value(f: Callable[..., Iterable[tuple[Any, ...]]], *, raw: bool = False) -> TableKernel:
    """f(*datums) -> rows of datums, once for each input row. raw: VAR columns as canonical bytes, both ways."""

    def kernel(site: CallSite, args: Args, n: int, errors: RowErrors) -> tuple[I64, list[Column]]:
        types: list[ScalarType] = site.cache["columns"]
        inputs = [
            a.to_bytes() if raw and isinstance(a, VarColumn) else column_to_datums(t, a)
            for t, a in zip(site.params, args)
        ]
        owner: list[int] = []
        rows: list[tuple[Any, ...]] = []
        for row, datums in enumerate(zip(*inputs)):
            if None in datums:
                continue
            try:
                made = list(f(*datums))
            except SqlError as error:
                errors.add(row, error)
                continue
            owner.extend([row] * len(made))
            rows.extend(made)
        columns: list[Column] = []
        for i, typ in enumerate(types):
            values = [r[i] for r in rows]
            if raw and typ.layout is Layout.VAR:
                columns.append(VarColumn.from_bytes(values))
            else:
                columns.append(column_from_datums(typ, values))
        return np.array(owner, np.int64), columns

    return kernel


def repeat_row(name: str) -> TableKernel:
    def kernel(site: CallSite, args: Args, n: int, errors: RowErrors) -> tuple[I64, list[Column]]:
        counts = _fixed(args[0])
        valid = args[0].valid
        negative = counts < 0
        if valid is not None:
            negative = negative & valid
        for row in np.flatnonzero(negative).tolist():
            errors.add(row, SqlError("22023", f"{name} got {counts[row]}"))
        live = ~negative if valid is None else ~negative & valid
        owner, _ = flatten(np.where(live, counts, 0))
        return owner, []

    return kernel


def guard_subquery_size(site: CallSite, args: Args, n: int, errors: RowErrors) -> tuple[I64, list[Column]]:
    counts = _fixed(args[0])
    errors.add_mask(counts < 0, SqlError("21000", "negative multiplicity in a subquery"))
    errors.add_mask(counts > 1, SqlError("21000", "more than one record produced in subquery"))
    return np.zeros(0, np.int64), []
