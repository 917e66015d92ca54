"""The operator law, on random plans: what the engine maintains at every time is what the plan means at that time.

    for every t:  accumulate(engine(script), t) == model(accumulate(script, t))

for any split of the script into rounds, any hash width, and any number of workers.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from unittest.mock import patch

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


# Every size at which work is cut into slices, or batches are merged.
SIZES = {
    "compute.trace.merge.SLICE_ROWS": 3,
    "compute.trace.builder.SLICE_ROWS": 3,
    "compute.trace.builder._FEW_ROWS": 2,
    "compute.trace.spine.SLICE_ROWS": 3,
    "compute.trace.spine.SMALL_ROWS": 4,
    "compute.trace.spine.FUEL_STEP": 8,
    "compute.trace.peek.SLICE_ROWS": 2,
    "compute.operators.points.SLICE_GROUPS": 1,
    "compute.operators.ordered.FIRST_WINDOW": 1,
    "compute.operators.ordered.WIDE_WINDOW": 4,
    "compute.operators.base.CHUNK_ROWS": 2,
    "compute.operators.matching.CHUNK_ROWS": 2,
    "compute.operators.join.CHUNK_ROWS": 2,
    "compute.operators.flatmap.CHUNK_ROWS": 2,
    "compute.operators.flatmap.ROWS_A_CALL": 2,
}


@contextmanager
def small_slices() -> Iterator[None]:
    """Sizes so small that a dozen rows take every path that a million take."""
    patches = [patch(name, size) for name, size in SIZES.items()]
    for p in patches:
        p.start()
    try:
        yield
    finally:
        for p in patches:
            p.stop()


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


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32), st.integers(1, 5), st.sampled_from([None, 1]))
def test_slices_of_any_size(seed: int, depth: int, mask: int | None) -> None:
    with small_slices():
        check(Random(seed), depth, 1, mask)


@settings(max_examples=EXAMPLES // 2, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32), st.integers(1, 3), st.sampled_from([2, 4]))
def test_any_number_of_workers(seed: int, depth: int, count: int) -> None:
    try:
        check(Random(seed), depth, count)
    except SqlError as error:
        assert "over several workers" in error.message, error.message
