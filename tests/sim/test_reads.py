"""Random interleavings of controller, multiplexer and both runtimes: every answer is checked against a model.

The model of a table is the list of its commits; a read of it at t is their sum up to t. Clients index tables, read them
by look-up, scan and one-shot dataflow, cancel, drop; replicas come, crash and go; time passes. At the end of a run
everything is dropped and nothing may be left: no hold, point, trace, reader, peek or dataflow.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import Counter
from typing import Any

import numpy as np
import pytest

from compute.client import replica as replica_module
from compute.client.controller import ReplicaConfig
from compute.client.errors import ReadHoldInsufficient
from compute.client.holds import ReadHold
from compute.plan.description import (
    DataflowClass,
    DataflowDescription,
    IndexDesc,
    IndexExport,
    IndexImport,
    MaterializedViewSink,
    SinkExport,
    SourceImport,
    SubscribeSink,
)
from compute.protocol.command import IndexTarget, PersistTarget
from compute.protocol.response import (
    PeekCanceled,
    PeekError,
    PeekResponse,
    PeekRows,
    SubscribeBatch,
    SubscribeDropped,
)
from mzlite.expr.mfp import MapFilterProject
from mzlite.expr.relation import RowSetFinishing
from mzlite.expr.scalar import Ref
from mzlite.repr.datum import column_to_datums, encode_datum
from mzlite.repr.encode import decode_updates
from mzlite.repr.errors import decode_error
from mzlite.repr.ids import ClusterId, GlobalId, ReplicaId, transient, user
from mzlite.repr.types import INT8, ColumnType, RelationDesc, RelationType
from mzlite.repr.updates import Updates, concat_updates, updates_from_rows
from tests.sim.cluster import Simulation

TYPES = (INT8, INT8)
RELATION = RelationType((ColumnType(INT8, False), ColumnType(INT8, False)))
CLUSTER = ClusterId("c")
SEEDS = int(os.environ.get("MZLITE_SIM_SEEDS", "60"))
Row = tuple[int, int]


class Table:
    def __init__(self, id: GlobalId) -> None:
        self.id = id
        self.shard = f"shard-{id}"
        self.commits: list[tuple[int, Row, int]] = []
        self.upper = 0

    def at(self, ts: int) -> Counter[Row]:
        total: Counter[Row] = Counter()
        for time, row, diff in self.commits:
            if time <= ts:
                total[row] += diff
        return Counter({row: n for row, n in total.items() if n})


class View:
    """A materialized view of a table, with its rows' columns as they are."""

    def __init__(self, id: GlobalId, table: Table, as_of: int) -> None:
        self.id = id
        self.shard = f"view-{id}"
        self.table = table
        self.as_of = as_of


class Feed:
    """A subscribe to a table: what has arrived, and how far it is complete."""

    def __init__(self, table: Table, as_of: int) -> None:
        self.table = table
        self.upper: int | None = as_of
        self.rows: Counter[Row] = Counter()

    def arrived(self, batch: SubscribeBatch | SubscribeDropped) -> None:
        if isinstance(batch, SubscribeDropped):
            return
        assert batch.error is None
        assert batch.lower == self.upper, f"batches do not abut: {batch.lower} after {self.upper}"
        if batch.updates is not None:
            self.rows.update(rows_of_updates(decode_updates(batch.updates)))
            self.rows = Counter({row: n for row, n in self.rows.items() if n})
        self.upper = batch.upper
        assert self.upper is not None
        assert self.rows == self.table.at(self.upper - 1)


class Read:
    """A peek under way. own: a transient index that was made for it."""

    def __init__(self, future: asyncio.Future[PeekResponse], expected: Counter[Row], cancelled: bool = False) -> None:
        self.future = future
        self.expected = expected
        self.cancelled = cancelled
        self.target = GlobalId("")


class Client:
    """Everything that outsiders do, at random."""

    def __init__(self, sim: Simulation, workers: int, interactive: bool) -> None:
        self.sim = sim
        self.random = sim.random
        self.controller = sim.controller
        self.config = ReplicaConfig(workers, interactive)
        self.tables: list[Table] = []
        self.indexes: dict[GlobalId, Table] = {}
        self.reads: dict[str, Read] = {}
        self.holds: list[ReadHold] = []
        self.views: list[View] = []
        self.feeds: dict[GlobalId, Feed] = {}
        sim.shards.on_upper = self.shard_moved
        self.next_id = 1
        self.next_replica = 1
        self.checked = 0

    def id(self) -> int:
        self.next_id += 1
        return self.next_id

    # -- what may happen

    def create_table(self) -> None:
        if len(self.tables) < 3:
            table = Table(user(self.id()))
            self.tables.append(table)
            self.sim.shards.shard(table.shard)
            self.controller.register_storage_collection(table.id, table.shard)
            self.write(table)

    def commit(self) -> None:
        if self.tables:
            self.write(self.random.choice(self.tables))

    def write(self, table: Table) -> None:
        ts = max(table.upper, self.sim.clock_ms)
        present = list(table.at(ts).elements())
        rows: list[tuple[Row, int]] = []
        for _ in range(self.random.randrange(4)):
            if present and self.random.random() < 0.4:
                row = present.pop(self.random.randrange(len(present)))
                rows.append((row, -1))
            else:
                rows.append(((self.random.randrange(5), self.random.randrange(100)), 1))
        parts = [updates_from_rows(TYPES, [row], ts, diff) for row, diff in rows]
        lower, table.upper = table.upper, ts + 1
        assert self.sim.shards.append(table.shard, lower, table.upper, concat_updates(parts) if parts else None)
        table.commits.extend((ts, row, diff) for row, diff in rows)
        self.controller.storage_frontier(table.id, table.upper)

    def pass_time(self) -> None:
        self.sim.clock_ms += self.random.choice((1, 10, 700, 1500))

    def create_index(self) -> None:
        if not self.tables or len(self.indexes) >= 5:
            return
        table = self.random.choice(self.tables)
        id = user(self.id())
        others = [i for i, t in self.indexes.items() if t is table]
        sources: dict[GlobalId, SourceImport] = {}
        imports: dict[GlobalId, IndexImport] = {}
        if others and self.random.random() < 0.5:
            other = self.random.choice(others)
            as_of = self.controller.frontiers(other)[0]
            imports[other] = IndexImport(IndexDesc(table.id, (Ref(0),)), RELATION)
        else:
            as_of = self.controller.frontiers(table.id)[0]
            sources[table.id] = SourceImport(table.shard, RELATION)
        assert as_of is not None
        export = IndexExport(IndexDesc(table.id, (Ref(0),)), RELATION)
        self.controller.create_dataflow(
            CLUSTER, DataflowDescription(f"index {id}", sources, imports, (), {id: export}, {}, as_of)
        )
        self.indexes[id] = table

    def drop_index(self) -> None:
        if self.indexes:
            id = self.random.choice(list(self.indexes))
            del self.indexes[id]
            self.controller.drop_collection(id)

    def _readable(self, id: GlobalId) -> int:
        """A time that can be read: somewhere from since to a little beyond upper."""
        since, upper = self.controller.frontiers(id)
        assert since is not None and upper is not None
        return self.random.randrange(since, max(upper, since) + 2)

    def peek(self) -> None:
        if not self.indexes:
            return
        id, table = self.random.choice(list(self.indexes.items()))
        ts = self._readable(id)
        hold = self.controller.acquire_hold(id, ts) if self.random.random() < 0.3 else None
        self._read(IndexTarget(id), table, ts, hold)

    def one_shot(self) -> None:
        """A read through a dataflow of its own, dropped as soon as the peek is on its way."""
        if not self.indexes:
            return
        id, table = self.random.choice(list(self.indexes.items()))
        ts = self._readable(id)
        own = transient(self.id())
        desc = IndexDesc(table.id, (Ref(0),) if self.random.random() < 0.5 else (Ref(1),))
        dataflow = DataflowDescription(
            "one shot",
            {},
            {id: IndexImport(IndexDesc(table.id, (Ref(0),)), RELATION)},
            (),
            {own: IndexExport(desc, RELATION)},
            {},
            ts,
            ts + 1,
            DataflowClass.ONE_SHOT_READ,
        )
        self.controller.create_dataflow(CLUSTER, dataflow)
        if self.random.random() < 0.9:
            self._read(IndexTarget(own), table, ts, None, lookup=False)
        self.controller.drop_collection(own)

    def _read(
        self, target: IndexTarget | PersistTarget, table: Table, ts: int, hold: ReadHold | None, lookup: bool = True
    ) -> None:
        expected = table.at(ts)
        constraints = None
        if lookup and self.random.random() < 0.5:
            key = self.random.randrange(5)
            constraints = ((encode_datum(INT8, key),),)
            expected = Counter({row: n for row, n in expected.items() if row[0] == key})
        uuid = f"peek-{self.id()}"
        future = self.controller.peek(
            CLUSTER,
            target,
            uuid=uuid,
            timestamp=ts,
            mfp=MapFilterProject.identity(2),
            finishing=RowSetFinishing(project=(0, 1)),
            literal_constraints=constraints,
            hold=hold,
        )
        if ts >= table.upper:
            # Commits before ts may still come: the answer is known only then.
            self.reads[uuid] = Read(future, Counter())
            self.reads[uuid].expected = _Later(table, ts, constraints)  # type: ignore[assignment]
        else:
            self.reads[uuid] = Read(future, expected)
        self.reads[uuid].target = target.id

    def cancel(self) -> None:
        if self.reads:
            uuid = self.random.choice(list(self.reads))
            self.reads[uuid].cancelled = True
            self.controller.cancel_peek(uuid)

    def hold(self) -> None:
        if self.holds and self.random.random() < 0.6:
            self.holds.pop(self.random.randrange(len(self.holds))).release()
        elif self.indexes:
            self.holds.append(self.controller.acquire_hold(self.random.choice(list(self.indexes))))

    def shard_moved(self, shard: str, upper: int | None) -> None:
        for view in self.views:
            if view.shard == shard:
                self.controller.storage_frontier(view.id, upper)

    def _source(self, table: Table) -> tuple[dict[GlobalId, SourceImport], dict[GlobalId, IndexImport], int]:
        """The table for a dataflow: through one of its indexes, or from its shard; and from when on."""
        indexes = [i for i, t in self.indexes.items() if t is table]
        if indexes and self.random.random() < 0.5:
            index = self.random.choice(indexes)
            since = self.controller.frontiers(index)[0]
            assert since is not None
            return {}, {index: IndexImport(IndexDesc(table.id, (Ref(0),)), RELATION)}, since
        since = self.controller.frontiers(table.id)[0]
        assert since is not None
        return {table.id: SourceImport(table.shard, RELATION)}, {}, since

    def create_view(self) -> None:
        if not self.tables or len(self.views) >= 2:
            return
        table = self.random.choice(self.tables)
        sources, imports, as_of = self._source(table)
        view = View(user(self.id()), table, as_of)
        shard = self.sim.shards.shard(view.shard)
        shard.upper = shard.since = as_of
        self.views.append(view)
        self.controller.register_storage_collection(view.id, view.shard, since=as_of, upper=as_of)
        sink = SinkExport(table.id, RelationDesc(("a", "b"), RELATION), MaterializedViewSink(view.shard))
        self.controller.create_dataflow(
            CLUSTER, DataflowDescription(f"view {view.id}", sources, imports, (), {}, {view.id: sink}, as_of)
        )

    def drop_view(self) -> None:
        if self.views:
            view = self.views.pop(self.random.randrange(len(self.views)))
            self.check_view(view)
            for uuid, read in self.reads.items():
                if read.target == view.id:  # what is never written now would be waited for
                    read.cancelled = True
                    self.controller.cancel_peek(uuid)
            self.controller.drop_collection(view.id)
            self.controller.drop_storage_collection(view.id)

    def check_view(self, view: View) -> None:
        shard = self.sim.shards.shard(view.shard)
        upper = shard.upper
        assert upper is not None
        if upper > view.as_of:
            at = self.random.randrange(max(view.as_of, shard.since), upper)
            total: Counter[Row] = Counter()
            for part in shard.parts:
                total.update(rows_of_updates(part.filter(part.time <= np.uint64(at))))
            assert Counter({row: n for row, n in total.items() if n}) == view.table.at(at), (view.id, at)
            self.checked += 1

    def read_view(self) -> None:
        if self.views:
            view = self.random.choice(self.views)
            ts = self._readable(view.id)
            self._read(PersistTarget(view.id, view.shard, RELATION), view.table, ts, None, lookup=False)

    def subscribe(self) -> None:
        if not self.tables or len(self.feeds) >= 2:
            return
        table = self.random.choice(self.tables)
        sources, imports, as_of = self._source(table)
        id = transient(self.id())
        sink = SinkExport(table.id, RelationDesc(("a", "b"), RELATION), SubscribeSink())
        self.controller.create_dataflow(
            CLUSTER, DataflowDescription("feed", sources, imports, (), {}, {id: sink}, as_of)
        )
        feed = self.feeds[id] = Feed(table, as_of)
        self.controller.on_subscribe(id, feed.arrived)

    def unsubscribe(self) -> None:
        if self.feeds:
            id = self.random.choice(list(self.feeds))
            del self.feeds[id]
            self.controller.drop_collection(id)

    def crash(self) -> None:
        live = [p for p in self.sim.orchestrator.live() if not p.survives]
        if live:
            fate = self.sim.orchestrator.crash if self.random.random() < 0.3 else self.sim.orchestrator.lose_connection
            fate(self.random.choice(live))

    def replicas(self) -> None:
        existing = list(self.controller.replicas(CLUSTER))
        if existing and (len(existing) > 1 or self.random.random() < 0.1):
            self.controller.drop_replica(CLUSTER, self.random.choice(existing))
        else:
            self.controller.create_replica(CLUSTER, ReplicaId(f"r{self.next_replica}"), self.config)
            self.next_replica += 1

    def stall(self) -> None:
        """The reader's socket is full for a while."""
        for processes in self.sim.orchestrator.live():
            for sim in processes.replica.workers:
                sim.to_twin.backlogged = self.random.random() < 0.2

    # -- checks

    def check_reads(self) -> None:
        for uuid, read in list(self.reads.items()):
            if not read.future.done():
                continue
            del self.reads[uuid]
            response = read.future.result()
            if isinstance(response, PeekCanceled):
                assert read.cancelled, uuid
                continue
            assert not isinstance(response, PeekError), decode_error(response.error)
            expected = read.expected.now() if isinstance(read.expected, _Later) else read.expected
            assert rows_of(response) == expected, uuid
            self.checked += 1


class _Later:
    """What a read will have to answer once its time is complete."""

    def __init__(self, table: Table, ts: int, constraints: Any) -> None:
        self.table = table
        self.ts = ts
        self.constraints = constraints

    def now(self) -> Counter[Row]:
        rows = self.table.at(self.ts)
        if self.constraints is None:
            return rows
        return Counter({row: n for row, n in rows.items() if encode_datum(INT8, row[0]) == self.constraints[0][0]})


def rows_of_updates(updates: Updates) -> Counter[Row]:
    total: Counter[Row] = Counter()
    if len(updates):
        a, b = (column_to_datums(INT8, c) for c in updates.columns)
        for row, diff in zip(zip(a, b), updates.diff.tolist()):
            total[row] += diff
    return total


def rows_of(response: PeekResponse) -> Counter[Row]:
    assert isinstance(response, PeekRows)
    total = rows_of_updates(decode_updates(response.rows)) if response.rows else Counter()
    return Counter({row: n for row, n in total.items() if n})


def assert_nothing_left(sim: Simulation) -> None:
    for processes in sim.orchestrator.live():
        for worker in processes.replica.workers:
            left = {k: v for k, v in worker.worker.leftovers().items() if v}
            assert not left, (worker.role, left)
            assert worker.storage.open_count == 0
            if worker.worker.publisher is not None:
                assert worker.worker.publisher.leftovers() == 0, worker.role
            if worker.worker.registry is not None:
                assert worker.worker.registry.counts == (0, 0, 0), worker.role
            if worker.exchange is not None:
                assert worker.exchange.open_count == 0


async def scenario(seed: int, workers: int, interactive: bool) -> int:
    sim = Simulation(seed)
    controller = sim.controller
    controller.create_cluster(CLUSTER)
    violations: list[bytes] = []
    controller.on_status(
        CLUSTER,
        lambda replica, status: violations.append(status.payload) if status.kind == "protocol_violation" else None,
    )
    controller.create_replica(CLUSTER, ReplicaId("r0"), ReplicaConfig(workers, interactive))
    client = Client(sim, workers, interactive)
    rare = [client.crash, client.replicas, client.stall, client.hold]
    common = [
        client.create_table,
        client.commit,
        client.commit,
        client.pass_time,
        client.create_index,
        client.drop_index,
        client.peek,
        client.peek,
        client.peek,
        client.one_shot,
        client.one_shot,
        client.cancel,
        client.create_view,
        client.drop_view,
        client.read_view,
        client.subscribe,
        client.unsubscribe,
    ]
    for _ in range(sim.random.randrange(50, 250)):
        choice = sim.random.random()
        if choice < 0.03:
            sim.random.choice(rare)()
        elif choice < 0.25:
            with contextlib.suppress(ReadHoldInsufficient):  # an index may go away under the client's feet
                sim.random.choice(common)()
        else:
            for _ in range(sim.random.randrange(12)):
                await sim.act()
        client.check_reads()
    # Let everything that was asked be answered ...
    for _ in range(3):
        await asyncio.sleep(0.001)
    sim.orchestrator.forget_orphans()
    for processes in sim.orchestrator.live():
        for worker in processes.replica.workers:
            worker.to_twin.backlogged = False
    if not controller.replicas(CLUSTER):
        controller.create_replica(CLUSTER, ReplicaId("last"), client.config)
    sim.clock_ms += 10_000
    for table in client.tables:
        client.write(table)
    for _ in range(4):
        await sim.settle()
        await asyncio.sleep(0.001)
    client.check_reads()
    assert not client.reads, f"unanswered: {list(client.reads)}"
    for view in client.views:
        assert sim.shards.shard(view.shard).upper == view.table.upper
        client.check_view(view)
    for feed in client.feeds.values():
        assert feed.upper == feed.table.upper
    # ... and everything be dropped.
    for hold in client.holds:
        hold.release()
    while client.views:
        client.drop_view()
    while client.feeds:
        client.unsubscribe()
    for id in list(client.indexes):
        controller.drop_collection(id)
    await sim.settle()
    for table in client.tables:
        controller.drop_storage_collection(table.id)
    await sim.settle()
    assert_nothing_left(sim)
    assert not violations, violations
    assert all(s.readers == {} for s in sim.shards.shards.values())
    dropped = {shard for shard, since in sim.since_log if since is None and shard.startswith("shard")}
    assert dropped == {t.shard for t in client.tables}
    controller.drop_cluster(CLUSTER)
    return client.checked


@pytest.mark.parametrize("interactive", [True, False], ids=["two-runtimes", "solo"])
@pytest.mark.parametrize("workers", [1, 2])
def test_random_interleavings(workers: int, interactive: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replica_module, "RESTART_DELAY_S", 0.0)
    monkeypatch.setattr(replica_module, "MAX_RESTART_DELAY_S", 0.0)
    checked = 0
    first = int(os.environ.get("MZLITE_SIM_FIRST", "0"))
    for seed in range(first, first + SEEDS):
        try:
            checked += asyncio.run(scenario(seed, workers, interactive))
        except BaseException as error:
            error.add_note(f"seed {seed}, {workers} workers, {'two runtimes' if interactive else 'solo'}")
            raise
    assert checked > SEEDS // 2
