"""Both runtimes under commands: placement, drops, compaction, cancellation, and one side lagging behind the other."""

from __future__ import annotations

import itertools

import msgspec
import pytest

from compute.client.placement import Role
from compute.plan.description import DataflowClass, DataflowDescription, IndexDesc, IndexExport
from compute.plan.lower import lower
from compute.protocol.command import AllowCompaction, CancelPeek, CreateDataflow, Schedule, UpdateConfiguration
from compute.protocol.response import PeekCanceled, PeekError, Status, SubscribeDropped
from compute.render.dataflow import Dataflow
from compute.runtime.reports import decode_gauges
from mzlite.expr import relation as r
from mzlite.expr.scalar import Call, Literal, Ref
from mzlite.repr.datum import encode_datum
from mzlite.repr.errors import decode_error
from mzlite.repr.ids import GlobalId
from mzlite.repr.timestamp import MAX
from mzlite.repr.types import INT8, ColumnType, RelationType
from tests.unit.compute.dataflows import index, over_index, peek, subscribe
from tests.unit.compute.runtime.world import World

U5, U6, T7 = GlobalId("u5"), GlobalId("u6"), GlobalId("t7")
BOTH = pytest.mark.parametrize("interactive", [True, False], ids=["two-runtimes", "solo"])


def drop(*ids: GlobalId) -> list[AllowCompaction]:
    return [AllowCompaction(id, None) for id in ids]


@BOTH
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_each_row_is_read_once(interactive: bool, workers: int) -> None:
    w = World(interactive, workers)
    w.write([(i, "x") for i in range(40)], 0)
    w.send(CreateDataflow(index(U5)), Schedule(U5), peek(U5, "direct"))
    w.send(CreateDataflow(over_index(T7, U5, column=1, one_shot=True)), Schedule(T7), peek(T7, "through"))
    w.settle()
    assert w.keys("direct") == w.keys("through") == list(range(40))
    assert len(w.answers("direct")) == workers
    w.send(*drop(T7, U5))
    w.settle()
    w.assert_empty()


def test_who_renders_what() -> None:
    w = World()
    w.write([], 0)
    w.send(
        CreateDataflow(index(U5)),
        CreateDataflow(over_index(T7, U5, one_shot=True)),
        CreateDataflow(msgspec.structs.replace(subscribe("t8"), until=5)),
        CreateDataflow(msgspec.structs.replace(over_index("t9", U5), as_of=0)),
    )
    w.settle()
    assert w.rendered(U5) == w.rendered("t8") == w.rendered("t9") == [Role.MAINTENANCE]
    assert w.rendered(T7) == [Role.INTERACTIVE]


def test_with_one_shot_dataflows_on_maintenance_the_answers_are_the_same() -> None:
    w = World()
    w.write([(1, "a"), (2, "b")], 0)
    moved = msgspec.structs.replace(over_index(T7, U5, column=1, one_shot=True), cls=DataflowClass.MAINTAINED)
    w.send(CreateDataflow(index(U5)), Schedule(U5), CreateDataflow(moved), Schedule(T7), peek(T7, "p"))
    w.settle()
    assert w.rendered(T7) == [Role.MAINTENANCE]
    assert w.keys("p") == [1, 2]
    assert [role for role, _, said in w.said if getattr(said, "uuid", None) == "p"] == [Role.INTERACTIVE]


@BOTH
def test_a_drop_is_answered_once_with_the_empty_frontier(interactive: bool) -> None:
    w = World(interactive)
    w.write([(1, "a")], 0)
    w.send(CreateDataflow(index(U5)), Schedule(U5))
    w.settle()
    w.send(*drop(U5), *drop(U5))
    w.settle()
    assert w.frontiers(U5) == [0, 1, None]
    assert w.violations() == []


def test_an_unknown_id_is_reported_by_both_runtimes() -> None:
    w = World()
    w.send(AllowCompaction(GlobalId("u404"), 5))
    w.settle()
    assert [role for role, _ in w.violations()] == [Role.MAINTENANCE, Role.INTERACTIVE]


def test_a_reader_that_is_created_and_dropped_while_the_other_side_compacts() -> None:
    w = World()
    w.write([(1, "a")], 0)
    w.send(CreateDataflow(index(U5)), Schedule(U5))
    w.settle()
    w.write([(2, "b")], 9)
    # Interactive stands still while maintenance goes through everything that follows.
    w.send(
        CreateDataflow(over_index(T7, U5, 0, column=1, one_shot=True)), Schedule(T7), *drop(T7), AllowCompaction(U5, 9)
    )
    w.run(w.maintenance)
    w.settle()
    w.send(*drop(U5))
    w.settle()
    w.assert_empty()


def test_the_publisher_holds_for_a_reader_that_has_seen_nothing_yet() -> None:
    w = World()
    w.write([(1, "a")], 3)
    w.send(CreateDataflow(index(U5, as_of=3)), Schedule(U5))
    w.run(w.maintenance)
    w.write([(1, "a")], 8, diff=-1)
    w.send(CreateDataflow(over_index(T7, U5, 3, column=1, one_shot=True)), Schedule(T7), peek(T7, "p", 3))
    w.send(AllowCompaction(U5, 8))
    w.run(w.maintenance)
    w.settle()
    assert w.keys("p") == [1]


def test_the_hold_gap_closes_and_gauges_say_so() -> None:
    w = World()
    w.write([(1, "a")], 0)
    w.send(CreateDataflow(index(U5)), Schedule(U5))
    w.settle()
    for time in range(10, 60, 10):
        w.write([(time, "x")], time)
        w.send(AllowCompaction(U5, time))
    w.run(w.maintenance)
    w.send(UpdateConfiguration({"report_gauges": True}))
    w.run(w.maintenance)
    lagging = [decode_gauges(r.payload) for _, _, r in w.said if isinstance(r, Status) and r.kind == "gauges"]
    assert [(g.hold_gap_ms, g.held_count) for g in lagging] == [(50, 1)]
    w.settle()
    w.said.clear()
    w.send(UpdateConfiguration({"report_gauges": True}))
    w.settle()
    caught_up = [decode_gauges(r.payload) for _, _, r in w.said if isinstance(r, Status) and r.kind == "gauges"]
    assert {(g.hold_gap_ms, g.held_count) for g in caught_up} == {(0, 0)}


def test_dropping_the_index_under_a_read_that_has_its_batches() -> None:
    w = World()
    w.write([(1, "a"), (2, "b")], 0)
    w.send(CreateDataflow(index(U5)), Schedule(U5))
    w.settle()
    w.send(CreateDataflow(over_index(T7, U5, column=1, one_shot=True)))
    w.settle()
    w.send(*drop(U5))
    w.settle()
    w.send(Schedule(T7), peek(T7, "p"))
    w.settle()
    assert w.keys("p") == [1, 2]
    w.send(*drop(T7))
    w.settle()
    w.assert_empty()


@BOTH
def test_a_shared_arrangement_lives_as_long_as_an_index_over_it(interactive: bool) -> None:
    w = World(interactive)
    w.write([(1, "a")], 0)
    w.send(CreateDataflow(index(U5)), Schedule(U5), CreateDataflow(over_index(U6, U5)), Schedule(U6))
    w.settle()
    w.send(*drop(U5))
    w.write([(2, "b")], 4)
    w.settle()
    w.send(peek(U6, "p", 4))
    w.settle()
    assert w.keys("p") == [1, 2]
    w.send(*drop(U6))
    w.settle()
    w.assert_empty()


@BOTH
def test_a_peek_waits_and_can_be_cancelled(interactive: bool) -> None:
    w = World(interactive, workers=2)
    w.write([(1, "a")], 0)
    w.send(CreateDataflow(index(U5)), peek(U5, "parked", 0), peek(U5, "later", 7))
    w.settle()
    assert w.answers("parked") == []  # not scheduled: nothing is known
    w.send(CancelPeek("parked"), CancelPeek("unknown"))
    w.settle()
    assert w.answers("parked") == [PeekCanceled("parked")] * 2
    w.send(Schedule(U5), CancelPeek("parked"))
    w.settle()
    assert len(w.answers("parked")) == 2
    assert w.answers("later") == []
    w.write([(2, "b")], 7)
    w.settle()
    assert w.keys("later") == [1, 2]
    w.send(CancelPeek("later"), *drop(U5))
    w.settle()
    assert len(w.answers("later")) == 2
    w.assert_empty()


@BOTH
def test_a_peek_before_since_is_an_error_that_names_both_times(interactive: bool) -> None:
    w = World(interactive)
    w.write([(1, "a")], 9)
    w.send(CreateDataflow(index(U5, as_of=9)), Schedule(U5), peek(U5, "p", 4))
    w.settle()
    (answer,) = w.answers("p")
    assert isinstance(answer, PeekError)
    message = decode_error(answer.error).message
    assert "compaction frontier 9" in message and "attempted time 4" in message


def test_an_import_before_since_ends_the_process() -> None:
    w = World()
    w.write([(1, "a")], 9)
    w.send(CreateDataflow(index(U5, as_of=9)), Schedule(U5), CreateDataflow(over_index(T7, U5, 4, one_shot=True)))
    with pytest.raises(AssertionError, match="since"):
        w.settle()


def test_an_import_without_snapshot_shows_only_what_follows() -> None:
    w = World()
    w.write([(1, "a")], 5)
    read = over_index(T7, U5, 5, column=1, one_shot=True)
    imports = {id: msgspec.structs.replace(i, with_snapshot=False) for id, i in read.index_imports.items()}
    w.send(
        CreateDataflow(index(U5, as_of=5)),
        Schedule(U5),
        CreateDataflow(msgspec.structs.replace(read, index_imports=imports)),
        Schedule(T7),
        peek(T7, "p", 5),
    )
    w.settle()
    assert w.keys("p") == []


def test_reads_at_the_greatest_time_wait_for_sealed_inputs() -> None:
    w = World()
    w.write([(1, "a")], 0)
    read = msgspec.structs.replace(over_index(T7, U5, 0, column=1), as_of=MAX)
    w.send(CreateDataflow(index(U5)), Schedule(U5), CreateDataflow(read), Schedule(T7))
    w.send(peek(T7, "through", MAX), peek(U5, "direct", MAX))
    w.settle()
    assert w.answers("through") == w.answers("direct") == []
    w.shards.append("table", 1, None, None)
    w.settle()
    assert w.keys("through") == w.keys("direct") == [1]
    assert w.rendered(T7) == [Role.MAINTENANCE]


@BOTH
def test_a_divergent_read_can_be_dropped_and_leaves_the_worker_idle(interactive: bool) -> None:
    w = World(interactive)
    w.write([(1, "a")], 0)
    w.settle()
    relation = RelationType((ColumnType(INT8, False),))
    one = Literal(encode_datum(INT8, 1), INT8)
    step = r.Project(r.Map(r.Get(0, relation), (Call("add_int8", (Ref(0), one), INT8),)), (1,))
    start = r.Constant((((encode_datum(INT8, 0),), 1),), relation)
    endless = r.LetRec((0,), (r.Union((start, step)),), (relation,), r.Get(0, relation))
    read = DataflowDescription(
        "endless",
        {},
        {},
        lower([(GlobalId("t6"), endless)], {}),
        {T7: IndexExport(IndexDesc(GlobalId("t6"), (Ref(0),)), relation)},
        {},
        0,
        1,
        DataflowClass.ONE_SHOT_READ,
        recursive=True,
    )
    w.send(CreateDataflow(read), Schedule(T7), peek(T7, "p"), CreateDataflow(index(U5)), Schedule(U5))
    w.run_for(300)
    assert w.answers("p") == []
    w.send(peek(U5, "meanwhile"))
    w.run_for(300)
    assert w.keys("meanwhile") == [1]
    w.send(CancelPeek("p"), *drop(T7))
    w.settle()  # comes to rest
    assert w.answers("p") == [PeekCanceled("p")]
    w.send(*drop(U5))
    w.settle()
    w.assert_empty()


@BOTH
@pytest.mark.parametrize("workers", [1, 2])
def test_subscribe_batches_abut_and_end_with_the_drop(interactive: bool, workers: int) -> None:
    w = World(interactive, workers)
    w.write([(1, "a")], 2)
    w.send(CreateDataflow(subscribe("t8", 2)), Schedule(GlobalId("t8")))
    w.settle()
    w.write([(2, "b")], 5)
    w.settle()
    for ordinal in range(workers):
        mine = [b for _, o, b in w.said if o == ordinal and b in w.batches("t8")]
        assert [(a.upper, b.lower) for a, b in itertools.pairwise(mine)] == [(3, 3)] * (len(mine) - 1)
    w.send(*drop(GlobalId("t8")))
    w.settle()
    assert sum(isinstance(r, SubscribeDropped) for _, _, r in w.said) == workers
    assert w.frontiers("t8") == []
    w.assert_empty()


@BOTH
@pytest.mark.parametrize("workers", [1, 2])
def test_a_bug_met_by_a_read_fails_the_read_and_nothing_else(
    interactive: bool, workers: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    step = Dataflow.step

    def broken(self: Dataflow) -> bool:
        if T7 in self.exports and self.context.worker == workers - 1:
            raise ZeroDivisionError("in the engine")
        return step(self)

    monkeypatch.setattr(Dataflow, "step", broken)
    w = World(interactive, workers)
    w.write([(1, "a")], 0)
    w.send(CreateDataflow(index(U5)), Schedule(U5), CreateDataflow(over_index(T7, U5, column=1, one_shot=True)))
    w.send(peek(T7, "p"), Schedule(T7), peek(U5, "q"))
    w.settle()
    errors = w.answers("p")
    assert len(errors) == workers and all(isinstance(e, PeekError) for e in errors)
    w.send(peek(T7, "again"))
    w.settle()
    assert len(w.answers("again")) == workers
    assert w.keys("q") == [1]
    w.send(*drop(T7, U5))
    w.settle()
    w.assert_empty()
    assert "in the engine" in capsys.readouterr().err


def test_a_bug_met_by_an_index_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Dataflow) -> bool:
        raise ZeroDivisionError

    monkeypatch.setattr(Dataflow, "step", broken)
    w = World()
    w.write([(1, "a")], 0)
    w.send(CreateDataflow(index(U5)), Schedule(U5))
    with pytest.raises(ZeroDivisionError):
        w.settle()
