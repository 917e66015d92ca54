"""`mzlite specs [--workers N] [--solo] [--json FILE] PATH…`: run specs, print what differs, exit 1 if anything does.

REWRITE=1 in the environment replaces the expected outputs by the actual ones.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from compute.client.orchestrator import Orchestrator
from mzlite.driver.runner import Outcome, run_file
from mzlite.driver.spec import SpecError, Stanza, parse_spec


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="mzlite specs", description="run compute specs against a replica")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="worker processes per runtime (default 1)")
    parser.add_argument("--solo", action="store_true", help="one runtime instead of two")
    parser.add_argument("--json", metavar="FILE", help="write a report")
    parser.add_argument("-v", "--verbose", action="store_true", help="print every stanza's output")
    parser.add_argument("paths", nargs="+", metavar="PATH", help="spec files, or directories of *.spec")
    options = parser.parse_args(argv)
    if options.workers < 1:
        parser.error("--workers must be at least 1")
    files: list[Path] = []
    for given in map(Path, options.paths):
        found = sorted(given.rglob("*.spec")) if given.is_dir() else [given]
        if not found or not all(f.is_file() for f in found):
            parser.error(f"no spec at {given}")
        files.extend(found)
    orchestrator = Orchestrator(None)
    orchestrator.start()
    outcomes: list[Outcome] = []
    unreadable = 0
    try:
        for path in files:
            try:
                stanzas = parse_spec(path.read_text())
            except SpecError as error:
                print(f"{path}: {error}", file=sys.stderr)
                unreadable += 1
                continue
            outcome = asyncio.run(run_file(orchestrator.serving, path, stanzas, options.workers, not options.solo))
            outcomes.append(outcome)
            _print(outcome, stanzas, options.verbose)
            if os.environ.get("REWRITE") == "1":
                rewrite(path, stanzas, outcome.outputs)
    finally:
        orchestrator.shutdown()
    passed = sum(o.passed for o in outcomes)
    print(
        f"{passed} of {len(files)} specs passed (workers={options.workers}, {'one runtime' if options.solo else 'two runtimes'})"
    )
    if options.json is not None:
        Path(options.json).write_bytes(msgspec.json.format(msgspec.json.encode([report(o) for o in outcomes])))
    return 0 if passed == len(files) and not unreadable else 1


def report(outcome: Outcome) -> dict[str, object]:
    """The --json form of one file's outcome."""
    return {
        "file": outcome.file,
        "workers": outcome.workers,
        "runtimes": 2 if outcome.interactive else 1,
        "passed": outcome.passed,
        "stanzas": outcome.stanzas,
        "failures": outcome.failures,
        "rendered": outcome.rendered,
    }


def rewrite(path: Path, stanzas: Sequence[Stanza], outputs: Sequence[Sequence[str]]) -> None:
    """Put the actual outputs where the expected ones stand."""
    lines = path.read_text().splitlines()
    for stanza, output in reversed(list(zip(stanzas, outputs))):
        if stanza.expected is not None:
            lines[stanza.expected_start : stanza.expected_end] = output
    path.write_text("\n".join(lines) + "\n")


def _print(outcome: Outcome, stanzas: Sequence[Stanza], verbose: bool) -> None:
    if verbose:
        for stanza, output in zip(stanzas, outcome.outputs):
            print(f"{outcome.file}:{stanza.line}: {stanza.command} -> {' | '.join(output)}")
    for failure in outcome.failures:
        print(f"{outcome.file}:{failure.line}: {failure.command}")
        for line in failure.expected:
            print(f"  - {line}")
        for line in failure.actual:
            print(f"  + {line}")
    print(f"{'ok    ' if outcome.passed else 'FAILED'} {outcome.file}")
