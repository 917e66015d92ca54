"""Text, binary and order against a PostgreSQL server, on the forms where Materialize and PostgreSQL agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mzlite.repr import types as t
from mzlite.repr.binary import decode_param, encode_column
from mzlite.repr.datum import ArrayDatum, Interval, column_from_datums
from mzlite.repr.ranges import canonical_range
from mzlite.repr.text import format_column, parse_datum
from mzlite.repr.typenames import oid_of, type_name
from tests.property.repr_strategies import SCALARS, TEXT, json_values
from tests.property.test_repr_columns import plain
from tests.support.postgres import postgres_dsn, postgres_server  # noqa: F401

SETTINGS = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
NO_NUL = TEXT.filter(lambda s: "\x00" not in s)
# Where PostgreSQL's own range or printing is narrower than the type's.
INTERVALS = st.builds(
    Interval, st.integers(-10_000, 10_000), st.integers(-100_000, 100_000), st.integers(-(10**15), 10**15)
)
STAMPS = st.integers(-200_000_000_000_000_000, 9_000_000_000_000_000)
NUMERICS = st.builds(lambda m, s: Decimal(f"{m}E-{s}"), st.integers(-(10**38), 10**38), st.integers(0, 30))


def ranges(subtype: t.ScalarType, bounds: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    def make(pair: list[Any], lower_inc: bool, upper_inc: bool) -> Any:
        lower, upper = pair
        if lower is not None and upper is not None and lower > upper:
            lower, upper = upper, lower
        return canonical_range(subtype, lower, upper, lower_inc, upper_inc)

    pair = st.lists(st.one_of(st.none(), bounds), min_size=2, max_size=2)
    return st.builds(make, pair, st.booleans(), st.booleans())


def without_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\x00" not in value
    if isinstance(value, list):
        return all(map(without_nul, value))
    if isinstance(value, dict):
        return all(without_nul(k) and without_nul(v) for k, v in value.items())
    return not isinstance(value, Decimal) or -30 <= value.adjusted() < 38


def one_key(value: Any) -> bool:
    """Key order differs (there by length first), so objects of one key only."""
    if isinstance(value, list):
        return all(map(one_key, value))
    return not isinstance(value, dict) or (len(value) <= 1 and all(map(one_key, value.values())))


CASES: dict[t.ScalarType, st.SearchStrategy[Any]] = {
    t.BOOL: st.booleans(),
    t.INT2: SCALARS[t.INT2],
    t.INT4: SCALARS[t.INT4],
    t.INT8: SCALARS[t.INT8],
    t.NUMERIC: NUMERICS,
    t.TEXT: NO_NUL,
    t.BYTEA: st.binary(max_size=20),
    t.UUID: SCALARS[t.UUID],
    t.DATE: st.integers(-2_000_000, 2_000_000),
    t.TIME: SCALARS[t.TIME],
    t.TIMESTAMP: STAMPS,
    t.TIMESTAMPTZ: STAMPS,
    t.INTERVAL: INTERVALS,
    t.JSONB: json_values().filter(without_nul).filter(one_key),
    t.array_of(t.INT4): st.lists(st.one_of(st.none(), SCALARS[t.INT4]), max_size=4).map(ArrayDatum.of),
    t.array_of(t.TEXT): st.lists(st.one_of(st.none(), NO_NUL), max_size=4).map(ArrayDatum.of),
    t.range_of(t.INT4): ranges(t.INT4, st.integers(-1000, 1000)),
    t.range_of(t.NUMERIC): ranges(t.NUMERIC, NUMERICS),
    t.range_of(t.DATE): ranges(t.DATE, st.integers(-10_000, 10_000)),
}


@pytest.fixture(scope="module")
def postgres(postgres_server: str) -> Iterator[psycopg.Connection[Any]]:  # noqa: F811
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute("SET TIME ZONE 'UTC'")
        connection.execute("SET intervalstyle = 'postgres'")
        yield connection


def pg(postgres: psycopg.Connection[Any], typ: t.ScalarType, texts: Sequence[bytes], binary: bool) -> list[bytes]:
    """The texts read as `typ` by PostgreSQL and sent back raw, in order."""
    name = type_name(typ)
    out: list[bytes] = []
    with postgres.cursor(binary=binary) as cursor:
        for text in texts:
            cursor.execute(f"SELECT %s::text::{name}".encode(), (text.decode(),))
            assert cursor.pgresult is not None
            value = cursor.pgresult.get_value(0, 0)
            assert value is not None
            out.append(value)
    return out


@pytest.mark.parametrize("typ", CASES, ids=type_name)
@SETTINGS
@given(data=st.data())
def test_postgres_reads_and_sends_what_we_do(
    postgres: psycopg.Connection[Any], typ: t.ScalarType, data: st.DataObject
) -> None:
    values = data.draw(st.lists(CASES[typ], min_size=1, max_size=5))
    col = column_from_datums(typ, values)
    texts = [x for x in format_column(typ, col) if x is not None]
    if typ.kind == "interval":
        # The words differ (mons for months, no plus after years); what they mean must not.
        back = pg(postgres, typ, texts, False)
        assert [parse_datum(typ, b.decode()) for b in back] == values
    elif typ.kind == "numeric" or typ.element == t.NUMERIC:
        back = pg(postgres, typ, texts, False)
        assert plain([parse_datum(typ, b.decode()) for b in back]) == plain(
            [parse_datum(typ, x.decode()) for x in texts]
        )
    else:
        assert pg(postgres, typ, texts, False) == texts
    sent = pg(postgres, typ, texts, True)
    if typ.kind != "numeric" and typ.element != t.NUMERIC:
        assert sent == encode_column(typ, col)
    assert plain([decode_param(typ, b) for b in sent]) == plain([decode_param(typ, b) for b in encode_column(typ, col)])  # type: ignore[arg-type]
    assert oid_of(typ) == postgres.execute("SELECT %s::regtype::oid", (type_name(typ),)).fetchone()[0]  # type: ignore[index]


@pytest.mark.parametrize("typ", [c for c in CASES if c not in (t.TEXT, t.JSONB, t.array_of(t.TEXT))], ids=type_name)
@SETTINGS
@given(data=st.data())
def test_postgres_orders_as_we_do(postgres: psycopg.Connection[Any], typ: t.ScalarType, data: st.DataObject) -> None:
    values = data.draw(st.lists(CASES[typ], min_size=2, max_size=6))
    col = column_from_datums(typ, values)
    texts = [x.decode() for x in format_column(typ, col) if x is not None]
    name = type_name(typ)
    ranks = postgres.execute(
        f"SELECT array_agg(r ORDER BY i) FROM (SELECT i, dense_rank() OVER (ORDER BY v::{name}) AS r"
        " FROM unnest(%s::text[]) WITH ORDINALITY AS u(v, i)) s",
        (texts,),
    ).fetchone()
    assert ranks is not None
    codes = col.order_codes().tolist()
    dense = {code: i + 1 for i, code in enumerate(sorted(set(codes)))}
    assert [dense[c] for c in codes] == ranks[0]
