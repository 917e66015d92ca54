"""Point reads of an indexed view, prepared, beside PostgreSQL's primary-key read.

Also one INSERT until the view shows it (strict serializable), and the server's memory at rest.
"""

from __future__ import annotations

import time

import psycopg

from tests.bench.support import (
    Connection,
    mzlite_server,
    p50_p99,
    percentile,
    postgres,
    prepared,
    print_table,
    time_calls,
)

ROWS = 100_000
READS = 3_000


def _load(conn: Connection, key: str) -> None:
    conn.execute(f"CREATE TABLE points (k int {key}, v int, note text)".encode())
    with conn.cursor() as cursor, cursor.copy(b"COPY points FROM STDIN") as copy:
        for start in range(0, ROWS, 10_000):
            copy.write("".join(f"{k}\t{k * 7 % 1000}\tnote {k}\n" for k in range(start, start + 10_000)))


def main() -> None:
    rows: list[list[object]] = []
    baseline: list[float] = []
    with mzlite_server() as server, postgres() as dsn:
        conn = server.connect()
        _load(conn, "")
        conn.execute(b"CREATE VIEW pv AS SELECT k, v + 1 AS v, note FROM points")
        conn.execute(b"CREATE INDEX pv_k ON pv (k)")
        read = prepared(conn, "SELECT v, note FROM pv WHERE k = 4242")
        read()
        if dsn is not None:
            pg = psycopg.connect(dsn, autocommit=True)
            _load(pg, "primary key")
            pg.execute(b"VACUUM ANALYZE points")
            baseline = time_calls(prepared(pg, "SELECT v, note FROM points WHERE k = 4242"), READS)
            rows.append(["PostgreSQL, primary key", p50_p99(baseline), ""])
        for isolation in ("strict serializable", "serializable"):
            conn.execute(f"SET transaction_isolation = '{isolation}'".encode())
            ours = time_calls(read, READS)
            ratio = f"{percentile(ours, 50) / percentile(baseline, 50):.2f}x" if baseline else ""
            rows.append([f"mzlite, indexed view, {isolation}", p50_p99(ours), ratio])
        conn.execute(b"SET transaction_isolation = 'strict serializable'")
        writer = server.connect()
        visible = []
        for n in range(300):
            start = time.perf_counter()
            writer.execute(b"INSERT INTO points VALUES (%s, 1, 'new')", (ROWS + n,))
            assert conn.execute(b"SELECT v FROM pv WHERE k = %s", (ROWS + n,)).fetchall()
            visible.append((time.perf_counter() - start) * 1e3)
        rows.append(["mzlite, INSERT until the view shows it", p50_p99(visible), ""])
        print_table(["read", "p50 / p99 ms", "p50 against PostgreSQL"], rows)
        print(f"  rows {ROWS:,}; server memory {server.memory_mib():.0f} MiB over {len(server.processes())} processes")
