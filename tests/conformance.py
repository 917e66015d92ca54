"""The conformance ratchet: run the corpora, compare with what is written in conformance.json, fail if a count fell.

    ./dev conformance [--update] [--only PATTERN] [--jobs N] [--plain]

The corpora are no part of the project: they stand in the directory named by MZLITE_SHARED (default ../shared), as
`slt/` (sqllogictest files), `specs/` (compute specs) and `cases/` (SQL and wire cases with their own replay.py). A part
that is not there is left out of the comparison; so are files that --only does not name.

Every sqllogictest file runs twice: as it is, and with every SELECT through an indexed view (`[views]`), apart because a
view more in the catalog shows in some answers. EXPLAIN expectations are not counted. Files go on past a failed
statement, so that a count moves with every record that starts or stops to pass; one that hangs fails at its time limit.
Specs run with one and two workers and with one and two runtimes.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqllogictest.__main__ import main as sqllogictest
from sqllogictest.server import Server, ServerFailure
from sqllogictest.subprocess_server import ChildServer, Subprocess

HERE = Path(__file__).resolve().parent
RATCHET = HERE / "conformance.json"
FILE_TIMEOUT_S = 900
SPEC_TIMEOUT_S = 600
CASE_TIMEOUT_S = 90

Counts = dict[str, tuple[int, int]]
"""Passed and total by name."""


def shared_dir() -> Path:
    return Path(os.environ.get("MZLITE_SHARED", HERE.parent.parent / "shared"))


def wanted(name: str, only: str | None) -> bool:
    return only is None or fnmatch.fnmatch(name, f"*{only}*")


# -- sqllogictest files ----------------------------------------------------------------------------------------------


def run_slt(root: Path, only: str | None, jobs: int, *, views: bool) -> Counts:
    files = [
        path
        for pattern in ("*.slt", "*.test")
        for path in sorted(root.rglob(pattern))
        if wanted(f"slt/{path.relative_to(root)}", only)
    ]
    if not files:
        return {}
    counts: Counts = {}
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "report.json"
        options = ["--score", "continue", "--timeout", str(FILE_TIMEOUT_S), "--jobs", str(jobs), "--failures", "0"]
        if views:
            options.append("--auto-index-selects")
        sqllogictest([*options, "--json", str(target), *map(str, files)])
        report = json.loads(target.read_text())
    for file in report["files"]:
        name = f"slt/{Path(file['path']).relative_to(root)}"
        kinds = file["kinds"]
        if views:
            through = kinds.get("views", {"passed": 0, "total": 0})
            counts[f"{name} [views]"] = (through["passed"], through["total"])
        else:
            counts[name] = (
                sum(kind["passed"] for key, kind in kinds.items() if key != "explain"),
                sum(kind["total"] for key, kind in kinds.items() if key != "explain"),
            )
    return counts


# -- compute specs ---------------------------------------------------------------------------------------------------


def run_specs(root: Path, only: str | None) -> Counts:
    counts: Counts = {}
    for path in sorted(root.rglob("*.spec")):
        for workers in (1, 2):
            for solo in (False, True):
                label = f"{workers} worker{'s' * (workers > 1)}, {'one runtime' if solo else 'two runtimes'}"
                name = f"specs/{path.relative_to(root)} [{label}]"
                if wanted(name, only):
                    counts[name] = _run_spec(path, workers, solo)
                    print(f"{counts[name][0]}/{counts[name][1]} {name}", flush=True)
    return counts


def _run_spec(path: Path, workers: int, solo: bool) -> tuple[int, int]:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "report.json"
        command = [sys.executable, "-m", "mzlite", "specs", "--workers", str(workers), "--json", str(target)]
        command += ["--solo"] * solo + [str(path)]
        try:
            subprocess.run(command, capture_output=True, timeout=SPEC_TIMEOUT_S, check=False)
            (report,) = json.loads(target.read_text())
        except (subprocess.TimeoutExpired, OSError, ValueError):
            return 0, 1
    return int(report["passed"]), 1


# -- replayable cases ------------------------------------------------------------------------------------------------


def run_cases(root: Path, only: str | None) -> Counts:
    replay = root / "replay.py"
    names = sorted(path.name for pattern in ("[0-9]*.sql", "[0-9]*.py") for path in root.glob(pattern))
    names = [name for name in names if wanted(f"cases/{name}", only)]
    if not replay.exists() or not names:
        return {}
    counts: Counts = {}
    try:
        server = Subprocess().start()
    except ServerFailure as e:
        print(f"no case runs: {e}")
        return {f"cases/{name}": (0, 1) for name in names}
    try:
        for name in names:
            counts[f"cases/{name}"] = (int(_run_case(server, replay, name)), 1)
            print(f"{counts[f'cases/{name}'][0]}/1 cases/{name}", flush=True)
    finally:
        server.stop()
    return counts


def _run_case(server: Server, replay: Path, name: str) -> bool:
    assert isinstance(server, ChildServer)
    try:
        server.reset()
    except ServerFailure as e:
        print(f"cannot reset the server: {e}")
        return False
    host, port = server.address
    command = [sys.executable, str(replay), "--host", host, "--port", str(port), name]
    command += ["--user", "materialize", "--db", "materialize"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=CASE_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0 and done.stdout.strip().startswith("1 passed")


# -- the ratchet -----------------------------------------------------------------------------------------------------


def read_ratchet(path: Path = RATCHET) -> Counts:
    if not path.exists():
        return {}
    return {name: (int(p), int(t)) for name, (p, t) in json.loads(path.read_text()).items()}


def write_ratchet(counts: Counts, path: Path = RATCHET) -> None:
    lines = [f"{json.dumps(name)}: [{passed}, {total}]" for name, (passed, total) in sorted(counts.items())]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def compare(old: Counts, new: Counts) -> Iterator[tuple[str, str]]:
    """(fell or raised, text) for each count that differs."""
    for name, (passed, total) in sorted(new.items()):
        before = old.get(name)
        if before is None:
            yield "raised", f"{name}: new, {passed}/{total}"
        elif passed < before[0]:
            yield "fell", f"{name}: {passed}/{total}, was {before[0]}/{before[1]}"
        elif (passed, total) != before:
            yield "raised", f"{name}: {passed}/{total}, was {before[0]}/{before[1]}"


def merged(old: Counts, new: Counts) -> Counts:
    """Old counts with the new ones in place of those that they do not fall behind."""
    return old | {name: count for name, count in new.items() if name not in old or count[0] >= old[name][0]}


def summary(counts: Counts) -> Iterator[str]:
    groups: dict[str, list[Any]] = {}
    for name, (passed, total) in counts.items():
        group = "/".join(name.split("/")[:2]) if name.startswith("slt/") else name.split("/")[0]
        group += " [views]" if name.endswith("[views]") else ""
        sums = groups.setdefault(group, [0, 0])
        sums[0] += passed
        sums[1] += total
    for group, (passed, total) in sorted(groups.items()):
        yield f"{group:<32} {passed:>8,} of {total:>8,}  {100 * passed / total if total else 100:6.2f} %"


def main() -> int:
    p = argparse.ArgumentParser(description="Run the corpora and compare with tests/conformance.json.")
    p.add_argument("--update", action="store_true", help="write the counts that rose")
    p.add_argument("--only", metavar="PATTERN", help="only files whose name holds this (shell wildcards work)")
    p.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), metavar="N", help="slt files at once")
    p.add_argument("--plain", action="store_true", help="leave out the second run, through indexed views")
    args = p.parse_args()
    root = shared_dir()
    counts: Counts = {}
    if (root / "slt").is_dir():
        counts |= run_slt(root / "slt", args.only, args.jobs, views=False)
        if not args.plain:
            counts |= run_slt(root / "slt", args.only, args.jobs, views=True)
    if (root / "specs").is_dir():
        counts |= run_specs(root / "specs", args.only)
    if (root / "cases").is_dir():
        counts |= run_cases(root / "cases", args.only)
    if not counts:
        print(f"nothing to run in {root}")
        return 0
    old = read_ratchet()
    fell = 0
    for what, text in compare(old, counts):
        print(f"{what:<6} {text}")
        fell += what == "fell"
    for line in summary(counts):
        print(line)
    if args.update:
        write_ratchet(merged(old, counts))
    return 1 if fell else 0


if __name__ == "__main__":
    sys.exit(main())
