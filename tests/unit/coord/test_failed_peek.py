"""A peek that the controller refuses was never pending."""

from __future__ import annotations

from typing import Any

import pytest

from compute.client.errors import ClusterMissing, ReplicaMissing
from tests.unit.coord.environment import Environment, run


@pytest.mark.parametrize("error", [ClusterMissing("u1"), ReplicaMissing("r1")])
@pytest.mark.parametrize("query", ["SELECT a FROM t", "SELECT x.a FROM t x JOIN t y ON x.a < y.a"])
def test_a_refused_peek_leaves_nothing_pending(error: Exception, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(env: Environment) -> None:
        client = env.client()
        for sql in ("CREATE TABLE t (a int)", "CREATE DEFAULT INDEX ON t", "INSERT INTO t VALUES (1), (2)"):
            await client.run(sql)
        refused: list[Any] = []

        def refuse(*args: Any, **more: Any) -> Any:
            refused.append(more["uuid"])
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(env.controller, "peek", refuse)
            await client.fails(query)
        assert len(refused) == 1
        assert env.coordinator.pending_peeks == {}
        assert await client.value("SELECT count(*) FROM t") == 2

    run(scenario)
