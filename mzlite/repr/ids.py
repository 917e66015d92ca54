"""Identifiers. A `GlobalId` names a collection: user `u5`, system `s3`, transient `t4000`.

Plain strings, so that they are dictionary keys and message fields at no cost; the first letter is the kind.
"""

from __future__ import annotations

from typing import NewType

GlobalId = NewType("GlobalId", str)
LocalId = int
LirId = int
ReplicaId = NewType("ReplicaId", str)
ClusterId = NewType("ClusterId", str)


def user(n: int) -> GlobalId:
    return GlobalId(f"u{n}")


def system(n: int) -> GlobalId:
    return GlobalId(f"s{n}")


def transient(n: int) -> GlobalId:
    return GlobalId(f"t{n}")


def is_transient(id: GlobalId) -> bool:
    return id[0] == "t"


def is_system(id: GlobalId) -> bool:
    return id[0] == "s"


def parse_global_id(text: str) -> GlobalId:
    """Parse `u5`, `s3`, `t4000`; a bare number is a user id. ValueError otherwise."""
    if text.isdigit():
        return user(int(text))
    if len(text) > 1 and text[0] in "ust" and text[1:].isdigit():
        return GlobalId(text)
    raise ValueError(f"invalid id {text!r}: expected u1, s1, t1 or a bare number")
