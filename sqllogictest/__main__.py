"""The command line: `python -m sqllogictest [options] PATH...`, also reached as `mzlite slt`.

Exit status: 0 every file is ok, 1 something failed, 2 the arguments make no sense, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Sequence

from sqllogictest import configurations, output, pool
from sqllogictest.parser import OUR_ENGINE
from sqllogictest.progress import ProgressBar
from sqllogictest.report import FileReport, RunReport
from sqllogictest.runner import Options, Scoring
from sqllogictest.server import Against, ServerFactory, ServerFailure

EXTENSIONS = (".slt", ".test")


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        prog="sqllogictest",
        description="Run sqllogictest files against a server that speaks the PostgreSQL protocol.",
        epilog="Without --against, every job starts `mzlite serve` for itself.",
    )
    p.add_argument(
        "paths", nargs="+", metavar="PATH", help=f"files, or directories to walk for {', '.join(EXTENSIONS)}"
    )
    where = p.add_argument_group("server")
    where.add_argument("--against", metavar="DSN", help="a running server: PostgreSQL gets a scratch database per job")
    where.add_argument("--system-dsn", metavar="DSN", help="with --against: where mz_system connects, if elsewhere")
    where.add_argument("--server-command", metavar="CMD", help="start this instead of `mzlite serve`")
    where.add_argument("--configurations", action="store_true", help="memory/disk x one/two runtimes x 1/2 workers")
    what = p.add_argument_group("what runs")
    what.add_argument("--jobs", "-j", type=_positive, default=1, metavar="N", help="files at once, a server each")
    what.add_argument("--shard", type=_shard, metavar="I/N", help="only every Nth file, from the Ith (1 is the first)")
    what.add_argument("--timeout", type=float, default=300.0, metavar="SECONDS", help="time limit of a file (300)")
    what.add_argument("--engine", default=OUR_ENGINE, help=f"the name skipif and onlyif know us by ({OUR_ENGINE})")
    what.add_argument("--auto-index-selects", action="store_true", help="every SELECT again through an indexed view")
    how = p.add_argument_group("scoring")
    how.add_argument(
        "--score",
        choices=[str(s) for s in Scoring],
        default=str(Scoring.STOP),
        help="at a failed statement: stop the file, the rest counts as not run (the default), or continue",
    )
    how.add_argument("--fail-fast", action="store_true", help="stop at the first failure of any kind")
    how.add_argument("--check-pgcode", action="store_true", help="check the SQLSTATE of `error pgcode XXXXX` too")
    how.add_argument("--rewrite", action="store_true", help="put what the server answers into the files, in place")
    out = p.add_argument_group("output")
    out.add_argument("--junit", metavar="FILE", help="write a JUnit report")
    out.add_argument("--json", metavar="FILE", help="write counts by file and kind, and the failures")
    out.add_argument("--failures", type=int, default=5, metavar="N", help="failures to print per file (5)")
    out.add_argument("--quiet", "-q", action="store_true", help="only the files that are not ok, and the summary")
    out.add_argument("--no-progress", action="store_true", help="no progress bar")
    return p


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def _shard(text: str) -> tuple[int, int]:
    index, slash, count = text.partition("/")
    if not slash or not index.isdigit() or not count.isdigit() or not 1 <= int(index) <= int(count):
        raise argparse.ArgumentTypeError("must be I/N with 1 <= I <= N")
    return int(index), int(count)


def find_files(paths: Sequence[str]) -> list[str]:
    """The files named, and those below the directories named, each once, in a stable order. Raises `OSError`."""
    found: dict[str, None] = {}
    for path in paths:
        if os.path.isdir(path):
            below = []
            for folder, folders, names in os.walk(path):
                folders.sort()
                below += [os.path.join(folder, name) for name in names if name.endswith(EXTENSIONS)]
            found.update(dict.fromkeys(sorted(below)))
        elif os.path.exists(path):
            found[path] = None
        else:
            raise FileNotFoundError(f"no such file or directory: {path}")
    return list(found)


def factories(args: argparse.Namespace) -> list[ServerFactory]:
    command = tuple(shlex.split(args.server_command)) if args.server_command else None
    if args.against:
        return [Against(args.against, args.system_dsn)]
    if args.configurations:
        return [*configurations.all_of_them(command)]
    return [configurations.default(command)]


def main(argv: Sequence[str] | None = None) -> int:
    p = parser()
    args = p.parse_args(argv)
    if args.against and (args.configurations or args.server_command):
        p.error("--against excludes --configurations and --server-command")
    if args.rewrite and (args.configurations or args.auto_index_selects):
        p.error("--rewrite writes what one plain run answers: leave out --configurations and --auto-index-selects")
    try:
        files = find_files(args.paths)
    except OSError as e:
        p.error(str(e))
    if args.shard:
        index, count = args.shard
        files = files[index - 1 :: count]
    options = Options(
        scoring=Scoring.CONTINUE if args.rewrite else Scoring(args.score),
        timeout_s=args.timeout,
        fail_fast=args.fail_fast,
        auto_index_selects=args.auto_index_selects,
        check_pgcode=args.check_pgcode,
        rewrite=args.rewrite,
        engine=args.engine,
    )
    if args.against and args.jobs > 1 and _is_shared(args):
        p.error("--against a server of Materialize's dialect runs one file at a time: each drops everything in it")
    jobs = [pool.Job(factory, path) for factory in factories(args) for path in files]
    try:
        return _run(jobs, options, args)
    except BrokenPipeError:  # whoever reads our output has seen enough; the servers are stopped by now
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _is_shared(args: argparse.Namespace) -> bool:
    """Whether the server has one database for all jobs. One that cannot be reached is reported file by file."""
    try:
        server = Against(args.against, args.system_dsn).start()
    except ServerFailure:
        return False
    server.stop()
    return server.is_materialize


def _run(jobs: Sequence[pool.Job], options: Options, args: argparse.Namespace) -> int:
    run = RunReport()
    bar = ProgressBar(len(jobs), enabled=False if args.no_progress else None)

    def on_progress(progress: pool.Progress) -> None:
        bar.progress(progress.path, progress.done, progress.failed)

    def on_report(report: FileReport) -> None:
        run.files.append(report)
        if not (args.quiet and report.ok):
            bar.clear()
            for line in output.file_lines(report, args.failures):
                print(line)
            sys.stdout.flush()
        bar.finished(report.path, report.passed + report.failed, report.failed)

    started = time.perf_counter()
    interrupted = False
    if threading.current_thread() is threading.main_thread():
        # So that servers are stopped and scratch databases dropped when a job runner ends us.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        pool.run(jobs, options, workers=min(args.jobs, len(jobs)), on_progress=on_progress, on_report=on_report)
    except KeyboardInterrupt:
        interrupted = True
    bar.clear()
    run.seconds = time.perf_counter() - started
    order = {(job.factory.label, job.path): i for i, job in enumerate(jobs)}
    run.files.sort(key=lambda file: order[file.label, file.path])
    for line in output.summary_lines(run):
        print(line)
    if args.json:
        output.write_json(run, args.json)
    if args.junit:
        output.write_junit(run, args.junit)
    if interrupted:
        return 130
    return 0 if run.ok else 1


if __name__ == "__main__":
    sys.exit(main())
