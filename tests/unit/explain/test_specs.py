"""Golden specs of EXPLAIN; REWRITE=1 refreshes the outputs.

table t (a integer, b integer not null) key (1)      the catalog, for what follows in the file
index t_a_idx on t (a)

# comment
optimized verbose text, humanized expressions        stage, format, options
SELECT …
----
…                                                    the text, up to EOF
EOF
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from adapter.explain import Explained, ExplainOptions, explain
from adapter.sequencer.dataflows import find_imports
from adapter.sequencer.fast_path import FastPathContext, find_fast_path
from adapter.transform import IndexInfo, optimize_dataflow, optimize_local
from mzlite.expr.eval import eval_constant
from mzlite.expr.relation import RowSetFinishing
from mzlite.expr.scalar import Literal, Ref
from mzlite.expr.typecheck import typ
from mzlite.repr.errors import SqlError
from mzlite.repr.ids import GlobalId
from mzlite.repr.typenames import type_by_name
from mzlite.repr.types import ColumnType, RelationDesc, RelationType
from tests.support.sql_planner import Tables, plan_sql

HERE = Path(__file__).parent
SPECS = sorted(HERE.glob("*.spec"))


class Catalog:
    """Also `adapter.explain.Names`."""

    def __init__(self) -> None:
        self.tables: dict[str, tuple[GlobalId, RelationDesc]] = {}
        self.indexes: dict[GlobalId, tuple[IndexInfo, ...]] = {}
        self.names: dict[GlobalId, str] = {}

    def define(self, line: str) -> None:
        table = re.fullmatch(r"table (\w+) \(([^)]*)\)((?: key \([\d, ]*\))*)", line)
        id = GlobalId(f"u{len(self.names) + 1}")
        if table is not None:
            names, types = [], []
            for column in table[2].split(","):
                name, _, kind = column.strip().partition(" ")
                found = type_by_name(kind.removesuffix(" not null"))
                assert found is not None
                names.append(name)
                types.append(ColumnType(found, not kind.endswith(" not null")))
            keys = tuple(tuple(map(int, k.split(","))) for k in re.findall(r"key \(([\d, ]*)\)", table[3]))
            self.tables[table[1]] = (id, RelationDesc(tuple(names), RelationType(tuple(types), keys)))
            self.names[id] = table[1]
            return
        index = re.fullmatch(r"index (\w+) on (\w+) \((.*)\)", line)
        assert index is not None, line
        on, desc = self.tables[index[2]]
        key = tuple(Ref(desc.names.index(c.strip())) for c in index[3].split(","))
        self.indexes[on] = (*self.indexes.get(on, ()), IndexInfo(id, key))
        self.names[id] = index[1]

    def full_name(self, id: GlobalId) -> str:
        return f"materialize.public.{self.names[id]}"

    def short_name(self, id: GlobalId) -> str:
        return self.names[id]

    def columns(self, id: GlobalId) -> Sequence[str] | None:
        return next((desc.names for known, desc in self.tables.values() if known == id), None)


def run(directive: str, sql: str, catalog: Catalog) -> str:
    head, *options = (part.strip() for part in directive.split(","))
    stage, _, format = head.partition(" ")
    try:
        parsed = ExplainOptions.parse(tuple(options), format or None)
    except SqlError as error:
        return f"error {error.sqlstate}: {error.message}\n"
    visible, planned = plan_sql(sql, Tables(catalog.tables))
    limit = None
    mir = visible
    if planned.order_by or planned.limit is not None or planned.offset:
        from adapter.sql.lower import lower_relation

        mir = lower_relation(planned.rel)
        if isinstance(planned.limit, Literal):
            limit = eval_constant(planned.limit)
        finishing = RowSetFinishing(planned.order_by, limit, planned.offset, planned.project)
    else:
        finishing = RowSetFinishing(project=tuple(range(typ(mir).arity)))
    if stage == "decorrelated":
        return explain(stage, Explained(mir, finishing=finishing, cluster="quickstart"), parsed, catalog)
    if stage == "locally_optimized":
        local = optimize_local(mir)
        return explain(stage, Explained(local, finishing=finishing, cluster="quickstart"), parsed, catalog)
    optimized = optimize_dataflow(mir, catalog.indexes, single_time=True)
    context = FastPathContext(
        lambda id: catalog.indexes[id][0].id if id in catalog.indexes else None, lambda id: True, persist_limit=25
    )
    explained = Explained(
        optimized,
        finishing=finishing,
        fast_path=find_fast_path(optimized, finishing, context),
        imports=find_imports([optimized], catalog.indexes, str),
        cluster="quickstart",
    )
    return explain(stage, explained, parsed, catalog)


@pytest.mark.parametrize("path", SPECS, ids=lambda p: p.stem)
def test_spec(path: Path) -> None:
    catalog = Catalog()
    out: list[str] = []
    text = path.read_text()
    lines = iter(text.splitlines())
    for line in lines:
        out.append(line)
        if not line or line.startswith("#"):
            continue
        if line.startswith(("table", "index")):
            catalog.define(line)
            continue
        sql: list[str] = []
        for part in lines:
            out.append(part)
            if part == "----":
                break
            sql.append(part)
        for part in lines:
            if part == "EOF":
                break
        out += [*run(line, "\n".join(sql), catalog).splitlines(), "EOF"]
    now = "\n".join(out) + "\n"
    if os.environ.get("REWRITE") == "1":
        path.write_text(now)
    else:
        assert now == text
