"""Prints MIR: one node a line, children indented by two; bindings first.

With
  cte l0 =
    Filter (#0{a} > 5)
      ReadStorage t
Return
  Union
    Get l0
    Negate
      Get l0
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from mzlite.expr import relation as r
from mzlite.expr.aggregates import AGGREGATES
from mzlite.expr.functions import FUNCTIONS
from mzlite.expr.functions.display import literal_form
from mzlite.expr.scalar import (
    Aggregate,
    Call,
    ColumnOrder,
    If,
    Literal,
    Ref,
    Scalar,
    TableFunc,
    Unmaterializable,
    WindowCall,
)
from mzlite.expr.table_functions import TABLE_FUNCTIONS
from mzlite.repr.datum import decode_datum
from mzlite.repr.errors import decode_error
from mzlite.repr.text import format_datum
from mzlite.repr.typenames import type_name
from mzlite.repr.types import ScalarType

_NUMBERS = ("int2", "int4", "int8", "uint2", "uint4", "uint8", "float4", "float8", "numeric", "mz_timestamp")
_PARSED = re.compile(r"=|<>|<=?|>=?|@>|<@|\+|-|\*|/|%|\|\||->>?")  # infix operators that `parse` knows
_QUOTED = ("text", "varchar", "bpchar", "char", "name", "unknown")


def print_literal(value: bytes | None, typ: ScalarType) -> str:
    if value is None:
        return "null"
    text = format_datum(typ, decode_datum(typ, value))
    if typ.kind == "bool":
        return "true" if text in ("t", "true") else "false"
    if typ.kind in _QUOTED or typ.kind in (
        "interval",
        "date",
        "time",
        "timestamp",
        "timestamptz",
        "jsonb",
        "bytea",
        "uuid",
    ):
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    return text


def print_pinned(value: bytes | None, typ: ScalarType) -> str:
    """With its type, unless the parser would take it for a value of that type anyway."""
    text = print_literal(value, typ)
    plain = (typ.kind == "int8" and value is not None) or typ.kind == "bool" or (typ.kind == "numeric" and "." in text)
    if (plain or typ.kind == "text") and value is not None:
        return text
    if value is not None and typ.kind not in _QUOTED and text[:1] not in '"0123456789-':
        text = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    name = type_name(typ.base())
    return f"{text}::{name if name.isidentifier() else typ.kind}"


def print_scalar(e: Scalar, column: Callable[[int], str] | None = None, pin: bool = False) -> str:
    """column: names a reference; default `#n`. pin: so that it parses to the same: types on literals where needed."""
    name = column or (lambda c: f"#{c}")
    match e:
        case Ref(c):
            return name(c)
        case Literal(value, typ, error):
            if error is not None:
                return f'error("{decode_error(error).message}")'
            return print_pinned(value, typ) if pin else print_literal(value, typ)
        case Unmaterializable(func, _):
            return f"{func}()"
        case If(cond, then, els):
            parts = (print_scalar(x, name, pin) for x in (cond, then, els))
            return "case when {} then {} else {} end".format(*parts)
        case Call("not", (Call("is_null", (inner,), _),), _):
            return f"({print_scalar(inner, name, pin)}) IS NOT NULL"
        case Call(func, args, _):
            if column is not None:  # for a person: not the form that `parse` reads back
                form = literal_form(e, lambda a: print_scalar(a, name))
                if form is not None:
                    return form
            entry = FUNCTIONS[func]
            # A number's or NULL's type follows from an argument that has one.
            lone = all(isinstance(a, Literal) for a in args)
            shown = [print_scalar(a, name, pin and (lone or not isinstance(a, Literal) or _quoted(a))) for a in args]
            if pin and entry.infix is not None and not _PARSED.fullmatch(entry.infix) and func not in ("and", "or"):
                return f"{entry.id.partition('<')[0]}({', '.join(shown)})"
            if func in ("and", "or"):
                return "(" + f" {func.upper()} ".join(shown) + ")"
            if entry.infix is not None and len(shown) == 2:
                return f"({shown[0]} {entry.infix} {shown[1]})"
            if entry.display is not None and entry.display.startswith("IS "):
                return f"({shown[0]}) {entry.display}"
            if entry.prefix or (entry.operator and len(shown) == 1):
                return f"{entry.infix or entry.display or entry.name}({shown[0]})"
            return f"{entry.display or entry.name or entry.id.partition('<')[0]}({', '.join(shown)})"
    raise AssertionError(e)


def table_function_name(func: TableFunc) -> str:
    """As in SQL; `ordinality:` in front for WITH ORDINALITY."""
    prefix, colon, id = func.func.rpartition(":")
    return prefix + colon + (TABLE_FUNCTIONS[id].name or id.partition("<")[0])


def _quoted(e: Literal) -> bool:
    return e.value is not None and e.typ.kind not in _NUMBERS and e.typ.kind != "bool"


def print_order(o: ColumnOrder) -> str:
    return f"#{o.column} {'desc' if o.desc else 'asc'} nulls_{'last' if o.nulls_last else 'first'}"


def print_aggregate(a: Aggregate, column: Callable[[int], str] | None = None, pin: bool = False) -> str:
    args = ", ".join(print_scalar(x, column, pin) for x in a.args) or "*"
    if args == "true" and not a.distinct and AGGREGATES[a.func].name == "count":
        args = "*"
    text = f"{AGGREGATES[a.func].name}({'distinct ' if a.distinct else ''}{args}"
    if a.order_by:
        shown = [
            f"{print_scalar(a.order_exprs[o.column], column)} {'desc' if o.desc else 'asc'} nulls_{'last' if o.nulls_last else 'first'}"
            for o in a.order_by
        ]
        text += f" order_by=[{', '.join(shown)}]"
    text += ")"
    if a.filter is not None:
        text += f" filter({print_scalar(a.filter, column, pin)})"
    return text


def print_window_call(c: WindowCall, column: Callable[[int], str] | None = None) -> str:
    f = c.frame
    args = ", ".join(print_scalar(a, column) for a in c.args)
    text = f"{c.func}({args})"
    if c.ignore_nulls:
        text += " ignore nulls"

    def bound(kind: str, offset: Scalar | None) -> str:
        words = kind.replace("_", " ")
        return words if offset is None else f"{print_scalar(offset)} {words}"

    if (f.units, f.start, f.end, f.exclude) != ("range", "unbounded_preceding", "current_row", "no_others"):
        text += f" {f.units} between {bound(f.start, f.start_offset)} and {bound(f.end, f.end_offset)}"
    return text


def _list(scalars: Sequence[Scalar]) -> str:
    return "[" + ", ".join(map(_pinned, scalars)) + "]"


def _pinned(e: Scalar) -> str:
    return print_scalar(e, None, pin=True)


def _refs(columns: Sequence[int]) -> str:
    return ", ".join(f"#{c}" for c in columns)


def print_mir(e: r.Mir, names: Callable[[str], str] = str, indent: int = 0) -> str:
    """names: how to show a global id. Explicit stack: a plan may be deep."""
    out: list[str] = []
    stack: list[tuple[str, r.Mir | None, int]] = [("", e, indent)]
    while stack:
        text, node, depth = stack.pop()
        if node is None:
            out.append("  " * depth + text)
            continue
        if isinstance(node, r.Let | r.LetRec):
            stack.extend(reversed(_bindings(node, depth)))
            continue
        lines = _line(node, names)
        out.extend("  " * (depth + (i > 0)) + line for i, line in enumerate(lines))
        if isinstance(node, r.Get | r.Constant):
            continue
        for k in reversed(r.children(node)):
            stack.append(("", k, depth + 1))
    return "\n".join(out)


def _bindings(node: r.Let | r.LetRec, depth: int) -> list[tuple[str, r.Mir | None, int]]:
    out: list[tuple[str, r.Mir | None, int]] = []
    if isinstance(node, r.Let):
        out.append(("With", None, depth))
        body: r.Mir = node
        while isinstance(body, r.Let):
            out += [(f"cte l{body.id} =", None, depth + 1), ("", body.value, depth + 2)]
            body = body.body
    else:
        limit = ""
        if node.limit is not None:
            limit = f" [recursion_limit={node.limit}{', return_at_limit' if node.return_at_limit else ''}]"
        out.append((f"With Mutually Recursive{limit}", None, depth))
        for id, value, typ in zip(node.ids, node.values, node.typs):
            types = ", ".join(type_name(c.scalar) for c in typ.columns)
            out += [(f"cte l{id} ({types}) =", None, depth + 1), ("", value, depth + 2)]
        body = node.body
    return [*out, ("Return", None, depth), ("", body, depth + 1)]


def _line(node: r.Mir, names: Callable[[str], str]) -> list[str]:
    match node:
        case r.Constant(rows, t, error):
            if error is not None:
                return [f'Error "{decode_error(error).message}"']
            if not rows:
                types = ", ".join(type_name(c.scalar) for c in t.columns)
                return [f"Constant <empty> types=({types})" if types else "Constant <empty>"]
            lines = ["Constant"]
            for datums, diff in rows[:20]:
                row = ", ".join(print_pinned(d, c.scalar) for d, c in zip(datums, t.columns))
                lines.append(f"- ({row})" if diff == 1 else f"- (({row}) x {diff})")
            if len(rows) > 20:
                lines.append(f"... ({len(rows)} rows)")
            return lines
        case r.Get(id, _):
            return [f"Get l{id}" if isinstance(id, int) else f"Get {names(id)}"]
        case r.Project(_, outputs):
            return [f"Project ({_refs(outputs)})"]
        case r.Map(_, scalars):
            return [f"Map ({', '.join(map(_pinned, scalars))})"]
        case r.FlatMap(_, func, exprs):
            return [f"FlatMap {table_function_name(func)}({', '.join(map(_pinned, exprs))})"]
        case r.Filter(_, predicates):
            return [f"Filter {' AND '.join(map(_pinned, predicates))}"]
        case r.Join():
            return _join_line(node)
        case r.Reduce(_, group_key, aggregates):
            if not aggregates:
                return [f"Distinct project={_list(group_key)}" + (" monotonic" if node.monotonic else "")]
            text = "Reduce"
            if group_key:
                text += f" group_by={_list(group_key)}"
            text += f" aggregates=[{', '.join(print_aggregate(a, pin=True) for a in aggregates)}]"
            if node.monotonic:
                text += " monotonic"
            if node.expected_group_size is not None:
                text += f" exp_group_size={node.expected_group_size}"
            return [text]
        case r.TopK(_, group_key, order_by, limit, offset):
            text = "TopK"
            if group_key:
                text += f" group_by=[{_refs(group_key)}]"
            if order_by:
                text += f" order_by=[{', '.join(map(print_order, order_by))}]"
            if limit is not None:
                text += f" limit={print_scalar(limit)}"
            if offset:
                text += f" offset={offset}"
            if node.monotonic:
                text += " monotonic"
            if node.expected_group_size is not None:
                text += f" exp_group_size={node.expected_group_size}"
            return [text]
        case r.Window(_, partition_by, order_by, calls):
            text = "Window"
            if partition_by:
                text += f" partition_by=[{_refs(partition_by)}]"
            if order_by:
                text += f" order_by=[{', '.join(map(print_order, order_by))}]"
            return [text + f" functions=[{', '.join(map(print_window_call, calls))}]"]
        case r.Negate():
            return ["Negate"]
        case r.Threshold():
            return ["Threshold"]
        case r.Union():
            return ["Union"]
        case r.ArrangeBy(_, keys):
            return [f"ArrangeBy keys=[{', '.join(map(_list, keys))}]"]
    raise AssertionError(node)


def _join_line(node: r.Join) -> list[str]:
    impl = node.implementation
    text = "CrossJoin"
    if node.equivalences:
        classes = [" = ".join(map(_pinned, c)) for c in node.equivalences]
        text = f"Join on=({' AND '.join(classes)})"
    match impl:
        case None:
            return [text]
        case r.Differential(start, order):
            path = " » ".join([f"%{start}", *(f"%{i}{_list(k)}" for i, k in order)])
            return [f"{text} type=differential", f"implementation {path}"]
        case r.DeltaQuery(paths):
            lines = [f"{text} type=delta", "implementation"]
            for i, p in enumerate(paths):
                lines.append("  " + " » ".join([f"%{i}", *(f"%{j}{_list(k)}" for j, k in p)]))
            return lines
        case r.IndexedFilter():
            return [f"{text} type=indexed_filter"]
    raise AssertionError(impl)
