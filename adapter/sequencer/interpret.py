"""Evaluates a MIR plan at one time, in this process, over columns.

Reads of the catalog alone need no replica: their inputs are builtin relations, which live here, and are small. The
interpreter is also an independent second engine, with which tests compare what replicas answer.

    interpret(mir, env, budget) -> Updates      env(id): the rows of a global collection; times are all 0

A collection is `Updates`; an operator is a function from collections to a collection. Errors of expressions are raised:
at one time, an error row and a failed query are the same thing. `Budget` bounds the work: a plan that exceeds it raises
`TooMuch`, and belongs on a replica. Joins go left to right; nothing here is tuned for large inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from adapter.sequencer.interpret_groups import reduce_rows, top_rows, window_rows
from mzlite.expr import relation as r
from mzlite.expr.eval import eval_scalar
from mzlite.expr.scalar import Ref, Scalar, remap, support
from mzlite.expr.table_functions import call_table_function
from mzlite.expr.typecheck import typ as type_of
from mzlite.repr.column import I64, BoolArray, Column, concat, hash_rows, rows_equal
from mzlite.repr.datum import column_from_literals
from mzlite.repr.errors import SqlError, decode_error
from mzlite.repr.ids import GlobalId
from mzlite.repr.updates import Updates, concat_updates, consolidate, empty_updates

Env = Callable[[GlobalId], Updates]


class TooMuch(Exception):
    """The plan is beyond what this process should do; not a user's mistake."""


class Budget:
    """rows: how many rows operators may produce together. cancelled: set from the event loop's thread to stop."""

    def __init__(self, rows: int = 2_000_000) -> None:
        self.left = rows
        self.cancelled = False

    def check(self, n: float) -> None:
        """Would n more rows be too many? Asked before they are made."""
        if n > self.left:
            raise TooMuch

    def spend(self, n: int) -> None:
        self.left -= n
        if self.cancelled:
            raise SqlError("57014", "canceling statement due to user request")
        if self.left < 0:
            raise TooMuch


def interpret(e: r.Mir, env: Env, budget: Budget) -> Updates:
    """The collection that e denotes, consolidated; every diff is positive for a well-formed query."""
    return consolidate(_Interpreter(env, budget).run(e))


def updates(columns: tuple[Column, ...], diff: I64) -> Updates:
    return Updates(columns, np.zeros(len(diff), np.uint64), diff)


def evaluate(e: Scalar, columns: Sequence[Column], n: int) -> Column:
    """e over n rows; the first row's error is raised."""
    result = eval_scalar(e, columns, n)
    if result.errors is not None:
        raise decode_error(result.errors[1][0])
    return result.column


def true_rows(column: Column) -> BoolArray:
    values: BoolArray = column.values.astype(np.bool_)  # type: ignore[attr-defined]
    return values if column.valid is None else values & column.valid


class _Interpreter:
    def __init__(self, env: Env, budget: Budget) -> None:
        self.env = env
        self.budget = budget
        self.locals: dict[int, Updates] = {}
        self.cache: dict[int, Updates] = {}

    def run(self, e: r.Mir) -> Updates:
        """Recursion is bounded by the planner's limit on a plan's depth."""
        out = self._node(e)
        self.budget.spend(len(out) + 1)
        return out

    def _node(self, e: r.Mir) -> Updates:
        match e:
            case r.Constant():
                return constant(e)
            case r.Get(id, _):
                return self.env(id) if isinstance(id, str) else self.locals[id]
            case r.Let(id, value, body):
                self.locals[id] = self.run(value)
                return self.run(body)
            case r.LetRec():
                return self._letrec(e)
            case r.Project(input, outputs):
                u = self.run(input)
                return u.with_columns(tuple(u.columns[i] for i in outputs))
            case r.Map(input, scalars):
                u = self.run(input)
                columns = list(u.columns)
                for s in scalars:
                    columns.append(evaluate(s, columns, len(u)))
                return u.with_columns(tuple(columns))
            case r.Filter(input, predicates):
                return self._filter(self.run(input), predicates)
            case r.FlatMap(input, func, exprs):
                u = self.run(input)
                args = [evaluate(x, u.columns, len(u)) for x in exprs]
                if func.func.startswith("generate_series"):
                    self.budget.check(series_rows(args))
                idx, columns_out, errors = call_table_function(func, args, len(u))
                if errors is not None:
                    raise decode_error(errors[1][0])
                self.budget.spend(len(idx))
                taken = u.take(idx)
                return taken.with_columns(taken.columns + tuple(columns_out))
            case r.Join(inputs, equivalences, _):
                return self._join([self.run(i) for i in inputs], equivalences)
            case r.Reduce():
                return reduce_rows(consolidate(self.run(e.input)), e, type_of(e.input).columns)
            case r.TopK():
                return top_rows(consolidate(self.run(e.input)), e)
            case r.Window():
                return window_rows(consolidate(self.run(e.input)), e, type_of(e.input).columns)
            case r.Negate(input):
                return self.run(input).negate()
            case r.Threshold(input):
                u = consolidate(self.run(input))
                return u.filter(u.diff > 0)
            case r.Union(inputs):
                joint = concat_updates([self.run(i) for i in inputs])
                # Rows that cancel must be gone before anything above is evaluated on them and fails.
                return consolidate(joint) if (joint.diff < 0).any() else joint
            case r.ArrangeBy(input, _):
                return self.run(input)

    def _filter(self, u: Updates, predicates: Sequence[Scalar]) -> Updates:
        keep = np.ones(len(u), np.bool_)
        failed: list[tuple[int, bytes]] = []
        for p in predicates:
            result = eval_scalar(p, u.columns, len(u))
            if result.errors is not None:
                rows, errors = result.errors
                failed += list(zip(rows.tolist(), errors))
                bad = np.zeros(len(u), np.bool_)
                bad[rows] = True
                keep &= true_rows(result.column) | bad
            else:
                keep &= true_rows(result.column)
        for row, error in failed:
            # An error counts unless another predicate drops its row.
            if keep[row]:
                raise decode_error(error)
        return u.filter(keep)

    def _join(self, inputs: list[Updates], equivalences: tuple[tuple[Scalar, ...], ...]) -> Updates:
        acc = inputs[0]
        arity = len(acc.columns)
        for right in inputs[1:]:
            width = len(right.columns)
            left_keys: list[Scalar] = []
            right_keys: list[Scalar] = []
            for group in equivalences:
                mine = [x for x in group if all(c < arity for c in support(x))]
                theirs = [x for x in group if (s := support(x)) and all(arity <= c < arity + width for c in s)]
                if mine and theirs:
                    left_keys.append(mine[0])
                    right_keys.append(remap(theirs[0], {c: c - arity for c in support(theirs[0])}))
            acc = self._join_two(acc, right, left_keys, right_keys)
            arity += width
        n = len(acc)
        keep = np.ones(n, np.bool_)
        for group in equivalences:
            first = evaluate(group[0], acc.columns, n)
            if first.valid is not None:
                keep &= first.valid
            for other in group[1:]:
                column = evaluate(other, acc.columns, n)
                keep &= first.equals(column)
                if column.valid is not None:
                    keep &= column.valid
        return acc if keep.all() else acc.filter(keep)

    def _join_two(self, a: Updates, b: Updates, left: list[Scalar], right: list[Scalar]) -> Updates:
        na, nb = len(a), len(b)
        if not left:
            self.budget.spend(na * nb)
            left_idx = np.repeat(np.arange(na, dtype=np.int64), nb)
            right_idx = np.tile(np.arange(nb, dtype=np.int64), na)
        else:
            a_cols = [evaluate(k, a.columns, na) for k in left]
            b_cols = [evaluate(k, b.columns, nb) for k in right]
            left_idx, right_idx = match_rows(a_cols, b_cols, na, nb, self.budget)
        x, y = a.take(left_idx), b.take(right_idx)
        return updates(x.columns + y.columns, x.diff * y.diff)

    def _letrec(self, e: r.LetRec) -> Updates:
        saved = {i: self.locals.get(i) for i in e.ids}
        for i, t in zip(e.ids, e.typs):
            self.locals[i] = empty_updates([c.scalar.layout for c in t.columns])
        iteration = 0
        while True:
            changed = False
            for i, value in zip(e.ids, e.values):
                new = consolidate(self.run(value))
                difference = consolidate(concat_updates([new, self.locals[i].negate()]))
                changed = changed or len(difference) > 0
                self.locals[i] = new
            iteration += 1
            if not changed:
                break
            if e.limit is not None and iteration >= e.limit:
                if not e.return_at_limit:
                    raise SqlError(
                        "XX000",
                        f"Recursive query exceeded the recursion limit {e.limit}. (Use RETURN AT RECURSION LIMIT to not error, but return the current state as the final result when reaching the limit.)",
                    )
                break
        out = self.run(e.body)
        for i, old in saved.items():
            if old is None:
                del self.locals[i]
            else:
                self.locals[i] = old
        return out


def series_rows(args: Sequence[Column]) -> float:
    """About how many rows generate_series(start, stop [, step]) makes of all its input rows."""
    values = [getattr(c, "values", None) for c in args]
    start, stop = values[0], values[1]
    if start is None or stop is None or not len(start):
        return 0.0
    span = np.abs(stop.astype(np.float64) - start.astype(np.float64))
    step: object = 1.0
    if len(values) > 2 and values[2] is not None:
        if values[2].dtype.names is None:
            step = np.maximum(np.abs(values[2].astype(np.float64)), 1.0)
        else:  # an interval over microseconds
            days = values[2]["months"] * 30.0 + values[2]["days"]
            step = np.maximum(np.abs(days * 86_400e6 + values[2]["us"]), 1.0)
    return float((span / step + 1).sum())


def match_rows(a: Sequence[Column], b: Sequence[Column], na: int, nb: int, budget: Budget) -> tuple[I64, I64]:
    """Pairs (i, j) with a[i] = b[j] in every column and none NULL, as two index arrays. cost: sort of b, search of a."""
    a_hash, b_hash = hash_rows(a, na), hash_rows(b, nb)
    order = np.argsort(b_hash, kind="stable")
    sorted_hash = b_hash[order]
    start = np.searchsorted(sorted_hash, a_hash, "left")
    stop = np.searchsorted(sorted_hash, a_hash, "right")
    counts = stop - start
    total = int(counts.sum())
    budget.spend(total)
    left = np.repeat(np.arange(na, dtype=np.int64), counts)
    offsets = np.arange(total, dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
    right = order[np.repeat(start, counts) + offsets].astype(np.int64)
    x = [c.take(left) for c in a]
    y = [c.take(right) for c in b]
    same = rows_equal(x, y, total)
    for c in x:
        if c.valid is not None:
            same = same & c.valid
    if same.all():
        return left, right
    return left[same], right[same]


def constant(e: r.Constant) -> Updates:
    if e.error is not None:
        raise decode_error(e.error)
    columns = tuple(column_from_literals(c.scalar, [row[i] for row, _ in e.rows]) for i, c in enumerate(e.typ.columns))
    return updates(columns, np.array([d for _, d in e.rows], np.int64))


def expand_diffs(u: Updates) -> tuple[tuple[Column, ...], int]:
    """Rows repeated by their multiplicity. A negative multiplicity is a bug of whoever made the collection."""
    diff = u.diff
    if (diff == 1).all():
        return u.columns, len(u)
    assert (diff >= 0).all(), "negative multiplicity in a result"
    idx = np.repeat(np.arange(len(u), dtype=np.int64), diff)
    return tuple(c.take(idx) for c in u.columns), len(idx)


__all__ = ["Budget", "Env", "Ref", "TooMuch", "concat", "expand_diffs", "interpret", "match_rows"]
