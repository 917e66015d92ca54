"""LogSampler: a worker's log relations as a multiset of rows, and what changed since the last look.

Rows about what a dataflow *is* (operators, addresses, plan) change when it is created or dropped; rows about what it
*does* are looked at once per interval, and only for dataflows that ran since. So an idle worker pays almost nothing.

    worker state ── sample() ──▶ {variant: {row: diff}}
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from compute.protocol.logs import INTERACTIVE_ID_OFFSET
from compute.render.exports import IndexExport
from compute.runtime.hosted import HostedDataflow
from compute.trace.arrangement import Arrangement
from compute.trace.spine import Spine

if TYPE_CHECKING:
    from compute.runtime.worker import Worker

Row = tuple[Any, ...]
Changes = dict[str, dict[Row, int]]
OPERATORS_PER_DATAFLOW = 10_000
"""Operator ids: dataflow id times this, plus the operator's index from 1 on."""


class LogSampler:
    """ids of the interactive runtime are offset, so that one relation holds the operators of both."""

    def __init__(self, worker: Worker, offset: int) -> None:
        self._worker = worker
        self._offset = offset
        self._static: dict[int, list[tuple[str, Row]]] = {}
        self._running: dict[int, dict[tuple[str, Row], int]] = {}
        self._sampled_ns: dict[int, int] = {}
        self._previous: dict[str, dict[Row, int]] = {}
        self._changes: Changes = {}

    def sample(self) -> Changes:
        """Changes since the last call; rows whose diffs cancel are left out."""
        self._changes = {}
        live = self._worker.events.dataflows
        for number in [n for n in self._static if n not in live]:
            self._gone(number)
        for number, hosted in live.items():
            if number not in self._static:
                self._created(number, hosted)
            if self._sampled_ns.get(number) != hosted.elapsed_ns:
                self._sampled_ns[number] = hosted.elapsed_ns
                self._ran(number, hosted)
        self._now()
        return {variant: rows for variant, rows in self._changes.items() if rows}

    # -- dataflows

    def _created(self, number: int, hosted: HostedDataflow) -> None:
        worker = self._worker.worker
        dataflow_id = number + self._offset
        rows: list[tuple[str, Row]] = []
        root = self._operator(number, 0)
        rows.append(("Operates", (root, worker, f"Dataflow: {hosted.description.name}")))
        rows.append(("Addresses", (root, worker, (dataflow_id,))))
        operators = hosted.operators
        for index, operator in enumerate(operators, 1):
            operator_id = self._operator(number, index)
            rows.append(("Operates", (operator_id, worker, type(operator).__name__)))
            rows.append(("Addresses", (operator_id, worker, (dataflow_id, index))))
        positions = {id(operator): index for index, operator in enumerate(operators, 1)}
        channel = 0
        for index, operator in enumerate(operators, 1):
            for port_index, port in enumerate(hosted.ports_of(operator)):
                for target, input_index in port.targets:
                    to = positions.get(id(target))
                    if to is not None:
                        channel += 1
                        channel_id = self._operator(number, channel)
                        rows.append(("Channels", (channel_id, worker, index, port_index, to, input_index, "Updates")))
        for export in hosted.description.export_ids():
            rows.append(("DataflowCurrent", (export, worker, dataflow_id)))
        for object_id, _ in hosted.description.objects:
            rows.append(("DataflowGlobal", (dataflow_id, worker, object_id)))
        for lir in hosted.lir_mapping:
            start, end = self._operator(number, lir.start + 1), self._operator(number, lir.end + 1)
            rows.append(
                ("LirMapping", (lir.global_id, lir.lir_id, worker, lir.operator, lir.parent, lir.nesting, start, end))
            )
        self._static[number] = rows
        self._add(rows, 1)

    def _gone(self, number: int) -> None:
        self._add(self._static.pop(number), -1)
        for (variant, row), count in self._running.pop(number, {}).items():
            self._change(variant, row, -count)
        self._sampled_ns.pop(number, None)

    def _ran(self, number: int, hosted: HostedDataflow) -> None:
        """Rows about a dataflow that has done something since the last look."""
        worker = self._worker.worker
        rows: dict[tuple[str, Row], int] = {}
        root = self._operator(number, 0)
        rows["Elapsed", (root, worker)] = hosted.elapsed_ns
        for bucket, count in hosted.durations.items():
            rows["Histogram", (root, worker, bucket)] = count
        for index, operator in enumerate(hosted.operators, 1):
            id = self._operator(number, index)
            spines = list(_spines(operator))
            if not spines:
                continue
            sizes = {
                "ArrangementBatches": sum(len(s.batches) for s in spines),
                "ArrangementRecords": sum(s.row_count for s in spines),
                "ArrangementHeapSize": sum(s.nbytes for s in spines),
                "ArrangementHeapCapacity": sum(s.nbytes for s in spines),
                "ArrangementHeapAllocations": sum(len(s.batches) for s in spines),
                "ArrangementSharing": 1,
            }
            for variant, count in sizes.items():
                if count:
                    rows[variant, (id, worker)] = count
        for export, made in hosted.exports:
            if isinstance(made, IndexExport) and isinstance(made.source, Arrangement):
                errors = sum(int(batch.diff.sum()) for batch in made.source.errs.batches)
                if errors:
                    rows["ErrorCount", (export, worker, errors)] = 1
        for lir in hosted.lir_mapping:
            for export in hosted.description.export_ids():
                rows["OperatorHydrationStatus", (export, lir.lir_id, worker, hosted.hydrated)] = 1
        previous = self._running.get(number, {})
        for (variant, row), count in previous.items():
            if rows.get((variant, row)) != count:
                self._change(variant, row, -count)
        for (variant, row), count in rows.items():
            if previous.get((variant, row)) != count:
                self._change(variant, row, count)
        self._running[number] = rows

    # -- the moment

    def _now(self) -> None:
        worker = self._worker.worker
        events = self._worker.events
        self._replace("FrontierCurrent", {(id, worker, f): 1 for id, f in events.frontiers.items() if f is not None})
        self._replace("HydrationTime", {(id, worker, ns): 1 for id, ns in events.hydration_ns.items()})
        imports: dict[Row, int] = {}
        for hosted in events.dataflows.values():
            for import_id, upper in hosted.import_uppers:
                if upper is not None:
                    for export in hosted.live:
                        imports[export, import_id, worker, upper] = 1
        self._replace("ImportFrontierCurrent", imports)
        peeks = {
            (
                uuid.UUID(hex=peek).bytes if len(peek) == 32 else uuid.uuid5(uuid.NAMESPACE_OID, peek).bytes,
                worker,
                id,
                kind,
                at,
            ): 1
            for peek, (id, kind, at) in events.peeks.items()
        }
        self._replace("PeekCurrent", peeks)
        self._replace(
            "PeekDuration", {(worker, kind, ns): count for (kind, ns), count in events.peek_durations.items()}
        )
        self._replace("Parks", {(worker, slept, asked): count for (slept, asked), count in events.parks.items()})

    def _replace(self, variant: str, rows: dict[Row, int]) -> None:
        previous = self._previous.get(variant, {})
        if rows == previous:
            return
        for row, count in previous.items():
            left = rows.get(row, 0) - count
            if left:
                self._change(variant, row, left)
        for row, count in rows.items():
            if row not in previous:
                self._change(variant, row, count)
        self._previous[variant] = rows

    def _operator(self, number: int, index: int) -> int:
        return number * OPERATORS_PER_DATAFLOW + index + self._offset

    def _add(self, rows: Iterable[tuple[str, Row]], diff: int) -> None:
        for variant, row in rows:
            self._change(variant, row, diff)

    def _change(self, variant: str, row: Row, diff: int) -> None:
        rows = self._changes.setdefault(variant, {})
        total = rows.get(row, 0) + diff
        if total:
            rows[row] = total
        else:
            rows.pop(row, None)


def _spines(operator: object) -> Iterable[Spine]:
    """The traces that an operator keeps."""
    for value in vars(operator).values():
        if isinstance(value, Spine):
            yield value
        elif isinstance(value, Arrangement):
            yield value.errs


def offset_of(interactive: bool) -> int:
    return INTERACTIVE_ID_OFFSET if interactive else 0
