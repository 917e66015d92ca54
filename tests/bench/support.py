"""What benchmarks share: servers, percentiles, a table, an open loop at a fixed rate."""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from mzlite.pgwire.announce import READY

Connection = psycopg.Connection[Any]


def percentile(values: Sequence[float], p: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * p / 100))] if ordered else float("nan")


def p50_p99(values: Sequence[float]) -> str:
    return f"{percentile(values, 50):.3f} / {percentile(values, 99):.3f}"


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    cells = [[str(v) for v in row] for row in rows]
    widths = [max([len(c), *(len(r[i]) for r in cells)]) for i, c in enumerate(columns)]
    for row in [list(columns), ["-" * w for w in widths], *cells]:
        print("  " + "  ".join(v.ljust(w) for v, w in zip(row, widths)).rstrip())


@dataclass(slots=True)
class Server:
    """A running mzlite server."""

    dsn: str
    pid: int

    def connect(self, **options: Any) -> Connection:
        return psycopg.connect(self.dsn, **{"autocommit": True, **options})

    def system(self, *statements: str) -> None:
        """Run as mz_system."""
        with psycopg.connect(self.dsn, user="mz_system", autocommit=True) as conn:
            for s in statements:
                conn.execute(s.encode())

    def processes(self) -> list[int]:
        """This server's process and all its descendants (Linux)."""
        children: dict[int, list[int]] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError, IndexError, ValueError):
                    parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                    children.setdefault(parent, []).append(int(entry.name))
        out, todo = [], [self.pid]
        while todo:
            pid = todo.pop()
            out.append(pid)
            todo += children.get(pid, [])
        return out

    def memory_mib(self) -> float:
        """Proportional set size over all processes: what the machine really spends on this server."""
        total = 0
        for pid in self.processes():
            with contextlib.suppress(OSError):
                for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                    if line.startswith("Pss:"):
                        total += int(line.split()[1])
        return total / 1024

    def cpu_seconds(self) -> float:
        ticks = os.sysconf("SC_CLK_TCK")
        total = 0.0
        for pid in self.processes():
            with contextlib.suppress(OSError):
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                total += (int(fields[11]) + int(fields[12])) / ticks
        return total


@contextlib.contextmanager
def mzlite_server(*options: str) -> Iterator[Server]:
    command = [sys.executable, "-m", "mzlite", "serve", "--listen", "127.0.0.1:0", "--lifeline", *options]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stdout is not None
    try:
        line = process.stdout.readline()
        assert READY in line, line
        yield Server(line.partition(READY)[2].strip(), process.pid)
    finally:
        process.stdin.close()
        process.wait(20)


def one_runtime(server: Server, workers: int = 1) -> None:
    """Replace the default replica by one with a single runtime."""
    server.system(
        "ALTER SYSTEM SET enable_compute_interactive_runtime = false",
        "ALTER CLUSTER quickstart SET (REPLICATION FACTOR 0)",
        "ALTER CLUSTER quickstart SET (REPLICATION FACTOR 1)",
    )


@contextlib.contextmanager
def postgres() -> Iterator[str | None]:
    """A throwaway PostgreSQL's DSN, or None where there is none."""
    from tests.support import postgres as support

    if support.find_bindir() is None:
        yield None
        return
    with support.running_server() as dsn:
        yield dsn


def time_calls(call: Callable[[], object], count: int, warm: int = 50) -> list[float]:
    """Milliseconds of each of `count` calls."""
    for _ in range(warm):
        call()
    out = []
    for _ in range(count):
        start = time.perf_counter()
        call()
        out.append((time.perf_counter() - start) * 1e3)
    return out


def prepared(conn: Connection, query: str, params: Sequence[Any] = ()) -> Callable[[], object]:
    cursor = conn.cursor(binary=True)
    text = query.encode()

    def call() -> object:
        cursor.execute(text, params, prepare=True)
        return cursor.fetchall()

    return call


@dataclass(slots=True)
class OpenLoop:
    """Calls at a fixed rate whatever the answers do: late answers count from when they should have started.

    Each call runs on a connection of a pool, so that a slow answer does not hold up the next call.
    """

    connect: Callable[[], Connection]
    query: str
    per_second: float
    pool_size: int = 20
    latencies_ms: list[float] = field(default_factory=list)
    samples: list[tuple[float, float]] = field(default_factory=list)  # (seconds since start, ms)
    errors: list[str] = field(default_factory=list)
    issued: int = 0

    def run(self, seconds: float, started: float | None = None) -> OpenLoop:
        origin = time.perf_counter() if started is None else started
        due: queue.Queue[float | None] = queue.Queue()
        workers = [
            threading.Thread(target=self._worker, args=(due, origin), daemon=True) for _ in range(self.pool_size)
        ]
        for w in workers:
            w.start()
        begin = time.perf_counter()
        while (now := time.perf_counter()) - begin < seconds:
            at = begin + self.issued / self.per_second
            if at > now:
                time.sleep(at - now)
            due.put(at)
            self.issued += 1
        for _ in workers:
            due.put(None)
        for w in workers:
            w.join(60)
        return self

    def _worker(self, due: queue.Queue[float | None], origin: float) -> None:
        with self.connect() as conn:
            call = prepared(conn, self.query)
            while (at := due.get()) is not None:
                try:
                    call()
                except psycopg.Error as error:
                    self.errors.append(str(error))
                    continue
                now = time.perf_counter()
                self.latencies_ms.append((now - at) * 1e3)
                self.samples.append((at - origin, (now - at) * 1e3))
