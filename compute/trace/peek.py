"""Peek: answer a read off two chains of batches, in slices.

    errs first      a positive error at the time is the answer
    then oks        looked up by literal keys, or walked; times accumulated, the mfp applied, consolidated
    truncation      with LIMIT, no more than limit + offset rows (by the finishing's order) are kept along the way

Yields None between slices, then once the rows: Updates in the mfp's projection, diff > 0, time 0. Raises SqlError where
the answer is an error. Rows may still have to be ordered and cut by whoever merges the workers' answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from compute.trace.arrangement import Chains
from compute.trace.batch import HIGH_MASK, LOW_MASK, Batch
from compute.trace.layout import KeyLayout
from compute.trace.literals import key_columns
from compute.trace.sorting import key_codes
from compute.trace.view import View, verified
from mzlite.expr.mfp import MapFilterProject
from mzlite.expr.mfp_eval import MfpPlan
from mzlite.expr.relation import Datums, RowSetFinishing
from mzlite.repr.column import I64, Column, empty, sort_permutation
from mzlite.repr.errors import SqlError, decode_error
from mzlite.repr.timestamp import Timestamp, step_forward
from mzlite.repr.updates import Updates, concat_updates, consolidate
from mzlite.repr.var import VarColumn

SLICE_ROWS = 8_192  # about 2 ms of a text predicate: a look-up that comes meanwhile waits for one slice

_plans: dict[MapFilterProject, MfpPlan] = {}


def plan_of(mfp: MapFilterProject) -> MfpPlan:
    """Compiled once: point reads of one statement share it."""
    plan = _plans.get(mfp)
    if plan is None:
        if len(_plans) > 1_000:
            _plans.clear()
        plan = _plans[mfp] = MfpPlan(mfp)
    return plan


def peek_arrangement(
    chains: Chains,
    layout: KeyLayout,
    timestamp: Timestamp,
    mfp: MapFilterProject,
    finishing: RowSetFinishing,
    literal_constraints: tuple[Datums, ...] | None = None,
) -> Iterator[Updates | None]:
    """See the module. chains: as they stood when the walk began; complete beyond timestamp, compacted to before it."""
    oks, errs = chains
    before = step_forward(timestamp)
    if errs:
        check_errors(View(errs, before))
    sink = _Rows(plan_of(mfp), finishing, timestamp)
    view = View(oks, before)
    if literal_constraints is not None:
        parts = _look_up(view, layout, literal_constraints)
        if parts:
            sink.push_group(concat_updates(parts))
    else:
        many = len(view.chain) > 1
        for rows in _walk(view, layout) if many else _walk_one(view, layout):
            sink.push_group(rows)
            yield None
    yield sink.finish([c.layout for c in oks[0].columns[: layout.arity]] if oks else None)


def check_errors(view: View) -> None:
    """Raise the least error that is present at the view's time."""
    parts = [Updates(b.columns, b.time, b.diff) for b in view.scan(SLICE_ROWS)]
    if not parts:
        return
    joint = concat_updates(parts)
    total = consolidate(joint.with_time(np.zeros(len(joint), np.uint64)))
    positive = np.flatnonzero(total.diff > 0)
    if len(positive):
        column = total.columns[0]
        assert isinstance(column, VarColumn), column
        raise evaluation_error(min(column.value(int(i)) for i in positive))
    if len(total):
        raise SqlError("XX000", "internal error: an error with negative multiplicity")


def evaluation_error(encoded: bytes) -> SqlError:
    """An error row as its reader sees it: a failure of the collection, not of the reading."""
    error = decode_error(encoded)
    return SqlError(error.sqlstate, f"Evaluation error: {error.message}", detail=error.detail, hint=error.hint)


def _look_up(view: View, layout: KeyLayout, rows: tuple[Datums, ...]) -> list[Updates]:
    if not view:
        return []
    first = view.chain[0]
    unique = rows if len(rows) == 1 else tuple(dict.fromkeys(rows))
    keys = key_columns(unique, [first.columns[i].layout for i in layout.positions])
    codes = key_codes(keys, len(unique))
    parts: list[Updates] = []
    if len(unique) == 1:
        for batch in view.chain:
            start, stop = range_of(batch, codes[0])
            if stop == start + 1:
                # The common case: one row, seen without a copy.
                part = _rows(batch, start, stop, layout, view)
                stored = batch.columns
                same = all(stored[p].slice(start, stop).equals(k)[0] for p, k in zip(layout.positions, keys))
                if same and len(part):
                    parts.append(part)
            elif stop > start:
                match = verified(
                    batch, layout.positions, np.zeros(stop - start, np.int64), np.arange(start, stop), keys
                )
                if match is not None:
                    columns = tuple(c.take(match.row) for c in batch.columns[: layout.arity])
                    found = Updates(columns, batch.time[match.row], batch.diff[match.row])
                    parts.append(_before(found, batch, view))
        return [p for p in parts if len(p)]
    for batch, _, row in view.lookup(layout.positions, codes, keys):
        if len(row):
            columns = tuple(c.take(row) for c in batch.columns[: layout.arity])
            parts.append(Updates(columns, batch.time[row], batch.diff[row]))
    return parts


def range_of(batch: Batch, code: np.uint64) -> tuple[int, int]:
    """The rows under one key code; one binary search unless there are several."""
    codes = batch.code
    start = int(codes.searchsorted(code))
    top = code | LOW_MASK
    if start == len(codes) or codes[start] > top:
        return start, start
    if start + 1 == len(codes) or codes[start + 1] > top:
        return start, start + 1
    return start, int(codes.searchsorted(top, "right"))


def _walk_one(view: View, layout: KeyLayout) -> Iterator[Updates]:
    """One batch: slices cut between keys' codes, so that a row's history is never split."""
    for batch in view.chain:
        n = len(batch)
        start = 0
        while start < n:
            stop = min(start + SLICE_ROWS, n)
            if stop < n:
                stop = int(batch.code.searchsorted(batch.code[stop], "left"))
                if stop <= start:
                    stop = int(batch.code.searchsorted(batch.code[start], "right"))
            yield _rows(batch, start, stop, layout, view)
            start = stop


def _walk(view: View, layout: KeyLayout) -> Iterator[Updates]:
    """Several batches: the same code range of each at a time, so that equal rows meet in one slice."""
    chain = view.chain
    at = [0] * len(chain)
    while any(a < len(b) for a, b in zip(at, chain)):
        share = max(1, SLICE_ROWS // len(chain))
        bound: int | None = None
        for a, batch in zip(at, chain):
            if a + share < len(batch):
                reach = int(batch.code[a + share] & HIGH_MASK)
                bound = reach if bound is None else min(bound, reach)
        stops = [
            len(b) if bound is None else max(a, int(b.code.searchsorted(np.uint64(bound), "left")))
            for a, b in zip(at, chain)
        ]
        if stops == at:
            assert bound is not None
            top = np.uint64(bound | 0xFFFFFFFF)
            stops = [int(b.code.searchsorted(top, "right")) for b in chain]
        parts = [_rows(b, a, s, layout, view) for b, a, s in zip(chain, at, stops) if s > a]
        at = stops
        if parts:
            yield concat_updates(parts)


def _rows(batch: Batch, start: int, stop: int, layout: KeyLayout, view: View) -> Updates:
    columns = tuple(c.slice(start, stop) for c in batch.columns[: layout.arity])
    return _before(Updates(columns, batch.time[start:stop], batch.diff[start:stop]), batch, view)


def _before(rows: Updates, batch: Batch, view: View) -> Updates:
    """Those that the view's bound lets through."""
    if view.before is not None and batch.time_max >= view.before:
        rows = rows.filter(rows.time < np.uint64(view.before))
    return rows


class _Rows:
    """The answer so far. With a limit it is thinned whenever it holds more than twice what can matter."""

    def __init__(self, plan: MfpPlan, finishing: RowSetFinishing, timestamp: Timestamp) -> None:
        self.plan = plan
        self.timestamp = timestamp
        self.order_by = finishing.order_by
        self.keep: int | None = None if finishing.limit is None else finishing.limit + finishing.offset
        self.parts: list[Updates] = []
        self.count = 0

    def push_group(self, rows: Updates) -> None:
        """All updates of some rows: their net diffs, through the mfp."""
        n = len(rows)
        if n == 0:
            return
        if n > 1 or rows.diff[0] <= 0:
            rows = consolidate(rows.with_time(np.zeros(n, np.uint64)))
            if not len(rows):
                return
            if bool((rows.diff < 0).any()):
                raise SqlError("XX000", "internal error: a row with negative multiplicity")
        plan = self.plan
        if plan.is_temporal:
            kept, columns, lower, upper, errors = plan.apply_temporal(rows.columns, len(rows))
            now = np.uint64(self.timestamp)
            live = np.flatnonzero((lower <= now) & (now < upper))
            kept, columns = kept[live], [c.take(live) for c in columns]
        else:
            kept, columns, errors = plan.apply(rows.columns, len(rows))
        if errors is not None:
            raise decode_error(errors[1][0])
        if not len(kept):
            return
        diff = rows.diff if len(kept) == len(rows) else rows.diff[kept]
        self.parts.append(Updates(tuple(columns), np.zeros(len(kept), np.uint64), diff))
        self.count += len(kept)
        if self.keep is not None and self.count > max(2 * self.keep, SLICE_ROWS):
            self._thin()

    def _thin(self) -> None:
        assert self.keep is not None
        joint = concat_updates(self.parts)
        by: I64 = sort_permutation(joint.columns, self.order_by, len(joint), then_all=True)
        diff = joint.diff[by]
        enough = int(np.searchsorted(np.cumsum(diff), self.keep)) + 1
        if enough < len(by):
            by = by[:enough]
        self.parts = [joint.take(by)]
        self.count = len(by)

    def finish(self, layouts: Sequence[object] | None) -> Updates:
        if not self.parts:
            return self._empty(layouts)
        if self.keep is not None and self.count > self.keep:
            self._thin()
        return concat_updates(self.parts)

    def _empty(self, layouts: Sequence[object] | None) -> Updates:
        """No rows; with the right column layouts when they are known."""
        none = np.zeros(0, np.uint64)
        if layouts is None:
            return Updates((), none, np.zeros(0, np.int64))
        inputs: list[Column] = [empty(layout) for layout in layouts]  # type: ignore[arg-type]
        _, columns, _ = self.plan.apply(inputs, 0)
        return Updates(tuple(columns), none, np.zeros(0, np.int64))
