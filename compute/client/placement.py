"""Placement: which runtime renders a dataflow. A pure function of role and class, so nothing has to remember it.

The adapter tags a dataflow, the controller asserts that the tag fits the shape, every runtime sees every command and
asks `renders`. Source: Materialize's interactive runtime, generation B.
"""

from __future__ import annotations

import enum

import msgspec

from compute.plan.description import DataflowClass, DataflowDescription
from mzlite.repr.ids import is_transient
from mzlite.repr.timestamp import step_forward


class Role(enum.Enum):
    """SOLO: the only runtime of its replica. Otherwise a replica has one MAINTENANCE and one INTERACTIVE runtime."""

    SOLO = "solo"
    MAINTENANCE = "maintenance"
    INTERACTIVE = "interactive"


def renders(role: Role, cls: DataflowClass) -> bool:
    """Does a runtime of this role build a dataflow of this class? Exactly one runtime of a replica does."""
    match role:
        case Role.SOLO:
            return True
        case Role.MAINTENANCE:
            return cls is DataflowClass.MAINTAINED
        case Role.INTERACTIVE:
            return cls is DataflowClass.ONE_SHOT_READ


def answers_peeks(role: Role) -> bool:
    return role is not Role.MAINTENANCE


def is_single_time(dataflow: DataflowDescription) -> bool:
    """Needed at as_of only. Timestamp.MAX has no successor, so a read there is not: its `until` is empty."""
    return dataflow.until is not None and dataflow.until == step_forward(dataflow.as_of)


def class_fits_shape(dataflow: DataflowDescription) -> bool:
    """A one-shot read has only transient index exports and a single time; anything may be maintained."""
    if dataflow.cls is DataflowClass.MAINTAINED:
        return True
    return (
        is_single_time(dataflow) and all(is_transient(id) for id in dataflow.export_ids()) and not dataflow.sink_exports
    )


def place(dataflow: DataflowDescription, *, interactive_dataflows: bool) -> DataflowDescription:
    """Assert the shape, then apply the switch: with it off, one-shot reads are rendered by maintenance instead."""
    assert class_fits_shape(dataflow), f"dataflow {dataflow.name}: class {dataflow.cls} does not fit its shape"
    if not interactive_dataflows and dataflow.cls is DataflowClass.ONE_SHOT_READ:
        return msgspec.structs.replace(dataflow, cls=DataflowClass.MAINTAINED)
    return dataflow
