"""Logging: the log relations as arrangements, kept by the runtime that maintains (or Solo).

Once per interval the sampler's changes, and those that the interactive twin has sent, become one batch per relation at
the present time; then every log index is complete up to the next millisecond. A read of one is a peek like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from compute.protocol.logs import LOGS
from compute.protocol.response import Frontiers
from compute.runtime.log_sampler import LogSampler, Row, offset_of
from compute.trace.arrangement import Arrangement, ArrangementHold
from compute.trace.batch import Description
from compute.trace.builder import BatchBuilder
from compute.trace.layout import KeyLayout
from mzlite.expr.scalar import Ref
from mzlite.repr.encode import encode_updates
from mzlite.repr.ids import GlobalId
from mzlite.repr.timestamp import Frontier, Timestamp
from mzlite.repr.updates import Updates, concat_updates, updates_from_rows

if TYPE_CHECKING:
    from compute.runtime.worker import Worker


def layout_of(variant: str) -> KeyLayout:
    relation = LOGS[variant]
    return KeyLayout(tuple(Ref(i) for i in relation.key), relation.typ.arity)


class Logging:
    """logs: variant -> id of its index. on_change(id): an arrangement moved."""

    def __init__(
        self, worker: Worker, logs: Mapping[str, GlobalId], interval_ms: int, on_change: Callable[[GlobalId], None]
    ) -> None:
        self.interval_ms = interval_ms
        self._worker = worker
        self._on_change = on_change
        self._sampler = LogSampler(worker, offset_of(False))
        self._ids = {variant: id for variant, id in logs.items() if variant in LOGS}
        self._forwarded: dict[str, list[Updates]] = {}
        self.arrangements: dict[GlobalId, Arrangement] = {}
        self._holds: dict[GlobalId, ArrangementHold] = {}
        for variant, id in self._ids.items():
            layout = layout_of(variant)
            arrangement = Arrangement(layout.key, layout.arity)
            self.arrangements[id] = arrangement
            self._holds[id] = arrangement.hold(0)
        self._upper: Timestamp = 0

    def forward(self, variant: str, updates: Updates) -> None:
        """Changes of the interactive twin; they get their time at the next tick."""
        self._forwarded.setdefault(variant, []).append(updates)

    def allow_compaction(self, id: GlobalId, frontier: Frontier) -> None:
        if frontier is not None:
            self._holds[id].downgrade(frontier)

    def tick(self) -> None:
        """Bring every log index up to now."""
        now = max(self._worker.now_ms(), self._upper)
        changes = self._sampler.sample()
        for variant, id in self._ids.items():
            parts = self._forwarded.pop(variant, [])
            rows = changes.get(variant)
            if rows:
                parts.append(updates_of(variant, rows))
            self._insert(variant, self.arrangements[id], parts, now)
            self._on_change(id)
        self._upper = now + 1

    def _insert(self, variant: str, arrangement: Arrangement, parts: list[Updates], now: Timestamp) -> None:
        batch = None
        if parts:
            joint = concat_updates(parts)
            builder = BatchBuilder(arrangement.layout.positions)
            builder.push(joint.columns, np.full(len(joint), now, np.uint64), joint.diff)
            for _ in builder.done(Description(self._upper, now + 1, 0)):
                pass
            batch = builder.result
        arrangement.insert(batch, None, now + 1)

    def reports(self) -> list[Frontiers]:
        upper = self._upper
        return [Frontiers(id, upper, True, upper, True, upper, True) for id in self._ids.values()]


class LogForwarder:
    """The interactive worker's side: samples, and hands encoded changes to the registry's link."""

    def __init__(self, worker: Worker, interval_ms: int, send: Callable[[str, bytes], None]) -> None:
        self.interval_ms = interval_ms
        self._sampler = LogSampler(worker, offset_of(True))
        self._send = send

    def tick(self) -> None:
        for variant, rows in self._sampler.sample().items():
            self._send(variant, encode_updates(updates_of(variant, rows)))


def updates_of(variant: str, rows: Mapping[Row, int]) -> Updates:
    """Rows and their diffs, at time 0."""
    types = [c.scalar for c in LOGS[variant].typ.columns]
    updates = updates_from_rows(types, list(rows), 0, 1)
    return updates.with_diff(np.fromiter(rows.values(), np.int64, len(rows)))
