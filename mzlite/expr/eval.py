"""Evaluating scalar expressions over columns.

An expression is compiled once into nested closures and run on batches:

    run(columns, n, errors) -> Column     of n rows, or of 1 row when it is the same for all

Errors belong to rows (`RowErrors`); a failed row is NULL in the column and evaluation goes on. Where SQL is lazy, so
are we, row by row:

    If           each branch sees only its own rows
    and, or      every operand is evaluated; an error counts only on rows that no false (or true) operand decides
    coalesce     operand i sees only the rows that are NULL in the operands before it

A subexpression without columns is evaluated once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mzlite.expr.call import CallSite, RowErrors
from mzlite.expr.functions import FUNCTIONS
from mzlite.expr.scalar import Call, If, Literal, Ref, Scalar, Unmaterializable, support, walk
from mzlite.expr.scalar import rewrite as rewrite_scalar
from mzlite.expr.typing import can_error
from mzlite.repr.column import I64, BoolArray, Column, concat, nulls, repeat
from mzlite.repr.datum import column_from_literals, column_to_datums, decode_datum, encode_datum
from mzlite.repr.errors import SqlError, decode_error
from mzlite.repr.fixed import FixedColumn
from mzlite.repr.types import ScalarType

Run = Callable[[Sequence[Column], int, RowErrors], Column]

_LAZY = {"and", "or", "coalesce"}


class EvalResult(NamedTuple):
    """column: n rows. errors: (failed rows ascending, encoded errors), or None."""

    column: Column
    errors: tuple[I64, list[bytes]] | None


def eval_scalar(e: Scalar, columns: Sequence[Column], n: int) -> EvalResult:
    """Evaluate e over n rows."""
    errors = RowErrors()
    column = expand(compiled(e)(columns, n, errors), n)
    return EvalResult(column, errors.items() if errors else None)


def expand(column: Column, n: int) -> Column:
    """column with n rows (it may have one)."""
    return column if len(column) == n else repeat(column, n)


@functools.lru_cache(4096)
def compiled(e: Scalar) -> Run:
    """The closure of e; cached by structure."""
    return compile_scalar(e)


def compile_scalar(e: Scalar) -> Run:
    match e:
        case Ref(column):
            return lambda columns, n, errors: columns[column]
        case Literal():
            return _literal(e)
        case Call():
            run = _call(e)
        case If():
            run = _if(e)
        case Unmaterializable(func):
            # An error of the plan that holds it: a dataflow must not take its worker down, again and again.
            raise SqlError("XX000", f"internal error: {func} reached evaluation")
    return _once(run) if not _reads_columns(e) else run


def _reads_columns(e: Scalar) -> bool:
    """Whether e depends on the row: columns, or a function that must run for each of them."""
    return any(isinstance(n, Ref) for n in walk(e))


def _literal(e: Literal) -> Run:
    if e.error is not None:
        encoded = e.error
        null = nulls(e.typ.layout, 1)

        def fail(columns: Sequence[Column], n: int, errors: RowErrors) -> Column:
            for row in range(n):
                errors.add_encoded(row, encoded)
            return null

        return fail
    column = column_from_literals(e.typ, [e.value])
    return lambda columns, n, errors: column


def _once(run: Run) -> Run:
    """A constant expression: evaluated at the first use."""
    done: list[tuple[Column, bytes | None]] = []

    def constant(columns: Sequence[Column], n: int, errors: RowErrors) -> Column:
        if not done:
            own = RowErrors()
            column = run((), 1, own)
            done.append((column, own.first.get(0)))
        column, error = done[0]
        if error is not None:
            for row in range(n):
                errors.add_encoded(row, error)
        return column

    return constant


def _call(e: Call) -> Run:
    if e.func in _LAZY:
        runs = [compile_scalar(a) for a in e.args]
        if e.func == "coalesce":
            return _coalesce(e, runs)
        operands = [_Operand(run, can_error(a), support(a)) for run, a in zip(runs, e.args)]
        return _connective(operands, decisive=e.func == "or")
    entry = FUNCTIONS[e.func]
    kernel = entry.kernel
    assert kernel is not None, f"{e.func} has no kernel"
    params = entry.param_types(len(e.args)) or entry.params  # a cast's params may also hold its target
    site = CallSite(e.func, params, e.typ)
    runs = [compile_scalar(a) for a in e.args]
    if entry.strict and any(isinstance(a, Literal) and a.value is None and a.error is None for a in e.args):
        null = nulls(e.typ.layout, 1)
        return lambda columns, n, errors: null
    if len(runs) == 1:
        (first,) = runs
        return lambda columns, n, errors: kernel(site, (first(columns, n, errors),), n, errors)
    if len(runs) == 2:
        left, right = runs
        return lambda columns, n, errors: kernel(site, (left(columns, n, errors), right(columns, n, errors)), n, errors)
    return lambda columns, n, errors: kernel(site, [run(columns, n, errors) for run in runs], n, errors)


def _truth(column: Column) -> tuple[BoolArray, BoolArray | None]:
    assert isinstance(column, FixedColumn), column
    return column.values, column.valid


class _Operand(NamedTuple):
    """Of AND and OR. fails: can raise errors. reads: columns."""

    run: Run
    fails: bool
    reads: frozenset[int]


_NARROW_ROWS = 4096
"""Batches of at least this many rows go on with the undecided rows alone, once those are a quarter or less."""


def _connective(operands: Sequence[_Operand], *, decisive: bool) -> Run:
    """AND (decisive False) or OR (decisive True): a decisive operand settles a row whatever the others are."""
    suffixes: list[Run] = []  # by first operand: what is left from there on
    reads = [sorted(frozenset().union(*(o.reads for o in operands[k + 1 :]))) for k in range(len(operands))]
    for first in range(len(operands)):
        suffixes.append(_suffix(operands, first, suffixes, reads, decisive))
    return suffixes[0]


def _suffix(
    operands: Sequence[_Operand], first: int, suffixes: list[Run], reads: list[list[int]], decisive: bool
) -> Run:
    """The connective over operands[first:]."""

    def narrow(
        k: int, settled: BoolArray, valid: BoolArray | None, columns: Sequence[Column], errors: RowErrors
    ) -> Column:
        """The rows that operands 0..k left open, by the operands after k."""
        n = len(settled)
        idx = np.flatnonzero(~settled)
        own = RowErrors()
        values, known = _truth(expand(suffixes[k + 1](_rows(columns, reads[k], idx), len(idx), own), len(idx)))
        errors.add_all(own, idx)
        out = np.full(n, decisive)
        out[idx] = values
        if valid is None and known is None:
            return FixedColumn(out)
        open_valid = np.ones(len(idx), np.bool_) if known is None else known.copy()
        if valid is not None:
            # NULL so far, and not settled since: NULL.
            open_valid &= np.broadcast_to(valid, (n,))[idx] | (values == decisive)
        all_valid = np.ones(n, np.bool_)
        all_valid[idx] = open_valid
        return FixedColumn(out & all_valid, all_valid)

    def run(columns: Sequence[Column], n: int, errors: RowErrors) -> Column:
        own: RowErrors | None = None
        settled: BoolArray | None = None
        all_valid: BoolArray | None = None
        for k in range(first, len(operands)):
            operand = operands[k]
            if operand.fails:
                each = RowErrors()
                values, valid = _truth(operand.run(columns, n, each))
                if each:
                    own = each if own is None else _graver(own, each)
            else:
                values, valid = _truth(operand.run(columns, n, errors))
            settles = values if decisive else ~values
            if valid is not None:
                settles = settles & valid
                all_valid = valid if all_valid is None else all_valid & valid
            settled = settles if settled is None else settled | settles
            if len(settled) == n and settled.all():
                return FixedColumn(settled if decisive else ~settled)
            wide = n >= _NARROW_ROWS and k + 1 < len(operands) and own is None and len(settled) == n
            if wide and 4 * (n - int(np.count_nonzero(settled))) <= n:
                return narrow(k, settled, all_valid, columns, errors)
        assert settled is not None
        if own:
            for row, error in own.first.items():
                if not settled[row if len(settled) > 1 else 0]:
                    errors.add_encoded(row, error)
        values = settled if decisive else ~settled
        if all_valid is None:
            return FixedColumn(values)
        valid = settled | all_valid
        # An undecided row with a NULL operand is NULL; its value slot is canonically false.
        return FixedColumn(values & valid, np.broadcast_to(valid, values.shape))

    return run


def _graver(a: RowErrors, b: RowErrors) -> RowErrors:
    """Errors of both; where both fail, whichever is not a division by zero, so that the order of operands is moot."""
    for row, error in b.first.items():
        known = a.first.get(row)
        if known is None or (decode_error(known).sqlstate == "22012" and decode_error(error).sqlstate != "22012"):
            a.first[row] = error
    return a


def _rows(columns: Sequence[Column], used: list[int], idx: I64) -> list[Column]:
    """The columns restricted to rows idx; unused ones are passed through unread."""
    sub = list(columns)
    for i in used:
        sub[i] = columns[i].take(idx)
    return sub


def _coalesce(e: Call, runs: list[Run]) -> Run:
    used = [sorted(support(a)) for a in e.args]

    def run(columns: Sequence[Column], n: int, errors: RowErrors) -> Column:
        column = runs[0](columns, n, errors)
        for i in range(1, len(runs)):
            if column.valid is None:
                return column
            if len(column) != n:
                column = expand(column, n)
            missing = column.is_null()
            if errors:
                failed = errors.rows()
                missing[failed[failed < n]] = False
            if not missing.any():
                return column
            if missing.all():
                column = runs[i](columns, n, errors)
                continue
            idx = np.flatnonzero(missing)
            own = RowErrors()
            more = expand(runs[i](_rows(columns, used[i], idx), len(idx), own), len(idx))
            errors.add_all(own, idx)
            place = np.arange(n)
            place[idx] = n + np.arange(len(idx))
            column = concat([column, more]).take(place)
        return column

    return run


def _if(e: If) -> Run:
    cond, then, els = (compile_scalar(x) for x in (e.cond, e.then, e.els))
    then_used, els_used = sorted(support(e.then)), sorted(support(e.els))

    def run(columns: Sequence[Column], n: int, errors: RowErrors) -> Column:
        values, valid = _truth(cond(columns, n, errors))
        mask = values if valid is None else values & valid
        if len(mask) == 1:
            return (then if mask[0] else els)(columns, n, errors)
        yes = np.flatnonzero(mask)
        if len(yes) == n:
            return then(columns, n, errors)
        if len(yes) == 0:
            return els(columns, n, errors)
        no = np.flatnonzero(~mask)
        own = RowErrors()
        first = expand(then(_rows(columns, then_used, yes), len(yes), own), len(yes))
        errors.add_all(own, yes)
        own = RowErrors()
        second = expand(els(_rows(columns, els_used, no), len(no), own), len(no))
        errors.add_all(own, no)
        place = np.empty(n, np.int64)
        place[yes] = np.arange(len(yes))
        place[no] = len(yes) + np.arange(len(no))
        return concat([first, second]).take(place)

    return run


# --- constants --------------------------------------------------------------------------------------------------------


def is_constant(e: Scalar) -> bool:
    """Whether e can be evaluated now: no columns, nothing unmaterializable, no call with effects."""
    for node in walk(e):
        if isinstance(node, Ref | Unmaterializable):
            return False
        if isinstance(node, Call) and FUNCTIONS[node.func].unmaterializable:
            return False
    return True


def eval_constant(e: Scalar) -> Any:
    """The datum (None = NULL) of a constant expression; raises its SqlError."""
    if isinstance(e, Literal) and e.error is None and e.value is None:
        return None
    errors = RowErrors()
    column = compile_scalar(e)((), 1, errors)
    if errors:
        raise decode_error(errors.first[0])
    return column_to_datums(scalar_result(e), column)[0]


def scalar_result(e: Scalar) -> ScalarType:
    """The type of an expression that is not a bare column (see `mzlite.expr.typing` for all)."""
    while isinstance(e, If):
        branch = e.then
        e = branch if not (isinstance(branch, Literal) and branch.value is None) else e.els
    assert not isinstance(e, Ref), e
    return e.typ


def fold(e: Scalar) -> Scalar:
    """e with every constant call replaced by its value, or by an error literal when it fails."""
    return rewrite_scalar(e, _fold_node)


def _fold_node(e: Scalar) -> Scalar:
    match e:
        case Call(func, args, typ):
            if not all(isinstance(a, Literal) for a in args):
                return e
            if func not in _LAZY and (FUNCTIONS[func].unmaterializable or FUNCTIONS[func].kernel is None):
                return e
            return literal_of(e, typ)
        case If(Literal(value, _, error) as cond, then, els):
            if error is not None:
                return Literal(None, scalar_result(then) if not isinstance(then, Ref) else cond.typ, error)
            return then if value == _TRUE else els
        case _:
            return e


_TRUE = b"\x01"


def literal_of(e: Scalar, typ: ScalarType) -> Literal:
    """The literal of a constant expression."""
    errors = RowErrors()
    column = compile_scalar(e)((), 1, errors)
    if errors:
        return Literal(None, typ, errors.first[0])
    datum = column_to_datums(typ, column)[0]
    return Literal(None if datum is None else encode_datum(typ, datum), typ)


def literal_value(e: Scalar) -> Any:
    """The datum of a literal (None = NULL), or None when e is no literal or an error."""
    if not isinstance(e, Literal) or e.value is None:
        return None
    return decode_datum(e.typ, e.value)


def error_of(literal: Literal) -> SqlError | None:
    return None if literal.error is None else decode_error(literal.error)
