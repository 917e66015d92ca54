"""A progress bar, on a terminal only.

[██████████░░░░░░░░░░]  23/45 files   31,204 records  12 failed  select4.test
"""

from __future__ import annotations

import shutil
import sys
import time
from typing import TextIO

_EVERY_S = 0.1
_BAR = 20


class ProgressBar:
    """Redraws one line of `stream`; does nothing where that is not a terminal."""

    def __init__(self, files: int, stream: TextIO | None = None, *, enabled: bool | None = None) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._enabled = self._stream.isatty() if enabled is None else enabled
        self._files = files
        self._done = 0
        self._records = 0
        self._failed = 0
        self._running: dict[str, tuple[int, int]] = {}
        self._drawn_at = 0.0
        self._drawn = False

    def progress(self, path: str, records: int, failed: int) -> None:
        self._running[path] = (records, failed)
        if self._enabled and time.monotonic() - self._drawn_at >= _EVERY_S:
            self._draw()

    def finished(self, path: str, records: int, failed: int) -> None:
        self._running.pop(path, None)
        self._done += 1
        self._records += records
        self._failed += failed
        if self._enabled:
            self._draw()

    def line(self, width: int) -> str:
        """The bar as text of at most `width` characters."""
        full = _BAR * self._done // self._files if self._files else _BAR
        records = self._records + sum(r for r, _ in self._running.values())
        failed = self._failed + sum(f for _, f in self._running.values())
        current = next(iter(self._running), "")
        text = (
            f"[{'█' * full}{'░' * (_BAR - full)}] {self._done:>3}/{self._files} files {records:>8,} records"
            f"  {failed:,} failed  {current.rpartition('/')[2]}"
        )
        return text[: max(0, width - 1)]

    def _draw(self) -> None:
        width = shutil.get_terminal_size().columns
        self._stream.write("\r\x1b[K" + self.line(width))
        self._stream.flush()
        self._drawn_at = time.monotonic()
        self._drawn = True

    def clear(self) -> None:
        """Take the bar away, so that lines can be printed; the next draw brings it back."""
        if self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._drawn = False
