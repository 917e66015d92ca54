"""Errors and notices, worded and laid out as psql does.

    ERROR:  column "nme" does not exist
    LINE 1: select nme from t;
                   ^
    HINT:  Perhaps you meant to reference the column "t.name".

Source: libpq's pqBuildErrorMessage3 and reportErrorPosition (fe-protocol3.c).
"""

from __future__ import annotations

import psycopg

from mzlite.repl.table import width_of

DISPLAY_COLUMNS = 60
MIN_RIGHT_CUT = 10


def format_error(error: psycopg.Error, sql: str = "", verbosity: str = "default") -> str:
    """The lines psql would print for `error`, without a final newline; `sql` is what was sent."""
    if error.diag.message_primary is None:
        text = str(error).strip()
        return text if text.startswith(("ERROR:", "FATAL:")) else f"ERROR:  {text}"
    return format_diagnostic(error.diag, sql, verbosity)


def connection_error(error: psycopg.Error) -> str:
    """What libpq says, without the driver's account of what it was doing."""
    text = str(error).strip()
    for prefix in ("connection failed: ", "consuming input failed: ", "sending query failed: "):
        text = text.removeprefix(prefix)
    return text


def format_diagnostic(diag: psycopg.errors.Diagnostic, sql: str = "", verbosity: str = "default") -> str:
    """An error or notice. `verbosity` is psql's: default, terse, verbose or sqlstate."""
    severity = diag.severity or "ERROR"
    if verbosity == "sqlstate" and diag.sqlstate:
        return f"{severity}:  {diag.sqlstate}"
    code = f"{diag.sqlstate}: " if verbosity == "verbose" and diag.sqlstate else ""
    lines = [f"{severity}:  {code}{diag.message_primary or ''}"]
    position = _number(diag.statement_position)
    if verbosity == "terse":
        return lines[0] + (f" at character {position}" if position else "")
    if position and sql:
        lines += point_at(sql, position)
    elif diag.internal_query and _number(diag.internal_position):
        lines += point_at(diag.internal_query, _number(diag.internal_position))
    for label, text in (
        ("DETAIL", diag.message_detail),
        ("HINT", diag.message_hint),
        ("QUERY", diag.internal_query),
        ("CONTEXT", diag.context if severity not in ("NOTICE", "INFO") or verbosity == "verbose" else None),
    ):
        if text:
            lines.append(f"{label}:  {text}")
    if verbosity == "verbose" and diag.source_file:
        lines.append(f"LOCATION:  {diag.source_function}, {diag.source_file}:{diag.source_line}")
    return "\n".join(lines)


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isdigit() else 0


def point_at(sql: str, position: int) -> list[str]:
    """The line of `sql` that holds its `position`-th character (from 1), and a caret under that character."""
    loc = min(position - 1, len(sql))
    text = sql.replace("\r", " ").replace("\t", " ")  # one for one: positions count characters of what was sent
    begin = text.rfind("\n", 0, loc) + 1
    end = text.find("\n", loc)
    end = len(text) if end < 0 else end
    line_number = text.count("\n", 0, loc) + 1

    def width(start: int, stop: int) -> int:
        return width_of(text[start:stop])

    cut_left = cut_right = False
    if width(begin, end) > DISPLAY_COLUMNS:
        if width(begin, loc) + MIN_RIGHT_CUT <= DISPLAY_COLUMNS:
            while width(begin, end) > DISPLAY_COLUMNS:
                end -= 1
            cut_right = True
        else:
            while width(loc, end) > MIN_RIGHT_CUT:
                end -= 1
                cut_right = True
            while width(begin, end) > DISPLAY_COLUMNS:
                begin += 1
                cut_left = True
    label = f"LINE {line_number}: " + ("..." if cut_left else "")
    shown = label + text[begin:end] + ("..." if cut_right else "")
    return [shown, " " * (len(label) + width(begin, loc)) + "^"]
