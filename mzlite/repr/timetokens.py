"""Tokens of date, time and interval texts, and how a run of tokens fills fields.

    '1-2 3 4:5:6.7'   Num - Num  Delim  Num  Delim  Num : Num : Num . Nanos
    '3.5 days'        Num . Nanos  Delim  Unit(day)

All four kinds of text share this step; `datetext` and `intervaltext` say which fields a run of tokens may fill. Any
punctuation that means nothing counts as a space, as PostgreSQL is lenient there. The messages are Materialize's.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

FIELDS = (
    "millennium", "century", "decade", "year", "month", "day", "hour", "minute", "second", "milliseconds",
    "microseconds",
)  # fmt: skip
_UNIT_NAMES = {
    "millennium": "mil millennium millenniums millennia",
    "century": "c cent century centuries",
    "decade": "dec decs decade decades",
    "year": "y yr yrs year years",
    "month": "mon mons month months",
    "week": "w week weeks",
    "day": "d day days",
    "hour": "h hr hrs hour hours",
    "minute": "m min mins minute minutes",
    "second": "s sec secs second seconds",
    "milliseconds": "ms msec msecs mseconds millisecond milliseconds",
    "microseconds": "us usec usecs useconds microsecond microseconds",
}
UNITS = {name: unit for unit, names in _UNIT_NAMES.items() for name in names.split()}
NANO = 1_000_000_000
_I64_MAX = 2**63 - 1

DELIM, NUM, NANOS, UNIT, TEE = "delim", "num", "nanos", "unit", "T"
_LEXEME = re.compile(r"(\d+)|([A-Za-z]+)|([-+:.])|([\x00-\x7f])", re.ASCII)


class TimeTextError(ValueError):
    """Why a text is no date, time or interval."""


class Token(NamedTuple):
    """kind: one of DELIM, NUM, NANOS, UNIT, TEE or the punctuation itself. width: digits as written."""

    kind: str
    value: int = 0
    unit: str = ""
    width: int = 0

    def shown(self) -> str:
        if self.kind == DELIM:
            return " "
        if self.kind == NUM:
            return str(self.value).rjust(self.width - 1, "0")
        if self.kind == NANOS:
            return str(self.value)
        if self.kind == UNIT:
            return self.unit.capitalize()
        return self.kind


Tokens = deque[Token]


def tokenize(text: str) -> Tokens:
    """Split a text into tokens, leading colons and delimiters dropped."""
    tokens: Tokens = deque()
    at = 0
    after_dot = False
    while at < len(text):
        match = _LEXEME.match(text, at)
        if match is None:
            raise TimeTextError(f"Invalid character at offset {at} in {text}: '{text[at]}'")
        digits, letters, mark, _ = match.groups()
        if digits is not None and after_dot:
            kept = digits[:9]
            tokens.append(Token(NANOS, int(kept) * 10 ** (9 - len(kept))))
        elif digits is not None:
            value = int(digits)
            if value > _I64_MAX + 1 or (value > _I64_MAX and not (tokens and tokens[-1].kind == "-")):
                raise TimeTextError(
                    f"Unable to parse value {digits} as a number: number too large to fit in target type"
                )
            tokens.append(Token(NUM, value, width=len(digits)))
        elif letters is not None:
            tokens.append(_word(letters))
        else:
            tokens.append(Token(mark if mark is not None else DELIM))
        after_dot = mark == "."
        at = match.end()
    trim_left(tokens)
    return tokens


def _word(letters: str) -> Token:
    if letters in ("T", "t"):
        return Token(TEE)
    unit = UNITS.get(letters.lower())
    if unit is None:
        raise TimeTextError(f"unknown units {letters}")
    return Token(UNIT, unit=unit)


def trim_left(tokens: Tokens) -> None:
    """Drop leading colons and delimiters: misplaced punctuation means nothing."""
    while tokens and tokens[0].kind in (":", DELIM):
        tokens.popleft()


def reject_rest(tokens: Tokens) -> None:
    if tokens:
        rest = "".join(t.shown() for t in tokens).rstrip()
        raise TimeTextError(f"have unprocessed tokens {rest}")


class Fields:
    """What was read: field -> (whole units, billionths of a unit). A field may be set once."""

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values: dict[str, tuple[int, int]] = {}

    def set(self, field: str, value: tuple[int, int] | None) -> None:
        if value is None:
            return
        if field in self.values:
            raise TimeTextError(f"{field.upper()} field set twice")
        small = "milliseconds" in self.values or "microseconds" in self.values
        if field == "second" and value[1] and small:
            raise TimeTextError(
                "Cannot set MILLISECONDS or MICROSECONDS field if SECOND field has a fraction component"
            )
        if field in ("milliseconds", "microseconds") and self.values.get("second", (0, 0))[1]:
            raise TimeTextError(
                "Cannot set MILLISECONDS or MICROSECONDS field if SECOND field has a fraction component"
            )
        self.values[field] = value

    def get(self, field: str) -> tuple[int, int] | None:
        return self.values.get(field)


def fill(fields: Fields, tokens: Tokens, expected: Sequence[str], field: str, sign: int) -> None:
    """Consume tokens as `expected` says, setting `field` and then the fields below it; separators move to the next.

    Numbers, dots, fractions and delimiters that were expected may be missing.
    """
    value: tuple[int, int] | None = None
    nth = 0
    taken = 0
    while tokens and nth < len(expected):
        token, want = tokens[0], expected[nth]
        if token.kind == want and want in ("-", ":", DELIM):
            fields.set(field, value)
            value = None
            field = FIELDS[FIELDS.index(field) + 1]
            if want == DELIM:
                while len(tokens) > 1 and tokens[1].kind == DELIM:
                    tokens.popleft()
        elif token.kind == UNIT and want == UNIT:
            if value is not None and token.unit not in (field, "week"):
                raise TimeTextError(
                    f"Invalid syntax at offset {taken}: provided TimeUnit({token.unit.upper()}) "
                    f"but expected TimeUnit({field.upper()})"
                )
        elif token.kind == "." and want == ".":
            pass
        elif token.kind == NUM and want == NUM:
            if value is not None:
                raise TimeTextError("Invalid syntax; parts must be separated by '-', ':', or ' '")
            value = (token.value * sign, 0)
        elif token.kind in (NANOS, NUM) and want == NANOS:
            fraction = token.value if token.kind == NANOS else int(str(token.value)[:9].ljust(9, "0"))
            value = (0 if value is None else value[0], fraction * sign)
        elif want in (NUM, ".", NANOS, DELIM):
            nth += 1
            continue
        else:
            raise TimeTextError(f"Invalid syntax at offset {taken}: provided {token.shown()!r} but expected {want!r}")
        taken += 1
        tokens.popleft()
        nth += 1
    trim_left(tokens)
    fields.set(field, value)


CLOCK = (NUM, ":", NUM, ":", NUM, ".", NANOS)  # hour, minute, second
CLOCK_FROM = {"hour": CLOCK, "minute": CLOCK[2:], "second": CLOCK[4:]}


def take_sign(tokens: Tokens) -> int:
    if tokens and tokens[0].kind in ("-", "+"):
        return -1 if tokens.popleft().kind == "-" else 1
    return 1


SQL, POSTGRES = "sql", "postgres"


def part_format(part: Tokens, leading: str | None) -> tuple[str, str] | None:
    """How to read one part: (SQL, leading field) for `1-2` and `4:5:6`, (POSTGRES, unit) for `3 days`, None if unclear.

    leading: the field that `a:b` starts with (hour when None).
    """
    kinds = [t.kind for t in part]
    at = 1 if kinds and kinds[0] in ("-", "+") else 0
    if at < len(kinds) and kinds[at] == NUM:
        at += 1
    kind = kinds[at] if at < len(kinds) else None
    if kind is None or kind == DELIM:
        return None
    if kind == ".":
        at += 1
        if at < len(kinds) and kinds[at] in (NUM, NANOS):
            at += 1
        return (POSTGRES, part[at].unit) if at < len(kinds) and kinds[at] == UNIT else None
    if kind == "-":
        return SQL, "year"
    if kind == ":":
        at += 1
        if at < len(kinds) and kinds[at] == NUM:
            at += 1
        after = kinds[at] if at < len(kinds) else None
        if after in (":", DELIM):
            return SQL, "hour"
        if after == ".":
            return SQL, "minute"
        if after is None:
            return SQL, leading or "hour"
    elif kind == UNIT:
        return POSTGRES, part[at].unit
    raise TimeTextError("Cannot determine format of all parts")
