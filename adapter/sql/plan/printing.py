"""HIR as text: EXPLAIN RAW PLAN, and scalars inside error messages.

Project (#1)
  Filter (#0 > 5)
    Get materialize.public.t
"""

from __future__ import annotations

from adapter.sql import hir
from adapter.sql.plan.query import PlannedQuery
from mzlite.expr.aggregates import AGGREGATES
from mzlite.expr.functions import FUNCTIONS
from mzlite.expr.scalar import Literal, Unmaterializable
from mzlite.repr.datum import decode_datum
from mzlite.repr.text import format_datum

_TEXTUAL = frozenset(
    (
        "text",
        "varchar",
        "bpchar",
        "char",
        "name",
        "date",
        "time",
        "timestamp",
        "timestamptz",
        "interval",
        "jsonb",
        "uuid",
        "bytea",
    )
)


def literal_text(e: Literal) -> str:
    if e.error is not None:
        return "error"
    if e.value is None:
        return "null"
    if e.typ.kind == "unknown":
        return f'"{e.value.decode()}"'
    text = format_datum(e.typ, decode_datum(e.typ, e.value))
    if e.typ.kind == "bool":
        return "true" if text == "t" else "false"
    return f'"{text}"' if e.typ.kind in _TEXTUAL else text


def scalar_text(e: hir.Scalar) -> str:
    match e:
        case hir.Column(level, column):
            return "#" + "^" * level + str(column)
        case Literal():
            return literal_text(e)
        case Unmaterializable(func):
            return func if func.startswith("$") else f"{func}()"
        case hir.Call(func, args):
            return _call_text(func, [scalar_text(a) for a in args])
        case hir.If(cond, then, els):
            return f"case when {scalar_text(cond)} then {scalar_text(then)} else {scalar_text(els)} end"
        case hir.Exists(relation):
            return f"exists({_flat(relation)})"
        case hir.ScalarQuery(relation):
            return f"select({_flat(relation)})"
        case hir.Quantified(relation, predicate, every):
            return f"{'all' if every else 'any'}({scalar_text(predicate)} over {_flat(relation)})"
        case hir.Marker(kind, index):
            return f"{kind}{index}"


def _call_text(func: str, args: list[str]) -> str:
    entry = FUNCTIONS[func]
    if func in ("and", "or"):
        return "(" + f" {func.upper()} ".join(args) + ")"
    if func == "not":
        return f"NOT({args[0]})"
    if func.startswith("is_null"):
        return f"({args[0]}) IS NULL"
    if entry.infix is not None and len(args) == 2:
        return f"({args[0]} {entry.infix} {args[1]})"
    if entry.infix is not None and len(args) == 1:
        return f"{entry.infix}{args[0]}"
    if entry.is_cast or func.startswith("cast_"):
        parts = func.split("<")[0].split("_")
        shown = entry.display or f"{_TYPE_WORDS.get(parts[1], parts[1])}_to_{_TYPE_WORDS.get(parts[-1], parts[-1])}"
        return f"{shown}({', '.join(args)})"
    return f"{entry.display or entry.name or func}({', '.join(args)})"


_TYPE_WORDS = {
    "int2": "smallint",
    "int4": "integer",
    "int8": "bigint",
    "float4": "real",
    "float8": "double",
    "bool": "boolean",
    "timestamp": "timestamp",
}


def _flat(r: hir.Relation) -> str:
    return " ".join(line.strip() for line in _lines(r, 0))


def relation_text(planned: PlannedQuery) -> str:
    """A planned query with its finishing."""
    lines = _lines(planned.rel, 0)
    if planned.order_by or planned.limit is not None or planned.offset:
        order = ", ".join(_order(o) for o in planned.order_by)
        parts = [f"order_by=[{order}]"] if planned.order_by else []
        if planned.limit is not None:
            parts.append(f"limit={scalar_text(planned.limit)}")
        if planned.offset:
            parts.append(f"offset={planned.offset}")
        parts.append("output=[" + ", ".join(f"#{c}" for c in planned.project) + "]")
        lines = ["Finish " + " ".join(parts), *("  " + line for line in lines)]
    elif planned.project != tuple(range(len(planned.physical))):
        lines = [_project(planned.project), *("  " + line for line in lines)]
    return "\n".join(lines) + "\n"


def _project(outputs: tuple[int, ...]) -> str:
    return "Project (" + ", ".join(f"#{o}" for o in outputs) + ")"


def _order(o: object) -> str:
    from mzlite.expr.scalar import ColumnOrder

    assert isinstance(o, ColumnOrder)
    return f"#{o.column} {'desc' if o.desc else 'asc'} nulls_{'last' if o.nulls_last else 'first'}"


def _aggregate(a: hir.Aggregate) -> str:
    name = AGGREGATES[a.func].name
    inner = ", ".join(scalar_text(x) for x in a.args)
    text = f"{name}({'distinct ' if a.distinct else ''}{inner})"
    return text if a.filter is None else f"{text} filter {scalar_text(a.filter)}"


def _lines(r: hir.Relation, indent: int) -> list[str]:
    def with_inputs(head: str, *inputs: hir.Relation) -> list[str]:
        return [head, *("  " + line for i in inputs for line in _lines(i, indent + 1))]

    match r:
        case hir.Constant(rows, types):
            if not rows:
                return ["Constant <empty>"]
            shown = [", ".join(literal_text(Literal(v, t)) for v, t in zip(row, types)) for row in rows[:20]]
            return ["Constant", *(f"  - ({row})" for row in shown)]
        case hir.Get(id):
            return [f"Get l{id}" if isinstance(id, int) else f"Get {id}"]
        case hir.Let(name, id, value, body):
            return [
                "With",
                f"  cte [l{id} as {name}] =",
                *("    " + x for x in _lines(value, indent + 2)),
                "Return",
                *("  " + x for x in _lines(body, indent + 1)),
            ]
        case hir.LetRec():
            limit = (
                ""
                if r.limit is None
                else f" [recursion_limit={r.limit}{', return_at_limit' if r.return_at_limit else ''}]"
            )
            out = [f"With Mutually Recursive{limit}"]
            for name, id, value in zip(r.names, r.ids, r.values):
                out += [f"  cte [l{id} as {name}] =", *("    " + x for x in _lines(value, indent + 2))]
            return [*out, "Return", *("  " + x for x in _lines(r.body, indent + 1))]
        case hir.Project(input, outputs):
            return with_inputs(_project(outputs), input)
        case hir.Map(input, scalars):
            return with_inputs("Map (" + ", ".join(scalar_text(s) for s in scalars) + ")", input)
        case hir.Filter(input, predicates):
            return with_inputs("Filter " + " AND ".join(scalar_text(p) for p in predicates), input)
        case hir.Join(left, right, on, kind):
            word = {"inner": "InnerJoin", "left": "LeftOuterJoin", "right": "RightOuterJoin", "full": "FullOuterJoin"}[
                kind
            ]
            if on is None and kind == "inner":
                return with_inputs("CrossJoin", left, right)
            return with_inputs(f"{word} {'true' if on is None else scalar_text(on)}", left, right)
        case hir.Lateral(left, right, on, kind):
            word = "InnerLateralJoin" if kind == "inner" else "LeftOuterLateralJoin"
            return with_inputs(f"{word} {'true' if on is None else scalar_text(on)}", left, right)
        case hir.CallTable(func, args):
            return [f"CallTable {func.func}({', '.join(scalar_text(a) for a in args)})"]
        case hir.Reduce():
            parts = []
            if r.group_key:
                parts.append(f"group_by=[{', '.join(scalar_text(k) for k in r.group_key)}]")
            if r.aggregates:
                parts.append(f"aggregates=[{', '.join(_aggregate(a) for a in r.aggregates)}]")
            return with_inputs(" ".join(["Reduce", *parts]), r.input)
        case hir.Distinct(input):
            return with_inputs("Distinct", input)
        case hir.TopK():
            parts = []
            if r.group_key:
                parts.append("group_by=[" + ", ".join(f"#{g}" for g in r.group_key) + "]")
            if r.order_by:
                parts.append("order_by=[" + ", ".join(_order(o) for o in r.order_by) + "]")
            if r.limit is not None:
                parts.append(f"limit={scalar_text(r.limit)}")
            if r.offset:
                parts.append(f"offset={r.offset}")
            return with_inputs(" ".join(["TopK", *parts]), r.input)
        case hir.Window():
            calls = ", ".join(f"{c.func}({', '.join(scalar_text(a) for a in c.args)})" for c in r.calls)
            parts = [f"calls=[{calls}]"]
            if r.partition_by:
                parts.append("partition_by=[" + ", ".join(f"#{g}" for g in r.partition_by) + "]")
            if r.order_by:
                parts.append("order_by=[" + ", ".join(_order(o) for o in r.order_by) + "]")
            return with_inputs(" ".join(["Window", *parts]), r.input)
        case hir.Union(inputs):
            return with_inputs("Union", *inputs)
        case hir.Negate(input):
            return with_inputs("Negate", input)
        case hir.Threshold(input):
            return with_inputs("Threshold", input)
