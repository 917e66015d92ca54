"""A reader on another runtime's arrangement: what it takes over, and that it does not wait to be built."""

from __future__ import annotations

import pytest

from compute.client.placement import Role
from compute.protocol.command import CreateDataflow, Schedule
from tests.unit.compute.dataflows import index, over_index, peek
from tests.unit.compute.runtime.world import World

U5, T7, T8 = "u5", "t7", "t8"


@pytest.mark.parametrize("interactive", [True, False])
@pytest.mark.parametrize("as_of", [3, 5, 7, 9])
def test_a_batch_across_the_import_point_is_delivered_whole_and_once(interactive: bool, as_of: int) -> None:
    w = World(interactive)
    # All of it is there before anybody looks: the index takes it up in one go, with times on both sides of as_of.
    w.write([(1, "a"), (2, "b")], 3)
    w.write([(1, "a")], 5, -1)
    w.write([(3, "c")], 7)
    w.write([(2, "b")], 8, -1)
    w.write([], 9)
    w.send(CreateDataflow(index(U5)), Schedule(U5))
    w.settle()
    w.send(CreateDataflow(over_index(T7, U5, as_of, column=1)), Schedule(T7))
    w.send(CreateDataflow(over_index(T8, U5, as_of, column=1, one_shot=True)), Schedule(T8), peek(T8, "once", as_of))
    w.send(*(peek(T7, f"at {t}", t) for t in range(as_of, 10)))
    w.settle()
    then = {3: [1, 2], 4: [1, 2], 5: [2], 6: [2], 7: [2, 3], 8: [3], 9: [3]}
    assert w.keys("once") == then[as_of]
    assert {t: w.keys(f"at {t}") for t in range(as_of, 10)} == {t: then[t] for t in range(as_of, 10)}


@pytest.mark.parametrize("published", [0, 1, 2])
def test_a_read_is_built_in_command_order_whatever_is_published(published: int) -> None:
    """Two readers pair with two maintenance workers; so many of those have published when the readers build."""
    w = World(workers=2)
    w.write([(i, "x") for i in range(20)], 0)
    w.send(CreateDataflow(index(U5)), Schedule(U5))
    for sim in w.replica.runtimes[0][:published]:
        w.run(sim)
    w.send(
        CreateDataflow(over_index(T7, U5, column=1, one_shot=True)),
        CreateDataflow(over_index(T8, U5, column=0, one_shot=True)),
        *(Schedule(T8), Schedule(T7), peek(T7, "first"), peek(T8, "second")),
    )
    for sim in w.replica.runtimes[1]:
        w.run(sim)
    for id in (T7, T8):
        assert w.rendered(id) == [Role.INTERACTIVE] * 2
    assert not w.violations()
    w.settle()
    assert w.keys("first") == w.keys("second") == list(range(20))
