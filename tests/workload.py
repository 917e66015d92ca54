"""A parallel workload: `./dev workload --seconds N --seed S`.

Several connections do random DDL, DML, reads at both isolation levels, SUBSCRIBEs, cancels, cluster creation and replica
kills, while flags flip. What must hold whatever the interleaving:

    accounts    transfers are single UPDATEs that keep the sum: every read of every view over them shows that sum
    private     each connection's own table has an exact model in Python: a strict serializable read equals it
    errors      only those that a racing DROP, a cancel or a missing replica explains; never an internal one
    at the end  after everything is dropped no peek is pending, and the server stops cleanly with all its processes

Prints what was done; exit status 1 with the reasons if something did not hold. The seed fixes each connection's choices,
not their interleaving.
"""

from __future__ import annotations

import argparse
import collections
import os
import random
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psycopg

from tests.bench.support import Connection, Server, mzlite_server

ACCOUNTS = 20
TOTAL = ACCOUNTS * 100
HISTORY_S = 1.5

# What a race may explain: undefined objects, objects in use, cancels, no replica, compacted times, write conflicts.
EXPECTED = {
    "42P01", "42704", "42883", "2BP01", "42710", "42P07", "57014", "3F000", "55000", "57P01", "58000", "40001", "0A000",
    "42809", "XX001", "58030",
}  # fmt: skip
SUMS = {
    "w_total": "SELECT sum(balance)::int8 AS total, count(*)::int8 AS n FROM accounts",
    "w_by_group": "SELECT grp, sum(balance)::int8 AS total, count(*)::int8 AS n FROM accounts GROUP BY grp",
    "w_joined": (
        "SELECT a.grp, sum(a.balance)::int8 AS total, count(*)::int8 AS n FROM accounts a JOIN accounts b ON a.id = b.id GROUP BY a.grp"
    ),
    "w_ranked": (
        "SELECT balance AS total, 1::int8 AS n FROM (SELECT id, balance FROM accounts ORDER BY balance DESC, id LIMIT 1000) x"
    ),
}


class Failure(Exception):
    """Something that must hold did not."""


class Shared:
    """What the connections report to. stop: the time is up, or somebody failed."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.stop = threading.Event()
        self.failures: list[str] = []
        self.done: collections.Counter[str] = collections.Counter()
        self.errors: collections.Counter[str] = collections.Counter()
        self.lock = threading.Lock()

    def count(self, what: str) -> None:
        with self.lock:
            self.done[what] += 1

    def fail(self, text: str) -> None:
        with self.lock:
            self.failures.append(text)
        self.stop.set()


class Client:
    """One connection's part, driven by its own random numbers."""

    def __init__(self, shared: Shared, number: int, seed: int) -> None:
        self.shared = shared
        self.number = number
        self.rng = random.Random(f"{seed}/{number}")
        self.conn: Connection = shared.server.connect()
        self.model: dict[int, int] = {}
        self.next_id = 0
        self.table = f"private_{number}"
        self.conn.execute(f"CREATE TABLE {self.table} (id int, v int)".encode())
        self.conn.execute(
            f"CREATE VIEW {self.table}_sum AS SELECT count(*) AS n, sum(v)::int8 AS s FROM {self.table}".encode()
        )
        self.conn.execute(f"CREATE DEFAULT INDEX ON {self.table}_sum".encode())

    def run(self) -> None:
        actions: list[tuple[int, Callable[[], None]]] = [
            (10, self.transfer),
            (10, self.private_write),
            (10, self.private_read),
            (10, self.read_sums),
            (3, self.create),
            (2, self.drop),
            (2, self.subscribe),
            (2, self.cancel),
            (1, self.transaction),
        ]
        weights = [w for w, _ in actions]
        while not self.shared.stop.is_set():
            (_, action), *_ = self.rng.choices(actions, weights)
            try:
                action()
                self.shared.count(action.__name__)
            except Failure as failure:
                self.shared.fail(f"connection {self.number}: {failure}")
            except psycopg.Error as error:
                self._error(error, action.__name__)
            except Exception:
                self.shared.fail(f"connection {self.number}: {traceback.format_exc()}")

    def _error(self, error: psycopg.Error, action: str) -> None:
        state = error.sqlstate or "connection lost"
        with self.shared.lock:
            self.shared.errors[state] += 1
        raced = state in EXPECTED or (state == "XX000" and "was dropped" in str(error))
        if not raced or "internal error" in str(error):
            self.shared.fail(f"connection {self.number}, {action}: {state} {error}")
        if self.conn.closed:
            self.conn = self.shared.server.connect()
        elif self.conn.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            self.conn.execute(b"ROLLBACK")

    # -- writes

    def transfer(self) -> None:
        a, b = self.rng.sample(range(ACCOUNTS), 2)
        amount = self.rng.randint(-20, 20)
        self.conn.execute(
            b"UPDATE accounts SET balance = balance + CASE id WHEN %s THEN %s ELSE -%s END WHERE id IN (%s, %s)",
            (a, amount, amount, a, b),
        )

    def private_write(self) -> None:
        roll = self.rng.random()
        if roll < 0.6 or not self.model:
            rows = [(self.next_id + i, self.rng.randint(-100, 100)) for i in range(self.rng.randint(1, 5))]
            self.next_id += len(rows)
            values = ", ".join(f"({i}, {v})" for i, v in rows)
            self._private(f"INSERT INTO {self.table} VALUES {values}", lambda: self.model.update(rows))
        elif roll < 0.8:
            low = self.rng.choice(list(self.model))
            self._private(
                f"UPDATE {self.table} SET v = v + 1 WHERE id >= {low}",
                lambda: self.model.update({i: v + 1 for i, v in self.model.items() if i >= low}),
            )
        else:
            gone = self.rng.choice(list(self.model))
            self._private(f"DELETE FROM {self.table} WHERE id = {gone}", lambda: self.model.pop(gone) and None)

    def _private(self, statement: str, apply: Callable[[], Any]) -> None:
        self.conn.execute(statement.encode())
        apply()

    # -- reads

    def private_read(self) -> None:
        self.conn.execute(b"SET transaction_isolation = 'strict serializable'")
        got = self.conn.execute(f"SELECT n, s FROM {self.table}_sum".encode()).fetchall()
        if got:
            (n, s), *_ = got
            if n != len(self.model) or (s or 0) != sum(self.model.values()):
                raise Failure(f"{self.table}: read {got}, model {len(self.model)} rows, sum {sum(self.model.values())}")
        elif self.model:
            raise Failure(f"{self.table}: the view is empty, the model has {len(self.model)} rows")
        rows = dict(self.conn.execute(f"SELECT id, v FROM {self.table}".encode()).fetchall())
        if rows != self.model:
            raise Failure(f"{self.table}: {len(rows)} rows differ from the model's {len(self.model)}")

    def read_sums(self) -> None:
        isolation = self.rng.choice(["serializable", "strict serializable"])
        self.conn.execute(f"SET transaction_isolation = '{isolation}'".encode())
        name = self.rng.choice(list(SUMS))
        source = self.rng.choice([name, f"({SUMS[name]}) q"])
        (total, n), *_ = self.conn.execute(f"SELECT sum(total)::int8, sum(n)::int8 FROM {source}".encode()).fetchall()
        if (total, n) != (TOTAL, ACCOUNTS):
            raise Failure(f"{source} at {isolation}: sum {total} of {n} accounts, expected {TOTAL} of {ACCOUNTS}")

    def transaction(self) -> None:
        """Two reads in one transaction see one time."""
        with self.conn.transaction():
            reads = [self.conn.execute(b"SELECT id, balance FROM accounts ORDER BY id").fetchall() for _ in range(2)]
        if reads[0] != reads[1]:
            raise Failure("two reads of a transaction differ")

    def subscribe(self) -> None:
        """Accumulated changes of the sum are the sum, at every time that was announced complete."""
        with self.conn.transaction():
            self.conn.execute(b"DECLARE s CURSOR FOR SUBSCRIBE (SELECT id, balance FROM accounts)")
            rows: collections.Counter[tuple[int, int]] = collections.Counter()
            for _ in range(self.rng.randint(1, 3)):
                for _, diff, id, balance in self.conn.execute(b"FETCH ALL s WITH (timeout = '200ms')").fetchall():
                    rows[(id, balance)] += diff
        live = {k: n for k, n in rows.items() if n}
        if live and (sum(b * n for (_, b), n in live.items()) != TOTAL or any(n != 1 for n in live.values())):
            raise Failure(f"a subscription accumulated to {live}")

    def cancel(self) -> None:
        """A statement that would run for ever, cancelled."""
        timer = threading.Timer(self.rng.uniform(0.01, 0.3), self.conn.cancel)
        timer.start()
        try:
            self.conn.execute(
                b"WITH MUTUALLY RECURSIVE r (n int8) AS (SELECT 1::int8 UNION SELECT n + 1 FROM r) SELECT max(n) FROM r"
            )
            raise Failure("an endless recursion ended")
        except psycopg.errors.QueryCanceled:
            pass
        finally:
            timer.join()

    # -- definitions

    def create(self) -> None:
        name, query = self.rng.choice(list(SUMS.items()))
        kind = self.rng.choice(["INDEX", "MATERIALIZED VIEW", "INDEX"])
        if kind == "INDEX":
            self.conn.execute(f"CREATE DEFAULT INDEX ON {name}".encode())
        else:
            self.conn.execute(f"CREATE MATERIALIZED VIEW IF NOT EXISTS {name}_mv AS {query}".encode())
            (total,), *_ = self.conn.execute(f"SELECT sum(total)::int8 FROM {name}_mv".encode()).fetchall()
            if total != TOTAL:
                raise Failure(f"{name}_mv: sum {total}, expected {TOTAL}")

    def drop(self) -> None:
        if self.rng.random() < 0.5:
            self.conn.execute(f"DROP MATERIALIZED VIEW IF EXISTS {self.rng.choice(list(SUMS))}_mv CASCADE".encode())
            return
        names = [
            row[0] for row in self.conn.execute(b"SELECT name FROM (SHOW INDEXES) i WHERE \"on\" LIKE 'w_%'").fetchall()
        ]
        if names:
            self.conn.execute(f'DROP INDEX IF EXISTS "{self.rng.choice(names)}"'.encode())


class Disturber(threading.Thread):
    """Flips flags, makes and drops clusters, kills workers."""

    def __init__(self, shared: Shared, seed: int) -> None:
        super().__init__(daemon=True, name="disturber")
        self.shared = shared
        self.rng = random.Random(f"{seed}/disturber")

    def run(self) -> None:
        actions = [self.flip, self.cluster, self.kill]
        while not self.shared.stop.wait(self.rng.uniform(0.2, 1.0)):
            action = self.rng.choice(actions)
            try:
                action()
                self.shared.count(action.__name__)
            except psycopg.Error as error:
                if (error.sqlstate or "") not in EXPECTED or "internal error" in str(error):
                    self.shared.fail(f"disturber, {action.__name__}: {error.sqlstate} {error}")
            except Exception:
                self.shared.fail(f"disturber: {traceback.format_exc()}")

    def flip(self) -> None:
        flag = self.rng.choice(["enable_compute_interactive_runtime", "enable_compute_interactive_dataflows"])
        self.shared.server.system(f"ALTER SYSTEM SET {flag} = {self.rng.choice(['true', 'false'])}")

    def cluster(self) -> None:
        name = f"extra_{self.rng.randrange(3)}"
        with self.shared.server.connect() as conn:
            if self.rng.random() < 0.5:
                conn.execute(f"DROP CLUSTER IF EXISTS {name} CASCADE".encode())
            workers = self.rng.choice([1, 2])
            conn.execute(f"CREATE CLUSTER {name} (SIZE 'scale=1,workers={workers}')".encode())
            conn.execute(f"CREATE INDEX {name}_i IN CLUSTER {name} ON accounts (grp)".encode())
            conn.execute(f"SET cluster = {name}".encode())
            (total,), *_ = conn.execute(b"SELECT sum(balance)::int8 FROM accounts").fetchall()
            if total != TOTAL:
                self.shared.fail(f"cluster {name}: sum {total}, expected {TOTAL}")
            conn.execute(f"DROP CLUSTER {name} CASCADE".encode())

    def kill(self) -> None:
        """kill -9 of one worker: its replica restarts, readers wait, nothing is lost."""
        workers = [pid for pid in self.shared.server.processes() if _is_worker(pid)]
        if len(workers) > 1:
            # The first is the fork server, parent of the others.
            os.kill(self.rng.choice(workers[1:]), signal.SIGKILL)


def _is_worker(pid: int) -> bool:
    try:
        return b"fork_server" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def settle(server: Server) -> list[str]:
    """Drop everything; what is left that should not be."""
    problems = []
    with server.connect() as conn:
        for table, *_ in conn.execute(b"SELECT name FROM (SHOW TABLES) t").fetchall():
            conn.execute(f"DROP TABLE {table} CASCADE".encode())
        conn.execute(b"SET cluster = quickstart")
        deadline = time.monotonic() + 30
        while (
            peeks := conn.execute(
                b"SELECT count(*) FROM mz_introspection.mz_active_peeks WHERE type = 'index'"
            ).fetchall()[0][0]
        ) > 1:
            if time.monotonic() > deadline:
                problems.append(f"{peeks} peeks are still active after everything was dropped")
                break
            time.sleep(0.1)
    return problems


def run(seconds: float, seed: int, connections: int, disturb: bool = True) -> int:
    with mzlite_server() as server:
        with server.connect() as conn:
            conn.execute(b"CREATE TABLE accounts (id int, grp int, balance int)")
            values = ", ".join(f"({i}, {i % 3}, 100)" for i in range(ACCOUNTS))
            conn.execute(f"INSERT INTO accounts VALUES {values}".encode())
            for name, query in SUMS.items():
                conn.execute(f"CREATE VIEW {name} AS {query}".encode())
        # An index or view made now may be read, at serializable, as of a second ago: before the load.
        time.sleep(HISTORY_S)
        shared = Shared(server)
        clients = [Client(shared, n, seed) for n in range(connections)]
        threads = [threading.Thread(target=c.run, daemon=True, name=f"client {c.number}") for c in clients]
        if disturb:
            threads.append(Disturber(shared, seed))
        for t in threads:
            t.start()
        shared.stop.wait(seconds)
        shared.stop.set()
        for t in threads:
            t.join(60)
            if t.is_alive():
                shared.failures.append(f"{t.name} did not stop within a minute")
        if not shared.failures:
            shared.failures += settle(server)
        processes = server.processes()
    left = [pid for pid in processes if Path(f"/proc/{pid}").exists()]
    if left:
        shared.failures.append(f"processes {left} outlived the server")
    print("did    " + ", ".join(f"{k} {n}" for k, n in sorted(shared.done.items())))
    print("errors " + (", ".join(f"{k} {n}" for k, n in sorted(shared.errors.items())) or "none"))
    for failure in shared.failures:
        print(f"FAILED {failure}", file=sys.stderr)
    return 1 if shared.failures else 0


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="dev workload", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--connections", type=int, default=6)
    parser.add_argument("--calm", action="store_true", help="no flags, clusters or kills")
    options = parser.parse_args(argv)
    print(f"seed {options.seed}")
    return run(options.seconds, options.seed, options.connections, not options.calm)


if __name__ == "__main__":
    sys.exit(main())
