"""The table that follows the views: drawn in place on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from typing import Any

from mzlite.demo.views import View

ROWS = 10


def render(title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], width: int) -> list[str]:
    cells = [[("" if v is None else str(v))[:28] for v in row] for row in rows]
    widths = [max([len(c), *(len(r[i]) for r in cells)]) for i, c in enumerate(columns)]
    numeric = [
        bool(rows) and all(isinstance(r[i], int | float) or r[i] is None for r in rows) for i in range(len(columns))
    ]

    def line(values: Sequence[str]) -> str:
        return "  ".join(v.rjust(w) if n else v.ljust(w) for v, w, n in zip(values, widths, numeric))[: width - 1]

    return [title, line(columns), line(["-" * w for w in widths]), *(line(r) for r in cells)]


class Screen:
    """live: standard output is a terminal and nobody asked for --headless."""

    def __init__(self, live: bool) -> None:
        self.live = live
        self._height = 0

    def draw(self, status: str, view: View, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        if not self.live:
            return
        width = shutil.get_terminal_size().columns
        lines = [status[: width - 1], "", *render(view.title, columns, rows[:ROWS], width)]
        out = f"\x1b[{self._height}F" if self._height else ""
        out += "".join(f"\x1b[2K{line}\n" for line in lines)
        out += "\x1b[2K\n" * max(0, self._height - len(lines))
        self._height = max(self._height, len(lines))
        sys.stdout.write(out)
        sys.stdout.flush()
