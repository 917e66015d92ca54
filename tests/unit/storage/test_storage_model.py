"""Random histories of storage against a dictionary: whatever is acknowledged is what is read, across restarts."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mzlite.repr import types as t
from mzlite.repr.datum import column_to_datums
from mzlite.repr.updates import Updates, updates_from_rows
from mzlite.storage import shard as shard_module
from mzlite.storage.disk import Disk
from mzlite.storage.model import Part, StorageError
from mzlite.storage.storage import Storage

TYPES = (t.INT4,)
History = list[tuple[int, int, int]]  # (time, value, diff)


def updates(rows: History) -> Updates:
    u = updates_from_rows(TYPES, [(v,) for _, v, _ in rows], 0)
    return Updates(u.columns, np.array([x[0] for x in rows], np.uint64), np.array([x[2] for x in rows], np.int64))


def total(parts: list[Updates]) -> Counter[int]:
    out: Counter[int] = Counter()
    for part in parts:
        for value, diff in zip(column_to_datums(t.INT4, part.columns[0]), part.diff.tolist()):
            out[value] += diff
    return Counter({k: v for k, v in out.items() if v})


class Machine(RuleBasedStateMachine):
    """Tables a and b, views u and v, and what each should hold."""

    durable = False

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory() if self.durable else None
        self.storage = self.open()
        self.now = 1
        self.model: dict[str, History] = {}
        self.since: dict[str, int] = {}
        self.upper: dict[str, int] = {}

    def open(self) -> Storage:
        return Storage.open(Path(self.directory.name) if self.directory is not None else None)

    def teardown(self) -> None:
        self.storage.close()
        if self.directory is not None:
            self.directory.cleanup()

    @rule(name=st.sampled_from("abuv"))
    def create_or_drop(self, name: str) -> None:
        if name in self.model:
            self.storage.drop_shard(name)
            del self.model[name], self.since[name]
            self.upper.pop(name, None)
        else:
            self.storage.create_shard(name, TYPES, "table" if name in "ab" else "mv", since=0, upper=0)
            self.model[name], self.since[name] = [], 0
            if name in "uv":
                self.upper[name] = 0

    @rule(
        rows=st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 3), st.sampled_from([1, 1, -1])), max_size=4),
        times=st.integers(1, 40),
    )
    def commit(self, rows: list[tuple[str, int, int]], times: int) -> None:
        for _ in range(times):
            writes = []
            for name in "ab":
                mine = [(self.now, v, d) for n, v, d in rows if n == name]
                if mine and name in self.model:
                    writes.append((name, updates(mine)))
                    self.model[name] += mine
            self.storage.commit(writes, self.now, self.now + 1)
            self.now += 1

    @rule(
        name=st.sampled_from("uv"),
        rows=st.lists(st.tuples(st.integers(0, 3), st.sampled_from([1, -1]))),
        by=st.integers(1, 5),
    )
    def append(self, name: str, rows: list[tuple[int, int]], by: int) -> None:
        if name not in self.model:
            return
        lower = self.upper[name]
        mine = [(lower + i % by, v, d) for i, (v, d) in enumerate(rows)]
        assert self.storage.append(name, lower, lower + by, updates(mine)) == (True, lower + by)
        assert self.storage.append(name, lower, lower + by, updates(mine)) == (False, lower + by)
        self.upper[name] = lower + by
        self.model[name] += mine

    @rule(name=st.sampled_from("abuv"))
    def compact(self, name: str) -> None:
        if name in self.model:
            upper = self.storage.upper(name)
            assert upper is not None
            self.since[name] = max(self.since[name], upper - 1)
            self.storage.advance_since(name, self.since[name])

    @precondition(lambda self: self.durable)
    @rule()
    def reopen(self) -> None:
        self.storage.close()
        self.storage = self.open()
        assert self.storage.table_upper <= self.now
        if self.storage.table_upper < self.now:
            self.storage.commit([], self.now - 1, self.now)

    @invariant()
    def reads_agree(self) -> None:
        assert set(self.storage.shards()) == set(self.model)
        for name, history in self.model.items():
            upper = self.storage.upper(name)
            assert upper == self.upper.get(name, self.storage.table_upper)
            if upper <= max(self.since[name], 0):
                continue
            for as_of in {self.since[name], upper - 1}:
                expected: Counter[int] = Counter()
                for time, value, diff in history:
                    if time <= as_of:
                        expected[value] += diff
                assert total(self.storage.snapshot(name, as_of)) == Counter({k: v for k, v in expected.items() if v})


class DurableMachine(Machine):
    durable = True


@pytest.fixture(autouse=True)
def eager_merges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_module, "_FAN_IN", 3)
    monkeypatch.setattr(shard_module, "_MIN_DELTA", 4)


TestInMemory = Machine.TestCase
TestInMemory.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
TestOnDisk = DurableMachine.TestCase
TestOnDisk.settings = settings(max_examples=12, stateful_step_count=20, deadline=None)


def test_a_failing_disk_is_an_error_and_stays_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = Storage.open(tmp_path)
    storage.create_shard("a", TYPES)

    def full(self: Disk, shard: str, part: Part) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Disk, "insert_part", full)
        with pytest.raises(StorageError, match="No space left"):
            storage.commit([("a", updates([(1, 1, 1)]))], 1, 2)
    with pytest.raises(StorageError, match="No space left"):
        storage.commit([("a", updates([(2, 1, 1)]))], 2, 3)
    storage.close()
    storage = Storage.open(tmp_path)
    assert storage.table_upper == 0 and storage.has_shard("a")
    storage.close()


def test_a_closed_storage_says_so() -> None:
    storage: Any = Storage.open(None)
    storage.close()
    storage.close()
    with pytest.raises(StorageError, match="closed"):
        storage.commit([], 1, 2)
