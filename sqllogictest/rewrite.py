"""`--rewrite`: put what the server answered where the file expects something else.

Only outputs change: rows, digests, error patterns, the lines of `simple`, the N of `statement count`. SQL, comments and
layout stay. A record that failed in another way (an error where rows were expected, success where an error was) is
left and reported: a person has to decide what it means. Records out of include and loop have no text of their own to
change.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass

from sqllogictest.compare import Mismatch, digest
from sqllogictest.parser import expected_values, read_text
from sqllogictest.records import ExpectedError, Hashed, Mode, Query, Record, Simple, Statement


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace text[start:end] by `text`."""

    start: int
    end: int
    text: str


def edit_for(record: Record, mismatch: Mismatch) -> Edit | None:
    """The edit that makes `record` expect what came, or None where there is none to make."""
    match record:
        case Query(span=(start, end)) if mismatch.error is None and mismatch.rows is not None:
            text = _output(record, mismatch)
            return Edit(start, end, text) if _reads_back(record, text, mismatch.rows) else None
        case ExpectedError(span=(start, end)) if mismatch.error is not None:
            return Edit(start, end, escape(mismatch.error.message.split("\n")[0]))
        case Simple(span=(start, end), multiline=False):
            return Edit(start, end, "\n".join(mismatch.actual))
        case Simple(span=(start, end), multiline=True) if mismatch.actual[1:] == record.expected[1:]:
            return Edit(start, end, mismatch.actual[0])
        case Statement(span=(start, end)) if mismatch.error is None:
            return Edit(start, end, mismatch.actual[0])
    return None


def _reads_back(query: Query, text: str, rows: Sequence[Sequence[str]]) -> bool:
    """Whether `text` stands for the rows: a tab, for one, cannot be written where columns are split on white space."""
    if query.multiline:
        return "\nEOF\n" not in f"\n{text}\n"
    if text.startswith("\n") or "\n\n" in text:
        return False
    body = text.partition("\n")[2] if query.names is not None else text
    if isinstance(query.expected, Hashed):
        return True
    flat = [cell for row in rows for cell in row]
    try:
        return expected_values(body, len(query.types), query.sort, query.mode) == flat
    except ValueError:
        return False


def _output(query: Query, mismatch: Mismatch) -> str:
    rows = mismatch.rows or []
    if query.multiline:
        return "\n".join(cell for row in rows for cell in row)
    lines: list[str] = []
    if query.names is not None:
        # Names are checked only when there are rows; without any the file's own stay.
        names = mismatch.names if mismatch.names is not None else query.names
        lines.append((" " if query.mode is Mode.STANDARD else "  ").join(n.replace(" ", "␠") for n in names))
    flat = [cell for row in rows for cell in row]
    if isinstance(query.expected, Hashed):
        lines.append(f"{len(flat)} values hashing to {digest(flat)}")
    elif query.mode is Mode.STANDARD:
        lines += [cell.replace("\n", "⏎") for cell in flat]
    else:
        width = max(1, len(query.types))
        lines += [cockroach_line(flat[i : i + width]) for i in range(0, len(flat), width)]
    return "\n".join(lines)


def cockroach_line(row: Sequence[str]) -> str:
    """A row as that mode reads it back: two spaces between columns, white space in a value made visible."""
    if len(row) == 1:
        cell = row[0].replace("\n", "⏎")
        inner = cell.strip()
        if inner == cell:
            return cell
        left = len(cell) - len(cell.lstrip())
        return "␠" * left + inner + "␠" * (len(cell) - left - len(inner))
    return "  ".join(cell.replace("\n", "⏎").replace(" ", "␠") for cell in row)


def escape(message: str) -> str:
    """A pattern that matches `message`, on one line; a # would start a comment."""
    return re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", message).replace("#", ".")


def apply(path: str, edits: Sequence[Edit]) -> int:
    """Make `edits` (in file order, not overlapping) in the file at `path`, in one step; how many were made."""
    text = read_text(path)
    with open(path, "rb") as f:
        crlf = b"\r\n" in f.read()
    parts: list[str] = []
    at = 0
    for edit in edits:
        assert at <= edit.start <= edit.end, (at, edit)
        parts.append(text[at : edit.start])
        if edit.text and text.endswith("\n----", 0, edit.start):
            parts.append("\n")  # there was no output before
        parts.append(edit.text)
        at = edit.end
        if not edit.text and text[at : at + 2] == "\n\n":
            at += 1  # no output leaves ---- and one blank line
    parts.append(text[at:])
    new = "".join(parts)
    if new == text:
        return 0
    if crlf:
        new = new.replace("\n", "\r\n")
    folder = os.path.dirname(os.path.abspath(path))
    descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=".sqllogictest-")
    try:
        with open(descriptor, "w", encoding="utf-8", newline="") as f:
            f.write(new)
        os.chmod(temporary, os.stat(path).st_mode & 0o777)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    return len(edits)
