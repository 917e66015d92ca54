"""Publisher and registry face to face: points, holds, incarnations, both halves; who comes first does not matter."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest

from compute.shared import segments
from compute.shared.messages import BatchParcel, HoldMoved, RegistryMessage, decode_messages
from compute.shared.publisher import Publisher
from compute.shared.registry import Registry
from compute.trace.arrangement import Arrangement
from compute.trace.batch import Batch, Description
from compute.trace.builder import BatchBuilder
from compute.trace.layout import KeyLayout
from mzlite.expr.scalar import Ref
from mzlite.repr.ids import GlobalId
from mzlite.repr.updates import Updates
from tests.sim.replica import SimLink
from tests.unit.compute.dataflows import rows

ID, OTHER = GlobalId("u5"), GlobalId("u6")
LAYOUT = KeyLayout((Ref(0),), 2)


def batch(updates: Updates, lower: int, upper: int) -> Batch:
    builder = BatchBuilder(LAYOUT.positions)
    builder.push(updates.columns, updates.time, updates.diff)
    for _ in builder.done(Description(lower, upper, 0)):
        pass
    assert builder.result is not None
    return builder.result


class Pair:
    """Both halves and what is between them, delivered by hand."""

    def __init__(self) -> None:
        self.down, self.up = SimLink(), SimLink()
        self.publisher = Publisher(self.down)
        self.registry = Registry(self.up.send, self.down.take_fd)
        self.arrangement = Arrangement((Ref(0),), 2)
        self.own = self.arrangement.hold(0)  # the renderer's own, moved by AllowCompaction there
        self.upper = 0
        self.seen: deque[RegistryMessage] = deque(maxlen=100)

    def write(self, values: list[tuple[int, str]], time: int) -> None:
        self.arrangement.insert(batch(rows(values, time), self.upper, time + 1) if values else None, None, time + 1)
        self.upper = time + 1
        self.publisher.changed(self.arrangement)
        self.publisher.flush()

    def deliver(self) -> None:
        self.publisher.flush()
        self.registry.flush()
        while self.down.queue or self.up.queue:
            while self.down.queue:
                payload, fds = self.down.queue.popleft()
                self.down.fds.extend(fds)
                self.seen.extend(decode_messages(payload))
                self.registry.handle(payload)
            self.registry.flush()
            while self.up.queue:
                payload, _ = self.up.queue.popleft()
                self.seen.extend(decode_messages(payload))
                self.publisher.handle(payload)

    def create_here(self, incarnation: int = 1, as_of: int = 0, id: GlobalId = ID) -> None:
        self.publisher.register(id, incarnation, self.arrangement, as_of)
        self.publisher.publish(id, incarnation)

    def create_there(self, incarnation: int = 1, as_of: int = 0, id: GlobalId = ID) -> None:
        self.registry.declare_peer(id, incarnation, LAYOUT, as_of)

    def row_count(self) -> int:
        point = self.registry.peer(ID)
        assert point is not None
        return sum(map(len, point.chains()[0]))

    def nothing_left(self) -> bool:
        return self.publisher.leftovers() == 0 and self.registry.counts == (0, 0, 0)


@pytest.mark.parametrize("writer_first", [True, False])
def test_either_side_may_come_first(writer_first: bool) -> None:
    pair = Pair()
    steps = [pair.create_here, pair.create_there]
    for step in steps if writer_first else reversed(steps):
        step()
        pair.deliver()
    pair.write([(1, "a"), (2, "b")], 3)
    pair.deliver()
    point = pair.registry.peer(ID)
    assert point is not None and point.upper == 4
    assert pair.row_count() == 2


def test_an_unpublished_point_knows_nothing_rather_than_everything() -> None:
    pair = Pair()
    pair.create_there(as_of=7)
    point = pair.registry.peer(ID)
    assert point is not None
    assert (point.upper, point.chains(), point.since) == (0, ((), ()), 7)


def test_both_halves_must_be_complete() -> None:
    pair = Pair()
    pair.create_here()
    pair.create_there()
    pair.arrangement.oks.insert(batch(rows([(1, "a")], 2), 0, 3), 3)
    pair.arrangement.version += 1
    pair.publisher.changed(pair.arrangement)
    pair.deliver()
    point = pair.registry.peer(ID)
    assert point is not None and point.upper == 0
    before = pair.registry.version
    pair.arrangement.errs.insert(None, 3)  # sealing errs alone is news too
    pair.arrangement.version += 1
    pair.publisher.changed(pair.arrangement)
    pair.deliver()
    assert point.upper == 3 and pair.registry.version > before


def test_the_slower_stream_decides_how_far_is_compacted() -> None:
    pair = Pair()
    pair.create_here()
    pair.write([(1, "a")], 9)
    # The renderer has processed: create, a reader's create at 0, its drop, AllowCompaction(8). The reader nothing yet.
    pair.own.downgrade(8)
    pair.publisher.allowed(ID, 1, 8)
    pair.deliver()
    assert pair.arrangement.since == 0
    assert pair.publisher.gauges() == (8, 1)
    pair.create_there()
    point = pair.registry.peer(ID)
    assert point is not None
    hold = point.hold(0)  # the import, at a time that the other side has let go of
    assert point.since == 0
    pair.registry.allow_compaction(ID, 8)
    pair.deliver()
    assert pair.arrangement.since == 0
    hold.release()
    pair.deliver()
    assert pair.arrangement.since == 8
    assert pair.publisher.gauges() == (0, 0)


def test_an_import_downgrades_as_it_goes() -> None:
    pair = Pair()
    pair.create_here()
    pair.create_there()
    pair.own.downgrade(50)
    point = pair.registry.peer(ID)
    assert point is not None
    hold = point.hold(0)
    pair.registry.allow_compaction(ID, 50)
    for at in (10, 20, 5):
        hold.downgrade(at)
        pair.deliver()
    assert pair.arrangement.since == 20
    hold.release()
    hold.release()
    pair.deliver()
    assert pair.arrangement.since == 50


def test_compaction_is_idempotent_and_reported_once() -> None:
    pair = Pair()
    pair.create_here()
    pair.create_there()
    for frontier in (4, 4, 2):
        assert pair.registry.allow_compaction(ID, frontier)
        pair.deliver()
    assert [m for m in pair.seen if isinstance(m, HoldMoved)] == [HoldMoved(ID, 1, 4)]
    assert pair.registry.allow_compaction(ID, None)
    assert not pair.registry.allow_compaction(ID, None)
    pair.deliver()
    assert [m.time for m in pair.seen if isinstance(m, HoldMoved)] == [4, None]


@pytest.mark.parametrize("order", ["reader ahead", "writer ahead", "reader ahead, then late delivery"])
def test_created_and_dropped_before_the_other_side_saw_either(order: str) -> None:
    pair = Pair()

    def here() -> None:
        pair.create_here()
        pair.write([(1, "a")], 1)
        pair.publisher.unregister(ID, 1)

    def there() -> None:
        pair.create_there()
        pair.registry.allow_compaction(ID, None)
        pair.registry.flush()

    if order == "writer ahead":
        here()
        pair.deliver()
        there()
    elif order == "reader ahead":
        there()
        pair.deliver()
        here()
    else:
        pair.create_here()  # its word is on the way while the reader drops
        there()
        pair.deliver()
        pair.publisher.unregister(ID, 1)
    pair.deliver()
    assert pair.nothing_left()
    pair.own.downgrade(1)
    assert pair.arrangement.since == 1


def test_a_reader_keeps_what_it_has_after_the_writer_dropped() -> None:
    pair = Pair()
    pair.create_here()
    pair.create_there()
    pair.write([(1, "a")], 1)
    pair.deliver()
    point = pair.registry.peer(ID)
    assert point is not None
    hold = point.hold(1)
    pair.publisher.unregister(ID, 1)
    pair.registry.allow_compaction(ID, None)
    pair.deliver()
    assert pair.registry.peer(ID) is None
    assert (point.upper, sum(map(len, point.chains()[0]))) == (2, 1)
    hold.release()
    pair.deliver()
    assert pair.nothing_left()


def test_a_new_incarnation_never_shows_the_old_trace() -> None:
    pair = Pair()
    pair.create_here()
    pair.create_there()
    pair.write([(1, "old")], 1)
    pair.deliver()
    pair.registry.allow_compaction(ID, None)
    pair.publisher.unregister(ID, 1)
    pair.create_there(incarnation=2, as_of=5)
    pair.deliver()
    point = pair.registry.peer(ID)
    assert point is not None and point.upper == 0
    pair.arrangement = Arrangement((Ref(0),), 2)
    pair.arrangement.hold(5)
    pair.create_here(incarnation=2, as_of=5)
    pair.write([(2, "new"), (3, "new")], 6)
    pair.deliver()
    assert pair.row_count() == 2


def test_re_exports_share_one_trace() -> None:
    pair = Pair()
    pair.create_here()
    pair.create_there()
    pair.create_here(incarnation=2, id=OTHER)
    pair.create_there(incarnation=2, id=OTHER)
    pair.write([(1, "a")], 1)
    pair.deliver()
    first, second = pair.registry.peer(ID), pair.registry.peer(OTHER)
    assert first is not None and second is not None
    assert first.trace is second.trace
    assert pair.registry.counts[1] == 1
    pair.registry.allow_compaction(ID, None)
    pair.publisher.unregister(ID, 1)
    pair.write([(2, "b")], 2)
    pair.deliver()
    assert second.upper == 3 and sum(map(len, second.chains()[0])) == 2


def test_a_stalled_reader_blocks_nobody_and_gets_the_latest() -> None:
    pair = Pair()
    pair.create_here()
    pair.create_there()
    pair.deliver()
    pair.down.backlogged = True
    for time in range(100):
        pair.write([(time, "x")], time)
    assert not pair.down.queue
    pair.down.backlogged = False
    pair.deliver()
    point = pair.registry.peer(ID)
    assert point is not None and point.upper == 100
    assert pair.row_count() == 100


def test_large_batches_travel_as_segments_and_exist_once() -> None:
    pair = Pair()
    pair.create_here()
    pair.create_there()
    pair.deliver()
    count = 20_000
    pair.arrangement.insert(batch(rows([(i, "some text") for i in range(count)], 1), 0, 2), None, 2)
    pair.publisher.changed(pair.arrangement)
    pair.publisher.flush()
    (_, fds) = pair.down.queue[-1]
    assert len(fds) == 1
    pair.deliver()
    assert pair.row_count() == count
    for chain in (pair.arrangement.chains()[0], pair.registry.peer(ID).chains()[0]):  # type: ignore[union-attr]
        assert not chain[0].code.flags.writeable
        assert not chain[0].code.flags.owndata
    chain[0].check()


def test_a_segment_outlives_its_descriptor() -> None:
    import os

    written = batch(rows([(i, "t") for i in range(1000)]), 0, 1)
    fd = segments.write(written)
    mapped = segments.read(fd, written.size_encoded)
    os.close(fd)
    assert np.array_equal(mapped.code, written.code)
    assert BatchParcel(1, 2).inline is None
