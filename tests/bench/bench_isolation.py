"""Reads while views are built: two runtimes against one, at fixed rates, both isolation levels.

The hot table has 100,000 rows and an index. Lookups arrive 50 a second and range counts 12 a second, open loop, while two
loops create a materialized view over 1,000,000 rows, read it and drop it. `MZLITE_BENCH_SECONDS` sets the length of
each phase (default 20). The plot of latency over time goes to docs/isolation.svg when matplotlib is there.
"""

from __future__ import annotations

import os
import threading
import time

import psycopg

from tests.bench.support import OpenLoop, Server, mzlite_server, one_runtime, p50_p99, percentile, print_table

HOT = 100_000
BIG = 1_000_000
SECONDS = float(os.environ.get("MZLITE_BENCH_SECONDS", "20"))


def _load(server: Server) -> None:
    with server.connect() as conn:
        conn.execute(b"CREATE TABLE hot (k int, v int)")
        conn.execute(b"CREATE TABLE big (k int, g int, v int)")
        conn.execute(f"INSERT INTO hot SELECT g, g % 1000 FROM generate_series(0, {HOT - 1}) g".encode())
        conn.execute(f"INSERT INTO big SELECT g, g % 5000, g % 97 FROM generate_series(0, {BIG - 1}) g".encode())
        conn.execute(b"CREATE INDEX hot_k ON hot (k)")
        conn.execute(b"SELECT v FROM hot WHERE k = 42")


class _Churn(threading.Thread):
    def __init__(self, server: Server, name: str, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self.server, self.view, self.stop, self.cycles = server, name, stop, 0

    def run(self) -> None:
        with self.server.connect() as conn:
            while not self.stop.is_set():
                conn.execute(
                    f"CREATE MATERIALIZED VIEW {self.view} AS SELECT g, sum(v) AS s, count(*) AS n FROM big GROUP BY g".encode()
                )
                conn.execute(f"SELECT count(*) FROM {self.view}".encode()).fetchall()
                conn.execute(f"DROP MATERIALIZED VIEW {self.view}".encode())
                self.cycles += 1


def _measure(server: Server, isolation: str, churn: bool, writer: bool = False) -> dict[str, OpenLoop]:
    def connect() -> psycopg.Connection:
        conn = server.connect()
        conn.execute(f"SET transaction_isolation = '{isolation}'".encode())
        return conn

    stop = threading.Event()
    churns = [_Churn(server, f"churn_{i}", stop) for i in range(2)] if churn else []
    for c in churns:
        c.start()
    if churns:
        time.sleep(1)
    loops = {
        "point lookup": OpenLoop(connect, "SELECT v FROM hot WHERE k = 42", 50),
        "range count": OpenLoop(connect, "SELECT count(*) FROM hot WHERE k < 50000", 12),
    }
    origin = time.perf_counter()
    threads = [threading.Thread(target=lambda x=x: x.run(SECONDS, origin)) for x in loops.values()]
    if writer:
        threads.append(threading.Thread(target=_write, args=(server, SECONDS)))
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    stop.set()
    for c in churns:
        c.join(120)
    return loops


def _write(server: Server, seconds: float) -> None:
    with server.connect() as conn:
        end = time.perf_counter() + seconds
        n = 0
        while time.perf_counter() < end:
            conn.execute(b"INSERT INTO hot VALUES (%s, 0)", (HOT + n,))
            n += 1
            time.sleep(0.1)


def main() -> None:
    rows = []
    samples: dict[str, list[tuple[float, float]]] = {}
    for arm in ("two runtimes", "one runtime"):
        with mzlite_server() as server:
            if arm == "one runtime":
                one_runtime(server)
            _load(server)
            idle = _measure(server, "serializable", churn=False)
            for isolation, writer in (("serializable", False), ("strict serializable", True)):
                busy = _measure(server, isolation, churn=True, writer=writer)
                for name, loop in busy.items():
                    base = percentile(idle[name].latencies_ms, 50)
                    rows.append(
                        [
                            arm,
                            isolation + (", writer 10/s" if writer else ""),
                            name,
                            p50_p99(idle[name].latencies_ms),
                            p50_p99(loop.latencies_ms),
                            f"{percentile(loop.latencies_ms, 50) / base:.1f}x",
                            f"{len(loop.latencies_ms)}/{loop.issued}",
                            len(loop.errors),
                        ]
                    )
                if not writer:
                    samples[arm] = busy["point lookup"].samples
    print_table(["arm", "isolation", "read", "idle p50/p99", "busy p50/p99", "p50 ratio", "done", "errors"], rows)
    _plot(samples)


def _plot(samples: dict[str, list[tuple[float, float]]]) -> None:
    try:
        import matplotlib
    except ImportError:
        return
    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(9, 4))
    for arm, points in samples.items():
        axes.plot([t for t, _ in points], [ms for _, ms in points], ".", markersize=3, label=arm)
    axes.set_yscale("log")
    axes.set_xlabel("seconds")
    axes.set_ylabel("point lookup, ms")
    axes.set_title("Point lookups while two views over 1,000,000 rows are built again and again")
    axes.legend()
    figure.tight_layout()
    figure.savefig("docs/isolation.svg")
    print("  plot: docs/isolation.svg")
