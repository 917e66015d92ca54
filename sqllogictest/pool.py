"""Which file runs where: one process (`--jobs 1`), or several with a server each.

The parent hands out one file at a time and listens to all workers at once; a worker answers with progress and a report.
A worker that dies takes only its file with it: the file is reported and another worker started.

    parent ──(label, path)──▶ worker: FileRunner on its own server
           ◀──Progress, FileReport──
"""

from __future__ import annotations

import collections
import contextlib
import multiprocessing
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from sqllogictest.report import FileReport, Status
from sqllogictest.runner import FileRunner, Options
from sqllogictest.server import Server, ServerFactory, ServerFailure


@dataclass(frozen=True, slots=True)
class Job:
    """One file in one configuration."""

    factory: ServerFactory
    path: str


@dataclass(frozen=True, slots=True)
class Progress:
    """A file under way: records run and failed so far."""

    path: str
    done: int
    failed: int


OnProgress = Callable[[Progress], None]
OnReport = Callable[[FileReport], None]


def run(jobs: Sequence[Job], options: Options, *, workers: int, on_progress: OnProgress, on_report: OnReport) -> None:
    """Run all jobs; with `options.fail_fast` none is started after a file has failed."""
    if workers <= 1:
        _run_here(jobs, options, on_progress, on_report)
    else:
        _Pool(options, on_progress, on_report).run(jobs, workers)


class _Servers:
    """One running server at a time, kept for as long as jobs ask for the same factory."""

    def __init__(self) -> None:
        self._factory: ServerFactory | None = None
        self._server: Server | None = None

    def get(self, factory: ServerFactory) -> Server:
        if self._server is None or self._factory != factory:
            self.stop()
            self._server = factory.start()
            self._factory = factory
        return self._server

    def stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.stop()


def _run_job(servers: _Servers, job: Job, options: Options, on_progress: OnProgress) -> FileReport:
    try:
        server = servers.get(job.factory)
    except ServerFailure as e:
        return FileReport(job.path, job.factory.label, Status.ERROR, f"cannot start the server: {e}")

    def progress(done: int, failed: int) -> None:
        on_progress(Progress(job.path, done, failed))

    return FileRunner(server, options, job.factory.label, progress).run(job.path)


def _run_here(jobs: Sequence[Job], options: Options, on_progress: OnProgress, on_report: OnReport) -> None:
    servers = _Servers()
    try:
        for job in jobs:
            report = _run_job(servers, job, options, on_progress)
            on_report(report)
            if options.fail_fast and not report.ok:
                break
    finally:
        servers.stop()


def _worker(conn: Connection[object, object], options: Options) -> None:
    # Ctrl-C reaches the whole process group; the parent decides and closes the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    servers = _Servers()
    try:
        while True:
            job = conn.recv()
            if not isinstance(job, Job):
                return
            conn.send(_run_job(servers, job, options, conn.send))
    except (EOFError, BrokenPipeError):
        return
    finally:
        servers.stop()


class _Pool:
    def __init__(self, options: Options, on_progress: OnProgress, on_report: OnReport) -> None:
        self._options = options
        self._on_progress = on_progress
        self._on_report = on_report
        # spawn, not fork: a worker must not inherit the parent's libpq connections or threads.
        self._context = multiprocessing.get_context("spawn")
        self._busy: dict[Connection[object, object], Job] = {}
        self._processes: dict[Connection[object, object], BaseProcess] = {}

    def run(self, jobs: Sequence[Job], workers: int) -> None:
        todo = collections.deque(jobs)
        try:
            for _ in range(min(workers, len(todo))):
                self._give(self._start(), todo)
            while self._busy:
                for conn in wait(list(self._busy)):
                    assert isinstance(conn, Connection)
                    self._hear(conn, todo)
        finally:
            for conn, process in self._processes.items():
                with contextlib.suppress(OSError):
                    conn.close()
                process.join(timeout=10)
                if process.is_alive():
                    process.terminate()

    def _start(self) -> Connection[object, object]:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_worker, args=(theirs, self._options))
        process.start()
        theirs.close()
        self._processes[ours] = process
        return ours

    def _give(self, conn: Connection[object, object], todo: collections.deque[Job]) -> None:
        if todo:
            job = todo.popleft()
            try:
                conn.send(job)
            except OSError:  # it died between two files
                del self._processes[conn]
                todo.appendleft(job)
                self._give(self._start(), todo)
            else:
                self._busy[conn] = job

    def _hear(self, conn: Connection[object, object], todo: collections.deque[Job]) -> None:
        job = self._busy[conn]
        try:
            message = conn.recv()
        except (EOFError, ConnectionResetError):
            process = self._processes.pop(conn)
            process.join()
            del self._busy[conn]
            reason = f"the process that ran this file ended with status {process.exitcode}"
            self._report(FileReport(job.path, job.factory.label, Status.ERROR, reason), todo)
            self._give(self._start(), todo)
            return
        if isinstance(message, Progress):
            self._on_progress(message)
            return
        assert isinstance(message, FileReport), message
        del self._busy[conn]
        self._report(message, todo)
        self._give(conn, todo)

    def _report(self, report: FileReport, todo: collections.deque[Job]) -> None:
        self._on_report(report)
        if self._options.fail_fast and not report.ok:
            todo.clear()
