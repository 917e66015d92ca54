"""Loading: CREATE TABLE and COPY, with a progress bar."""

from __future__ import annotations

import sys
import time
from typing import Any

import psycopg

from mzlite.demo.data import NULL, Row, chunks, to_csv

BAR = 30
CHUNK_ROWS = 5_000


class Progress:
    """One line that grows on a terminal; one line at the end elsewhere."""

    def __init__(self, label: str, total: int) -> None:
        self._label = label
        self._total = total
        self._start = time.perf_counter()
        self._live = sys.stdout.isatty()

    def show(self, done: int) -> None:
        if self._live:
            filled = BAR * done // max(self._total, 1)
            print(f"\r  {self._label:<9} [{'#' * filled}{'.' * (BAR - filled)}] {done:>8,} rows", end="", flush=True)

    def finish(self) -> None:
        seconds = time.perf_counter() - self._start
        rate = self._total / seconds if seconds else 0.0
        line = f"  {self._label:<9} {self._total:>8,} rows in {seconds:5.2f} s  ({rate:,.0f} rows/s)"
        print(("\r" + line + " " * 12) if self._live else line, flush=True)


def load_table(conn: psycopg.Connection[Any], name: str, columns: str, rows: list[Row]) -> None:
    conn.execute(f"CREATE TABLE {name} ({columns})".encode())
    progress = Progress(name, len(rows))
    with conn.cursor() as cursor, cursor.copy(f"COPY {name} FROM STDIN (FORMAT csv, NULL '{NULL}')".encode()) as copy:
        done = 0
        for part in chunks(rows, CHUNK_ROWS):
            copy.write(to_csv(part))
            done += len(part)
            progress.show(done)
    progress.finish()
