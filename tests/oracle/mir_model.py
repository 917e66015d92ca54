"""What MIR means, a row at a time: slow and obvious. The other side of every engine property.

A collection is a Counter from row (a tuple of Python values, None = NULL) to multiplicity. Scalars are evaluated by a
table of Python functions, so that nothing of the engine's kernels is trusted. Only what the plan generator makes is
modelled; expressions here never fail.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import cmp_to_key
from typing import Any

from mzlite.expr import relation as r
from mzlite.expr.scalar import Aggregate, Call, ColumnOrder, If, Literal, Ref, Scalar, Unmaterializable, rewrite
from mzlite.repr.datum import decode_datum

Row = tuple[Any, ...]
Rows = Counter[Row]


def _strict(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: None if any(a is None for a in args) else f(*args)


def _and(*args: Any) -> Any:
    return False if any(a is False for a in args) else None if None in args else True


def _or(*args: Any) -> Any:
    return True if any(a is True for a in args) else None if None in args else False


SCALARS: dict[str, Callable[..., Any]] = {
    "add_int8": _strict(lambda a, b: a + b),
    "mul_int8": _strict(lambda a, b: a * b),
    "neg_int8": _strict(lambda a: -a),
    "eq_int8": _strict(lambda a, b: a == b),
    "not_eq_int8": _strict(lambda a, b: a != b),
    "lt_int8": _strict(lambda a, b: a < b),
    "gte_int8": _strict(lambda a, b: a >= b),
    "eq_numeric": _strict(lambda a, b: a == b),
    "eq_bool": _strict(lambda a, b: a == b),
    "cast_int8_mz_timestamp": lambda a: a,
    "cast_int8_int4": lambda a: a,
    "lt_mz_timestamp": _strict(lambda a, b: a < b),
    "lte_mz_timestamp": _strict(lambda a, b: a <= b),
    "gt_mz_timestamp": _strict(lambda a, b: a > b),
    "gte_mz_timestamp": _strict(lambda a, b: a >= b),
    "eq_mz_timestamp": _strict(lambda a, b: a == b),
    "is_null": lambda a: a is None,
    "not": _strict(lambda a: not a),
    "and": _and,
    "or": _or,
    "coalesce": lambda *args: next((a for a in args if a is not None), None),
}


def scalar(e: Scalar, row: Sequence[Any]) -> Any:
    match e:
        case Ref(column):
            return row[column]
        case Literal(value, typ, _):
            return None if value is None else decode_datum(typ, value)
        case If(cond, then, els):
            return scalar(then, row) if scalar(cond, row) is True else scalar(els, row)
        case Call(func, args, _):
            return SCALARS[func](*(scalar(a, row) for a in args))
        case _:
            raise AssertionError(e)


def compare(a: Any, b: Any, *, desc: bool, nulls_last: bool) -> int:
    if a is None or b is None:
        if a is None and b is None:
            return 0
        return (1 if a is None else -1) if nulls_last else (-1 if a is None else 1)
    if a == b:
        return 0
    return -1 if (a < b) != desc else 1


def in_order(rows: Sequence[Row], order: Sequence[ColumnOrder]) -> list[Row]:
    """Sorted by `order`, ties by all columns ascending, NULLs last."""

    def cmp(a: Row, b: Row) -> int:
        for o in order:
            c = compare(a[o.column], b[o.column], desc=o.desc, nulls_last=o.nulls_last)
            if c:
                return c
        for x, y in zip(a, b):
            c = compare(x, y, desc=False, nulls_last=True)
            if c:
                return c
        return 0

    return sorted(rows, key=cmp_to_key(cmp))


def aggregate(a: Aggregate, rows: Sequence[Row]) -> Any:
    """rows: the group, each row as often as it occurs."""
    if a.filter is not None:
        rows = [row for row in rows if scalar(a.filter, row) is True]
    if a.order_exprs:
        keyed = [(*(scalar(e, row) for e in a.order_exprs), scalar(a.args[0], row)) for row in rows]
        values = [k[-1] for k in in_order(keyed, a.order_by)]
    else:
        values = [scalar(a.args[0], row) for row in rows]
    if a.distinct:
        values = list(dict.fromkeys(values))
    present = [v for v in values if v is not None]
    if a.func == "count":
        return len(present)
    if a.func == "array_agg<int8>":
        return tuple(values) if values else None
    if not present:
        return None
    if a.func == "sum_int8":
        return Decimal(sum(present))
    if a.func == "min_int8":
        return min(present)
    if a.func == "max_int8":
        return max(present)
    if a.func == "bool_or_bool":
        return any(present)
    raise AssertionError(a.func)


def window(func: str, args: Sequence[Scalar], rows: Sequence[Row], i: int, order_by: Sequence[ColumnOrder]) -> Any:
    """A window function's value on row i of its sorted partition (default frame: up to the last peer)."""

    def peers(a: Row, b: Row) -> bool:
        return all(a[o.column] == b[o.column] for o in order_by)

    if func == "row_number":
        return i + 1
    if func == "rank":
        return 1 + next(j for j, row in enumerate(rows) if peers(row, rows[i]))
    if func == "lag":
        return scalar(args[0], rows[i - 1]) if i else None
    if func == "sum_int8":
        end = max(j for j, row in enumerate(rows) if peers(row, rows[i]))
        present = [v for v in (scalar(args[0], row) for row in rows[: end + 1]) if v is not None]
        return Decimal(sum(present)) if present else None
    raise AssertionError(func)


def expanded(rows: Rows) -> list[Row]:
    return [row for row, n in rows.items() for _ in range(n)]


def evaluate(e: r.Mir, env: Mapping[Any, Any]) -> Rows:
    """The rows of e; multiplicities of zero are left out. env: rows by id, and "now": the time as a literal."""
    result = _evaluate(e, env)
    return Counter({row: n for row, n in result.items() if n})


def _evaluate(e: r.Mir, env: Mapping[Any, Any]) -> Rows:
    out: Rows = Counter()
    match e:
        case r.Constant(rows, typ, _):
            for datums, n in rows:
                out[tuple(None if d is None else decode_datum(c.scalar, d) for d, c in zip(datums, typ.columns))] += n
        case r.Get(id, _):
            rows_of: Rows = env[id]
            return rows_of
        case r.Let(id, value, body):
            return evaluate(body, {**env, id: evaluate(value, env)})
        case r.LetRec():
            return _let_rec(e, env)
        case r.Project(input, outputs):
            for row, n in evaluate(input, env).items():
                out[tuple(row[i] for i in outputs)] += n
        case r.Map(input, scalars):
            for row, n in evaluate(input, env).items():
                for s in scalars:
                    row = (*row, scalar(s, row))
                out[row] += n
        case r.FlatMap(input, func, exprs):
            assert func.func == "generate_series_int8", func
            for row, n in evaluate(input, env).items():
                start, stop = (scalar(x, row) for x in exprs)
                if start is not None and stop is not None:
                    for v in range(start, stop + 1):
                        out[(*row, v)] += n
        case r.Filter(input, predicates):
            at = [rewrite(p, lambda s: env["now"] if isinstance(s, Unmaterializable) else s) for p in predicates]
            for row, n in evaluate(input, env).items():
                if all(scalar(p, row) is True for p in at):
                    out[row] += n
        case r.Join(inputs, equivalences, _):
            product: Rows = Counter({(): 1})
            for i in inputs:
                right = evaluate(i, env)
                product = Counter({(*a, *b): m * n for a, m in product.items() for b, n in right.items()})
            for row, n in product.items():
                if all(_all_equal([scalar(x, row) for x in cls]) for cls in equivalences):
                    out[row] += n
        case r.Reduce(input, key, aggregates, _, _):
            groups: dict[Row, list[Row]] = {}
            for row in expanded(evaluate(input, env)):
                groups.setdefault(tuple(scalar(k, row) for k in key), []).append(row)
            for k, rows_of_group in groups.items():
                out[(*k, *(aggregate(a, rows_of_group) for a in aggregates))] += 1
        case r.TopK(input, group_key, order_by, limit, offset, _, _):
            by_key: dict[Row, list[Row]] = {}
            for row in expanded(evaluate(input, env)):
                by_key.setdefault(tuple(row[i] for i in group_key), []).append(row)
            for k, rows_of_group in by_key.items():
                stop = None
                if limit is not None:
                    padded: list[Any] = [None] * (max(group_key, default=-1) + 1)
                    for column, v in zip(group_key, k):
                        padded[column] = v
                    value = scalar(limit, padded)
                    stop = None if value is None else offset + value
                for row in in_order(rows_of_group, order_by)[offset:stop]:
                    out[row] += 1
        case r.Window(input, partition_by, order_by, calls):
            partitions: dict[Row, list[Row]] = {}
            for row in expanded(evaluate(input, env)):
                partitions.setdefault(tuple(row[i] for i in partition_by), []).append(row)
            for rows_of_group in partitions.values():
                ordered = in_order(rows_of_group, order_by)
                for at_row, row in enumerate(ordered):
                    out[(*row, *(window(c.func, c.args, ordered, at_row, order_by) for c in calls))] += 1
        case r.Negate(input):
            for row, n in evaluate(input, env).items():
                out[row] -= n
        case r.Threshold(input):
            for row, n in evaluate(input, env).items():
                if n > 0:
                    out[row] += n
        case r.Union(inputs):
            for i in inputs:
                for row, n in evaluate(i, env).items():
                    out[row] += n
        case r.ArrangeBy(input, _):
            return evaluate(input, env)
        case _:
            raise AssertionError(e)
    return out


def _all_equal(values: Sequence[Any]) -> bool:
    return all(v is not None for v in values) and all(v == values[0] for v in values)


def _let_rec(e: r.LetRec, env: Mapping[Any, Any]) -> Rows:
    """Bindings in sequence, each seeing the newest values, until nothing changes or the limit is reached."""
    values: dict[Any, Rows] = {id: Counter() for id in e.ids}
    iteration = 0
    while e.limit is None or iteration < e.limit:
        before = dict(values)
        for id, value in zip(e.ids, e.values):
            values[id] = evaluate(value, {**env, **values})
        iteration += 1
        if values == before:
            break
    return evaluate(e.body, {**env, **values})
