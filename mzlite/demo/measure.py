"""Latencies: percentiles of repeated reads, alone and beside a view that hydrates."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

import psycopg

from mzlite.demo.views import CHURN


def percentile(values: Sequence[float], p: float) -> float:
    """p in 0..100; nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * p / 100))] if ordered else float("nan")


def time_reads(conn: psycopg.Connection[Any], query: str, count: int) -> list[float]:
    """Milliseconds of `count` prepared reads."""
    out = []
    with conn.cursor() as cursor:
        for _ in range(count):
            start = time.perf_counter()
            cursor.execute(query.encode(), prepare=True)
            cursor.fetchall()
            out.append((time.perf_counter() - start) * 1e3)
    return out


class Churn:
    """Builds, reads and drops an indexed view over the largest table until it is told to stop."""

    def __init__(self, connect: Callable[[], psycopg.Connection[Any]]) -> None:
        self._connect = connect
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="churn")
        self.builds = 0
        self.started = threading.Event()

    def _run(self) -> None:
        with self._connect() as conn:
            while not self._stop.is_set():
                conn.execute(f"CREATE VIEW demo_churn AS {CHURN}".encode())
                conn.execute(b"CREATE DEFAULT INDEX demo_churn_idx ON demo_churn")
                self.started.set()
                conn.execute(b"SELECT count(*) FROM demo_churn").fetchall()
                self.builds += 1
                conn.execute(b"DROP VIEW demo_churn CASCADE")

    def __enter__(self) -> Churn:
        self._thread.start()
        self.started.wait(30)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join(60)
