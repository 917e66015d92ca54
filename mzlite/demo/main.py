"""The order of events: load, create views, replay the last week, time reads, report, compare."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg

from mzlite.demo import data
from mzlite.demo.load import load_table
from mzlite.demo.measure import Churn, percentile, time_reads
from mzlite.demo.replay import hours
from mzlite.demo.screen import Screen, render
from mzlite.demo.verify import Oracle
from mzlite.demo.views import TABLES, VIEWS, View

Connect = Callable[[], psycopg.Connection[Any]]
READS = 300


@dataclass(slots=True)
class Figures:
    """Of one view; times in milliseconds except hydration_s."""

    rows: int = 0
    hydration_s: float = 0.0
    visible_ms: list[float] = field(default_factory=list)
    idle_ms: list[float] = field(default_factory=list)
    hydrating_ms: list[float] = field(default_factory=list)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="mzlite demo",
        description="Load a year of flights, watch views follow the last week of it, and time reads.",
    )
    parser.add_argument("--headless", action="store_true", help="no live table: for logs and continuous integration")
    parser.add_argument(
        "--verify", action="store_true", help="compare every view with DuckDB; any difference fails the run"
    )
    parser.add_argument("--url", metavar="URL", help="use this server instead of an embedded database")
    parser.add_argument("--days", type=int, default=data.REPLAY_DAYS, metavar="N", help="days to replay (default 7)")
    options = parser.parse_args(argv)

    with contextlib.ExitStack() as stack:
        connect: Connect
        if options.url:
            url = options.url
            connect = lambda: psycopg.connect(url, autocommit=True)  # noqa: E731
        else:
            from mzlite.api import open as open_database

            connect = stack.enter_context(open_database()).connect
        conn = stack.enter_context(connect())
        return _run(conn, connect, options)


def _run(conn: psycopg.Connection[Any], connect: Connect, options: argparse.Namespace) -> int:
    oracle = Oracle() if options.verify else None
    figures = {view.name: Figures() for view in VIEWS}

    print("Loading", flush=True)
    flights = _load(conn, oracle, options.days)

    print("\nCreating views and their indexes", flush=True)
    for view in VIEWS:
        figures[view.name].hydration_s = _create(conn, view)
        print(f"  {view.name:<22} answered after {figures[view.name].hydration_s:.2f} s", flush=True)

    differences = [] if oracle is None else oracle.compare(conn)
    _replay(conn, oracle, flights, figures, Screen(sys.stdout.isatty() and not options.headless))
    if oracle is not None:
        differences += oracle.compare(conn)

    print("\nTiming point reads, alone and while another view hydrates", flush=True)
    builds = _time(conn, connect, figures)
    _report(conn, figures, builds)

    if oracle is not None:
        if differences:
            print("\nDIFFERENT from DuckDB:")
            print("\n".join(f"  {d}" for d in differences))
            return 1
        print("\nEvery view equals the same query recomputed by DuckDB, before and after the replay.")
    return 0


def _load(conn: psycopg.Connection[Any], oracle: Oracle | None, days: int) -> data.Flights:
    flights: data.Flights | None = None
    for name in data.TABLES:
        header, rows = data.read_table(name)
        if name == "flights":
            flights = data.split_flights(header, rows, days)
            rows = flights.history
        load_table(conn, name, TABLES[name], rows)
        if oracle is not None:
            oracle.load(name, rows)
    assert flights is not None
    return flights


def _create(conn: psycopg.Connection[Any], view: View) -> float:
    """Seconds from CREATE INDEX to the first answer."""
    conn.execute(f"CREATE VIEW {view.name} AS {view.query}".encode())
    start = time.perf_counter()
    conn.execute(f"CREATE INDEX {view.name}_key ON {view.name} ({', '.join(view.key)})".encode())
    conn.execute(f"SELECT count(*) FROM {view.name}".encode()).fetchall()
    return time.perf_counter() - start


def _replay(
    conn: psycopg.Connection[Any],
    oracle: Oracle | None,
    flights: data.Flights,
    figures: dict[str, Figures],
    screen: Screen,
) -> None:
    steps = list(hours(flights.header, flights.hours))
    print(f"\nReplaying {len(steps)} hours of flights: inserts, updates and deletes", flush=True)
    start, commits = time.perf_counter(), 0
    for n, hour in enumerate(steps):
        for statement in hour.statements:
            conn.execute(statement.encode())
            commits += 1
            if oracle is not None:
                oracle.execute(statement)
            # A strict serializable read answers only once the view contains the commit.
            view = VIEWS[commits % len(VIEWS)]
            committed = time.perf_counter()
            conn.execute(f"SELECT * FROM {view.name} WHERE {view.point}".encode(), prepare=True).fetchall()
            figures[view.name].visible_ms.append((time.perf_counter() - committed) * 1e3)
        if screen.live:
            view = VIEWS[(n // 24) % len(VIEWS)]
            cursor = conn.execute(f"SELECT * FROM {view.name} ORDER BY {view.order} LIMIT 10".encode())
            names = [c.name for c in cursor.description or ()]
            status = f"{hour.label}   hour {n + 1} of {len(steps)}   {commits} commits"
            screen.draw(status, view, names, cursor.fetchall())
    seconds = time.perf_counter() - start
    print(f"  {commits} commits in {seconds:.1f} s, each read back at once", flush=True)


def _time(conn: psycopg.Connection[Any], connect: Connect, figures: dict[str, Figures]) -> int:
    queries = {view.name: f"SELECT * FROM {view.name} WHERE {view.point}" for view in VIEWS}
    for name, query in queries.items():
        time_reads(conn, query, 20)
        figures[name].idle_ms = time_reads(conn, query, READS)
    with Churn(connect) as churn:
        for name, query in queries.items():
            figures[name].hydrating_ms = time_reads(conn, query, READS)
    return churn.builds


def _report(conn: psycopg.Connection[Any], figures: dict[str, Figures], builds: int) -> None:
    rows = []
    for view in VIEWS:
        f = figures[view.name]
        (f.rows,) = conn.execute(f"SELECT count(*) FROM {view.name}".encode()).fetchall()[0]
        pairs = [f.visible_ms, f.idle_ms, f.hydrating_ms]
        times = [f"{percentile(v, 50):.2f} / {percentile(v, 99):.2f}" for v in pairs]
        rows.append([view.name, f.rows, f"{f.hydration_s:.2f}", *times])
    columns = ["view", "rows", "hydration s", "commit to visible", "point read idle", "while hydrating"]
    print()
    print("\n".join(render("Figures (milliseconds, p50 / p99, unless said)", columns, rows, 200)))
    print(f"Views over all flights that were built while those reads were timed: {builds}")
