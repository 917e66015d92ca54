"""Which time a read is at: a pure function of the facts, and the facts themselves, printed by EXPLAIN TIMESTAMP.

A read is correct at any t with `since <= t`, and is answered without waiting iff `t < upper`. Among the correct times:

    lower bound = since ∨ AS OF ∨ (oracle time, when strict serializable)
    strict serializable: the lower bound (so the oracle's time): sees every acknowledged write, waits for upper
    serializable:        the freshest time that needs no waiting, upper - 1, if it is not below the lower bound

An AS OF is exact: it is also the upper bound. AS OF AT LEAST is a lower bound only.
Source: Materialize's timestamp selection.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from mzlite.repr.errors import SqlError
from mzlite.repr.ids import GlobalId
from mzlite.repr.timestamp import MAX, Frontier, Timestamp, join, meet

STRICT_SERIALIZABLE = "strict serializable"
STRONG_SESSION_SERIALIZABLE = "strong session serializable"
SERIALIZABLE = "serializable"


@dataclass(frozen=True, slots=True)
class ReadWhen:
    """as_of None: immediately. at_least: as_of is only a lower bound. freshest_table_write: the read of a read-then-write."""

    as_of: Timestamp | None = None
    at_least: bool = False
    freshest_table_write: bool = False


IMMEDIATELY = ReadWhen()


@dataclass(frozen=True, slots=True)
class Facts:
    """since: join over the inputs (None: unreadable). upper: meet over the inputs (None: complete).

    oracle_ts: None when nothing read depends on time. session_ts: a lower bound from this session's earlier reads and
    writes (strong session serializable). inputs: (since, upper) by collection, for printing only.
    """

    since: Frontier
    upper: Frontier
    isolation: str
    when: ReadWhen = IMMEDIATELY
    oracle_ts: Timestamp | None = None
    session_ts: Timestamp | None = None
    inputs: Mapping[GlobalId, tuple[Frontier, Frontier]] = field(default_factory=dict)
    names: Mapping[GlobalId, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Determination:
    timestamp: Timestamp
    facts: Facts

    @property
    def largest_not_in_advance_of_upper(self) -> Timestamp:
        return largest_not_in_advance_of_upper(self.facts.upper)

    @property
    def responds_immediately(self) -> bool:
        upper = self.facts.upper
        return upper is None or self.timestamp < upper


def combine(frontiers: Mapping[GlobalId, tuple[Frontier, Frontier]]) -> tuple[Frontier, Frontier]:
    """(join of sinces, meet of uppers) over inputs; nothing read: (0, empty)."""
    since: Frontier = 0
    upper: Frontier = None
    for s, u in frontiers.values():
        since = join(since, s)
        upper = meet(upper, u)
    return since, upper


def largest_not_in_advance_of_upper(upper: Frontier) -> Timestamp:
    """upper - 1: the freshest complete time. An empty upper is complete for ever: MAX."""
    if upper is None:
        return MAX
    return upper - 1 if upper > 0 else 0


def determine(facts: Facts) -> Determination:
    """The read's timestamp. SqlError when no time is valid."""
    since = facts.since
    when = facts.when
    if since is None:
        raise SqlError("XX000", "query depends on a collection that cannot be read", detail="its since is empty")
    lower = since
    if when.as_of is not None and when.as_of > lower:
        lower = when.as_of
    exact = when.as_of is not None and not when.at_least
    if exact:
        assert when.as_of is not None
        if when.as_of < since:
            raise _impossible(facts)
        return Determination(when.as_of, facts)
    linearize = facts.isolation == STRICT_SERIALIZABLE or when.freshest_table_write
    if facts.oracle_ts is not None and linearize and facts.oracle_ts > lower:
        lower = facts.oracle_ts
    if facts.session_ts is not None and facts.session_ts > lower:
        lower = facts.session_ts
    if when.as_of is None and (not linearize or facts.oracle_ts is None):
        return Determination(max(lower, largest_not_in_advance_of_upper(facts.upper)), facts)
    return Determination(lower, facts)


def _impossible(facts: Facts) -> SqlError:
    lines = [f"Query time: {facts.when.as_of}", f"Read frontier: {_frontier(facts.since)}"]
    for id, (since, upper) in facts.inputs.items():
        name = facts.names.get(id, id)
        lines.append(f"{name}: read frontier {_frontier(since)}, write frontier {_frontier(upper)}")
    return SqlError(
        "22023",
        "could not find a valid timestamp for the query",
        detail="\n".join(lines),
        hint="AS OF must not be before the read frontier",
    )


def _frontier(f: Frontier) -> str:
    return f"[{format_timestamp(f)}]" if f is not None else "[]"


def format_timestamp(ts: Timestamp) -> str:
    if ts >= 253_402_300_800_000:
        return str(ts)
    return f"{ts:>20} ({datetime.fromtimestamp(ts / 1000, UTC):%Y-%m-%d %H:%M:%S}.{ts % 1000:03d})".strip()


def explain(d: Determination) -> str:
    """EXPLAIN TIMESTAMP's text."""
    f = d.facts
    timeline = "Some(EpochMilliseconds)" if f.oracle_ts is not None else "None"
    lines = [f"                query timestamp: {format_timestamp(d.timestamp)}"]
    if f.oracle_ts is not None:
        lines.append(f"          oracle read timestamp: {format_timestamp(f.oracle_ts)}")
    lines += [
        f"largest not in advance of upper: {format_timestamp(d.largest_not_in_advance_of_upper)}",
        f"                          upper: {_frontier(f.upper)}",
        f"                          since: {_frontier(f.since)}",
        f"        can respond immediately: {'true' if d.responds_immediately else 'false'}",
        f"                       timeline: {timeline}",
    ]
    for id, (since, upper) in f.inputs.items():
        lines += [
            "",
            f"source {f.names.get(id, id)} ({id}, storage):",
            f"                  read frontier: {_frontier(since)}",
            f"                 write frontier: {_frontier(upper)}",
        ]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class TimeDomain:
    """The relations a read transaction may read, fixed by its first read, and the one time they are all read at."""

    timestamp: Timestamp
    ids: frozenset[GlobalId]
