"""Syntax trees back to text, in Materialize's style: canonical create_sql and SHOW CREATE.

`qualify` replaces the names of catalog relations and custom types by full ones as it prints; CTE names stay. The text
parses back to the same tree (up to positions and the qualification).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from adapter.sql import ast
from adapter.sql.parse.cursor import RESERVED

Qualify = Callable[[tuple[str, ...]], tuple[str, ...]]
_PLAIN = re.compile(r"[a-z_][a-z0-9_$]*\Z")
_UNSAFE = RESERVED | frozenset(
    [
        "as",
        "and",
        "or",
        "not",
        "null",
        "true",
        "false",
        "case",
        "when",
        "then",
        "else",
        "end",
        "array",
        "list",
        "map",
        "row",
        "interval",
        "cast",
        "exists",
        "any",
        "all",
        "some",
        "on",
        "using",
        "join",
        "left",
        "right",
        "full",
        "inner",
        "cross",
        "natural",
        "lateral",
        "default",
        "distinct",
        "in",
        "is",
        "like",
        "ilike",
        "between",
    ]
)


def ident(name: str) -> str:
    """A name as SQL, quoted only where it must be."""
    if _PLAIN.match(name) and name not in _UNSAFE:
        return name
    return '"' + name.replace('"', '""') + '"'


def idents(parts: Sequence[str]) -> str:
    return ".".join(ident(p) for p in parts)


def string(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


class Printer:
    """qualify: full name of a relation; qualify_type: of a type. ctes: names in scope that are not the catalog's."""

    def __init__(self, qualify: Qualify | None = None, qualify_type: Qualify | None = None) -> None:
        self.qualify = qualify or (lambda parts: parts)
        self.qualify_type = qualify_type or (lambda parts: parts)
        self.ctes: list[frozenset[str]] = []

    # ---- types

    def type_name(self, t: ast.TypeName) -> str:
        if t.container == "map":
            assert t.key is not None and t.element is not None
            return f"map[{self.type_name(t.key)}=>{self.type_name(t.element)}]"
        if t.container is not None:
            assert t.element is not None
            return self.type_name(t.element) + ("[]" if t.container == "array" else " list")
        name = '"char"' if t.quoted and t.parts == ("char",) else idents(self.qualify_type(t.parts))
        if t.modifiers:
            name += f"({', '.join(map(str, t.modifiers))})"
        return name

    # ---- expressions

    def exprs(self, items: Sequence[ast.Expr]) -> str:
        return ", ".join(self.expr(i) for i in items)

    def operand(self, e: ast.Expr) -> str:
        """An operand, in parentheses unless it is atomic."""
        text = self.expr(e)
        match e:
            case (
                ast.Name()
                | ast.String()
                | ast.Null()
                | ast.Bool()
                | ast.Param()
                | ast.FuncCall(syntax=None)
                | ast.Subquery()
                | ast.ArrayLit()
                | ast.MapLit()
                | ast.Row()
                | ast.Case()
                | ast.Star()
            ):
                return text
            case ast.Number(number):
                return f"({text})" if number.startswith("-") else text
            case ast.Cast():
                return text
            case _:
                return f"({text})"

    def expr(self, e: ast.Expr) -> str:
        match e:
            case ast.Name(parts):
                return idents(parts)
            case ast.Star(qualifier):
                return f"{idents(qualifier)}.*" if qualifier else "*"
            case ast.Number(text):
                return text
            case ast.String(value):
                return string(value)
            case ast.Null():
                return "NULL"
            case ast.Bool(value):
                return "TRUE" if value else "FALSE"
            case ast.Param(number):
                return f"${number}"
            case ast.Interval():
                fields = "" if e.start is None else f" {e.start.upper()}"
                fields += "" if e.end is None else f" TO {e.end.upper()}"
                precision = "" if e.precision is None else f"({e.precision})"
                return (
                    f"INTERVAL {string(e.value)}{fields}{precision}"
                    if fields
                    else f"INTERVAL{precision} {string(e.value)}"
                )
            case ast.Default():
                return "DEFAULT"
            case ast.Unary(op, operand):
                return f"{op} {self.operand(operand)}" if op not in ("-", "+") else f"{op}{self.operand(operand)}"
            case ast.Binary(op, left, right):
                return f"{self.binary_operand(left)} {op} {self.operand(right)}"
            case ast.And(operands):
                return " AND ".join(self.logical(o, (ast.Or,)) for o in operands)
            case ast.Or(operands):
                return " OR ".join(self.logical(o, ()) for o in operands)
            case ast.Not(operand):
                return f"NOT {self.operand(operand)}"
            case ast.Is(operand, what, negated):
                return f"{self.operand(operand)} IS {'NOT ' if negated else ''}{what.upper()}"
            case ast.IsDistinct(left, right, negated):
                return f"{self.operand(left)} IS {'NOT ' if negated else ''}DISTINCT FROM {self.operand(right)}"
            case ast.Like(operand, pattern, escape, op, negated):
                word = "SIMILAR TO" if op == "similar" else op.upper()
                tail = "" if escape is None else f" ESCAPE {self.operand(escape)}"
                return f"{self.operand(operand)} {'NOT ' if negated else ''}{word} {self.operand(pattern)}{tail}"
            case ast.Between(operand, low, high, negated, symmetric):
                word = "BETWEEN SYMMETRIC" if symmetric else "BETWEEN"
                return f"{self.operand(operand)} {'NOT ' if negated else ''}{word} {self.operand(low)} AND {self.operand(high)}"
            case ast.InList(operand, items, negated):
                return f"{self.operand(operand)} {'NOT ' if negated else ''}IN ({self.exprs(items)})"
            case ast.InQuery(operand, query, negated):
                return f"{self.operand(operand)} {'NOT ' if negated else ''}IN ({self.query(query)})"
            case ast.Quantified(operand, op, every, right):
                inner = self.query(right) if isinstance(right, ast.Query) else self.expr(right)
                return f"{self.operand(operand)} {op} {'ALL' if every else 'ANY'} ({inner})"
            case ast.Cast(operand, typ):
                return f"{self.operand(operand)}::{self.type_name(typ)}"
            case ast.Collate(operand, collation):
                return f"{self.operand(operand)} COLLATE {idents(collation)}"
            case ast.Case(operand, whens, default):
                words = ["CASE"] if operand is None else ["CASE", self.expr(operand)]
                words += [f"WHEN {self.expr(w)} THEN {self.expr(t)}" for w, t in whens]
                if default is not None:
                    words.append(f"ELSE {self.expr(default)}")
                return " ".join([*words, "END"])
            case ast.FuncCall():
                return self.call(e)
            case ast.Subquery(query, kind):
                word = "" if kind == "scalar" else "EXISTS" if kind == "exists" else kind.upper()
                return f"{word}({self.query(query)})"
            case ast.ArrayLit(items, kind):
                return f"{kind.upper()}[{self.exprs(items)}]"
            case ast.MapLit(entries):
                return f"MAP[{', '.join(f'{self.expr(k)} => {self.expr(v)}' for k, v in entries)}]"
            case ast.Row(items):
                return f"ROW({self.exprs(items)})"
            case ast.Subscript(operand, indexes):
                out = self.operand(operand)
                for index in indexes:
                    if isinstance(index, ast.Slice):
                        start = "" if index.start is None else self.expr(index.start)
                        end = "" if index.end is None else self.expr(index.end)
                        out += f"[{start}:{end}]"
                    else:
                        out += f"[{self.expr(index)}]"
                return out
            case ast.Field(operand, name):
                return f"({self.expr(operand)}).{ident(name)}"
            case ast.FieldStar(operand):
                return f"({self.expr(operand)}).*"

    def binary_operand(self, e: ast.Expr) -> str:
        """The left operand: a chain of one precedence needs no parentheses, but any other operator does."""
        return self.operand(e)

    def logical(self, e: ast.Expr, weaker: tuple[type, ...]) -> str:
        text = self.expr(e)
        return f"({text})" if isinstance(e, (*weaker, ast.Or)) else text

    def call(self, e: ast.FuncCall) -> str:
        name = idents(e.name)
        if e.syntax == "constant":
            return name
        if e.syntax == "extract":
            assert isinstance(e.args[0], ast.String)
            return f"EXTRACT({e.args[0].value} FROM {self.expr(e.args[1])})"
        if e.syntax == "position":
            return f"POSITION({self.operand(e.args[0])} IN {self.expr(e.args[1])})"
        if e.syntax == "at_time_zone":
            return f"{self.operand(e.args[1])} AT TIME ZONE {self.operand(e.args[0])}"
        inner = "*" if e.star else self.exprs(e.args)
        if e.distinct:
            inner = f"DISTINCT {inner}"
        if e.order_by and not e.within_group:
            inner += f" ORDER BY {self.order_by(e.order_by)}"
        out = f"{name}({inner})"
        if e.filter is not None:
            out += f" FILTER (WHERE {self.expr(e.filter)})"
        if e.nulls is not None:
            out += f" {e.nulls.upper()} NULLS"
        if e.over is not None:
            out += (
                f" OVER {ident(e.over.name)}"
                if _bare_window(e.over) and e.over.name
                else f" OVER ({self.window(e.over)})"
            )
        return out

    def window(self, w: ast.WindowSpec) -> str:
        parts: list[str] = []
        if w.name is not None:
            parts.append(ident(w.name))
        if w.partition_by:
            parts.append(f"PARTITION BY {self.exprs(w.partition_by)}")
        if w.order_by:
            parts.append(f"ORDER BY {self.order_by(w.order_by)}")
        if w.frame is not None:
            frame = w.frame
            text = f"{frame.units.upper()} BETWEEN {self.bound(frame.start)} AND {self.bound(frame.end)}"
            if frame.exclude != "no_others":
                text += f" EXCLUDE {frame.exclude.replace('_', ' ').upper()}"
            parts.append(text)
        return " ".join(parts)

    def bound(self, b: ast.FrameBound) -> str:
        words = b.kind.replace("_", " ").upper()
        return words if b.offset is None else f"{self.expr(b.offset)} {words}"

    def order_by(self, items: Sequence[ast.OrderItem]) -> str:
        out: list[str] = []
        for item in items:
            text = self.expr(item.expr)
            if item.desc:
                text += " DESC"
            if item.nulls_first is not None:
                text += " NULLS FIRST" if item.nulls_first else " NULLS LAST"
            out.append(text)
        return ", ".join(out)

    # ---- queries

    def query(self, q: ast.Query) -> str:
        names: set[str] = {c.name for c in q.ctes}
        if q.recursion is not None:
            names |= {c.name for c in q.recursion.ctes}
        self.ctes.append(frozenset(names))
        try:
            parts = [self.with_(q)] if q.ctes or q.recursion is not None else []
            parts.append(self.body(q.body))
            if q.order_by:
                parts.append(f"ORDER BY {self.order_by(q.order_by)}")
            if q.limit is not None:
                parts.append(f"LIMIT {self.expr(q.limit)}")
            if q.offset is not None:
                parts.append(f"OFFSET {self.expr(q.offset)}")
            return " ".join(parts)
        finally:
            self.ctes.pop()

    def with_(self, q: ast.Query) -> str:
        if q.recursion is not None:
            r = q.recursion
            options = ""
            if r.options:
                options = " (" + ", ".join(f"{n.upper()} = {v}" for n, v in r.options) + ")"
            bindings = ", ".join(
                f"{ident(c.name)} ({', '.join(f'{ident(n)} {self.type_name(t)}' for n, t in c.columns)}) AS ({self.query(c.query)})"
                for c in r.ctes
            )
            return f"WITH MUTUALLY RECURSIVE{options} {bindings}"
        word = "WITH RECURSIVE" if q.recursive else "WITH"
        bindings = ", ".join(f"{ident(c.name)}{self.column_list(c.columns)} AS ({self.query(c.query)})" for c in q.ctes)
        return f"{word} {bindings}"

    def column_list(self, columns: Sequence[str]) -> str:
        return f" ({', '.join(map(ident, columns))})" if columns else ""

    def body(self, b: ast.Body) -> str:
        match b:
            case ast.Select():
                return " ".join(self.select(b))
            case ast.SetOp(op, every, left, right):
                word = f"{op.upper()}{' ALL' if every else ''}"
                return f"{self.set_operand(left)} {word} {self.set_operand(right, True)}"
            case ast.Values(rows):
                return "VALUES " + ", ".join(f"({self.exprs(row)})" for row in rows)
            case ast.TableBody(parts):
                return f"TABLE {self.table_name(parts)}"
            case ast.Query():
                return f"({self.query(b)})"
            case ast.ShowBody():
                return "SHOW"

    def set_operand(self, b: ast.Body, right: bool = False) -> str:
        text = self.body(b)
        return f"({text})" if right and isinstance(b, ast.SetOp) else text

    def select(self, s: ast.Select) -> list[str]:
        """The clauses, in order."""
        head = "SELECT"
        if s.distinct is not None:
            head += f" DISTINCT ON ({self.exprs(s.distinct)})" if s.distinct else " DISTINCT"
        items = ", ".join(self.item(i) for i in s.items)
        parts = [f"{head} {items}" if items else head]
        if s.from_:
            parts.append("FROM " + ", ".join(self.table(t) for t in s.from_))
        if s.where is not None:
            parts.append(f"WHERE {self.expr(s.where)}")
        if s.grouped:
            parts.append(f"GROUP BY {self.exprs(s.group_by)}")
        if s.having is not None:
            parts.append(f"HAVING {self.expr(s.having)}")
        if s.windows:
            parts.append("WINDOW " + ", ".join(f"{ident(n)} AS ({self.window(w)})" for n, w in s.windows))
        if s.qualify is not None:
            parts.append(f"QUALIFY {self.expr(s.qualify)}")
        if s.options:
            parts.append("OPTIONS (" + ", ".join(f"{n.upper()} = {v}" for n, v in s.options) + ")")
        return parts

    def item(self, i: ast.SelectItem) -> str:
        text = self.expr(i.expr)
        return text if i.alias is None else f"{text} AS {ident(i.alias)}"

    def table_name(self, parts: tuple[str, ...]) -> str:
        if len(parts) == 1 and any(parts[0] in frame for frame in self.ctes):
            return idents(parts)
        return idents(self.qualify(parts))

    def alias(self, a: ast.Alias | None) -> str:
        return "" if a is None else f" AS {ident(a.name)}{self.column_list(a.columns)}"

    def table(self, t: ast.TableExpr) -> str:
        match t:
            case ast.TableRef(parts, alias):
                return self.table_name(parts) + self.alias(alias)
            case ast.Derived(query, alias, lateral):
                return f"{'LATERAL ' if lateral else ''}({self.query(query)}){self.alias(alias)}"
            case ast.ShowDerived(_, alias):
                return f"(SHOW){self.alias(alias)}"
            case ast.TableFunction():
                calls = ", ".join(self.call(f) for f in t.functions)
                text = f"ROWS FROM ({calls})" if t.rows_from else calls
                if t.ordinality:
                    text += " WITH ORDINALITY"
                return f"{'LATERAL ' if t.lateral else ''}{text}{self.alias(t.alias)}"
            case ast.JoinExpr():
                return self.join(t)

    def join(self, j: ast.JoinExpr) -> str:
        words = {
            "inner": "JOIN",
            "left": "LEFT JOIN",
            "right": "RIGHT JOIN",
            "full": "FULL JOIN",
            "cross": "CROSS JOIN",
        }[j.kind]
        if j.natural:
            words = f"NATURAL {words}"
        right = self.table(j.right)
        if isinstance(j.right, ast.JoinExpr):
            right = f"({right})" if j.right.alias is None else right
        text = f"{self.table(j.left)} {words} {right}"
        if j.on is not None:
            text += f" ON {self.expr(j.on)}"
        elif j.using is not None:
            text += f" USING({', '.join(map(ident, j.using))})"
            if j.using_alias is not None:
                text += f" AS {ident(j.using_alias)}"
        return text if j.alias is None else f"({text}){self.alias(j.alias)}"


def _bare_window(w: ast.WindowSpec) -> bool:
    return not w.partition_by and not w.order_by and w.frame is None


def pretty(sql: str, width: int = 100) -> str:
    """A stored definition as SHOW CREATE prints it."""
    from adapter.sql import statements as st
    from adapter.sql.parse import parse_statements

    (statement,) = parse_statements(sql)
    printer = Printer()
    match statement:
        case st.CreateView():
            name = idents(statement.name) + printer.column_list(statement.columns)
            line = f"CREATE VIEW {name} AS {printer.query(statement.query)};"
            if len(line) <= width:
                return line
            return f"CREATE VIEW\n    {name}\n    AS\n" + _lines(printer, statement.query, 8) + ";"
        case st.CreateMaterializedView():
            head, _, _ = sql.partition(" AS ")
            out = [f"CREATE MATERIALIZED VIEW {idents(statement.name)}{printer.column_list(statement.columns)}"]
            out.append(f"    IN CLUSTER {ident(statement.in_cluster or 'quickstart')}")
            options = head[head.index(" WITH (") + 7 :].rstrip(")") if " WITH (" in head else "REFRESH = ON COMMIT"
            out.append(f"    WITH ({options})")
            query = printer.query(statement.query)
            out.append(
                f"    AS {query}" if len(query) + 7 <= width else "    AS\n" + _lines(printer, statement.query, 8)
            )
            return "\n".join(out) + ";"
        case _:
            return sql + ";"


def _lines(printer: Printer, q: ast.Query, indent: int) -> str:
    """A query with a clause a line."""
    space = " " * indent
    if isinstance(q.body, ast.Select) and not q.ctes and q.recursion is None:
        lines = printer.select(q.body)
        if q.order_by:
            lines.append(f"ORDER BY {printer.order_by(q.order_by)}")
        if q.limit is not None:
            lines.append(f"LIMIT {printer.expr(q.limit)}")
        return "\n".join(space + line for line in lines)
    return space + printer.query(q)
