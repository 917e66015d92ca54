"""Where the shell writes: the terminal or pipe it was started with, a file, or another program's input."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

_SEVERITY = re.compile(
    r"\A(\S+:\d+: )?(ERROR:|FATAL:|PANIC:|WARNING:)"
)  # perhaps after the file and line it happened in
_RED, _YELLOW, _RESET = "\x1b[1;31m", "\x1b[1;33m", "\x1b[0m"


def is_terminal(stream: TextIO) -> bool:
    return hasattr(stream, "isatty") and stream.isatty()


def _painted(match: re.Match[str]) -> str:
    where, severity = match[1] or "", match[2]
    return f"{where}{_YELLOW if severity == 'WARNING:' else _RED}{severity}{_RESET}"


class Output:
    """Results go to `stream`, which `\\o` and `\\g` redirect for a while; messages go to `err`."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._standard = out
        self.err = err
        self.stream = out
        self._redirect: _Redirect | None = None

    @property
    def columns(self) -> int | None:
        """The terminal's width; `None` when results do not go to one."""
        if self.stream is not self._standard or not is_terminal(self.stream):
            return None
        return shutil.get_terminal_size().columns

    def write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()

    def write_bytes(self, data: bytes) -> None:
        """COPY's data, which need not be text."""
        binary = getattr(self.stream, "buffer", None)
        if binary is None:
            self.write(data.decode("utf-8", "replace"))
        else:
            self.stream.flush()
            binary.write(data)
            binary.flush()

    def message(self, text: str) -> None:
        """A line for the person, not part of any result. Errors and warnings stand out on a terminal."""
        self.stream.flush()
        if is_terminal(self.err) and "NO_COLOR" not in os.environ:
            text = _SEVERITY.sub(_painted, text)
        self.err.write(text + "\n")
        self.err.flush()

    def redirect(self, target: str | None) -> None:
        """Results go to `target`, a file's name or `|command`, until the next call; back to where they went for `None`."""
        previous, self._redirect = self._redirect, None
        self.stream = self._standard
        if previous is not None:
            previous.close()
        if target:
            self._redirect = _Redirect(target)
            self.stream = self._redirect.stream

    @contextmanager
    def to(self, target: str | None) -> Iterator[None]:
        """Like `redirect`, for a block."""
        if not target:
            yield
            return
        before, redirect = self.stream, _Redirect(target)
        self.stream = redirect.stream
        try:
            yield
        finally:
            self.stream = before
            redirect.close()


class _Redirect:
    def __init__(self, target: str) -> None:
        self._process: subprocess.Popen[str] | None = None
        if target.startswith("|"):
            self._process = subprocess.Popen(target[1:], shell=True, stdin=subprocess.PIPE, text=True, encoding="utf-8")
            assert self._process.stdin is not None, "asked for a pipe"
            self.stream: TextIO = self._process.stdin  # type: ignore[assignment]
        else:
            self.stream = Path(target).expanduser().open("w", encoding="utf-8")

    def close(self) -> None:
        with suppress(BrokenPipeError):  # the program has read what it wanted
            self.stream.close()
        if self._process is not None:
            self._process.wait()
