"""The entry: one stage of one query, as text or JSON."""

from __future__ import annotations

from adapter.explain.blocks import assemble, finish_line, tail
from adapter.explain.explained import Explained
from adapter.explain.fast_path import fast_path_lines
from adapter.explain.json import explain_json
from adapter.explain.mir import MirPrinter
from adapter.explain.names import ColumnNames, Columns, MirNames, Names
from adapter.explain.options import ExplainOptions
from adapter.explain.physical import physical_lines
from adapter.explain.usage import usages
from mzlite.expr import relation as r
from mzlite.expr.typecheck import typ
from mzlite.repr.types import RelationType


def explain(stage: str, explained: Explained, options: ExplainOptions, names: Names) -> str:
    """One string, lines joined by newlines. stage: raw, decorrelated, locally_optimized, optimized, physical."""
    if stage == "raw":
        assert explained.raw_text is not None
        return _single(explained.raw_text.rstrip("\n").splitlines(), explained, options)
    if options.format == "json":
        return explain_json(stage, explained, options, names)
    if stage in ("decorrelated", "locally_optimized"):
        assert explained.mir is not None
        return _single(_mir_lines(explained.mir, explained, options, names), explained, options)
    return _dataflow(stage, explained, options, names)


def _single(plan: list[str], explained: Explained, options: ExplainOptions) -> str:
    return "\n\n".join("\n".join(b) for b in (plan, *tail(explained, options))) + "\n"


def _mir_lines(mir: r.Mir, explained: Explained, options: ExplainOptions, names: Names) -> list[str]:
    finish = _finish(explained, options, MirNames(mir, names).of(mir))
    lines = MirPrinter(mir, names, options).lines(0 if finish is None else 1)
    return lines if finish is None else [finish, *lines]


def _finish(explained: Explained, options: ExplainOptions, columns: ColumnNames) -> str | None:
    if explained.finishing is None:
        return None
    order = Columns(columns, options.humanized).order(explained.finishing.order_by)
    return finish_line(explained.finishing, order, len(columns))


def _dataflow(stage: str, explained: Explained, options: ExplainOptions, names: Names) -> str:
    path = None if options.no_fast_path else explained.fast_path
    if path is not None:
        key = _lookup_types(explained.mir)
        shown, used, columns = fast_path_lines(path, key, explained.finishing, options, names, explained.imports)
        finish = _finish(explained, options, columns)
        if finish is not None:
            shown = [finish, *("  " + line for line in shown)]
        plan = [(f"{explained.heading} (fast path)", ["  " + line for line in shown])]
        return assemble(plan, explained, used, options, names)
    assert explained.mir is not None
    mir = explained.mir
    used = usages((mir, *(plan for _, _, plan in explained.objects)), explained.imports)
    built = {id for id, _, _ in explained.objects}
    finish = _finish(explained, options, MirNames(mir, names).of(mir))

    def lines(plan: r.Mir, depth: int) -> list[str]:
        if stage == "optimized":
            return MirPrinter(plan, names, options, used, built).lines(depth)
        return ["  " * depth + line for line in physical_lines(plan, explained, options, names)]

    first = lines(mir, 1) if finish is None else ["  " + finish, *lines(mir, 2)]
    plans = [(explained.heading, first), *((name, lines(plan, 1)) for _, name, plan in explained.objects)]
    return assemble(plans, explained, used, options, names)


def _lookup_types(mir: r.Mir | None) -> RelationType | None:
    """Types of the looked-up key, from the plan."""
    if mir is None:
        return None
    for node in r.walk(mir):
        if isinstance(node, r.Join) and isinstance(node.implementation, r.IndexedFilter):
            return typ(node.inputs[1])
    return None
