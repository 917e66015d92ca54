"""Window functions: a partition is computed again when one of its rows changes; other partitions are not touched."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from compute.operators.base import Graph
from compute.operators.points import GroupOperator, Outcome, Points, group_rows
from compute.operators.rows import RowsTrace
from compute.plan.lir import LirWindow
from mzlite.expr.call import RowErrors
from mzlite.expr.scalar import ColumnOrder
from mzlite.expr.window_functions import evaluate_window
from mzlite.repr.column import sort_permutation
from mzlite.repr.fixed import FixedColumn
from mzlite.repr.updates import Updates


class Window(GroupOperator):
    """Columns: the input's, then one per call. A row that occurs n times is n rows of its partition."""

    def __init__(self, graph: Graph, arity: int, plan: LirWindow) -> None:
        super().__init__(graph, len(plan.partition_by))
        self.arity = arity
        self.plan = plan
        self.trace = RowsTrace(graph, plan.partition_by)

    def intake(self, index: int, updates: Updates) -> None:
        self.trace.push(updates.columns, updates.time, updates.diff)
        self.touch([updates.columns[i] for i in self.plan.partition_by], updates.time)
        self.dirty = True

    def seal_round(self) -> Iterator[None]:
        return self.trace.seal_round()

    def had_state(self) -> bool:
        return bool(self.trace.old)

    def evaluate(self, points: Points, new: bool) -> Outcome:
        trace = self.trace
        rows = group_rows(trace.new if new else trace.old, trace.key, points, range(self.arity))
        if rows is None:
            return Outcome(np.zeros(0, np.int64), ())
        point, columns, diff = rows
        every = (*columns, FixedColumn(point))
        order = (ColumnOrder(self.arity), *self.plan.order_by)
        by = sort_permutation(every, order, len(point), then_all=True)
        if bool((diff > 1).any()):
            by = np.repeat(by, diff[by])
        point = point[by]
        columns = tuple(c.take(by) for c in columns)
        starts = np.flatnonzero(np.concatenate([[True], point[1:] != point[:-1]]))
        offsets = np.append(starts, len(point)).astype(np.int64)
        errors = RowErrors()
        values = evaluate_window(columns, offsets, self.plan.order_by, self.plan.calls, errors=errors)
        result = (*columns, *values)
        if not errors:
            return Outcome(point, result)
        failed, encoded = errors.items()
        keep = np.ones(len(point), np.bool_)
        keep[failed] = False
        kept = np.flatnonzero(keep)
        return Outcome(point[kept], tuple(c.take(kept) for c in result), None, (point[failed], encoded))
