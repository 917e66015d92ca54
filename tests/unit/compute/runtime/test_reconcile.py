"""What a new connection still wants is kept; decided from commands alone, so that every worker decides alike."""

from __future__ import annotations

import msgspec
import pytest

from compute.plan.description import DataflowClass
from compute.protocol.command import (
    AllowCompaction,
    ComputeCommand,
    CreateDataflow,
    CreateInstance,
    Hello,
    InitializationComplete,
    Schedule,
)
from compute.protocol.history import ComputeCommandHistory
from compute.protocol.response import PeekRows
from compute.runtime.reconcile import IncompatibleInstance, reconcile
from mzlite.repr.ids import GlobalId
from tests.unit.compute.dataflows import index, over_index, peek, subscribe
from tests.unit.compute.runtime.world import World

U5, U6, T8 = GlobalId("u5"), GlobalId("u6"), GlobalId("t8")
INSTANCE = CreateInstance({})


def kept(old: list[ComputeCommand], new: list[ComputeCommand]) -> set[str]:
    plan = reconcile(ComputeCommandHistory([INSTANCE, *old]), [INSTANCE, *new, InitializationComplete()])
    names = {id for d in plan.kept for id in d.export_ids()}
    assert names.isdisjoint(plan.drop)
    return {str(n) for n in names}


def test_an_equal_dataflow_is_kept_at_the_same_or_a_later_time() -> None:
    old: list[ComputeCommand] = [CreateDataflow(index(U5, as_of=3))]
    assert kept(old, [CreateDataflow(index(U5, as_of=3))]) == {U5}
    assert kept(old, [CreateDataflow(index(U5, as_of=7))]) == {U5}
    assert kept(old, [CreateDataflow(index(U5, as_of=2))]) == set()


def test_class_and_what_was_known_of_inputs_do_not_matter() -> None:
    old = over_index("t7", U5, one_shot=True)
    new = msgspec.structs.replace(old, cls=DataflowClass.MAINTAINED)
    base = CreateDataflow(index(U5))
    assert kept([base, CreateDataflow(old)], [base, CreateDataflow(new)]) == {"u5", "t7"}


def test_another_plan_or_name_is_rebuilt() -> None:
    assert kept([CreateDataflow(index(U5))], [CreateDataflow(index(U5, shard="other"))]) == set()


def test_compacted_beyond_the_new_time() -> None:
    old: list[ComputeCommand] = [CreateDataflow(index(U5)), AllowCompaction(U5, 9)]
    assert kept(old, [CreateDataflow(index(U5, as_of=5))]) == set()
    assert kept(old, [CreateDataflow(index(U5, as_of=9))]) == {U5}


def test_a_subscribe_is_never_kept() -> None:
    assert kept([CreateDataflow(subscribe(T8))], [CreateDataflow(subscribe(T8))]) == set()


def test_what_reads_a_rebuilt_index_is_rebuilt() -> None:
    old: list[ComputeCommand] = [CreateDataflow(index(U5)), CreateDataflow(over_index(U6, U5))]
    assert kept(old, [CreateDataflow(index(U5)), CreateDataflow(over_index(U6, U5))]) == {U5, U6}
    assert kept(old, [CreateDataflow(index(U5, shard="other")), CreateDataflow(over_index(U6, U5))]) == set()


def test_an_instance_that_differs_ends_the_process() -> None:
    with pytest.raises(IncompatibleInstance):
        reconcile(
            ComputeCommandHistory([INSTANCE]), [CreateInstance({}, logging_interval_ms=5), InitializationComplete()]
        )


@pytest.mark.parametrize("interactive", [True, False])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_new_connection(interactive: bool, workers: int) -> None:
    w = World(interactive, workers)
    w.write([(1, "a")], 1)
    for dataflow in (index(U5, as_of=1), over_index(U6, U5, 1), index("u7", as_of=1), subscribe(T8, 1)):
        w.send(CreateDataflow(dataflow), *[Schedule(id) for id in dataflow.export_ids()])
    w.send(peek(U5, "pending", 99))
    w.settle()
    built = len([r for r in w.rendered(U5)])
    w.said.clear()
    w.shards.append("other", 0, 4, None)
    w.send(
        Hello("second"),
        INSTANCE,
        CreateDataflow(index(U5, as_of=1)),
        Schedule(U5),
        CreateDataflow(over_index(U6, U5, 1, column=1)),
        Schedule(U6),
        InitializationComplete(),
    )
    w.settle()
    w.write([(2, "b")], 99)
    w.send(peek(U5, "kept", 99), peek(U6, "rebuilt", 99))
    w.settle()
    assert w.answers("pending") == []
    assert w.keys("kept") == w.keys("rebuilt") == [1, 2]
    assert all(isinstance(a, PeekRows) for a in w.answers("kept"))
    assert built and w.rendered(U5) == []  # not built again
    assert len(w.rendered(U6)) == workers
    assert w.frontiers(U5)[0] == 2 and w.frontiers("u7") == []  # frontiers are told anew, of the dropped nothing
    assert w.batches(T8) == []
    w.send(AllowCompaction(U6, None), AllowCompaction(U5, None))
    w.settle()
    w.assert_empty()
