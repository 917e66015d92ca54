"""MapFilterProject plans: order of steps, errors, temporal bounds, and agreement with one row at a time."""

from __future__ import annotations

import random
from typing import Any

from mzlite.expr.mfp import MapFilterProject
from mzlite.expr.mfp_eval import MfpPlan
from mzlite.expr.scalar import Call, Ref
from mzlite.repr.datum import column_from_datums, column_to_datums
from mzlite.repr.errors import decode_error
from mzlite.repr.types import BOOL, INT4, MZ_TIMESTAMP
from tests.unit.expr.test_eval import lit

DIV = Call("div_int4", (Ref(0), Ref(1)), INT4)


def test_predicates_run_as_early_as_they_can() -> None:
    nonzero = Call("not_eq_int4", (Ref(1), lit(INT4, 0)), BOOL)
    mfp = MapFilterProject(2, (DIV,), ((2, nonzero),), (2, 0))
    rows, (quotient, first), errors = MfpPlan(mfp).apply(
        [column_from_datums(INT4, [6, 7, 8]), column_from_datums(INT4, [3, 0, 2])], 3
    )
    assert rows.tolist() == [0, 2]
    assert column_to_datums(INT4, quotient) == [2, 4]
    assert column_to_datums(INT4, first) == [6, 8]
    assert errors is None


def test_a_failed_row_leaves_the_rows() -> None:
    mfp = MapFilterProject(2, (DIV,), ((3, Call("gt_int4", (Ref(2), lit(INT4, 2)), BOOL)),), (2,))
    rows, (quotient,), errors = MfpPlan(mfp).apply(
        [column_from_datums(INT4, [6, 7, 8]), column_from_datums(INT4, [3, 0, 2])], 3
    )
    assert rows.tolist() == [2] and column_to_datums(INT4, quotient) == [4]
    assert errors is not None
    assert errors[0].tolist() == [1] and decode_error(errors[1][0]).message == "division by zero"


def test_identity_and_projection() -> None:
    column = column_from_datums(INT4, [1, 2])
    rows, columns, errors = MfpPlan(MapFilterProject.identity(1)).apply([column], 2)
    assert rows.tolist() == [0, 1] and columns == [column] and errors is None
    rows, columns, _ = MfpPlan(MapFilterProject(1, projection=())).apply([column], 2)
    assert rows.tolist() == [0, 1] and columns == []


def test_temporal_bounds() -> None:
    mfp = MapFilterProject(2, projection=(0,), lower_bounds=(Ref(0),), upper_bounds=(Ref(1),))
    plan = MfpPlan(mfp)
    assert plan.is_temporal
    starts = column_from_datums(MZ_TIMESTAMP, [1, 5, None, 9])
    stops = column_from_datums(MZ_TIMESTAMP, [4, 5, 7, 20])
    rows, _, lower, upper, errors = plan.apply_temporal([starts, stops], 4)
    assert rows.tolist() == [0, 3]  # an empty interval and a NULL bound never hold
    assert lower.tolist() == [1, 9] and upper.tolist() == [4, 20] and errors is None


def row_by_row(mfp: MapFilterProject, rows: list[tuple[Any, ...]]) -> list[tuple[int, Any]]:
    """Reference: the same plan on one row after another."""
    out: list[tuple[int, Any]] = []
    plan = MfpPlan(mfp)
    for i, row in enumerate(rows):
        kept, columns, errors = plan.apply([column_from_datums(INT4, [v]) for v in row], 1)
        if errors is not None:
            out.append((i, decode_error(errors[1][0]).message))
        elif len(kept):
            out.append((i, tuple(column_to_datums(INT4, c)[0] for c in columns)))
    return out


def test_batch_equals_rows() -> None:
    rng = random.Random(0)
    predicate = Call("lt_int4", (Ref(2), lit(INT4, 3)), BOOL)
    mfp = MapFilterProject(2, (DIV, Call("add_int4", (Ref(2), Ref(0)), INT4)), ((3, predicate),), (3, 2, 1))
    rows = [tuple(rng.choice([None, 0, 1, 2, 3, 7, 2147483647]) for _ in range(2)) for _ in range(300)]
    kept, columns, errors = MfpPlan(mfp).apply(
        [column_from_datums(INT4, [r[i] for r in rows]) for i in range(2)], len(rows)
    )
    values = [column_to_datums(INT4, c) for c in columns]
    found: list[tuple[int, Any]] = [(row, tuple(v[j] for v in values)) for j, row in enumerate(kept.tolist())]
    if errors is not None:
        found += [(row, decode_error(e).message) for row, e in zip(errors[0].tolist(), errors[1])]
    assert sorted(found, key=lambda f: f[0]) == row_by_row(mfp, rows)
