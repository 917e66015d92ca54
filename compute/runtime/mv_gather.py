"""With several workers, one writes a materialized view: the others forward their part of every round to it.

worker 0  push ─┐
worker 1  push ─┴─▶ SinkGatherer: what all have completed ─▶ MaterializedViewWriter ─▶ shard
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from compute.runtime.exchange import DataflowExchange
from compute.runtime.mv_sink import MaterializedViewWriter
from mzlite.repr.encode import decode_updates, encode_updates
from mzlite.repr.timestamp import Frontier, meet
from mzlite.repr.updates import Updates

SINK_CHANNEL = -1
"""Channels of the dataflow's own operators are not negative."""


class _Part(msgspec.Struct, frozen=True):
    upper: Frontier
    updates: bytes | None
    errs: bytes | None


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Part).decode


class SinkWriter(Protocol):
    """What a worker does with the output of a materialized view's dataflow."""

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def allow_writes(self) -> None: ...
    def poll(self) -> None: ...
    def push(self, updates: Updates | None, errs: Updates | None, upper: Frontier) -> None: ...


class SinkForwarder:
    """On a worker that does not write."""

    def __init__(self, exchange: DataflowExchange, owner: int) -> None:
        self._exchange = exchange
        self._owner = owner

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def allow_writes(self) -> None: ...

    def poll(self) -> None: ...

    def push(self, updates: Updates | None, errs: Updates | None, upper: Frontier) -> None:
        part = _Part(
            upper,
            encode_updates(updates) if updates is not None and len(updates) else None,
            encode_updates(errs) if errs is not None and len(errs) else None,
        )
        self._exchange.send(SINK_CHANNEL, self._owner, _encode(part))


class SinkGatherer:
    """On the worker that writes: the writer hears of a time once every worker has completed it."""

    def __init__(self, writer: MaterializedViewWriter, exchange: DataflowExchange, worker: int, workers: int) -> None:
        self._writer = writer
        self._exchange = exchange
        self._worker = worker
        self._uppers: list[Frontier] = [0] * workers
        self._joint: Frontier = 0

    def start(self) -> None:
        self._writer.start()

    def stop(self) -> None:
        self._writer.stop()

    def allow_writes(self) -> None:
        self._writer.allow_writes()

    def poll(self) -> None:
        for sender in range(len(self._uppers)):
            if sender == self._worker:
                continue
            while (data := self._exchange.receive(SINK_CHANNEL, sender)) is not None:
                part = _decode(data)
                updates = decode_updates(part.updates) if part.updates is not None else None
                errs = decode_updates(part.errs) if part.errs is not None else None
                self._absorb(sender, updates, errs, part.upper)

    def push(self, updates: Updates | None, errs: Updates | None, upper: Frontier) -> None:
        self._absorb(self._worker, updates, errs, upper)

    def _absorb(self, sender: int, updates: Updates | None, errs: Updates | None, upper: Frontier) -> None:
        self._uppers[sender] = upper
        joint: Frontier = None
        for each in self._uppers:
            joint = meet(joint, each)
        # Early parts wait inside the writer: it writes nothing at or beyond the joint frontier.
        self._joint = joint
        self._writer.push(updates, errs, joint)
