"""The interpreter against the row-at-a-time model, on random plans."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from adapter.sequencer.interpret import Budget, TooMuch, interpret
from adapter.sequencer.scalars import substitute
from adapter.sequencer.values import mz_now_literal
from mzlite.expr import relation as r
from mzlite.expr.text import parse_mir
from mzlite.expr.typecheck import typ
from mzlite.repr.errors import SqlError
from mzlite.repr.ids import GlobalId
from mzlite.repr.types import INT8, ColumnType, RelationType
from mzlite.repr.updates import Updates, updates_from_rows
from tests.oracle import mir_model
from tests.oracle.harness import rows_of, updates_of
from tests.oracle.plans import SOURCES, Plans, inputs_at, script

PAIR = RelationType((ColumnType(INT8), ColumnType(INT8)))


@pytest.mark.parametrize("seed", range(150))
def test_random_plans_equal_the_model(seed: int) -> None:
    random = Random(seed)
    plan = Plans(random).plan(seed % 5 + 1)
    changes = script(random, 3, 40)
    at = 2
    model: dict[Any, Counter[tuple[Any, ...]]] = inputs_at(changes, at)

    def env(id: GlobalId) -> Updates:
        rows = [(row, 0, n) for row, n in model[id].items()]
        return updates_of(rows, SOURCES[id])

    expected = mir_model.evaluate(plan, model)
    now = mz_now_literal(at)
    timed = substitute(plan, lambda u: now if u.func == "mz_now" else None)
    got = rows_of(interpret(timed, env, Budget(10_000_000)), typ(plan))
    assert got == Counter({k: v for k, v in expected.items() if v})


def numbers(*rows: tuple[int | None, int | None]) -> Updates:
    return updates_from_rows([INT8, INT8], rows, 0)


def run(text: str, *rows: tuple[int | None, int | None], budget: int = 1_000_000) -> Counter[tuple[Any, ...]]:
    plan = parse_mir(text, {"u1": PAIR})
    return rows_of(interpret(plan, lambda id: numbers(*rows), Budget(budget)), typ(plan))


def test_a_null_key_never_joins() -> None:
    text = "Join on=(#0 = #2)\n  Get u1\n  Get u1"
    assert run(text, (1, 10), (None, 20)) == Counter({(1, 10, 1, 10): 1})


def test_an_error_on_a_row_that_another_predicate_drops_does_not_count() -> None:
    text = "Filter ((1 / #0) = 1) AND (#1 = 5)\n  Get u1"
    assert run(text, (0, 7), (1, 5)) == Counter({(1, 5): 1})
    with pytest.raises(SqlError, match="division by zero"):
        run(text, (0, 5))


def test_work_beyond_the_budget_is_refused() -> None:
    text = "CrossJoin\n  Get u1\n  Get u1"
    with pytest.raises(TooMuch):
        run(text, *[(i, i) for i in range(100)], budget=5_000)


def test_a_cancelled_plan_stops() -> None:
    budget = Budget()
    budget.cancelled = True
    plan = r.Get(GlobalId("u1"), PAIR)
    with pytest.raises(SqlError, match="canceling statement"):
        interpret(plan, lambda id: numbers((1, 1)), budget)


def test_a_series_that_is_too_long_is_refused_before_it_is_made() -> None:
    text = "FlatMap generate_series(1::bigint, 4000000000000::bigint)\n  Get u1"
    with pytest.raises(TooMuch):
        run(text, (1, 1))
    short = "FlatMap generate_series(1::bigint, 9::bigint, 4::bigint)\n  Get u1"
    assert sorted(run(short, (7, 7))) == [(7, 7, 1), (7, 7, 5), (7, 7, 9)]
