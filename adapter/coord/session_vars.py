"""Session variables: SET, SET LOCAL, RESET, SHOW, and what a transaction's end does to them.

    value = local (this transaction) or session (SET) or role default (ALTER ROLE … SET) or system default or built in

SET inside a transaction is undone by ROLLBACK; SET LOCAL ends with the transaction either way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adapter.coord import var_types as t
from mzlite.repr.errors import SqlError

SERVER_VERSION = "9.5.0"
SERVER_VERSION_NUM = "90500"
MZ_VERSION = "v0.1.0 (mzlite)"


@dataclass(frozen=True, slots=True)
class SessionVar:
    """name: as SHOW ALL prints it. read_only: SET accepts only DEFAULT. report: sent as ParameterStatus."""

    name: str
    typ: t.VarType
    default: str
    description: str
    read_only: bool = False
    report: bool = False


def _v(
    name: str, typ: t.VarType, default: str, description: str, *, ro: bool = False, report: bool = False
) -> SessionVar:
    return SessionVar(name, typ, default, description, ro, report)


SESSION_VARS: dict[str, SessionVar] = {
    v.name.lower(): v
    for v in (
        _v(
            "application_name",
            t.TEXT,
            "",
            "Sets the application name to be reported in statistics and logs.",
            report=True,
        ),
        _v(
            "auto_route_catalog_queries",
            t.BOOL,
            "on",
            "Whether to run queries over only the catalog on mz_catalog_server.",
        ),
        _v("client_encoding", t.ENCODING, "UTF8", "Sets the client's character set encoding.", report=True),
        _v("client_min_messages", t.CLIENT_MESSAGES, "notice", "Sets the message levels that are sent to the client."),
        _v("cluster", t.TEXT, "quickstart", "Sets the current cluster.", report=True),
        _v("cluster_replica", t.TEXT, "", "Sets a target cluster replica for SELECT queries.", report=True),
        _v(
            "current_object_missing_warnings",
            t.BOOL,
            "on",
            "Whether to warn when the current database, schema or cluster is missing.",
        ),
        _v("database", t.TEXT, "materialize", "Sets the current database.", report=True),
        _v("DateStyle", t.DATESTYLE, "ISO, MDY", "Sets the display format for date and time values.", report=True),
        _v(
            "emit_introspection_query_notice",
            t.BOOL,
            "on",
            "Whether to print a notice when querying per-replica introspection.",
        ),
        _v("emit_plan_insights_notice", t.BOOL, "off", "Whether to print a notice with plan insights."),
        _v("emit_timestamp_notice", t.BOOL, "off", "Whether to print a notice with a query's timestamp."),
        _v("emit_trace_id_notice", t.BOOL, "off", "Whether to print a notice with a query's trace id."),
        _v("enable_session_rbac_checks", t.BOOL, "off", "Whether to check privileges for this session."),
        _v("extra_float_digits", t.INT, "3", "Adjusts the number of digits displayed for floating-point values."),
        _v("failpoints", t.TEXT, "", "Allows failpoints to be dynamically activated."),
        _v("force_source_table_syntax", t.BOOL, "off", "Accepted for compatibility."),
        _v(
            "idle_in_transaction_session_timeout",
            t.DURATION,
            "2 min",
            "Ends a session that idles in a transaction for this long; 0 disables.",
        ),
        _v(
            "integer_datetimes",
            t.BOOL,
            "on",
            "Reports whether the server uses 64-bit-integer dates and times.",
            ro=True,
            report=True,
        ),
        _v("IntervalStyle", t.INTERVALSTYLE, "postgres", "Sets the display format for interval values.", report=True),
        _v("is_superuser", t.BOOL, "off", "Reports whether the current session is a superuser.", ro=True, report=True),
        _v("max_identifier_length", t.UINT, "255", "The maximum length of object identifiers in bytes.", ro=True),
        _v("max_query_result_size", t.BYTES, "1GB", "The maximum size in bytes for a single query's result."),
        _v("mz_version", t.TEXT, MZ_VERSION, "Shows the server's version.", ro=True, report=True),
        _v("real_time_recency", t.BOOL, "off", "Feature flag indicating whether real time recency is enabled."),
        _v("real_time_recency_timeout", t.DURATION, "10 s", "Sets the maximum duration for real time recency."),
        _v(
            "search_path",
            t.IDENT_LIST,
            "public",
            "Sets the schema search order for names that are not schema-qualified.",
            report=True,
        ),
        _v(
            "server_version",
            t.TEXT,
            SERVER_VERSION,
            "Shows the PostgreSQL version that is spoken.",
            ro=True,
            report=True,
        ),
        _v("server_encoding", t.TEXT, "UTF8", "Shows the server's encoding.", ro=True, report=True),
        _v("server_version_num", t.TEXT, SERVER_VERSION_NUM, "Shows the PostgreSQL version as an integer.", ro=True),
        _v("sql_safe_updates", t.BOOL, "off", "Prohibits SQL statements that may be overly destructive."),
        _v(
            "standard_conforming_strings",
            t.STRING_LITERALS,
            "on",
            "Causes '...' strings to treat backslashes literally.",
            report=True,
        ),
        _v(
            "statement_logging_sample_rate",
            t.FLOAT,
            "0",
            "User-facing session variable indicating how many statement executions to log.",
        ),
        _v("statement_timeout", t.DURATION, "60 s", "Sets the maximum allowed duration of a statement; 0 disables."),
        _v(
            "TimeZone",
            t.TIMEZONE,
            "UTC",
            "Sets the time zone for displaying and interpreting time stamps.",
            report=True,
        ),
        _v(
            "transaction_isolation",
            t.ISOLATION,
            "strict serializable",
            "Sets the current transaction's isolation level.",
        ),
        _v("unsafe_new_transaction_wall_time", t.TEXT, "", "Sets the wall time of new transactions (tests only)."),
        _v(
            "welcome_message",
            t.BOOL,
            "on",
            "Whether to send a notice with a welcome message after a successful connection.",
        ),
    )
}
"""By lower-case name."""

SHOWN_SPECIALLY = {"schema": "search_path"}


def unrecognized(name: str) -> SqlError:
    return SqlError("42704", f'unrecognized configuration parameter "{name}"')


def read_only(name: str) -> SqlError:
    return SqlError("55P02", f'parameter "{name}" cannot be changed')


class SessionVars:
    """One session's values. `generation` rises with every change (cached plans compare it)."""

    def __init__(self, defaults: Mapping[str, str]) -> None:
        """defaults: role and system defaults by lower-case name, valid values."""
        self._base: dict[str, t.Parsed] = {}
        for key, var in SESSION_VARS.items():
            try:
                self._base[key] = _parse_default(var, defaults.get(key, var.default))
            except SqlError:
                self._base[key] = _parse_default(var, var.default)
        self._session: dict[str, t.Parsed] = {}
        self._local: dict[str, t.Parsed] = {}
        self._saved: dict[str, t.Parsed] | None = None
        self._changed: set[str] = set()
        self.generation = 0
        self._refresh()

    def _refresh(self) -> None:
        self.generation += 1
        self.values: dict[str, t.Parsed] = {**self._base, **self._session, **self._local}
        self.isolation: str = self.values["transaction_isolation"][1]
        self.cluster: str = self.values["cluster"][1]
        self.cluster_replica: str | None = self.values["cluster_replica"][1] or None
        self.database: str = self.values["database"][1]
        self.search_path: tuple[str, ...] = self.values["search_path"][1]
        self.statement_timeout_ms: float = self.values["statement_timeout"][1]
        self.max_query_result_size: int = self.values["max_query_result_size"][1]
        self.key = (self.database, self.search_path, self.cluster, self.cluster_replica, self.isolation)

    def show(self, name: str) -> str | None:
        """The canonical text; None when there is no such session variable."""
        value = self.values.get(name.lower())
        return value[0] if value is not None else None

    def get(self, name: str) -> Any:
        return self.values[name][1]

    def set_base(self, name: str, text: str) -> None:
        """A new built-in default for this session (is_superuser)."""
        self._base[name] = SESSION_VARS[name].typ.parse(name, [text])
        self._refresh()

    def set(self, name: str, values: Sequence[str], local: bool = False) -> None:
        """SET [LOCAL]. SqlError for an unknown name or a bad value."""
        key = name.lower()
        var = SESSION_VARS.get(key)
        if var is None:
            raise unrecognized(name)
        if var.read_only:
            if len(values) == 1 and values[0] == self.values[key][0]:
                return
            raise read_only(var.name)
        self._store(key, var.typ.parse(var.name, values), local)

    def reset(self, name: str, local: bool = False) -> None:
        """RESET, SET … TO DEFAULT."""
        key = name.lower()
        if key not in SESSION_VARS:
            raise unrecognized(name)
        if local:
            self._store(key, self._base[key], True)
            return
        self._save()
        self._local.pop(key, None)
        self._session.pop(key, None)
        self._changed.add(key)
        self._refresh()

    def reset_all(self) -> None:
        self._save()
        self._changed |= set(self._session) | set(self._local)
        self._session = {}
        self._local = {}
        self._refresh()

    def _store(self, key: str, value: t.Parsed, local: bool) -> None:
        self._save()
        if local:
            self._local[key] = value
        else:
            self._local.pop(key, None)
            self._session[key] = value
        self._changed.add(key)
        self._refresh()

    def _save(self) -> None:
        if self._saved is None:
            self._saved = dict(self._session)

    @property
    def clean(self) -> bool:
        """Nothing was set since the transaction began."""
        return self._saved is None

    def end_transaction(self, commit: bool) -> None:
        """Locals go; without commit, so does what the transaction set."""
        if self._saved is None:
            return
        before = self.values
        if not commit:
            self._session = self._saved
        self._saved = None
        self._local = {}
        self._refresh()
        self._changed |= {k for k, v in self.values.items() if before[k] != v}

    def drain_reports(self) -> dict[str, str]:
        """Reportable variables that changed since the last call."""
        if not self._changed:
            return {}
        changed, self._changed = self._changed, set()
        return {SESSION_VARS[k].name: self.values[k][0] for k in sorted(changed) if SESSION_VARS[k].report}

    def reports(self) -> dict[str, str]:
        """Every reportable variable, for the start of a connection."""
        self._changed = set()
        return {v.name: self.values[k][0] for k, v in SESSION_VARS.items() if v.report}


def _parse_default(var: SessionVar, text: str) -> t.Parsed:
    if var.typ is t.IDENT_LIST:
        return var.typ.parse(var.name, split_identifiers(text))
    return var.typ.parse(var.name, [text])


def split_identifiers(text: str) -> list[str]:
    """`a, "b c"` as in a stored search_path."""
    parts: list[str] = []
    current = ""
    quoted = False
    for ch in text:
        if ch == '"':
            quoted = not quoted
        elif ch == "," and not quoted:
            parts.append(current)
            current = ""
        elif quoted or not ch.isspace():
            current += ch
    parts.append(current)
    return [p for p in parts if p]
