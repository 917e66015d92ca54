"""Finds the shell command a person has named, runs it, and says what went wrong.

Importing this module fills the registry: the commands themselves are in `commands_query` (send, edit, repeat),
`commands_session` (connection, files, settings), `describe` (`\\d` and its family) and `help`.
"""

from __future__ import annotations

import psycopg

from mzlite.repl import commands_query, commands_session, describe, help
from mzlite.repl.registry import COMMANDS, Call, Command, CommandError
from mzlite.repl.script import Meta, Script
from mzlite.repl.shell import Shell

__all__ = ["COMMANDS", "dispatch"]
MODULES = (commands_query, commands_session, describe, help)


def find(name: str) -> tuple[str, str, Command] | None:
    """Name, flags and command of what follows the backslash: `dtS+` is `dt` with flags `S+`, `dtv` is `dt` with `v`."""
    if name in COMMANDS:
        return name, "", COMMANDS[name]
    for end in range(len(name) - 1, 0, -1):
        base, flags = name[:end], name[end:]
        found = COMMANDS.get(base)
        if found is not None and base[0] in "dl" and found.group == describe.GROUP:
            letters = set("S+") | (set(describe.LIST_LETTERS) if base[1:] in describe.LIST_LETTERS else set())
            if set(flags) <= letters:
                return base, flags, found
    return None


def dispatch(shell: Shell, meta: Meta, script: Script) -> bool:
    """Whether the command did what it was asked; Quit passes through."""
    found = find(meta.name)
    if found is None:
        shell.output.message(f"invalid command \\{meta.name}\nTry \\? for help.")
        return False
    name, flags, command = found
    try:
        return command.handler(Call(shell, script, name, flags, meta.args)) is not False
    except CommandError as error:
        shell.output.message(str(error))
    except psycopg.Error as error:
        shell.report(error)
    except OSError as error:
        reason = error.strerror or str(error)
        shell.output.message(f"{error.filename}: {reason}" if error.filename else f"\\{name}: {reason}")
    return False
