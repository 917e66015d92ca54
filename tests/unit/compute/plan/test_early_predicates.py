"""A filter above a join runs in the first stage that has its columns."""

from __future__ import annotations

from compute.plan.lir import LinearJoin, LirJoin
from compute.plan.lower import lower
from mzlite.expr.text import parse_mir
from mzlite.repr.ids import GlobalId
from mzlite.repr.types import INT4, ColumnType, RelationType

PAIR = RelationType((ColumnType(INT4), ColumnType(INT4)))


def plan(text: str) -> LinearJoin:
    from adapter.transform.context import Context
    from adapter.transform.join_implementation import join_implementation

    mir = join_implementation(parse_mir(text, {"u1": PAIR, "u2": PAIR, "u3": PAIR}), Context(single_time=True))
    ((_, lir),) = lower([(GlobalId("t1"), mir)], {})
    assert isinstance(lir, LirJoin) and isinstance(lir.plan, LinearJoin)
    return lir.plan


THREE = """
  Join on=(#1 = #2 AND #3 = #4)
    Get u1
    Get u2
    Get u3
"""


def test_a_predicate_of_the_source_runs_before_the_first_lookup() -> None:
    join = plan("Filter (#0 > 3)" + THREE)
    assert len(join.source_mfp.predicates) == 1
    assert not any(stage.closure.predicates for stage in join.stages)


def test_a_predicate_over_two_inputs_runs_when_the_second_is_there() -> None:
    join = plan("Filter (#0 > #3)" + THREE)
    assert [len(stage.closure.predicates) for stage in join.stages] == [1, 0]


def test_a_predicate_that_can_fail_runs_last() -> None:
    join = plan("Filter ((1 / #0) > 3)" + THREE)
    assert [len(stage.closure.predicates) for stage in join.stages] == [0, 1]
