"""A mismatch as lines a person can read: what was expected against what came, a row a line.

- 2  bob        expected, missing
+ 2  robert     came, not expected
  3  carol      both
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from sqllogictest.compare import Mismatch

MAX_LINES = 60
MAX_WIDTH = 400
CONTEXT = 2


def lines_of(mismatch: Mismatch) -> list[str]:
    """The diff of `mismatch`, shortened; empty where its reason says all."""
    expected, actual = mismatch.expected, mismatch.actual
    if mismatch.names is not None and len(mismatch.names) > 1 and expected and actual:
        expected, actual = _aligned(expected, actual)
    if not expected:
        lines = [f"+ {line}" for line in actual]
    elif not actual:
        lines = [f"- {line}" for line in expected]
    else:
        lines = _diff(expected, actual)
    lines = [line if len(line) <= MAX_WIDTH else line[: MAX_WIDTH - 1] + "…" for line in lines]
    if len(lines) > MAX_LINES:
        return [*lines[:MAX_LINES], f"  ({len(lines) - MAX_LINES} more lines)"]
    return lines


def _diff(expected: Sequence[str], actual: Sequence[str]) -> list[str]:
    # SequenceMatcher is quadratic on long, dissimilar inputs; the first thousand rows tell the story.
    matcher = difflib.SequenceMatcher(None, expected[:1000], actual[:1000], autojunk=False)
    lines: list[str] = []
    for op, i1, i2, j1, j2 in matcher.get_opcodes():
        if op == "equal":
            same = [f"  {line}" for line in expected[i1:i2]]
            if len(same) > 2 * CONTEXT + 1:
                left = len(same) - 2 * CONTEXT
                same = [*same[:CONTEXT], f"  ({left} equal lines)", *same[len(same) - CONTEXT :]]
            lines += same
        else:
            lines += [f"- {line}" for line in expected[i1:i2]]
            lines += [f"+ {line}" for line in actual[j1:j2]]
    return lines


def _aligned(expected: list[str], actual: list[str]) -> tuple[list[str], list[str]]:
    """Both sides with their columns padded to common widths."""
    rows = [line.split("  ") for line in (*expected[:1000], *actual[:1000])]
    if len({len(row) for row in rows}) != 1:
        return expected, actual
    widths = [min(40, max(map(len, column))) for column in zip(*rows)]
    padded = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    cut = len(expected[:1000])
    return padded[:cut], padded[cut:]
