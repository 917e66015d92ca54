"""The list as a whole: bounds, the short list for row-wise plans, and stability."""

from __future__ import annotations

import pytest

from adapter.transform import Context, IndexInfo, optimize_dataflow, optimize_local, optimize_read, pipeline
from mzlite.expr import relation as r
from mzlite.expr.scalar import Call, Literal, Ref, Scalar
from mzlite.expr.text import parse_mir, print_mir
from mzlite.repr.datum import encode_datum
from mzlite.repr.errors import SqlError
from mzlite.repr.ids import GlobalId
from mzlite.repr.types import BOOL, INT4, ColumnType, RelationType

PAIR = RelationType((ColumnType(INT4), ColumnType(INT4)))
INDEXES = {GlobalId("u1"): (IndexInfo(GlobalId("u10"), (Ref(0),)),)}


def equal(a: Scalar, b: Scalar) -> Scalar:
    return Call("eq_int4", (a, b), BOOL)


def number(n: int) -> Literal:
    return Literal(encode_datum(INT4, n), INT4)


def test_a_plan_beyond_the_bound_is_an_error_not_a_crash() -> None:
    plan: r.Mir = r.Get(GlobalId("u1"), PAIR)
    for _ in range(pipeline.MAX_DEPTH + 1):
        plan = r.Threshold(r.Negate(plan))
    with pytest.raises(SqlError) as error:
        optimize_dataflow(plan, {})
    assert error.value.sqlstate == "54001"


def test_a_join_of_many_inputs_is_planned_with_a_lookup_for_each() -> None:
    n = 64
    join = r.Join(tuple(r.Get(GlobalId(f"u{i}"), PAIR) for i in range(n)))
    chain = tuple(equal(Ref(2 * i + 1), Ref(2 * i + 2)) for i in range(n - 1))
    planned = optimize_read(r.Filter(join, (*chain, equal(Ref(0), number(3)))), {})
    joins = [e for e in r.walk(planned) if isinstance(e, r.Join)]
    assert len(joins) == 1
    implementation = joins[0].implementation
    assert isinstance(implementation, r.Differential)
    assert all(key for _, key in implementation.order)


def test_a_predicate_is_copied_to_each_member_of_a_class_once() -> None:
    n = 30
    join = r.Join(tuple(r.Get(GlobalId(f"u{i}"), PAIR) for i in range(n)))
    same = tuple(equal(Ref(0), Ref(2 * i)) for i in range(1, n))
    above = tuple(Call("gt_int4", (Ref(0), number(k)), BOOL) for k in range(5))
    local = optimize_local(r.Filter(join, same + above))
    filters = [e for e in r.walk(local) if isinstance(e, r.Filter)]
    assert len(filters) == n
    assert all(len(f.predicates) == 5 for f in filters)


@pytest.mark.parametrize(
    "text",
    [
        "Filter (#0 = 5) AND (#1 > 2)\n  Get u1",
        "Project (#1)\n  Filter (#0 = 5)\n    Map ((#0 + #1))\n      Get u1",
        "Filter (#0 = 5) AND (#0 = 6)\n  Get u1",
        "Map ((#0 + 1))\n  Filter (#1 = #0)\n    Get u1",
    ],
)
def test_the_short_list_finds_what_the_long_one_does(text: str) -> None:
    plan = parse_mir(text, {"u1": PAIR})
    context = Context(INDEXES)
    long = pipeline.run(pipeline.fixpoint(plan, pipeline.LOGICAL, Context()), pipeline.PHYSICAL, context)
    assert print_mir(optimize_dataflow(plan, INDEXES)) == print_mir(long)


def test_checks_name_the_rule_that_broke_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "CHECKS", True)

    def broken_rule(e: r.Mir, context: Context) -> r.Mir:
        return r.Project(e, (7,))

    with pytest.raises(AssertionError, match="broken_rule"):
        pipeline.run(r.Get(GlobalId("u1"), PAIR), (pipeline.Step(broken_rule, "for the test"),), Context())
