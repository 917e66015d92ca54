"""Functions about the system: the session's and the clock's values, catalog look-ups, privileges, sizes.

Unmaterializable ones have no kernel: the planner replaces them by the value they have at the statement's time.
Privilege tests answer true: mzlite has one user who may do everything.
"""

from __future__ import annotations

import re
import time
from typing import Any

from mzlite.expr.call import CallSite
from mzlite.expr.functions.number_casts import identity
from mzlite.expr.functions.registry import register
from mzlite.expr.functions.text import value
from mzlite.expr.functions.time_functions import timezone
from mzlite.expr.kernels.adapt import per_value
from mzlite.expr.kernels.time_format import format_timestamp
from mzlite.repr.calendar import DAY_US, civil_from_days
from mzlite.repr.datum import encode_datum
from mzlite.repr.errors import SqlError
from mzlite.repr.interval import Interval
from mzlite.repr.textcolumns import parse_column
from mzlite.repr.typenames import type_name, type_of_oid
from mzlite.repr.types import INTERVAL, TEXT, ColumnType, ScalarType, record_of

# --- of the session and the clock -------------------------------------------------------------------------------------

_UNMATERIALIZABLE = {
    "now": "timestamptz",
    "current_timestamp": "timestamptz",
    "transaction_timestamp": "timestamptz",
    "statement_timestamp": "timestamptz",
    "clock_timestamp": "timestamptz",
    "localtimestamp": "timestamp",
    "current_date": "date",
    "current_time": "time",
    "localtime": "time",
    "mz_now": "mz_timestamp",
    "current_database": "text",
    "current_catalog": "text",
    "current_role": "text",
    "current_user": "text",
    "session_user": "text",
    "user": "text",
    "current_schema": "text",
    "version": "text",
    "mz_version": "text",
    "mz_version_num": "int4",
    "mz_environment_id": "text",
    "mz_session_id": "uuid",
    "mz_uptime": "interval",
    "mz_is_superuser": "bool",
    "is_rbac_enabled": "bool",
    "pg_backend_pid": "int4",
    "pg_postmaster_start_time": "timestamptz",
    "connection_id": "int4",
}
for _name, _typ in _UNMATERIALIZABLE.items():
    register(_name, f"-> {_typ}", id=_name, nullable="never", can_error=False, unmaterializable=True)
register("current_setting", "text -> text", id="current_setting", unmaterializable=True)
register(
    "current_setting", "text, bool -> text", id="current_setting_missing", nullable="always", unmaterializable=True
)
register("current_schemas", "bool -> text[]", id="current_schemas", unmaterializable=True)


# --- privileges, visibility -------------------------------------------------------------------------------------------


def _always(answer: Any) -> Any:
    return per_value(lambda *args: answer)


def _register_privileges() -> None:
    objects = "table column schema database type function cluster connection secret system any_column sequence"
    for what in objects.split():
        name = f"has_{what}_privilege"
        extra = ["text, "] if what != "system" else [""]
        if what in ("table", "schema", "database", "type", "function", "connection", "secret"):
            extra.append("oid, ")
        if what in ("column",):
            extra = ["text, text, ", "oid, text, "]
        for user in ("text, ", "oid, ", ""):
            for rest in extra:
                register(name, f"{user}{rest}text -> bool", _always(True), can_error=False)
    for name in ("pg_has_role", "has_role"):
        for user in ("text, ", "oid, ", ""):
            for role in ("text, ", "oid, "):
                register(name, f"{user}{role}text -> bool", _always(True), can_error=False)
    for name in ("pg_table_is_visible", "pg_type_is_visible", "pg_function_is_visible"):
        register(name, "oid -> bool", _always(True), can_error=False)
    register("pg_is_in_recovery", "-> bool", _always(False), id="pg_is_in_recovery", can_error=False)
    # There are no advisory locks: drivers release them all when a pool takes a connection back.
    register("pg_advisory_unlock_all", "-> bool", _always(True), id="pg_advisory_unlock_all", can_error=False)
    register("mz_is_system", "-> bool", _always(False), id="mz_is_system", can_error=False)


_register_privileges()


def _nothing(name: str, *signatures: str) -> None:
    """A catalog look-up that finds nothing."""
    for signature in signatures:
        register(name, signature, _always(None), nullable="always", can_error=False)


_nothing("obj_description", "oid, text -> text", "oid -> text")
_nothing("shobj_description", "oid, text -> text")
_nothing("col_description", "oid, int4 -> text")
_nothing("pg_get_constraintdef", "oid -> text", "oid, bool -> text")
_nothing("pg_get_indexdef", "oid -> text", "oid, int4, bool -> text")
_nothing(
    "pg_get_viewdef", "oid -> text", "text -> text", "oid, bool -> text", "text, bool -> text", "oid, int4 -> text"
)
_nothing("pg_get_ruledef", "oid -> text")
_nothing("pg_get_expr", "text, oid -> text", "text, oid, bool -> text")
_nothing("pg_tablespace_location", "oid -> text")
_nothing("pg_get_partkeydef", "oid -> text")
_nothing("mz_global_id_to_name", "text -> text")


@value("pg_get_userbyid", "oid -> text", can_error=False)
def _user_by_id(oid: int) -> str:
    return f"unknown (OID={oid})"


for _signature in ("regclass -> int8", "regclass, text -> int8", "oid -> int8", "oid, text -> int8"):
    register("pg_relation_size", _signature, _always(-1), can_error=False)
for _signature in ("regclass -> int8", "oid -> int8"):
    register("pg_table_size", _signature, _always(-1), can_error=False)
    register("pg_total_relation_size", _signature, _always(-1), can_error=False)
register("pg_stat_get_numscans", "oid -> int8", _always(-1), can_error=False)


@value("pg_encoding_to_char", "int8 -> text", nullable="always", can_error=False)
def _encoding_name(encoding: int) -> str | None:
    return "UTF8" if encoding == 6 else None


@value("pg_char_to_encoding", "text -> int4", can_error=False)
def _encoding_number(name: str) -> int:
    return 6 if name.lower().replace("-", "") == "utf8" else -1


@value("format_type", "oid, int4 -> text", strict=False, nullable="always", can_error=False)
def _format_type(oid: int | None, modifier: int | None) -> str | None:
    """A type's name; the modifier packs length or precision as pg_attribute.atttypmod does."""
    if oid is None:
        return None
    typ = type_of_oid(oid)
    if typ is None:
        return "-" if oid == 0 else "???"
    name = type_name(typ)
    if modifier is None or modifier < 0:
        return name
    match typ.kind:
        case "varchar" | "bpchar":
            return f"{name}({modifier - 4})" if modifier > 4 else name
        case "numeric":
            packed = modifier - 4
            scale = packed & 0xFFFF
            return f"numeric({packed >> 16 & 0xFFFF},{scale - (scale >> 15 << 16)})" if packed >= 0 else name
        case "timestamp" | "timestamptz":
            head, _, tail = name.partition(" ")
            return f"{head}({modifier}) {tail}"
        case "bool" | "int2" | "int4" | "int8" | "float4" | "float8" | "interval" | "time":
            return name
        case _:
            return f"{name}({modifier})"


@value("mz_type_name", "oid -> text", nullable="always", can_error=False)
def _mz_type_name(oid: int) -> str | None:
    typ = type_of_oid(oid)
    if typ is None:
        return None
    return '"char"' if typ.kind == "char" else typ.kind


@value("pg_typeof", "any -> text", with_site=True, strict=False, nullable="never", can_error=False)
def _pg_typeof(site: CallSite, datum: Any) -> str:
    return type_name(site.params[0])


# --- sizes ------------------------------------------------------------------------------------------------------------


def datum_size(typ: ScalarType, datum: Any) -> int:
    """Bytes of a datum in Materialize's row encoding: a tag, then integers and lengths in as few bytes as they need."""
    if datum is None or typ.kind == "bool":
        return 1
    if typ.kind in ("int2", "int4", "int8", "uint2", "uint4", "uint8"):
        return 1 + (int(datum).bit_length() + (8 if typ.kind.startswith("int") else 7)) // 8 if datum else 1
    if typ.kind == "record":
        assert typ.fields is not None
        return 9 + sum(datum_size(c.scalar, v) for (_, c), v in zip(typ.fields, datum))
    size = len(encode_datum(typ, datum))
    if typ.kind in ("text", "varchar", "bpchar", "char", "name", "bytea"):
        return 1 + size + (1 if size < 256 else 2 if size < 65_536 else 4)
    return 1 + size


@value("pg_size_pretty", "int8 -> text", can_error=False)
def _size_pretty(size: int) -> str:
    """In the largest unit that gives at least 10, rounding half up, as PostgreSQL prints sizes."""
    units = ("bytes", "kB", "MB", "GB", "TB", "PB")
    amount, unit, doubled = abs(size), 0, False
    while unit + 1 < len(units) and (amount + 1) // 2 >= 10 * 1024 if doubled else amount >= 10 * 1024:
        # One binary digit is kept below the unit, to round with at the end.
        amount = amount >> 10 if doubled else amount >> 9
        unit, doubled = unit + 1, True
    if doubled:
        amount = (amount + 1) // 2
    return f"{'-' if size < 0 else ''}{amount} {units[unit]}"


@value("pg_column_size", "any -> int4", with_site=True, can_error=False)
def _column_size(site: CallSite, datum: Any) -> int:
    return datum_size(site.params[0], datum)


@value("mz_row_size", "any -> int4", with_site=True)
def _row_size(site: CallSite, datum: Any) -> int:
    if site.params[0].kind != "record":
        raise SqlError("42804", "mz_row_size requires a record type")
    size = datum_size(site.params[0], datum) - 9
    return 24 if size <= 24 else 24 + size


# --- odds and ends ----------------------------------------------------------------------------------------------------


@value("mz_error_if_null", "any, text -> anyelement", strict=False, nullable="never", returns=lambda args: args[0])
def _error_if_null(datum: Any, message: str | None) -> Any:
    if datum is None:
        raise SqlError("22004", message if message is not None else "unexpected NULL")
    return datum


@value("mz_panic", "text -> text")
def _panic(message: str) -> str:
    raise SqlError("XX000", f"forced panic: {message}")


@value("mz_sleep", "float8 -> timestamptz", nullable="always")
def _sleep(seconds: float) -> None:
    time.sleep(max(min(seconds, 600.0), 0.0))


for _kind in ("float8", "numeric"):
    register("mz_avg_promotion", f"{_kind} -> {_kind}", identity, can_error=False)


@value("to_char", "timestamp, text -> text", can_error=False, display="tocharts")
@value("to_char", "timestamptz, text -> text", can_error=False, display="tochartstz")
def _to_char(us: int, text: str) -> str:
    return format_timestamp(us, text)


_ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z", re.ASCII)


@value("try_parse_monotonic_iso8601_timestamp", "text -> timestamp", nullable="always", can_error=False)
def _parse_iso(text: str) -> int | None:
    if _ISO.match(text) is None:
        return None
    try:
        column = parse_column(ScalarType("timestamp"), [text[:-1].replace("T", " ")])
    except SqlError:
        return None
    values: Any = column
    return int(values.values[0])


def _zone_record() -> ScalarType:
    return record_of(
        (
            ("abbrev", ColumnType(TEXT, False)),
            ("base_utc_offset", ColumnType(INTERVAL, False)),
            ("dst_offset", ColumnType(INTERVAL, False)),
        )
    )


@value("timezone_offset", "text, timestamptz -> record", returns=_zone_record())
def _timezone_offset(name: str, us: int) -> tuple[str, Interval, Interval]:
    zone = timezone(name)
    if zone.info is None:
        raise SqlError("22023", f"invalid time zone '{name}'")
    import datetime

    at = datetime.datetime.fromtimestamp(us / 1_000_000, zone.info)
    total, saving = at.utcoffset(), at.dst()
    assert total is not None
    dst_us = int((saving or datetime.timedelta()).total_seconds()) * 1_000_000
    base_us = int(total.total_seconds()) * 1_000_000 - dst_us
    return at.strftime("%Z"), Interval(0, 0, base_us), Interval(0, 0, dst_us)


_DIFF_MONTHS = {"year": 12, "quarter": 3, "month": 1, "decade": 120, "century": 1200, "millennium": 12_000}
_DIFF_US = {
    "week": 7 * DAY_US,
    "day": DAY_US,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "seconds": 1_000_000,
    "milliseconds": 1000,
    "microseconds": 1,
}


def _datediff(unit: str, start: int, end: int) -> int:
    """Boundaries of the unit between two timestamps."""
    from mzlite.expr.kernels.time_units import parse_unit

    name = parse_unit(unit)
    if name in _DIFF_MONTHS:
        (y0, m0, _), (y1, m1, _) = civil_from_days(start // DAY_US), civil_from_days(end // DAY_US)
        step = _DIFF_MONTHS[name]
        return int((y1 * 12 + m1 - 1) // step - (y0 * 12 + m0 - 1) // step)
    if name == "week":
        # Weeks start on Monday; day 0 was a Thursday.
        return (end // DAY_US + 3) // 7 - (start // DAY_US + 3) // 7
    if name in _DIFF_US:
        return end // _DIFF_US[name] - start // _DIFF_US[name]
    raise SqlError("0A000", f"unit '{unit}' not supported for type timestamp")


for _kind in ("timestamp", "timestamptz"):
    register("datediff", f"text, {_kind}, {_kind} -> int8", per_value(_datediff))
register("datediff", "text, date, date -> int8", per_value(lambda u, a, b: _datediff(u, a * DAY_US, b * DAY_US)))
register("datediff", "text, time, time -> int8", per_value(lambda unit, a, b: _datediff(unit, a, b)))
