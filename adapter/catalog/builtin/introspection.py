"""mz_introspection: what a replica's workers say about themselves.

The raw relations are the log indexes of the cluster a query runs on; the rest are views over them. They answer for one
replica: the only one of the session's cluster, or the one named by `cluster_replica`. Counts and sizes are
multiplicities in the logs, hence the count(*)s.
"""

from __future__ import annotations

from adapter.catalog.builtin.relation import BUILTIN_NAMES, add_log, add_view
from compute.protocol.logs import LOGS
from mzlite.expr.scalar import Ref, Scalar
from mzlite.repr.ids import GlobalId, system

_I = "mz_introspection"
_FIRST_LOG_INDEX = 2_000_000

for _log in LOGS.values():
    add_log(_log.name, _log.desc, _log.variant)

VARIANTS: tuple[str, ...] = tuple(LOGS)
LOG_IDS: dict[str, GlobalId] = {v: BUILTIN_NAMES[(_I, LOGS[v].name)] for v in VARIANTS}


def log_index(cluster_id: str, variant: str) -> GlobalId:
    """The id of a log's index in a cluster: system ids beyond all others."""
    cluster = int(cluster_id[1:]) * 2 + (cluster_id[0] == "s")
    return system(_FIRST_LOG_INDEX + cluster * 1_000 + VARIANTS.index(variant))


def log_indexes(cluster_id: str) -> dict[str, GlobalId]:
    """What a cluster is created with."""
    return {variant: log_index(cluster_id, variant) for variant in VARIANTS}


def log_key(variant: str) -> tuple[Scalar, ...]:
    return tuple(Ref(i) for i in LOGS[variant].key)


def _worker_zero(name: str, columns: str) -> None:
    """The twin without worker_id of a relation that is the same on every worker."""
    names = ", ".join(c.strip().split(" ")[0] for c in columns.split(","))
    add_view(name, columns, f"SELECT {names} FROM {_I}.{name}_per_worker WHERE worker_id = 0::uint8")


_worker_zero("mz_dataflow_operators", "id uint8, name text")
_worker_zero("mz_dataflow_addresses", "id uint8, address uint8 list")
_worker_zero(
    "mz_dataflow_channels",
    "id uint8, from_index uint8, from_port uint8, to_index uint8, to_port uint8, type text",
)
_worker_zero("mz_compute_exports", "export_id text, dataflow_id uint8")
add_view(
    "mz_dataflow_global_ids",
    "id uint8, global_id text",
    f"SELECT id, global_id FROM {_I}.mz_compute_dataflow_global_ids_per_worker WHERE worker_id = 0::uint8",
)
add_view(
    "mz_lir_mapping",
    "global_id text, lir_id uint8, operator text, parent_lir_id uint8, nesting uint2, operator_id_start uint8, "
    "operator_id_end uint8",
    "SELECT global_id, lir_id, operator, parent_lir_id, nesting, operator_id_start, operator_id_end "
    f"FROM {_I}.mz_compute_lir_mapping_per_worker WHERE worker_id = 0::uint8",
)
add_view(
    "mz_active_peeks",
    "id uuid, object_id text, type text, time mz_timestamp",
    f"SELECT id, object_id, type, time FROM {_I}.mz_active_peeks_per_worker WHERE worker_id = 0::uint8",
)
add_view(
    "mz_compute_frontiers",
    "export_id text, time mz_timestamp",
    f"SELECT export_id, min(time) AS time FROM {_I}.mz_compute_frontiers_per_worker GROUP BY export_id",
)
add_view(
    "mz_compute_import_frontiers",
    "export_id text, import_id text, time mz_timestamp",
    f"SELECT export_id, import_id, min(time) AS time FROM {_I}.mz_compute_import_frontiers_per_worker "
    "GROUP BY export_id, import_id",
)
add_view(
    "mz_compute_hydration_times",
    "export_id text, time_ns uint8",
    f"SELECT export_id, CASE WHEN count(*) = count(time_ns) THEN max(time_ns) ELSE NULL END AS time_ns "
    f"FROM {_I}.mz_compute_hydration_times_per_worker GROUP BY export_id",
)
add_view(
    "mz_compute_operator_hydration_statuses",
    "export_id text, lir_id uint8, hydrated bool",
    f"SELECT export_id, lir_id, bool_and(hydrated) AS hydrated "
    f"FROM {_I}.mz_compute_operator_hydration_statuses_per_worker GROUP BY export_id, lir_id",
)
add_view(
    "mz_compute_error_counts_per_worker",
    "export_id text, worker_id uint8, count int8",
    f"SELECT export_id, worker_id, count FROM {_I}.mz_compute_error_counts_raw",
)
add_view(
    "mz_compute_error_counts",
    "export_id text, count numeric",
    f"SELECT export_id, sum(count) AS count FROM {_I}.mz_compute_error_counts_raw GROUP BY export_id "
    "HAVING sum(count) != 0",
)
for _name, _raw, _columns, _group in (
    ("mz_scheduling_elapsed", "mz_scheduling_elapsed_raw", "id uint8, elapsed_ns int8", "id"),
    (
        "mz_compute_operator_durations_histogram",
        "mz_compute_operator_durations_histogram_raw",
        "id uint8, duration_ns uint8, count int8",
        "id, duration_ns",
    ),
    (
        "mz_scheduling_parks_histogram",
        "mz_scheduling_parks_histogram_raw",
        "slept_for_ns uint8, requested_ns uint8, count int8",
        "slept_for_ns, requested_ns",
    ),
    (
        "mz_peek_durations_histogram",
        "mz_peek_durations_histogram_raw",
        "type text, duration_ns uint8, count int8",
        "type, duration_ns",
    ),
    ("mz_arrangement_sharing", "mz_arrangement_sharing_raw", "operator_id uint8, count int8", "operator_id"),
):
    _value = _columns.rpartition(",")[2].strip().split(" ")[0]
    add_view(_name, _columns, f"SELECT {_group}, count(*) AS {_value} FROM {_I}.{_raw} GROUP BY {_group}")
    _keys, _, _last = _columns.rpartition(", ")
    add_view(
        f"{_name}_per_worker",
        f"{_keys}, worker_id uint8, {_last}",
        f"SELECT {_group}, worker_id, count(*) AS {_value} FROM {_I}.{_raw} GROUP BY {_group}, worker_id",
    )

_SIZES = (
    ("records", "mz_arrangement_records_raw"),
    ("batches", "mz_arrangement_batches_raw"),
    ("size", "mz_arrangement_heap_size_raw"),
    ("capacity", "mz_arrangement_heap_capacity_raw"),
    ("allocations", "mz_arrangement_heap_allocations_raw"),
)
_UNION = " UNION ALL ".join(
    "SELECT operator_id, worker_id, "
    + ", ".join(f"{'count(*)' if name == other else '0::int8'} AS {name}" for name, _ in _SIZES)
    + f" FROM {_I}.{raw} GROUP BY operator_id, worker_id"
    for other, raw in _SIZES
)
_SUMS = ", ".join(f"sum({name})::int8 AS {name}" for name, _ in _SIZES)
_SIZE_COLUMNS = "records int8, batches int8, size int8, capacity int8, allocations int8"
add_view(
    "mz_arrangement_sizes",
    f"operator_id uint8, {_SIZE_COLUMNS}",
    f"SELECT operator_id, {_SUMS} FROM ({_UNION}) u GROUP BY operator_id",
)
add_view(
    "mz_arrangement_sizes_per_worker",
    f"operator_id uint8, worker_id uint8, {_SIZE_COLUMNS}",
    f"SELECT operator_id, worker_id, {_SUMS} FROM ({_UNION}) u GROUP BY operator_id, worker_id",
)
add_view(
    "mz_dataflows",
    "id uint8, name text",
    f"SELECT a.address[1] AS id, o.name FROM {_I}.mz_dataflow_addresses a "
    f"JOIN {_I}.mz_dataflow_operators o ON a.id = o.id WHERE list_length(a.address) = 1",
)
add_view(
    "mz_dataflow_operator_dataflows",
    "id uint8, name text, dataflow_id uint8, dataflow_name text",
    f"SELECT o.id, o.name, d.id AS dataflow_id, d.name AS dataflow_name FROM {_I}.mz_dataflow_operators o "
    f"JOIN {_I}.mz_dataflow_addresses a ON o.id = a.id JOIN {_I}.mz_dataflows d ON d.id = a.address[1]",
)
add_view(
    "mz_dataflow_operator_parents",
    "id uint8, parent_id uint8",
    f"SELECT c.id, p.id AS parent_id FROM {_I}.mz_dataflow_addresses c JOIN {_I}.mz_dataflow_addresses p "
    "ON c.address[1:list_length(c.address) - 1] = p.address",
)
add_view(
    "mz_dataflow_channel_operators",
    "id uint8, from_operator_id uint8, from_operator_address uint8 list, to_operator_id uint8, "
    "to_operator_address uint8 list, type text",
    "SELECT c.id, f.id AS from_operator_id, f.address AS from_operator_address, t.id AS to_operator_id, "
    f"t.address AS to_operator_address, c.type FROM {_I}.mz_dataflow_channels c "
    f"JOIN {_I}.mz_dataflow_addresses s ON s.id = c.id "
    f"LEFT JOIN {_I}.mz_dataflow_addresses f ON f.address = s.address || c.from_index "
    f"LEFT JOIN {_I}.mz_dataflow_addresses t ON t.address = s.address || c.to_index",
)
add_view(
    "mz_message_counts",
    "channel_id uint8, sent int8, received int8, batch_sent int8, batch_received int8",
    "SELECT channel_id, sum(sent)::int8 AS sent, sum(received)::int8 AS received, sum(batch_sent)::int8 AS batch_sent, "
    "sum(batch_received)::int8 AS batch_received FROM ("
    f"SELECT channel_id, count(*) AS sent, 0::int8 AS received, 0::int8 AS batch_sent, 0::int8 AS batch_received "
    f"FROM {_I}.mz_message_counts_sent_raw GROUP BY channel_id UNION ALL "
    f"SELECT channel_id, 0::int8, count(*), 0::int8, 0::int8 FROM {_I}.mz_message_counts_received_raw "
    "GROUP BY channel_id UNION ALL "
    f"SELECT channel_id, 0::int8, 0::int8, count(*), 0::int8 FROM {_I}.mz_message_batch_counts_sent_raw "
    "GROUP BY channel_id UNION ALL "
    f"SELECT channel_id, 0::int8, 0::int8, 0::int8, count(*) FROM {_I}.mz_message_batch_counts_received_raw "
    "GROUP BY channel_id) u GROUP BY channel_id",
)
add_view(
    "mz_records_per_dataflow_operator",
    f"id uint8, name text, dataflow_id uint8, {_SIZE_COLUMNS}",
    "SELECT d.id, d.name, d.dataflow_id, coalesce(s.records, 0) AS records, coalesce(s.batches, 0) AS batches, "
    "coalesce(s.size, 0) AS size, coalesce(s.capacity, 0) AS capacity, coalesce(s.allocations, 0) AS allocations "
    f"FROM {_I}.mz_dataflow_operator_dataflows d LEFT JOIN {_I}.mz_arrangement_sizes s ON d.id = s.operator_id",
)
add_view(
    "mz_records_per_dataflow",
    f"id uint8, name text, {_SIZE_COLUMNS}",
    "SELECT d.id, d.name, sum(r.records)::int8 AS records, sum(r.batches)::int8 AS batches, sum(r.size)::int8 AS size, "
    "sum(r.capacity)::int8 AS capacity, sum(r.allocations)::int8 AS allocations "
    f"FROM {_I}.mz_records_per_dataflow_operator r JOIN {_I}.mz_dataflows d ON r.dataflow_id = d.id "
    "GROUP BY d.id, d.name",
)
add_view(
    "mz_dataflow_arrangement_sizes",
    f"id uint8, name text, {_SIZE_COLUMNS}",
    f"SELECT id, name, records, batches, size, capacity, allocations FROM {_I}.mz_records_per_dataflow",
)
add_view(
    "mz_mappable_objects",
    "name text, global_id text",
    "SELECT n.name, g.global_id FROM (SELECT id, "
    "coalesce(database_name || '.', '') || schema_name || '.' || name AS name "
    f"FROM mz_internal.mz_object_fully_qualified_names) n JOIN {_I}.mz_dataflow_global_ids g ON n.id = g.global_id",
)
