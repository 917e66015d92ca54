"""SQL text to a value, without a database: what these tests write expressions in."""

from __future__ import annotations

from typing import Any

from adapter.sql import hir
from adapter.sql import statements as st
from adapter.sql.parse.statements import parse_statements
from adapter.sql.plan.context import PlanContext
from adapter.sql.plan.query import plan_query
from mzlite.expr.eval import eval_constant
from mzlite.expr.scalar import Call, If, Literal, Ref, Scalar
from mzlite.repr.text import format_datum
from mzlite.repr.types import ScalarType


class EmptyCatalog:
    """No names but the builtin ones."""

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: None


class PlainSession:
    database = "materialize"
    search_path = ("public",)
    cluster = "quickstart"
    user = "materialize"

    def variable(self, name: str) -> str | None:
        return None

    def prepared_parameters(self, name: str) -> None:
        return None


def scalar_of(e: hir.Scalar) -> Scalar:
    match e:
        case hir.Column(0, column):
            return Ref(column)
        case hir.Call(func, args, typ):
            return Call(func, tuple(map(scalar_of, args)), typ)
        case hir.If(cond, then, els):
            return If(scalar_of(cond), scalar_of(then), scalar_of(els))
        case Literal():
            return e
        case _:
            raise AssertionError(f"not a plain expression: {e}")


def plan(expression: str) -> tuple[Scalar, ScalarType]:
    """The scalar that `expression` plans to, and its type."""
    (statement,) = parse_statements(f"SELECT {expression}")
    assert isinstance(statement, st.SelectStatement)
    context: Any = (EmptyCatalog(), PlainSession())
    planned = plan_query(PlanContext(*context), statement.query, [])
    rel = planned.rel
    while isinstance(rel, hir.Project):
        rel = rel.input
    assert isinstance(rel, hir.Map), rel
    (e,) = rel.scalars[-1:]
    return scalar_of(e), hir.type_of(e)


def value(expression: str) -> Any:
    """The datum of a constant expression; raises its SqlError."""
    e, _ = plan(expression)
    return eval_constant(e)


def text(expression: str) -> str | None:
    """The value as output text."""
    e, typ = plan(expression)
    datum = eval_constant(e)
    if datum is None:
        return None
    return format_datum(typ, datum)
