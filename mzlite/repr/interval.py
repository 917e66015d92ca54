"""IntervalColumn: (months, days, microseconds), compared by PostgreSQL's normalisation.

A month counts 30 days and a day 24 hours for equality, hashing and order only: `1 day` and `24:00:00` are one group
though they print differently. The normal form is the pair (whole days, microseconds within the day), because the total
in microseconds does not fit 64 bits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mzlite.repr import hashing
from mzlite.repr.column import I64, U64, BoolArray, Column
from mzlite.repr.fixed import FixedColumn, equal_valid, mask_nulls, null_keys
from mzlite.repr.types import Layout

INTERVAL_DTYPE = np.dtype([("months", "<i4"), ("days", "<i4"), ("us", "<i8")])
DAY_US = 86_400_000_000
# Whole days in this range times DAY_US fit int64 with room for the remainder.
_CODE_DAYS = 2**26


class Interval(NamedTuple):
    """The datum of an interval."""

    months: int
    days: int
    us: int

    def normal(self) -> tuple[int, int]:
        """(whole days, microseconds within the day): equal, and ordered, as SQL compares."""
        extra, rest = divmod(self.us, DAY_US)
        return self.months * 30 + self.days + extra, rest


class IntervalColumn(FixedColumn):
    """values: INTERVAL_DTYPE[n]."""

    __slots__ = ()

    def __init__(self, values: NDArray[Any], valid: BoolArray | None = None) -> None:
        super().__init__(values, valid, Layout.INTERVAL)

    @classmethod
    def from_parts(
        cls, months: NDArray[Any], days: NDArray[Any], us: NDArray[Any], valid: BoolArray | None = None
    ) -> IntervalColumn:
        values = np.empty(len(us), INTERVAL_DTYPE)
        values["months"] = months
        values["days"] = days
        values["us"] = us
        return cls(values, valid)

    @property
    def months(self) -> NDArray[np.int32]:
        return self.values["months"]

    @property
    def days(self) -> NDArray[np.int32]:
        return self.values["days"]

    @property
    def us(self) -> I64:
        return self.values["us"]

    def with_values(self, values: NDArray[Any], valid: BoolArray | None) -> IntervalColumn:
        return IntervalColumn(values, valid)

    def normal(self) -> tuple[I64, I64]:
        """(whole days, microseconds within the day), each int64[n]."""
        us = self.values["us"]
        extra = us // DAY_US
        return self.values["months"].astype(np.int64) * 30 + self.values["days"] + extra, us - extra * DAY_US

    def hash(self) -> U64:
        days, rest = self.normal()
        return mask_nulls(hashing.combine(days.view(np.uint64), rest.view(np.uint64)), self.valid)

    def equals(self, other: Column) -> BoolArray:
        assert isinstance(other, IntervalColumn), (self, other)
        days, rest = self.normal()
        other_days, other_rest = other.normal()
        return equal_valid((days == other_days) & (rest == other_rest), self.valid, other.valid)

    def keys(self) -> list[Any]:
        return null_keys([Interval(*v).normal() for v in self.values.tolist()], self.valid)

    def order_codes(self) -> I64:
        days, rest = self.normal()
        if len(days) == 0 or (int(days.min()) > -_CODE_DAYS and int(days.max()) < _CODE_DAYS):
            return days * DAY_US + rest
        order = np.lexsort((rest, days))
        new = (np.diff(days[order]) != 0) | (np.diff(rest[order]) != 0)
        codes = np.empty(len(days), np.int64)
        codes[order] = np.concatenate([[0], np.cumsum(new)])
        return codes

    def buffers(self) -> tuple[tuple[Any, ...], list[NDArray[Any]]]:
        if self.valid is None:
            return ("i", 0), [self.values]
        return ("i", 1), [self.values, self.valid]
