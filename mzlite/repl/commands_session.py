"""Commands about the session: connection, files, formatting, variables."""

from __future__ import annotations

import os
import subprocess
from dataclasses import fields
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from mzlite.repl.copying import parse_copy, read_source
from mzlite.repl.interrupts import cancel_on_interrupt
from mzlite.repl.messages import connection_error
from mzlite.repl.registry import Call, CommandError, Quit, command
from mzlite.repl.script import Script
from mzlite.repl.settings import FORMATS, Settings, parse_bool

GENERAL, FILES, FORMATTING, CONNECTION = "General", "Input and output", "Formatting", "Connection"
MAX_INCLUDE_DEPTH = 32


@command("q", "quit", "exit", usage="\\q", summary="quit", group=GENERAL)
def leave(_call: Call) -> None:
    raise Quit


@command("timing", usage="\\timing [on|off]", summary="show how long statements take", group=GENERAL)
def timing(call: Call) -> None:
    settings = call.shell.settings
    settings.timing = _bool_argument(call, not settings.timing)
    call.shell.output.write(f"Timing is {'on' if settings.timing else 'off'}.\n")


@command("!", usage="\\! [COMMAND]", summary="run a command of the operating system, or a shell", group=GENERAL)
def system(call: Call) -> bool:
    call.shell.output.stream.flush()
    line = call.text or os.environ.get("SHELL", "/bin/sh")
    return subprocess.run(line, shell=True, check=False).returncode == 0


@command("cd", usage="\\cd [DIR]", summary="change the working directory", group=GENERAL)
def change_directory(call: Call) -> None:
    os.chdir(Path(call.arg(0) or "~").expanduser())


# Input and output


@command("i", "include", usage="\\i FILE", summary="run the statements and commands in a file", group=FILES)
def include(call: Call) -> bool:
    return _include(call, relative=False)


@command("ir", usage="\\ir FILE", summary="as \\i, but relative to the file that says it", group=FILES)
def include_relative(call: Call) -> bool:
    return _include(call, relative=True)


def _include(call: Call, *, relative: bool) -> bool:
    name = _required(call)
    shell = call.shell
    path = Path(name).expanduser()
    if relative and shell.include_stack:
        path = shell.include_stack[-1][0].parent / path
    if len(shell.include_stack) >= MAX_INCLUDE_DEPTH:
        raise CommandError(f"\\{call.name}: files include each other more than {MAX_INCLUDE_DEPTH} deep")
    with path.open(encoding="utf-8") as file:
        script = Script(file, shell.settings.variables)
        shell.include_stack.append((path, script))
        try:
            ok = shell.run_script(script, is_file=True)
            if script.buffer.strip():
                ok = shell.execute(script.buffer.strip(), script) and ok
            return ok
        finally:
            shell.include_stack.pop()


@command("o", "out", usage="\\o [FILE | |COMMAND]", summary="send all results to a file or program", group=FILES)
def redirect(call: Call) -> None:
    call.shell.output.redirect(call.text if call.text.startswith("|") else call.arg(0))


@command("echo", usage="\\echo [-n] [TEXT]", summary="write text to standard output", group=FILES)
def echo(call: Call) -> None:
    args = call.args
    end = "\n"
    if args[:1] == ["-n"]:
        args, end = args[1:], ""
    sys_out = call.shell.output
    sys_out.write(" ".join(_expand(call, arg) for arg in args) + end)


@command("warn", usage="\\warn [TEXT]", summary="write text to standard error", group=FILES)
def warn(call: Call) -> None:
    call.shell.output.message(" ".join(_expand(call, arg) for arg in call.args))


def _expand(call: Call, arg: str) -> str:
    """`:name` as an argument."""
    return call.shell.settings.variables.get(arg[1:], arg) if arg.startswith(":") else arg


@command("copy", usage="\\copy ...", summary="COPY between a table and a file here", group=FILES)
def copy(call: Call) -> None:
    spec = parse_copy(call.text.rstrip(" ;"))
    if spec is None:
        raise CommandError(
            "\\copy: arguments required: TABLE | (QUERY) { from | to } { 'file' | program 'command' | stdin }"
        )
    shell = call.shell
    shell.require_connection()
    if spec.is_import:
        lines = shell.copy_lines(call.script) if spec.is_standard else None
        source = read_source(spec) if lines is None else (line.encode() for line in lines)
        with cancel_on_interrupt(shell.client):
            tag = shell.client.copy_in(spec.sql, source)
    elif spec.is_standard:
        with cancel_on_interrupt(shell.client):
            tag = shell.client.copy_out(spec.sql, shell.output.write_bytes)
    else:
        target = f"|{spec.target}" if spec.is_program else spec.target
        with shell.output.to(target), cancel_on_interrupt(shell.client):
            tag = shell.client.copy_out(spec.sql, shell.output.write_bytes)
    if tag and not (spec.is_standard and not spec.is_import):
        shell.print_tag(tag)


# Formatting


@command("x", usage="\\x [on|off|auto]", summary="one line a value, or where a row is too wide", group=FORMATTING)
def expanded(call: Call) -> None:
    settings = call.shell.settings
    word = (call.arg(0) or "").lower()
    if word == "auto":
        settings.expanded = "auto"
    else:
        settings.expanded = "on" if _bool_argument(call, settings.expanded != "on") else "off"
    said = {"on": "is on", "off": "is off", "auto": "is used automatically"}
    call.shell.output.write(f"Expanded display {said[settings.expanded]}.\n")


@command("a", usage="\\a", summary="toggle between aligned and unaligned output", group=FORMATTING)
def align(call: Call) -> None:
    settings = call.shell.settings
    settings.format = "unaligned" if settings.format == "aligned" else "aligned"
    call.shell.output.write(f"Output format is {settings.format}.\n")


@command("t", usage="\\t [on|off]", summary="rows only, without names and count", group=FORMATTING)
def tuples_only(call: Call) -> None:
    settings = call.shell.settings
    settings.tuples_only = _bool_argument(call, not settings.tuples_only)
    call.shell.output.write(f"Tuples only is {'on' if settings.tuples_only else 'off'}.\n")


@command(
    "pset", usage="\\pset [NAME [VALUE]]", summary="set output options: null, format, row_limit, ...", group=FORMATTING
)
def pset(call: Call) -> None:
    settings = call.shell.settings
    names = [each.name for each in fields(Settings) if each.name not in ("timing", "quiet", "variables")]
    name, value = call.arg(0), call.arg(1)
    if name is None:
        width = max(map(len, names))
        call.shell.output.write("".join(f"{each:<{width}} {_show(getattr(settings, each))}\n" for each in names))
        return
    if name not in names:
        raise CommandError(f"\\pset: unknown option: {name}")
    current = getattr(settings, name)
    if name == "null":
        settings.null = value or ""
    elif value is None and not isinstance(current, bool):
        pass  # shows it
    elif isinstance(current, bool):
        setattr(settings, name, _bool_argument(call, not current, at=1))
    elif isinstance(current, int):
        if not (value or "").isdigit():
            raise CommandError(f"\\pset: {name} must be a number, 0 for no limit")
        setattr(settings, name, int(value or 0))
    else:
        allowed = {"expanded": ("on", "off", "auto"), "format": FORMATS}.get(name)
        if allowed is not None and value not in allowed:
            raise CommandError(f"\\pset: allowed values of {name} are {', '.join(allowed)}")
        setattr(settings, name, value)
    call.shell.output.write(f"{_PSET_SAYS.get(name, name)} is {_show(getattr(settings, name))}.\n")


_PSET_SAYS = {"null": "Null display", "format": "Output format", "expanded": "Expanded display"}


def _show(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value) if isinstance(value, int) or value in (*FORMATS, "on", "off", "auto") else f'"{value}"'


@command(
    "set", usage="\\set [NAME [VALUE]]", summary="set a variable, used as :NAME, or list them all", group=FORMATTING
)
def set_variable(call: Call) -> None:
    variables = call.shell.settings.variables
    args = call.args
    if not args:
        call.shell.output.write("".join(f"{name} = '{value}'\n" for name, value in sorted(variables.items())))
    else:
        variables[args[0]] = "".join(_expand(call, arg) for arg in args[1:])


@command("unset", usage="\\unset NAME", summary="forget a variable", group=FORMATTING)
def unset_variable(call: Call) -> None:
    call.shell.settings.variables.pop(_required(call), None)


# Connection


@command(
    "c", "connect", usage="\\c [DB|URL [USER [HOST [PORT]]]]", summary="connect to another database", group=CONNECTION
)
def connect(call: Call) -> None:
    shell = call.shell
    args = call.args
    if args and ("=" in args[0] or "://" in args[0]):
        dsn = args[0]
    else:
        given = dict(zip(("dbname", "user", "host", "port"), args))
        changed = {name: value for name, value in given.items() if value != "-"}
        dsn = make_conninfo(shell.client.dsn, **changed)
    before = shell.client.dsn
    shell.client.dsn = dsn
    try:
        shell.connect()
    except psycopg.Error as error:
        shell.output.message(connection_error(error))
        shell.client.dsn = before
        shell.connect()
        raise CommandError("Previous connection kept.") from None
    shell.names_changed()
    info = shell.client.conn.info
    shell.output.write(f'You are now connected to database "{info.dbname}" as user "{info.user}".\n')


@command("conninfo", usage="\\conninfo", summary="what the shell is connected to", group=CONNECTION)
def conninfo(call: Call) -> None:
    shell = call.shell
    if not shell.client.is_connected:
        raise CommandError("You are currently not connected to a database.")
    info = shell.client.conn.info
    where = f'via socket in "{info.host}"' if info.host.startswith("/") else f'on host "{info.host}"'
    text = f'You are connected to database "{info.dbname}" as user "{info.user}" {where} at port "{info.port}".\n'
    version = shell.client.parameter("mz_version") or shell.client.parameter("server_version")
    cluster = shell.client.parameter("cluster")
    text += f"Server version {version}" + (f', cluster "{cluster}".\n' if cluster else ".\n")
    if "password" in conninfo_to_dict(shell.client.dsn):
        text += "The connection uses a password.\n"
    shell.output.write(text)


@command("encoding", usage="\\encoding", summary="show the client encoding", group=CONNECTION)
def encoding(call: Call) -> None:
    call.shell.output.write((call.shell.client.parameter("client_encoding") or "UTF8") + "\n")


def _bool_argument(call: Call, default: bool, at: int = 0) -> bool:
    text = call.arg(at)
    if text is None:
        return default
    value = parse_bool(text)
    if value is None:
        raise CommandError(f'unrecognized value "{text}" for "\\{call.name}": Boolean expected')
    return value


def _required(call: Call) -> str:
    value = call.arg(0)
    if value is None:
        raise CommandError(f"\\{call.name}: missing required argument")
    return value
