"""KeyLayout: how rows with a key of arbitrary expressions lie in a batch.

    row columns 0..arity | one extra column per key expression that is not a plain column

so that the key is always a choice of stored columns, and a reader that wants the rows takes the first `arity`.
"""

from __future__ import annotations

from collections.abc import Sequence

from mzlite.expr.mfp import MapFilterProject
from mzlite.expr.mfp_eval import MfpPlan
from mzlite.expr.scalar import Ref, Scalar
from mzlite.repr.column import I64, Column

EvalErrors = tuple[I64, list[bytes]]


class KeyLayout:
    """key: expressions over `arity` columns. positions: where each key expression's value is stored."""

    def __init__(self, key: tuple[Scalar, ...], arity: int) -> None:
        self.key = key
        self.arity = arity
        extras: list[Scalar] = []
        positions: list[int] = []
        for e in key:
            if isinstance(e, Ref):
                positions.append(e.column)
            elif e in extras:
                positions.append(arity + extras.index(e))
            else:
                positions.append(arity + len(extras))
                extras.append(e)
        self.positions = tuple(positions)
        self.extras = tuple(extras)
        self.width = arity + len(extras)
        self.plan: MfpPlan | None = None
        if extras:
            self.plan = MfpPlan(MapFilterProject(arity, tuple(extras), (), tuple(range(self.width))))

    def extend(self, columns: Sequence[Column], n: int) -> tuple[I64 | None, tuple[Column, ...], EvalErrors | None]:
        """(rows kept, or None = all; stored columns; errors): rows whose key cannot be evaluated are errors."""
        if self.plan is None:
            return None, tuple(columns), None
        rows, out, errors = self.plan.apply(columns, n)
        return (None if len(rows) == n else rows), tuple(out), errors
