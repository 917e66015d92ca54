"""The command line: finding files, jobs, shards, reports, exit status."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from sqllogictest import configurations, pool
from sqllogictest.__main__ import find_files, main
from sqllogictest.progress import ProgressBar
from sqllogictest.report import FileReport, Status
from sqllogictest.runner import Options
from sqllogictest.server import Server
from sqllogictest.subprocess_server import Subprocess

COMMAND = f"{sys.executable} {Path(__file__).with_name('fake_server.py')}"
GOOD = "query I\nSELECT 1\n----\n1\n"
BAD = "query I\nSELECT 1\n----\n2\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    (tmp_path / "b.slt").write_text(GOOD)
    (tmp_path / "a.test").write_text(GOOD)
    (tmp_path / "sub" / "c.slt").write_text(BAD)
    (tmp_path / "notes.txt").write_text("not a test")
    return tmp_path


def run(*argv: str) -> int:
    return main(["--server-command", COMMAND, "--no-progress", *argv])


def test_directories_are_walked_and_files_come_once(tree: Path) -> None:
    found = find_files([str(tree), str(tree / "b.slt"), str(tree / "notes.txt")])
    assert [Path(path).name for path in found] == ["a.test", "b.slt", "c.slt", "notes.txt"]
    with pytest.raises(FileNotFoundError):
        find_files([str(tree / "absent")])


def test_exit_status_and_output(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(tree)) == 1
    out = capsys.readouterr().out
    assert f"{tree}/sub/c.slt:1: wrong result\n    SELECT 1\n  - 2\n  + 1\n" in out
    assert "3 files, 1 not ok; 3 records" in out
    assert run(str(tree / "b.slt")) == 0


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["absent.slt"],
        ["--jobs", "0", "."],
        ["--shard", "3/2", "."],
        ["--rewrite", "--configurations", "."],
        ["--against", "host=x", "--configurations", "."],
    ],
)
def test_arguments_that_make_no_sense(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as e:
        main(argv)
    assert e.value.code == 2
    assert "error:" in capsys.readouterr().err


def test_shards_cover_every_file_once(tree: Path, tmp_path: Path) -> None:
    seen: list[str] = []
    for i in (1, 2):
        target = tmp_path / f"{i}.json"
        run("--shard", f"{i}/2", "--json", str(target), str(tree))
        seen += [Path(file["path"]).name for file in json.loads(target.read_text())["files"]]
    assert sorted(seen) == ["a.test", "b.slt", "c.slt"]


def test_json_and_junit(tree: Path, tmp_path: Path) -> None:
    as_json, as_xml = tmp_path / "r.json", tmp_path / "r.xml"
    assert run("--json", str(as_json), "--junit", str(as_xml), str(tree)) == 1
    data = json.loads(as_json.read_text())
    assert (data["passed"], data["total"], data["ok"]) == (2, 3, False)
    bad = data["files"][2]
    assert (bad["status"], bad["failed"], bad["kinds"]) == ("failed", 1, {"results": {"passed": 0, "total": 1}})
    assert bad["failures"][0]["line"] == 1 and bad["failures"][0]["diff"] == ["- 2", "+ 1"]
    cases = ElementTree.parse(as_xml).getroot().findall("testsuite/testcase")
    assert [len(case) for case in cases] == [0, 0, 1]
    assert "wrong result" in (cases[2][0].text or "")


def test_jobs_give_the_same_reports_in_the_same_order(tree: Path, tmp_path: Path) -> None:
    target = tmp_path / "r.json"
    assert run("--jobs", "2", "--json", str(target), str(tree)) == 1
    data = json.loads(target.read_text())
    assert [(Path(f["path"]).name, f["passed"]) for f in data["files"]] == [("a.test", 1), ("b.slt", 1), ("c.slt", 0)]


def test_fail_fast_starts_no_file_after_a_failure(tree: Path, tmp_path: Path) -> None:
    (tree / "a.test").write_text(BAD)
    target = tmp_path / "r.json"
    assert run("--fail-fast", "--json", str(target), str(tree)) == 1
    assert len(json.loads(target.read_text())["files"]) == 1


def test_a_server_that_does_not_start_fails_each_file(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--server-command", "/no/such/program", "--no-progress", str(tree)]) == 1
    assert capsys.readouterr().out.count("cannot start the server") == 3


def test_every_configuration_once(tree: Path, tmp_path: Path) -> None:
    target = tmp_path / "r.json"
    assert run("--configurations", "--json", str(target), str(tree / "b.slt")) == 0
    labels = [file["configuration"] for file in json.loads(target.read_text())["files"]]
    assert labels == [c.label for c in configurations.all_of_them()]
    assert len(set(labels)) == 8 and "disk, two runtimes, 1 worker" in labels


class Suicidal(Subprocess):
    """A factory that takes its whole process down."""

    def start(self) -> Server:
        os._exit(9)


def test_a_worker_that_dies_takes_only_its_file(tree: Path) -> None:
    good = Subprocess(tuple(COMMAND.split()))
    jobs = [
        pool.Job(Suicidal(), str(tree / "a.test")),
        pool.Job(good, str(tree / "b.slt")),
        pool.Job(good, str(tree / "a.test")),
    ]
    reports: list[FileReport] = []
    pool.run(jobs, Options(), workers=2, on_progress=lambda p: None, on_report=reports.append)
    assert sorted(str(report.status) for report in reports) == ["error", "ok", "ok"]
    (bad,) = [report for report in reports if report.status is Status.ERROR]
    assert bad.message == "the process that ran this file ended with status 9"


def test_progress_bar_line() -> None:
    bar = ProgressBar(4, enabled=False)
    bar.finished("a.slt", 10, 1)
    bar.progress("dir/b.slt", 5, 0)
    assert bar.line(200) == "[█████░░░░░░░░░░░░░░░]   1/4 files       15 records  1 failed  b.slt"
    assert len(bar.line(20)) == 19
