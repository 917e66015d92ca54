"""The run loop of a worker process: the only place in the runtime that touches sockets.

    control socket    commands in, responses out (one frame for everything a turn produced)
    registry socket   to the twin worker of the other runtime
    exchange sockets  to the other workers of this runtime
    shard socket      storage

One turn: wait for any of them (not at all when there is a slice to run), handle what arrived, run one slice, send what
came of it. An idle worker sleeps in the wait: nothing polls.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import select
import socket
import sys
import time
from collections import deque
from collections.abc import Callable

from compute.client.placement import Role
from compute.protocol.framing import Deframer, decode_commands, encode_message, frame
from compute.runtime.exchange import WorkerExchange
from compute.runtime.shard_socket import ShardSocket
from compute.runtime.spawn import SpawnRequest
from compute.runtime.worker import Worker
from compute.shared.link import Link, LinkClosed
from compute.shared.publisher import Publisher
from compute.shared.registry import Registry

MAINTENANCE_NICE = 10
BURST_SLICES = 100
TRIM_S = 3.0
_READ_BYTES = 1 << 20
_IN = select.POLLIN | select.POLLHUP | select.POLLERR


class ControllerGone(Exception):
    """End of file on the control socket: the orderly end of a worker."""


class Control:
    """The control socket: frames in, an unbounded queue of frames out."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.sock = sock
        self._deframer = Deframer()
        self._unsent: deque[memoryview] = deque()

    def fileno(self) -> int:
        return self.sock.fileno()

    @property
    def backlogged(self) -> bool:
        return bool(self._unsent)

    def receive(self) -> list[bytes]:
        try:
            data = self.sock.recv(_READ_BYTES)
        except BlockingIOError:
            return []
        except OSError as error:
            raise ControllerGone from error
        if not data:
            raise ControllerGone
        return self._deframer.feed(data)

    def send(self, data: bytes) -> None:
        self._unsent.append(memoryview(data))
        self.flush()

    def flush(self) -> None:
        unsent = self._unsent
        try:
            while unsent:
                sent = self.sock.send(unsent[0])
                if sent < len(unsent[0]):
                    unsent[0] = unsent[0][sent:]
                    return
                unsent.popleft()
        except BlockingIOError:
            return
        except OSError as error:
            if error.errno == errno.ENOBUFS:
                return
            raise ControllerGone from error


class Memory:
    """Gives freed memory back to the system after a burst of work: a hydration's intermediate arrays fill the heap, and
    the allocator keeps what it once got. Not more often than every TRIM_S: it takes milliseconds."""

    def __init__(self) -> None:
        self.slices = 0
        self._trimmed_at = time.monotonic()
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
        self._trim: Callable[[int], object] | None = trim

    def idle(self) -> float | None:
        """About to wait. Returns in how many seconds it wants to be asked again, if at all."""
        if self._trim is None or self.slices <= BURST_SLICES:
            return None
        wait_s = self._trimmed_at + TRIM_S - time.monotonic()
        if wait_s > 0:
            return wait_s
        self._trim(0)
        self.slices = 0
        self._trimmed_at = time.monotonic()
        return None


def run(request: SpawnRequest, socks: list[socket.socket]) -> None:
    """Be the worker that `request` describes; returns when the controller is gone."""
    role = Role(request.role)
    if role is Role.MAINTENANCE:
        # Everything that answers a person goes first on a machine without an idle core.
        with contextlib.suppress(OSError):
            os.nice(MAINTENANCE_NICE)
    with contextlib.suppress(ControllerGone, LinkClosed):
        # A closed link is the end of a twin: the controller ends the whole replica anyway.
        WorkerProcess(request, role, socks).loop()


class WorkerProcess:
    def __init__(self, request: SpawnRequest, role: Role, socks: list[socket.socket]) -> None:
        self.control = Control(socks[0])
        registry_link = Link(socks[1]) if request.has_registry else None
        self.registry_link = registry_link
        peers = socks[1 + int(request.has_registry) :]
        ordinals = [w for w in range(request.workers) if w != request.worker]
        self.exchange_links = {ordinal: Link(sock) for ordinal, sock in zip(ordinals, peers, strict=True)}
        self.exchange = WorkerExchange(request.worker, self._exchange_send)
        self.shards = ShardSocket(request.shard_socket)
        publisher = None
        registry = None
        if role is Role.MAINTENANCE:
            assert registry_link is not None
            publisher = Publisher(registry_link)
        elif role is Role.INTERACTIVE:
            assert registry_link is not None
            registry = Registry(registry_link.send, registry_link.take_fd)
        self.publisher = publisher
        self.registry = registry
        self.memory = Memory()
        self.worker = Worker(
            role,
            request.worker,
            request.workers,
            storage=self.shards,
            exchange=self.exchange,
            publisher=publisher,
            registry=registry,
            now_ms=lambda: time.time_ns() // 1_000_000,
        )

    def _exchange_send(self, worker: int, payload: bytes) -> None:
        self.exchange_links[worker].send(payload)

    def loop(self) -> None:
        worker = self.worker
        poller = select.poll()
        handlers: dict[int, Callable[[int], None]] = {}
        writable: dict[int, Control | Link | ShardSocket] = {}

        def watch(channel: Control | Link | ShardSocket, handler: Callable[[int], None]) -> None:
            fd = channel.fileno()
            poller.register(fd, _IN)
            handlers[fd] = handler
            writable[fd] = channel

        watch(self.control, self._control_ready)
        if self.registry_link is not None:
            watch(self.registry_link, self._registry_ready)
        for ordinal, link in self.exchange_links.items():
            watch(link, lambda events, link=link, ordinal=ordinal: self._exchange_ready(link, ordinal))  # type: ignore[misc]
        shard_watched = False
        wants_write: set[int] = set()
        busy = False
        next_tick: float | None = None
        while True:
            if not shard_watched and self.shards.connected:
                watch(self.shards, self._shards_ready)
                shard_watched = True
            for fd, channel in writable.items():
                if channel.backlogged is not (fd in wants_write):
                    wants_write ^= {fd}
                    poller.modify(fd, _IN | (select.POLLOUT if fd in wants_write else 0))
            timeout_ms = 0.0 if busy else self._timeout_ms(next_tick)
            if timeout_ms == 0.0:
                ready = poller.poll(0)
            else:
                parked_ns = time.perf_counter_ns()
                ready = poller.poll(timeout_ms)
                worker.events.parked(timeout_ms, time.perf_counter_ns() - parked_ns)
            for fd, events in ready:
                if events & select.POLLOUT:
                    writable[fd].flush()
                if events & _IN:
                    handlers[fd](events)
            interval_s = worker.logging_interval_s
            if interval_s is not None:
                now = time.monotonic()
                if next_tick is None or now >= next_tick:
                    next_tick = now + interval_s
                    worker.tick()
            # A fresh peek was answered while its command was handled: do not hold the answer back for a slice.
            if worker.outbox:
                self._send()
            busy = worker.step()
            self.memory.slices += busy
            self._send()

    def _timeout_ms(self, next_tick: float | None) -> float | None:
        """How long to wait: until the next read-out of the logs, or until memory wants to be looked at; None: for ever."""
        wait_s = self.memory.idle()
        if next_tick is not None:
            tick_s = max(0.0, next_tick - time.monotonic())
            wait_s = tick_s if wait_s is None else min(wait_s, tick_s)
        return None if wait_s is None else wait_s * 1000 + 1

    def _send(self) -> None:
        outbox = self.worker.take_outbox()
        if outbox:
            self.control.send(frame(encode_message(outbox)))

    def _control_ready(self, events: int) -> None:
        for data in self.control.receive():
            for command in decode_commands(data):
                self.worker.handle(command)

    def _registry_ready(self, events: int) -> None:
        assert self.registry_link is not None
        payloads = self.registry_link.receive()
        for payload in payloads:
            if self.registry is not None:
                self.registry.handle(payload)
            elif self.publisher is not None:
                self.publisher.handle(payload)
        if payloads and self.registry is not None:
            self.worker.registry_moved()

    def _exchange_ready(self, link: Link, ordinal: int) -> None:
        for payload in link.receive():
            self.exchange.receive(ordinal, payload)

    def _shards_ready(self, events: int) -> None:
        self.shards.dispatch()
