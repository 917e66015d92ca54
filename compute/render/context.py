"""RenderContext: what a dataflow takes from its worker. Functions and small interfaces; no sockets, no clock."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Protocol

from compute.plan.description import IndexImport
from compute.trace.arrangement import TraceSource
from mzlite.repr.ids import GlobalId
from mzlite.repr.timestamp import Frontier, Timestamp
from mzlite.repr.updates import Updates


class Exchange(Protocol):
    """One dataflow's channels to the same dataflow on the other workers.

    Messages of one (channel, sender) arrive in the order they were sent; nothing blocks. Channel numbers are given by
    the dataflow, equally on every worker. When a message arrives, the worker steps the dataflow again.
    """

    def send(self, channel: int, to: int, payload: bytes) -> None: ...

    def receive(self, channel: int, sender: int) -> bytes | None:
        """The next message, or None if none is here yet."""


def _no_trace(id: GlobalId, desc: IndexImport) -> TraceSource:
    raise AssertionError(f"no trace source for {id}")


def _no_subscribe(id: GlobalId, lower: Timestamp, upper: Frontier, updates: bytes | None, error: bytes | None) -> None:
    raise AssertionError(f"no subscriber for {id}")


def _no_append(
    id: GlobalId, shard: str, lower: Timestamp, upper: Frontier, updates: Updates | None, errs: Updates | None
) -> None:
    raise AssertionError(f"no writer for {id}")


@dataclasses.dataclass
class RenderContext:
    """trace: the arrangement behind an index import. subscribe: one round's batch of a subscribe (encoded updates in
    time order, or one encoded error). append: one round's changes of a materialized view, complete before `upper`."""

    worker: int = 0
    workers: int = 1
    trace: Callable[[GlobalId, IndexImport], TraceSource] = _no_trace
    subscribe: Callable[[GlobalId, Timestamp, Frontier, bytes | None, bytes | None], None] = _no_subscribe
    append: Callable[[GlobalId, str, Timestamp, Frontier, Updates | None, Updates | None], None] = _no_append
    exchange: Exchange | None = None
