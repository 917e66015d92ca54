"""What sqllogictest itself costs per record: parse, send, format, sort, compare, count; no server behind it.

    python -m tests.bench slt_overhead
    python -m tests.bench.bench_slt_overhead [--records 20000] [--repeat 5]

The claim: at most 30 microseconds a record on top of the server's time. The connection is a stub that answers from
memory at once, in place of psycopg's PGconn; everything on our side of it is what a real run executes. The corpus is
generated in the proportions of SQLite's: mostly queries of one to four columns and a few rows, half of them sorted, some
hashed, a fifth statements, a few errors. A second arm runs only the parser, to say where the time goes.
"""

from __future__ import annotations

import argparse
import hashlib
import platform
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import psycopg
from psycopg import pq

from sqllogictest.parser import parse_file
from sqllogictest.runner import FileRunner, Options
from sqllogictest.session import Session

CLAIM_US = 30.0


class StubResult:
    """A PGresult made in advance."""

    def __init__(self, status: pq.ExecStatus, tag: bytes, rows: list[list[bytes]] | None = None) -> None:
        self.status = status
        self.command_status = tag
        self.rows = rows or []
        self.ntuples = len(self.rows)
        self.nfields = len(self.rows[0]) if self.rows else 0

    def ftype(self, column: int) -> int:
        return 23

    def fname(self, column: int) -> bytes:
        return b"c"

    def get_value(self, row: int, column: int) -> bytes:
        return self.rows[row][column]

    def error_field(self, field: pq.DiagnosticField) -> bytes:
        return b"division by zero"


class StubConnection:
    """A PGconn that knows the answers."""

    status = pq.ConnStatus.OK
    transaction_status = pq.TransactionStatus.IDLE
    socket = -1

    def __init__(self, answers: dict[bytes, StubResult]) -> None:
        self.answers = answers

    def send_query_params(self, command: bytes, params: None, result_format: int) -> None:
        self.pending: StubResult | None = self.answers[command]

    def flush(self) -> int:
        return 0

    def is_busy(self) -> int:
        return 0

    def get_result(self) -> StubResult | None:
        result, self.pending = self.pending, None
        return result


class StubServer:
    """A server without a process."""

    dsn = ""
    is_materialize = False

    def __init__(self, answers: dict[bytes, StubResult]) -> None:
        self._answers = answers

    def connect(self, user: str | None = None, password: str | None = None) -> Session:
        return Session(None, StubConnection(self._answers))  # type: ignore[arg-type]

    def alive(self) -> bool:
        return True

    def obituary(self) -> str:
        return ""

    def reset(self) -> None:
        return

    def restart(self) -> None:
        return

    def stop(self) -> None:
        return


def corpus(count: int, seed: int) -> tuple[str, dict[bytes, StubResult]]:
    """A test file of `count` records and the stub's answers to it."""
    rng = random.Random(seed)
    parts: list[str] = []
    answers: dict[bytes, StubResult] = {}
    for i in range(count):
        kind = rng.random()
        if kind < 0.2:
            sql = f"INSERT INTO t{i % 9} VALUES ({i}, {i * 7}, {i * 31})"
            parts.append(f"statement ok\n{sql}\n\n")
            answers[sql.encode()] = StubResult(pq.ExecStatus.COMMAND_OK, b"INSERT 0 1")
            continue
        if kind < 0.25:
            sql = f"SELECT {i} / 0"
            parts.append(f"query error division by zero\n{sql}\n\n")
            answers[sql.encode()] = StubResult(pq.ExecStatus.FATAL_ERROR, b"")
            continue
        columns, rows = rng.randint(1, 4), rng.choice((1, 1, 2, 3, 5, 9))
        sql = f"SELECT a, b+{i}, abs(c), d FROM t1 WHERE a > b AND (e > c OR e < d) AND d NOT BETWEEN 110 AND {i}"
        values = [[rng.randint(-999, 999) for _ in range(columns)] for _ in range(rows)]
        data = [[value.to_bytes(4, "big", signed=True) for value in row] for row in values]
        answers[sql.encode()] = StubResult(pq.ExecStatus.TUPLES_OK, f"SELECT {rows}".encode(), data)
        sort = rng.choice(("nosort", "rowsort"))
        text = [[str(value) for value in row] for row in values]
        if sort == "rowsort":
            text.sort()
        flat = [cell for row in text for cell in row]
        if len(flat) > 8:
            digest = hashlib.md5("".join(f"{cell}\n" for cell in flat).encode(), usedforsecurity=False).hexdigest()
            flat = [f"{len(flat)} values hashing to {digest}"]
        parts.append(f"query {'I' * columns} {sort}\n{sql}\n----\n" + "\n".join(flat) + "\n\n")
    return "".join(parts), answers


def main(argv: Sequence[str] = ()) -> None:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--records", type=int, default=20_000)
    p.add_argument("--repeat", type=int, default=5)
    p.add_argument("--seed", type=int, default=0)
    args = p.parse_args(argv)
    text, answers = corpus(args.records, args.seed)
    whole: list[float] = []
    parsing: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "overhead.test"
        path.write_text(text)
        for _ in range(args.repeat):
            started = time.perf_counter()
            report = FileRunner(StubServer(answers), Options()).run(str(path))
            whole.append((time.perf_counter() - started) / args.records * 1e6)
            assert report.ok and report.passed == args.records, report.failures[:1]
            started = time.perf_counter()
            parse_file(str(path))
            parsing.append((time.perf_counter() - started) / args.records * 1e6)
    median = statistics.median(whole)
    print(f"python {platform.python_version()}, psycopg {psycopg.__version__} ({pq.__impl__}), seed {args.seed}")
    print(f"{args.records} records, {args.repeat} runs, microseconds a record (median, min, max)")
    for name, times in (("whole runner", whole), ("parser only", parsing)):
        print(f"  {name:<13} {statistics.median(times):6.2f}  {min(times):6.2f}  {max(times):6.2f}")
    print(f"claim: at most {CLAIM_US:.0f}; {'holds' if median <= CLAIM_US else 'DOES NOT HOLD'}")


if __name__ == "__main__":
    main(sys.argv[1:])
