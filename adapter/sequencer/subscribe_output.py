"""What a SUBSCRIBE's updates look like to the client: the four outputs, with and without progress rows.

    diffs                      mz_timestamp, [mz_progressed,] mz_diff, columns…
    within_timestamp_order_by  the same rows, each timestamp's sorted by the statement's ORDER BY
    envelope_upsert            mz_timestamp, [mz_progressed,] mz_state (upsert | delete | key_violation), key…, values…
    envelope_debezium          mz_timestamp, [mz_progressed,] mz_state (insert | upsert | delete | key_violation), key…, before…, after…

Input: consolidated updates of whole timestamps (a batch from the replica covers [lower, upper) entirely).
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

import numpy as np

from adapter.coord.result import Batch
from adapter.sql.plans import SubscribePlan
from mzlite.expr.scalar import ColumnOrder
from mzlite.repr.column import U64, Column, concat, nulls, rows_equal, sort_permutation
from mzlite.repr.datum import column_from_datums
from mzlite.repr.fixed import FixedColumn
from mzlite.repr.numeric import NumericColumn
from mzlite.repr.timestamp import Timestamp
from mzlite.repr.types import BOOL, NUMERIC, TEXT, Layout
from mzlite.repr.updates import Updates, consolidate


class SubscribeOutput:
    """Updates to batches in the statement's output form."""

    def __init__(self, plan: SubscribePlan) -> None:
        self._plan = plan
        self._types = [c.scalar for c in plan.output_desc.typ.columns]
        self._keys = plan.key_columns
        self._values = tuple(i for i in range(plan.desc.typ.arity) if i not in plan.key_columns)

    def rows(self, u: Updates) -> Batch | None:
        """All of a batch's updates, by time; None when there are none."""
        u = consolidate(u)
        n = len(u)
        if n == 0:
            return None
        match self._plan.output:
            case "envelope_upsert" | "envelope_debezium":
                return self._envelope(u)
            case _:
                return self._diffs(u)

    def progress(self, ts: Timestamp) -> Batch:
        """A progress row: nothing before ts will come."""
        columns: list[Column] = [self._time(np.array([ts], np.uint64))]
        columns.append(column_from_datums(BOOL, [True]))
        columns += [nulls(t.layout, 1) for t in self._types[2:]]
        return Batch(tuple(columns), 1)

    def _time(self, times: U64) -> Column:
        if self._types[0].layout is Layout.U64:
            return FixedColumn(times.astype(np.uint64), None, Layout.U64)
        if len(times) and times.max() >= 10**18:
            return column_from_datums(NUMERIC, [Decimal(int(t)) for t in times])
        return NumericColumn(times.astype(np.int64), 0)

    def _head(self, times: U64) -> list[Column]:
        columns = [self._time(times)]
        if self._plan.with_progress:
            columns.append(column_from_datums(BOOL, [False] * len(times)))
        return columns

    def _diffs(self, u: Updates) -> Batch:
        n = len(u)
        time_column = FixedColumn(u.time, None, Layout.U64)
        diff_column = FixedColumn(u.diff, None, Layout.I64)
        order = [ColumnOrder(0)]
        # (time, diff, columns…): ORDER BY's -1 is mz_diff.
        sortable: list[Column] = [time_column, diff_column, *u.columns]
        for column, desc, nulls_last in self._plan.order_by:
            order.append(ColumnOrder(column + 2, desc, nulls_last))
        if not self._plan.order_by:
            order.append(ColumnOrder(1))
        perm = sort_permutation(sortable, order, n, then_all=True)
        columns = self._head(u.time[perm])
        columns.append(FixedColumn(u.diff[perm], None, Layout.I64))
        columns += [c.take(perm) for c in u.columns]
        return Batch(tuple(columns), n)

    def _envelope(self, u: Updates) -> Batch:
        n = len(u)
        keys = [u.columns[i] for i in self._keys]
        sortable: list[Column] = [FixedColumn(u.time, None, Layout.U64), *keys, FixedColumn(u.diff, None, Layout.I64)]
        perm = sort_permutation(sortable, [ColumnOrder(i) for i in range(len(sortable))], n)
        s = u.take(perm)
        heads = [FixedColumn(s.time, None, Layout.U64), *[s.columns[i] for i in self._keys]]
        new = np.ones(n, np.bool_)
        if n > 1:
            new[1:] = ~rows_equal([h.slice(0, n - 1) for h in heads], [h.slice(1, n) for h in heads], n - 1)
        starts = np.append(np.flatnonzero(new), n)
        states: list[str] = []
        before: list[int | None] = []
        after: list[int | None] = []
        firsts: list[int] = []
        for a, b in zip(starts[:-1].tolist(), starts[1:].tolist()):
            state, old, fresh = _classify(s.diff[a:b].tolist(), a, self._plan.output == "envelope_debezium")
            states.append(state)
            before.append(old)
            after.append(fresh)
            firsts.append(a)
        idx = np.array(firsts, np.int64)
        columns = self._head(s.time[idx])
        columns.append(column_from_datums(TEXT, states))
        columns += [s.columns[i].take(idx) for i in self._keys]
        if self._plan.output == "envelope_debezium":
            columns += [_take_or_null(s.columns[i], before) for i in self._values]
        columns += [_take_or_null(s.columns[i], after) for i in self._values]
        return Batch(tuple(columns), len(firsts))


def _classify(diffs: list[int], start: int, debezium: bool) -> tuple[str, int | None, int | None]:
    """(mz_state, row before, row after) of one key at one time; its updates are sorted by diff."""
    match diffs:
        case [1]:
            return ("insert" if debezium else "upsert"), None, start
        case [-1]:
            return "delete", start, None
        case [-1, 1]:
            return "upsert", start, start + 1
        case _:
            return "key_violation", None, None


def _take_or_null(column: Column, rows: list[int | None]) -> Column:
    n = len(column)
    if None not in rows:
        return column.take(np.array(rows, np.int64))
    both = concat([column, nulls(column.layout, 1)])
    return both.take(np.array([n if r is None else r for r in rows], np.int64))


def batches(output: SubscribeOutput, u: Updates) -> Iterator[Batch]:
    found = output.rows(u)
    if found is not None:
        yield found
