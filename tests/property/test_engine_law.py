"""The operator law, on random plans: what the engine maintains at every time is what the plan means at that time.

For any split of the script into rounds, any hash width, any slice size and any number of workers.
"""

from __future__ import annotations

import os
from random import Random
from unittest.mock import patch

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.engine_check import Case, check, difference, random_case, shrink

EXAMPLES = int(os.environ.get("ENGINE_EXAMPLES", "60"))
law = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
seeds = st.integers(0, 2**32)


@law
@given(seeds, st.integers(1, 6))
def test_any_plan_in_any_rounds(seed: int, depth: int) -> None:
    check(random_case(Random(seed), depth))


@law
@given(seeds, st.integers(1, 4), st.sampled_from([0, 1, 7]))
def test_hashes_only_order(seed: int, depth: int, mask: int) -> None:
    check(random_case(Random(seed), depth, mask=mask))


@law
@given(seeds, st.integers(1, 5), st.sampled_from([None, 1]))
def test_slices_of_any_size(seed: int, depth: int, mask: int | None) -> None:
    check(random_case(Random(seed), depth, mask=mask, small=True))


@law
@given(seeds, st.integers(1, 4), st.sampled_from([2, 4]))
def test_any_number_of_workers(seed: int, depth: int, worker_count: int) -> None:
    check(random_case(Random(seed), depth, worker_count))


def test_a_failing_case_shrinks() -> None:
    """The shrinker itself: with a law that no change may touch u1, what remains is one change of u1."""
    case = next(c for c in (random_case(Random(s), 3) for s in range(50)) if any(x[0] == "u1" for x in c.changes))

    def touched(case: Case) -> str | None:
        return "touched" if any(x[0] == "u1" for x in case.changes) else None

    with patch("tests.support.engine_check.difference", touched):
        small = shrink(case)
    assert [c[0] for c in small.changes] == ["u1"] and not small.bounds
    assert difference(small) is None
