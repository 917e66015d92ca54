"""Responses from a replica to the controller, already merged over the workers of a runtime."""

from __future__ import annotations

import msgspec

from mzlite.repr.ids import GlobalId
from mzlite.repr.timestamp import Frontier


class Frontiers(msgspec.Struct, frozen=True, tag="frontiers"):
    """For indexes and storage sinks (not subscribes). Each is monotone, first value >= as_of, None when dropped/complete.

    write: upper of the export; input: meet of import frontiers; output: progress of the dataflow.
    `has_*` tell which are present (None is a value: the empty frontier).
    """

    id: GlobalId
    write: Frontier = None
    has_write: bool = False
    input: Frontier = None
    has_input: bool = False
    output: Frontier = None
    has_output: bool = False


class PeekRows(msgspec.Struct, frozen=True, tag="peek_rows"):
    """rows: encoded Updates (`repr.encode`), time column absent-equivalent 0, diff > 0, consolidated or not."""

    uuid: str
    rows: bytes


class PeekError(msgspec.Struct, frozen=True, tag="peek_error"):
    """error: encoded SqlError."""

    uuid: str
    error: bytes


class PeekCanceled(msgspec.Struct, frozen=True, tag="peek_canceled"):
    uuid: str


class SubscribeBatch(msgspec.Struct, frozen=True, tag="subscribe_batch"):
    """Updates with lower <= time < upper, contiguous per id; or one error. The last has upper None."""

    id: GlobalId
    lower: Frontier
    upper: Frontier
    updates: bytes | None
    error: bytes | None = None


class SubscribeDropped(msgspec.Struct, frozen=True, tag="subscribe_dropped"):
    id: GlobalId
    frontier: Frontier


class Status(msgspec.Struct, frozen=True, tag="status"):
    """Extension slot: e.g. gauges for tests and metrics. kind names the report.

    kind "hello" (payload: the nonce) is a worker's first word on a new connection: whatever came before it on the same
    socket concerned the old one.
    """

    kind: str
    payload: bytes


PeekResponse = PeekRows | PeekError | PeekCanceled
ComputeResponse = Frontiers | PeekRows | PeekError | PeekCanceled | SubscribeBatch | SubscribeDropped | Status
