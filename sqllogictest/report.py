"""What a run found: counts by kind, failures with their places, and one status per file.

Every record of a file is in exactly one of passed, failed, skipped (skipif, onlyif, halt) and not run (the file stopped
before it). total = passed + failed + not run, so that a file that stops early scores low, not short.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

from sqllogictest.records import Kind

MAX_FAILURES_KEPT = 200


class Status(enum.StrEnum):
    OK = "ok"
    FAILED = "failed"
    STOPPED = "stopped"  # at a failed statement ok, or by --fail-fast
    MALFORMED = "malformed"
    TIMEOUT = "timeout"
    DIED = "server died"
    ERROR = "error"  # no server, or a crash of the tool itself


@dataclass(slots=True)
class Tally:
    """passed of total records of one kind."""

    passed: int = 0
    total: int = 0

    def add(self, other: Tally) -> None:
        self.passed += other.passed
        self.total += other.total


@dataclass(slots=True)
class Failure:
    """One failed record: reason in a line, sql as written, diff as lines for a reader."""

    file: str
    line: int
    kind: str
    reason: str
    sql: str = ""
    diff: list[str] = field(default_factory=list)


def new_tallies() -> dict[Kind, Tally]:
    return {kind: Tally() for kind in Kind}


@dataclass(slots=True)
class FileReport:
    """One file in one configuration. failures keeps the first `MAX_FAILURES_KEPT`; `failed` counts all."""

    path: str
    label: str = ""
    status: Status = Status.OK
    message: str = ""
    tallies: dict[Kind, Tally] = field(default_factory=new_tallies)
    failed: int = 0
    skipped: int = 0
    not_run: int = 0
    seconds: float = 0.0
    failures: list[Failure] = field(default_factory=list)
    rewritten: int = 0

    @property
    def name(self) -> str:
        return f"{self.path} [{self.label}]" if self.label else self.path

    @property
    def passed(self) -> int:
        return sum(tally.passed for tally in self.tallies.values())

    @property
    def total(self) -> int:
        return sum(tally.total for tally in self.tallies.values())

    @property
    def ok(self) -> bool:
        return self.status is Status.OK

    def fail(self, failure: Failure) -> None:
        self.failed += 1
        if len(self.failures) < MAX_FAILURES_KEPT:
            self.failures.append(failure)

    def as_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "configuration": self.label,
            "status": str(self.status),
            "message": self.message,
            "passed": self.passed,
            "failed": self.failed,
            "skipped": self.skipped,
            "not_run": self.not_run,
            "total": self.total,
            "seconds": round(self.seconds, 3),
            "kinds": {
                str(kind): {"passed": tally.passed, "total": tally.total}
                for kind, tally in self.tallies.items()
                if tally.total
            },
            "failures": [
                {
                    "file": f.file,
                    "line": f.line,
                    "kind": f.kind,
                    "reason": f.reason,
                    "sql": f.sql,
                    "diff": f.diff,
                }
                for f in self.failures
            ],
        }


@dataclass(slots=True)
class RunReport:
    files: list[FileReport] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        return all(file.ok for file in self.files)

    def tallies(self) -> dict[Kind, Tally]:
        sums = new_tallies()
        for file in self.files:
            for kind, tally in file.tallies.items():
                sums[kind].add(tally)
        return sums

    @property
    def records(self) -> int:
        """Records that were run."""
        return sum(file.passed + file.failed for file in self.files)

    def as_json(self) -> dict[str, Any]:
        sums = self.tallies()
        return {
            "ok": self.ok,
            "passed": sum(tally.passed for tally in sums.values()),
            "total": sum(tally.total for tally in sums.values()),
            "kinds": {str(k): {"passed": t.passed, "total": t.total} for k, t in sums.items() if t.total},
            "seconds": round(self.seconds, 3),
            "files": [file.as_json() for file in self.files],
        }
