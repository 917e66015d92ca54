"""Whether one collection's rows are among another's, with no more copies: B is A with something taken away."""

from __future__ import annotations

from adapter.transform.context import Context
from mzlite.expr import relation as r
from mzlite.expr.scalar import Ref

MAX_STEPS = 50


def contained(part: r.Mir, whole: r.Mir, context: Context) -> bool:
    """part <= whole as multisets, as far as the plans show it. Both must have non-negative multiplicities."""
    for _ in range(MAX_STEPS):
        if part == whole:
            return True
        match part, whole:
            case (r.Project(a, x), r.Project(b, y)) if x == y:
                part, whole = a, b
            case (r.Map(a, x), r.Map(b, y)) if x == y:
                part, whole = a, b
            case (r.Filter(a, x), r.Filter(b, y)) if set(y) <= set(x):
                part, whole = a, b
            case (r.Filter(a, _), _):
                part = a
            case (r.Threshold(a), r.Threshold(b)):
                part, whole = a, b
            case (r.Reduce(a, k, ()), r.Reduce(b, l, ())) if k == l:
                return support_contained(a, b, context)
            case (r.TopK(a), _):
                part = a
            case _:
                return False
    return False


def support_contained(part: r.Mir, whole: r.Mir, context: Context) -> bool:
    """Every row of part occurs in whole, however often."""
    for _ in range(MAX_STEPS):
        if part == whole:
            return True
        match part, whole:
            case (r.Project(r.Join() as join, outputs), _) if _from_one_input(join, outputs, whole, context):
                return True
            case (r.Project(a, x), r.Project(b, y)) if x == y:
                part, whole = a, b
            case (r.Map(a, x), r.Map(b, y)) if x == y:
                part, whole = a, b
            case (r.Filter(a, x), r.Filter(b, y)) if set(y) <= set(x):
                part, whole = a, b
            case (r.Filter(a, _), _) | (r.TopK(a), _):
                part = a
            case (r.Reduce(a, k, ()), _) if _identity(k, context.types.arity(a)):
                part = a
            case (_, r.Reduce(b, k, ())) if _identity(k, context.types.arity(b)):
                whole = b
            case (_, r.Union(inputs)) if part in inputs and not any(isinstance(n, r.Negate) for n in r.walk(whole)):
                return True
            case _:
                return False
    return False


def _identity(key: tuple[object, ...], arity: int) -> bool:
    return key == tuple(Ref(i) for i in range(arity))


def _from_one_input(join: r.Join, outputs: tuple[int, ...], whole: r.Mir, context: Context) -> bool:
    """Project(Join(…, X, …)) to columns of X: each row is one of X's, projected."""
    base = 0
    for input in join.inputs:
        n = context.types.arity(input)
        if outputs and all(base <= c < base + n for c in outputs):
            local = tuple(c - base for c in outputs)
            part: r.Mir = input if local == tuple(range(n)) else r.Project(input, local)
            return support_contained(part, whole, context)
        base += n
    return False
