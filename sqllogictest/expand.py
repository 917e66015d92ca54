"""The dialect's extension: include, loop and foreach.

    include parts/*.slt          the records of every matching file, in order; paths are relative to this file
    include views.inc KIND=VIEW  the same with ${KIND} replaced in it (␠ stands for a space in a value)

    loop i 0 3                   i = 0, 1, 2
    statement ok
    INSERT INTO t VALUES (${i})

    endloop

    foreach type int bigint      type = int, bigint

`${name}` is replaced in directives, SQL and expected output alike; loops nest.

source: include as in sqllogictest-rs, loop and foreach as in DuckDB's runner.
"""

from __future__ import annotations

import glob
import os
import re

MAX_ITERATIONS = 100_000

_LOOP_LINE = re.compile(r"^(loop|foreach|endloop)\b[^\n]*(?:\n|\Z)", re.MULTILINE)


class ExpandError(Exception):
    """A directive of the extension that cannot be followed."""


def substitutions(words: list[str]) -> dict[str, str]:
    """The NAME=VALUE words of `include PATTERN NAME=VALUE...`."""
    found: dict[str, str] = {}
    for word in words[2:]:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise ExpandError(f"include takes NAME=VALUE after its path, not {word!r}")
        found[name] = value.replace("␠", " ")
    return found


def substitute(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace("${" + name + "}", value)
    return text


def included(words: list[str], file: str) -> list[str]:
    """The files that `include PATTERN` names, sorted."""
    if len(words) < 2:
        raise ExpandError("include needs a path")
    pattern = os.path.join(os.path.dirname(file), words[1])
    paths = sorted(glob.glob(pattern))
    if not paths:
        raise ExpandError(f"no file matches {pattern!r}")
    return paths


def loop_body(text: str, pos: int) -> tuple[str, int]:
    """The text from `pos` to the endloop that closes this loop, and the position behind that line."""
    depth = 1
    for found in _LOOP_LINE.finditer(text, pos):
        depth += -1 if found.group(1) == "endloop" else 1
        if depth == 0:
            return text[pos : found.start()], found.end()
    raise ExpandError("loop without endloop")


def iterations(words: list[str], body: str) -> list[str]:
    """`body` once per value of the loop variable."""
    if words[0] == "loop":
        if len(words) != 4:
            raise ExpandError("loop needs a name, a start and an end")
        try:
            start, end = int(words[2]), int(words[3])
        except ValueError:
            raise ExpandError("loop needs whole numbers") from None
        if end - start > MAX_ITERATIONS:
            raise ExpandError(f"loop of more than {MAX_ITERATIONS} rounds")
        values = [str(i) for i in range(start, end)]
    else:
        if len(words) < 3:
            raise ExpandError("foreach needs a name and values")
        values = [word.replace("␠", " ") for word in words[2:]]
    return [substitute(body, {words[1]: value}) for value in values]
