"""Random SQL views through random commits, as DuckDB computes them: a bounded number of seeds (`./dev fuzz` runs more)."""

from __future__ import annotations

import os

import pytest

from tests.support.maintained_check import check_seed

SEEDS = int(os.environ.get("ENGINE_SQL_SEEDS", "20"))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_maintained_view_is_what_duckdb_computes(seed: int) -> None:
    check_seed(seed)
