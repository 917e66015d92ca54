"""Literal key values as columns: canonical bytes need only the layout of the stored column to be read."""

from __future__ import annotations

from collections.abc import Sequence

from mzlite.expr.relation import Datums
from mzlite.repr.column import Column
from mzlite.repr.datum import column_from_literals
from mzlite.repr.types import Layout, ScalarType

# A type of each layout; types of one layout share their canonical encoding.
_TYPES: dict[Layout, ScalarType] = {
    Layout.BOOL: ScalarType("bool"),
    Layout.I16: ScalarType("int2"),
    Layout.I32: ScalarType("int4"),
    Layout.I64: ScalarType("int8"),
    Layout.U16: ScalarType("uint2"),
    Layout.U32: ScalarType("uint4"),
    Layout.U64: ScalarType("uint8"),
    Layout.F32: ScalarType("float4"),
    Layout.F64: ScalarType("float8"),
    Layout.DATE: ScalarType("date"),
    Layout.TIME: ScalarType("time"),
    Layout.TIMESTAMP: ScalarType("timestamp"),
    Layout.INTERVAL: ScalarType("interval"),
    Layout.NUMERIC: ScalarType("numeric"),
    Layout.VAR: ScalarType("bytea"),
}


def key_columns(rows: Sequence[Datums], layouts: Sequence[Layout]) -> tuple[Column, ...]:
    """One column per key position."""
    return tuple(column_from_literals(_TYPES[layout], [r[i] for r in rows]) for i, layout in enumerate(layouts))
