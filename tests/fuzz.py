"""Random programs against oracles, any number of seeds.

    python -m tests.fuzz [--kind plans|sql|server|engine|maintained|all] [--seeds N] [--start S] [--seconds T]

plans   random relation expressions: every optimizer rule and every prefix of the list keeps the rows
sql     random queries: planned, lowered, optimized; rows as DuckDB (or PostgreSQL) gives them
server  random queries through a server: as reads, and as indexed views under changes; rows as DuckDB gives them
engine  random dataflows and histories: maintained results equal recomputed ones
maintained  random queries as views, through random commits: as DuckDB computes them after each

A kind is a function from a seed to nothing; it raises AssertionError when the seed shows a bug.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
import traceback
from collections.abc import Callable

KINDS = {
    "plans": "tests.support.plan_check:check_seed",
    "sql": "tests.support.sql_check:check_seed",
    "server": "tests.support.server_check:check_seed",
    "engine": "tests.support.engine_check:check_seed",
    "maintained": "tests.support.maintained_check:check_seed",
}


def load(kind: str) -> Callable[[int], None]:
    module, _, name = KINDS[kind].partition(":")
    check: Callable[[int], None] = getattr(importlib.import_module(module), name)
    return check


def run(kind: str, start: int, seeds: int, seconds: float) -> int:
    """Number of failing seeds; stops after ten, or when the time is up."""
    from adapter.transform import pipeline

    pipeline.CHECKS = True
    check = load(kind)
    began, failures, done = time.monotonic(), 0, 0
    for seed in range(start, start + seeds):
        if time.monotonic() - began > seconds or failures == 10:
            break
        try:
            check(seed)
        except Exception:
            failures += 1
            print(f"{kind}: seed {seed} fails\n{traceback.format_exc()}", file=sys.stderr, flush=True)
        done += 1
    print(f"{kind}: {done} seeds from {start}, {failures} failing, {time.monotonic() - began:.1f} s")
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument("--kind", choices=[*KINDS, "all"], default="all")
    parser.add_argument("--seeds", type=int, default=500)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=600.0)
    args = parser.parse_args()
    kinds = list(KINDS) if args.kind == "all" else [args.kind]
    return min(1, sum(run(kind, args.start, args.seeds, args.seconds) for kind in kinds))


if __name__ == "__main__":
    sys.exit(main())
