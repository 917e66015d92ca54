"""Rewriting every scalar of a plan: unmaterializable calls and parameters become literals before a plan runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mzlite.expr import relation as r
from mzlite.expr.scalar import Aggregate, Call, Frame, Scalar, Unmaterializable, WindowCall, rewrite, walk

Substitute = Callable[[Unmaterializable], Scalar | None]
"""The value of an unmaterializable call, None to leave it."""


def scalars_of(node: r.Mir) -> Iterator[Scalar]:
    """The scalars of one node, aggregates' and windows' included."""
    match node:
        case r.Map(_, scalars):
            yield from scalars
        case r.Filter(_, predicates):
            yield from predicates
        case r.FlatMap(_, _, exprs):
            yield from exprs
        case r.Join(_, equivalences, _):
            for group in equivalences:
                yield from group
        case r.Reduce(_, key, aggregates, _, _):
            yield from key
            for a in aggregates:
                yield from a.args
                yield from a.order_exprs
                if a.filter is not None:
                    yield a.filter
        case r.TopK(limit=limit) if limit is not None:
            yield limit
        case r.Window(_, _, _, calls):
            for c in calls:
                yield from c.args
                for x in (c.filter, c.frame.start_offset, c.frame.end_offset):
                    if x is not None:
                        yield x
        case r.ArrangeBy(_, keys):
            for k in keys:
                yield from k
        case _:
            pass


def map_scalars(node: r.Mir, f: Callable[[Scalar], Scalar]) -> r.Mir:
    """node with f applied to each of its scalars."""

    def all_of(group: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
        return tuple(f(s) for s in group)

    def maybe(s: Scalar | None) -> Scalar | None:
        return None if s is None else f(s)

    match node:
        case r.Map(input, scalars):
            return r.Map(input, all_of(scalars))
        case r.Filter(input, predicates):
            return r.Filter(input, all_of(predicates))
        case r.FlatMap(input, func, exprs):
            return r.FlatMap(input, func, all_of(exprs))
        case r.Join(inputs, equivalences, implementation):
            return r.Join(inputs, tuple(all_of(g) for g in equivalences), implementation)
        case r.Reduce(input, key, aggregates, monotonic, size):
            new = tuple(
                Aggregate(a.func, all_of(a.args), a.typ, a.distinct, maybe(a.filter), all_of(a.order_exprs), a.order_by)
                for a in aggregates
            )
            return r.Reduce(input, all_of(key), new, monotonic, size)
        case r.TopK(input, key, order_by, limit, offset, monotonic, size):
            return r.TopK(input, key, order_by, maybe(limit), offset, monotonic, size)
        case r.Window(input, partition_by, order_by, calls):
            new_calls = tuple(
                WindowCall(
                    c.func,
                    all_of(c.args),
                    c.typ,
                    Frame(
                        c.frame.units,
                        c.frame.start,
                        maybe(c.frame.start_offset),
                        c.frame.end,
                        maybe(c.frame.end_offset),
                        c.frame.exclude,
                    ),
                    c.ignore_nulls,
                    c.distinct,
                    maybe(c.filter),
                    c.order_by,
                )
                for c in calls
            )
            return r.Window(input, partition_by, order_by, new_calls)
        case r.ArrangeBy(input, keys):
            return r.ArrangeBy(input, tuple(all_of(k) for k in keys))
        case _:
            return node


def unmaterializable(e: r.Mir) -> frozenset[str]:
    """Names of the unmaterializable calls (and `$n` parameters) anywhere in e."""
    return frozenset(
        s.func
        for node in r.walk(e)
        for scalar in scalars_of(node)
        for s in walk(scalar)
        if isinstance(s, Unmaterializable)
    )


def sleeps(e: r.Mir) -> bool:
    """Does evaluating e take its time on purpose (mz_sleep)? Then it must not happen on the event loop."""
    return any(
        isinstance(s, Call) and s.func.startswith("mz_sleep")
        for node in r.walk(e)
        for scalar in scalars_of(node)
        for s in walk(scalar)
    )


def substitute_scalar(e: Scalar, values: Substitute) -> Scalar:
    def visit(s: Scalar) -> Scalar:
        if isinstance(s, Unmaterializable):
            found = values(s)
            return s if found is None else found
        return s

    return rewrite(e, visit)


def substitute(e: r.Mir, values: Substitute) -> r.Mir:
    """e with values in place of unmaterializable calls."""
    return r.rewrite(e, lambda node: map_scalars(node, lambda s: substitute_scalar(s, values)))
