"""INTERVAL literals with fields: `INTERVAL '1-2' YEAR TO MONTH`, `INTERVAL '5' DAY`.

Without fields the text is parsed as any interval. With a single field a bare number is in that unit; the last field then cuts
off everything finer, and a first field does not restrict what the text may say (as in Materialize).
"""

from __future__ import annotations

import math
import re

from adapter.sql import ast, hir
from mzlite.expr.scalar import Literal
from mzlite.repr.datum import encode_datum
from mzlite.repr.errors import SqlError, encode_error
from mzlite.repr.interval import Interval
from mzlite.repr.text import parse_datum
from mzlite.repr.types import INTERVAL

_ORDER = ("year", "month", "day", "hour", "minute", "second")
_UNIT_US = {"hour": 3_600_000_000, "minute": 60_000_000, "second": 1_000_000}


def interval_literal(node: ast.Interval) -> hir.Scalar:
    if node.start is not None and node.end is not None and _ORDER.index(node.start) >= _ORDER.index(node.end):
        first, last = node.start.upper(), node.end.upper()
        raise SqlError(
            "42601",
            f"Invalid field range in INTERVAL '{node.value}' {first} TO {last}: the value in the position "
            f"{first} should be more significant than {last}",
            position=node.pos + 1,
        )
    try:
        value = _parse(node)
    except SqlError as error:
        return Literal(None, INTERVAL, encode_error(error))
    return Literal(encode_datum(INTERVAL, value), INTERVAL)


def _parse(node: ast.Interval) -> Interval:
    text = node.value
    unit = node.end or node.start
    given = text
    if unit is not None:
        if node.start == "minute" and node.end == "second" and _CLOCK.fullmatch(text):
            text = "0:" + text.strip()  # MINUTE TO SECOND reads 12:34 as minutes and seconds
        elif _BARE_NUMBER.search(text):
            text = f"{text.strip()} {unit}"
    try:
        value: Interval = parse_datum(INTERVAL, text)
    except SqlError as error:
        error.message = error.message.replace(f'"{text}"', f'"{given}"')
        raise
    if unit is not None:
        value = _truncate(value, unit)
    if node.end is not None and node.start is not None:
        value = _drop_above(value, node.start)
    if node.precision is not None:
        value = _round(value, node.precision)
    return value


_BARE_NUMBER = re.compile(r"(^|\s)[+-]?\d*\.?\d+\s*$")
_CLOCK = re.compile(r"\s*\d+:\d+(\.\d*)?\s*")


def _drop_above(value: Interval, start: str) -> Interval:
    """Nothing coarser than the first field: MONTH TO … has no years."""
    months, days, us = value.months, value.days, value.us
    at = _ORDER.index(start)
    if at >= 1:
        months = int(math.fmod(months, 12)) if at == 1 else 0
    if at >= 3:
        days = 0
    if at >= 4:
        us = int(math.fmod(us, 3_600_000_000)) if at == 4 else int(math.fmod(us, 60_000_000))
    return Interval(months, days, us)


def _truncate(value: Interval, unit: str) -> Interval:
    months, days, us = value.months, value.days, value.us
    if unit == "year":
        return Interval(int(months / 12) * 12, 0, 0)
    if unit == "month":
        return Interval(months, 0, 0)
    if unit == "day":
        return Interval(months, days, 0)
    if unit == "second":
        return value
    step = _UNIT_US[unit]
    return Interval(months, days, abs(us) // step * step * (1 if us > 0 else -1))


def _round(value: Interval, precision: int) -> Interval:
    if precision > 6:
        raise SqlError("22023", f"SECOND precision must be (0, 6), have SECOND({precision})")
    step = 10 ** (6 - precision)
    half = step // 2
    us = value.us
    if abs(us) > (1 << 63) - step:
        raise SqlError("22008", "interval field value out of range")
    rounded = (us + half) // step * step if us >= 0 else -((-us + half) // step * step)
    return Interval(value.months, value.days, rounded)
