"""The shell without a terminal: `mzlite -c SQL` and statements from a pipe, with psql's output and exit codes.

0   everything succeeded          2    no connection
1   a statement failed            130  interrupted
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TextIO

import psycopg

from mzlite.repl.messages import connection_error
from mzlite.repl.registry import Quit
from mzlite.repl.script import Script
from mzlite.repl.settings import Settings
from mzlite.repl.shell import Shell

OK, FAILED, NO_CONNECTION, INTERRUPTED = 0, 1, 2, 130


def run_statements(
    dsn: str,
    sql_texts: list[str],
    *,
    out: TextIO,
    err: TextIO,
    expanded: bool = False,
    settings: Settings | None = None,
) -> int:
    """Runs each text as `-c` does: its statements one by one, each its own transaction, up to the first that fails.

    A last statement needs no semicolon. Texts may hold shell commands (`\\d t`).
    """
    shell = _shell(dsn, out, err, expanded, settings)

    def run() -> bool:
        for text in sql_texts:
            script = Script(text.splitlines(keepends=True), shell.settings.variables)
            if not (shell.run_script(script, stop_on_error=True) and _run_rest(shell, script)):
                return False
        return True

    return _guarded(shell, run)


def run_stream(
    dsn: str,
    lines: Iterable[str],
    *,
    out: TextIO,
    err: TextIO,
    expanded: bool = False,
    settings: Settings | None = None,
    stop_on_error: bool = False,
) -> int:
    """Runs what comes through a pipe, each statement as soon as it is complete.

    As in psql a failed statement does not end it, unless `stop_on_error` or `\\set ON_ERROR_STOP on`; unlike psql's, the
    exit code then tells that something failed.
    """
    shell = _shell(dsn, out, err, expanded, settings)

    def run() -> bool:
        script = Script(lines, shell.settings.variables)
        ok = shell.run_script(script, stop_on_error=stop_on_error)
        if not ok and (stop_on_error or shell.settings.on_error_stop):
            return False
        return _run_rest(shell, script) and ok

    return _guarded(shell, run)


def _shell(dsn: str, out: TextIO, err: TextIO, expanded: bool, settings: Settings | None) -> Shell:
    chosen = settings or Settings()
    if expanded:
        chosen.expanded = "on"
    return Shell(dsn, out=out, err=err, settings=chosen)


def _run_rest(shell: Shell, script: Script) -> bool:
    """What is left in the query buffer at the end is a statement without its semicolon."""
    text, script.buffer = script.buffer.strip(), ""
    return not text or shell.execute(text, script)


def _guarded(shell: Shell, run: Callable[[], bool]) -> int:
    try:
        shell.connect()
    except psycopg.Error as error:
        shell.output.message(f"mzlite: error: {connection_error(error)}")
        return NO_CONNECTION
    try:
        return OK if run() else FAILED
    except Quit:
        return OK
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _silence(shell.output.stream)  # whoever read our output has seen enough
        return OK
    finally:
        shell.output.redirect(None)
        shell.client.close()


def _silence(stream: TextIO) -> None:
    """Points the broken pipe elsewhere, or the interpreter complains when it flushes at exit."""
    try:
        fd = stream.fileno()
    except (OSError, ValueError):
        return
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, fd)
    os.close(null)
