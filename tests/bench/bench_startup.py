"""`mzlite -c 'select 1'`, from process start to exit, beside `python -c pass` (what the interpreter itself costs)."""

from __future__ import annotations

import subprocess
import sys
import time

from tests.bench.support import mzlite_server, percentile, print_table


def _time(command: list[str], runs: int) -> list[float]:
    out = []
    for _ in range(runs):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        out.append(time.perf_counter() - start)
    return out


def main() -> None:
    ours = _time([sys.executable, "-m", "mzlite", "-c", "select 1"], 7)
    bare = _time([sys.executable, "-c", "pass"], 7)
    print_table(
        ["command", "median s", "max s"],
        [
            ["mzlite -c 'select 1'", f"{percentile(ours, 50):.2f}", f"{max(ours):.2f}"],
            ["python -c pass", f"{percentile(bare, 50):.2f}", f"{max(bare):.2f}"],
        ],
    )
    with mzlite_server() as server:
        with server.connect() as conn:
            conn.execute(b"SELECT 1")
        print(
            f"  server at rest: {server.memory_mib():.0f} MiB (proportional) over {len(server.processes())} processes"
        )
