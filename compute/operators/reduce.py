"""Reduce: group by a key; aggregates of every class side by side.

    accumulable   lanes in one Accumulator (count, sum, avg, bool_and, variance, …); lane 0 counts the group's rows
    hierarchical  min, max: the first row of an OrderedTrace on (key, value)
    basic         array_agg, string_agg, …: the group's rows, collected again when it is touched

The input of each class is prepared by one row-wise step (the *prelude*): key columns, then every argument and filter.
An aggregate over DISTINCT arguments has its own input, behind a Distinct on (key, arguments).

Source: Materialize's ReducePlan; the classes share points instead of being joined back together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from compute.operators.accumulate import Accumulator
from compute.operators.base import Graph, Operator, Port
from compute.operators.chunks import Groups, all_ones, group_chunk, integer_sums
from compute.operators.mfp import RowStep
from compute.operators.ordered import OrderedTrace
from compute.operators.points import GroupOperator, Outcome, Points, group_rows
from compute.operators.rows import RowsTrace
from compute.trace.batch import Batch
from mzlite.expr.aggregates import AGGREGATES, AggregateEntry, call_site
from mzlite.expr.call import CallSite, RowErrors
from mzlite.expr.mfp import MapFilterProject
from mzlite.expr.scalar import Aggregate, ColumnOrder, Literal, Ref, Scalar
from mzlite.repr.column import I64, BoolArray, Column, concat, nulls, repeat, sort_permutation
from mzlite.repr.fixed import FixedColumn
from mzlite.repr.types import Layout
from mzlite.repr.updates import Updates

FEW_ROWS = 64


class Prelude:
    """The columns that a reduce computes from its input rows, each expression once."""

    def __init__(self, arity: int, key: Sequence[Scalar]) -> None:
        self.arity = arity
        self.outputs: list[Scalar] = list(key)

    def column(self, e: Scalar) -> int:
        """Position of e's value among the prelude's output columns."""
        if e not in self.outputs:
            self.outputs.append(e)
        return self.outputs.index(e)

    def mfp(self) -> MapFilterProject:
        expressions: list[Scalar] = []
        projection: list[int] = []
        for e in self.outputs:
            if isinstance(e, Ref):
                projection.append(e.column)
            else:
                projection.append(self.arity + len(expressions))
                expressions.append(e)
        return MapFilterProject(self.arity, tuple(expressions), (), tuple(projection))


class Lanes:
    """An accumulable aggregate: which input carries it, which columns it reads, which lanes it owns."""

    def __init__(self, aggregate: Aggregate, source: int, args: Sequence[int], filter: int | None, start: int) -> None:
        self.entry: AggregateEntry = AGGREGATES[aggregate.func]
        self.site: CallSite = call_site(aggregate.func, aggregate.typ)
        self.source = source
        self.args = tuple(args)
        self.filter = filter
        self.start = start
        self.stop = start + self.entry.lanes

    def contribution(self, columns: Sequence[Column], n: int) -> I64:
        assert self.entry.contribute is not None
        lanes = self.entry.contribute(self.site, [columns[i] for i in self.args], n)
        if self.filter is not None:
            lanes = np.where(is_true(columns[self.filter])[:, None], lanes, 0)
        return lanes

    def grouped(self, columns: Sequence[Column], diff: I64, groups: Groups) -> I64:
        """int64[g, lanes]: the sum of contribution times diff over each group."""
        mask = None if self.filter is None else is_true(columns[self.filter])
        summed = integer_sums(self.entry, self.site, [columns[i] for i in self.args], mask, diff, groups)
        if summed is not None:
            return summed
        lanes = self.contribution(columns, len(diff))
        if not all_ones(diff):
            lanes = lanes * diff[:, None]
        return groups.sum(lanes)


class Extreme:
    """A min or max: an ordered trace of (key, value)."""

    def __init__(self, graph: Graph, aggregate: Aggregate, key_count: int, arg: int, filter: int | None) -> None:
        entry = AGGREGATES[aggregate.func]
        self.arg = arg
        self.filter = filter
        self.layout = aggregate.typ.layout
        self.key_count = key_count
        order = (ColumnOrder(key_count, desc=entry.take_last),)
        self.trace = OrderedTrace(graph, range(key_count), order, key_count + 1)

    def push(self, columns: Sequence[Column], updates: Updates) -> None:
        value = columns[self.arg]
        keep = None if value.valid is None else value.valid
        if self.filter is not None:
            wanted = is_true(columns[self.filter])
            keep = wanted if keep is None else keep & wanted
        stored = (*columns[: self.key_count], value)
        if keep is None:
            self.trace.push(stored, updates.time, updates.diff)
            return
        rows = np.flatnonzero(keep)
        if len(rows):
            self.trace.push(tuple(c.take(rows) for c in stored), updates.time[rows], updates.diff[rows])

    def value(self, points: Points, new: bool) -> Column:
        point, columns, _ = self.trace.first(points, new, 1)
        if not len(point):
            return nulls(self.layout, len(points))
        first = np.flatnonzero(np.concatenate([[True], point[1:] != point[:-1]]))
        return scattered(columns[self.key_count], point[first], first, len(points))


class Collected:
    """A basic aggregate over the rows that the shared RowsTrace of basic aggregates keeps."""

    def __init__(self, aggregate: Aggregate, args: Sequence[int], filter: int | None, order: Sequence[int]) -> None:
        self.entry: AggregateEntry = AGGREGATES[aggregate.func]
        self.site = call_site(aggregate.func, aggregate.typ)
        self.layout = aggregate.typ.layout
        self.args = tuple(args)
        self.filter = filter
        self.distinct = aggregate.distinct
        self.order_columns = tuple(order)
        self.order_by = tuple(
            ColumnOrder(i, o.desc, o.nulls_last) for i, o in ((order[o.column], o) for o in aggregate.order_by)
        )


class Reduce(GroupOperator):
    """Input 0: the prelude's rows. Input j > 0: distinct (key, arguments) of a DISTINCT aggregate.

    mfp: applied to (key, aggregates).
    """

    one_row = True

    def __init__(self, graph: Graph, key_count: int, width: int, mfp: MapFilterProject) -> None:
        super().__init__(graph, key_count)
        self.width = width
        self.step = None if mfp.is_identity() else RowStep(mfp)
        self.slots: list[Lanes | Extreme | Collected | None] = []
        self.extremes: list[Extreme] = []
        self.collected: list[Collected] = []
        self.lanes: dict[int, list[Lanes]] = {0: []}
        self.lane_count = 1
        self.accumulator: Accumulator | None = None
        self.rows: RowsTrace | None = None

    def add_count(self) -> None:
        """An aggregate that equals the number of rows: lane 0."""
        self.slots.append(None)

    def add_lanes(self, aggregate: Aggregate, source: int, args: Sequence[int], filter: int | None) -> None:
        lanes = Lanes(aggregate, source, args, filter, self.lane_count)
        self.lane_count = lanes.stop
        self.lanes.setdefault(source, []).append(lanes)
        self.slots.append(lanes)

    def add_extreme(self, aggregate: Aggregate, arg: int, filter: int | None) -> None:
        extreme = Extreme(self.graph, aggregate, self.key_count, arg, filter)
        self.extremes.append(extreme)
        self.slots.append(extreme)

    def add_collected(
        self, aggregate: Aggregate, args: Sequence[int], filter: int | None, order: Sequence[int]
    ) -> None:
        collected = Collected(aggregate, args, filter, order)
        self.collected.append(collected)
        self.slots.append(collected)

    def seal_plan(self) -> None:
        """All aggregates are added."""
        self.accumulator = Accumulator(self.graph, self.key_count, self.lane_count)
        if self.collected:
            self.rows = RowsTrace(self.graph, range(self.key_count))
        self.must_touch = bool(self.extremes or self.collected)

    def intake(self, index: int, updates: Updates) -> None:
        assert self.accumulator is not None
        columns = updates.columns
        keys = columns[: self.key_count]
        n = len(updates)
        lanes: I64 | None
        if self.lane_count == 1:
            lanes = updates.diff
        elif n > FEW_ROWS and (groups := group_chunk(keys, updates.time, n)) is not None:
            lanes = np.zeros((len(groups), self.lane_count), np.int64)
            if index == 0:
                lanes[:, 0] = groups.sum(updates.diff)
            for part in self.lanes.get(index, ()):
                lanes[:, part.start : part.stop] = part.grouped(columns, updates.diff, groups)
            first = groups.first
            self.accumulator.push(tuple(c.take(first) for c in keys), updates.time[first], lanes)
            lanes = None
        else:
            lanes = np.zeros((n, self.lane_count), np.int64)
            if index == 0:
                lanes[:, 0] = 1
            for part in self.lanes.get(index, ()):
                lanes[:, part.start : part.stop] = part.contribution(columns, n)
            lanes *= updates.diff[:, None]
        if lanes is not None:
            self.accumulator.push(keys, updates.time, lanes)
        if index == 0:
            for extreme in self.extremes:
                extreme.push(columns, updates)
            if self.rows is not None:
                self.rows.push(columns, updates.time, updates.diff)
        if self.must_touch or self.graph.now is not None:
            self.touch(keys, updates.time)
        self.dirty = True

    def seal_round(self) -> Iterator[None]:
        assert self.accumulator is not None
        yield from self.accumulator.seal_round()
        for extreme in self.extremes:
            yield from extreme.trace.seal_round()
        if self.rows is not None:
            yield from self.rows.seal_round()

    def changed_points(self) -> Batch | None:
        assert self.accumulator is not None
        return self.accumulator.delta

    def had_state(self) -> bool:
        assert self.accumulator is not None
        return bool(self.accumulator.old)

    def evaluate(self, points: Points, new: bool) -> Outcome:
        assert self.accumulator is not None
        state = self.accumulator.state(points, new)
        rows = state if state.ndim == 1 else state[:, 0]
        errors = RowErrors()
        m = len(points)
        gathered = (
            group_rows(self.rows.new if new else self.rows.old, self.rows.key, points, range(self.width))
            if self.rows is not None
            else None
        )
        aggregates: list[Column] = []
        for slot in self.slots:
            if slot is None:
                column: Column = FixedColumn(np.ascontiguousarray(rows))
            elif isinstance(slot, Lanes):
                assert slot.entry.finish is not None
                column = slot.entry.finish(slot.site, np.ascontiguousarray(state[:, slot.start : slot.stop]), errors)
            elif isinstance(slot, Extreme):
                column = slot.value(points, new)
            else:
                column = collect(slot, gathered, m, self.key_count, errors)
            aggregates.append(column if len(column) == m else repeat(column, m))
        columns = (*points.keys, *aggregates)
        present = np.flatnonzero(rows > 0)
        failed = None
        if errors:
            at, encoded = errors.items()
            bad = {int(p): e for p, e in zip(at, encoded) if rows[p] > 0}
            if bad:
                failed = (np.array(sorted(bad), np.int64), [bad[p] for p in sorted(bad)])
                present = present[~np.isin(present, failed[0])]
        if len(present) == m:
            return Outcome(present, columns, None, failed)
        return Outcome(present, tuple(c.take(present) for c in columns), None, failed)

    def emit_rows(self, updates: Updates) -> None:
        step = self.step
        if step is None:
            self.oks.emit(updates)
        else:
            step.run([updates.columns[i] for i in step.needed], updates.time, updates.diff, self.oks, self.errs)


def collect(slot: Collected, gathered: object, m: int, key_count: int, errors: RowErrors) -> Column:
    """A basic aggregate at m points, from the consolidated rows of their groups."""
    from compute.operators.points import GroupRows

    if gathered is None:
        return nulls(slot.layout, m)
    assert isinstance(gathered, GroupRows)
    point, columns, diff = gathered.point, gathered.columns, gathered.diff
    keep = np.ones(len(point), np.bool_)
    if slot.filter is not None:
        keep &= is_true(columns[slot.filter])
    if slot.entry.strict:
        for i in slot.args:
            valid = columns[i].valid
            if valid is not None:
                keep &= valid
    if not keep.all():
        rows = np.flatnonzero(keep)
        point, columns, diff = point[rows], tuple(c.take(rows) for c in columns), diff[rows]
    if not len(point):
        return nulls(slot.layout, m)
    read = tuple(dict.fromkeys((*slot.args, *slot.order_columns)))
    where = {c: i for i, c in enumerate(read)}
    picked = tuple(columns[i] for i in read)
    if slot.distinct:
        from compute.operators.points import consolidate_rows

        unique = consolidate_rows(point, picked, diff)
        assert unique is not None
        point, picked, diff = unique.point, unique.columns, np.ones(len(unique.point), np.int64)
    order = [ColumnOrder(where[o.column], o.desc, o.nulls_last) for o in slot.order_by]
    every = (*picked, FixedColumn(point))
    by = sort_permutation(every, (ColumnOrder(len(picked)), *order), len(point), then_all=True)
    if bool((diff > 1).any()):
        by = np.repeat(by, diff[by])
    point = point[by]
    args = [picked[where[i]].take(by) for i in slot.args]
    starts = np.flatnonzero(np.concatenate([[True], point[1:] != point[:-1]]))
    offsets = np.append(starts, len(point)).astype(np.int64)
    assert slot.entry.collect is not None
    own = RowErrors()
    result = slot.entry.collect(slot.site, args, offsets, own)
    groups = point[starts]
    if own:
        errors.add_all(own, groups)
    return scattered(result, groups, np.arange(len(groups)), m)


def scattered(column: Column, at: I64, rows: I64, m: int) -> Column:
    """m values: value rows[i] of column at position at[i], NULL elsewhere."""
    if len(at) == m:
        return column.take(rows)
    where = np.full(m, len(rows), np.int64)
    where[at] = np.arange(len(rows))
    return concat([column.take(rows), nulls(column.layout, 1)]).take(where)


def is_true(column: Column) -> BoolArray:
    """bool[n]: true and not NULL."""
    assert isinstance(column, FixedColumn), column
    values: BoolArray = column.values.astype(np.bool_)
    return values if column.valid is None else values & column.valid


def counts_rows(aggregate: Aggregate) -> bool:
    """Is it count(*), so that lane 0 is its value?"""
    if aggregate.func != "count" or aggregate.distinct or aggregate.filter is not None:
        return False
    return all(isinstance(a, Literal) and a.value is not None for a in aggregate.args)


__all__ = ["Layout", "Operator", "Port", "Prelude", "Reduce", "counts_rows"]
