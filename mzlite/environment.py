"""The environment process: wires storage, controller, coordinator and the wire server together, and runs them.

    Storage ◀── ShardServer ◀── workers (shards)
       ▲                          ▲
    Coordinator ──▶ ComputeController ──▶ workers (commands)
       ▲
    PgServer ◀── clients

`serve` prints one line on standard output once connections are accepted, and returns the exit status.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import resource
import signal
import ssl
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from adapter.coord.coordinator import Coordinator
from compute.client.controller import ComputeController
from mzlite.pgwire.announce import READY
from mzlite.pgwire.server import PgServer
from mzlite.repr.errors import SqlError
from mzlite.storage import ShardServer, Storage, StorageError


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """data_dir None: in memory. lifeline: stop when standard input ends."""

    data_dir: Path | None
    host: str
    port: int
    tls_cert: str | None = None
    tls_key: str | None = None
    lifeline: bool = False


def serve(options: ServeOptions) -> int:
    """Run a server until it is told to stop. 0 after a clean stop, 1 when it could not start.

    errors: SqlError with a hint when it cannot listen, or cannot read its certificate.
    """
    _raise_descriptor_limit()
    try:
        return asyncio.run(_serve(options))
    except StorageError as error:
        print(f"mzlite: {error}", file=sys.stderr)
        return 1


async def _serve(options: ServeOptions) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if options.lifeline:
        _watch_lifeline(loop, stop)
    tls = _tls_context(options)
    async with contextlib.AsyncExitStack() as stack:
        server = await _start(options, tls, stack)
        stack.push_async_callback(server.close)
        try:
            host, port = await server.listen(options.host, options.port)
        except OSError as error:
            raise SqlError(
                "58000",
                f"cannot listen on {options.host}:{options.port}: {_reason(error)}",
                hint="another server may be running; choose a port with --listen HOST:PORT",
            ) from None
        _settle_memory()
        print(f"mzlite {READY}postgres://materialize@{_display(host)}:{port}/materialize", flush=True)
        await stop.wait()
    return 0


async def _start(options: ServeOptions, tls: ssl.SSLContext | None, stack: contextlib.AsyncExitStack) -> PgServer:
    """Everything below the wire, in order; the stack takes it down in reverse."""
    storage = Storage.open(options.data_dir)
    stack.callback(storage.close)
    sockets = stack.enter_context(tempfile.TemporaryDirectory(prefix="mzlite-"))
    shard_socket = os.path.join(sockets, "shards")
    shards = ShardServer(storage)
    await shards.start(shard_socket)
    stack.push_async_callback(shards.close)
    controller = ComputeController(shard_socket, on_storage_since=storage.advance_since_or_drop)
    await controller.start()
    stack.push_async_callback(controller.shutdown)
    coordinator = Coordinator(storage, controller)
    await coordinator.start()
    stack.push_async_callback(coordinator.shutdown)
    return PgServer(coordinator, tls)


def _tls_context(options: ServeOptions) -> ssl.SSLContext | None:
    if options.tls_cert is None or options.tls_key is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(options.tls_cert, options.tls_key)
    except (OSError, ssl.SSLError) as error:
        raise SqlError("58000", f"cannot use the TLS certificate {options.tls_cert}: {error}") from None
    return context


def _watch_lifeline(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    """Our parent holds the other end of standard input: its end is ours."""
    fd = sys.stdin.fileno()

    def readable() -> None:
        if os.read(fd, 4096) == b"":
            loop.remove_reader(fd)
            stop.set()

    os.set_blocking(fd, False)
    loop.add_reader(fd, readable)


def _raise_descriptor_limit() -> None:
    """To the hard limit, for the workers too: every large segment, file and client holds a descriptor."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):  # some systems refuse their own hard limit
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _settle_memory() -> None:
    """What start-up made stays for good: keep it out of every later garbage collection, whose pauses reads would feel."""
    gc.collect()
    gc.freeze()


def _reason(error: OSError) -> str:
    """The system's words, without asyncio's around them."""
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno).lower()
    return error.strerror or str(error)


def _display(host: str) -> str:
    return f"[{host}]" if ":" in host else host
