"""The fork server: a small process that has imported the engine, so that a worker starts in milliseconds.

It does nothing but read requests from the environment, fork workers and end them. It ends with the environment (end of
file on its socket) and every worker ends with it. No threads, no state besides its children: safe to fork.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import signal
import socket
import sys
import traceback

import numpy
import pyarrow

from compute.protocol.framing import Deframer
from compute.runtime import process
from compute.runtime.spawn import KillRequest, SpawnRequest, decode_request

_PRELOADED = (numpy, pyarrow, process)
_MAX_FDS = 250
_PR_SET_PDEATHSIG = 1


def main(fd: int) -> None:
    """Serve requests on the socket `fd` until its other end closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the environment, whose end we notice
    # Only so that EINTR-free reaping happens when a child ends: see _reap.
    signal.signal(signal.SIGCHLD, lambda signum, stack: None)
    server = socket.socket(fileno=fd)
    server_pid = os.getpid()
    gc.collect()
    gc.freeze()
    children: dict[int, set[int]] = {}  # replica key -> live worker pids
    deframer = Deframer()
    requests: list[bytes] = []
    fds: list[int] = []
    while True:
        try:
            data, received, _, _ = socket.recv_fds(server, 1 << 16, _MAX_FDS)
        except InterruptedError:
            continue
        if not data:
            break
        fds.extend(received)
        requests.extend(deframer.feed(data))
        _reap(children)
        while requests:
            request = decode_request(requests[0])
            if isinstance(request, KillRequest):
                for pid in children.pop(request.key, ()):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                requests.pop(0)
                continue
            count = request.descriptor_count
            if len(fds) < count:
                break  # the descriptors come with the next read
            mine, fds = fds[:count], fds[count:]
            requests.pop(0)
            pid = os.fork()
            if pid == 0:
                server.close()
                for other in fds:
                    os.close(other)
                _child(request, mine, server_pid)
            for descriptor in mine:
                os.close(descriptor)
            children.setdefault(request.key, set()).add(pid)
    for pids in children.values():
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _reap(children: dict[int, set[int]]) -> None:
    """Collect ended workers, so that their pids are not signalled after being reused."""
    for pids in children.values():
        for pid in list(pids):
            if os.waitpid(pid, os.WNOHANG)[0]:
                pids.discard(pid)


def _child(request: SpawnRequest, fds: list[int], server_pid: int) -> None:
    """Become a worker; never returns."""
    status = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        _die_with_parent(server_pid)
        process.run(request, [socket.socket(fileno=fd) for fd in fds])
        status = 0
    except BaseException:
        # A panic: say why, end the process; the replica goes down with it and is started again.
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(status)


def _die_with_parent(server_pid: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != server_pid:
            os._exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]))
