"""The writer of a materialized view: whatever stands in the shard and whoever else writes, it ends up as desired."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from compute.runtime import mv_sink
from compute.runtime.mv_sink import MaterializedViewWriter
from mzlite.repr.datum import column_to_datums
from mzlite.repr.types import INT8
from mzlite.repr.updates import Updates, concat_updates
from tests.sim.shards import SimShards, SimStorage
from tests.unit.compute.dataflows import rows

Row = tuple[int, str]


def contents(shards: SimShards, at: int) -> Counter[int]:
    total: Counter[int] = Counter()
    for part in shards.shard("view").parts:
        for key, time, diff in zip(column_to_datums(INT8, part.columns[0]), part.time.tolist(), part.diff.tolist()):
            if time <= at:
                total[key] += diff
    return Counter({k: n for k, n in total.items() if n})


class Writer:
    def __init__(self, shards: SimShards, as_of: int) -> None:
        self.storage = SimStorage(shards)
        self.jobs: list[Iterator[None]] = []
        self.writer = MaterializedViewWriter("view", as_of, self.storage, lambda: None, self.jobs.append)
        self.writer.start()
        self.writer.allow_writes()

    def step(self) -> bool:
        if self.jobs:
            if next(self.jobs[0], "done") == "done":
                self.jobs.pop(0)
            return True
        return self.storage.step()

    def settle(self) -> None:
        while self.step():
            pass


def test_output_is_written_once_and_reported_when_written() -> None:
    shards = SimShards()
    w = Writer(shards, 5)
    w.writer.push(rows([(1, "a")], 5), None, 6)
    assert w.writer.frontier == 0
    w.settle()
    assert w.writer.frontier == 6
    w.writer.push(rows([(1, "a")], 8, -1), None, 9)
    w.writer.push(None, None, 12)
    w.settle()
    assert w.writer.frontier == 12
    assert (contents(shards, 5), contents(shards, 7), contents(shards, 8)) == (
        Counter({1: 1}),
        Counter({1: 1}),
        Counter(),
    )


def test_nothing_is_written_before_it_may_be() -> None:
    shards = SimShards()
    storage = SimStorage(shards)
    writer = MaterializedViewWriter("view", 0, storage, lambda: None, lambda steps: None)
    writer.start()
    writer.push(rows([(1, "a")]), None, 1)
    while storage.step():
        pass
    assert shards.shard("view").upper == 0
    writer.allow_writes()
    while storage.step():
        pass
    assert shards.shard("view").upper == 1


def test_an_earlier_output_is_corrected() -> None:
    shards = SimShards()
    shards.append("view", 0, 10, concat_updates([rows([(1, "a"), (2, "b")], 3), rows([(9, "z")], 4)]))
    w = Writer(shards, 7)
    w.writer.push(rows([(1, "a"), (2, "b"), (3, "c")], 7), None, 8)
    w.settle()
    assert w.writer.frontier == 8  # the shard is further already
    w.writer.push(rows([(4, "d")], 12), None, 13)
    w.settle()
    assert contents(shards, 9) == Counter({1: 1, 2: 1, 9: 1})
    assert contents(shards, 11) == Counter({1: 1, 2: 1, 3: 1})
    assert contents(shards, 12) == Counter({1: 1, 2: 1, 3: 1, 4: 1})


def test_a_large_output_goes_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mv_sink, "SMALL_ROWS", 10)
    shards = SimShards()
    w = Writer(shards, 0)
    w.writer.push(rows([(i, "x") for i in range(95)]), None, 1)
    steps = 0
    while w.step():
        steps += 1
        assert contents(shards, 0) in (Counter(), Counter(dict.fromkeys(range(95), 1)))
    assert steps > 9
    assert len(contents(shards, 0)) == 95


@pytest.mark.parametrize("seed", range(40))
def test_two_replicas_write_one_view(seed: int) -> None:
    choose = random.Random(seed)
    shards = SimShards()
    history: list[tuple[int, Updates]] = [(1, rows([(0, "x"), (1, "x")], 0))]
    for time in range(1, 8):
        history.append((time + 1, rows([(time % 3, "x")], time, choose.choice((1, 1, -1)))))
    writers = [Writer(shards, 0), Writer(shards, 0)]
    todo = [list(history), list(history)]
    while any(todo) or any(w.storage.pending or w.jobs for w in writers):
        i = choose.randrange(2)
        if todo[i] and choose.random() < 0.4:
            upper, updates = todo[i].pop(0)
            writers[i].writer.push(updates, None, upper)
        else:
            writers[i].step()
        if choose.random() < 0.02:  # one is restarted, from an earlier time
            writers[i].writer.stop()
            writers[i].storage.kill()
            writers[i] = Writer(shards, 0)
            todo[i] = list(history)
    expected: Counter[int] = Counter()
    for upper, updates in history:
        for key, diff in zip(column_to_datums(INT8, updates.columns[0]), updates.diff.tolist()):
            expected[key] += diff
        assert contents(shards, upper - 1) == Counter({k: n for k, n in expected.items() if n}), upper
    assert all(w.writer.frontier == 8 for w in writers)
