"""Which plans need no dataflow."""

from __future__ import annotations

import pytest

from adapter.sequencer.fast_path import (
    ConstantPath,
    FastPath,
    FastPathContext,
    PeekExisting,
    PeekPersist,
    find_fast_path,
)
from adapter.transform import optimize_dataflow
from adapter.transform.context import IndexInfo
from mzlite.expr.relation import RowSetFinishing
from mzlite.expr.scalar import ColumnOrder, Ref
from mzlite.expr.text import parse_mir
from mzlite.repr.ids import GlobalId, user
from mzlite.repr.types import INT8, ColumnType, RelationType

PAIR = RelationType((ColumnType(INT8), ColumnType(INT8)))
INDEXED, STORED = user(1), user(2)
INDEXES = {INDEXED: (IndexInfo(user(10), (Ref(0),)),)}
ALL = RowSetFinishing(project=(0, 1))


def context() -> FastPathContext:
    def any_index(id: GlobalId) -> GlobalId | None:
        return INDEXES[id][0].id if id in INDEXES else None

    return FastPathContext(any_index, lambda id: id == STORED, 25)


def path(text: str, finishing: RowSetFinishing = ALL) -> FastPath | None:
    plan = parse_mir(text, {"u1": PAIR, "u2": PAIR})
    return find_fast_path(optimize_dataflow(plan, INDEXES), finishing, context())


def test_a_full_scan_uses_any_index() -> None:
    found = path("Get u1")
    assert isinstance(found, PeekExisting) and found.literals is None and found.index == user(10)


def test_an_equality_on_the_key_is_a_lookup_with_the_rest_as_residual() -> None:
    found = path("Project (#1)\n  Filter (#0 = 5) AND (#1 > 2)\n    Get u1", RowSetFinishing(project=(0,)))
    assert isinstance(found, PeekExisting)
    assert found.literals is not None and len(found.literals) == 1
    assert found.mfp.input_arity == 2 and len(found.mfp.predicates) == 1 and found.mfp.projection == (1,)


def test_alternatives_on_the_key_are_several_lookups() -> None:
    found = path("Filter ((#0 = 5) OR (#0 = 7))\n  Get u1")
    assert isinstance(found, PeekExisting) and found.literals is not None and len(found.literals) == 2


def test_constants_need_nothing() -> None:
    assert isinstance(path("Filter (#0 = 5) AND (#0 = 6)\n  Get u1"), ConstantPath)


def test_a_few_rows_of_a_stored_collection_are_read_directly() -> None:
    few = RowSetFinishing(limit=3, project=(0, 1))
    assert isinstance(path("Get u2", few), PeekPersist)
    assert path("Get u2") is None
    assert path("Get u2", RowSetFinishing(limit=300, project=(0, 1))) is None
    assert path("Filter (#0 = 1)\n  Get u2", few) is None
    assert path("Get u2", RowSetFinishing((ColumnOrder(0),), 3, 0, (0, 1))) is None


@pytest.mark.parametrize(
    "text",
    [
        "Reduce group_by=[#0] aggregates=[sum(#1)]\n  Get u1",
        "Union\n  Get u1\n  Get u1",
        "Join on=(#0 = #2)\n  Get u1\n  Get u1",
    ],
)
def test_real_work_needs_a_dataflow(text: str) -> None:
    finishing = RowSetFinishing(project=(0, 1))
    assert path(text, finishing) is None
