"""The check behind the SQL fuzzer: a random query's plan gives DuckDB's rows, and so does it after every rule."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

from adapter.sequencer.interpret import TooMuch
from adapter.transform.context import IndexInfo
from mzlite.expr.scalar import Ref
from mzlite.repr.errors import SqlError
from mzlite.repr.ids import GlobalId
from mzlite.repr.types import INT4, ColumnType, RelationDesc, RelationType
from mzlite.repr.updates import updates_from_rows
from tests.support.plan_check import check_prefixes, rows_of
from tests.support.random_sql import TABLES, RandomSql, Row, random_rows
from tests.support.sql_planner import Tables, plan_sql

_IDS = {name: GlobalId(f"u{i + 1}") for i, name in enumerate(TABLES)}


def _desc(name: str) -> RelationDesc:
    columns = TABLES[name]
    key = ((0,),) if name == "s" else ()
    types = tuple(ColumnType(INT4, nullable=not (name == "s" and i == 0)) for i in range(len(columns)))
    return RelationDesc(columns, RelationType(types, key))


CATALOG = Tables({name: (_IDS[name], _desc(name)) for name in TABLES})
INDEXES = {
    _IDS["u"]: (IndexInfo(GlobalId("u10"), (Ref(0),)),),
    _IDS["s"]: (IndexInfo(GlobalId("u11"), (Ref(0),)), IndexInfo(GlobalId("u12"), (Ref(1),))),
}


@cache
def _duckdb() -> Any:
    import duckdb

    return duckdb.connect(":memory:", config={"threads": 1})


def duckdb_rows(text: str, tables: dict[str, list[Row]]) -> list[tuple[object, ...]] | None:
    """None: DuckDB cannot say."""
    import duckdb

    db = _duckdb()
    for name, rows in tables.items():
        db.execute(f"CREATE OR REPLACE TABLE {name} ({', '.join(f'{c} INTEGER' for c in TABLES[name])})")
        if rows:
            db.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' for _ in TABLES[name])})", rows)
    try:
        found = db.execute(text).fetchall()
    except duckdb.Error:
        return None
    return sorted((tuple(None if v is None else int(v) for v in row) for row in found), key=repr)


def check_seed(seed: int) -> None:
    """One random query; planned, lowered and optimized."""
    rng = random.Random(seed)
    tables = random_rows(rng)
    text = RandomSql(rng).statement()
    env = {_IDS[name]: updates_from_rows([INT4] * len(TABLES[name]), rows, 0) for name, rows in tables.items()}
    try:
        mir, _ = plan_sql(text, CATALOG)
        want = rows_of(mir, env.__getitem__)
    except TooMuch:
        return
    except SqlError as error:
        if error.sqlstate == "0A000" or duckdb_rows(text, tables) is None:
            return
        raise AssertionError(f"{text}\n{tables}\nfails: {error}") from error
    expected = duckdb_rows(text, tables)
    if expected is not None:
        flat = sorted((tuple(_number(v) for v in row[:-1]) for row in want for _ in range(int(str(row[-1])))), key=repr)
        assert flat == expected, f"{text}\n{tables}\nwant {expected}\ngot  {flat}"
    try:
        check_prefixes(mir, env.__getitem__, INDEXES, want, single_time=seed % 2 == 1)
    except AssertionError as error:
        raise AssertionError(f"{text}\n{tables}\n{error}") from error


def _number(v: object) -> object:
    return v if v is None else int(str(v))
