"""LirRange: which operators a plan node became, for introspection."""

from __future__ import annotations

import msgspec


class LirRange(msgspec.Struct, frozen=True):
    """Operators start <= index < end of the dataflow belong to node lir_id of the object global_id.

    parent: lir_id of the node above, None at the root. nesting: depth below the root.
    """

    global_id: str
    lir_id: int
    operator: str
    parent: int | None
    nesting: int
    start: int
    end: int
