"""The text of EXPLAIN OPTIMIZED PLAN: fast path or not, finishing, the plan, the indexes used, the cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adapter.sequencer.fast_path import ConstantPath, PeekExisting, PeekPersist
from adapter.sql.plans import ExplainPlan
from mzlite.expr import relation as r
from mzlite.expr.relation import RowSetFinishing
from mzlite.expr.text import print_mir

if TYPE_CHECKING:
    from adapter.coord.coordinator import Coordinator
    from adapter.sequencer.peek import PeekPlan


def explain_plan(
    c: Coordinator, peek: PeekPlan | None, mir: r.Mir, finishing: RowSetFinishing, plan: ExplainPlan
) -> str:
    fast = peek is not None and isinstance(peek.path, ConstantPath | PeekExisting | PeekPersist)
    lines = ["Explained Query (fast path):" if fast else "Explained Query:"]
    body = print_mir(mir).rstrip("\n").split("\n")
    indent = "  "
    finish = _finish(finishing, c.type_of(mir).arity)
    if finish:
        lines.append(f"{indent}{finish}")
        indent += "  "
    lines += [indent + line for line in body]
    if peek is not None:
        used = _used_indexes(c, peek)
        if used:
            lines += ["", "Used Indexes:", *[f"  - {u}" for u in used]]
        if peek.cluster is not None:
            lines += ["", f"Target cluster: {peek.cluster.name}"]
    return "\n".join(lines) + "\n"


def _finish(f: RowSetFinishing, arity: int) -> str:
    parts: list[str] = []
    if f.order_by:
        items = [
            f"#{o.column} {'desc' if o.desc else 'asc'} {'nulls_last' if o.nulls_last else 'nulls_first'}"
            for o in f.order_by
        ]
        parts.append(f"order_by=[{', '.join(items)}]")
    if f.limit is not None:
        parts.append(f"limit={f.limit}")
    if f.offset:
        parts.append(f"offset={f.offset}")
    if not parts and f.project == tuple(range(arity)):
        return ""
    parts.append(f"output=[{', '.join(f'#{i}' for i in f.project)}]")
    return "Finish " + " ".join(parts)


def _used_indexes(c: Coordinator, peek: PeekPlan) -> list[str]:
    match peek.path:
        case PeekExisting(_, index, literals, _):
            how = "*** full scan ***" if literals is None else "lookup"
            return [f"{_name(c, index)} ({how})"]
        case ConstantPath() | PeekPersist():
            return []
        case _:
            ids = sorted(i for i in peek.inputs if i in c.state.items and c.state.items[i].kind == "index")
            return [_name(c, i) for i in ids]


def _name(c: Coordinator, id: str) -> str:
    return c.names_of([id]).get(id, id)  # type: ignore[list-item,call-overload,no-any-return]
