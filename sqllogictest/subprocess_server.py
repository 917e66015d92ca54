"""A server of the tool's own, as a child process.

It is started with a command that prints one line holding `postgres://HOST:PORT…` on standard output once it accepts
connections. SIGTERM asks it to stop, SIGKILL to the whole process group follows if it does not. It lives in memory, or
in a temporary directory that `restart` empties.

A server that cannot be reset is restarted instead: an empty one is what the reset was for.
"""

from __future__ import annotations

import collections
import contextlib
import os
import queue
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass, field
from typing import IO

from sqllogictest import clean
from sqllogictest.server import RESET_TIMEOUT_S, Server, ServerFailure, open_session
from sqllogictest.session import Session
from sqllogictest.watchdog import TimeLimit

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 5.0
LAST_WORDS = 20

_READY = re.compile(r"postgres(?:ql)?://(?:[^@/\s]*@)?(\[[^\]\s]+\]|[^:/\s]+):(\d+)")


def default_command() -> tuple[str, ...]:
    return (sys.executable, "-m", "mzlite", "serve", "--listen", "127.0.0.1:0", "--lifeline")


@dataclass(frozen=True, slots=True)
class Subprocess:
    """Starts `command`; disk adds `--data-dir DIR`. settings is applied over SQL at every reset."""

    command: tuple[str, ...] = field(default_factory=default_command)
    disk: bool = False
    settings: clean.Settings = field(default_factory=clean.Settings)
    label: str = ""

    def start(self) -> Server:
        server = ChildServer(self)
        server.restart()
        return server


class ChildServer:
    """The running child. `_fresh`: nothing has been done to it since it started."""

    is_materialize = True

    def __init__(self, factory: Subprocess) -> None:
        self._listener: threading.Thread | None = None
        self._factory = factory
        self._process: subprocess.Popen[bytes] | None = None
        self._host, self._port = "", 0
        self._words: collections.deque[str] = collections.deque(maxlen=LAST_WORDS)
        self._data_dir: str | None = None
        self._fresh = False

    @property
    def dsn(self) -> str:
        return self._dsn("materialize")

    @property
    def address(self) -> tuple[str, int]:
        return self._host, self._port

    def _dsn(self, user: str) -> str:
        return f"host={self._host} port={self._port} user={user} dbname=materialize"

    def connect(self, user: str | None = None, password: str | None = None) -> Session:
        return open_session(self.dsn, user=user, password=password)

    def alive(self) -> bool:
        if self._process is None:
            return False
        # A process that just broke our connection by dying may need a moment to be reaped.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=0.3)
        return self._process.returncode is None

    def obituary(self) -> str:
        code = self._process.returncode if self._process is not None else None
        how = "it was stopped" if code is None else f"signal {-code}" if code < 0 else f"exit status {code}"
        if code is not None and self._listener is not None:
            self._listener.join(2)  # what it said last may still be on its way
        return "\n".join([how, *self._words])

    def reset(self) -> None:
        if self._process is None or self._process.poll() is not None:
            self.restart()
        try:
            self._clean()
        except (ServerFailure, clean.CleanError) as first:
            if self._fresh:
                raise ServerFailure(f"cannot reset a new server: {first}") from None
            self.restart()
            try:
                self._clean()
            except clean.CleanError as e:
                raise ServerFailure(f"cannot reset a new server: {e}") from None
        self._fresh = False

    def _clean(self) -> None:
        with TimeLimit(RESET_TIMEOUT_S) as limit:
            session = limit.watch(open_session(self._dsn(clean.SYSTEM_USER)))
            try:
                clean.materialize(session, self._factory.settings, provisioned=not self._fresh)
            finally:
                session.close()

    def restart(self) -> None:
        self.stop()
        command = list(self._factory.command)
        if self._factory.disk:
            self._data_dir = tempfile.mkdtemp(prefix="sqllogictest-")
            command += ["--data-dir", self._data_dir]
        self._words.clear()
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,  # never written to; its end tells a child that heeds it that we are gone
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as e:
            raise ServerFailure(f"cannot start {shlex.join(command)}: {e}") from None
        self._process = process
        assert process.stdout is not None
        ready: queue.SimpleQueue[tuple[str, int] | None] = queue.SimpleQueue()
        self._listener = threading.Thread(target=_listen, args=(process.stdout, ready, self._words), daemon=True)
        self._listener.start()
        try:
            address = ready.get(timeout=START_TIMEOUT_S)
        except queue.Empty:
            self.stop()
            raise ServerFailure(f"no address on standard output within {START_TIMEOUT_S:.0f} s of start") from None
        if address is None:
            process.wait(timeout=STOP_TIMEOUT_S)
            words = self.obituary()
            self.stop()
            raise ServerFailure(f"the server ended before it accepted connections: {words}")
        self._host, self._port = address
        self._fresh = True

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            try:
                process.wait(timeout=STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            if process.stdin is not None:
                process.stdin.close()
        if self._data_dir is not None:
            shutil.rmtree(self._data_dir, ignore_errors=True)
            self._data_dir = None


def _listen(
    stdout: IO[bytes],
    ready: queue.SimpleQueue[tuple[str, int] | None],
    words: collections.deque[str],
) -> None:
    """Drain the child's output for as long as it lives: find the address in it, remember the last lines."""
    found = False
    with stdout:
        for raw in stdout:
            line = raw.decode(errors="replace").rstrip()
            words.append(line)
            match = None if found else _READY.search(line)
            if match is not None:
                found = True
                ready.put((match.group(1).strip("[]"), int(match.group(2))))
    if not found:
        ready.put(None)
