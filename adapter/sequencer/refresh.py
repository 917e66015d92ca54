"""REFRESH options of a materialized view, made concrete at its creation."""

from __future__ import annotations

from adapter.sequencer.scalars import substitute_scalar
from adapter.sequencer.values import mz_now_literal
from adapter.sql.plans import RefreshSchedule
from mzlite.expr.eval import eval_constant
from mzlite.expr.scalar import Scalar, Unmaterializable
from mzlite.repr.datum import Interval
from mzlite.repr.errors import SqlError
from mzlite.repr.timestamp import Timestamp

DAY_MS = 86_400_000


def resolve_refresh(
    schedule: RefreshSchedule | None, now: Timestamp
) -> tuple[tuple[int, ...] | None, tuple[int, int] | None]:
    """(ascending times, (interval, aligned to) in ms); both None: on commit. mz_now() is the time of creation."""
    if schedule is None or (not schedule.at and not schedule.at_creation and not schedule.every):
        return None, None
    times = [_time(e, now, "REFRESH AT") for e in schedule.at]
    if schedule.at_creation:
        times.append(now)
    every: tuple[int, int] | None = None
    for interval, aligned in schedule.every:
        datum = eval_constant(interval)
        assert isinstance(datum, Interval)
        ms = datum.days * DAY_MS + datum.us // 1000
        if datum.months:
            raise SqlError("22023", "REFRESH interval must not involve units larger than days")
        if ms <= 0:
            raise SqlError("22023", "REFRESH interval must be positive")
        every = (ms, now if aligned is None else _time(aligned, now, "REFRESH EVERY ... ALIGNED TO"))
    return (tuple(sorted(times)) if times else None), every


def _time(e: Scalar, now: Timestamp, what: str) -> Timestamp:
    def value(u: Unmaterializable) -> Scalar | None:
        return mz_now_literal(now) if u.func == "mz_now" else None

    bad = SqlError(
        "22023",
        f"{what} argument must be an expression that can be simplified and/or cast to a constant whose type is mz_timestamp",
    )
    try:
        datum = eval_constant(substitute_scalar(e, value))
    except (SqlError, AssertionError, KeyError):
        raise bad from None
    if not isinstance(datum, int):
        raise bad
    return datum
