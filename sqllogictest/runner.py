"""Runs one file against one server.

    parse ─▸ reset the server ─▸ for each record: send, compare, count ─▸ report

A failing query or expected error only counts. A failing `statement ok` or `statement count` by default stops the file,
as in Materialize's runner: what follows was written for a state that is not there. `Scoring.CONTINUE` goes on, for a
server that is still growing. The records behind the stop count as not run, so the two ways have the same total.

A connection that breaks ends the file if the server is dead or the time limit has passed; if the server merely hung up
on us, the record fails and the file goes on with a new connection.
"""

from __future__ import annotations

import enum
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from sqllogictest import diff, records, rewrite, views
from sqllogictest.compare import Mismatch, check_error, check_lines, check_rows
from sqllogictest.parser import OUR_ENGINE, parse_file
from sqllogictest.records import Copy, ExpectedError, Kind, Malformed, Query, Record, ResetServer, Simple, Statement
from sqllogictest.report import Failure, FileReport, Status
from sqllogictest.server import Server, ServerFailure
from sqllogictest.session import ConnectionLost, Result, ServerError, Session
from sqllogictest.watchdog import TimeLimit

MAX_RECONNECTS = 20

# SQLite's files make and rebuild indexes whose uniqueness no answer depends on.
_ALWAYS_OK = re.compile(r"(?:CREATE UNIQUE INDEX|REINDEX)")


class Scoring(enum.StrEnum):
    STOP = "stop"
    CONTINUE = "continue"


@dataclass(frozen=True, slots=True)
class Options:
    """How files are run; plain data, so it can be sent to another process."""

    scoring: Scoring = Scoring.STOP
    timeout_s: float = 300.0
    fail_fast: bool = False
    auto_index_selects: bool = False
    check_pgcode: bool = False
    rewrite: bool = False
    engine: str = OUR_ENGINE


Progress = Callable[[int, int], None]
"""Called with the records run and failed so far in this file."""


def no_progress(done: int, failed: int) -> None:
    return


class FileRunner:
    """Runs files one after another on one server, each from a clean start."""

    def __init__(self, server: Server, options: Options, label: str = "", progress: Progress = no_progress) -> None:
        self._server = server
        self._options = options
        self._label = label
        self._progress = progress

    def run(self, path: str) -> FileReport:
        started = time.perf_counter()
        script = parse_file(path, engine=self._options.engine)
        report = FileReport(path, self._label, skipped=script.skipped)
        run = _Run(self._server, self._options, report, script.records, self._progress)
        try:
            run.file()
        finally:
            run.close()
        report.seconds = time.perf_counter() - started
        if self._options.rewrite and run.edits:
            report.rewritten = rewrite.apply(path, run.edits)
        return report


class _Run:
    """The state of one file: its sessions, where it is, what it found."""

    def __init__(
        self, server: Server, options: Options, report: FileReport, todo: list[Record], progress: Progress
    ) -> None:
        self._server = server
        self._options = options
        self._report = report
        self._todo = todo
        self._progress = progress
        self._sessions: dict[str, Session] = {}
        self._session: Session | None = None
        self._limit = TimeLimit(options.timeout_s)
        self._reconnects = 0
        self.edits: list[rewrite.Edit] = []

    # -- the file ------------------------------------------------------------------------------------------------

    def file(self) -> None:
        report = self._report
        done = 0
        try:
            self._server.reset()
            with self._limit:
                self._session = self._connect()
                for record in self._todo:
                    fatal = self._one(record)
                    done += 1
                    if not done & 15:
                        self._progress(done, report.failed)
                    if fatal:
                        break
        except ServerFailure as e:
            report.status, report.message = Status.ERROR, str(e)
            if done == 0:
                self._ensure_server()
        if report.status is Status.OK and report.failed:
            report.status = Status.FAILED
        self._count_rest(done)
        self._progress(done, report.failed)

    def _count_rest(self, done: int) -> None:
        report = self._report
        for record in self._todo[done:]:
            report.not_run += 1
            report.tallies[records.kind_of(record)].total += 1
            if self._options.auto_index_selects and views.is_candidate(record):
                report.not_run += 1
                report.tallies[Kind.VIEWS].total += 1

    def _one(self, record: Record) -> bool:
        """Run and count one record; whether the file ends here."""
        report = self._report
        tally = report.tallies[records.kind_of(record)]
        tally.total += 1
        try:
            mismatch = self._run(record)
        except ConnectionLost as e:
            mismatch = self._lost(record, str(e))
        except ServerFailure as e:
            mismatch = Mismatch(str(e), fatal=True)
            report.status, report.message = Status.ERROR, str(e)
        if mismatch is None:
            tally.passed += 1
            return False
        if self._options.rewrite:
            edit = rewrite.edit_for(record, mismatch)
            if edit is not None:
                self.edits.append(edit)
                tally.passed += 1
                return False
        self._fail(record, records.kind_of(record), mismatch)
        if mismatch.fatal:
            return True
        if self._options.fail_fast or (
            self._options.scoring is Scoring.STOP and isinstance(record, Statement | Copy | ResetServer)
        ):
            report.status = Status.STOPPED
            report.message = f"stopped at {record.file}:{record.line}"
            return True
        return False

    def _fail(self, record: Record, kind: Kind, mismatch: Mismatch) -> None:
        self._report.fail(
            Failure(record.file, record.line, str(kind), mismatch.reason, record.sql, diff.lines_of(mismatch))
        )

    # -- one record ----------------------------------------------------------------------------------------------

    def _run(self, record: Record) -> Mismatch | None:
        match record:
            case Query():
                return self._query(record)
            case Statement():
                return self._statement(record)
            case ExpectedError():
                return self._expected_error(record)
            case Simple():
                session = self._named(record.conn, record.user, record.password)
                if isinstance(session, Mismatch):
                    return session
                return check_lines(record.expected, session.simple(record.sql), rowsort=record.rowsort)
            case Copy():
                return self._copy(record)
            case ResetServer():
                return self._reset_server()
            case Malformed():
                self._report.status = Status.MALFORMED
                self._report.message = f"{record.file}:{record.line}: {record.reason}"
                return Mismatch(f"malformed record: {record.reason}", fatal=True)

    def _query(self, record: Query) -> Mismatch | None:
        session = self._main
        base: Result | ServerError
        try:
            base = session.extended(record.sql)
            mismatch = check_rows(record, base)
        except ServerError as e:
            base = e
            mismatch = Mismatch("an error, where rows were expected", [], e.text.split("\n"), error=e)
        if self._options.auto_index_selects:
            self._view(session, record, base, mismatch)
        return mismatch

    def _statement(self, record: Statement) -> Mismatch | None:
        if _ALWAYS_OK.match(record.sql):
            return None
        try:
            result = self._main.extended(record.sql)
        except ServerError as e:
            return Mismatch("an error, where success was expected", [], e.text.split("\n"), error=e)
        if record.rows is not None and record.rows != result.affected:
            return Mismatch("wrong number of rows affected", [str(record.rows)], [str(result.affected)])
        return None

    def _expected_error(self, record: ExpectedError) -> Mismatch | None:
        session = self._main
        base: Result | ServerError
        try:
            base = session.extended(record.sql)
            mismatch: Mismatch | None = Mismatch("success, where an error was expected", [record.pattern])
        except ServerError as e:
            base = e
            mismatch = check_error(record, e, check_pgcode=self._options.check_pgcode)
        if self._options.auto_index_selects:
            self._view(session, record, base, mismatch)
        return mismatch

    def _view(
        self, session: Session, record: Query | ExpectedError, base: Result | ServerError, mismatch: Mismatch | None
    ) -> None:
        """The same SELECT through an indexed view, counted as a record of its own."""
        if not views.is_candidate(record) or session.in_transaction:
            return
        try:
            found = views.check(session, record, base, mismatch, indexed=self._server.is_materialize)
        except views.NotAView:
            return
        tally = self._report.tallies[Kind.VIEWS]
        tally.total += 1
        if found is None:
            tally.passed += 1
        else:
            self._fail(record, Kind.VIEWS, found)

    def _copy(self, record: Copy) -> Mismatch | None:
        path = record.path
        if not os.path.exists(path):
            path = os.path.join(os.path.dirname(record.file), record.path)
        try:
            with open(path, "rb") as f:
                data = f.read()
        except OSError as e:
            return Mismatch(f"cannot read {record.path}: {e.strerror}")
        try:
            self._main.copy_in(record.sql, data)
        except ServerError as e:
            return Mismatch("an error, where success was expected", [], e.text.split("\n"), error=e)
        return None

    def _reset_server(self) -> Mismatch | None:
        self._close_sessions()
        self._server.restart()
        self._server.reset()
        self._session = self._connect()
        return None

    # -- connections ---------------------------------------------------------------------------------------------

    @property
    def _main(self) -> Session:
        assert self._session is not None, "a record runs after the file has connected"
        return self._session

    def _connect(self, user: str | None = None, password: str | None = None) -> Session:
        return self._limit.watch(self._server.connect(user, password))

    def _named(self, name: str | None, user: str | None, password: str | None) -> Session | Mismatch:
        """The session of that name, made on first use and kept; a refused login is the record's failure."""
        if name is None:
            return self._main
        session = self._sessions.get(name)
        if session is None:
            try:
                session = self._sessions[name] = self._connect(user, password)
            except ServerFailure as e:
                return Mismatch(str(e))
        return session

    def _lost(self, record: Record, why: str) -> Mismatch:
        """A connection broke under `record`: find out why, and make the server usable for what comes next."""
        report = self._report
        if self._limit.expired:
            report.status = Status.TIMEOUT
            report.message = f"{record.file}:{record.line}: still running after {self._limit.seconds:g} s"
            self._close_sessions()
            self._ensure_server(restart=True)
            return Mismatch(f"the file's time limit of {self._limit.seconds:g} s ran out in this record", fatal=True)
        self._reconnects += 1
        if self._server.alive() and self._reconnects <= MAX_RECONNECTS:
            self._close_sessions()
            self._session = self._connect()
            return Mismatch("the server closed the connection", [], why.split("\n"))
        obituary = self._server.obituary()
        report.status = Status.DIED
        report.message = f"{record.file}:{record.line}: the server died: {obituary.partition(chr(10))[0]}"
        self._close_sessions()
        self._ensure_server(restart=True)
        return Mismatch("the server died in this record", [], obituary.split("\n"), fatal=True)

    def _ensure_server(self, *, restart: bool = False) -> None:
        """A running server for the next file, if there can be one; if not, that file will say so itself."""
        try:
            if restart or not self._server.alive():
                self._server.restart()
        except ServerFailure as e:
            self._report.message += f"; cannot restart it: {e}"

    def _close_sessions(self) -> None:
        for session in self._sessions.values():
            session.close()
        self._sessions.clear()
        if self._session is not None:
            self._session.close()

    def close(self) -> None:
        self._close_sessions()
