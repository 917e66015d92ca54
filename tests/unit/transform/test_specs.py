"""Golden specs of the optimizer's rules: `<rule>.spec` beside this file, one per rule; REWRITE=1 refreshes the outputs.

    # comment
    table u1 (integer, integer not null) key (1)     the collections that plans may read, and
    index u10 on u1 (#0)                             the indexes on them, for what follows in the file; tables called
                                                     u9… only grow

    rewrite                                          one directive: rewrite (the rule of the file's name),
    Filter (#0 = 5)                                  local or dataflow (the whole list), once (a read at a single time)
      Get u1
    ----
    …                                                what becomes of it

Every case also runs both plans on small random tables: the rows must be the same, unless the first one fails.
"""

from __future__ import annotations

import importlib
import os
import random
import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from adapter.transform import IndexInfo, optimize_dataflow, optimize_local, pipeline
from adapter.transform.context import Context
from mzlite.expr import relation as r
from mzlite.expr.text import parse_mir, print_mir
from mzlite.expr.text.parse import _Parser
from mzlite.repr.errors import SqlError
from mzlite.repr.ids import GlobalId
from mzlite.repr.typenames import type_by_name
from mzlite.repr.types import ColumnType, RelationType, ScalarType
from mzlite.repr.updates import Updates, updates_from_rows
from tests.support.plan_check import rows_of

HERE = Path(__file__).parent
SPECS = sorted(HERE.glob("*.spec"))


@dataclass
class Catalog:
    tables: dict[str, RelationType] = field(default_factory=dict)
    indexes: dict[GlobalId, tuple[IndexInfo, ...]] = field(default_factory=dict)

    def define(self, line: str) -> None:
        table = re.fullmatch(r"table (\w+) \(([^)]*)\)((?: key \([\d, ]*\))*)", line)
        if table is not None:
            columns = tuple(_column(c.strip()) for c in table[2].split(",") if c.strip())
            keys = tuple(
                tuple(int(c) for c in k.split(",") if c.strip()) for k in re.findall(r"key \(([\d, ]*)\)", table[3])
            )
            self.tables[table[1]] = RelationType(columns, keys)
            return
        index = re.fullmatch(r"index (\w+) on (\w+) \((.*)\)", line)
        assert index is not None, line
        key = _Parser(self.tables).scalars(f"[{index[3]}]", self.tables[index[2]].columns)
        on = GlobalId(index[2])
        self.indexes[on] = (*self.indexes.get(on, ()), IndexInfo(GlobalId(index[1]), key))


def _column(text: str) -> ColumnType:
    name = text.removesuffix(" not null")
    typ = type_by_name(name)
    assert typ is not None, name
    return ColumnType(typ, nullable=name == text)


def _apply(directive: str, rule: str, plan: r.Mir, catalog: Catalog) -> r.Mir:
    match directive:
        case "rewrite":
            step = pipeline.Step(getattr(importlib.import_module(f"adapter.transform.{rule}"), rule), "")
            append_only = frozenset(GlobalId(t) for t in catalog.tables if t.startswith("u9"))
            return pipeline.run(plan, (step,), Context(catalog.indexes, append_only=append_only))
        case "local":
            return optimize_local(plan)
        case "dataflow":
            return optimize_dataflow(plan, catalog.indexes)
        case "once":
            return optimize_dataflow(plan, catalog.indexes, single_time=True)
    raise AssertionError(f"unknown directive {directive}")


def _datum(rng: random.Random, typ: ScalarType) -> object:
    match typ.kind:
        case "text":
            return rng.choice(["", "a", "b"])
        case "bool":
            return rng.random() < 0.5
        case _:
            return rng.randrange(4)


def _tables(catalog: Catalog, seed: int) -> dict[str, Updates]:
    """Rows that respect NOT NULL and the keys."""
    rng = random.Random(seed)
    out = {}
    for name, typ in catalog.tables.items():
        rows: list[tuple[object, ...]] = []
        for _ in range(rng.randrange(8)):
            row = tuple(None if c.nullable and rng.random() < 0.2 else _datum(rng, c.scalar) for c in typ.columns)
            if all(all(tuple(o[c] for c in k) != tuple(row[c] for c in k) for o in rows) for k in typ.keys):
                rows.append(row)
        out[name] = updates_from_rows([c.scalar for c in typ.columns], rows, 0)
    return out


def run_block(block: str, rule: str, catalog: Catalog) -> str:
    """The block with its output as it is now."""
    lines = block.splitlines()
    comments = [line for line in lines if line.startswith("#")]
    lines = lines[len(comments) :]
    if not lines:
        return block
    if lines[0].split()[0] in ("table", "index"):
        for line in lines:
            catalog.define(line)
        return block
    directive, *rest = lines
    source = rest[: rest.index("----")]
    plan = parse_mir("\n".join(source), catalog.tables)
    result = _apply(directive, rule, plan, catalog)
    for seed in range(5):
        tables = _tables(catalog, seed)
        try:
            want = rows_of(plan, tables.__getitem__)
        except SqlError:
            continue  # a plan that fails may fail less once optimized
        assert rows_of(result, tables.__getitem__) == want, block
    return "\n".join([*comments, directive, *source, "----", print_mir(result)])


@pytest.mark.parametrize("path", SPECS, ids=lambda p: p.stem)
def test_spec(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "CHECKS", True)
    catalog = Catalog()
    text = path.read_text()
    blocks = [b for b in re.split(r"\n\n+", text.strip("\n"))]
    now = "\n\n".join(run_block(b, path.stem, catalog) for b in blocks) + "\n"
    if os.environ.get("REWRITE") == "1":
        path.write_text(now)
    else:
        assert now == text


def test_every_rule_has_a_spec() -> None:
    rules = {step.rule.__name__ for step in (*pipeline.LOGICAL, *pipeline.PHYSICAL)}
    assert rules <= {p.stem for p in SPECS}
