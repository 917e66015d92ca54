"""The time limit of a file.

A record waits inside libpq, where no Python exception can reach it. So one timer a file runs in a thread of its own, and
when it fires it shuts down the sockets of the file's sessions: every wait ends at once with a broken connection. It costs
nothing per record.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from types import TracebackType

import psycopg

from sqllogictest.session import Session


class TimeLimit:
    """`with TimeLimit(seconds) as limit:` then `limit.watch(session)` for each session; `expired` says it fired."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.expired = False
        self._lock = threading.Lock()
        self._sessions: list[Session] = []
        self._timer = threading.Timer(seconds, self._expire)
        self._timer.daemon = True

    def __enter__(self) -> TimeLimit:
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        with self._lock:
            self._sessions.clear()

    def watch(self, session: Session) -> Session:
        with self._lock:
            self._sessions.append(session)
            if self.expired:
                _cut(session)
        return session

    def _expire(self) -> None:
        with self._lock:
            self.expired = True
            for session in self._sessions:
                _cut(session)


def _cut(session: Session) -> None:
    # A duplicate descriptor: libpq keeps and closes its own.
    with contextlib.suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(session.socket)) as sock:
        sock.shutdown(socket.SHUT_RDWR)
