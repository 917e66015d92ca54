"""Time zones: parsing them, and the offset from UTC that holds at an instant.

A zone is a fixed offset (`+05:30`, `-8`, `Z`), a name of the tz database in any case, or a common abbreviation.
Local times that a clock change skips or repeats resolve as PostgreSQL does: always to the lesser of the two offsets, so
a skipped time reads as if the clock had not moved yet and a repeated one as its second occurrence.
"""

from __future__ import annotations

import datetime
import functools
import re
import zoneinfo

import numpy as np
from numpy.typing import NDArray

from mzlite.repr.calendar import DAY_US, civil_from_days

I64 = NDArray[np.int64]
_ABBREVIATIONS = {
    "utc": 0, "gmt": 0, "z": 0, "ut": 0, "uct": 0, "zulu": 0, "wet": 0, "west": 3600, "bst": 3600, "cet": 3600,
    "cest": 7200, "eet": 7200, "eest": 10800, "msk": 10800, "ist": 19800, "jst": 32400, "kst": 32400, "aest": 36000,
    "aedt": 39600, "nzst": 43200, "nzdt": 46800, "ast": -14400, "adt": -10800, "est": -18000, "edt": -14400,
    "cst": -21600, "cdt": -18000, "mst": -25200, "mdt": -21600, "pst": -28800, "pdt": -25200, "akst": -32400,
    "akdt": -28800, "hst": -36000,
}  # fmt: skip
_NUMBERS = re.compile(
    r"\s*(?P<sign>[+-])\s*(?:(?P<h>\d{1,2}):(?P<m>\d{1,2})(?::(?P<s>\d{1,2}))?|(?P<run>\d{1,6}))\Z", re.ASCII
)
_NAME = re.compile(r"[A-Za-z]", re.ASCII)


class TimezoneError(ValueError):
    """A text that names no time zone; the message says why."""


class Timezone:
    """A fixed offset or a named zone. fixed_s: seconds east of UTC, None when named."""

    __slots__ = ("fixed_s", "info", "name")

    def __init__(self, name: str, fixed_s: int | None, info: zoneinfo.ZoneInfo | None = None) -> None:
        self.name = name
        self.fixed_s = fixed_s
        self.info = info

    def offset_at_utc(self, us: int) -> int:
        """Seconds east of UTC at an instant (microseconds since 1970, UTC)."""
        if self.fixed_s is not None:
            return self.fixed_s
        assert self.info is not None
        offset = _datetime(us).replace(tzinfo=datetime.UTC).astimezone(self.info).utcoffset()
        assert offset is not None
        return int(offset.total_seconds())

    def offset_at_local(self, us: int) -> int:
        """Seconds east of UTC at a wall-clock time (microseconds since 1970, as if UTC)."""
        if self.fixed_s is not None:
            return self.fixed_s
        assert self.info is not None
        wall = _datetime(us).replace(tzinfo=self.info)
        first, second = wall.utcoffset(), wall.replace(fold=1).utcoffset()
        assert first is not None and second is not None
        return int(min(first, second).total_seconds())

    def to_utc(self, us: int) -> int:
        """The instant at which this zone's clocks show `us`."""
        return us - self.offset_at_local(us) * 1_000_000

    def to_local(self, us: int) -> int:
        """What this zone's clocks show at the instant `us`."""
        return us + self.offset_at_utc(us) * 1_000_000

    def to_utc_array(self, us: I64) -> I64:
        return self._shift(us, self.offset_at_local, -1)

    def to_local_array(self, us: I64) -> I64:
        return self._shift(us, self.offset_at_utc, 1)

    def _shift(self, us: I64, offset_at: object, sign: int) -> I64:
        if self.fixed_s is not None:
            return us + sign * self.fixed_s * 1_000_000
        assert callable(offset_at)
        # Offsets change on whole minutes, so one look-up a distinct minute.
        minutes, inverse = np.unique(us // 60_000_000, return_inverse=True)
        offsets = np.array([offset_at(m * 60_000_000) for m in minutes.tolist()], np.int64)
        shifted: I64 = us + sign * 1_000_000 * offsets[inverse.reshape(-1)]
        return shifted


UTC = Timezone("UTC", 0)


def _datetime(us: int) -> datetime.datetime:
    """A naive datetime; years outside Python's range are moved by whole 400-year cycles, which repeat the calendar."""
    days, rest = divmod(us, DAY_US)
    year, month, day = civil_from_days(days)
    if year < 2:
        year = 1600 + year % 400 if year % 400 else 2000
    elif year > 9998:
        year = 2000 + year % 400
    return datetime.datetime(year, month, day) + datetime.timedelta(microseconds=rest)


@functools.cache
def _names() -> dict[str, str]:
    return {name.lower(): name for name in zoneinfo.available_timezones()}


@functools.lru_cache(maxsize=512)
def parse_timezone(text: str) -> Timezone:
    """Parse a zone; TimezoneError in Materialize's words."""
    numbers = _NUMBERS.match(text)
    if numbers is not None:
        return Timezone(text.strip(), _fixed(numbers, text))
    if not text or text[0] in "+- :" or text[0].isdigit():
        raise TimezoneError(f"Cannot parse timezone offset {text}")
    if not _NAME.match(text[0]):
        raise TimezoneError(
            f"Error tokenizing timezone string ('{text}'): invalid character {rust_char(text[0])} at offset 0"
        )
    key = text.lower()
    name = _names().get(key)
    if name is not None:
        return Timezone(name, None, zoneinfo.ZoneInfo(name))
    if key in _ABBREVIATIONS:
        return Timezone(text.upper(), _ABBREVIATIONS[key])
    raise TimezoneError(
        f"Invalid timezone string ({text}): '{text}' is not a valid timezone. Failed to parse {text} at token index 0"
    )


def rust_char(c: str) -> str:
    """A character as the messages quote it."""
    return f"'{c}'" if c != "'" else "'\\''"


def _fixed(match: re.Match[str], text: str) -> int:
    if match["run"] is not None:
        run = match["run"]
        parts = [run] if len(run) <= 2 else [run[:-2], run[-2:]]
        if len(parts[0]) > 2:
            parts = [run[:-4], run[-4:-2], run[-2:]]
    else:
        parts = [p for p in (match["h"], match["m"], match["s"]) if p is not None]
    hour, minute, second = (int(p) for p in (*parts, "0", "0")[:3])
    if hour > 15:
        raise TimezoneError(f"Invalid timezone string ({text}): timezone hour invalid {hour}")
    if minute > 59:
        raise TimezoneError(f"Invalid timezone string ({text}): timezone minute invalid {minute}")
    if second > 59:
        raise TimezoneError(f"Invalid timezone string ({text}): timezone second invalid {second}")
    offset = hour * 3600 + minute * 60 + second
    return -offset if match["sign"] == "-" else offset
