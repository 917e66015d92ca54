"""The table of shell commands: what `\\name` calls, and what `\\?` says about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mzlite.repl.script import Script, split_args

if TYPE_CHECKING:
    from mzlite.repl.shell import Shell


class CommandError(Exception):
    """A shell command could not do what it was asked; the text says why."""


class Quit(Exception):
    """`\\q`."""


@dataclass(frozen=True, slots=True)
class Call:
    """One use of a command: `\\dt+ foo` has name `dt`, flags `+`, text `foo`."""

    shell: Shell
    script: Script
    name: str
    flags: str
    text: str

    @property
    def args(self) -> list[str]:
        return split_args(self.text)

    def arg(self, i: int) -> str | None:
        args = self.args
        return args[i] if i < len(args) else None

    def take_query(self) -> str:
        """The query buffer, emptied; the last query where it is empty. What `\\g` and its family send."""
        text = self.script.buffer.strip()
        self.script.buffer = ""
        query = text or self.shell.last_query
        if not query:
            raise CommandError(f"\\{self.name}: there is no query yet")
        return query


Handler = Callable[[Call], bool | None]


@dataclass(frozen=True, slots=True)
class Command:
    """`usage` is what `\\?` lists: the command with its arguments; empty for a synonym."""

    handler: Handler
    usage: str
    summary: str
    group: str


COMMANDS: dict[str, Command] = {}


def command(*names: str, usage: str, summary: str, group: str) -> Callable[[Handler], Handler]:
    """Registers a handler under its names; it returns False when it failed and has said so itself."""

    def register(handler: Handler) -> Handler:
        for i, name in enumerate(names):
            assert name not in COMMANDS, f"two commands named {name}"
            COMMANDS[name] = Command(handler, usage if i == 0 else "", summary, group)
        return handler

    return register
