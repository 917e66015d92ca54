"""Running a MapFilterProject over columns.

    plan = MfpPlan(mfp)                      compiled once
    rows, columns, errors = plan.apply(columns, n)
    rows, columns, lower, upper, errors = plan.apply_temporal(columns, n)

The steps run in order: predicates as soon as the columns they need exist, each narrowing the rows that later steps
see, then the next expression. A row on which a step fails leaves the rows and enters the errors; predicates that run at
the same point are one conjunction, so a false one settles a row whatever the others say.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mzlite.expr.call import RowErrors
from mzlite.expr.eval import Run, compile_scalar, expand
from mzlite.expr.mfp import MapFilterProject
from mzlite.expr.scalar import Call, Scalar, support, walk
from mzlite.repr.column import I64, U64, BoolArray, Column
from mzlite.repr.fixed import FixedColumn
from mzlite.repr.types import BOOL

Errors = tuple[I64, list[bytes]] | None

_NEVER = np.uint64(2**64 - 1)
_ONE_ROW: I64 = np.zeros(1, np.int64)
_ONE_ROW.flags.writeable = False


class _Step:
    """One predicate conjunction, or one expression; `needed`: columns that later steps or the projection read."""

    __slots__ = ("is_filter", "needed", "run")

    def __init__(self, run: Run, *, is_filter: bool, needed: frozenset[int]) -> None:
        self.run = run
        self.is_filter = is_filter
        self.needed = needed


class MfpPlan:
    """A compiled MapFilterProject. Stateless: may run on any batch, any number of times."""

    __slots__ = ("_identity", "_lower", "_steps", "_upper", "mfp")

    def __init__(self, mfp: MapFilterProject) -> None:
        self.mfp = mfp
        self._identity = mfp.is_identity()
        self._steps = _compile(mfp)
        self._lower = [compile_scalar(b) for b in mfp.lower_bounds]
        self._upper = [compile_scalar(b) for b in mfp.upper_bounds]

    @property
    def is_temporal(self) -> bool:
        return bool(self._lower or self._upper)

    def apply(self, columns: Sequence[Column], n: int) -> tuple[I64, list[Column], Errors]:
        """Surviving rows (int64[m], ascending indexes into the input), their output columns, and (failed row, error)s.

        errors: each failed input row once, ascending. Temporal bounds are ignored: see apply_temporal.
        """
        if self._identity:
            return _all_rows(n), list(columns), None
        rows, cols, errors = self._run(columns, n)
        return rows, [cols[c] for c in self.mfp.projection], errors

    def apply_temporal(self, columns: Sequence[Column], n: int) -> tuple[I64, list[Column], U64, U64, Errors]:
        """As apply, with each surviving row's interval of time: it is in the output at t for lower <= t < upper.

        lower: uint64[m], 0 when unbounded; upper: uint64[m], 2^64 - 1 when unbounded. Rows whose bound is NULL, or whose
        interval is empty, do not survive.
        """
        rows, cols, errors = self._run(columns, n)
        m = len(rows)
        failed = RowErrors()
        lower = np.zeros(m, np.uint64)
        upper = np.full(m, _NEVER, np.uint64)
        keep = np.ones(m, np.bool_)
        for runs, merge, into in ((self._lower, np.maximum, lower), (self._upper, np.minimum, upper)):
            for run in runs:
                bound = expand(run(cols, m, failed), m)
                assert isinstance(bound, FixedColumn), bound
                merge(into, bound.values, out=into)
                if bound.valid is not None:
                    keep &= bound.valid
        keep &= (lower < upper) | (upper == _NEVER)
        out = [cols[c] for c in self.mfp.projection]
        if failed:
            places, encoded = failed.items()
            keep[places] = False
            errors = _merge(errors, (rows[places], encoded))
        if not keep.all():
            rows, lower, upper = rows[keep], lower[keep], upper[keep]
            out = [c.filter(keep) for c in out]
        return rows, out, lower, upper, errors

    def _run(self, columns: Sequence[Column], n: int) -> tuple[I64, list[Column], Errors]:
        cols: list[Column] = list(columns)
        rows: I64 | None = None  # None: all n
        m = n
        errors: Errors = None
        own = RowErrors()
        for step in self._steps:
            column = step.run(cols, m, own)
            keep: BoolArray | None = None
            if step.is_filter:
                assert isinstance(column, FixedColumn), column
                keep = column.values if column.valid is None else column.values & column.valid
                if len(keep) != m:
                    keep = np.broadcast_to(keep, (m,)) if m else keep[:0]
            else:
                cols.append(expand(column, m))
            if own:
                places, encoded = own.items()
                errors = _merge(errors, (places if rows is None else rows[places], encoded))
                keep = np.ones(m, np.bool_) if keep is None else keep.copy()
                keep[places] = False
                own = RowErrors()
            if keep is None or keep.all():
                continue
            survivors = np.flatnonzero(keep)
            rows = survivors if rows is None else rows[survivors]
            m = len(survivors)
            for c in range(len(cols)):
                if c in step.needed:
                    cols[c] = cols[c].take(survivors)
        return _all_rows(n) if rows is None else rows, cols, errors


def _all_rows(n: int) -> I64:
    return _ONE_ROW if n == 1 else np.arange(n, dtype=np.int64)


def _merge(a: Errors, b: tuple[I64, list[bytes]]) -> tuple[I64, list[bytes]]:
    """Two disjoint sets of failed rows as one, ascending."""
    if a is None:
        return b
    rows = np.concatenate([a[0], b[0]])
    encoded = a[1] + b[1]
    order = np.argsort(rows, kind="stable")
    return rows[order], [encoded[i] for i in order.tolist()]


def _compile(mfp: MapFilterProject) -> list[_Step]:
    plan: list[tuple[Scalar, bool]] = []
    # Among predicates that can run at the same point, small ones first: what they settle, large ones need not look at.
    pending = sorted(
        ((max(p, mfp.input_arity), sum(1 for _ in walk(e)), i, e) for i, (p, e) in enumerate(mfp.predicates))
    )
    at = 0

    def filters(available: int) -> None:
        nonlocal at
        ready: list[Scalar] = []
        while at < len(pending) and pending[at][0] <= available:
            ready.append(pending[at][3])
            at += 1
        if ready:
            plan.append((ready[0] if len(ready) == 1 else Call("and", tuple(ready), BOOL), True))

    filters(mfp.input_arity)
    for i, expression in enumerate(mfp.expressions):
        plan.append((expression, False))
        filters(mfp.input_arity + i + 1)
    assert at == len(pending), "a predicate needs a column that does not exist"
    needed = frozenset(mfp.projection).union(*map(support, (*mfp.lower_bounds, *mfp.upper_bounds)))
    steps: list[_Step] = []
    for e, is_filter in reversed(plan):
        steps.append(_Step(compile_scalar(e), is_filter=is_filter, needed=needed))
        needed |= support(e)
    return steps[::-1]
