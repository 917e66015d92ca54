"""to_char for timestamps: a format is compiled once into a list of pieces, literal texts and fields.

Fields are PostgreSQL's template patterns: FM before one suppresses padding, TH or th after one adds an ordinal suffix,
double quotes protect literal text.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mzlite.expr.kernels.time_units import iso_week_year
from mzlite.repr.calendar import DAY_US, civil_from_days, days_from_civil

_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]
_ROMAN = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"]


class Moment(NamedTuple):
    """A timestamp taken apart; year is the display year, year_bc whether it is one before Christ."""

    year: int
    year_bc: bool
    month: int
    day: int
    hour: int
    minute: int
    second: int
    us: int
    day_of_year: int
    weekday: int  # Sunday 0
    days: int
    iso_year: int
    iso_week: int


def moment(us: int) -> Moment:
    days, rest = divmod(us, DAY_US)
    year, month, day = civil_from_days(days)
    seconds, fraction = divmod(rest, 1_000_000)
    week, iso_year = (int(x[0]) for x in iso_week_year(np.array([days], np.int64)))
    return Moment(
        year if year > 0 else 1 - year,
        year <= 0,
        month,
        day,
        seconds // 3600,
        seconds // 60 % 60,
        seconds % 60,
        fraction,
        days - days_from_civil(year, 1, 1) + 1,
        (days + 4) % 7,
        days,
        iso_year,
        week,
    )


def _number(width: int, f: Callable[[Moment], int]) -> Callable[[Moment, bool], str]:
    return lambda m, fill: str(f(m)).zfill(width) if fill else str(f(m))


def _name(width: int, f: Callable[[Moment], str]) -> Callable[[Moment, bool], str]:
    return lambda m, fill: f(m).ljust(width) if fill else f(m)


def _plain(f: Callable[[Moment], str]) -> Callable[[Moment, bool], str]:
    return lambda m, fill: f(m)


def _century(m: Moment) -> int:
    return -((m.year + 99) // 100) if m.year_bc else (m.year + 99) // 100


def _meridiem(m: Moment) -> str:
    return "AM" if m.hour < 12 else "PM"


def _era(m: Moment) -> str:
    return "BC" if m.year_bc else "AD"


def _dotted(f: Callable[[Moment], str]) -> Callable[[Moment], str]:
    return lambda m: ".".join(f(m)) + "."


def _lowered(f: Callable[[Moment], str]) -> Callable[[Moment], str]:
    return lambda m: f(m).lower()


def _iso_day_of_year(m: Moment) -> int:
    return (m.iso_week - 1) * 7 + ((m.weekday - 1) % 7 + 1)


Field = Callable[[Moment, bool], str]


def _fields() -> dict[str, Field]:
    out: dict[str, Field] = {}

    def add(name: str, field: Field) -> None:
        out[name] = field
        out[name.lower()] = field

    def cased(name: str, width: int, f: Callable[[Moment], str]) -> None:
        """NAME, Name and name print in their own case."""
        out[name.upper()] = _name(width, lambda m: f(m).upper())
        out[name.capitalize()] = _name(width, f)
        out[name.lower()] = _name(width, lambda m: f(m).lower())

    add("HH24", _number(2, lambda m: m.hour))
    for name in ("HH12", "HH"):
        add(name, _number(2, lambda m: m.hour % 12 or 12))
    add("MI", _number(2, lambda m: m.minute))
    add("SS", _number(2, lambda m: m.second))
    for name in ("SSSSS", "SSSS"):
        add(name, _number(1, lambda m: (m.hour * 60 + m.minute) * 60 + m.second))
    add("MS", _number(3, lambda m: m.us // 1000))
    add("US", _number(6, lambda m: m.us))
    add("Y,YYY", lambda m, fill: f"{m.year // 1000},{m.year % 1000:03d}")
    add("YYYY", _number(4, lambda m: m.year))
    add("YYY", _number(3, lambda m: m.year % 1000))
    add("YY", _number(2, lambda m: m.year % 100))
    add("Y", _number(1, lambda m: m.year % 10))
    add("IYYY", _number(4, lambda m: m.iso_year))
    add("IYY", _number(3, lambda m: m.iso_year % 1000))
    add("IY", _number(2, lambda m: m.iso_year % 100))
    add("I", _number(1, lambda m: m.iso_year % 10))
    add("MM", _number(2, lambda m: m.month))
    add("DDD", _number(3, lambda m: m.day_of_year))
    add("IDDD", _number(3, _iso_day_of_year))
    add("DD", _number(2, lambda m: m.day))
    add("D", _number(1, lambda m: m.weekday + 1))
    add("ID", _number(1, lambda m: (m.weekday - 1) % 7 + 1))
    add("WW", _number(2, lambda m: (m.day_of_year - 1) // 7 + 1))
    add("W", _number(1, lambda m: (m.day - 1) // 7 + 1))
    add("IW", _number(2, lambda m: m.iso_week))
    add("CC", _number(2, _century))
    add("J", _number(1, lambda m: m.days + 2_440_588))
    add("Q", _number(1, lambda m: (m.month + 2) // 3))
    cased("MONTH", 9, lambda m: _MONTHS[m.month - 1])
    cased("MON", 0, lambda m: _MONTHS[m.month - 1][:3])
    cased("DAY", 9, lambda m: _DAYS[m.weekday])
    cased("DY", 0, lambda m: _DAYS[m.weekday][:3])
    out["RM"] = _name(4, lambda m: _ROMAN[m.month - 1])
    out["rm"] = _name(4, lambda m: _ROMAN[m.month - 1].lower())
    for upper, lower, f in (("AM", "am", _meridiem), ("PM", "pm", _meridiem), ("AD", "ad", _era), ("BC", "bc", _era)):
        out[upper] = _plain(f)
        out[lower] = _plain(_lowered(f))
        dotted = _dotted(f)
        out[".".join(upper) + "."] = _plain(dotted)
        out[".".join(lower) + "."] = _plain(_lowered(dotted))
    out["TZ"] = _plain(lambda m: "UTC")
    out["tz"] = _plain(lambda m: "utc")
    add("TZH", _plain(lambda m: "+00"))
    add("TZM", _plain(lambda m: "00"))
    add("OF", _plain(lambda m: "+00"))
    return out


_FIELDS = _fields()
_LONGEST = max(map(len, _FIELDS))


def _ordinal(text: str, upper: bool) -> str:
    digits = text.lstrip("-").replace(",", "")
    suffix = "th"
    if digits.isdigit() and not 11 <= int(digits[-2:]) <= 13:
        suffix = {"1": "st", "2": "nd", "3": "rd"}.get(digits[-1], "th")
    return text + (suffix.upper() if upper else suffix)


Piece = str | tuple[Field, bool, str]


@functools.lru_cache(256)
def compile_format(text: str) -> tuple[Piece, ...]:
    """Literal strings, and (field, padded, ordinal suffix) triples."""
    pieces: list[Piece] = []
    i = 0
    while i < len(text):
        if text[i] == '"':
            i += 1
            literal = []
            while i < len(text) and text[i] != '"':
                if text[i] == "\\" and i + 1 < len(text):
                    i += 1
                literal.append(text[i])
                i += 1
            pieces.append("".join(literal))
            i += 1
            continue
        if text[i] == "\\" and text.startswith('\\"', i):
            pieces.append('"')
            i += 2
            continue
        start = i
        fill = True
        if text[i : i + 2] in ("FM", "fm"):
            fill = False
            start += 2
        for size in range(min(_LONGEST, len(text) - start), 0, -1):
            field = _FIELDS.get(text[start : start + size])
            if field is None:
                continue
            i = start + size
            suffix = text[i : i + 2]
            if suffix in ("TH", "th"):
                i += 2
            else:
                suffix = ""
            pieces.append((field, fill, suffix))
            break
        else:
            if fill:
                pieces.append(text[i])
                i += 1
            else:
                i = start  # FM alone prints nothing
    return tuple(pieces)


def format_timestamp(us: int, text: str) -> str:
    at = moment(us)
    out: list[str] = []
    for piece in compile_format(text):
        if isinstance(piece, str):
            out.append(piece)
            continue
        field, fill, suffix = piece
        shown = field(at, fill)
        out.append(_ordinal(shown, suffix == "TH") if suffix else shown)
    return "".join(out)
