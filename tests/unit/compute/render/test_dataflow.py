"""Dataflows as their worker drives them: rounds, temporal filters, errors, sinks, re-exports, drops."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from compute.plan.description import (
    DataflowDescription,
    IndexDesc,
    IndexExport,
    IndexImport,
    MaterializedViewSink,
    SinkExport,
    SourceImport,
    SubscribeSink,
)
from compute.plan.lower import lower
from compute.render.context import RenderContext
from compute.render.dataflow import Dataflow
from compute.trace.peek import peek_arrangement
from mzlite.expr import relation as r
from mzlite.expr.mfp import MapFilterProject
from mzlite.expr.scalar import Aggregate, Call, Literal, Ref, Unmaterializable
from mzlite.expr.typecheck import typ
from mzlite.repr.datum import encode_datum
from mzlite.repr.encode import decode_updates
from mzlite.repr.errors import SqlError, decode_error
from mzlite.repr.fixed import FixedColumn
from mzlite.repr.types import BOOL, INT8, MZ_TIMESTAMP, ColumnType, RelationDesc, RelationType
from mzlite.repr.updates import Updates
from tests.oracle.harness import exported, read, rows_of, run

TABLE = RelationType((ColumnType(INT8), ColumnType(INT8)))
GET = r.Get("u1", TABLE)  # type: ignore[arg-type]
NOW = Unmaterializable("mz_now", MZ_TIMESTAMP)


def updates(*rows: tuple[int, int, int, int]) -> Updates:
    """(a, b, time, diff)"""
    a, b, time, diff = (np.array(c) for c in zip(*rows))
    return Updates(
        (FixedColumn(a.astype(np.int64)), FixedColumn(b.astype(np.int64))),
        time.astype(np.uint64),
        diff.astype(np.int64),
    )


def describe(plan: r.Mir, *, sinks: Any = None, as_of: int = 0, until: int | None = None) -> DataflowDescription:
    objects: Any = lower([("u9", plan)], {}, single_time=until == as_of + 1)  # type: ignore[list-item]
    exports: Any = {} if sinks else {"u10": IndexExport(IndexDesc("u9", (Ref(0),)), typ(plan))}  # type: ignore[arg-type]
    sources: Any = {"u1": SourceImport("s", TABLE)}
    return DataflowDescription("test", sources, {}, objects, exports, sinks or {}, as_of, until)


def feed(dataflow: Dataflow, upper: int | None, *rows: tuple[int, int, int, int]) -> None:
    source: Any = dataflow.inputs["u1"]  # type: ignore[index]
    source.push(updates(*rows) if rows else None, upper)
    run(dataflow)


def contents(dataflow: Dataflow, plan: r.Mir, at: int) -> Counter[tuple[Any, ...]]:
    source = exported(dataflow).source
    return read(source.chains(), source.layout, typ(plan), at)


def test_nothing_is_complete_before_the_inputs_are() -> None:
    dataflow = Dataflow(describe(GET, as_of=5), RenderContext())
    assert dataflow.frontier == 5 and not dataflow.step()
    feed(dataflow, 5, (1, 1, 3, 1))
    assert dataflow.frontier == 5 and not dataflow.hydrated
    feed(dataflow, 7, (2, 2, 6, 1))
    assert dataflow.frontier == 7 and dataflow.hydrated
    assert exported(dataflow).frontier == 7
    assert contents(dataflow, GET, 5) == Counter({(1, 1): 1})
    assert contents(dataflow, GET, 6) == Counter({(1, 1): 1, (2, 2): 1})


def test_until_ends_the_dataflow() -> None:
    dataflow = Dataflow(describe(GET, as_of=2, until=3), RenderContext())
    feed(dataflow, 9, (1, 1, 0, 1), (2, 2, 5, 1))
    assert dataflow.frontier is None and exported(dataflow).frontier is None
    assert contents(dataflow, GET, 2) == Counter({(1, 1): 1})


def until_b(op: str) -> r.Mir:
    """Rows whose second column, read as a time, compares with mz_now()."""
    time = Call("cast_int8_mz_timestamp", (Ref(1),), MZ_TIMESTAMP)
    return r.Filter(GET, (Call(op, (NOW, time), BOOL),))


@pytest.mark.parametrize(
    ("op", "present"),
    [
        ("lt_mz_timestamp", [3, 4]),
        ("lte_mz_timestamp", [3, 4, 5]),
        ("gte_mz_timestamp", [5, 6, 7]),
        ("gt_mz_timestamp", [6, 7]),
        ("eq_mz_timestamp", [5]),
    ],
)
def test_rows_come_and_go_with_time_alone(op: str, present: list[int]) -> None:
    plan = until_b(op)
    dataflow = Dataflow(describe(plan), RenderContext())
    feed(dataflow, 4, (1, 5, 3, 1))
    for upper in (5, 6, 7, 8):
        feed(dataflow, upper)
    assert [t for t in range(8) if contents(dataflow, plan, t)] == present


def test_a_retracted_row_takes_its_future_along() -> None:
    plan = until_b("gte_mz_timestamp")
    dataflow = Dataflow(describe(plan), RenderContext())
    feed(dataflow, 2, (1, 5, 1, 1))
    feed(dataflow, 4, (1, 5, 3, -1))
    feed(dataflow, 9)
    assert all(not contents(dataflow, plan, t) for t in range(9))


def test_an_unsupported_use_of_time_is_an_error() -> None:
    bad = Call("or", (Call("is_null", (Ref(0),), BOOL), Call("lt_mz_timestamp", (NOW, NOW), BOOL)), BOOL)
    with pytest.raises(SqlError, match="temporal"):
        describe(r.Filter(GET, (bad,)))


QUOTIENT = r.Map(GET, (Call("div_int8", (Ref(0), Ref(1)), INT8),))


def test_an_error_lasts_as_long_as_its_row() -> None:
    dataflow = Dataflow(describe(QUOTIENT), RenderContext())
    feed(dataflow, 1, (6, 3, 0, 1))
    feed(dataflow, 2, (1, 0, 1, 1))
    feed(dataflow, 3, (1, 0, 2, -1))
    assert contents(dataflow, QUOTIENT, 0) == Counter({(6, 3, 2): 1})
    with pytest.raises(SqlError, match="division by zero"):
        contents(dataflow, QUOTIENT, 1)
    assert contents(dataflow, QUOTIENT, 2) == Counter({(6, 3, 2): 1})


def test_errors_pass_through_every_operator() -> None:
    plan = r.Threshold(
        r.Union(
            (r.Reduce(QUOTIENT, (Ref(2),), (Aggregate("max_int8", (Ref(0),), INT8),)), r.Negate(r.Project(GET, (0, 1))))
        )
    )
    dataflow = Dataflow(describe(plan), RenderContext())
    feed(dataflow, 1, (1, 0, 0, 1))
    with pytest.raises(SqlError, match="division by zero"):
        contents(dataflow, plan, 0)
    feed(dataflow, 2, (1, 0, 1, -1))
    assert contents(dataflow, plan, 1) == Counter()


def test_the_recursion_limit_is_an_error_while_it_is_exceeded() -> None:
    one = RelationType((ColumnType(INT8),))
    grow = r.Map(r.Get(1, one), (Call("add_int8", (Ref(0), Literal(encode_datum(INT8, 1), INT8)), INT8),))
    value = r.Reduce(r.Union((r.Project(GET, (0,)), r.Project(grow, (1,)))), (Ref(0),), ())
    plan = r.LetRec((1,), (value,), (one,), r.Get(1, one), 5)
    dataflow = Dataflow(describe(plan), RenderContext())
    feed(dataflow, 1)
    assert contents(dataflow, plan, 0) == Counter()
    feed(dataflow, 2, (1, 1, 1, 1))
    with pytest.raises(SqlError, match="recursion limit 5"):
        contents(dataflow, plan, 1)
    feed(dataflow, 3, (1, 1, 2, -1))
    assert contents(dataflow, plan, 2) == Counter()


def test_a_divergent_recursion_can_be_dropped() -> None:
    one = RelationType((ColumnType(INT8),))
    grow = r.Map(r.Get(1, one), (Call("add_int8", (Ref(0), Literal(encode_datum(INT8, 1), INT8)), INT8),))
    value = r.Reduce(r.Union((r.Project(GET, (0,)), r.Project(grow, (1,)))), (Ref(0),), ())
    dataflow = Dataflow(describe(r.LetRec((1,), (value,), (one,), r.Get(1, one))), RenderContext())
    source: Any = dataflow.inputs["u1"]  # type: ignore[index]
    source.push(updates((1, 1, 0, 1)), 1)
    for _ in range(20):
        assert dataflow.step()
    dataflow.drop()
    assert not dataflow.step() and not dataflow.can_step() and dataflow.nbytes == 0


def subscribed(**options: Any) -> tuple[Dataflow, list[Any]]:
    sent: list[Any] = []

    def subscribe(id: str, lower: int, upper: int | None, payload: bytes | None, error: bytes | None) -> None:
        rows = [] if payload is None else flat(decode_updates(payload))
        sent.append((lower, upper, rows if error is None else decode_error(error).message))

    desc = RelationDesc(("a", "b"), TABLE)
    up_to = options.pop("up_to", None)
    sinks = {"t1": SinkExport("u9", desc, SubscribeSink(up_to), **options)}  # type: ignore[arg-type]
    return Dataflow(describe(GET, sinks=sinks, as_of=1), RenderContext(subscribe=subscribe)), sent


def flat(u: Updates) -> list[tuple[int, ...]]:
    """Columns, time, diff of each update."""
    lists = [*(c.values.tolist() for c in u.columns if isinstance(c, FixedColumn)), u.time.tolist(), u.diff.tolist()]
    return [tuple(row) for row in zip(*lists)]


def test_a_subscribe_sends_contiguous_batches_in_time_order() -> None:
    dataflow, sent = subscribed()
    feed(dataflow, 2, (1, 1, 0, 1))
    feed(dataflow, 5, (2, 2, 4, 1), (1, 1, 3, -1), (7, 7, 3, 1), (7, 7, 3, -1))
    assert sent == [(1, 2, [(1, 1, 1, 1)]), (2, 5, [(1, 1, 3, -1), (2, 2, 4, 1)])]


def test_a_subscribe_without_snapshot_and_with_an_end() -> None:
    dataflow, sent = subscribed(with_snapshot=False, up_to=4)
    feed(dataflow, 2, (1, 1, 0, 1))
    feed(dataflow, 6, (2, 2, 3, 1), (3, 3, 5, 1))
    feed(dataflow, 7, (4, 4, 6, 1))
    assert sent == [(1, 2, []), (2, None, [(2, 2, 3, 1)])]


def test_a_materialized_view_hands_each_rounds_changes_over() -> None:
    sent: list[Any] = []

    def append(id: str, shard: str, lower: int, upper: int | None, oks: Updates | None, errs: Updates | None) -> None:
        sent.append((shard, lower, upper, None if oks is None else flat(oks)))

    desc = RelationDesc(("a", "b"), TABLE)
    sinks = {"u5": SinkExport("u9", desc, MaterializedViewSink("mv"))}  # type: ignore[arg-type]
    dataflow = Dataflow(describe(GET, sinks=sinks), RenderContext(append=append))
    feed(dataflow, 1, (1, 1, 0, 1))
    feed(dataflow, 2)
    assert sent == [("mv", 0, 1, [(1, 1, 0, 1)]), ("mv", 1, 2, None)]


def test_a_refreshing_view_moves_at_its_times() -> None:
    sent: list[Any] = []

    def append(id: str, shard: str, lower: int, upper: int | None, oks: Updates | None, errs: Updates | None) -> None:
        sent.append((lower, upper, None if oks is None else flat(oks)))

    desc = RelationDesc(("a", "b"), TABLE)
    sinks = {"u5": SinkExport("u9", desc, MaterializedViewSink("mv"), refresh_every=(10, 0))}  # type: ignore[arg-type]
    dataflow = Dataflow(describe(GET, sinks=sinks), RenderContext(append=append))
    for upper in (1, 4, 11, 12):
        feed(dataflow, upper, (upper, 0, upper - 1, 1))
    written = [row for _, _, rows in sent for row in rows or []]
    assert written == [(1, 0, 0, 1), (4, 0, 10, 1), (11, 0, 10, 1)]
    assert dataflow.exports["u5"].frontier == 20  # type: ignore[index]


def test_an_import_exported_again_is_the_same_trace() -> None:
    first = Dataflow(describe(GET), RenderContext())
    feed(first, 1, (1, 2, 0, 1))
    source = exported(first).source
    key = (Ref(0),)
    again = DataflowDescription(
        "again",
        {},
        {"u10": IndexImport(IndexDesc("u9", key), TABLE)},  # type: ignore[dict-item,arg-type]
        (),
        {"u11": IndexExport(IndexDesc("u9", key), TABLE)},  # type: ignore[dict-item,arg-type]
        {},
        0,
    )
    second = Dataflow(again, RenderContext(trace=lambda id, desc: source))
    run(second)
    export: Any = second.exports["u11"]  # type: ignore[index]
    assert export.source is source and export.frontier == 1
    exported(first).allow_compaction(None)
    first.drop()
    feed_source: Any = source
    assert feed_source.since == 0
    mfp = MapFilterProject.identity(2)
    rows = next(
        x for x in peek_arrangement(source.chains(), source.layout, 0, mfp, r.RowSetFinishing()) if x is not None
    )
    assert rows_of(rows, TABLE) == Counter({(1, 2): 1})
