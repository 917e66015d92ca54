"""Exactly one runtime renders a dataflow, and a class that does not fit its shape is refused."""

from __future__ import annotations

import msgspec
import pytest

from compute.client.placement import Role, class_fits_shape, is_single_time, place, renders
from compute.plan.description import DataflowClass
from mzlite.repr.timestamp import MAX
from tests.unit.compute.dataflows import index, over_index, subscribe

ONE_SHOT, MAINTAINED = DataflowClass.ONE_SHOT_READ, DataflowClass.MAINTAINED


@pytest.mark.parametrize("cls", list(DataflowClass))
@pytest.mark.parametrize("roles", [[Role.SOLO], [Role.MAINTENANCE, Role.INTERACTIVE]])
def test_exactly_one_runtime_renders(cls: DataflowClass, roles: list[Role]) -> None:
    assert sum(renders(role, cls) for role in roles) == 1


def test_one_shot_reads_run_on_interactive_only() -> None:
    assert renders(Role.INTERACTIVE, ONE_SHOT) and not renders(Role.INTERACTIVE, MAINTAINED)


def test_a_read_at_the_greatest_time_is_not_a_single_time() -> None:
    read = msgspec.structs.replace(over_index("t2", "u2", one_shot=True), as_of=MAX, until=None)
    assert not is_single_time(read)
    assert not class_fits_shape(read)
    assert class_fits_shape(msgspec.structs.replace(read, cls=MAINTAINED))


@pytest.mark.parametrize(
    "dataflow",
    [
        msgspec.structs.replace(over_index("u9", "u2", one_shot=True)),  # a durable export
        msgspec.structs.replace(over_index("t9", "u2", one_shot=True), until=5),  # several times
        msgspec.structs.replace(subscribe("t9"), cls=ONE_SHOT, until=1),  # a sink
    ],
)
def test_misfits_trip_the_assertion(dataflow: object) -> None:
    with pytest.raises(AssertionError, match="does not fit"):
        place(dataflow, interactive_dataflows=True)  # type: ignore[arg-type]


def test_the_switch_moves_one_shot_reads_to_maintenance() -> None:
    read = over_index("t2", "u2", one_shot=True)
    assert place(read, interactive_dataflows=True).cls is ONE_SHOT
    assert place(read, interactive_dataflows=False).cls is MAINTAINED
    assert place(index("u2"), interactive_dataflows=True).cls is MAINTAINED
