"""Result rows made in this process, of datums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adapter.coord.result import Batch, Rows
from mzlite.repr.datum import column_from_datums
from mzlite.repr.types import RelationDesc


def batch_of(desc: RelationDesc, rows: Sequence[Sequence[Any]]) -> Batch:
    columns = tuple(column_from_datums(c.scalar, [row[i] for row in rows]) for i, c in enumerate(desc.typ.columns))
    return Batch(columns, len(rows))


def constant_rows(desc: RelationDesc, rows: Sequence[Sequence[Any]], verb: str = "SELECT") -> Rows:
    return Rows(desc, [batch_of(desc, rows)], verb)
