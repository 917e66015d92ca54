"""The check behind property tests and the fuzzer: every rule, and every prefix of the list, keeps a plan's rows."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from adapter.sequencer.interpret import Budget, interpret
from adapter.transform import pipeline
from adapter.transform.context import Context, IndexInfo
from mzlite.expr import relation as r
from mzlite.expr.text import print_mir
from mzlite.expr.typecheck import typ
from mzlite.repr.datum import column_to_datums
from mzlite.repr.ids import GlobalId
from mzlite.repr.updates import Updates
from tests.support.random_mir import INDEXES, RandomMir, random_tables

Rows = list[tuple[object, ...]]
Indexes = Mapping[GlobalId, tuple[IndexInfo, ...]]


def rows_of(e: r.Mir, env: Callable[[GlobalId], Updates]) -> Rows:
    """Each row with its multiplicity, in a fixed order."""
    result = interpret(e, env, Budget())
    columns = [column_to_datums(t.scalar, c) for t, c in zip(typ(e).columns, result.columns)]
    cells = list(zip(*columns)) if columns else [()] * len(result)
    return sorted(((*row, int(d)) for row, d in zip(cells, result.diff)), key=repr)


def check_plan(plan: r.Mir, env: Callable[[GlobalId], Updates], indexes: Indexes, want: Rows) -> None:
    """Each rule alone, then every prefix. errors: AssertionError naming the rule, with the plan before and after it."""
    for step in (*pipeline.LOGICAL, *pipeline.PHYSICAL):
        _same(plan, pipeline.run(plan, (step,), Context(indexes)), env, want, step.rule.__name__)
    check_prefixes(plan, env, indexes, want)


def check_prefixes(
    plan: r.Mir, env: Callable[[GlobalId], Updates], indexes: Indexes, want: Rows, single_time: bool = False
) -> None:
    """The rules one after the other: twice the logical ones, then the physical ones."""
    context = Context(indexes, single_time=single_time)
    after = plan
    for step in (*pipeline.LOGICAL, *pipeline.LOGICAL, *pipeline.PHYSICAL):
        before = after
        after = pipeline.run(after, (step,), context)
        if after is not before and after != before:
            _same(before, after, env, want, step.rule.__name__)
    _same(plan, pipeline.optimize_dataflow(plan, indexes, single_time=single_time), env, want, "the whole list")


def _same(before: r.Mir, after: r.Mir, env: Callable[[GlobalId], Updates], want: Rows, rule: str) -> None:
    if after is before:
        return
    got = rows_of(after, env)
    if got != want:
        raise AssertionError(f"{rule}\n{print_mir(before)}\n->\n{print_mir(after)}\nwant {want}\ngot  {got}")


def check_seed(seed: int, depth: int = 4) -> None:
    """One random plan over random tables."""
    rng = random.Random(seed)
    plan = RandomMir(rng).relation(depth)
    tables = random_tables(rng)
    want = rows_of(plan, tables.__getitem__)
    check_plan(plan, tables.__getitem__, INDEXES, want)
    check_prefixes(plan, tables.__getitem__, INDEXES, want, single_time=True)
