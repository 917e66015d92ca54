"""Random queries: the lowered plan gives DuckDB's rows, and each optimizer rule after it keeps them."""

from __future__ import annotations

import pytest

from adapter.transform import pipeline
from tests.support.sql_check import check_seed

pytest.importorskip("duckdb")


@pytest.mark.parametrize("seed", range(100))
def test_a_random_query_keeps_its_answer(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "CHECKS", True)
    check_seed(seed)
