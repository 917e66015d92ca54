"""SELECT, SUBSCRIBE, COPY, EXPLAIN as statements."""

from __future__ import annotations

import dataclasses

from adapter.sql import ast, hir
from adapter.sql import plans as p
from adapter.sql import statements as st
from adapter.sql.lower import lower_relation
from adapter.sql.plan import expr
from adapter.sql.plan.coerce import try_cast
from adapter.sql.plan.constants import constant_datum, to_scalar
from adapter.sql.plan.context import PlanContext
from adapter.sql.plan.expr import ExprContext
from adapter.sql.plan.query import PlannedQuery, plan_query
from adapter.sql.plan.relations import plan_table_ref
from adapter.sql.plan.types import type_words
from mzlite.expr import relation as mir
from mzlite.expr import typecheck
from mzlite.expr.relation import RowSetFinishing
from mzlite.expr.scalar import ColumnOrder, Scalar, Unmaterializable
from mzlite.repr.errors import SqlError, unsupported
from mzlite.repr.types import BOOL, INT8, MZ_TIMESTAMP, ColumnType, RelationDesc, RelationType, ScalarType


def plan_select_statement(ctx: PlanContext, statement: st.SelectStatement) -> p.Plan:
    planned = plan_query(ctx, statement.query, [])
    if statement.as_of is not None and any(name != "mz_now" for name in ctx.used_unmaterializable):
        raise unsupported("unmaterializable function (except `mz_now`) in an AS OF query")
    as_of = None if statement.as_of is None else plan_as_of(ctx, statement.as_of)
    return finish_select(ctx, planned, as_of)


def finish_select(ctx: PlanContext, planned: PlannedQuery, as_of: p.AsOf | None = None) -> p.SelectPlan:
    """A planned query as the top of a statement: its order, limit and projection are the finishing."""
    relation = lower_relation(planned.rel)
    limit = None
    if planned.limit is not None:
        constant, value = constant_datum(ctx, planned.limit)
        if not constant:
            raise unsupported("LIMIT that is not a constant")
        limit = value
    narrow, finishing = _narrowed(relation, planned, limit)
    return p.SelectPlan(
        narrow,
        describe(planned, relation),
        finishing,
        as_of,
        unplannable_parameters=ctx.parameters_in_limits,
    )


def _narrowed(relation: mir.Mir, planned: PlannedQuery, limit: int | None) -> tuple[mir.Mir, RowSetFinishing]:
    """Only what is shown or ordered by leaves the relation, so that the optimizer sees what nobody reads."""
    outputs = tuple(dict.fromkeys((*planned.project, *(o.column for o in planned.order_by))))
    at = {c: i for i, c in enumerate(outputs)}
    order_by = tuple(ColumnOrder(at[o.column], o.desc, o.nulls_last) for o in planned.order_by)
    finishing = RowSetFinishing(order_by, limit, planned.offset, tuple(at[c] for c in planned.project))
    if outputs == tuple(range(typecheck.typ(relation).arity)):
        return relation, finishing
    return mir.Project(relation, outputs), finishing


def describe(planned: PlannedQuery, relation: mir.Mir) -> RelationDesc:
    """Names and types of the visible columns; nullability and keys from the MIR."""
    typ = typecheck.typ(relation)
    columns = tuple(ColumnType(t, typ.columns[c].nullable) for t, c in zip(planned.types, planned.project))
    place = {c: i for i, c in reversed(list(enumerate(planned.project)))}
    keys = tuple(tuple(sorted(place[c] for c in key)) for key in typ.keys if all(c in place for c in key))
    return RelationDesc(planned.names, RelationType(columns, keys))


def view_relation(ctx: PlanContext, planned: PlannedQuery) -> tuple[mir.Mir, RelationDesc]:
    """A planned query as a collection: limit applied, order forgotten."""
    relation = lower_relation(planned.relation())
    typ = typecheck.typ(relation)
    columns = tuple(ColumnType(t, c.nullable) for t, c in zip(planned.types, typ.columns))
    return relation, RelationDesc(planned.names, RelationType(columns, typ.keys))


def plan_as_of(ctx: PlanContext, as_of: st.AsOf) -> p.AsOf:
    return p.AsOf(plan_time(ctx, as_of.time, "AS OF"), as_of.at_least)


def plan_time(ctx: PlanContext, node: ast.Expr, what: str) -> Scalar:
    """A constant time for AS OF and UP TO."""
    x = ExprContext(ctx, [], what)
    planned = expr.plan_expr(x, node)
    for e, _ in hir.walk(planned):
        if isinstance(e, hir.Column | hir.Exists | hir.ScalarQuery | hir.Quantified):
            raise SqlError("42P10", f"{what} cannot contain subqueries or column references")
        if isinstance(e, Unmaterializable) and not e.func.startswith("$"):
            raise unsupported("calling an unmaterializable function in AS OF or UP TO")
    wrong = SqlError("42804", "AS OF or UP TO should be castable to a (non-null) mz_timestamp value")
    cast = try_cast(ctx, planned, MZ_TIMESTAMP, "assignment")
    if cast is None:
        source = type_words(hir.type_of(planned))
        raise SqlError("42846", f"AS OF or UP TO does not support casting from {source} to mz_timestamp")
    scalar = to_scalar(cast)
    assert scalar is not None
    try:
        constant, value = constant_datum(ctx, cast)
    except SqlError:
        raise wrong from None
    if constant and value is None:
        raise wrong
    if constant:
        from adapter.sql.plan.coerce import literal

        return literal(MZ_TIMESTAMP, value)
    return scalar


# ---- SUBSCRIBE


def plan_subscribe(ctx: PlanContext, statement: st.Subscribe) -> p.Plan:
    from_id = None
    if statement.relation is not None:
        rel, scope = plan_table_ref(ctx, ast.TableRef(statement.relation, None, None, statement.pos))
        assert isinstance(rel, hir.Get) and isinstance(rel.id, str)
        from_id = rel.id
        types = tuple(c.typ for c in scope.columns)
        names = tuple(c.name for c in scope.columns)
        planned = PlannedQuery(rel, names, types, tuple(range(len(names))), types)
    else:
        assert statement.query is not None
        planned = plan_query(ctx, statement.query, [])
    relation, desc = view_relation(ctx, planned)
    options = dict(statement.options)
    snapshot = _flag(options.get("snapshot", "true"), "SNAPSHOT")
    progress = _flag(options.get("progress", "false" if "progress" not in options else "true"), "PROGRESS")
    as_of = None if statement.as_of is None else plan_as_of(ctx, statement.as_of)
    up_to = None if statement.up_to is None else plan_time(ctx, statement.up_to, "UP TO")
    order_by: tuple[tuple[int, bool, bool], ...] = ()
    key: tuple[int, ...] = ()
    if statement.output == "within_timestamp_order_by":
        order_by = _within_order(ctx, statement, desc)
    elif statement.output.startswith("envelope"):
        key = tuple(_key_column(desc, name, statement) for name in statement.key)
    output = output_desc(desc, statement.output, key, progress)
    return p.SubscribePlan(
        relation, desc, output, as_of, up_to, snapshot, progress, statement.output, order_by, key, from_id
    )


def _flag(value: object, name: str) -> bool:
    if value is None:
        return True
    text = str(value).lower()
    if text in ("true", "on", "1", "t"):
        return True
    if text in ("false", "off", "0", "f"):
        return False
    raise SqlError("22023", f"invalid {name}: cannot use value as boolean")


def _key_column(desc: RelationDesc, name: str, statement: st.Subscribe) -> int:
    found = [i for i, n in enumerate(desc.names) if n == name]
    if not found:
        raise SqlError("42703", f'column "{name}" does not exist')
    if len(found) > 1:
        raise SqlError("42702", f'column reference "{name}" is ambiguous')
    return found[0]


def _within_order(ctx: PlanContext, statement: st.Subscribe, desc: RelationDesc) -> tuple[tuple[int, bool, bool], ...]:
    names = ("mz_diff", *desc.names)
    out: list[tuple[int, bool, bool]] = []
    for item in statement.order_by:
        nulls_last = not item.desc if item.nulls_first is None else not item.nulls_first
        node = item.expr
        if isinstance(node, ast.Name) and len(node.parts) >= 1 and node.parts[-1] in names:
            found = [i for i, n in enumerate(names) if n == node.parts[-1]]
            if len(found) > 1:
                raise SqlError("42702", f'column reference "{node.parts[-1]}" is ambiguous')
            out.append((found[0] - 1, item.desc, nulls_last))
        elif isinstance(node, ast.Number) and node.text.isdigit():
            n = int(node.text)
            if not 1 <= n <= len(names):
                raise SqlError("42P10", f"column reference {n} in ORDER BY clause is out of range (1 - {len(names)})")
            out.append((n - 2, item.desc, nulls_last))
        elif isinstance(node, ast.Name):
            raise SqlError("42703", f'column "{".".join(node.parts)}" does not exist', position=node.pos + 1)
        else:
            raise SqlError("0A000", "invalid ORDER BY in SUBSCRIBE WITHIN TIMESTAMP ORDER BY: must be a column")
    return tuple(out)


def output_desc(desc: RelationDesc, output: str, key: tuple[int, ...], progress: bool) -> RelationDesc:
    """The columns a client sees."""
    from mzlite.repr.types import TEXT

    names = ["mz_timestamp"]
    columns = [ColumnType(ScalarType("numeric", precision=39, scale=0), False)]
    if progress:
        names.append("mz_progressed")
        columns.append(ColumnType(BOOL, False))
    own = list(zip(desc.names, desc.typ.columns))

    def add(name: str, typ: ColumnType) -> None:
        names.append(name)
        columns.append(typ)

    if output == "diffs" or output == "within_timestamp_order_by":
        add("mz_diff", ColumnType(INT8, progress))
        for name, column in own:
            add(name, ColumnType(column.scalar, column.nullable or progress))
    else:
        add("mz_state", ColumnType(TEXT, progress))
        for i in key:
            add(desc.names[i], ColumnType(desc.typ.columns[i].scalar, desc.typ.columns[i].nullable or progress))
        rest = [(n, c) for i, (n, c) in enumerate(own) if i not in key]
        if output == "envelope_debezium":
            for prefix in ("before", "after"):
                for name, column in rest:
                    add(f"{prefix}_{name}", ColumnType(column.scalar))
        else:
            for name, column in rest:
                add(name, ColumnType(column.scalar))
    return RelationDesc(tuple(names), RelationType(tuple(columns)))


# ---- COPY


def plan_copy(ctx: PlanContext, statement: st.Copy) -> p.Plan:
    format_ = _copy_format(statement)
    if statement.direction == "from":
        if statement.target != "stdin":
            raise unsupported(f"COPY FROM {statement.target}")
        return _copy_from(ctx, statement, format_)
    if statement.target != "stdout":
        raise unsupported("COPY TO a file")
    if statement.statement is not None:
        from adapter.sql.plan.statement import plan_in

        inner = plan_in(ctx, statement.statement)
        assert isinstance(inner, p.SelectPlan | p.SubscribePlan)
        return dataclasses.replace(inner, copy_to=format_)
    assert statement.table is not None
    query = ast.Query(ast.TableBody(statement.table, statement.pos))
    if statement.columns is not None:
        items = tuple(ast.SelectItem(ast.Name((c,), statement.pos)) for c in statement.columns)
        query = ast.Query(ast.Select(items, (ast.TableRef(statement.table, None, None, statement.pos),)))
    return dataclasses.replace(finish_select(ctx, plan_query(ctx, query, [])), copy_to=format_)


def _copy_format(statement: st.Copy) -> p.CopyFormat:
    known: dict[str, object] = {}
    for name, value in statement.options:
        if name not in ("format", "delimiter", "null", "header", "quote", "escape"):
            raise SqlError("42601", f"invalid COPY option: {name.upper()}")
        known[name] = value
    format_ = str(known.get("format", "text")).lower()
    if format_ not in ("text", "csv", "binary"):
        raise SqlError("22023", f"unknown FORMAT: {format_}")

    def char(name: str) -> str | None:
        value = known.get(name)
        if value is None:
            return None
        if len(str(value)) != 1:
            raise SqlError("22023", f"COPY {name} must be a single one-byte character")
        return str(value)

    null = known.get("null")
    header = "header" in known and _flag(known["header"], "HEADER")
    return p.CopyFormat(
        format_, char("delimiter"), None if null is None else str(null), header, char("quote"), char("escape")
    )


def _copy_from(ctx: PlanContext, statement: st.Copy, format_: p.CopyFormat) -> p.Plan:
    from adapter.sql.plan.dml import target_columns, target_table

    assert statement.table is not None
    table = target_table(ctx, statement.table, statement.pos, "insert into")
    columns = target_columns(table, statement.columns, statement.pos)
    assert table.desc is not None
    types = tuple(table.desc.typ.columns[c].scalar for c in columns)
    return p.CopyFromPlan(table.id, columns, types, format_, table.defaults)


# ---- EXPLAIN


def plan_explain(ctx: PlanContext, statement: st.Explain) -> p.Plan:
    from adapter.sql.plan.statement import plan_in

    if statement.kind == "analyze":
        from adapter.sql.plan.analyze import plan_analyze

        return plan_analyze(ctx, statement)
    if statement.kind == "timestamp":
        assert isinstance(statement.statement, st.SelectStatement)
        select = plan_select_statement(ctx, statement.statement)
        assert isinstance(select, p.SelectPlan)
        return p.ExplainTimestampPlan(statement.format or "text", select)
    stage = statement.stage or "physical"
    if statement.kind == "filter_pushdown":
        stage = "filter_pushdown"
    format_ = statement.format or "text"
    verbose = format_.startswith("verbose ")
    format_ = format_.removeprefix("verbose ")
    if format_ == "dot":
        raise unsupported("EXPLAIN ... AS DOT")
    if statement.target is not None:
        kind, name = statement.target
        item = ctx.resolve(name, statement.pos)
        shown = {"materialized view": "materialized-view", "view": "view", "index": "index"}[kind]
        if item.kind != shown:
            raise SqlError("42809", f"Expected {item.name.item} to be a {kind}, not a {item.kind}")
        return p.ExplainPlan(stage, format_, item.id, statement.options, None, verbose, statement.replan)
    assert statement.statement is not None
    raw: str | None = None
    if stage == "raw" and isinstance(
        statement.statement, st.SelectStatement | st.CreateView | st.CreateMaterializedView
    ):
        from adapter.sql.plan.printing import relation_text

        planned = plan_query(ctx, statement.statement.query, [])
        raw = relation_text(planned)
    inner = plan_in(ctx, statement.statement)
    return p.ExplainPlan(stage, format_, inner, statement.options, raw, verbose, statement.replan)
