"""Batches, builders, merges, spines, views: what a trace holds is what was put in, at every time from since on."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest

from compute.trace.arrangement import Arrangement
from compute.trace.batch import Batch, Description
from compute.trace.builder import BatchBuilder
from compute.trace.merge import Merge
from compute.trace.sorting import key_codes
from compute.trace.spine import Spine
from compute.trace.view import View
from mzlite.expr.scalar import Call, Ref
from mzlite.repr.column import Column
from mzlite.repr.fixed import FixedColumn
from mzlite.repr.interval import IntervalColumn
from mzlite.repr.numeric import NumericColumn
from mzlite.repr.types import INT8
from mzlite.repr.var import VarColumn

Change = tuple[int, int, int, int]  # key, value, time, diff


def batch_of(changes: list[Change], description: Description | None = None, rows: int = 1_000_000) -> Batch:
    builder = BatchBuilder((0,))
    for start in range(0, len(changes), rows):
        part = np.array(changes[start : start + rows], np.int64).reshape(-1, 4)
        columns = (FixedColumn(part[:, 0].copy()), FixedColumn(part[:, 1].copy()))
        builder.push(columns, part[:, 2].astype(np.uint64), part[:, 3].copy())
    for _ in builder.done(description or Description(0, None, 0)):
        pass
    assert builder.result is not None
    return builder.result


def net(changes: list[Change], at: int) -> Counter[tuple[int, int]]:
    out: Counter[tuple[int, int]] = Counter()
    for key, value, time, diff in changes:
        if time <= at:
            out[key, value] += diff
    return Counter({k: n for k, n in out.items() if n})


def held(batches: list[Batch], at: int) -> Counter[tuple[int, int]]:
    changes: list[Change] = []
    for b in batches:
        key, value = b.columns
        assert isinstance(key, FixedColumn) and isinstance(value, FixedColumn)
        changes += zip(key.values.tolist(), value.values.tolist(), b.time.tolist(), b.diff.tolist())
    return net(changes, at)


def random_changes(random: Random, count: int, times: int = 5, keys: int = 50) -> list[Change]:
    return [
        (random.randrange(keys), random.randrange(3), random.randrange(times), random.choice([1, 1, -1]))
        for _ in range(count)
    ]


@pytest.mark.parametrize("rows", [1, 7, 10_000])
def test_a_builder_seals_what_it_was_given(rows: int) -> None:
    changes = random_changes(Random(rows), 500)
    batch = batch_of(changes, rows=rows)
    batch.check()
    for at in range(5):
        assert held([batch], at) == net(changes, at)


def test_many_sorted_runs_side_by_side_merge_in_few_slices() -> None:
    codes = batch_of([(k, 0, 0, 1) for k in range(40_000)])
    runs = [codes.slice(i, i + 500) for i in range(0, 40_000, 500)]
    merge = Merge(runs, 0, Description(0, None, 0))
    slices = 1
    while not merge.work(4_000):
        slices += 1
    assert slices < 40
    assert merge.result is not None and len(merge.result) == 40_000
    merge.result.check()


def test_merging_advances_times_and_cancels() -> None:
    older = batch_of([(1, 1, 0, 1), (2, 2, 1, 1)], Description(0, 2, 0))
    newer = batch_of([(1, 1, 3, -1), (2, 2, 4, -1)], Description(2, 5, 0))
    merge = Merge([older, newer], 3, Description(0, 5, 3))
    while not merge.work(1_000):
        pass
    result = merge.result
    assert result is not None
    assert held([result], 3) == Counter({(2, 2): 1}) and held([result], 4) == Counter()
    assert len(result) == 2


def test_a_spine_stays_short_and_right_under_single_rows() -> None:
    random = Random(5)
    spine = Spine()
    changes: list[Change] = []
    for time in range(3_000):
        change = (random.randrange(1_000), 0, time, 1)
        changes.append(change)
        spine.insert(batch_of([change], Description(time, time + 1, spine.since)), time + 1)
        assert len(spine.batches) <= 16
        if time % 100 == 99:
            spine.advance_since(time)
    spine.check()
    assert held(spine.batches, 3_000) == net(changes, 3_000)
    while spine.work(1_000):
        pass
    spine.check()
    assert held(spine.batches, 3_000) == net(changes, 3_000)


def test_readers_keep_their_chain_while_merges_go_on() -> None:
    spine = Spine()
    changes = random_changes(Random(1), 400, times=1)
    for start in range(0, 400, 20):
        spine.insert(batch_of(changes[start : start + 20]), None)
        chain = spine.chain()
        before = held(list(chain), 0)
        spine.work(50)
        assert held(list(chain), 0) == before == held(spine.batches, 0)


def test_a_lookup_finds_exactly_its_keys_below_its_bound() -> None:
    changes = [(k, v, t, 1) for k in range(100) for v in range(3) for t in (v,)]
    view = View((batch_of(changes[:150]), batch_of(changes[150:])), before=2)
    probes = (FixedColumn(np.array([7, 93, 1_000])),)
    found = view.find((0,), key_codes(probes, 3), probes, (0, 1))
    assert found is not None
    key, value = found.columns
    assert isinstance(key, FixedColumn) and isinstance(value, FixedColumn)
    rows = sorted(zip(found.probe.tolist(), key.values.tolist(), value.values.tolist()))
    assert rows == [(0, 7, 0), (0, 7, 1), (1, 93, 0), (1, 93, 1)]


def test_every_kind_of_column_survives_a_segment() -> None:
    n = 50
    rng = np.random.default_rng(0)
    valid = rng.random(n) < 0.7
    columns: tuple[Column, ...] = (
        FixedColumn(rng.integers(0, 9, n), valid),
        FixedColumn(rng.random(n)),
        VarColumn.from_strings([None if i % 5 == 0 else "x" * i for i in range(n)]),
        NumericColumn(rng.integers(0, 999, n), 2, valid),
        IntervalColumn.from_parts(np.ones(n), np.arange(n), np.zeros(n)),
    )
    builder = BatchBuilder((2,))
    builder.push(columns, rng.integers(0, 3, n).astype(np.uint64), np.ones(n, np.int64))
    batch = builder.done_now(Description(0, 9, 0))
    assert batch is not None
    target = memoryview(bytearray(batch.size_encoded))
    assert batch.write_into(target) == batch.size_encoded
    again = Batch.read_from(target)
    again.check()
    assert all(bool(a.equals(b).all()) for a, b in zip(batch.columns, again.columns))
    assert (batch.time == again.time).all() and (batch.diff == again.diff).all() and (batch.code == again.code).all()
    assert again.description == batch.description


def test_since_is_the_meet_of_the_holds() -> None:
    arrangement = Arrangement((Ref(0),), 2)
    export, reader = arrangement.hold(0), arrangement.hold(0)
    export.downgrade(9)
    assert arrangement.since == 0
    reader.downgrade(5)
    assert arrangement.since == arrangement.oks.since == arrangement.errs.since == 5
    reader.downgrade(3)
    assert arrangement.since == 5 and reader.time == 5
    reader.release()
    reader.release()
    assert arrangement.since == 9
    assert arrangement.hold(2).time == 9, "a late hold starts at since"


def test_a_key_of_expressions_is_stored_beside_the_row() -> None:
    arrangement = Arrangement((Call("neg_int8", (Ref(1),), INT8), Ref(0)), 2)
    layout = arrangement.layout
    assert layout.positions == (2, 0) and layout.width == 3
    rows, columns, errors = layout.extend((FixedColumn(np.array([1, 2])), FixedColumn(np.array([5, -(2**63)]))), 2)
    assert errors is not None and errors[0].tolist() == [1], "a row whose key fails is an error"
    assert rows is not None and rows.tolist() == [0]
    extra = columns[2]
    assert isinstance(extra, FixedColumn) and extra.values.tolist() == [-5]


def test_a_constant_time_is_stored_once() -> None:
    n = 10_000
    batch = batch_of([(i, i, 7, 1) for i in range(n)])
    raw = sum(c.nbytes for c in batch.columns)
    assert batch.nbytes < 1.6 * raw
    assert batch.time_min == batch.time_max == 7
