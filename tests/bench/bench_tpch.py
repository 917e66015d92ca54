"""TPC-H views hydrated by the engine, each beside DuckDB's one-shot time with one thread, and the longest slices.

    ./dev bench tpch      MZLITE_BENCH_SCALE=0.1 (default)

Planned and optimized as the adapter does, without processes or storage: what is measured is the engine. Slices are
measured in CPU time, so that a busy machine does not lengthen them. Both answers are compared.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from adapter.sql.parse import parse_statements
from adapter.transform import optimize_dataflow
from compute.plan.description import DataflowDescription, IndexDesc, IndexExport, SourceImport
from compute.plan.lower import lower
from compute.render.context import RenderContext
from compute.render.dataflow import Dataflow
from mzlite.expr import relation as r
from mzlite.expr.typecheck import typ
from mzlite.repr.column import Column
from mzlite.repr.fixed import FixedColumn
from mzlite.repr.numeric import NumericColumn
from mzlite.repr.types import DATE, INT4, TEXT, ColumnType, Layout, RelationDesc, RelationType, ScalarType
from mzlite.repr.updates import Updates
from mzlite.repr.var import VarColumn
from tests.oracle.harness import exported, read
from tests.support.sql_planner import Tables, plan_sql
from tests.support.tpch import QUERIES, SCHEMA, generate

MONEY = ScalarType("numeric", precision=15, scale=2)
TYPES = {"int": INT4, "text": TEXT, "numeric(15, 2)": MONEY, "date": DATE}
IDS: Any = {table: f"u{i + 1}" for i, table in enumerate(SCHEMA)}


def columns_of(table: str) -> list[tuple[str, ScalarType]]:
    parts = SCHEMA[table].replace("numeric(15, 2)", "money").split(", ")
    pairs = [p.split() for p in parts]
    return [(name, TYPES["numeric(15, 2)" if kind == "money" else kind]) for name, kind in pairs]


def relation_of(table: str) -> RelationType:
    return RelationType(tuple(ColumnType(t, False) for _, t in columns_of(table)))


CATALOG = Tables({t: (IDS[t], RelationDesc(tuple(n for n, _ in columns_of(t)), relation_of(t))) for t in SCHEMA})


def load(db: Any, table: str) -> Updates:
    """A DuckDB table as updates at time 0."""
    columns: list[Column] = []
    for name, t in columns_of(table):
        if t is MONEY:
            values = db.execute(f"SELECT CAST({name} * 100 AS BIGINT) FROM {table}").fetchnumpy()
            columns.append(NumericColumn(np.asarray(next(iter(values.values())), np.int64), 2))
        elif t is DATE:
            values = db.execute(f"SELECT CAST({name} - DATE '1970-01-01' AS INTEGER) FROM {table}").fetchnumpy()
            columns.append(FixedColumn(np.asarray(next(iter(values.values())), np.int32), None, Layout.DATE))
        elif t is INT4:
            values = db.execute(f"SELECT {name} FROM {table}").fetchnumpy()
            columns.append(FixedColumn(np.asarray(values[name], np.int32)))
        else:
            arrow = db.execute(f"SELECT {name} FROM {table}").to_arrow_table()
            columns.append(VarColumn.from_arrow(arrow.column(0)))
    n = len(columns[0])
    return Updates(tuple(columns), np.zeros(n, np.uint64), np.ones(n, np.int64))


def view_of(query: str) -> tuple[Dataflow, RelationType]:
    parse_statements(query)
    mir, planned = plan_sql(query, CATALOG)
    del planned
    plan = optimize_dataflow(mir, {})
    t = typ(plan)
    used = r.global_ids(plan)
    sources: Any = {id: SourceImport(table, relation_of(table)) for table, id in IDS.items() if id in used}
    objects: Any = lower([("u98", plan)], {})  # type: ignore[list-item]
    exports: Any = {"u99": IndexExport(IndexDesc("u98", ()), t)}  # type: ignore[arg-type]
    return Dataflow(DataflowDescription("v", sources, {}, objects, exports, {}, 0), RenderContext()), t


def hydrate(dataflow: Dataflow, tables: dict[str, Updates]) -> tuple[float, list[float]]:
    """(seconds, CPU milliseconds of each slice)"""
    for table, id in IDS.items():
        source: Any = dataflow.inputs.get(id)
        if source is not None:
            source.push(tables[table], 1)
    slices = []
    start = time.perf_counter()
    while True:
        before = time.process_time()
        more = dataflow.step()
        slices.append((time.process_time() - before) * 1e3)
        if not more:
            return time.perf_counter() - start, slices


def comparable(rows: Counter[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    out: Counter[tuple[Any, ...]] = Counter()
    for row, n in rows.items():
        out[tuple(round(float(v), 2) if not isinstance(v, str) and v is not None else v for v in row)] += n
    return out


def dates_as_days(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(v.toordinal() - 719_163 if hasattr(v, "toordinal") else v for v in row)


def main() -> None:
    scale = float(os.environ.get("MZLITE_BENCH_SCALE", "0.1"))
    directory = generate(Path(tempfile.gettempdir()) / f"tpch-{scale}", scale)
    db = duckdb.connect(config={"threads": 1})
    tables = {}
    for table, columns in SCHEMA.items():
        db.execute(f"CREATE TABLE {table} ({columns})")
        db.execute(f"COPY {table} FROM '{directory / table}.csv' (HEADER)")
        tables[table] = load(db, table)
    print(f"scale factor {scale}: {sum(map(len, tables.values()))} rows; DuckDB {duckdb.__version__}, one thread")
    ratios, slices = [], []
    for number, query in QUERIES.items():
        dataflow, t = view_of(query)
        engine, own = hydrate(dataflow, tables)
        start = time.perf_counter()
        expected = Counter(dates_as_days(row) for row in db.execute(query).fetchall())
        other = time.perf_counter() - start
        source = exported(dataflow, "u99").source
        right = comparable(read(source.chains(), source.layout, t, 0)) == comparable(expected)
        ratios.append(engine / other)
        slices += own
        print(
            f"  Q{number:<2} engine {engine * 1e3:6.0f} ms, DuckDB {other * 1e3:5.0f} ms, ratio {engine / other:5.1f}, "
            f"longest slice {max(own):4.1f} ms, state {dataflow.nbytes / 1e6:5.1f} MB{'' if right else '  ANSWERS DIFFER'}"
        )
    print(f"ratio: median {np.median(ratios):.1f}, largest {max(ratios):.1f}")
    p50, p99, p999, longest = np.percentile(slices, [50, 99, 99.9, 100])
    print(f"{len(slices)} slices: p50 {p50:.1f} ms, p99 {p99:.1f} ms, p99.9 {p999:.1f} ms, longest {longest:.1f} ms")


if __name__ == "__main__":
    main()
