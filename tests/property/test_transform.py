"""Every rule, and every prefix of the list, leaves a random query's rows as they were."""

from __future__ import annotations

import random

import pytest

from adapter.sequencer.interpret import Budget, interpret
from adapter.transform import pipeline
from adapter.transform.context import Context, IndexInfo
from mzlite.expr import relation as r
from mzlite.expr.scalar import Ref
from mzlite.expr.text import print_mir
from mzlite.expr.typecheck import typ
from mzlite.repr.datum import column_to_datums
from mzlite.repr.updates import Updates
from tests.support.random_mir import RandomMir, random_tables

INDEXES = {
    "u1": (IndexInfo("u10", (Ref(0),)),),
    "u2": (IndexInfo("u20", (Ref(1), Ref(0))), IndexInfo("u21", (Ref(2),))),
}  # type: ignore[arg-type]


def rows(e: r.Mir, tables: dict[str, Updates]) -> list[tuple[object, ...]]:
    result = interpret(e, lambda id: tables[id], Budget())
    columns = [column_to_datums(t.scalar, c) for t, c in zip(typ(e).columns, result.columns)]
    cells = list(zip(*columns)) if columns else [()] * len(result)
    return sorted(((*row, int(d)) for row, d in zip(cells, result.diff)), key=repr)


def cases(count: int, offset: int) -> list[int]:
    return list(range(offset, offset + count))


@pytest.mark.parametrize("seed", cases(150, 0))
def test_every_rule_and_prefix_keeps_the_rows(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "CHECKS", True)
    rng = random.Random(seed)
    plan = RandomMir(rng).relation(4)
    tables = random_tables(rng)
    want = rows(plan, tables)
    for step in (*pipeline.LOGICAL, *pipeline.PHYSICAL):
        alone = pipeline.run(plan, (step,), Context(INDEXES))
        assert rows(alone, tables) == want, f"{step.rule.__name__}\n{print_mir(plan)}\n->\n{print_mir(alone)}"
    after = plan
    for step in (*pipeline.LOGICAL, *pipeline.LOGICAL, *pipeline.PHYSICAL):
        before = after
        after = pipeline.run(after, (step,), Context(INDEXES))
        assert rows(after, tables) == want, f"{step.rule.__name__}\n{print_mir(before)}\n->\n{print_mir(after)}"


@pytest.mark.parametrize("seed", cases(40, 1000))
def test_optimizing_twice_changes_nothing(seed: int) -> None:
    plan = RandomMir(random.Random(seed)).relation(3)
    once = pipeline.optimize_local(plan)
    assert pipeline.optimize_local(once) == once
