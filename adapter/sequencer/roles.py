"""ALTER ROLE … SET/RESET: defaults of a role's future sessions. Other attributes are accepted without effect."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from adapter.catalog.state import DEFAULT_ROLE, CatalogTransaction
from adapter.coord.session_vars import SESSION_VARS, unrecognized
from mzlite.repr.errors import SqlError

if TYPE_CHECKING:
    from adapter.coord.coordinator import Coordinator
    from adapter.coord.session import Session


async def alter_role(c: Coordinator, session: Session, words: tuple[str, ...]) -> None:
    """words: of the statement, folded: alter role NAME set VARIABLE to VALUE, … | reset VARIABLE | anything else."""
    if len(words) < 5 or words[3] not in ("set", "reset"):
        return
    name, action, variable = words[2], words[3], words[4].lower()
    role = c.state.role(name)
    if role is None:
        raise SqlError("42704", f"unknown role '{name}'")
    if role.id != session.role_id and not session.superuser and session.role_id != DEFAULT_ROLE:
        raise SqlError(
            "42501",
            "permission denied for SYSTEM",
            detail=f"The '{session.user}' role needs CREATEROLE privileges on SYSTEM",
        )
    var = SESSION_VARS.get(variable)
    if var is None:
        raise unrecognized(words[4])
    values = [w for w in words[5:] if w not in (",", "=") and not (w == "to" and words[5] == "to")]
    settings = {k: v for k, v in role.variables if k != variable}
    if action == "set" and [v.lower() for v in values] != ["default"]:
        settings[variable] = var.typ.parse(var.name, values)[0]
    async with c.ddl_lock:
        tx = CatalogTransaction(c.state)
        tx.put_role(replace(c.state.roles[role.id], variables=tuple(settings.items())))
        await c.commit_catalog(tx)
