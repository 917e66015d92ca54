"""Reports for people and for machines: text, JSON, JUnit."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from xml.etree import ElementTree

from sqllogictest.report import Failure, FileReport, RunReport, Status

MAX_SQL_LINES = 12

_INVALID_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def failure_lines(failure: Failure, label: str = "") -> Iterator[str]:
    """A failure as a paragraph that starts with file:line."""
    where = f" [{label}]" if label else ""
    yield f"{failure.file}:{failure.line}:{where} {failure.reason}"
    sql = failure.sql.strip("\n").split("\n")
    for line in sql[:MAX_SQL_LINES]:
        if line.strip():
            yield f"    {line}"
    if len(sql) > MAX_SQL_LINES:
        yield f"    ({len(sql) - MAX_SQL_LINES} more lines)"
    for line in failure.diff:
        yield f"  {line}"
    yield ""


def file_lines(report: FileReport, max_failures: int) -> Iterator[str]:
    """One file: its failures, then a verdict."""
    for failure in report.failures[:max_failures]:
        yield from failure_lines(failure, report.label)
    left = report.failed - min(len(report.failures), max_failures)
    if left > 0:
        yield f"({left} more failures in {report.name})"
        yield ""
    verdict = "ok  " if report.ok else "FAIL"
    extra = f"  {report.status}: {report.message}" if report.message else ""
    changed = f"  {report.rewritten} rewritten" if report.rewritten else ""
    yield f"{verdict} {report.name}  {report.passed}/{report.total}  {report.seconds:.2f} s{changed}{extra}"


def summary_lines(run: RunReport) -> Iterator[str]:
    """The table at the end."""
    for kind, tally in run.tallies().items():
        if tally.total:
            share = 100 * tally.passed / tally.total
            yield f"{kind!s:<12} {tally.passed:>9,} of {tally.total:>9,}  {share:6.2f} %"
    skipped, not_run = sum(f.skipped for f in run.files), sum(f.not_run for f in run.files)
    if skipped or not_run:
        yield f"skipped {skipped:,}, not run {not_run:,}"
    bad = sum(not file.ok for file in run.files)
    rate = run.records / run.seconds if run.seconds > 0 else 0.0
    files = f"{len(run.files)} file{'' if len(run.files) == 1 else 's'}"
    yield f"{files}, {bad} not ok; {run.records:,} records in {run.seconds:.2f} s ({rate:,.0f} a second)"


def write_json(run: RunReport, path: str) -> None:
    with open(path, "w", encoding="utf-8") as f:
        json.dump(run.as_json(), f, indent=1, ensure_ascii=False)
        f.write("\n")


def write_junit(run: RunReport, path: str) -> None:
    """One test case a file; what Jenkins, GitLab and GitHub's actions read."""
    bad = sum(not file.ok for file in run.files)
    root = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(
        root,
        "testsuite",
        name="sqllogictest",
        tests=str(len(run.files)),
        failures=str(bad),
        time=f"{run.seconds:.3f}",
    )
    for file in run.files:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=file.label or "sqllogictest",
            name=file.path,
            time=f"{file.seconds:.3f}",
        )
        if not file.ok:
            tag = "error" if file.status in (Status.ERROR, Status.DIED, Status.TIMEOUT) else "failure"
            message = file.message or f"{file.failed} of {file.total} records failed"
            node = ElementTree.SubElement(case, tag, message=_xml(message), type=str(file.status))
            node.text = _xml("\n".join(line for f in file.failures for line in failure_lines(f)))
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _xml(text: str) -> str:
    return _INVALID_XML.sub("\ufffd", text)
