"""Which servers the files run on: one, or with `--configurations` every combination that must not matter.

An answer may not depend on whether data is in memory or on disk, whether a replica has one runtime or two, or on the
number of workers; so the same file runs in all eight.
"""

from __future__ import annotations

import itertools

from sqllogictest.clean import Settings
from sqllogictest.subprocess_server import Subprocess, default_command


def default(command: tuple[str, ...] | None = None) -> Subprocess:
    """In memory, the server's own number of runtimes, two workers."""
    return Subprocess(command or default_command())


def all_of_them(command: tuple[str, ...] | None = None) -> list[Subprocess]:
    """{memory, disk} x {one, two runtimes} x {1, 2 workers}."""
    return [
        Subprocess(
            command or default_command(),
            disk=disk,
            settings=Settings(workers=workers, interactive=interactive),
            label=f"{'disk' if disk else 'memory'}, {'two runtimes' if interactive else 'one runtime'}, "
            f"{workers} worker{'' if workers == 1 else 's'}",
        )
        for disk, interactive, workers in itertools.product((False, True), (False, True), (1, 2))
    ]
