"""The text form of a plan parses to the same plan, up to how conjunctions are grouped."""

from __future__ import annotations

import random

import pytest

from mzlite.expr.text import parse_mir, print_mir
from tests.support.plan_check import rows_of
from tests.support.random_mir import TABLES, RandomMir, random_tables


@pytest.mark.parametrize("seed", range(100))
def test_text_parses_to_the_same_plan(seed: int) -> None:
    rng = random.Random(seed)
    plan = RandomMir(rng).relation(4)
    tables = random_tables(rng)
    parsed = parse_mir(print_mir(plan), TABLES)
    assert rows_of(parsed, tables.__getitem__) == rows_of(plan, tables.__getitem__)
    assert parse_mir(print_mir(parsed), TABLES) == parsed
