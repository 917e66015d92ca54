"""Where the server under test comes from, and how a file gets a clean one.

`Server` is all the runner knows. `Against` is one that somebody else runs: PostgreSQL (each file gets a scratch database)
or a server that speaks Materialize's dialect (each file gets the reset of `clean`). `Subprocess` starts one of its own,
can kill it and start it afresh, and is told which configuration to run in.

A `ServerFactory` travels to the processes of `--jobs`; a `Server` stays where it was started.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Protocol

import psycopg
from psycopg import conninfo

from sqllogictest import clean
from sqllogictest.session import Session
from sqllogictest.watchdog import TimeLimit

CONNECT_TIMEOUT_S = 20
RESET_TIMEOUT_S = 60.0


class ServerFailure(Exception):
    """The server cannot be started, reached or reset."""


class Server(Protocol):
    """A running server."""

    @property
    def dsn(self) -> str:
        """Where the default user's sessions connect."""
        ...

    @property
    def is_materialize(self) -> bool:
        """Whether it knows CREATE DEFAULT INDEX and clusters."""
        ...

    def connect(self, user: str | None = None, password: str | None = None) -> Session:
        """A new session. Raises `ServerFailure`."""
        ...

    def alive(self) -> bool: ...

    def obituary(self) -> str:
        """One line about a server that is not alive: exit status, last words."""
        ...

    def reset(self) -> None:
        """Forget what the last file did: the next session sees a new database. Raises `ServerFailure`."""
        ...

    def restart(self) -> None:
        """Stop it if it still runs, start it again, empty. Raises `ServerFailure`."""
        ...

    def stop(self) -> None: ...


class ServerFactory(Protocol):
    """How to get a server; plain data, so it can be sent to another process."""

    @property
    def label(self) -> str:
        """Names the configuration in reports; may be empty."""
        ...

    def start(self) -> Server: ...


def open_session(dsn: str, **overrides: str | int | None) -> Session:
    """A session on `dsn` with some of its parts replaced. Raises `ServerFailure`."""
    options: dict[str, str | int | None] = {"connect_timeout": CONNECT_TIMEOUT_S, "client_encoding": "utf8"}
    options.update({key: value for key, value in overrides.items() if value is not None})
    try:
        return Session(psycopg.connect(dsn, autocommit=True, **options))  # type: ignore[arg-type]
    except psycopg.Error as e:
        raise ServerFailure(f"cannot connect: {str(e).strip()}") from None


@dataclass(frozen=True, slots=True)
class Against:
    """A server that is already running. system_dsn: for a Materialize whose mz_system listens on another port."""

    dsn: str
    system_dsn: str | None = None
    label: str = ""

    def start(self) -> Server:
        session = open_session(self.dsn)
        try:
            materialize = clean.is_materialize(session)
        finally:
            session.close()
        if materialize:
            return RunningMaterialize(self.dsn, self.system_dsn)
        return ScratchDatabase(self.dsn)


class ScratchDatabase:
    """PostgreSQL: a database of our own, dropped and created again for each file; yours are never touched."""

    is_materialize = False

    def __init__(self, dsn: str) -> None:
        self._admin_dsn = dsn
        self.name = f"sqllogictest_{os.getpid()}_{os.urandom(3).hex()}"

    @property
    def dsn(self) -> str:
        return conninfo.make_conninfo(self._admin_dsn, dbname=self.name)

    def connect(self, user: str | None = None, password: str | None = None) -> Session:
        return open_session(self.dsn, user=user, password=password)

    def alive(self) -> bool:
        try:
            open_session(self._admin_dsn).close()
        except ServerFailure:
            return False
        return True

    def obituary(self) -> str:
        return "it no longer accepts connections"

    def reset(self) -> None:
        self._admin(f"DROP DATABASE IF EXISTS {self.name} WITH (FORCE)", f"CREATE DATABASE {self.name}")

    def restart(self) -> None:
        self.reset()

    def stop(self) -> None:
        try:
            self._admin(f"DROP DATABASE IF EXISTS {self.name} WITH (FORCE)")
        except ServerFailure:
            return  # a server that went away took the scratch database with it, or will be asked to by its owner

    def _admin(self, *statements: str) -> None:
        with TimeLimit(RESET_TIMEOUT_S) as limit:
            session = limit.watch(open_session(self._admin_dsn))
            try:
                clean.run(session, statements)
            except clean.CleanError as e:
                raise ServerFailure(str(e)) from None
            finally:
                session.close()


class RunningMaterialize:
    """A server of Materialize's dialect that somebody else runs: everything in it is dropped before each file."""

    is_materialize = True

    def __init__(self, dsn: str, system_dsn: str | None = None) -> None:
        self.dsn = dsn
        self._system_dsn = system_dsn or conninfo.make_conninfo(dsn, user=clean.SYSTEM_USER)

    def connect(self, user: str | None = None, password: str | None = None) -> Session:
        if user in clean.SYSTEM_USERS:
            return open_session(self._system_dsn, user=user, password=password)
        return open_session(self.dsn, user=user, password=password)

    def alive(self) -> bool:
        try:
            open_session(self.dsn).close()
        except ServerFailure:
            return False
        return True

    def obituary(self) -> str:
        return "it no longer accepts connections"

    def reset(self) -> None:
        with TimeLimit(RESET_TIMEOUT_S) as limit:
            session = limit.watch(open_session(self._system_dsn))
            try:
                clean.materialize(session, clean.Settings())
            except clean.CleanError as e:
                raise ServerFailure(str(e)) from None
            finally:
                session.close()

    def restart(self) -> None:
        self.reset()

    def stop(self) -> None:
        return
