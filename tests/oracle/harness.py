"""Runs a plan through the engine: a dataflow fed by a script in any rounds, and its index read at any time."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from compute.plan.description import DataflowDescription, IndexDesc, IndexExport, SourceImport
from compute.plan.lower import lower
from compute.render.context import RenderContext
from compute.render.dataflow import Dataflow
from compute.render.exports import IndexExport as RenderedIndex
from compute.trace.arrangement import Chains
from compute.trace.layout import KeyLayout
from compute.trace.peek import peek_arrangement
from mzlite.expr import relation as r
from mzlite.expr.mfp import MapFilterProject
from mzlite.expr.relation import RowSetFinishing
from mzlite.expr.scalar import Ref
from mzlite.expr.typecheck import typ
from mzlite.repr.datum import ArrayDatum, column_from_datums, column_to_datums
from mzlite.repr.timestamp import Frontier
from mzlite.repr.types import INT8, RelationType
from mzlite.repr.updates import Updates
from tests.oracle.plans import SOURCES, Change, relation


def describe(plan: r.Mir, *, until: Frontier = None, as_of: int = 0) -> DataflowDescription:
    """One index on the plan, over the three sources."""
    t = typ(plan)
    objects = lower([("u9", plan)], {}, single_time=until == as_of + 1)  # type: ignore[list-item]
    sources: Any = {id: SourceImport(id, relation(arity)) for id, arity in SOURCES.items()}
    key = tuple(Ref(i) for i in range(min(1, t.arity)))
    exports: Any = {"u10": IndexExport(IndexDesc("u9", key), t)}  # type: ignore[arg-type]
    return DataflowDescription("test", sources, {}, objects, exports, {}, as_of, until)


def updates_of(changes: Sequence[tuple[tuple[Any, ...], int, int]], arity: int) -> Updates:
    columns = tuple(column_from_datums(INT8, [row[i] for row, _, _ in changes]) for i in range(arity))
    return Updates(
        columns, np.array([t for _, t, _ in changes], np.uint64), np.array([d for _, _, d in changes], np.int64)
    )


def push(dataflow: Dataflow, changes: Sequence[Change], upper: Frontier) -> None:
    """Hand in changes and declare the sources complete before upper."""
    by_source: dict[str, list[tuple[tuple[Any, ...], int, int]]] = defaultdict(list)
    for id, row, time, diff in changes:
        by_source[id].append((row, time, diff))
    for id, arity in SOURCES.items():
        source: Any = dataflow.inputs[id]  # type: ignore[index]
        if by_source[id]:
            source.push(updates_of(by_source[id], arity), source.upper)
        source.push(None, upper)


def run(dataflow: Dataflow) -> None:
    while dataflow.step():
        pass


class InProcessExchange:
    """The Exchange of N workers in one process: queues."""

    def __init__(self, worker: int, queues: dict[tuple[int, int, int], deque[bytes]]) -> None:
        self.worker = worker
        self.queues = queues

    def send(self, channel: int, to: int, payload: bytes) -> None:
        self.queues.setdefault((channel, self.worker, to), deque()).append(payload)

    def receive(self, channel: int, sender: int) -> bytes | None:
        queue = self.queues.get((channel, sender, self.worker))
        return queue.popleft() if queue else None


def workers(description: DataflowDescription, count: int) -> list[Dataflow]:
    """The same dataflow on `count` workers."""
    if count == 1:
        return [Dataflow(description, RenderContext())]
    queues: dict[tuple[int, int, int], deque[bytes]] = {}
    return [
        Dataflow(description, RenderContext(worker=w, workers=count, exchange=InProcessExchange(w, queues)))
        for w in range(count)
    ]


def run_all(dataflows: Sequence[Dataflow], upper: Frontier) -> None:
    """Step round robin until all have reached upper."""
    for _ in range(100_000):
        for dataflow in dataflows:
            dataflow.step()
        if all(d.frontier == upper for d in dataflows):
            return
    raise AssertionError(f"stuck before {upper}: {[d.frontier for d in dataflows]}")


def read(chains: Chains, layout: KeyLayout, t: RelationType, at: int) -> Counter[tuple[Any, ...]]:
    """An index's rows at a time."""
    mfp = MapFilterProject.identity(t.arity)
    rows = next(x for x in peek_arrangement(chains, layout, at, mfp, RowSetFinishing()) if x is not None)
    return rows_of(rows, t)


def rows_of(rows: Updates, t: RelationType) -> Counter[tuple[Any, ...]]:
    columns = [column_to_datums(c.scalar, col) for c, col in zip(t.columns, rows.columns)]
    out: Counter[tuple[Any, ...]] = Counter()
    plain = [tuple(_plain(c[i]) for c in columns) for i in range(len(rows))]
    for row, diff in zip(plain, rows.diff.tolist()):
        out[row] += diff
    return out


def _plain(value: Any) -> Any:
    return value.elements if isinstance(value, ArrayDatum) else value


def exported(dataflow: Dataflow, id: str = "u10") -> RenderedIndex:
    export = dataflow.exports[id]  # type: ignore[index]
    assert isinstance(export, RenderedIndex)
    return export


def read_export(dataflows: Sequence[Dataflow], t: RelationType, at: int) -> Counter[tuple[Any, ...]]:
    """Rows at a time, over all workers."""
    out: Counter[tuple[Any, ...]] = Counter()
    for dataflow in dataflows:
        source = exported(dataflow).source
        out.update(read(source.chains(), source.layout, t, at))
    return out
