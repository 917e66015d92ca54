"""Load generator sources: rows written to a shard by this process, through group commit like a table's.

COUNTER    1, 2, 3, … one a tick; with MAX CARDINALITY the oldest is retracted
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from adapter.catalog.objects import Item, SourceDetails
from adapter.catalog.state import CatalogTransaction
from adapter.coord.storage_link import durable
from adapter.sql import plans as p
from mzlite.repr.errors import SqlError
from mzlite.repr.ids import GlobalId
from mzlite.repr.text import parse_datum
from mzlite.repr.types import INT8, INTERVAL, ColumnType, RelationDesc, RelationType
from mzlite.repr.updates import concat_updates, updates_from_rows

if TYPE_CHECKING:
    from adapter.coord.coordinator import Coordinator
    from adapter.coord.session import Session

log = logging.getLogger(__name__)

COUNTER_DESC = RelationDesc(("counter",), RelationType((ColumnType(INT8, False),)))


class SourceSequencer:
    def __init__(self, coordinator: Coordinator) -> None:
        self._c = coordinator
        self._tasks: dict[GlobalId, asyncio.Task[None]] = {}

    async def create(self, session: Session, plan: p.CreateSourcePlan) -> None:
        c = self._c
        ddl = c.sequencer.ddl
        if plan.generator.lower() != "counter":
            raise SqlError("0A000", f"LOAD GENERATOR {plan.generator.upper()} not yet supported")
        schema_id = ddl.schema_id(session, plan.name)
        found = ddl.taken(c.state, schema_id, plan.name.item)
        if found is not None:
            if plan.if_not_exists:
                session.notice(f'source "{plan.name.item}" already exists, skipping', sqlstate="42P07")
                return
            raise SqlError("42P07", f'{found.kind} "{plan.name}" already exists')
        tx = CatalogTransaction(c.state)
        id = tx.item_id()
        cluster_id = plan.cluster if plan.cluster is not None else c.session_cluster(session).id
        desc = plan.desc if plan.desc is not None else COUNTER_DESC
        options = tuple((k.lower(), v or "") for k, v in plan.options)
        details = SourceDetails(desc, f"source-{id}", cluster_id, plan.generator.lower(), options)
        tick_ms(details)
        item = ddl.new_item(session, tx, plan.name.item, schema_id, "source", plan.create_sql, (), details, id=id)
        types = [col.scalar for col in desc.typ.columns]
        await durable(c.storage.create_shard_begin(details.shard, types, "table", since=c.oracle.read_ts()))
        await c.commit_catalog(tx)
        c.register_storage(item)
        c.controller.storage_frontier(item.id, c.storage.table_upper)
        self.run(item)

    def run(self, item: Item) -> None:
        """Start generating; at creation and at every start."""
        assert isinstance(item.details, SourceDetails)
        self._tasks[item.id] = asyncio.create_task(self._generate(item.id, item.details), name=f"source-{item.id}")

    def stop(self, id: GlobalId) -> None:
        task = self._tasks.pop(id, None)
        if task is not None:
            task.cancel()

    def stop_all(self) -> None:
        for id in list(self._tasks):
            self.stop(id)

    async def _generate(self, id: GlobalId, details: SourceDetails) -> None:
        c = self._c
        interval_s = tick_ms(details) / 1000
        limit = dict(details.options).get("max cardinality", "")
        keep = int(limit) if limit.isdigit() else None
        types = [col.scalar for col in details.desc.typ.columns]
        counter = self._resume(details)
        while True:
            counter += 1
            rows = updates_from_rows(types, [(counter,)], 0)
            if keep is not None and counter > keep:
                rows = concat_updates([rows, updates_from_rows(types, [(counter - keep,)], 0, -1)])
            try:
                await c.group_commit.write([(id, rows)], self)
            except SqlError:
                return  # dropped, or shutting down
            await asyncio.sleep(interval_s)

    def _resume(self, details: SourceDetails) -> int:
        """The last value written before a restart."""
        upper = self._c.storage.table_upper
        last = 0
        if upper > self._c.storage.since(details.shard):
            for part in self._c.storage.snapshot(details.shard, upper - 1):
                values = getattr(part.columns[0], "values", None)
                if values is not None and len(values):
                    last = max(last, int(values.max()))
        return last


def tick_ms(details: SourceDetails) -> float:
    text = dict(details.options).get("tick interval", "1s")
    interval = parse_datum(INTERVAL, text)
    ms: float = interval.days * 86_400_000 + interval.us / 1000
    if ms <= 0:
        raise SqlError("22023", "TICK INTERVAL must be positive")
    return ms
