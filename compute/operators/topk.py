"""TopK: per group, rows offset .. offset + limit in an order, ties by the whole row.

An OrderedTrace finds the first offset + limit rows of a touched group in a few reads, so a row that leaves the top
pulls the next one in at the cost of a lookup.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from compute.operators.base import Graph
from compute.operators.ordered import OrderedTrace
from compute.operators.points import GroupOperator, Outcome, Points
from mzlite.expr.eval import eval_scalar
from mzlite.expr.scalar import ColumnOrder, Literal, Scalar
from mzlite.repr.column import I64, Column
from mzlite.repr.errors import SqlError, encode_error
from mzlite.repr.fixed import FixedColumn
from mzlite.repr.updates import Updates


class TopK(GroupOperator):
    """group_key, order_by: columns of the input. limit: None, or a scalar over the group key's columns."""

    def __init__(
        self,
        graph: Graph,
        arity: int,
        group_key: Sequence[int],
        order_by: Sequence[ColumnOrder],
        limit: Scalar | None,
        offset: int,
    ) -> None:
        super().__init__(graph, len(group_key))
        self.group_key = tuple(group_key)
        self.arity = arity
        self.limit = limit
        self.fixed_limit: int | None = None
        if isinstance(limit, Literal) and limit.error is None:
            column = eval_scalar(limit, (), 1).column
            assert isinstance(column, FixedColumn), column
            if column.valid is not None and not column.valid[0]:
                self.limit = None
            else:
                self.fixed_limit = int(column.values[0])
        self.offset = offset
        self.trace = OrderedTrace(graph, group_key, order_by, arity)

    def intake(self, index: int, updates: Updates) -> None:
        self.trace.push(updates.columns, updates.time, updates.diff)
        self.touch([updates.columns[i] for i in self.group_key], updates.time)
        self.dirty = True

    def seal_round(self) -> Iterator[None]:
        return self.trace.seal_round()

    def had_state(self) -> bool:
        return bool(self.trace.old)

    def evaluate(self, points: Points, new: bool) -> Outcome:
        need: int | None = None
        limits: I64 | None = None
        failed = None
        if self.fixed_limit is not None:
            need = self.fixed_limit + self.offset
        elif self.limit is not None:
            limits, failed = self._limits(points)
            known = limits[limits >= 0]
            if len(known) == len(limits):
                need = int(known.max(initial=0)) + self.offset
        point, columns, diff = self.trace.first(points, new, need)
        if not len(point):
            return Outcome(point, columns, None, failed)
        starts = np.flatnonzero(np.concatenate([[True], point[1:] != point[:-1]]))
        before = np.cumsum(diff) - diff
        before -= np.repeat(before[starts], np.diff(np.append(starts, len(point))))
        low = np.maximum(before, self.offset)
        high = before + diff
        if self.fixed_limit is not None:
            high = np.minimum(high, self.offset + self.fixed_limit)
        elif limits is not None:
            limit = limits[point]
            high = np.where(limit < 0, high, np.minimum(high, self.offset + limit))
        count = high - low
        if failed is not None:
            count[np.isin(point, failed[0])] = 0
        kept = np.flatnonzero(count > 0)
        return Outcome(point[kept], tuple(c.take(kept) for c in columns), count[kept], failed)

    def _limits(self, points: Points) -> tuple[I64, tuple[I64, list[bytes]] | None]:
        """The limit at each point (-1: none), and points where it fails."""
        assert self.limit is not None
        row: list[Column] = [points.keys[0]] * self.arity if points.keys else []
        for i, column in zip(self.group_key, points.keys):
            row[i] = column
        result = eval_scalar(self.limit, row, len(points))
        column = result.column
        assert isinstance(column, FixedColumn), column
        values = column.values.astype(np.int64)
        negative = values < 0
        if column.valid is not None:
            negative &= column.valid
            values = np.where(column.valid, values, -1)
        if result.errors is None and not negative.any():
            return values, None
        found = dict(zip(result.errors[0].tolist(), result.errors[1])) if result.errors is not None else {}
        error = encode_error(SqlError("2201W", "LIMIT must not be negative"))
        for p in np.flatnonzero(negative).tolist():
            found.setdefault(p, error)
        at = sorted(found)
        return values, (np.array(at, np.int64), [found[p] for p in at])
