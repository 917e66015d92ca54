"""WITH MUTUALLY RECURSIVE, and WITH RECURSIVE expressed through it.

WITH RECURSIVE t AS (base UNION [ALL] step) is the fixpoint of t = distinct(base ∪ step(t)). With UNION ALL PostgreSQL counts derivations and
never removes duplicates; the fixpoint t = base ∪ step(t) agrees wherever PostgreSQL terminates.
"""

from __future__ import annotations

from collections.abc import Callable

from adapter.sql import ast, hir
from adapter.sql.plan.coerce import try_cast
from adapter.sql.plan.context import PlanContext
from adapter.sql.plan.query import PlannedQuery, cte_names, plan_body, plan_query
from adapter.sql.plan.scope import CteBinding, Scope
from adapter.sql.plan.types import resolve_type, type_words
from mzlite.repr.errors import SqlError, unsupported
from mzlite.repr.types import ScalarType

Wrap = Callable[[hir.Relation], hir.Relation]


def plan_recursion(ctx: PlanContext, node: ast.Recursion, outer: list[Scope], frame: dict[str, CteBinding]) -> Wrap:
    """Declares the bindings in frame and plans them; the result puts them around the body."""
    limit, return_at_limit = _limit(node.options)
    ids: list[int] = []
    for cte in node.ctes:
        if cte.name in frame:
            raise SqlError("42712", f'WITH query name "{cte.name}" specified more than once', position=cte.pos + 1)
        types = tuple(resolve_type(ctx, typ) for _, typ in cte.columns)
        names = tuple(name for name, _ in cte.columns)
        id = ctx.fresh()
        ids.append(id)
        frame[cte.name] = CteBinding(id, names, types)
    values: list[hir.Relation] = []
    for cte in node.ctes:
        binding = frame[cte.name]
        planned = plan_query(ctx, cte.query, outer, binding.types)
        values.append(_declared(ctx, cte.name, planned, binding.types))
    names = tuple(cte.name for cte in node.ctes)
    all_types = tuple(frame[n].types for n in names)

    def wrap(body: hir.Relation) -> hir.Relation:
        return hir.LetRec(names, tuple(ids), tuple(values), all_types, body, limit, return_at_limit)

    return wrap


def _limit(options: tuple[tuple[str, str | None], ...]) -> tuple[int | None, bool]:
    if len(options) > 1 and options[0][0] == options[1][0]:
        raise SqlError("42601", f"{options[0][0].upper()} specified more than once")
    if len(options) > 1:
        raise SqlError(
            "42601",
            "Invalid WITH MUTUALLY RECURSIVE recursion limit. More than one recursion limit given. "
            "Please give at most one of RECURSION LIMIT, ERROR AT RECURSION LIMIT, RETURN AT RECURSION LIMIT.",
        )
    for name, value in options:
        assert value is not None
        if int(value) == 0:
            raise SqlError(
                "42601", "Invalid WITH MUTUALLY RECURSIVE recursion limit. Recursion limit has to be greater than 0."
            )
        return int(value), name == "return at recursion limit"
    return None, False


def _declared(ctx: PlanContext, name: str, planned: PlannedQuery, types: tuple[ScalarType, ...]) -> hir.Relation:
    """The binding's value as its declared types."""
    if len(planned.types) != len(types):
        declared = ", ".join(type_words(t) for t in types)
        inferred = ", ".join(type_words(t) for t in planned.types)
        raise SqlError(
            "42601",
            f'WITH MUTUALLY RECURSIVE query "{name}" declared types ({declared}), but query returns types ({inferred})',
        )
    rel = planned.relation()
    scalars: list[hir.Scalar] = []
    outputs: list[int] = []
    for i, (have, want) in enumerate(zip(planned.types, types)):
        converted = try_cast(ctx, hir.Column(0, i, have), want, "assignment")
        if converted is None:
            declared = ", ".join(type_words(t) for t in types)
            inferred = ", ".join(type_words(t) for t in planned.types)
            raise SqlError(
                "42804",
                f'WITH MUTUALLY RECURSIVE query "{name}" declared types ({declared}), but query returns types ({inferred})',
            )
        if isinstance(converted, hir.Column):
            outputs.append(i)
        else:
            outputs.append(len(types) + len(scalars))
            scalars.append(converted)
    if not scalars:
        return rel
    return hir.Project(hir.Map(rel, tuple(scalars)), tuple(outputs))


def plan_recursive_ctes(
    ctx: PlanContext, ctes: tuple[ast.Cte, ...], outer: list[Scope], frame: dict[str, CteBinding]
) -> Wrap:
    """WITH RECURSIVE: each CTE may refer to itself; the non-recursive branch of its UNION gives names and types."""
    wraps: list[Wrap] = []
    for cte in ctes:
        if cte.name in frame:
            raise SqlError("42712", f'WITH query name "{cte.name}" specified more than once', position=cte.pos + 1)
        wraps.append(_recursive_cte(ctx, cte, outer, frame))

    def wrap(body: hir.Relation) -> hir.Relation:
        for one in reversed(wraps):
            body = one(body)
        return body

    return wrap


def _recursive_cte(ctx: PlanContext, cte: ast.Cte, outer: list[Scope], frame: dict[str, CteBinding]) -> Wrap:
    query = cte.query
    body = query.body
    id = ctx.fresh()
    if not isinstance(body, ast.SetOp) or body.op != "union" or query.order_by or query.limit is not None or query.ctes:
        if _mentions(query, cte.name):
            raise unsupported(
                f'recursive query "{cte.name}" that does not have the form non-recursive-term UNION [ALL] recursive-term'
            )
        planned = plan_query(ctx, query, outer)
        names = cte_names(cte.name, cte.columns, planned.names)
        value = planned.relation()
        frame[cte.name] = CteBinding(id, names, planned.types)
        return lambda rest: hir.Let(cte.name, id, value, rest)
    base = plan_body(ctx, body.left, outer, None)
    names = cte_names(cte.name, cte.columns, base.names)
    types = base.types
    frame[cte.name] = CteBinding(id, names, types)
    step = plan_body(ctx, body.right, outer, types)
    rel = hir.Union((base.relation(), _matching(ctx, step, types, cte.name)))
    fixed: hir.Relation = rel if body.all else hir.Distinct(rel)
    return lambda rest: hir.LetRec((cte.name,), (id,), (fixed,), (types,), rest)


def _matching(ctx: PlanContext, planned: PlannedQuery, types: tuple[ScalarType, ...], name: str) -> hir.Relation:
    if len(planned.types) != len(types):
        raise SqlError(
            "42601", f"each UNION query must have the same number of columns: {len(types)} vs {len(planned.types)}"
        )
    for i, (have, want) in enumerate(zip(planned.types, types)):
        if have.base() != want.base() and try_cast(ctx, hir.Column(0, i, have), want, "implicit") is None:
            raise SqlError(
                "42804",
                f'recursive query "{name}" column {i + 1} has type {type_words(want)} in non-recursive term but type '
                f"{type_words(have)} overall",
            )
    return _declared(ctx, name, planned, types)


def _mentions(node: object, name: str) -> bool:
    """Whether a FROM item of that bare name stands anywhere under node."""
    stack: list[object] = [node]
    while stack:
        here = stack.pop()
        if isinstance(here, ast.TableRef) and here.parts == (name,):
            return True
        if isinstance(here, ast.Node):
            stack.extend(getattr(here, f) for f in here.__struct_fields__)
        elif isinstance(here, tuple):
            stack.extend(here)
    return False
