"""Fast paths as text: the steps above a peek, and what is peeked.

Project (#4, #3)
  Filter (#1{a} < 0)
    Map ((#1{a} + 5), 1)
      ReadIndex on=materialize.public.iv iv_b_idx=[lookup value=(5)]
"""

from __future__ import annotations

from adapter.explain.mir import constant_lines, shown_values
from adapter.explain.names import ColumnNames, Columns, Names
from adapter.explain.options import ExplainOptions
from adapter.explain.usage import FAST_PATH_LIMIT, FULL_SCAN, LOOKUP, Usages
from adapter.sequencer.dataflows import Imports
from adapter.sequencer.fast_path import ConstantPath, FastPath, PeekExisting, PeekPersist
from mzlite.expr.mfp import MapFilterProject
from mzlite.expr.relation import RowSetFinishing
from mzlite.expr.scalar import Ref
from mzlite.expr.typing import scalar_type
from mzlite.repr.types import RelationType


def fast_path_lines(
    path: FastPath,
    types: RelationType | None,
    finishing: RowSetFinishing | None,
    options: ExplainOptions,
    names: Names,
    imports: Imports | None,
) -> tuple[list[str], Usages, ColumnNames]:
    """Lines without indentation of their own; how the index is used; the names of the result's columns."""
    out = Usages()
    match path:
        case ConstantPath(plan):
            lines = constant_lines(plan.rows, plan.typ, plan.error)
            return [lines[0], *("  " + x for x in lines[1:])], out, (None,) * plan.typ.arity
        case PeekExisting(on, index, literals, mfp):
            if literals is not None:
                word, shown = LOOKUP, shown_values(literals, _key_types(imports, index, types))
            else:
                limited = finishing is not None and finishing.limit is not None and not finishing.order_by
                word, shown = (FAST_PATH_LIMIT if limited else FULL_SCAN), FULL_SCAN
            out.add(index, word)
            read = f"ReadIndex on={names.full_name(on)} {names.short_name(index)}=[{shown}]"
        case PeekPersist(on, mfp):
            read = f"PeekPersist {names.full_name(on)}"
    known = names.columns(on)
    columns = tuple(known) if known is not None and len(known) >= mfp.input_arity else (None,) * mfp.input_arity
    return _steps(mfp, columns[: mfp.input_arity], read, options), out, _outputs(mfp, columns)


def _key_types(imports: Imports | None, index: str, types: RelationType | None) -> RelationType:
    if imports is not None and index in imports.indexes:
        desc, typ = imports.indexes[index]  # type: ignore[index]
        return RelationType(tuple(scalar_type(k, typ.columns) for k in desc.key))
    assert types is not None
    return types


def _steps(mfp: MapFilterProject, columns: ColumnNames, read: str, options: ExplainOptions) -> list[str]:
    c = Columns(columns, options.humanized)
    lines: list[str] = []
    if mfp.projection != tuple(range(mfp.input_arity + len(mfp.expressions))):
        lines.append(f"Project ({c.outputs(mfp.projection)})")
    if mfp.predicates:
        lines.append(f"Filter {' AND '.join(c.scalar(p) for _, p in mfp.predicates)}")
    if mfp.expressions:
        lines.append(f"Map ({c.scalars(mfp.expressions)})")
    lines.append(read)
    return ["  " * i + line for i, line in enumerate(lines)]


def _outputs(mfp: MapFilterProject, columns: ColumnNames) -> ColumnNames:
    named = list(columns[: mfp.input_arity])
    for e in mfp.expressions:
        named.append(named[e.column] if isinstance(e, Ref) else None)
    return tuple(named[c] for c in mfp.projection)
