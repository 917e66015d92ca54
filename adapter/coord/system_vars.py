"""System variables: typed, durable, set by mz_system with ALTER SYSTEM SET/RESET.

When a variable is read is part of its meaning: `enable_compute_interactive_runtime` when a managed replica is
provisioned, `enable_compute_interactive_dataflows` when a dataflow is created, limits at every use.

Three lists that together name every flag (`FLAGS`), for tests that explore settings:
VARIABLE (each with the values a run may choose), MINIMAL (what a test run sets at least), UNINTERESTING.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from adapter.coord import var_types as t
from adapter.coord.session_vars import SESSION_VARS, unrecognized
from mzlite.repr.errors import SqlError


@dataclass(frozen=True, slots=True)
class SystemVar:
    """to_compute: pushed to replicas as a parameter of UpdateConfiguration."""

    name: str
    typ: t.VarType
    default: str
    description: str
    to_compute: bool = False


SYSTEM_VARS: dict[str, SystemVar] = {
    v.name: v
    for v in (
        SystemVar(
            "enable_compute_interactive_runtime",
            t.BOOL,
            "on",
            "Provision managed replicas with a second runtime that answers reads.",
        ),
        SystemVar(
            "enable_compute_interactive_dataflows", t.BOOL, "on", "Render one-shot reads on the interactive runtime."
        ),
        SystemVar("max_result_size", t.BYTES, "1GB", "The maximum size in bytes of an internal query result.", True),
        SystemVar("max_tables", t.UINT, "200", "The maximum number of tables."),
        SystemVar("max_materialized_views", t.UINT, "500", "The maximum number of materialized views."),
        SystemVar("max_clusters", t.UINT, "25", "The maximum number of clusters."),
        SystemVar("max_replicas_per_cluster", t.UINT, "5", "The maximum number of replicas of a cluster."),
        SystemVar("max_databases", t.UINT, "1000", "The maximum number of databases."),
        SystemVar("max_schemas_per_database", t.UINT, "1000", "The maximum number of schemas of a database."),
        SystemVar("max_objects_per_schema", t.UINT, "1000", "The maximum number of objects of a schema."),
        SystemVar("max_roles", t.UINT, "1000", "The maximum number of roles."),
        SystemVar("max_sources", t.UINT, "200", "The maximum number of sources."),
        SystemVar("max_connections", t.UINT, "5000", "The maximum number of concurrent connections."),
        SystemVar("max_credit_consumption_rate", t.NUMERIC, "1024", "The maximum rate of credit consumption."),
        SystemVar("metrics_retention", t.DURATION, "30 d", "The time to retain cluster utilization metrics."),
        SystemVar(
            "persist_fast_path_limit",
            t.UINT,
            "25",
            "Up to this LIMIT, a read without index and filter reads storage directly.",
        ),
        SystemVar("persist_fast_path_order", t.BOOL, "off", "Let ordered reads use the direct read of storage."),
        SystemVar("default_cluster_replication_factor", t.UINT, "1", "Replication factor of clusters that do not say."),
        SystemVar("allow_real_time_recency", t.BOOL, "off", "Accept real_time_recency."),
        SystemVar("enable_session_timelines", t.BOOL, "on", "Accept strong session serializable isolation."),
        SystemVar("enable_rbac_checks", t.BOOL, "off", "Check privileges."),
        SystemVar("unsafe_enable_table_keys", t.BOOL, "off", "Accept PRIMARY KEY and UNIQUE, unenforced."),
        SystemVar("unsafe_enable_unsafe_functions", t.BOOL, "off", "Accept functions of mz_unsafe."),
        SystemVar("enable_alter_swap", t.BOOL, "on", "Accept ALTER … SWAP."),
        SystemVar("enable_envelope_debezium_in_subscribe", t.BOOL, "on", "Accept ENVELOPE DEBEZIUM in SUBSCRIBE."),
        SystemVar("enable_within_timestamp_order_by_in_subscribe", t.BOOL, "on", "Accept WITHIN TIMESTAMP ORDER BY."),
        SystemVar("enable_refresh_every_mvs", t.BOOL, "on", "Accept REFRESH options."),
        SystemVar("enable_compute_peek_response_stash", t.BOOL, "on", "Accepted for compatibility."),
        SystemVar("enable_reduce_mfp_fusion", t.BOOL, "on", "Fuse projections into reductions."),
        SystemVar("enable_eager_delta_joins", t.BOOL, "off", "Prefer delta joins."),
        SystemVar("compute_slice_ms", t.UINT, "5", "How long an operator works before it yields, in ms.", True),
    )
}

VARIABLE: dict[str, tuple[str, ...]] = {
    "enable_compute_interactive_runtime": ("on", "off"),
    "enable_compute_interactive_dataflows": ("on", "off"),
    "persist_fast_path_order": ("on", "off"),
    "persist_fast_path_limit": ("0", "25", "1000"),
    "enable_eager_delta_joins": ("on", "off"),
    "enable_reduce_mfp_fusion": ("on", "off"),
    "compute_slice_ms": ("1", "5"),
}
MINIMAL: dict[str, str] = {
    "unsafe_enable_table_keys": "on",
    "unsafe_enable_unsafe_functions": "on",
    "max_tables": "100",
}
UNINTERESTING: frozenset[str] = frozenset(
    (
        "allow_real_time_recency",
        "default_cluster_replication_factor",
        "enable_alter_swap",
        "enable_compute_peek_response_stash",
        "enable_envelope_debezium_in_subscribe",
        "enable_rbac_checks",
        "enable_refresh_every_mvs",
        "enable_session_timelines",
        "enable_within_timestamp_order_by_in_subscribe",
        "max_clusters",
        "max_connections",
        "max_credit_consumption_rate",
        "max_databases",
        "max_materialized_views",
        "max_objects_per_schema",
        "max_replicas_per_cluster",
        "max_result_size",
        "max_roles",
        "max_schemas_per_database",
        "max_sources",
        "metrics_retention",
    )
)
FLAGS: frozenset[str] = frozenset(SYSTEM_VARS)

_COMPATIBLE = re.compile(
    r"(enable|unsafe|persist|compute|storage|max|min|log|webhook|kafka|pg|mysql|sql_server|orchestrator|cluster|optimizer|"
    r"statement|default|force|copy|arrangement|linear|grpc|catalog|wait|user|oidc|pgwire|kubernetes|network|scram|"
    r"privatelink|mz|superuser|timestamp|upsert|keep|opentelemetry|crdb|sentry|plan|cte|superuser|ore|lgalloc|memory|"
    r"sink|source|ld|license|constraint|disk|dyncfg|controller|with)_[a-z0-9_]+\Z"
)
# Session variables whose default an administrator may not set.
_NOT_SYSTEM = frozenset(
    {"server_version", "server_version_num", "emit_trace_id_notice", "mz_version", "is_superuser", "integer_datetimes",
     "max_identifier_length", "failpoints"}
)  # fmt: skip


class SystemVars:
    """The values now: built-in defaults under the catalog's durable settings."""

    def __init__(self, stored: dict[str, str]) -> None:
        self._values: dict[str, t.Parsed] = {k: v.typ.parse(k, [v.default]) for k, v in SYSTEM_VARS.items()}
        self.session_defaults: dict[str, str] = {}
        for name, text in stored.items():
            try:
                self.apply(name, text)
            except SqlError:
                continue  # a setting of another version; stays stored

    def get(self, name: str) -> Any:
        return self._values[name][1]

    def show(self, name: str) -> str | None:
        value = self._values.get(name.lower())
        return value[0] if value is not None else None

    def all(self) -> dict[str, str]:
        return {k: v[0] for k, v in self._values.items()}

    def check(self, name: str, values: Sequence[str]) -> tuple[str, str]:
        """(key, canonical text) of a setting; SqlError for an unknown name or a bad value."""
        key = name.lower()
        var = SYSTEM_VARS.get(key)
        if var is not None:
            return key, var.typ.parse(key, values)[0]
        session_var = SESSION_VARS.get(key)
        if session_var is not None and key not in _NOT_SYSTEM and not session_var.read_only:
            return key, session_var.typ.parse(session_var.name, values)[0]
        if session_var is None and _COMPATIBLE.match(key):
            return key, t.TEXT.parse(key, [", ".join(values)])[0]
        raise unrecognized(name)

    def known(self, name: str) -> bool:
        key = name.lower()
        return key in SYSTEM_VARS or (key in SESSION_VARS and key not in _NOT_SYSTEM) or bool(_COMPATIBLE.match(key))

    def apply(self, name: str, text: str | None) -> None:
        """Take a stored setting into effect (None: back to the default)."""
        var = SYSTEM_VARS.get(name)
        if var is not None:
            self._values[name] = var.typ.parse(name, [text if text is not None else var.default])
        elif name in SESSION_VARS:
            if text is None:
                self.session_defaults.pop(name, None)
            else:
                self.session_defaults[name] = text
        elif text is None:
            self._values.pop(name, None)
        else:
            self._values[name] = (text, text)

    def compute_parameters(self) -> dict[str, Any]:
        return {k: self._values[k][1] for k, v in SYSTEM_VARS.items() if v.to_compute}
