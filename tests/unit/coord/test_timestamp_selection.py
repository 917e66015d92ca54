"""Timestamp selection: which of the correct times is chosen, and what is refused."""

from __future__ import annotations

import pytest

from adapter.coord.timestamp_selection import (
    SERIALIZABLE,
    STRICT_SERIALIZABLE,
    Facts,
    ReadWhen,
    combine,
    determine,
    explain,
)
from mzlite.repr.errors import SqlError
from mzlite.repr.ids import user
from mzlite.repr.timestamp import MAX


def test_strict_serializable_reads_at_the_oracle_and_waits() -> None:
    d = determine(Facts(since=10, upper=20, isolation=STRICT_SERIALIZABLE, oracle_ts=50))
    assert d.timestamp == 50
    assert not d.responds_immediately


def test_serializable_reads_the_freshest_time_that_needs_no_waiting() -> None:
    d = determine(Facts(since=10, upper=20, isolation=SERIALIZABLE, oracle_ts=50))
    assert d.timestamp == 19
    assert d.responds_immediately


def test_serializable_never_reads_before_since() -> None:
    assert determine(Facts(since=30, upper=20, isolation=SERIALIZABLE, oracle_ts=50)).timestamp == 30


def test_as_of_is_exact_and_at_least_is_not() -> None:
    exact = Facts(since=10, upper=20, isolation=STRICT_SERIALIZABLE, oracle_ts=50, when=ReadWhen(12))
    assert determine(exact).timestamp == 12
    at_least = Facts(since=10, upper=20, isolation=STRICT_SERIALIZABLE, oracle_ts=50, when=ReadWhen(12, at_least=True))
    assert determine(at_least).timestamp == 50
    later = Facts(since=10, upper=20, isolation=STRICT_SERIALIZABLE, oracle_ts=50, when=ReadWhen(70, at_least=True))
    assert determine(later).timestamp == 70


def test_as_of_before_since_is_refused_with_the_constraints() -> None:
    facts = Facts(10, 20, STRICT_SERIALIZABLE, ReadWhen(9), 50, inputs={user(1): (10, 20)}, names={user(1): "t"})
    with pytest.raises(SqlError, match="could not find a valid timestamp") as caught:
        determine(facts)
    assert "t: read frontier" in (caught.value.detail or "")


def test_what_does_not_depend_on_time_is_read_at_its_end() -> None:
    since, upper = combine({})
    assert determine(Facts(since, upper, STRICT_SERIALIZABLE)).timestamp == MAX
    sealed = combine({user(1): (5, None)})
    assert determine(Facts(*sealed, STRICT_SERIALIZABLE)).timestamp == MAX


def test_a_session_does_not_go_back_in_time() -> None:
    facts = Facts(10, 20, "strong session serializable", oracle_ts=50, session_ts=40)
    assert determine(facts).timestamp == 40


def test_inputs_combine_to_the_latest_since_and_the_earliest_upper() -> None:
    assert combine({user(1): (5, 40), user(2): (7, 30), user(3): (1, None)}) == (7, 30)


def test_explain_prints_the_choice() -> None:
    text = explain(determine(Facts(10, 20, SERIALIZABLE, oracle_ts=50, inputs={user(1): (10, 20)})))
    assert "query timestamp: 19 " in text
    assert "can respond immediately: true" in text
    assert "source u1" in text
