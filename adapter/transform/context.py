"""What a rule may ask besides the plan itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mzlite.expr.scalar import Scalar
from mzlite.expr.typecheck import Types
from mzlite.repr.ids import GlobalId


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """An index that can be read: its id and key, expressions over the indexed collection's columns."""

    id: GlobalId
    key: tuple[Scalar, ...]


@dataclass(slots=True)
class Context:
    """indexes: by indexed collection, on the cluster the plan will run on; empty while plans are optimized locally.

    single_time: the plan is read at one time and thrown away. append_only: collections that never take a row back.
    """

    indexes: Mapping[GlobalId, tuple[IndexInfo, ...]] = field(default_factory=dict)
    types: Types = field(default_factory=Types)
    single_time: bool = False
    append_only: frozenset[GlobalId] = frozenset()
