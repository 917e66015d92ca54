"""FlatMap: each row joined with the rows that a table function makes of it. Stateless, but one chunk may become many."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from compute.operators.base import CHUNK_ROWS, Graph, Operator, Port, error_updates, pieces
from compute.operators.mfp import RowStep
from mzlite.expr.mfp import MapFilterProject
from mzlite.expr.mfp_eval import MfpPlan
from mzlite.expr.scalar import Scalar, TableFunc
from mzlite.expr.table_functions import call_table_function
from mzlite.repr.column import I64, Column
from mzlite.repr.fixed import FixedColumn
from mzlite.repr.updates import Updates

ROWS_A_CALL = 256


class FlatMap(Operator):
    """exprs: the function's arguments over the input's columns. mfp: over (input columns, function columns)."""

    def __init__(
        self, graph: Graph, arity: int, func: TableFunc, exprs: tuple[Scalar, ...], mfp: MapFilterProject
    ) -> None:
        super().__init__(graph)
        self.oks = Port(graph)
        self.errs = Port(graph)
        self.arity = arity
        self.func = func
        self.args = MfpPlan(MapFilterProject(arity, exprs, (), tuple(range(arity + len(exprs)))))
        self.step = RowStep(mfp)
        self.queue: list[Updates] = []

    def intake(self, index: int, updates: Updates) -> None:
        self.queue.append(updates)
        self.dirty = True

    def flush(self) -> Iterator[None]:
        queue, self.queue = self.queue, []
        for updates in queue:
            for piece in pieces(updates, ROWS_A_CALL):
                yield from self._expand(piece)

    def _expand(self, updates: Updates) -> Iterator[None]:
        """One call's rows of input."""
        kept, columns, errors = self.args.apply(updates.columns, len(updates))
        if errors is not None:
            self.errs.emit(error_updates(updates, *errors))
        rows = updates if len(kept) == len(updates) else updates.take(kept)
        if not len(rows):
            return
        args = columns[self.arity :]
        if self.func.func in _SERIES:
            lengths = series_lengths(args)
            for start, stop in bounded_groups(lengths):
                some = rows.slice(start, stop)
                cut = [c.slice(start, stop) for c in args]
                parts = series_parts(cut, int(lengths[start])) if stop == start + 1 else iter([cut])
                for part in parts:
                    self._call(some, part)
                    yield
            return
        self._call(rows, args)
        yield

    def _call(self, rows: Updates, args: Sequence[Column]) -> None:
        owner, made, failed = call_table_function(self.func, args, len(rows))
        if failed is not None:
            self.errs.emit(error_updates(rows, *failed))
            bad = np.isin(owner, failed[0])
            if bad.any():
                good = np.flatnonzero(~bad)
                owner, made = owner[good], [c.take(good) for c in made]
        for start in range(0, len(owner), CHUNK_ROWS):
            part = owner[start : start + CHUNK_ROWS]
            stop = start + len(part)
            source = [
                rows.columns[i].take(part) if i < self.arity else made[i - self.arity].slice(start, stop)
                for i in self.step.needed
            ]
            self.step.run(source, rows.time[part], rows.diff[part], self.oks, self.errs)


# Integer series may be as long as they like: they are made a chunk at a time.
_SERIES = {"generate_series_int4", "generate_series_int8", "generate_series_int4_step", "generate_series_int8_step"}


def series_lengths(args: Sequence[Column]) -> I64:
    """About how many values each row's series has; 0 where it is empty, NULL or invalid."""
    start, stop, step = _series_args(args)
    ahead = np.where(step > 0, stop >= start, start >= stop) & (step != 0)
    for c in args:
        if c.valid is not None:
            ahead &= c.valid
    # In floating point: a span may exceed int64.
    lengths = np.where(ahead, (stop.astype(np.float64) - start) / np.where(step == 0, 1, step), 0.0)
    return np.minimum(lengths, 2.0**62).astype(np.int64)


def bounded_groups(lengths: I64) -> Iterator[tuple[int, int]]:
    """Ranges of rows that make about CHUNK_ROWS values together, or one row that alone makes more."""
    slot = np.cumsum(lengths.astype(np.float64)) // CHUNK_ROWS
    cuts = np.flatnonzero(slot[1:] != slot[:-1]) + 1
    edges = [0, *cuts.tolist(), len(lengths)]
    yield from itertools.pairwise(edges)


def _series_args(args: Sequence[Column]) -> tuple[I64, I64, I64]:
    values: list[I64] = []
    for c in args:
        assert isinstance(c, FixedColumn), c
        values.append(c.values.astype(np.int64))
    if len(values) == 2:
        values.append(np.ones(len(values[0]), np.int64))
    return values[0], values[1], values[2]


def series_parts(args: Sequence[Column], length: int) -> Iterator[list[Column]]:
    """The arguments of one row's series, cut into series of at most CHUNK_ROWS values."""
    if length <= CHUNK_ROWS:
        yield list(args)
        return
    start, stop, step = (int(a[0]) for a in _series_args(args))
    first = args[0]
    assert isinstance(first, FixedColumn), first
    at = start
    while (at <= stop) if step > 0 else (at >= stop):
        last = at + (CHUNK_ROWS - 1) * step
        last = min(last, stop) if step > 0 else max(last, stop)
        bounds = [first.with_values(np.array([v], first.values.dtype), None) for v in (at, last)]
        yield [*bounds, *args[2:]]
        at = last + step
