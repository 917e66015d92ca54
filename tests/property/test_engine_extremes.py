"""Extremes under long histories: minimum, maximum and the first rows of groups, through many small rounds.

Rows leave at the front again and again, so that fronts are made, changed, run low and are filled up.
"""

from __future__ import annotations

import os
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compute.render.context import RenderContext
from compute.render.dataflow import Dataflow
from mzlite.expr import relation as r
from mzlite.expr.scalar import Aggregate, Call, ColumnOrder, Ref
from mzlite.expr.typecheck import typ
from mzlite.repr.column import set_hash_mask
from mzlite.repr.types import INT4, INT8
from tests.oracle.harness import describe, exported, push, read, run
from tests.oracle.mir_model import evaluate
from tests.oracle.plans import Change, inputs_at, literal, source
from tests.support.engine_check import small_slices

EXAMPLES = int(os.environ.get("ENGINE_EXAMPLES", "40"))
ROUNDS = 40


def plans(random: Random) -> r.Mir:
    table: r.Mir = source("u1")
    if random.random() < 0.4:  # two order columns in one: the first narrow, with few values
        narrow = r.Map(table, (Call("cast_int8_int4", (Ref(0),), INT4),))
        first = ColumnOrder(2, random.random() < 0.5, random.random() < 0.5)
        then = ColumnOrder(1, random.random() < 0.5)
        return r.TopK(narrow, (), (first, then), literal(random.randint(1, 3)), random.choice([0, 1]))
    key: Any = random.choice([(), (Ref(0),)])
    both = (Aggregate("min_int8", (Ref(1),), INT8), Aggregate("max_int8", (Ref(1),), INT8))
    order = (ColumnOrder(1, random.random() < 0.5, random.random() < 0.5),)
    top = r.TopK(table, tuple(k.column for k in key), order, literal(random.randint(1, 3)), random.choice([0, 0, 1]))
    choices: list[r.Mir] = [r.Reduce(table, key, both), top, top]
    return random.choice(choices)


def history(random: Random) -> list[Change]:
    """Many rows at first, then mostly the extremes leave and new ones come near them."""
    changes: list[Change] = []
    present: list[tuple[int, int]] = []
    for time in range(ROUNDS):
        for _ in range(20 if time == 0 else random.choice([0, 1, 1, 2])):
            row = (random.randrange(2), random.randrange(60))
            present.append(row)
            changes.append(("u1", row, time, 1))
        for _ in range(random.choice([0, 1, 1, 2]) if present else 0):
            present.sort(key=lambda row: row[1], reverse=random.random() < 0.5)
            gone = present.pop(0 if random.random() < 0.7 else random.randrange(len(present)))
            changes.append(("u1", gone, time, -1))
            if not present:
                break
    return changes


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32), st.booleans(), st.sampled_from([None, 0, 1]))
def test_extremes_stay_right_for_long(seed: int, small: bool, mask: int | None) -> None:
    random = Random(seed)
    plan = plans(random)
    t = typ(plan)
    changes = history(random)
    set_hash_mask(mask)
    try:
        with small_slices():
            dataflow = Dataflow(describe(plan), RenderContext())
            done = 0
            while done < ROUNDS:
                upper = min(ROUNDS, done + (1 if small else random.choice([1, 1, 1, 2])))
                push(dataflow, [c for c in changes if done <= c[2] < upper], upper)
                run(dataflow)
                exported(dataflow).allow_compaction(upper - 1)
                kept = exported(dataflow).source
                assert read(kept.chains(), kept.layout, t, upper - 1) == evaluate(plan, inputs_at(changes, upper - 1))
                done = upper
    finally:
        set_hash_mask(None)
