"""Values of unmaterializable calls and parameters: what only the session or the moment of planning knows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from adapter.coord.session_vars import MZ_VERSION, SERVER_VERSION
from mzlite.expr.eval import eval_constant, is_constant
from mzlite.expr.scalar import Literal, Scalar, Unmaterializable
from mzlite.repr.datum import ArrayDatum, Interval, encode_datum
from mzlite.repr.errors import SqlError
from mzlite.repr.timestamp import MAX, Timestamp
from mzlite.repr.types import MZ_TIMESTAMP, ScalarType

if TYPE_CHECKING:
    from adapter.coord.coordinator import Coordinator
    from adapter.coord.session import Session


def literal(typ: ScalarType, datum: Any) -> Literal:
    return Literal(None if datum is None else encode_datum(typ, datum), typ)


def mz_now_literal(ts: Timestamp) -> Literal:
    return literal(MZ_TIMESTAMP, ts)


def session_value(
    session: Session, c: Coordinator, params: Sequence[Any], param_types: Sequence[ScalarType]
) -> Callable[[Unmaterializable], Scalar | None]:
    """The substitution for everything but mz_now()."""

    def value(u: Unmaterializable) -> Scalar | None:
        name = u.func
        if name.startswith("$"):
            n = int(name[1:]) - 1
            if n >= len(params):
                raise SqlError("42P02", f"there is no parameter {name}")
            return literal(u.typ, params[n])
        if name == "mz_now":
            return None
        return literal(u.typ, session_datum(name, session, c))

    return value


def session_datum(name: str, session: Session, c: Coordinator) -> Any:
    """The datum of a nullary function of the session."""
    vars = session.vars
    match name:
        case "now" | "current_timestamp" | "transaction_timestamp" | "statement_timestamp":
            return session.wall_time_us()
        case "clock_timestamp":
            return time.time_ns() // 1000
        case "current_user" | "session_user" | "user" | "current_role":
            return session.user
        case "current_database" | "current_catalog":
            return vars.database
        case "current_schema":
            found = c.planning.view(session).current_schemas(vars.database, vars.search_path, False)
            return found[0] if found else None
        case "current_schemas_with_system" | "current_schemas":
            found = c.planning.view(session).current_schemas(vars.database, vars.search_path, True)
            return ArrayDatum.of(found)
        case "current_schemas_without_system":
            return ArrayDatum.of(c.planning.view(session).current_schemas(vars.database, vars.search_path, False))
        case "mz_version":
            return MZ_VERSION
        case "mz_version_num":
            return 100
        case "version":
            return f"PostgreSQL {SERVER_VERSION} on mzlite ({MZ_VERSION})"
        case "pg_backend_pid" | "connection_id":
            return session.pid
        case "pg_postmaster_start_time":
            return c.started_at_us
        case "mz_uptime":
            return Interval(0, 0, time.time_ns() // 1000 - c.started_at_us)
        case "mz_environment_id":
            return c.environment_id
        case "mz_session_id":
            return session.pid.to_bytes(16, "big")
        case "mz_is_superuser":
            return session.superuser
        case "is_rbac_enabled":
            return bool(c.system_vars.get("enable_rbac_checks"))
        case _:
            raise SqlError("0A000", f"{name}() not yet supported")


def time_literal(e: Scalar) -> Timestamp:
    """The time of AS OF / UP TO. SqlError unless it is a constant that is not NULL."""
    if not is_constant(e):
        raise SqlError("0A000", "calling an unmaterializable function in AS OF or UP TO not yet supported")
    invalid = SqlError("22023", "AS OF or UP TO should be castable to a (non-null) mz_timestamp value")
    try:
        datum = eval_constant(e)
    except SqlError:
        raise invalid from None
    if datum is None or not isinstance(datum, int) or not 0 <= datum <= MAX:
        raise invalid
    return datum
