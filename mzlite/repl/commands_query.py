"""Commands about the query buffer: send it (`\\g`, `\\gx`, `\\watch`, `\\explain`), look at it, edit it, drop it."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
import time
from datetime import datetime
from pathlib import Path

import psycopg

from mzlite.repl.registry import Call, CommandError, command
from mzlite.repl.script import Script, wants_more

GROUP = "Query"
WATCH_DEFAULT_S = 2.0


@command("g", usage="\\g [FILE | |COMMAND]", summary="send the query; results to a file or program", group=GROUP)
def send(call: Call) -> bool:
    query = call.take_query()
    with call.shell.output.to(call.text or None):
        return call.shell.execute(query, call.script)


@command("gx", usage="\\gx [FILE | |COMMAND]", summary="as \\g, but with expanded output", group=GROUP)
def send_expanded(call: Call) -> bool:
    query = call.take_query()
    with call.shell.output.to(call.text or None):
        return call.shell.execute(query, call.script, expanded="on")


@command("gset", usage="\\gset [PREFIX]", summary="send the query; its one row becomes variables", group=GROUP)
def send_and_set(call: Call) -> None:
    table = call.shell.query(call.take_query())
    if len(table.rows) != 1:
        raise CommandError("no rows returned for \\gset" if not table.rows else "more than one row returned for \\gset")
    for column, value in zip(table.columns, table.rows[0], strict=True):
        name = (call.arg(0) or "") + column.name
        if value is None:
            call.shell.settings.variables.pop(name, None)
        else:
            call.shell.settings.variables[name] = value


@command("watch", usage="\\watch [SEC]", summary="send the query every SEC seconds until Ctrl-C", group=GROUP)
def watch(call: Call) -> bool:
    interval_s, count = _watch_options(call.args)
    query = call.take_query()
    shell = call.shell
    shown = 0
    try:
        while count is None or shown < count:
            table = shell.query(query)
            stamp = datetime.now().strftime("%a %d %b %Y %H:%M:%S")
            if table.columns:
                shell.print_table(table, title=f"{stamp} (every {interval_s:g}s)")
            else:
                shell.output.write(f"{stamp} (every {interval_s:g}s)\n")
            shown += 1
            if count is None or shown < count:
                time.sleep(interval_s)
    except KeyboardInterrupt:
        shell.output.write("\n")
    except psycopg.Error as error:
        shell.report(error, query)
        return False
    return True


def _watch_options(args: list[str]) -> tuple[float, int | None]:
    """Seconds and repetitions, from `2`, `i=2`, `c=10`."""
    interval_s, count = WATCH_DEFAULT_S, None
    for arg in args:
        name, equals, value = arg.rpartition("=")
        try:
            if name in ("c", "count") and equals:
                count = int(value)
            else:
                interval_s = float(value)
        except ValueError:
            raise CommandError(f'\\watch: incorrect interval value "{arg}"') from None
    if interval_s < 0 or (count is not None and count < 1):
        raise CommandError("\\watch: interval and count must be positive")
    return interval_s, count


@command("explain", usage="\\explain [QUERY]", summary="show the plan of the query, or of the last one", group=GROUP)
def explain(call: Call) -> bool:
    query = call.text or call.take_query()
    return call.shell.execute(f"EXPLAIN {query}", call.script, tuples_only=True, expanded="off", cell_limit=0)


@command("p", usage="\\p", summary="print the query buffer", group=GROUP)
def print_buffer(call: Call) -> None:
    text = call.script.buffer.strip() or call.shell.last_query
    call.shell.output.write(f"{text}\n" if text else "Query buffer is empty.\n")


@command("r", usage="\\r", summary="reset (clear) the query buffer", group=GROUP)
def reset_buffer(call: Call) -> None:
    call.script.buffer = ""
    call.shell.output.write("Query buffer reset (cleared).\n")


@command("e", "edit", usage="\\e [FILE]", summary="edit the query, or a file, with $EDITOR", group=GROUP)
def edit(call: Call) -> bool:
    shell = call.shell
    name = call.arg(0)
    if name is not None:
        path = Path(name).expanduser()
        _run_editor(path)
        text = path.read_text(encoding="utf-8") if path.exists() else ""
    else:
        with tempfile.TemporaryDirectory(prefix="mzlite-") as directory:
            path = Path(directory) / "query.sql"
            path.write_text((call.script.buffer.strip() or shell.last_query) + "\n", encoding="utf-8")
            before = path.stat().st_mtime_ns
            _run_editor(path)
            if path.stat().st_mtime_ns == before:
                return True  # left unchanged: the buffer stays what it was
            text = path.read_text(encoding="utf-8")
    text = text.strip()
    if text and not wants_more(text):
        call.script.buffer = ""
        shell.output.write(text + "\n")
        return shell.run_script(Script(text.splitlines(keepends=True), shell.settings.variables))
    call.script.buffer = text
    return True


def _run_editor(path: Path) -> None:
    editor = next((os.environ[name] for name in ("PSQL_EDITOR", "EDITOR", "VISUAL") if os.environ.get(name)), "vi")
    done = subprocess.run([*shlex.split(editor), str(path)], check=False)
    if done.returncode:
        raise CommandError(f'could not start editor "{editor}" (exit code {done.returncode})')
