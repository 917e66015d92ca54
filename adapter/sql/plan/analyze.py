"""EXPLAIN ANALYZE: time and memory by operator of a maintained object, as a query over mz_introspection.

    EXPLAIN ANALYZE CPU, MEMORY FOR INDEX i          one row per operator of its plan, as EXPLAIN PHYSICAL PLAN shows them
    EXPLAIN ANALYZE CLUSTER CPU                      one row per object of the session's cluster
    … WITH SKEW                                      per worker, with its share of the average
    … AS SQL                                         the query itself

Source: Materialize's `EXPLAIN ANALYZE`, which rewrites to SQL as well.
"""

from __future__ import annotations

from adapter.sql import plans as p
from adapter.sql import statements as st
from adapter.sql.catalog_view import CatalogItem
from adapter.sql.plan.context import PlanContext
from adapter.sql.plan.query import plan_query
from adapter.sql.plan.reads import finish_select
from adapter.sql.unparse import string
from mzlite.repr.errors import SqlError, unsupported

_KINDS = {"index": "index", "materialized view": "materialized-view"}


def plan_analyze(ctx: PlanContext, statement: st.Explain) -> p.Plan:
    from adapter.sql.parse import parse_statements

    item = None
    if statement.target is not None:
        kind, name = statement.target
        item = ctx.resolve(name, statement.pos)
        if item.kind != _KINDS.get(kind):
            raise SqlError("42809", f"expected {item.name} to be {'an' if kind == 'index' else 'a'} {kind}")
    text = analyze_sql(statement.what, item, "skew" in statement.options)
    if statement.format == "sql":
        text = f'SELECT {string(text)} AS "SQL"'
    elif statement.format not in (None, "text"):
        raise unsupported(f"EXPLAIN ANALYZE AS {statement.format.upper()}")
    (parsed,) = parse_statements(text)
    assert isinstance(parsed, st.SelectStatement)
    return finish_select(ctx, plan_query(ctx, parsed.query, []))


def analyze_sql(what: tuple[str, ...], item: CatalogItem | None, skew: bool) -> str:
    """what: cpu, memory. item None: the cluster."""
    if "hints" in what:
        raise unsupported("EXPLAIN ANALYZE HINTS")
    key: tuple[str, ...]
    measures = list(dict.fromkeys(what))
    # Measures are summed apart: joined together, each would be counted once per row of the other.
    sums = {m: _sums(m, skew) for m in measures}
    if item is None:
        columns = ["m.name AS object", "m.global_id AS global_id"]
        base = "mz_introspection.mz_mappable_objects m"
        key, order = ("global_id",), "object"
    else:
        ids = ", ".join(string(i) for i in dict.fromkeys((item.id, item.index_on)) if i is not None)
        columns = ["repeat(' ', m.nesting::int8::int4 * 2) || m.operator AS operator"]
        base = f"(SELECT * FROM mz_introspection.mz_lir_mapping WHERE global_id IN ({ids})) m"
        key, order = ("global_id", "lir_id"), "m.lir_id"
    text = base
    for m in measures:
        on = " AND ".join(f"{m}.{k} = m.{k}" for k in key)
        text += f" LEFT JOIN ({_measured(sums[m][0], key, skew)}) {m} ON {on}"
        if skew and m != measures[0]:
            text += f" AND {m}.worker_id = {measures[0]}.worker_id"
    if skew:
        columns.append(f"{measures[0]}.worker_id AS worker_id")
        order += ", worker_id"
    for m in measures:
        columns += [f"{expression} AS {name}" for expression, name in sums[m][1]]
    return f"SELECT {', '.join(columns)} FROM {text} ORDER BY {order}"


_ELAPSED = "({} / 1000)::float8 * '1 microsecond'::interval"


def _sums(measure: str, skew: bool) -> tuple[str, list[tuple[str, str]]]:
    """(source and its sums, the columns shown over them)."""
    suffix = "_per_worker" if skew else ""
    if measure == "cpu":
        source = f"mz_introspection.mz_scheduling_elapsed{suffix} s ON l.operator_id_start <= s.id AND s.id < l.operator_id_end"
        if not skew:
            return f"sum(s.elapsed_ns) AS total|{source}", [(_ELAPSED.format("cpu.total"), "total_elapsed")]
        return f"sum(s.elapsed_ns) AS own|{source}", [
            ("round((cpu.own * cpu.workers / nullif(cpu.total, 0))::numeric, 2)", "cpu_ratio"),
            (_ELAPSED.format("cpu.own"), "worker_elapsed"),
            (_ELAPSED.format("(cpu.total / cpu.workers)"), "avg_elapsed"),
            (_ELAPSED.format("cpu.total"), "total_elapsed"),
        ]
    source = (
        f"mz_introspection.mz_arrangement_sizes{suffix} s "
        "ON l.operator_id_start <= s.operator_id AND s.operator_id < l.operator_id_end"
    )
    if not skew:
        return f"sum(s.size) AS total, sum(s.records) AS records|{source}", [
            ("pg_size_pretty(memory.total::int8)", "total_memory"),
            ("memory.records", "total_records"),
        ]
    return f"sum(s.size) AS own, sum(s.records) AS records|{source}", [
        ("round((memory.own * memory.workers / nullif(memory.total, 0))::numeric, 2)", "memory_ratio"),
        ("pg_size_pretty(memory.own::int8)", "worker_memory"),
        ("pg_size_pretty((memory.total / memory.workers)::int8)", "avg_memory"),
        ("pg_size_pretty(memory.total::int8)", "total_memory"),
        ("memory.records", "worker_records"),
    ]


def _measured(sums: str, key: tuple[str, ...], skew: bool) -> str:
    """Sums by key; with skew by worker as well, beside the total over workers and their number."""
    aggregates, _, source = sums.partition("|")
    keys = ", ".join(f"l.{k}" for k in key)
    if not skew:
        return f"SELECT {keys}, {aggregates} FROM mz_introspection.mz_lir_mapping l LEFT JOIN {source} GROUP BY {keys}"
    per_worker = (
        f"SELECT {keys}, s.worker_id, {aggregates} FROM mz_introspection.mz_lir_mapping l JOIN {source} "
        f"GROUP BY {keys}, s.worker_id"
    )
    plain = ", ".join(key)
    totals = f"SELECT {plain}, sum(own) AS total, count(*) AS workers FROM ({per_worker}) a GROUP BY {plain}"
    on = " AND ".join(f"t.{k} = w.{k}" for k in key)
    return f"SELECT w.*, t.total, t.workers FROM ({per_worker}) w JOIN ({totals}) t ON {on}"
