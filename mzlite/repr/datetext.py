"""Parsing dates, times and timestamps.

    date       2000-01-31 · 2000 01-31 · 20000131 · epoch, an optional time is read and dropped
    time       1:2:3.4 · 10:20
    timestamp  date [T| ] time [zone] [AD|BC]

Results are the datums: days since 1970, microseconds since midnight, microseconds since 1970. `timestamp` ignores the
zone, `timestamptz` applies it (the session's zone is always UTC, as Materialize prints).
"""

from __future__ import annotations

import re

from mzlite.repr.calendar import (
    DAY_US,
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    days_from_civil,
    days_in_month,
)
from mzlite.repr.timetokens import (
    CLOCK_FROM,
    DELIM,
    NANO,
    NUM,
    SQL,
    TEE,
    Fields,
    TimeTextError,
    Tokens,
    fill,
    part_format,
    reject_rest,
    tokenize,
    trim_left,
)
from mzlite.repr.timezone import UTC, Timezone, TimezoneError, parse_timezone

_DATE_SHAPES = ((NUM, "-", NUM, "-", NUM), (NUM, DELIM, NUM, "-", NUM), (NUM, DELIM, NUM, DELIM, NUM))
# An era stands apart from a zone's name: after a space or a digit, so that Asia/Baghdad keeps its end.
_ERA = re.compile(r"(?<![A-Za-z/_])(AD|BC)\s*\Z", re.IGNORECASE)
_ISO = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?)?\Z", re.ASCII)
_LETTER = re.compile(r"[A-Za-z]", re.ASCII)
# Stray punctuation around a zone means nothing, as around a date.
_ZONE_EDGES = re.compile(r"\A[^-+A-Za-z0-9]+|[^-+A-Za-z0-9]+\Z")
_ZONE_START = re.compile(r"[-+ A-Za-z]", re.ASCII)


def parse_date(text: str) -> int:
    """Days since 1970-01-01; TimeTextError otherwise."""
    return _parse(text)[0]


def parse_time(text: str) -> int:
    """Microseconds since midnight."""
    fields = Fields()
    tokens = tokenize(text)
    _fill_clock(fields, tokens)
    extra = _check_bounds(fields)
    reject_rest(tokens)
    second, nanos = fields.values.get("second", (0, 0))
    if second or nanos:  # a time of day is cut to microseconds, so that it never rounds up to the next day
        fields.values["second"] = (second, nanos // 1000 * 1000)
    return (_clock_us(fields) + extra) % DAY_US


def parse_timestamp(text: str) -> int:
    """Microseconds since 1970-01-01 of the wall-clock time written; a zone is read and ignored."""
    days, us, _ = _parse(text)
    return _in_range(days * DAY_US + us)


def parse_timestamptz(text: str) -> int:
    """Microseconds since 1970-01-01 UTC."""
    days, us, zone = _parse(text)
    return _in_range(zone.to_utc(days * DAY_US + us))


def _in_range(us: int) -> int:
    if not MIN_TIMESTAMP <= us <= MAX_TIMESTAMP:
        raise TimeTextError("timestamp out of range")
    return us


def _parse(text: str) -> tuple[int, int, Timezone]:
    """(days, microseconds of the day, zone)."""
    iso = _ISO.match(text)
    if iso is not None:
        year, month, day = int(iso[1]), int(iso[2]), int(iso[3])
        if year and 1 <= month <= 12 and 1 <= day <= days_in_month(year, month):
            if iso[4] is None:
                return days_from_civil(year, month, day), 0, UTC
            hour, minute, second = int(iso[4]), int(iso[5]), int(iso[6] or 0)
            if hour < 24 and minute < 60 and second < 60:
                us = ((hour * 60 + minute) * 60 + second) * 1_000_000 + int((iso[7] or "").ljust(6, "0"))
                return days_from_civil(year, month, day), us, UTC
    text = text.strip()
    if not text:
        raise TimeTextError("timestamp string is empty")
    if text.lower() == "epoch":
        return 0, 0, UTC
    era = _ERA.search(text)
    before_christ = False
    if era is not None:
        before_christ = era[1].upper() == "BC"
        text = text[: era.start()].strip()
    clock_text, zone_text = _split_zone(text)
    fields = Fields()
    tokens = tokenize(clock_text)
    _fill_date(fields, tokens)
    if tokens and tokens[0].kind == TEE:
        tokens.popleft()
        trim_left(tokens)
    _fill_clock(fields, tokens)
    extra = _check_bounds(fields)
    reject_rest(tokens)
    days = _date_days(fields, before_christ)
    zone = UTC
    if zone_text:
        try:
            zone = parse_timezone(zone_text)
        except TimezoneError as e:
            raise TimeTextError(str(e)) from None
    carry, us = divmod(_clock_us(fields) + extra, DAY_US)
    return days + carry, us, zone


def _split_zone(text: str) -> tuple[str, str]:
    """(date and time, zone): a zone starts at ` +` or ` -`, else after the clock, else at the first letter."""
    cut = text.find(" +")
    if cut < 0:
        cut = text.find(" -")
    if cut < 0:
        colon = text.find(":")
        start = (_ZONE_START if colon >= 0 else _LETTER).search(text, max(colon, 0))
        if start is None:
            return text, ""
        cut = start.start()
    zone = text[cut:].strip()
    return text[:cut].strip(), _ZONE_EDGES.sub("", zone)


def _fill_date(fields: Fields, tokens: Tokens) -> None:
    if tokens and tokens[0].kind == NUM and 6 <= tokens[0].width <= 8:
        number = tokens.popleft()
        year, rest = divmod(number.value, 10_000)
        if number.width == 6:
            year += 2000 if year < 70 else 1900
        fields.set("year", (year, 0))
        fields.set("month", (rest // 100, 0))
        fields.set("day", (rest % 100, 0))
        if tokens and tokens[0].kind == DELIM:
            trim_left(tokens)
        return
    for shape in _DATE_SHAPES:
        attempt = tokens.copy()
        try:
            fill(fields, attempt, shape, "year", 1)
        except TimeTextError:
            fields.values.clear()
            continue
        tokens.clear()
        tokens.extend(attempt)
        return
    raise TimeTextError("does not match any format for date component")


def _fill_clock(fields: Fields, tokens: Tokens) -> None:
    shape = part_format(tokens, None)
    if shape is not None and shape[0] == SQL:
        if shape[1] not in CLOCK_FROM:
            raise TimeTextError(
                f"expected_dur_like_tokens can only be called with HOUR, MINUTE, SECOND; got {shape[1].upper()}"
            )
        fill(fields, tokens, CLOCK_FROM[shape[1]], shape[1], 1)


_BOUNDS = {"month": (1, 12), "day": (1, 31), "hour": (0, 23), "minute": (0, 59)}


def _check_bounds(fields: Fields) -> int:
    """Reject fields out of bounds; returns microseconds to add for second 60, which is the next minute's start."""
    if fields.get("year") is not None and fields.values["year"][0] == 0:
        raise TimeTextError("YEAR cannot be zero")
    for field, (least, most) in _BOUNDS.items():
        value = fields.get(field)
        if value is not None and not least <= value[0] <= most:
            raise TimeTextError(f"{field.upper()} must be [{least}, {most}], got {value[0]}")
    second = fields.get("second")
    if second is None:
        return 0
    if not 0 <= second[0] <= 60:
        raise TimeTextError(f"SECOND must be [0, 60], got {second[0]}")
    if second[0] == 60:
        if second[1]:
            raise TimeTextError(f"NANOSECOND must be [0, 1_000_000_000], got {second[1] + NANO}")
        fields.values["second"] = (59, 0)
        return 1_000_000
    return 0


def _date_days(fields: Fields, before_christ: bool) -> int:
    year, month, day = fields.get("year"), fields.get("month"), fields.get("day")
    if year is None or month is None or day is None:
        raise TimeTextError("YEAR, MONTH, DAY are all required")
    astronomical = 1 - year[0] if before_christ else year[0]
    if astronomical > 300_000 or day[0] > days_in_month(astronomical, month[0]):
        raise TimeTextError("invalid or out-of-range date")
    days = days_from_civil(astronomical, month[0], day[0])
    if not MIN_TIMESTAMP <= days * DAY_US <= MAX_TIMESTAMP:
        raise TimeTextError("invalid or out-of-range date")
    return days


def _clock_us(fields: Fields) -> int:
    hour, minute = fields.values.get("hour", (0, 0))[0], fields.values.get("minute", (0, 0))[0]
    second, nanos = fields.values.get("second", (0, 0))
    return (hour * 3600 + minute * 60 + second) * 1_000_000 + (nanos + 500) // 1000
