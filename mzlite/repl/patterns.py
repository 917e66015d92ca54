"""psql's name patterns: `foo*`, `s.t?`, `"Mixed".x`; a dot parts schema from name, quotes keep letters and stars literal.

Source: psql's processSQLNamePattern (src/fe_utils/string_utils.c).
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pattern:
    """Matches whole names; `schema` is `None` when the pattern names none and the search path applies."""

    schema: re.Pattern[str] | None
    name: re.Pattern[str]
    is_literal: bool


def parse_pattern(text: str) -> Pattern:
    """Up to the last two parts count: a database in front of them is taken for the current one."""
    parts = [""]
    quoted = is_wild = False
    for ch in text:
        if ch == '"':
            quoted = not quoted
        elif quoted:
            parts[-1] += re.escape(ch)
        elif ch == ".":
            parts.append("")
        elif ch in "*?":
            is_wild = True
            parts[-1] += ".*" if ch == "*" else "."
        else:
            parts[-1] += re.escape(ch.lower())
    schema = parts[-2] if len(parts) > 1 and parts[-2] else None
    return Pattern(
        None if schema is None else re.compile(schema + r"\Z"),
        re.compile((parts[-1] or ".*") + r"\Z"),
        not is_wild,
    )
