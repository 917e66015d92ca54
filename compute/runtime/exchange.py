"""Exchange between the workers of one runtime: every dataflow has its own channels on one socket per pair of workers.

A dataflow is known by its incarnation, which all workers count alike. Messages for a dataflow that this worker has not
built yet wait; messages for one that it has dropped are thrown away. Nothing blocks: sends are queued by the link.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import msgspec

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[int, int, bytes]).decode


FAILURE_CHANNEL = -2


class DataflowExchange:
    """One dataflow's channels (`render.context.Exchange`). Messages of one (channel, sender) keep their order."""

    def __init__(self, incarnation: int, send: Callable[[int, bytes], None]) -> None:
        self.incarnation = incarnation
        self._send = send
        self._inbox: dict[tuple[int, int], deque[bytes]] = {}

    def send(self, channel: int, to: int, payload: bytes) -> None:
        self._send(to, _encode((self.incarnation, channel, payload)))

    def receive(self, channel: int, sender: int) -> bytes | None:
        queue = self._inbox.get((channel, sender))
        return queue.popleft() if queue else None

    @property
    def sender_count(self) -> int:
        return 1 + max((sender for _, sender in self._inbox), default=-1)

    def deliver(self, channel: int, sender: int, payload: bytes) -> None:
        self._inbox.setdefault((channel, sender), deque()).append(payload)


class WorkerExchange:
    """send(worker, payload) puts a message on the link to another worker. arrived(incarnation): it may go on."""

    def __init__(self, worker: int, send: Callable[[int, bytes], None]) -> None:
        self.worker = worker
        self._send = send
        self._open: dict[int, DataflowExchange] = {}
        self._early: dict[int, list[tuple[int, int, bytes]]] = {}
        self._latest = 0
        self.arrived: Callable[[int], None] = lambda incarnation: None

    def open(self, incarnation: int) -> DataflowExchange:
        """Channels of a dataflow that is being built."""
        exchange = DataflowExchange(incarnation, self._send)
        self._open[incarnation] = exchange
        self._latest = max(self._latest, incarnation)
        for channel, sender, payload in self._early.pop(incarnation, ()):
            exchange.deliver(channel, sender, payload)
        for incarnation in [i for i in self._early if i <= self._latest and i not in self._open]:
            del self._early[incarnation]
        return exchange

    def fail(self, incarnation: int, workers: int, error: bytes) -> None:
        """Tell the other workers that a dataflow has failed here: they would wait for its messages for ever."""
        exchange = self._open.get(incarnation)
        if exchange is not None:
            for to in range(workers):
                if to != self.worker:
                    exchange.send(FAILURE_CHANNEL, to, error)

    def failure(self, incarnation: int) -> bytes | None:
        """What another worker's failure was."""
        exchange = self._open.get(incarnation)
        if exchange is None:
            return None
        for sender in range(exchange.sender_count):
            error = exchange.receive(FAILURE_CHANNEL, sender)
            if error is not None:
                return error
        return None

    def close(self, incarnation: int) -> None:
        self._open.pop(incarnation, None)

    def receive(self, sender: int, data: bytes) -> None:
        """A message from another worker."""
        incarnation, channel, payload = _decode(data)
        exchange = self._open.get(incarnation)
        if exchange is not None:
            exchange.deliver(channel, sender, payload)
            self.arrived(incarnation)
        elif incarnation > self._latest:
            self._early.setdefault(incarnation, []).append((channel, sender, payload))

    @property
    def open_count(self) -> int:
        return len(self._open) + len(self._early)
