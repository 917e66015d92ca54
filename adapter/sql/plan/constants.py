"""Constant folding while planning: expressions whose value the planner itself needs (LIMIT, AS OF, defaults, options)."""

from __future__ import annotations

from typing import Any

from adapter.sql import hir
from adapter.sql.plan.context import PlanContext
from mzlite.expr import eval as evaluate
from mzlite.expr import scalar as mir
from mzlite.expr.scalar import Literal, Unmaterializable
from mzlite.repr.datum import decode_datum
from mzlite.repr.errors import SqlError, decode_error


def to_scalar(e: hir.Scalar) -> mir.Scalar | None:
    """e as a plain scalar without input columns; None when it needs a row or a subquery."""
    match e:
        case Literal() | Unmaterializable():
            return e
        case hir.Call(func, args, typ):
            new = tuple(to_scalar(a) for a in args)
            return None if any(a is None for a in new) else mir.Call(func, tuple(a for a in new if a is not None), typ)
        case hir.If(cond, then, els):
            a, b, c = to_scalar(cond), to_scalar(then), to_scalar(els)
            return None if a is None or b is None or c is None else mir.If(a, b, c)
        case hir.Column(0, column):
            return mir.Ref(column)
        case _:
            return None


def from_scalar(e: mir.Scalar) -> hir.Scalar | None:
    """Back, for folded parts that are literals."""
    return e if isinstance(e, Literal | Unmaterializable) else None


def fold_scalar(ctx: PlanContext, e: hir.Scalar) -> hir.Scalar:
    """The literal that e is, when it is constant; otherwise e."""
    if isinstance(e, Literal):
        return e
    scalar = to_scalar(e)
    if scalar is None or any(isinstance(n, mir.Ref | Unmaterializable) for n in mir.walk(scalar)):
        return e
    folded = evaluate.fold(scalar)
    return folded if isinstance(folded, Literal) else e


def constant_datum(ctx: PlanContext, e: hir.Scalar) -> tuple[bool, Any]:
    """(is constant, datum); raises the error of an error literal."""
    folded = fold_scalar(ctx, e)
    if not isinstance(folded, Literal):
        return False, None
    if folded.error is not None:
        raise decode_error(folded.error)
    return True, None if folded.value is None else decode_datum(folded.typ, folded.value)


def constant_error(e: hir.Scalar) -> SqlError | None:
    return decode_error(e.error) if isinstance(e, Literal) and e.error is not None else None
