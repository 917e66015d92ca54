"""Listening: sockets, TLS, and the set of live connections."""

from __future__ import annotations

import asyncio
import socket
import ssl

from adapter.coord.coordinator import Coordinator
from mzlite.pgwire.connection import Connection
from mzlite.repr.errors import SqlError


class PgServer:
    """One listening socket. tls: a server context, or None to answer SSLRequest with 'N'."""

    def __init__(self, coordinator: Coordinator, tls: ssl.SSLContext | None = None) -> None:
        self._coordinator = coordinator
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._connections: set[Connection] = set()
        self._upgrades: set[asyncio.Task[None]] = set()

    async def listen(self, host: str, port: int) -> tuple[str, int]:
        """Bind and accept; port 0 picks a free one. errors: OSError (port in use, unknown host)."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._accept, host, port, reuse_address=True)
        address = self._server.sockets[0].getsockname()
        return address[0], address[1]

    async def listen_unix(self, path: str) -> None:
        self._server = await asyncio.get_running_loop().create_unix_server(self._accept, path)

    async def close(self) -> None:
        """Stop accepting, and tell every client that the server shuts down."""
        if self._server is not None:
            self._server.close()
        reason = SqlError("57P01", "terminating connection due to administrator command")
        await asyncio.gather(*(c.close(reason) for c in list(self._connections)))

    def _accept(self) -> Connection:
        connection = Connection(self._coordinator, self._start_tls, self._connections.discard)
        self._connections.add(connection)
        return connection

    def _start_tls(self, connection: Connection) -> bool:
        if self._tls is None:
            return False
        task = asyncio.get_running_loop().create_task(self._upgrade(connection, self._tls))
        self._upgrades.add(task)
        task.add_done_callback(self._upgrades.discard)
        return True

    async def _upgrade(self, connection: Connection, context: ssl.SSLContext) -> None:
        transport = connection.transport
        transport.pause_reading()
        transport.write(b"S")
        try:
            upgraded = await asyncio.get_running_loop().start_tls(transport, connection, context, server_side=True)
        except (OSError, ssl.SSLError):
            transport.abort()
            return
        assert upgraded is not None
        connection.replace_transport(upgraded)


def free_port(host: str = "127.0.0.1") -> int:
    """A port nobody listens on now."""
    with socket.socket() as s:
        s.bind((host, 0))
        port: int = s.getsockname()[1]
        return port
