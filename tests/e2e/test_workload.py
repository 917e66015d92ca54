"""A short run of the parallel workload, with flags flipping, clusters coming and going, and workers killed."""

from __future__ import annotations

import pytest

from tests import workload


@pytest.mark.timeout(120)
def test_nothing_breaks_under_a_parallel_workload(capfd: pytest.CaptureFixture[str]) -> None:
    status = workload.run(seconds=8, seed=11, connections=3)
    out, err = capfd.readouterr()
    assert status == 0, out + err
