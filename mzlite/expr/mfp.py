"""MapFilterProject: one fused row-wise step, the workhorse of LIR, peeks and imports.

Given input columns 0..arity, append `expressions` (each may use earlier ones), keep rows where all predicates hold,
then output `projection`. Predicates on mz_now() are split off as temporal bounds before a plan runs (`mfp_temporal`).
"""

from __future__ import annotations

import msgspec

from mzlite.expr.scalar import Scalar


class MapFilterProject(msgspec.Struct, frozen=True):
    """predicates: (support position, predicate): the predicate may run once columns < position exist."""

    input_arity: int
    expressions: tuple[Scalar, ...] = ()
    predicates: tuple[tuple[int, Scalar], ...] = ()
    projection: tuple[int, ...] = ()
    # Temporal bounds: mz_now() >= lower (each) and mz_now() < upper (each), scalars of type mz_timestamp over the
    # input and expressions; NULL in a bound drops the row.
    lower_bounds: tuple[Scalar, ...] = ()
    upper_bounds: tuple[Scalar, ...] = ()

    @staticmethod
    def identity(arity: int) -> MapFilterProject:
        return MapFilterProject(arity, projection=tuple(range(arity)))

    def is_identity(self) -> bool:
        return (
            not self.expressions
            and not self.predicates
            and not self.lower_bounds
            and not self.upper_bounds
            and self.projection == tuple(range(self.input_arity))
        )
