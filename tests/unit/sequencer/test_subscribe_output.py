"""The forms of a SUBSCRIBE's rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from adapter.coord.result import Batch
from adapter.sequencer.subscribe_output import SubscribeOutput
from adapter.sql.plans import SubscribePlan
from mzlite.expr.relation import Get
from mzlite.repr.datum import column_from_datums, column_to_datums
from mzlite.repr.ids import user
from mzlite.repr.types import BOOL, INT4, INT8, MZ_TIMESTAMP, TEXT, ColumnType, RelationDesc, RelationType, ScalarType
from mzlite.repr.updates import Updates


def desc(*columns: tuple[str, ScalarType]) -> RelationDesc:
    return RelationDesc(tuple(n for n, _ in columns), RelationType(tuple(ColumnType(t) for _, t in columns)))


AB = desc(("a", INT4), ("b", INT4))
GET = Get(user(1), AB.typ)


def updates(*rows: tuple[int, int, int, int]) -> Updates:
    """(time, diff, a, b)"""
    columns = tuple(column_from_datums(INT4, [r[i] for r in rows]) for i in (2, 3))
    return Updates(columns, np.array([r[0] for r in rows], np.uint64), np.array([r[1] for r in rows], np.int64))


def shown(output: RelationDesc, batch: Batch | None) -> list[tuple[Any, ...]]:
    assert batch is not None
    return list(zip(*[column_to_datums(c.scalar, col) for c, col in zip(output.typ.columns, batch.columns)]))


def test_plain_rows_come_by_time_and_cancel_within_one() -> None:
    out = desc(("mz_timestamp", MZ_TIMESTAMP), ("mz_diff", INT8), ("a", INT4), ("b", INT4))
    plan = SubscribePlan(GET, AB, out)
    rows = SubscribeOutput(plan).rows(updates((7, 1, 1, 1), (5, 1, 2, 2), (5, 1, 3, 3), (5, -1, 3, 3)))
    assert shown(out, rows) == [(5, 1, 2, 2), (7, 1, 1, 1)]
    assert SubscribeOutput(plan).rows(updates((5, 1, 3, 3), (5, -1, 3, 3))) is None


def test_progress_rows_have_only_a_time() -> None:
    out = desc(("mz_timestamp", MZ_TIMESTAMP), ("mz_progressed", BOOL), ("mz_diff", INT8), ("a", INT4), ("b", INT4))
    output = SubscribeOutput(SubscribePlan(GET, AB, out, with_progress=True))
    assert shown(out, output.progress(9)) == [(9, True, None, None, None)]
    assert shown(out, output.rows(updates((5, 1, 2, 3)))) == [(5, False, 1, 2, 3)]


def test_order_within_a_timestamp() -> None:
    out = desc(("mz_timestamp", MZ_TIMESTAMP), ("mz_diff", INT8), ("a", INT4), ("b", INT4))
    plan = SubscribePlan(
        GET, AB, out, output="within_timestamp_order_by", order_by=((1, True, True), (-1, False, True))
    )
    rows = SubscribeOutput(plan).rows(updates((5, 1, 1, 10), (5, 1, 2, 30), (5, -1, 3, 30), (6, 1, 4, 99)))
    assert shown(out, rows) == [(5, -1, 3, 30), (5, 1, 2, 30), (5, 1, 1, 10), (6, 1, 4, 99)]


def test_upsert_tells_the_new_value_or_the_deletion_of_a_key() -> None:
    out = desc(("mz_timestamp", MZ_TIMESTAMP), ("mz_state", TEXT), ("a", INT4), ("b", INT4))
    plan = SubscribePlan(GET, AB, out, output="envelope_upsert", key_columns=(0,))
    rows = SubscribeOutput(plan).rows(
        updates((5, 1, 1, 10), (5, -1, 2, 20), (5, 1, 2, 21), (5, -1, 3, 30), (5, 1, 4, 1), (5, 1, 4, 2))
    )
    assert shown(out, rows) == [
        (5, "upsert", 1, 10),
        (5, "upsert", 2, 21),
        (5, "delete", 3, None),
        (5, "key_violation", 4, None),
    ]


def test_debezium_tells_before_and_after() -> None:
    out = desc(("mz_timestamp", MZ_TIMESTAMP), ("mz_state", TEXT), ("a", INT4), ("before_b", INT4), ("after_b", INT4))
    plan = SubscribePlan(GET, AB, out, output="envelope_debezium", key_columns=(0,))
    rows = SubscribeOutput(plan).rows(updates((5, 1, 1, 10), (5, -1, 2, 20), (5, 1, 2, 21), (5, -1, 3, 30)))
    assert shown(out, rows) == [(5, "insert", 1, None, 10), (5, "upsert", 2, 20, 21), (5, "delete", 3, 30, None)]
