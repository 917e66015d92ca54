"""Orchestrator: the processes of replicas, forked by one small server that has imported the engine once.

    environment ── spawn request + descriptors ──▶ fork server ── fork ──▶ worker
         └────────────── control socket ───────────────────────────────────┘

The socket pairs of a replica are made here and sent along, so nothing has a name in the file system, and commands may
be written before a process exists: they wait in the socket. A worker's end is noticed by the end of its control socket.
Workers die with the fork server, the fork server with the environment (end of file).
"""

from __future__ import annotations

import itertools
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence

from compute.client.connection import Connection
from compute.client.placement import Role
from compute.protocol.framing import frame
from compute.runtime.spawn import KillRequest, SpawnRequest, encode_request

_BUFFER_BYTES = 1 << 20


class ReplicaProcesses:
    """The sockets of one replica's workers, by runtime; interactive is None for Solo. key names them for the server."""

    def __init__(
        self,
        orchestrator: Orchestrator,
        key: int,
        maintenance: list[socket.socket],
        interactive: list[socket.socket] | None,
    ) -> None:
        self._orchestrator = orchestrator
        self.key = key
        self.maintenance = maintenance
        self.interactive = interactive

    def kill(self) -> None:
        """End every process of the replica. Idempotent; the caller closes the sockets."""
        self._orchestrator.kill(self.key)


class Orchestrator:
    """shard_socket: path of the ShardServer's socket, passed to every worker (None: no storage, for tests)."""

    def __init__(self, shard_socket: str | None) -> None:
        self.shard_socket = shard_socket
        self._keys = itertools.count(1)
        self._server: subprocess.Popen[bytes] | None = None
        self._sock: socket.socket | None = None

    def start(self) -> None:
        """Start the fork server, or start it again should it have died (its workers died with it)."""
        if self._server is not None and self._server.poll() is None:
            return
        if self._sock is not None:
            self._sock.close()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        self._server = subprocess.Popen(
            [sys.executable, "-m", "compute.runtime.fork_server", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        )
        theirs.close()
        self._sock = ours

    def serving(self, shard_socket: str | None) -> Orchestrator:
        """The same fork server, its later workers connected to another shard server."""
        self.shard_socket = shard_socket
        return self

    @property
    def fork_server_pid(self) -> int | None:
        return self._server.pid if self._server is not None else None

    def spawn(self, name: str, workers: int, interactive: bool) -> ReplicaProcesses:
        """Start the processes of a replica: `workers` per runtime, one runtime or two."""
        assert workers >= 1, workers
        self.start()
        key = next(self._keys)
        roles = [Role.MAINTENANCE, Role.INTERACTIVE] if interactive else [Role.SOLO]
        registries = [socket.socketpair() for _ in range(workers)] if interactive else []
        control: dict[Role, list[socket.socket]] = {}
        for role in roles:
            mesh = _mesh(workers)
            control[role] = []
            for worker in range(workers):
                ours, theirs = socket.socketpair()
                control[role].append(ours)
                registry = [registries[worker][0 if role is Role.MAINTENANCE else 1]] if interactive else []
                peers = mesh[worker]
                request = SpawnRequest(
                    key=key,
                    name=name,
                    role=role.value,
                    worker=worker,
                    workers=workers,
                    shard_socket=self.shard_socket,
                    has_registry=interactive,
                )
                self._request(encode_request(request), [theirs, *registry, *peers])
                for sock in (theirs, *registry, *peers):
                    sock.close()
        first = control[roles[0]]
        return ReplicaProcesses(self, key, first, control.get(Role.INTERACTIVE))

    def connect(
        self, sock: socket.socket, on_frames: Callable[[list[bytes]], None], on_close: Callable[[], None]
    ) -> Connection:
        """Speak to a worker through its control socket (a simulation has something else than sockets)."""
        return Connection(sock, on_frames, on_close)

    def kill(self, key: int) -> None:
        if self._sock is not None:
            self._request(encode_request(KillRequest(key)), [])

    def shutdown(self) -> None:
        """End the fork server and with it every worker."""
        if self._sock is not None:
            self._sock.close()
            self._sock = None
        if self._server is not None:
            self._server.wait(timeout=10)
            self._server = None

    def _request(self, payload: bytes, socks: Sequence[socket.socket]) -> None:
        assert self._sock is not None
        data = frame(payload)
        try:
            sent = socket.send_fds(self._sock, [data], [s.fileno() for s in socks])
            if sent < len(data):
                self._sock.sendall(data[sent:])
        except (BrokenPipeError, ConnectionResetError):
            # The server is gone; the control sockets report it as the death of their workers.
            return


def _mesh(workers: int) -> list[list[socket.socket]]:
    """Exchange sockets: mesh[i] holds worker i's ends to the other workers, ascending."""
    ends: list[dict[int, socket.socket]] = [{} for _ in range(workers)]
    for i in range(workers):
        for j in range(i + 1, workers):
            ends[i][j], ends[j][i] = socket.socketpair()
    return [[mine[j] for j in sorted(mine)] for mine in ends]
