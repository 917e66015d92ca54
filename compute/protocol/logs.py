"""The log relations: which there are, their columns, the key of each one's index.

A relation holds one row per live thing and worker; where Materialize counts with multiplicities (records of an
arrangement, nanoseconds of elapsed time) the count is the row's diff here too. `worker_id` is the worker; ids of
dataflows and operators are uint8, because those of the interactive runtime are offset by 2**63.
Source: Materialize's log variants.
"""

from __future__ import annotations

import msgspec

from mzlite.repr.types import (
    BOOL,
    INT8,
    MZ_TIMESTAMP,
    TEXT,
    UINT2,
    UINT8,
    UUID,
    ColumnType,
    RelationDesc,
    RelationType,
    ScalarType,
    list_of,
)

INTERACTIVE_ID_OFFSET = 1 << 63
"""Added to the dataflow and operator ids of the interactive runtime, so that both id spaces coexist."""


class LogRelation(msgspec.Struct, frozen=True):
    """variant: the name in CreateInstance.logs. name: the relation's name in mz_introspection. key: of its index."""

    variant: str
    name: str
    desc: RelationDesc
    key: tuple[int, ...]

    @property
    def typ(self) -> RelationType:
        return self.desc.typ


def _relation(
    variant: str, name: str, columns: tuple[tuple[str, ScalarType, bool], ...], key_count: int | None
) -> LogRelation:
    """The first key_count columns are unique; None: none are, and the index has all columns."""
    arity = len(columns)
    key = tuple(range(arity if key_count is None else key_count))
    typ = RelationType(
        tuple(ColumnType(scalar, nullable) for _, scalar, nullable in columns), () if key_count is None else (key,)
    )
    return LogRelation(variant, name, RelationDesc(tuple(n for n, _, _ in columns), typ), key)


_ID = ("id", UINT8, False)
_WORKER = ("worker_id", UINT8, False)
_OPERATOR = ("operator_id", UINT8, False)
_EXPORT = ("export_id", TEXT, False)

_PER_OPERATOR = {
    "ArrangementBatches": "mz_arrangement_batches_raw",
    "ArrangementRecords": "mz_arrangement_records_raw",
    "ArrangementSharing": "mz_arrangement_sharing_raw",
    "BatcherRecords": "mz_arrangement_batcher_records_raw",
    "BatcherSize": "mz_arrangement_batcher_size_raw",
    "BatcherCapacity": "mz_arrangement_batcher_capacity_raw",
    "BatcherAllocations": "mz_arrangement_batcher_allocations_raw",
    "ArrangementHeapSize": "mz_arrangement_heap_size_raw",
    "ArrangementHeapCapacity": "mz_arrangement_heap_capacity_raw",
    "ArrangementHeapAllocations": "mz_arrangement_heap_allocations_raw",
}

_PER_CHANNEL = {
    "MessagesSent": "mz_message_counts_sent_raw",
    "MessagesReceived": "mz_message_counts_received_raw",
    "BatchesSent": "mz_message_batch_counts_sent_raw",
    "BatchesReceived": "mz_message_batch_counts_received_raw",
}

_RELATIONS = (
    _relation("Operates", "mz_dataflow_operators_per_worker", (_ID, _WORKER, ("name", TEXT, False)), 2),
    _relation(
        "Channels",
        "mz_dataflow_channels_per_worker",
        (
            _ID,
            _WORKER,
            ("from_index", UINT8, False),
            ("from_port", UINT8, False),
            ("to_index", UINT8, False),
            ("to_port", UINT8, False),
            ("type", TEXT, False),
        ),
        2,
    ),
    _relation("Elapsed", "mz_scheduling_elapsed_raw", (_ID, _WORKER), None),
    _relation(
        "Histogram", "mz_compute_operator_durations_histogram_raw", (_ID, _WORKER, ("duration_ns", UINT8, False)), None
    ),
    _relation("Addresses", "mz_dataflow_addresses_per_worker", (_ID, _WORKER, ("address", list_of(UINT8), False)), 2),
    _relation(
        "Parks",
        "mz_scheduling_parks_histogram_raw",
        (_WORKER, ("slept_for_ns", UINT8, False), ("requested_ns", UINT8, False)),
        None,
    ),
    *(
        _relation(
            variant,
            name,
            (("channel_id", UINT8, False), ("from_worker_id", UINT8, False), ("to_worker_id", UINT8, False)),
            None,
        )
        for variant, name in _PER_CHANNEL.items()
    ),
    _relation(
        "Reachability",
        "mz_dataflow_operator_reachability_raw",
        (
            _ID,
            _WORKER,
            ("source", UINT8, False),
            ("port", UINT8, False),
            ("update_type", TEXT, False),
            ("time", MZ_TIMESTAMP, True),
        ),
        None,
    ),
    *(_relation(variant, name, (_OPERATOR, _WORKER), None) for variant, name in _PER_OPERATOR.items()),
    _relation("DataflowCurrent", "mz_compute_exports_per_worker", (_EXPORT, _WORKER, ("dataflow_id", UINT8, False)), 2),
    _relation(
        "FrontierCurrent", "mz_compute_frontiers_per_worker", (_EXPORT, _WORKER, ("time", MZ_TIMESTAMP, False)), 2
    ),
    _relation(
        "ImportFrontierCurrent",
        "mz_compute_import_frontiers_per_worker",
        (_EXPORT, ("import_id", TEXT, False), _WORKER, ("time", MZ_TIMESTAMP, False)),
        3,
    ),
    _relation(
        "PeekCurrent",
        "mz_active_peeks_per_worker",
        (
            ("id", UUID, False),
            _WORKER,
            ("object_id", TEXT, False),
            ("type", TEXT, False),
            ("time", MZ_TIMESTAMP, False),
        ),
        2,
    ),
    _relation(
        "PeekDuration",
        "mz_peek_durations_histogram_raw",
        (_WORKER, ("type", TEXT, False), ("duration_ns", UINT8, False)),
        None,
    ),
    _relation("ErrorCount", "mz_compute_error_counts_raw", (_EXPORT, _WORKER, ("count", INT8, False)), 2),
    _relation(
        "HydrationTime", "mz_compute_hydration_times_per_worker", (_EXPORT, _WORKER, ("time_ns", UINT8, True)), 2
    ),
    _relation(
        "OperatorHydrationStatus",
        "mz_compute_operator_hydration_statuses_per_worker",
        (_EXPORT, ("lir_id", UINT8, False), _WORKER, ("hydrated", BOOL, False)),
        2,
    ),
    _relation(
        "LirMapping",
        "mz_compute_lir_mapping_per_worker",
        (
            ("global_id", TEXT, False),
            ("lir_id", UINT8, False),
            _WORKER,
            ("operator", TEXT, False),
            ("parent_lir_id", UINT8, True),
            ("nesting", UINT2, False),
            ("operator_id_start", UINT8, False),
            ("operator_id_end", UINT8, False),
        ),
        3,
    ),
    _relation(
        "DataflowGlobal", "mz_compute_dataflow_global_ids_per_worker", (_ID, _WORKER, ("global_id", TEXT, False)), 3
    ),
)

LOGS: dict[str, LogRelation] = {relation.variant: relation for relation in _RELATIONS}
"""By variant, in order."""
