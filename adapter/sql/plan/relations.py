"""FROM: tables, CTEs, subqueries, table functions, joins."""

from __future__ import annotations

from typing import Any

from adapter.sql import ast, hir
from adapter.sql.plan import calls, expr
from adapter.sql.plan.coerce import settle, to_bool, to_common
from adapter.sql.plan.context import PlanContext
from adapter.sql.plan.expr import ExprContext
from adapter.sql.plan.scope import Scope, ScopeColumn
from mzlite.expr import table_functions
from mzlite.expr.functions import FUNCTIONS
from mzlite.expr.scalar import TableFunc
from mzlite.repr.errors import SqlError
from mzlite.repr.types import BOOL, INT8, ColumnType, RelationType

Planned = tuple[hir.Relation, Scope]


def plan_from(ctx: PlanContext, items: tuple[ast.TableExpr, ...], outer: list[Scope]) -> Planned:
    """The comma-separated items, joined; no item is one row without columns."""
    if not items:
        return hir.UNIT, Scope()
    rel, scope = plan_table_expr(ctx, items[0], outer)
    for item in items[1:]:
        rel, scope = _join_item(ctx, rel, scope, item, outer, "inner", None)
    return rel, scope


def plan_table_expr(ctx: PlanContext, item: ast.TableExpr, outer: list[Scope]) -> Planned:
    match item:
        case ast.TableRef():
            return plan_table_ref(ctx, item)
        case ast.Derived():
            return _derived(ctx, item, outer)
        case ast.ShowDerived(statement, alias):
            from adapter.sql.plan.show import plan_show_query

            planned = plan_show_query(ctx, statement)
            scope = planned.scope(None if alias is None else alias.name)
            return planned.relation(), _aliased(scope, alias)
        case ast.TableFunction():
            return _table_function(ctx, item, outer)
        case ast.JoinExpr():
            return _join(ctx, item, outer)


def _aliased(scope: Scope, alias: ast.Alias | None) -> Scope:
    """The scope under a table alias with column aliases."""
    if alias is None:
        return scope
    starred = [c for c in scope.columns if c.starred]
    if len(alias.columns) > len(starred):
        raise SqlError(
            "42P10", f"{alias.name} has {len(starred)} columns available but {len(alias.columns)} columns specified"
        )
    parts = (alias.name,)
    columns = tuple(
        ScopeColumn(
            alias.columns[i] if i < len(alias.columns) else c.name, c.typ, c.index, parts, whole_row=c.whole_row
        )
        for i, c in enumerate(starred)
    )
    return Scope(columns, (parts,))


def plan_table_ref(ctx: PlanContext, item: ast.TableRef) -> Planned:
    from adapter.sql.plan.query import cte_get, lookup_cte

    if len(item.parts) == 1 and item.id is None:
        binding = lookup_cte(ctx, item.parts[0])
        if binding is not None:
            table = (item.parts[0],)
            columns = tuple(ScopeColumn(n, t, i, table) for i, (n, t) in enumerate(zip(binding.names, binding.types)))
            return cte_get(binding), _aliased(Scope(columns, (table,)), item.alias)
    if item.id is not None:
        from mzlite.repr.ids import GlobalId

        found = ctx.catalog.get_item(GlobalId(item.id))
        ctx.depends_on[found.id] = None
    else:
        found = ctx.relation(item.parts, item.pos)
    desc = found.desc
    if desc is None:
        raise SqlError("42809", f"catalog item '{found.name}' is {found.kind} and so cannot be depended upon")
    name = found.name
    full = (name.schema, name.item) if name.database is None else (name.database, name.schema, name.item)
    columns = tuple(ScopeColumn(n, c.scalar, i, full) for i, (n, c) in enumerate(zip(desc.names, desc.typ.columns)))
    return hir.Get(found.id, desc.typ), _aliased(Scope(columns, (full,)), item.alias)


def _derived(ctx: PlanContext, item: ast.Derived, outer: list[Scope]) -> Planned:
    from adapter.sql.plan.query import plan_query

    planned = plan_query(ctx, item.query, outer)
    table = None if item.alias is None else item.alias.name
    return planned.relation(), _aliased(planned.scope(table), item.alias)


# ---- table functions


def _table_function(ctx: PlanContext, item: ast.TableFunction, outer: list[Scope]) -> Planned:
    functions = item.functions
    if len(functions) == 1 and functions[0].name[-1] == "unnest" and len(functions[0].args) > 1:
        # unnest(a, b) is ROWS FROM (unnest(a), unnest(b)).
        functions = tuple(ast.FuncCall(functions[0].name, (a,), pos=functions[0].pos) for a in functions[0].args)
    parts = [_one_function(ctx, f, outer, item.ordinality and len(functions) == 1) for f in functions]
    if len(parts) == 1:
        rel, names, types, scalar_like, function = parts[0]
    else:
        rel, names, types = rows_from(
            [(p[0], p[1], p[2]) for p in parts], [_one_function(ctx, f, outer, True)[0] for f in functions]
        )
        scalar_like, function = False, parts[0][4]
        if item.ordinality:
            names, types = (*names, "ordinality"), (*types, INT8)
        else:
            rel = hir.Project(rel, tuple(range(len(names))))
    alias = item.alias
    table = function if alias is None else alias.name
    if scalar_like and alias is not None:
        names = (alias.name, *names[1:])
    width = len(names) - (1 if item.ordinality else 0)
    columns = tuple(
        ScopeColumn(n, t, i, (table,), whole_row=len(parts) == 1 and width == 1 and i == 0)
        for i, (n, t) in enumerate(zip(names, types))
    )
    scope = Scope(columns, ((table,),))
    return rel, _aliased(scope, alias) if alias is not None else scope


def _one_function(
    ctx: PlanContext, call: ast.FuncCall, outer: list[Scope], ordinality: bool
) -> tuple[hir.Relation, tuple[str, ...], tuple[Any, ...], bool, str]:
    """relation, column names, types, whether an alias renames its only column, the function's name."""
    x = ExprContext(ctx, outer, "FROM clause")
    name = calls.function_name(x, call)
    if call.over is not None:
        raise SqlError(
            "42P20",
            f"window functions are not allowed in FROM clause (function {calls.shown_name(name)})",
            position=call.pos + 1,
        )
    if not table_functions.by_name(name):
        if not FUNCTIONS.by_name(name) and name not in (
            "current_schema",
            "coalesce",
            "greatest",
            "least",
            "nullif",
            "pg_typeof",
        ):
            from mzlite.expr import aggregates, window_functions

            if aggregates.by_name(name):
                raise SqlError(
                    "42803",
                    f"aggregate functions are not allowed in FROM clause (function {calls.shown_name(name)})",
                    position=call.pos + 1,
                )
            if window_functions.by_name(name):
                raise SqlError(
                    "42809", f"window function {calls.shown_name(name)} requires an OVER clause", position=call.pos + 1
                )
            raise calls.missing_function(call)
        return _scalar_function(x, call, name, ordinality)
    if call.distinct or call.filter is not None or call.order_by:
        raise SqlError(
            "42809",
            f"DISTINCT, FILTER or ORDER BY specified, but {name} is not an aggregate function",
            position=call.pos + 1,
        )
    inner = x.within("other table functions")
    func, args, names = calls.table_call(x, name, calls.plan_args(inner, call), call.pos)
    if ordinality and func.func == "repeat_row_int8":
        from mzlite.repr.errors import unsupported

        raise unsupported("WITH ORDINALITY on repeat_row")
    if ordinality:
        func = TableFunc(f"ordinality:{func.func}", RelationType((*func.typ.columns, ColumnType(INT8, False))))
        names = (*names, "ordinality")
    rel = hir.CallTable(func, tuple(hir.shift(a, 1) for a in args))
    types = tuple(c.scalar for c in func.typ.columns)
    scalar_like = len(names) == (2 if ordinality else 1) and names[0] == name
    return rel, names, types, scalar_like, name


def _scalar_function(
    x: ExprContext, call: ast.FuncCall, name: str, ordinality: bool
) -> tuple[hir.Relation, tuple[str, ...], tuple[Any, ...], bool, str]:
    """A scalar function in FROM: one row."""
    from adapter.sql.plan.coerce import literal

    value = hir.shift(settle(x.ctx, expr.plan_expr(x, call)), 1)
    scalars = (value, literal(INT8, 1)) if ordinality else (value,)
    names = (name, "ordinality") if ordinality else (name,)
    return hir.Map(hir.UNIT, scalars), names, tuple(hir.type_of(s) for s in scalars), True, name


def rows_from(
    parts: list[tuple[hir.Relation, tuple[str, ...], tuple[Any, ...]]], numbered: list[hir.Relation]
) -> tuple[hir.Relation, tuple[str, ...], tuple[Any, ...]]:
    """Functions side by side, row by row: outer joins on their ordinality (numbered: each with ordinality as its last column).

    Returns all functions' columns, then the common ordinality (not in names and types).
    """
    rel = numbered[0]
    widths = [len(names) for _, names, _ in parts]
    names = parts[0][1]
    types = parts[0][2]
    left_width = widths[0]
    for i in range(1, len(parts)):
        right_width = widths[i]
        total = left_width + 1 + right_width + 1
        left_number = hir.Column(0, left_width, INT8)
        right_number = hir.Column(0, total - 1, INT8)
        on = hir.Call("eq_int8", (left_number, right_number), BOOL)
        joined = hir.Join(rel, numbered[i], on, "full")
        number = hir.Call("coalesce", (left_number, right_number), INT8)
        outputs = (*range(left_width), *range(left_width + 1, left_width + 1 + right_width), total)
        rel = hir.Project(hir.Map(joined, (number,)), outputs)
        left_width += right_width
        names = (*names, *parts[i][1])
        types = (*types, *parts[i][2])
    return rel, names, types


# ---- joins


def _may_be_lateral(item: ast.TableExpr) -> bool:
    match item:
        case ast.Derived():
            return item.lateral
        case ast.TableFunction():
            return True
        case ast.JoinExpr(_, left, right):
            return _may_be_lateral(left) or _may_be_lateral(right)
        case _:
            return False


def _uses_level(r: hir.Relation, level: int) -> bool:
    found = False

    def f(e: hir.Scalar, depth: int) -> hir.Scalar | None:
        nonlocal found
        found = found or (isinstance(e, hir.Column) and e.level == depth + level)
        return e if found else None

    hir.rewrite_relation(r, f)
    return found


def _right_side(
    ctx: PlanContext, scope: Scope, item: ast.TableExpr, outer: list[Scope]
) -> tuple[hir.Relation, Scope, bool]:
    """The right operand of a join; whether it depends on the left row."""
    if not _may_be_lateral(item):
        rel, right = plan_table_expr(ctx, item, outer)
        return rel, right, False
    rel, right = plan_table_expr(ctx, item, [scope, *outer])
    if _uses_level(rel, 1):
        return rel, right, True
    return hir.shift_relation(rel, -1), right, False


def _join_item(
    ctx: PlanContext,
    left: hir.Relation,
    scope: Scope,
    item: ast.TableExpr,
    outer: list[Scope],
    kind: str,
    on: hir.Scalar | None,
) -> Planned:
    right, right_scope, lateral = _right_side(ctx, scope, item, outer)
    joint = scope.product(right_scope, hir.arity(left))
    if lateral:
        return hir.Lateral(left, right, on, kind), joint
    if left is hir.UNIT:
        return right, joint
    return hir.Join(left, right, on, kind), joint


def _join(ctx: PlanContext, item: ast.JoinExpr, outer: list[Scope]) -> Planned:
    left, left_scope = plan_table_expr(ctx, item.left, outer)
    right, right_scope, lateral = _right_side(ctx, left_scope, item.right, outer)
    kind = "inner" if item.kind == "cross" else item.kind
    if lateral and kind in ("right", "full"):
        raise SqlError(
            "42P10", "the combining JOIN type must be INNER or LEFT for a LATERAL reference", position=item.pos + 1
        )
    joint = left_scope.product(right_scope, hir.arity(left))
    using = item.using
    if item.natural:
        using = _natural_columns(left_scope, right_scope)
    if using is not None and (using or item.using is not None):
        rel, joint = _using(ctx, left, right, left_scope, right_scope, using, kind, lateral, item)
    else:
        on: hir.Scalar | None = None
        if item.on is not None:
            x = ExprContext(ctx, [joint, *outer], "ON clause")
            on = to_bool(ctx, expr.plan_expr(x, item.on), "ON clause")
        rel = hir.Lateral(left, right, on, kind) if lateral else hir.Join(left, right, on, kind)
    if item.alias is not None:
        joint = _aliased(joint, item.alias)
    return rel, joint


def _natural_columns(left: Scope, right: Scope) -> tuple[str, ...]:
    names: list[str] = []
    on_right = {c.name for c in right.columns if c.bare}
    for column in left.columns:
        if column.bare and column.name in on_right and column.name not in names:
            names.append(column.name)
    return tuple(names)


def _side_column(scope: Scope, name: str, side: str, pos: int) -> ScopeColumn:
    found = [c for c in scope.columns if c.name == name and c.bare]
    if not found:
        raise SqlError(
            "42703", f'column "{name}" specified in USING clause does not exist in {side} table', position=pos + 1
        )
    if len({c.index for c in found}) > 1:
        raise SqlError("42702", f'common column name "{name}" appears more than once in {side} table', position=pos + 1)
    return found[0]


def _using(
    ctx: PlanContext,
    left: hir.Relation,
    right: hir.Relation,
    left_scope: Scope,
    right_scope: Scope,
    names: tuple[str, ...],
    kind: str,
    lateral: bool,
    item: ast.JoinExpr,
) -> Planned:
    """Equality of the named columns; each appears once, first, as the left's value (or whichever side has one)."""
    from adapter.sql.plan.operators import conjunction
    from adapter.sql.plan.overload import resolve_operator

    offset = hir.arity(left)
    total = offset + hir.arity(right)
    conditions: list[hir.Scalar] = []
    merged: list[ScopeColumn] = []
    scalars: list[hir.Scalar] = []
    left_used: set[int] = set()
    right_used: set[int] = set()
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise SqlError(
                "42701", f'column name "{name}" appears more than once in USING clause', position=item.pos + 1
            )
        seen.add(name)
        a = _side_column(left_scope, name, "left", item.pos)
        b = _side_column(right_scope, name, "right", item.pos)
        left_column = hir.Column(0, a.index, a.typ, name)
        right_column = hir.Column(0, b.index + offset, b.typ, name)
        to_common(ctx, [left_column, right_column], f'NATURAL/USING join column "{name}"')
        conditions.append(resolve_operator(ctx, "=", (left_column, right_column), item.pos))
        left_used.add(a.index)
        right_used.add(b.index)
        also = () if item.using_alias is None else (item.using_alias,)
        if kind in ("inner", "left") and a.typ == b.typ:
            merged.append(ScopeColumn(name, a.typ, a.index, (), also=also))
            continue
        (x, y), typ = to_common(ctx, [left_column, right_column], f'NATURAL/USING join column "{name}"')
        value: hir.Scalar = (
            x if kind in ("inner", "left") else y if kind == "right" else hir.Call("coalesce", (x, y), typ)
        )
        if isinstance(value, hir.Column):
            merged.append(ScopeColumn(name, typ, value.column, (), also=also))
            continue
        merged.append(ScopeColumn(name, typ, total + len(scalars), (), also=also))
        scalars.append(value)
    on = conjunction(tuple(conditions)) if conditions else None
    rel: hir.Relation = hir.Lateral(left, right, on, kind) if lateral else hir.Join(left, right, on, kind)
    if scalars:
        rel = hir.Map(rel, tuple(scalars))
    joint = left_scope.product(right_scope, offset)
    rest: list[ScopeColumn] = []
    for c in joint.columns:
        own = c.index in left_used if c.index < offset else (c.index - offset) in right_used
        if own and c.name in seen:
            rest.append(ScopeColumn(c.name, c.typ, c.index, c.table, False, False, c.also, c.whole_row))
        else:
            rest.append(c)
    tables = joint.tables
    if item.using_alias is not None:
        if any(t[-1] == item.using_alias for t in tables):
            raise SqlError("42712", f'table name "{item.using_alias}" specified more than once')
        tables = (*tables, (item.using_alias,))
    return rel, Scope((*merged, *rest), tables)
