"""COPY: which statements move data through the connection, and `\\copy`, which reads and writes files here.

    \\copy t (a, b) from 'file.csv' with (format csv)     ->  COPY t (a, b) FROM STDIN with (format csv)
    \\copy (select 1) to program 'gzip > x.gz'            ->  COPY (select 1) TO STDOUT
    \\copy t from stdin | pstdin, to stdout | pstdout

Source: psql's parse_slash_copy (src/bin/psql/copy.c).
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mzlite.repl.tokens import Kind, significant

CHUNK_BYTES = 1 << 16


def direction_of(sql: str) -> str | None:
    """`in` for COPY ... FROM STDIN, `out` for COPY ... TO STDOUT, `None` for a COPY the server does by itself."""
    depth = 0
    previous = ""
    for token in significant(sql):
        depth += (token.kind is Kind.OPEN) - (token.kind is Kind.CLOSE)
        if depth == 0 and previous == "FROM" and token.word == "STDIN":
            return "in"
        if depth == 0 and previous == "TO" and token.word == "STDOUT":
            return "out"
        previous = token.word
    return None


@dataclass(frozen=True, slots=True)
class CopySpec:
    """A `\\copy`: the COPY to send, and the file, program or standard stream on this side."""

    sql: str
    is_import: bool
    target: str
    is_program: bool
    is_standard: bool


def parse_copy(text: str) -> CopySpec | None:
    """The arguments of `\\copy`, or `None` when they are not of its form."""
    tokens = significant(text)
    depth = 0
    for i, token in enumerate(tokens):
        depth += (token.kind is Kind.OPEN) - (token.kind is Kind.CLOSE)
        if depth or i == 0 or token.word not in ("FROM", "TO") or i + 1 == len(tokens):
            continue
        is_program = tokens[i + 1].word == "PROGRAM" and i + 2 < len(tokens)
        rest = text[token.end :].lstrip()
        if is_program:
            rest = rest[len("PROGRAM") :].lstrip()
        target, options, quoted = _take_target(rest)
        is_import = token.word == "FROM"
        is_standard = not quoted and target.lower() in ("stdin", "stdout", "pstdin", "pstdout")
        stream = "FROM STDIN" if is_import else "TO STDOUT"
        sql = f"COPY {text[: token.start].rstrip()} {stream} {options}".rstrip(" ;")
        return CopySpec(sql, is_import, target, is_program, is_standard and not is_program)
    return None


def _take_target(rest: str) -> tuple[str, str, bool]:
    """The file name at the start of `rest`, what follows it, and whether it was quoted."""
    if not rest.startswith("'"):
        word, _, options = rest.partition(" ")
        return word.rstrip(";") if not options else word, options, False
    name = ""
    i = 1
    while i < len(rest):
        if rest.startswith("''", i):
            name, i = name + "'", i + 2
        elif rest[i] == "'":
            break
        else:
            name, i = name + rest[i], i + 1
    return name, rest[i + 1 :].strip(), True


def read_source(spec: CopySpec) -> Iterator[bytes]:
    """The bytes of the file or program, in chunks. Raises OSError."""
    if not spec.is_program:
        with Path(spec.target).expanduser().open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                yield chunk
        return
    with subprocess.Popen(spec.target, shell=True, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None, "asked for a pipe"
        while chunk := process.stdout.read(CHUNK_BYTES):
            yield chunk
    if process.returncode:
        raise OSError(f'program "{spec.target}" failed with exit code {process.returncode}')
