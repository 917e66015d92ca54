"""At start: items from their SQL, then their dataflows again, in dependency order.

An index starts where its inputs can be read. A materialized view goes on from what its shard holds already: at the
shard's last complete time if its inputs are still readable there; the sink corrects the difference.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from adapter.catalog.builtin.relation import Builtin
from adapter.catalog.durable import ItemRecord
from adapter.catalog.initial import system_objects
from adapter.catalog.objects import (
    Details,
    IndexDetails,
    Item,
    MaterializedViewDetails,
    OtherDetails,
    SourceDetails,
    TableDetails,
    TypeDetails,
    ViewDetails,
)
from adapter.catalog.state import CatalogState, CatalogTransaction
from adapter.catalog.view import StateView
from adapter.sequencer.maintained import create_index_dataflow, create_view_dataflow, plan_index, plan_view
from adapter.sql import plans as p
from adapter.sql.parse import parse_statements
from adapter.transform import optimize_local
from compute.client.errors import ComputeError
from mzlite.expr import relation as r
from mzlite.repr.errors import SqlError

if TYPE_CHECKING:
    from adapter.coord.coordinator import Coordinator

log = logging.getLogger(__name__)


class BootSession:
    """The planner's session for stored SQL: its names are fully qualified, so nothing here decides anything."""

    database = "materialize"
    search_path: tuple[str, ...] = ("public",)
    cluster = "quickstart"
    user = "mz_system"

    def variable(self, name: str) -> str | None:
        return "on" if name.startswith(("enable_", "unsafe_")) else None

    def prepared_parameters(self, name: str) -> None:
        return None


def load_items(c: Coordinator, records: list[ItemRecord]) -> None:
    """Plan every stored item against those before it; one that has no meaning any more is left out, with a log entry."""
    tx = CatalogTransaction(c.state)
    session = BootSession()
    for record in records:
        try:
            details = plan_details(c, tx, record, session)
        except SqlError as error:
            log.error("cannot load %s %s: %s", record.kind, record.name, error)
            continue
        tx.put_item(
            Item(
                record.id,
                record.oid,
                record.schema_id,
                record.name,
                record.kind,  # type: ignore[arg-type]
                record.create_sql,
                record.owner,
                record.depends_on,
                details,
                None,
                record.retain_history_ms,
            )
        )
    c.state = tx.state


def plan_details(c: Coordinator, tx: CatalogTransaction, record: ItemRecord, session: BootSession) -> Details:
    from adapter.sql.plan import plan_statement

    (statement,) = parse_statements(record.create_sql)
    planned = plan_statement(statement, StateView(tx.state), session, ())
    plan = planned.plan
    match plan:
        case p.CreateTablePlan(desc=desc, defaults=defaults):
            assert record.shard is not None
            return TableDetails(desc, defaults, record.shard)
        case p.CreateViewPlan(desc=desc, mir=mir):
            return ViewDetails(desc, mir, optimize_local(mir))
        case p.CreateMaterializedViewPlan(desc=desc, mir=mir, not_null_assertions=non_null):
            assert record.shard is not None and record.cluster_id is not None
            return MaterializedViewDetails(
                desc,
                mir,
                optimize_local(mir),
                record.cluster_id,
                record.shard,
                non_null,
                record.refresh_at,
                record.refresh_every,
                record.initial_as_of,
            )
        case p.CreateIndexPlan(on=on, key=key):
            assert record.cluster_id is not None
            return IndexDetails(on, key, record.cluster_id)
        case p.CreateTypePlan(typ=typ):
            return TypeDetails(typ, typ.kind)
        case p.CreateSourcePlan(generator=generator, desc=source_desc, options=options):
            assert record.shard is not None and record.cluster_id is not None and source_desc is not None
            pairs = tuple((k, v or "") for k, v in options)
            return SourceDetails(source_desc, record.shard, record.cluster_id, generator, pairs)
        case _:
            return OtherDetails(record.kind)


def plan_builtin_view(builtin: Builtin) -> r.Mir:
    """The plan of a builtin view over logs."""
    from adapter.sql.plan import plan_statement

    assert builtin.sql is not None
    (statement,) = parse_statements(builtin.sql)
    tx = CatalogTransaction(CatalogState())
    system_objects(tx)
    plan = plan_statement(statement, StateView(tx.state), BootSession(), ()).plan
    assert isinstance(plan, p.SelectPlan), builtin.name
    wanted = [c.scalar.base() for c in builtin.desc.typ.columns]
    got = [c.scalar.base() for c in plan.desc.typ.columns]
    assert got == wanted, f"{builtin.name}: {got} is not {wanted}"
    project = plan.finishing.project
    mir = plan.mir if project == tuple(range(len(got))) else r.Project(plan.mir, project)
    return optimize_local(mir)


def start_dataflows(c: Coordinator) -> None:
    for item in list(c.state.items.values()):
        try:
            if isinstance(item.details, IndexDetails):
                create_index_dataflow(c, item, plan_index(c, item.id, item.details))
            elif isinstance(item.details, MaterializedViewDetails):
                create_view_dataflow(c, item, plan_view(c, item.id, item.details))
        except (ComputeError, SqlError) as error:
            log.error("cannot start %s %s: %s", item.kind, item.name, error)
