"""Storage in memory and on disk: commits, snapshots, compare-and-append, restart, compaction, locks."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mzlite.repr import types as t
from mzlite.repr.datum import column_from_datums, column_to_datums
from mzlite.repr.updates import Updates, updates_from_rows
from mzlite.storage import disk
from mzlite.storage.model import StorageError
from mzlite.storage.storage import Storage

TYPES = (t.INT4, t.TEXT)


class Harness:
    """A storage that can be reopened (in memory it cannot: `durable` says)."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.storage = Storage.open(path)

    @property
    def durable(self) -> bool:
        return self.path is not None

    def reopen(self) -> Storage:
        self.storage.close()
        self.storage = Storage.open(self.path)
        return self.storage


@pytest.fixture(params=["memory", "disk"])
def harness(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Harness]:
    h = Harness(None if request.param == "memory" else tmp_path / "data")
    yield h
    h.storage.close()


def rows(values: Sequence[tuple[Any, ...]], diff: int = 1) -> Updates:
    return updates_from_rows(TYPES, values, 0, diff)


def contents(storage: Storage, shard: str, as_of: int) -> Counter[tuple[Any, ...]]:
    total: Counter[tuple[Any, ...]] = Counter()
    for part in storage.snapshot(shard, as_of):
        assert (part.time == as_of).all()
        columns = [column_to_datums(typ, c) for typ, c in zip(TYPES, part.columns)]
        for *row, diff in zip(*columns, part.diff.tolist()):
            total[tuple(row)] += diff
    return Counter({k: v for k, v in total.items() if v})


def test_commits_advance_all_tables(harness: Harness) -> None:
    s = harness.storage
    s.create_shard("a", TYPES)
    s.create_shard("b", TYPES)
    s.commit([("a", rows([(1, "x"), (2, None)]))], 10, 11)
    s.commit([("a", rows([(1, "x")], -1)), ("b", rows([(3, "y")]))], 20, 21)
    s.commit([], 30, 31)
    assert s.upper("a") == s.upper("b") == 31
    assert contents(s, "a", 15) == {(1, "x"): 1, (2, None): 1}
    assert contents(s, "a", 30) == {(2, None): 1}
    assert contents(s, "b", 15) == {}
    assert contents(s, "b", 20) == {(3, "y"): 1}


def test_restart_keeps_what_was_acknowledged(harness: Harness) -> None:
    if not harness.durable:
        return
    s = harness.storage
    s.create_shard("a", TYPES)
    s.create_shard("v", TYPES, kind="mv", since=5, upper=5)
    s.commit([("a", rows([(1, "x")]))], 10, 11)
    big = Updates(
        (column_from_datums(t.INT4, list(range(20_000))), column_from_datums(t.TEXT, ["text"] * 20_000)),
        np.zeros(20_000, np.uint64),
        np.ones(20_000, np.int64),
    )
    s.commit([("a", big)], 20, 21)
    s.catalog_transaction({"k": b"v", "gone": b"x"})
    s.catalog_transaction({"gone": None})
    s.store_oracle(12345)
    assert s.append("v", 5, 9, rows([(7, "v")])) == (True, 9)
    s = harness.reopen()
    assert s.upper("a") == 21
    assert sum(contents(s, "a", 20).values()) == 20_001
    assert s.load_catalog() == {"k": b"v"}
    assert s.load_oracle() == 12345
    assert s.upper("v") == 9
    assert s.since("v") == 5
    assert s.types("a") == TYPES
    assert any((harness.path / "parts").iterdir()), "a large part is a file"  # type: ignore[operator]


def test_compare_and_append(harness: Harness) -> None:
    s = harness.storage
    s.create_shard("v", TYPES, kind="mv")
    first = rows([(1, "x")])
    assert s.append("v", 0, 5, first) == (True, 5)
    assert s.append("v", 0, 6, first) == (False, 5)
    assert s.append("v", 5, 8, None) == (True, 8)
    assert contents(s, "v", 7) == {(1, "x"): 1}
    assert s.append("v", 8, None, None) == (True, None)
    assert s.upper("v") is None
    assert contents(s, "v", 10**9) == {(1, "x"): 1}
    assert s.append("nowhere", 0, 1, None) == (False, None)


def test_errors_of_a_view(harness: Harness) -> None:
    s = harness.storage
    s.create_shard("v", TYPES, kind="mv")
    errs = Updates((column_from_datums(t.BYTEA, [b"boom"]),), np.array([2], np.uint64), np.array([1]))
    assert s.append("v", 0, 5, None, errs)[0]
    if harness.durable:
        s = harness.reopen()
    oks, errors = s.snapshot_with_errors("v", 3)
    assert not oks
    assert [column_to_datums(t.BYTEA, e.columns[0]) for e in errors] == [[b"boom"]]


def test_reads_before_since_are_refused(harness: Harness) -> None:
    s = harness.storage
    s.create_shard("a", TYPES)
    s.commit([("a", rows([(1, "x")]))], 10, 11)
    s.advance_since("a", 10)
    s.advance_since("a", 4)
    assert s.since("a") == 10
    with pytest.raises(StorageError):
        s.snapshot("a", 9)
    assert contents(s, "a", 10) == {(1, "x"): 1}


def test_dropped_shards_are_gone(harness: Harness) -> None:
    s = harness.storage
    s.create_shard("a", TYPES)
    s.commit([("a", rows([(1, "x")]))], 10, 11)
    s.drop_shard("a")
    s.drop_shard("a")
    assert not s.has_shard("a")
    if harness.durable:
        s = harness.reopen()
        assert not s.has_shard("a")


def wait_until(condition: Callable[[], bool]) -> None:
    import time

    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "gave up waiting"
        time.sleep(0.002)


def test_compaction_keeps_contents_and_bounds_parts(harness: Harness) -> None:
    s = harness.storage
    s.create_shard("a", TYPES)
    expected: Counter[tuple[Any, ...]] = Counter()
    ts = 1
    for i in range(600):
        row = (i % 7, "r")
        s_rows = rows([row] * 3) if i % 3 else rows([row] * 3, -1)
        expected[row] += 3 if i % 3 else -3
        s.commit([("a", s_rows)], ts, ts + 1)
        ts += 1
        s.advance_since("a", ts - 1)
    shard = s._shards["a"]
    wait_until(lambda: not shard.compacting)
    assert contents(s, "a", ts - 1) == Counter({k: v for k, v in expected.items() if v})
    assert len(shard.parts) < 100
    if harness.durable:
        s = harness.reopen()
        assert contents(s, "a", ts - 1) == Counter({k: v for k, v in expected.items() if v})
        assert len(s._shards["a"].parts) < 100
        assert s.since("a") >= max(int(p.oks.time.min()) for p in s._shards["a"].parts if p.lower < 100)


def test_deleted_rows_leave(harness: Harness) -> None:
    s = harness.storage
    s.create_shard("a", TYPES)
    many = [(i, "some text that takes space") for i in range(3000)]
    s.commit([("a", rows(many))], 1, 2)
    s.advance_since("a", 1)
    s.commit([("a", rows(many, -1))], 2, 3)
    s.advance_since("a", 2)
    s.commit([("a", rows(many[:1]))], 3, 4)
    s.advance_since("a", 3)
    shard = s._shards["a"]
    wait_until(lambda: not shard.compacting)
    s.commit([("a", rows(many[:1]))], 4, 5)
    wait_until(lambda: not shard.compacting and sum(p.rows for p in shard.parts) <= 2)
    assert contents(s, "a", 4) == {many[0]: 2}


def test_one_process_at_a_time(tmp_path: Path) -> None:
    first = Storage.open(tmp_path)
    with pytest.raises(StorageError, match=r"data directory in use by another process \(pid \d+\)"):
        Storage.open(tmp_path)
    first.close()
    Storage.open(tmp_path).close()


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    s = Storage.open(tmp_path)
    assert s._disk is not None
    s._disk.connection.execute("UPDATE meta SET value = '99' WHERE key = 'format_version'")
    s.close()
    with pytest.raises(StorageError, match="format 99"):
        Storage.open(tmp_path)


def test_an_older_format_is_migrated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    s = Storage.open(tmp_path)
    s.create_shard("a", TYPES)
    s.close()
    monkeypatch.setattr(disk, "FORMAT_VERSION", 2)
    monkeypatch.setitem(disk.MIGRATIONS, 1, lambda db: db.execute("INSERT INTO meta VALUES ('migrated', 'yes')"))
    s = Storage.open(tmp_path)
    assert s.has_shard("a")
    assert s._disk is not None
    assert s._disk.connection.execute("SELECT value FROM meta WHERE key = 'migrated'").fetchone() == ("yes",)
    s.close()


def test_unreferenced_files_are_removed(tmp_path: Path) -> None:
    Storage.open(tmp_path).close()
    (tmp_path / "parts" / "77.arrow").write_bytes(b"left over")
    Storage.open(tmp_path).close()
    assert not list((tmp_path / "parts").iterdir())


def test_concurrent_commits_share_transactions(tmp_path: Path) -> None:
    s = Storage.open(tmp_path)
    s.create_shard("a", TYPES)
    before = s.transactions
    futures = [s.commit_begin([("a", rows([(i, "x")]))], i + 1, i + 2) for i in range(200)]
    for future in futures:
        future.result()
    assert s.transactions - before < 200
    assert sum(contents(s, "a", 200).values()) == 200
    s.close()


def test_an_unusable_path_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StorageError, match="cannot open data directory"):
        Storage.open(tmp_path / "file" / "below")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "mzlite.db").write_bytes(b"this is not a database" * 100)
    with pytest.raises(StorageError, match="cannot open data directory"):
        Storage.open(tmp_path / "bad")


WRITER = """
import sys
from mzlite.repr import types as t
from mzlite.repr.updates import updates_from_rows
from mzlite.storage.storage import Storage

s = Storage.open(sys.argv[1])
if not s.has_shard("a"):
    s.create_shard("a", (t.INT4, t.TEXT))
i = s.table_upper
while True:
    size = 3000 if i % 7 == 3 else 1
    text = "text " * 6
    s.commit([("a", updates_from_rows((t.INT4, t.TEXT), [(i, text)] * size, 0))], i, i + 1)
    if i % 5 == 4:
        s.commit([("a", updates_from_rows((t.INT4, t.TEXT), [(i, text)], 0, -1))], i + 1, i + 2)
    s.advance_since("a", i)
    s.catalog_transaction({"last": str(i).encode()})
    print(i, flush=True)
    i += 2
"""


def expected_rows(i: int) -> int:
    return (3000 if i % 7 == 3 else 1) - (1 if i % 5 == 4 else 0)


@pytest.mark.parametrize("seed", range(3))
def test_kill_at_any_moment(tmp_path: Path, seed: int) -> None:
    """A writer is killed again and again; every write it acknowledged is there, whole, and no file is left over."""
    rng = np.random.default_rng(seed)
    acknowledged: list[int] = []
    for _ in range(4):
        process = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        for _ in range(int(rng.integers(1, 25))):
            line = process.stdout.readline()
            assert line, "the writer died by itself"
            acknowledged.append(int(line))
        process.kill()
        acknowledged += [int(line) for line in process.stdout.read().split("\n")[:-1]]
        process.wait()
        process.stdout.close()
        s = Storage.open(tmp_path)
        counts: Counter[int] = Counter()
        for (i, _), n in contents(s, "a", s.table_upper - 1).items():
            counts[i] += n
        for i in acknowledged:
            assert counts.pop(i, 0) == expected_rows(i), i
        # Beyond what was acknowledged there may be at most the write that was under way.
        assert len(counts) <= 4
        assert int(s.load_catalog()["last"]) >= acknowledged[-1]
        s.close()
