"""Lowering: what is fused, what is looked up, what is refused."""

from __future__ import annotations

import pytest

from compute.plan.lir import LinearJoin, LirGet, LirJoin, LirLet, LirMfp, LirReduce, LirTopK, LirUnion
from compute.plan.lower import lower
from compute.plan.mfp_builder import MfpBuilder
from mzlite.expr import relation as r
from mzlite.expr.mfp import MapFilterProject
from mzlite.expr.scalar import Aggregate, Call, ColumnOrder, Literal, Ref, Unmaterializable
from mzlite.repr.datum import encode_datum
from mzlite.repr.errors import SqlError
from mzlite.repr.types import BOOL, INT8, MZ_TIMESTAMP, ColumnType, RelationType

TWO = RelationType((ColumnType(INT8), ColumnType(INT8)))
GET = r.Get("u1", TWO)  # type: ignore[arg-type]
ONE = Literal(encode_datum(INT8, 1), INT8)
NOW = Unmaterializable("mz_now", MZ_TIMESTAMP)


def plan(mir: r.Mir, single_time: bool = False) -> object:
    return lower([("u9", mir)], {}, single_time=single_time)[0][1]  # type: ignore[list-item]


def add(a: object, b: object) -> Call:
    return Call("add_int8", (a, b), INT8)  # type: ignore[arg-type]


def test_maps_filters_and_projects_become_one_step() -> None:
    mir = r.Project(
        r.Filter(r.Map(r.Project(GET, (1, 0)), (add(Ref(0), ONE),)), (Call("lt_int8", (Ref(2), Ref(1)), BOOL),)), (2,)
    )
    expected = MapFilterProject(2, (add(Ref(1), ONE),), ((3, Call("lt_int8", (Ref(2), Ref(0)), BOOL)),), (2,))
    assert plan(mir) == LirGet(1, "u1", expected)  # type: ignore[arg-type]


def test_unread_expressions_are_dropped() -> None:
    built = MfpBuilder(1).map([add(Ref(0), ONE)]).map([add(Ref(1), ONE), Ref(0)]).project([3]).build()
    assert built == MapFilterProject(1, projection=(0,))


def test_time_bounds_are_taken_out_of_predicates() -> None:
    time = Call("cast_int8_mz_timestamp", (Ref(1),), MZ_TIMESTAMP)
    both = Call("and", (Call("gt_mz_timestamp", (NOW, time), BOOL), Call("gte_mz_timestamp", (time, NOW), BOOL)), BOOL)
    built = MfpBuilder(2).filter([both, Call("is_null", (Ref(0),), BOOL)]).build()
    step = Call("step_mz_timestamp", (time,), MZ_TIMESTAMP)
    assert built.lower_bounds == (step,) and built.upper_bounds == (step,)
    assert [p for _, p in built.predicates] == [Call("is_null", (Ref(0),), BOOL)]


def test_a_temporal_filter_is_a_step_of_its_own() -> None:
    time = Call("cast_int8_mz_timestamp", (Ref(1),), MZ_TIMESTAMP)
    count = r.Reduce(GET, (Ref(0),), (Aggregate("max_int8", (Ref(1),), INT8),))
    got = plan(r.Filter(count, (Call("lt_mz_timestamp", (NOW, time), BOOL),)))
    assert isinstance(got, LirMfp) and isinstance(got.input, LirReduce) and got.input.mfp.is_identity()


def test_a_join_keeps_only_what_is_read() -> None:
    join = r.Join((GET, GET), ((Ref(0), Ref(2)),), r.Differential(0, ((1, (Ref(0),)),)))
    got = plan(r.Project(join, (3,)))
    assert isinstance(got, LirJoin) and isinstance(got.plan, LinearJoin)
    assert got.plan.source_mfp.projection == (0,), "only the key of the start is needed"
    (stage,) = got.plan.stages
    assert stage.stream_key == (Ref(0),) and stage.lookup_key == (Ref(0),)
    assert stage.closure == MapFilterProject(3, projection=(2,))


def test_members_that_no_lookup_covers_are_compared() -> None:
    join = r.Join((GET, GET), ((Ref(0), Ref(2), Ref(3)),), r.Differential(0, ((1, (Ref(0),)),)))
    got = plan(join)
    assert isinstance(got, LirJoin) and isinstance(got.plan, LinearJoin)
    (predicate,) = got.plan.stages[0].closure.predicates
    assert predicate[1] == Call("eq_int8", (Ref(0), Ref(3)), BOOL)


def test_a_join_without_a_plan_is_refused_unless_it_needs_none() -> None:
    with pytest.raises(SqlError, match="not implemented"):
        plan(r.Join((GET, GET), ((Ref(0), Ref(2)),)))
    assert isinstance(plan(r.Join((GET, GET))), LirJoin)
    single = plan(r.Join((GET,), ((Ref(0), Ref(1)),)))
    assert isinstance(single, LirMfp) and len(single.mfp.predicates) == 1


def test_an_indexed_filter_seeks() -> None:
    key = (encode_datum(INT8, 7),)
    constant = r.Constant(((key, 1),), RelationType((ColumnType(INT8),)))
    join = r.Join((GET, constant), ((Ref(0), Ref(2)),), r.IndexedFilter("u1", "u2", (Ref(0),), (key,)))  # type: ignore[arg-type]
    got = plan(join)
    assert isinstance(got, LirGet) and got.key == (Ref(0),) and got.lookup == (key,)
    assert got.mfp.projection == (0, 1, 0), "the constant's column repeats the key"


def test_kinds_and_one_time() -> None:
    total, least = Aggregate("count", (ONE,), INT8), Aggregate("min_int8", (Ref(1),), INT8)
    for aggregates, kind in (
        ((), "distinct"),
        ((total,), "accumulable"),
        ((least,), "hierarchical"),
        ((total, least), "mixed"),
    ):
        got = plan(r.Reduce(GET, (Ref(0),), aggregates), single_time=True)
        assert isinstance(got, LirReduce) and got.kind == kind and got.monotonic
    top = plan(r.TopK(GET, (), (ColumnOrder(0),), ONE), single_time=True)
    assert isinstance(top, LirTopK) and top.monotonic


def test_subtraction_consolidates() -> None:
    got = plan(r.Union((GET, r.Negate(GET))))
    assert isinstance(got, LirUnion) and got.consolidate


def test_a_plan_too_deep_is_an_error() -> None:
    deep: r.Mir = GET
    for _ in range(5_000):
        deep = r.Threshold(deep)
    with pytest.raises(SqlError, match="too deeply"):
        plan(deep)


def test_a_long_chain_of_bindings_is_fine() -> None:
    body: r.Mir = r.Get(1_999, TWO)
    for i in reversed(range(2_000)):
        body = r.Let(i, r.Get(i - 1, TWO) if i else GET, body)
    assert isinstance(plan(body), LirLet)
