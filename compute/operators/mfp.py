"""MapFilterProject over a stream, and the closures that joins and reduces apply to what they make.

`RowStep` is the reusable part: it knows which columns its mfp reads, so that a join gathers only those.
"""

from __future__ import annotations

from collections.abc import Sequence

from compute.operators.base import Graph, Operator, Port, error_updates
from compute.plan.mfp_builder import columns_read, narrowed
from mzlite.expr.mfp import MapFilterProject
from mzlite.expr.mfp_eval import MfpPlan
from mzlite.repr.column import I64, U64, Column
from mzlite.repr.updates import Updates


class RowStep:
    """An mfp without temporal bounds, ready to run on chunks of columns.

    needed: the input columns to hand in, in this order.
    """

    def __init__(self, mfp: MapFilterProject) -> None:
        assert not mfp.lower_bounds and not mfp.upper_bounds, "temporal bounds need a TemporalFilter"
        self.needed = columns_read(mfp)
        self.arity = len(mfp.projection)
        self.projection_only: tuple[int, ...] | None = None
        if not mfp.predicates and all(i < mfp.input_arity for i in mfp.projection):
            position = {c: i for i, c in enumerate(self.needed)}
            self.projection_only = tuple(position[i] for i in mfp.projection)
            self.plan = None
        else:
            self.plan = MfpPlan(narrowed(mfp, self.needed))

    def run(self, columns: Sequence[Column], time: U64, diff: I64, oks: Port, errs: Port) -> None:
        """Apply to the needed columns of n rows and emit."""
        if self.plan is None:
            assert self.projection_only is not None
            oks.emit(Updates(tuple(columns[i] for i in self.projection_only), time, diff))
            return
        n = len(time)
        rows, out, errors = self.plan.apply(columns, n)
        if len(rows) == n:
            oks.emit(Updates(tuple(out), time, diff))
        elif len(rows):
            oks.emit(Updates(tuple(out), time[rows], diff[rows]))
        if errors is not None:
            errs.emit(error_updates(Updates((), time, diff), *errors))


class MfpOperator(Operator):
    """Stateless: each chunk goes through at once."""

    def __init__(self, graph: Graph, mfp: MapFilterProject) -> None:
        super().__init__(graph)
        self.step = RowStep(mfp)
        self.oks = Port(graph)
        self.errs = Port(graph)

    def intake(self, index: int, updates: Updates) -> None:
        columns = updates.columns
        self.step.run([columns[i] for i in self.step.needed], updates.time, updates.diff, self.oks, self.errs)
