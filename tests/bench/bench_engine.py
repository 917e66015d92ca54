"""The engine alone, without SQL, storage or sockets. Each arm prints rows, percentiles and a ratio to its baseline.

    python -m tests.bench.bench_engine [hydrate pathway update extremes memory recursion]

pathway     the same join and sums in Pathway, where that package is installed (`pip install pathway`)
hydrate     SELECT g, sum(v), count(*) FROM a JOIN b USING (k) GROUP BY g, against the same job in bare numpy calls
update      one row into that view, at a small and a large state
extremes    a retraction of the maximum of a group of a million rows; a delete of the first row of a top 10
memory      bytes held per arranged row against the columns' bytes
recursion   reachability: adding and removing one edge against computing it
"""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compute.plan.description import DataflowDescription, IndexDesc, IndexExport, SourceImport
from compute.plan.lower import lower
from compute.render.context import RenderContext
from compute.render.dataflow import Dataflow
from compute.render.exports import IndexExport as Rendered
from mzlite.expr import relation as r
from mzlite.expr.scalar import Aggregate, ColumnOrder, Literal, Ref
from mzlite.expr.typecheck import typ
from mzlite.repr.datum import encode_datum
from mzlite.repr.fixed import FixedColumn
from mzlite.repr.types import BOOL, INT4, INT8, ColumnType, RelationType
from mzlite.repr.updates import Updates

Ints = NDArray[Any]
TRUE = Literal(encode_datum(BOOL, True), BOOL)
COUNT = Aggregate("count", (TRUE,), INT8)


def relation(*types: Any) -> RelationType:
    return RelationType(tuple(ColumnType(t, False) for t in types))


def dataflow(plan: r.Mir, sources: dict[str, RelationType]) -> Dataflow:
    t = typ(plan)
    objects: Any = lower([("u9", plan)], {})  # type: ignore[list-item]
    imports: Any = {id: SourceImport(id, s) for id, s in sources.items()}
    exports: Any = {"u10": IndexExport(IndexDesc("u9", (Ref(0),)), t)}  # type: ignore[arg-type]
    return Dataflow(DataflowDescription("bench", imports, {}, objects, exports, {}, 0), RenderContext())


def rows(*columns: Ints, time: int = 0, diff: int = 1) -> Updates:
    n = len(columns[0])
    return Updates(tuple(FixedColumn(c) for c in columns), np.full(n, time, np.uint64), np.full(n, diff, np.int64))


def run(d: Dataflow) -> list[float]:
    """Step to the end; seconds of each slice."""
    slices = []
    while True:
        start = time.perf_counter()
        more = d.step()
        slices.append(time.perf_counter() - start)
        if not more:
            return slices


def percentiles(seconds: list[float]) -> str:
    p = np.percentile(np.array(seconds) * 1e6, [50, 90, 99, 100])
    return "p50 {:.0f} us, p90 {:.0f} us, p99 {:.0f} us, max {:.0f} us".format(*p)


def commit(d: Dataflow, at: int, source: str, updates: Updates | None) -> float:
    """One commit at time `at` through the dataflow; seconds."""
    for id, other in d.inputs.items():
        if id != source:
            other.push(None, at + 1)  # type: ignore[union-attr]
    target: Any = d.inputs[source]  # type: ignore[index]
    start = time.perf_counter()
    target.push(updates, at + 1)
    run(d)
    elapsed = time.perf_counter() - start
    for export in d.exports.values():
        export.allow_compaction(at)
    return elapsed


# -- hydrate, update


def join_view(n: int) -> tuple[Dataflow, Ints, Ints, Ints, Ints]:
    k = max(n // 10, 1)
    rng = np.random.default_rng(1)
    a, v = rng.integers(0, k, n), rng.integers(0, 1000, n).astype(np.int32)
    b, g = np.arange(k), rng.integers(0, 1000, k)
    left, right = relation(INT8, INT4), relation(INT8, INT8)
    inputs = (r.Get("u1", left), r.Get("u2", right))  # type: ignore[arg-type]
    join = r.Join(inputs, ((Ref(0), Ref(2)),), r.Differential(0, ((1, (Ref(0),)),)))
    view = r.Reduce(join, (Ref(3),), (Aggregate("sum_int4", (Ref(1),), INT8), COUNT))
    d = dataflow(view, {"u1": left, "u2": right})
    for id, part in (("u1", rows(a, v)), ("u2", rows(b, g))):
        source: Any = d.inputs[id]  # type: ignore[index]
        source.push(part, 1)
    return d, a, v, b, g


def mix(x: Ints) -> Ints:
    x = x.astype(np.uint64, copy=True)
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x


def bare(a: Ints, v: Ints, b: Ints, g: Ints) -> tuple[Ints, Ints]:
    """Hash, argsort, searchsorted, reduceat: the same job without an engine."""

    def arrange(key: Ints, *columns: Ints) -> list[Ints]:
        h = mix(key)
        order = np.argsort(h)
        n = len(key)
        planes = (h, key, *columns, np.zeros(n, np.uint64), np.ones(n, np.int64))
        return [c[order] for c in planes]

    left, right = arrange(a, v), arrange(b, g)
    low, high = right[0].searchsorted(left[0], "left"), right[0].searchsorted(left[0], "right")
    counts = high - low
    total = int(counts.sum())
    at = np.repeat(np.arange(len(a)), counts)
    to = np.repeat(low - (np.cumsum(counts) - counts), counts) + np.arange(total)
    assert (left[1][at] == right[1][to]).all()
    group, value, diff = right[2][to], left[2][at].astype(np.int64), left[-1][at] * right[-1][to]
    order = np.argsort(mix(group))
    group = group[order]
    starts = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
    return np.add.reduceat((value * diff)[order], starts), np.add.reduceat(diff[order], starts)


def hydrate(n: int = 1_000_000) -> None:
    d, a, v, b, g = join_view(n)
    start = time.perf_counter()
    slices = run(d)
    engine = time.perf_counter() - start
    start = time.perf_counter()
    bare(a, v, b, g)
    baseline = time.perf_counter() - start
    longest = np.percentile(np.array(slices) * 1e3, [50, 99.9, 100])
    print(f"hydrate {n} x {len(b)} rows: engine {engine:.3f} s, numpy {baseline:.3f} s, ratio {engine / baseline:.2f}")
    print("  slices: {} of p50 {:.1f} ms, p99.9 {:.1f} ms, max {:.1f} ms".format(len(slices), *longest))


def pathway(n: int = 1_000_000) -> None:
    """Pathway's own time leaves out the making of its input tables, as ours leaves out the making of columns."""
    try:
        pandas: Any = importlib.import_module("pandas")
        pw: Any = importlib.import_module("pathway")
    except ImportError:
        print("pathway: not installed, not measured")
        return
    d, a, v, b, g = join_view(n)
    start = time.perf_counter()
    run(d)
    engine = time.perf_counter() - start
    left = pw.debug.table_from_pandas(pandas.DataFrame({"k": a, "v": v.astype(np.int64)}))
    right = pw.debug.table_from_pandas(pandas.DataFrame({"k": b, "g": g}))
    joined = left.join(right, left.k == right.k).select(g=right.g, v=left.v)
    view = joined.groupby(pw.this.g).reduce(pw.this.g, s=pw.reducers.sum(pw.this.v), n=pw.reducers.count())
    start = time.perf_counter()
    groups = len(pw.debug.table_to_pandas(view))
    other = time.perf_counter() - start
    print(f"pathway {pw.__version__}: {n} x {len(b)} rows, {groups} groups in {other:.2f} s; engine {engine:.3f} s")
    print(f"  ratio {other / engine:.0f}")


def update(sizes: tuple[int, ...] = (10_000, 5_000_000), count: int = 1_000) -> None:
    medians = []
    for n in sizes:
        d, a, *_ = join_view(n)
        run(d)
        seconds = [
            commit(d, 1 + i, "u1", rows(a[i % len(a)][None], np.array([7], np.int32), time=1 + i)) for i in range(count)
        ]
        medians.append(float(np.median(seconds)))
        print(f"update at {n} rows: {percentiles(seconds)}")
    print(f"  ratio largest to smallest state: {medians[-1] / medians[0]:.2f}")


# -- extremes


def extremes(n: int = 1_000_000, count: int = 200) -> None:
    values = np.random.default_rng(2).permutation(n)
    table = relation(INT8, INT8)
    get = r.Get("u1", table)  # type: ignore[arg-type]
    plans: dict[str, tuple[r.Mir, Callable[[int], int]]] = {
        "maximum of a group": (
            r.Reduce(get, (Ref(0),), (Aggregate("max_int8", (Ref(1),), INT8),)),
            lambda i: n - 1 - i,
        ),
        "first of a top 10": (
            r.TopK(get, (), (ColumnOrder(1),), Literal(encode_datum(INT8, 10), INT8)),
            lambda i: i,
        ),
    }
    for name, (plan, victim) in plans.items():
        d = dataflow(plan, {"u1": table})
        source: Any = d.inputs["u1"]  # type: ignore[index]
        source.push(rows(np.zeros(n, np.int64), values), 1)
        run(d)
        seconds = [
            commit(d, 1 + i, "u1", rows(np.array([0]), np.array([victim(i)]), time=1 + i, diff=-1))
            for i in range(count)
        ]
        print(f"retract the {name} over {n} rows: {percentiles(seconds)}")


def memory(n: int = 1_000_000) -> None:
    table = relation(INT8, INT8)
    d = dataflow(r.Get("u1", table), {"u1": table})  # type: ignore[arg-type]
    source: Any = d.inputs["u1"]  # type: ignore[index]
    part = rows(np.arange(n), np.arange(n))
    raw = sum(c.nbytes for c in part.columns)
    source.push(part, 1)
    run(d)
    export: Any = d.exports["u10"]  # type: ignore[index]
    assert isinstance(export, Rendered) and export.arrangement is not None
    held = export.arrangement.nbytes
    print(
        f"memory: {n} rows of two bigints, {raw / n:.0f} bytes a row raw, {held / n:.0f} held, ratio {held / raw:.2f}"
    )


# -- recursion


def recursion(edges: int = 100_000, count: int = 50) -> None:
    """Reachability from one node over a random graph."""
    nodes = edges // 2
    rng = np.random.default_rng(3)
    src, dst = rng.integers(0, nodes, edges), rng.integers(0, nodes, edges)
    table, node = relation(INT8, INT8), relation(INT8)
    edge, reach = r.Get("u1", table), r.Get(1, node)  # type: ignore[arg-type]
    start = r.Constant((((encode_datum(INT8, int(src[0])),), 1),), node)
    step = r.Project(r.Join((reach, edge), ((Ref(0), Ref(1)),), r.Differential(0, ((1, (Ref(0),)),))), (2,))
    value = r.Reduce(r.Union((start, step)), (Ref(0),), ())
    d = dataflow(r.LetRec((1,), (value,), (node,), reach), {"u1": table})
    source: Any = d.inputs["u1"]  # type: ignore[index]
    source.push(rows(src, dst), 1)
    begin = time.perf_counter()
    run(d)
    whole = time.perf_counter() - begin
    at = 1
    added, removed = [], []
    for i in range(count):
        a, b = src[i : i + 1], rng.integers(0, nodes, 1)
        added.append(commit(d, at, "u1", rows(a, b, time=at)))
        removed.append(commit(d, at + 1, "u1", rows(a, b, time=at + 1, diff=-1)))
        at += 2
    print(f"recursion: reachability over {edges} edges from scratch: {whole * 1e3:.0f} ms")
    print(f"  add an edge:    {percentiles(added)}")
    print(f"  remove an edge: {percentiles(removed)}")
    print(f"  ratio of a change to the whole: {np.median(added + removed) / whole:.4f}")


ARMS: dict[str, Callable[[], None]] = {
    "hydrate": hydrate,
    "pathway": pathway,
    "update": update,
    "extremes": extremes,
    "memory": memory,
    "recursion": recursion,
}


def main(arms: list[str] | None = None) -> None:
    print(f"Python {sys.version.split()[0]}, numpy {np.__version__}")
    for name in arms or ARMS:
        ARMS[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
