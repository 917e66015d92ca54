"""Small descriptions and values for tests of the runtimes."""

from __future__ import annotations

from collections.abc import Iterable

from compute.plan.description import (
    DataflowClass,
    DataflowDescription,
    IndexDesc,
    IndexExport,
    IndexImport,
    SinkExport,
    SourceImport,
    SubscribeSink,
)
from compute.protocol.command import IndexTarget, Peek
from mzlite.expr.mfp import MapFilterProject
from mzlite.expr.relation import RowSetFinishing
from mzlite.expr.scalar import Ref
from mzlite.repr.ids import GlobalId
from mzlite.repr.types import INT8, TEXT, ColumnType, RelationDesc, RelationType
from mzlite.repr.updates import Updates, updates_from_rows

TYPES = (INT8, TEXT)
RELATION = RelationType((ColumnType(INT8, False), ColumnType(TEXT, False)))
TABLE = GlobalId("u1")
KEY = IndexDesc(TABLE, (Ref(0),))


def index(id: str, as_of: int = 0, shard: str = "table", name: str = "index") -> DataflowDescription:
    """An index on the table's first column, built from its shard."""
    return DataflowDescription(
        name, {TABLE: SourceImport(shard, RELATION)}, {}, (), {GlobalId(id): IndexExport(KEY, RELATION)}, {}, as_of
    )


def over_index(id: str, source: str, as_of: int = 0, *, column: int = 0, one_shot: bool = False) -> DataflowDescription:
    """An index on a column of the table, read through another index. column 0: a re-export of that one."""
    export = IndexExport(IndexDesc(TABLE, (Ref(column),)), RELATION)
    return DataflowDescription(
        "over",
        {},
        {GlobalId(source): IndexImport(KEY, RELATION)},
        (),
        {GlobalId(id): export},
        {},
        as_of,
        as_of + 1 if one_shot else None,
        DataflowClass.ONE_SHOT_READ if one_shot else DataflowClass.MAINTAINED,
    )


def subscribe(id: str, as_of: int = 0) -> DataflowDescription:
    sink = SinkExport(TABLE, RelationDesc(("a", "b"), RELATION), SubscribeSink())
    return DataflowDescription(
        "subscribe", {TABLE: SourceImport("table", RELATION)}, {}, (), {}, {GlobalId(id): sink}, as_of
    )


def peek(id: str, uuid: str, timestamp: int = 0) -> Peek:
    return Peek(
        IndexTarget(GlobalId(id)), uuid, timestamp, MapFilterProject.identity(2), RowSetFinishing(project=(0, 1))
    )


def rows(values: Iterable[tuple[int, str]], time: int = 0, diff: int = 1) -> Updates:
    return updates_from_rows(TYPES, list(values), time, diff)
