"""FlatMap: each row joined with the rows that a table function makes of it. Stateless, but one chunk may become many."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from compute.operators.base import CHUNK_ROWS, Graph, Operator, Port, error_updates, pieces
from compute.operators.mfp import RowStep
from mzlite.expr.mfp import MapFilterProject
from mzlite.expr.mfp_eval import MfpPlan
from mzlite.expr.scalar import Scalar, TableFunc
from mzlite.expr.table_functions import call_table_function
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
        kept, columns, errors = self.args.apply(updates.columns, len(updates))
        if errors is not None:
            self.errs.emit(error_updates(updates, *errors))
        rows = updates if len(kept) == len(updates) else updates.take(kept)
        if not len(rows):
            return
        owner, made, failed = call_table_function(self.func, columns[self.arity :], len(rows))
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
            yield
