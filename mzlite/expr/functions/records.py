"""Records: ROW(...), field access, comparison forms."""

from __future__ import annotations

from typing import Any

from mzlite.expr.functions.text import value
from mzlite.repr.types import ColumnType, ScalarType, record_of


def row_type(args: tuple[ScalarType, ...]) -> ScalarType:
    """The anonymous record type of ROW(args): f1, f2, ..."""
    return record_of(tuple((f"f{i}", ColumnType(t)) for i, t in enumerate(args, 1)))


@value(
    "record",
    "variadic any -> record",
    strict=False,
    nullable="never",
    can_error=False,
    id="record",
    returns=row_type,
    display="row",
)
def _create(*fields: Any) -> tuple[Any, ...]:
    return fields


def _field_type(args: tuple[ScalarType, ...]) -> ScalarType:
    # Which field is a matter of the argument's value: the Call's own type says it.
    return ScalarType("text")


@value(
    "record_get",
    "record, int4 -> text",
    nullable="always",
    can_error=False,
    id="record_get",
    returns=_field_type,
)
def _get(record: tuple[Any, ...], index: int) -> Any:
    """Field number `index`, from 0."""
    return record[index]
