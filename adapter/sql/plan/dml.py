"""INSERT, UPDATE, DELETE."""

from __future__ import annotations

from adapter.sql import ast, hir
from adapter.sql import plans as p
from adapter.sql import statements as st
from adapter.sql.catalog_view import CatalogItem
from adapter.sql.lower import lower_relation
from adapter.sql.plan import expr
from adapter.sql.plan.coerce import to_bool, try_cast
from adapter.sql.plan.constants import to_scalar
from adapter.sql.plan.context import PlanContext
from adapter.sql.plan.expr import ExprContext
from adapter.sql.plan.query import PlannedQuery, plan_query, values_relation
from adapter.sql.plan.relations import plan_from, plan_table_ref
from adapter.sql.plan.scope import Scope
from adapter.sql.plan.select import column_name
from adapter.sql.plan.types import type_words
from mzlite.expr.scalar import Literal, Scalar, Unmaterializable
from mzlite.expr.typing import scalar_type
from mzlite.repr.errors import SqlError
from mzlite.repr.types import ColumnType, RelationDesc, RelationType, ScalarType


def target_table(ctx: PlanContext, parts: tuple[str, ...], pos: int, verb: str) -> CatalogItem:
    item = ctx.resolve(parts, pos)
    if item.kind != "table":
        words = item.kind.replace("-", " ")
        raise SqlError("42809", f"cannot {verb} {words} '{item.name}'")
    if item.id.startswith("s"):
        raise SqlError("42809", f"cannot {verb} system table '{item.name}'")
    return item


def target_columns(table: CatalogItem, names: tuple[str, ...] | None, pos: int) -> tuple[int, ...]:
    """Indexes of the named columns, all when none are named."""
    desc = table.desc
    assert desc is not None
    if names is None:
        return tuple(range(len(desc.names)))
    out: list[int] = []
    for name in names:
        if name not in desc.names:
            raise SqlError("42703", f'column "{name}" of relation "{table.name}" does not exist', position=pos + 1)
        index = desc.names.index(name)
        if index in out:
            raise SqlError("42701", f'column "{name}" specified more than once', position=pos + 1)
        out.append(index)
    return tuple(out)


def _default(table: CatalogItem, column: int) -> hir.Scalar:
    desc = table.desc
    assert desc is not None
    typ = desc.typ.columns[column].scalar
    default = table.defaults[column] if column < len(table.defaults) else None
    return Literal(None, typ) if default is None else _lifted(default)


def _lifted(e: Scalar) -> hir.Scalar:
    """A stored default (a scalar without columns) as HIR."""
    from mzlite.expr import scalar as mir

    match e:
        case Literal() | Unmaterializable():
            return e
        case mir.Call(func, args, typ):
            return hir.Call(func, tuple(_lifted(a) for a in args), typ)
        case mir.If(cond, then, els):
            return hir.If(_lifted(cond), _lifted(then), _lifted(els))
        case mir.Ref():
            raise AssertionError("a default reads a column")


def plan_insert(ctx: PlanContext, statement: st.Insert) -> p.Plan:
    table = target_table(ctx, statement.table.parts, statement.table.pos, "insert into")
    desc = table.desc
    assert desc is not None
    columns = target_columns(table, statement.columns, statement.table.pos)
    types = tuple(desc.typ.columns[c].scalar for c in columns)
    if statement.query is None:
        columns, types = (), ()
        rel: hir.Relation = hir.UNIT
    else:
        rel, width = _source(ctx, statement.query, table, columns, types, listed=bool(statement.columns))
        columns = columns[:width]
    refuse_mz_now(rel)
    # Place the given columns, fill the others with defaults.
    scalars: list[hir.Scalar] = []
    outputs: list[int] = []
    for i in range(len(desc.names)):
        if i in columns:
            outputs.append(columns.index(i))
        else:
            outputs.append(len(columns) + len(scalars))
            scalars.append(_default(table, i))
    if scalars:
        rel = hir.Map(rel, tuple(scalars))
    if outputs != list(range(len(columns) + len(scalars))):
        rel = hir.Project(rel, tuple(outputs))
    returning = None
    if statement.returning:
        returning = _returning(ctx, statement, table)
    return p.InsertPlan(table.id, lower_relation(rel), returning)


def refuse_mz_now(rel: hir.Relation) -> None:
    def f(e: hir.Scalar, depth: int) -> hir.Scalar | None:
        if isinstance(e, Unmaterializable) and e.func == "mz_now":
            raise SqlError("0A000", "calls to mz_now in write statements are not supported")
        return None

    hir.rewrite_relation(rel, f)


def _source(
    ctx: PlanContext,
    query: ast.Query,
    table: CatalogItem,
    columns: tuple[int, ...],
    types: tuple[ScalarType, ...],
    listed: bool,
) -> tuple[hir.Relation, int]:
    """The rows to insert with the target's types, and how many columns they have."""
    body = query.body
    plain = (
        not query.ctes
        and query.recursion is None
        and not query.order_by
        and query.limit is None
        and query.offset is None
    )
    desc = table.desc
    assert desc is not None
    if isinstance(body, ast.Values) and plain:
        x = ExprContext(ctx, [], "VALUES")
        width = len(body.rows[0])
        _check_width(width, len(columns), listed)
        rows: list[tuple[hir.Scalar, ...]] = []
        for row in body.rows:
            if len(row) != width:
                raise SqlError("42601", f"VALUES expression has varying number of columns: {width} vs {len(row)}")
            out: list[hir.Scalar] = []
            for i, node in enumerate(row):
                if isinstance(node, ast.Default):
                    out.append(_default(table, columns[i]))
                    continue
                planned = hir.shift(expr.plan_expr(x, node), 1)
                out.append(_assigned(ctx, planned, types[i], desc.names[columns[i]]))
            rows.append(tuple(out))
        return values_relation(rows, types[:width]), width
    planned_query = plan_query(ctx, query, [], types)
    width = len(planned_query.project)
    _check_width(width, len(columns), listed)
    if planned_query.untyped and any(planned_query.types[i] != types[i] for i in planned_query.untyped):
        planned_query = plan_query(ctx, query, [], types)
    return _assigned_relation(ctx, planned_query, types, [desc.names[c] for c in columns]), width


def _check_width(width: int, available: int, listed: bool) -> None:
    """Without a column list the columns that get no value take their defaults."""
    if width > available:
        raise SqlError("42601", "INSERT has more expressions than target columns")
    if width < available and listed:
        raise SqlError("42601", "INSERT has more target columns than expressions")


def _assigned(ctx: PlanContext, e: hir.Scalar, typ: ScalarType, name: str) -> hir.Scalar:
    converted = try_cast(ctx, e, typ, "assignment")
    if converted is None:
        source = type_words(hir.type_of(e))
        raise SqlError("42804", f'column "{name}" is of type {type_words(typ)} but expression is of type {source}')
    return converted


def _assigned_relation(
    ctx: PlanContext, planned: PlannedQuery, types: tuple[ScalarType, ...], names: list[str]
) -> hir.Relation:
    rel = planned.relation()
    width = len(planned.types)
    scalars: list[hir.Scalar] = []
    outputs: list[int] = []
    for i, have in enumerate(planned.types):
        converted = _assigned(ctx, hir.Column(0, i, have), types[i], names[i])
        if isinstance(converted, hir.Column):
            outputs.append(i)
        else:
            outputs.append(width + len(scalars))
            scalars.append(converted)
    return rel if not scalars else hir.Project(hir.Map(rel, tuple(scalars)), tuple(outputs))


def _returning(ctx: PlanContext, statement: st.Insert, table: CatalogItem) -> p.Returning:
    _, scope = plan_table_ref(
        ctx, ast.TableRef(statement.table.parts, statement.table.alias, None, statement.table.pos)
    )
    x = ExprContext(ctx, [scope], "RETURNING clause")
    assert table.desc is not None
    scalars: list[Scalar] = []
    names: list[str] = []
    types: list[ColumnType] = []
    for item in statement.returning:
        match item.expr:
            case ast.Star():
                planned = [(c.name, hir.Column(0, c.index, c.typ)) for c in scope.columns]
            case node:
                planned = [(item.alias or column_name(node), expr.plan_typed(x, node))]  # type: ignore[list-item]
        for name, e in planned:
            scalar = to_scalar(e)
            if scalar is None:
                raise SqlError("0A000", "RETURNING clause does not allow subqueries")
            scalars.append(scalar)
            names.append(name)
            types.append(ColumnType(hir.type_of(e), scalar_type(scalar, table.desc.typ.columns).nullable))
    return p.Returning(tuple(scalars), RelationDesc(tuple(names), RelationType(tuple(types))))


def _filtered(ctx: PlanContext, rel: hir.Relation, scope: Scope, where: ast.Expr | None) -> hir.Relation:
    if where is None:
        return rel
    x = ExprContext(ctx, [scope], "WHERE clause")
    try:
        condition = to_bool(ctx, expr.plan_expr(x, where), "WHERE clause")
    except SqlError as error:
        if error.message.startswith("operator "):
            error.message = f"WHERE clause error: {error.message}"
        raise
    return hir.Filter(rel, hir.conjuncts(condition))


def plan_update(ctx: PlanContext, statement: st.Update) -> p.Plan:
    table = target_table(ctx, statement.table.parts, statement.table.pos, "mutate")
    desc = table.desc
    assert desc is not None
    rel, scope = plan_table_ref(ctx, statement.table)
    rel = _filtered(ctx, rel, scope, statement.where)
    x = ExprContext(ctx, [scope], "SET clause")
    new: dict[int, hir.Scalar] = {}
    for name, node, pos in statement.assignments:
        if name not in desc.names:
            raise SqlError("42703", f'column "{name}" of relation "{table.name.item}" does not exist', position=pos + 1)
        index = desc.names.index(name)
        if index in new:
            raise SqlError("42701", f"column {name} set twice", position=pos + 1)
        if isinstance(node, ast.Default):
            new[index] = _default(table, index)
            continue
        e = expr.plan_expr(x, node)
        new[index] = _assigned(ctx, e, desc.typ.columns[index].scalar, name)
    width = len(desc.names)
    order = sorted(new)
    rel = hir.Map(rel, tuple(new[i] for i in order))
    outputs = (*range(width), *(width + order.index(i) if i in new else i for i in range(width)))
    rel = hir.Project(rel, outputs)
    refuse_mz_now(rel)
    return p.UpdatePlan(table.id, lower_relation(rel))


def plan_delete(ctx: PlanContext, statement: st.Delete) -> p.Plan:
    table = target_table(ctx, statement.table.parts, statement.table.pos, "mutate")
    rel, scope = plan_table_ref(ctx, statement.table)
    if statement.using:
        # Rows of the table for which a row of the others satisfies the condition: a semijoin.
        inner, inner_scope = plan_from(ctx, statement.using, [])
        x = ExprContext(ctx, [inner_scope, scope], "WHERE clause")
        if statement.where is not None:
            condition = to_bool(ctx, expr.plan_expr(x, statement.where), "WHERE clause")
            inner = hir.Filter(inner, hir.conjuncts(condition))
        rel = hir.Filter(rel, (hir.Exists(inner),))
    else:
        rel = _filtered(ctx, rel, scope, statement.where)
    refuse_mz_now(rel)
    return p.DeletePlan(table.id, lower_relation(rel))
