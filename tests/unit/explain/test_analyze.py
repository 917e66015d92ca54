"""EXPLAIN ANALYZE is a query over mz_introspection."""

from __future__ import annotations

from itertools import product

import pytest

from adapter.sql.catalog_view import QualifiedName
from adapter.sql.parse import parse_statements
from adapter.sql.plan.analyze import analyze_sql
from mzlite.repr.errors import SqlError
from mzlite.repr.ids import GlobalId
from mzlite.repr.types import RelationDesc, RelationType
from tests.support.sql_planner import Table

INDEX = Table(
    GlobalId("u3"), QualifiedName("materialize", "public", "i"), RelationDesc((), RelationType(())), kind="index"
)


@pytest.mark.parametrize(
    ("what", "item", "skew"), list(product([("cpu",), ("memory",), ("memory", "cpu")], [INDEX, None], [False, True]))
)
def test_every_form_is_one_query(what: tuple[str, ...], item: Table | None, skew: bool) -> None:
    text = analyze_sql(what, item, skew)
    assert len(parse_statements(text)) == 1
    assert ("worker_id" in text) == skew
    assert ("'u3'" in text) == (item is not None)


def test_each_measure_is_summed_apart() -> None:
    text = analyze_sql(("cpu", "memory"), INDEX, False)
    assert text.count("GROUP BY") == 2


def test_hints_are_not_supported() -> None:
    with pytest.raises(SqlError) as error:
        analyze_sql(("hints",), INDEX, False)
    assert error.value.sqlstate == "0A000"
