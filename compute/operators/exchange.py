"""Exchange: rows move to the worker that owns their key, hash(key) % workers.

Every worker runs the same rounds, so an exchange is a barrier: in each round (each iteration of a loop) a worker sends
its rows to every other one, then an end mark, and goes on when it has everybody's end mark. Messages of a channel stay
in order per sender, so rounds need no numbers.

    message = 0 + encoded updates | 1 (end of this round's rows)
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from compute.operators.base import Graph, Operator, Port
from compute.render.context import Exchange as Channels
from compute.trace.layout import KeyLayout
from mzlite.repr.column import hash_rows
from mzlite.repr.encode import decode_updates, encode_updates
from mzlite.repr.updates import Updates

_END = b"\x01"


class Exchange(Operator):
    """layout: the key by which rows are placed. Rows whose key cannot be evaluated stay (and fail downstream)."""

    always = True

    def __init__(
        self, graph: Graph, layout: KeyLayout, channels: Channels, number: int, worker: int, workers: int
    ) -> None:
        super().__init__(graph)
        self.oks = Port(graph)
        self.layout = layout
        self.channels = channels
        self.number = number
        self.worker = worker
        self.workers = workers
        self.others = [w for w in range(workers) if w != worker]

    def intake(self, index: int, updates: Updates) -> None:
        n = len(updates)
        rows, columns, _ = self.layout.extend(updates.columns, n)
        m = n if rows is None else len(rows)
        key = [columns[i] for i in self.layout.positions]
        to = (hash_rows(key, m) % np.uint64(self.workers)).astype(np.int64)
        if rows is not None:
            every = np.full(n, self.worker, np.int64)
            every[rows] = to
            to = every
        for other in self.others:
            mine = np.flatnonzero(to == other)
            if len(mine):
                self.channels.send(self.number, other, b"\x00" + encode_updates(updates.take(mine)))
        own = np.flatnonzero(to == self.worker)
        if len(own):
            self.oks.emit(updates if len(own) == n else updates.take(own))

    def flush(self) -> Iterator[None]:
        for other in self.others:
            self.channels.send(self.number, other, _END)
        for other in self.others:
            while True:
                message = self.channels.receive(self.number, other)
                if message is None:
                    block(self.graph)
                    yield
                    continue
                if message[0]:
                    break
                self.oks.emit(decode_updates(memoryview(message)[1:].tobytes()))
                yield


def block(graph: Graph) -> None:
    """Nothing to do until a message arrives: tell the outermost graph."""
    while graph.parent is not None:
        graph = graph.parent
    graph.blocked = True


def agree_least(
    graph: Graph, channels: Channels, number: int, worker: int, workers: int, mine: int
) -> Iterator[int | None]:
    """All workers learn the least of their values. Yields None while waiting, then the value."""
    payload = mine.to_bytes(9, "little")
    for other in range(workers):
        if other != worker:
            channels.send(number, other, payload)
    least = mine
    for other in range(workers):
        if other == worker:
            continue
        while True:
            message = channels.receive(number, other)
            if message is not None:
                least = min(least, int.from_bytes(message, "little"))
                break
            block(graph)
            yield None
    yield least
