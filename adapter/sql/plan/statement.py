"""`plan_statement`: one case per kind of statement; the entry point of planning."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from adapter.sql import plans as p
from adapter.sql import statements as st
from adapter.sql.catalog_view import CatalogView, SessionView
from adapter.sql.plan import ddl, dml, reads, sessions, show
from adapter.sql.plan.context import PlanContext
from mzlite.expr.scalar import Literal
from mzlite.repr.errors import SqlError, unsupported
from mzlite.repr.types import TEXT, ScalarType


@dataclasses.dataclass(frozen=True, slots=True)
class Planned:
    """param_types: of every parameter. depends_on: catalog items that were resolved, in order."""

    plan: p.Plan
    param_types: tuple[ScalarType, ...]
    depends_on: tuple[str, ...] = ()
    uses_clock_or_session: frozenset[str] = frozenset()


def plan_statement(
    statement: st.Statement,
    catalog: CatalogView,
    session: SessionView,
    param_types: Sequence[ScalarType | None] = (),
    params: Sequence[Literal] | None = None,
) -> Planned:
    """What the statement means. param_types: types declared by the client; params: values, to plan for just these."""
    ctx = PlanContext(catalog, session, param_types, params)
    try:
        plan = plan_in(ctx, statement)
    except RecursionError:
        raise SqlError("54001", "statement is nested too deeply") from None
    types = _parameter_types(ctx, statement)
    return Planned(plan, types, tuple(ctx.depends_on), frozenset(ctx.used_unmaterializable))


def _parameter_types(ctx: PlanContext, statement: st.Statement) -> tuple[ScalarType, ...]:
    """Every parameter up to the highest that is used; an unused gap and an untyped one are text."""
    types = list(ctx.param_types)
    while len(types) < statement.parameter_count:
        types.append(None)
    out: list[ScalarType] = []
    for i, typ in enumerate(types):
        if (
            typ is None
            and i < statement.parameter_count
            and ctx.params is None
            and not isinstance(statement, st.Prepare | st.Declare)
        ):
            raise SqlError("42P18", f"unable to infer type for parameter ${i + 1}")
        out.append(TEXT if typ is None else typ)
    return tuple(out)


def plan_in(ctx: PlanContext, statement: st.Statement) -> p.Plan:
    rule = _RULES.get(type(statement))
    if rule is None:
        raise unsupported(statement.tag)
    return rule(ctx, statement)


def _unsupported(ctx: PlanContext, statement: st.Unsupported) -> p.Plan:
    raise unsupported(statement.what)


_RULES: dict[type, Callable[[PlanContext, Any], p.Plan]] = {
    st.SelectStatement: reads.plan_select_statement,
    st.Subscribe: reads.plan_subscribe,
    st.Explain: reads.plan_explain,
    st.Copy: reads.plan_copy,
    st.Insert: dml.plan_insert,
    st.Update: dml.plan_update,
    st.Delete: dml.plan_delete,
    st.CreateDatabase: ddl.plan_create_database,
    st.CreateSchema: ddl.plan_create_schema,
    st.CreateTable: ddl.plan_create_table,
    st.CreateView: ddl.plan_create_view,
    st.CreateMaterializedView: ddl.plan_create_materialized_view,
    st.CreateIndex: ddl.plan_create_index,
    st.CreateType: ddl.plan_create_type,
    st.CreateSource: ddl.plan_create_source,
    st.CreateCluster: sessions.plan_create_cluster,
    st.CreateClusterReplica: sessions.plan_create_cluster_replica,
    st.CreateRole: sessions.plan_create_role,
    st.Drop: sessions.plan_drop,
    st.Alter: sessions.plan_alter,
    st.Comment: sessions.plan_comment,
    st.Accepted: sessions.plan_accepted,
    st.Unsupported: _unsupported,
    st.Show: show.plan_show,
    st.ShowCreate: show.plan_show,
    st.ShowVariable: sessions.plan_show_variable,
    st.SetVariable: sessions.plan_set_variable,
    st.Begin: sessions.plan_begin,
    st.SetTransaction: sessions.plan_set_transaction,
    st.Commit: sessions.plan_commit,
    st.Rollback: sessions.plan_rollback,
    st.Prepare: sessions.plan_prepare,
    st.Execute: sessions.plan_execute,
    st.Deallocate: sessions.plan_deallocate,
    st.Declare: sessions.plan_declare,
    st.Fetch: sessions.plan_fetch,
    st.Close: sessions.plan_close,
    st.Discard: sessions.plan_discard,
}
