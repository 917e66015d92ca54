"""Every rule, and every prefix of the list, leaves a random query's rows as they were."""

from __future__ import annotations

import random

import pytest

from adapter.transform import pipeline
from tests.support.plan_check import check_seed
from tests.support.random_mir import RandomMir


@pytest.mark.parametrize("seed", range(150))
def test_every_rule_and_prefix_keeps_the_rows(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "CHECKS", True)
    check_seed(seed)


@pytest.mark.parametrize("seed", range(1000, 1040))
def test_optimizing_twice_changes_nothing(seed: int) -> None:
    plan = RandomMir(random.Random(seed)).relation(3)
    once = pipeline.optimize_local(plan)
    assert pipeline.optimize_local(once) == once
