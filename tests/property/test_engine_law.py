"""The operator law, on random plans: what the engine maintains at every time is what the plan means at that time.

    for every t:  accumulate(engine(script), t) == model(accumulate(script, t))

for any split of the script into rounds, any hash width, and any number of workers.
"""

from __future__ import annotations

import os
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mzlite.expr.typecheck import typ
from mzlite.repr.column import set_hash_mask
from mzlite.repr.errors import SqlError
from tests.oracle.harness import describe, push, read_export, run_all, workers
from tests.oracle.mir_model import evaluate
from tests.oracle.plans import Plans, inputs_at, script

EXAMPLES = int(os.environ.get("ENGINE_EXAMPLES", "60"))
TIMES = 6


def check(random: Random, depth: int, count: int, mask: int | None = None) -> None:
    plan = Plans(random).plan(depth)
    t = typ(plan)
    changes = script(random, TIMES, random.randint(0, 24))
    dataflows = workers(describe(plan), count)
    set_hash_mask(mask)
    try:
        bounds = sorted(random.sample(range(1, TIMES), random.randint(0, 3)))
        lower = 0
        for upper in (*bounds, TIMES, None):
            due = [c for c in changes if lower <= c[2] and (upper is None or c[2] < upper)]
            for dataflow in dataflows:
                push(dataflow, due, upper)
            run_all(dataflows, upper)
            lower = upper if upper is not None else lower
        for at in range(TIMES):
            expected = evaluate(plan, inputs_at(changes, at))
            got = read_export(dataflows, t, at)
            assert got == expected, f"at {at}: {got - expected} too much, {expected - got} missing\n{plan}\n{changes}"
    finally:
        set_hash_mask(None)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32), st.integers(1, 6))
def test_any_plan_in_any_rounds(seed: int, depth: int) -> None:
    check(Random(seed), depth, 1)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32), st.integers(1, 3), st.sampled_from([0, 1, 7]))
def test_hashes_only_order(seed: int, depth: int, mask: int) -> None:
    check(Random(seed), depth, 1, mask)


@settings(max_examples=EXAMPLES // 2, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32), st.integers(1, 3), st.sampled_from([2, 4]))
def test_any_number_of_workers(seed: int, depth: int, count: int) -> None:
    try:
        check(Random(seed), depth, count)
    except SqlError as error:
        assert "over several workers" in error.message, error.message
