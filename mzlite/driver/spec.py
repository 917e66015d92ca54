"""Spec files: stanzas of a command line, an indented body, `----` and the expected output.

    write-rows shard=r ts=0        command, key=value arguments, flags
      1 alpha                      body
    ----
    wrote 1                        expected, up to the blank line; no `----`: the output is not checked

`#` at column 0 starts a comment. Values may be quoted ("a b") or lists ([0, 1]).
"""

from __future__ import annotations

import re

import msgspec

_ARGUMENT = re.compile(r'\s*([A-Za-z][\w-]*)(?:(=)("(?:[^"\\]|\\.)*"|\[[^\]]*\]|[^\s\[]\S*)?)?(?=\s|$)')


class SpecError(Exception):
    """What a failing command prints after `error: `."""


class Stanza(msgspec.Struct):
    """line: 1-based line of the command. expected: None = unchecked. output_line: where expected lines start, 0-based."""

    line: int
    command: str
    args: dict[str, str]
    flags: frozenset[str]
    body: list[str]
    expected: list[str] | None
    expected_start: int
    expected_end: int

    def take(self, name: str) -> str:
        value = self.args.get(name)
        if value is None:
            raise SpecError(f"{self.command} requires {name}=")
        return value

    def take_int(self, name: str, default: int | None = None) -> int:
        value = self.args.get(name)
        if value is None:
            if default is None:
                raise SpecError(f"{self.command} requires {name}=")
            return default
        return to_int(name, value)


def to_int(name: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise SpecError(f"{name}={value} is not a number") from None


def parse_arguments(text: str) -> tuple[dict[str, str], frozenset[str]]:
    """`key=value` pairs and flags of one line."""
    args: dict[str, str] = {}
    flags: set[str] = set()
    at = 0
    text = text.rstrip()
    while at < len(text):
        match = _ARGUMENT.match(text, at)
        if match is None:
            raise SpecError(f"cannot parse arguments at {text[at:].strip()!r}")
        name, equals, value = match.groups()
        if equals is None:
            flags.add(name)
        else:
            args[name] = _unquote(value or "")
        at = match.end()
    return args, frozenset(flags)


def parse_list(text: str) -> list[str]:
    """`[a, b]` or `a`."""
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        inner = text[1:-1].strip()
        return [_unquote(item.strip()) for item in inner.split(",")] if inner else []
    return [text]


def parse_spec(text: str) -> list[Stanza]:
    """errors: SpecError naming the line."""
    lines = text.splitlines()
    stanzas: list[Stanza] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        if not line.strip() or line.startswith("#"):
            at += 1
            continue
        if line[0].isspace() or line.startswith("----"):
            raise SpecError(f"line {at + 1}: expected a command, found {line.strip()!r}")
        start = at
        name, _, rest = line.partition(" ")
        try:
            args, flags = parse_arguments(rest)
        except SpecError as error:
            raise SpecError(f"line {at + 1}: {error}") from None
        at += 1
        body: list[str] = []
        while at < len(lines) and lines[at][:1].isspace() and lines[at].strip():
            body.append(lines[at])
            at += 1
        expected: list[str] | None = None
        expected_start = at
        if at < len(lines) and lines[at].rstrip() == "----":
            at += 1
            expected_start = at
            expected = []
            while at < len(lines) and lines[at].strip():
                expected.append(lines[at].rstrip())
                at += 1
        stanzas.append(Stanza(start + 1, name.strip(), args, flags, body, expected, expected_start, at))
    return stanzas


def _unquote(value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] == '"':
        return re.sub(r"\\(.)", r"\1", value[1:-1])
    return value
