"""Reads the text form of MIR (see `print.py`).

Types of global Gets come from the caller; everything else follows: overloads are found by argument types, and a bare
number takes the type of what it stands beside. `name::type` pins a literal's type.

    Reduce group_by=[#0] aggregates=[sum(#1), count(*)]
      Filter (#1 > 5)
        Get u1
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mzlite.expr import relation as r
from mzlite.expr.aggregates import AGGREGATES
from mzlite.expr.scalar import Aggregate, Call, ColumnOrder, Literal, Ref, Scalar, TableFunc, WindowCall
from mzlite.expr.table_functions import TABLE_FUNCTIONS
from mzlite.expr.text.parse_scalars import Expression, MirSyntaxError, Number, literal_from, resolve, settle
from mzlite.expr.typecheck import Types
from mzlite.expr.typing import scalar_type
from mzlite.expr.window_functions import WINDOW_FUNCTIONS
from mzlite.repr import types as t
from mzlite.repr.ids import parse_global_id
from mzlite.repr.typenames import type_by_name
from mzlite.repr.types import ColumnType, RelationType, ScalarType


@dataclass(slots=True)
class _Line:
    number: int
    depth: int
    text: str
    children: list[_Line]


def parse_mir(text: str, gets: Mapping[str, RelationType]) -> r.Mir:
    """errors: MirSyntaxError, SqlError for a literal that is no value of its type."""
    roots = _tree(text)
    parser = _Parser(gets)
    tree = parser.sequence(roots, {})
    return tree


def _tree(text: str) -> list[_Line]:
    roots: list[_Line] = []
    stack: list[_Line] = []
    for number, raw in enumerate(text.splitlines(), 1):
        if not raw.strip() or raw.strip().startswith("//"):
            continue
        text = raw if raw.lstrip().startswith("cte ") else raw.split(" // ")[0]  # a cte's comment declares its types
        line = _Line(number, len(raw) - len(raw.lstrip(" ")), text.strip(), [])
        while stack and stack[-1].depth >= line.depth:
            stack.pop()
        (stack[-1].children if stack else roots).append(line)
        stack.append(line)
    if not roots:
        raise MirSyntaxError("empty plan")
    return roots


class _Parser:
    def __init__(self, gets: Mapping[str, RelationType]) -> None:
        self.gets = gets
        self.types = Types()

    def sequence(self, lines: Sequence[_Line], env: dict[int, RelationType]) -> r.Mir:
        """One node, or With … Return …."""
        first = lines[0]
        if not first.text.startswith("With"):
            if len(lines) > 1:
                raise MirSyntaxError(f"line {lines[1].number}: one plan expected, found another node")
            return self.node(first, env)
        if len(lines) != 2 or lines[1].text != "Return":
            raise MirSyntaxError(f"line {first.number}: With needs a Return")
        body_lines = lines[1].children
        if first.text.startswith("With Mutually Recursive"):
            return self._recursive(first, body_lines, env)
        inner, bindings = dict(env), []
        for cte in first.children:
            id = self._cte(cte)
            value = self.sequence(cte.children, inner)
            inner[id] = self.types.typ(value)
            bindings.append((id, value))
        body = self.sequence(body_lines, inner)
        for id, value in reversed(bindings):
            body = r.Let(id, value, body)
        return body

    def _cte(self, line: _Line) -> int:
        found = re.match(r"cte l(\d+) =", line.text)
        if found is None:
            raise MirSyntaxError(f"line {line.number}: expected cte lN =")
        return int(found[1])

    def _recursive(self, first: _Line, body_lines: Sequence[_Line], env: dict[int, RelationType]) -> r.Mir:
        """Types of bindings are declared: `cte l0 (bigint, text) =`, or `cte l0 = // { types: "(bigint, text?)" }`."""
        inner = dict(env)
        ids, typs = [], []
        for cte in first.children:
            found = re.match(r"cte l(\d+) \(([^)]*)\) =", cte.text) or re.match(
                r'cte l(\d+) = *// *\{ *types: *"\(([^)]*)\)"', cte.text
            )
            if found is None:
                raise MirSyntaxError(f"line {cte.number}: expected cte lN (types) =")
            typ = RelationType(tuple(ColumnType(self._type(x.rstrip(" ?"))) for x in found[2].split(",") if x.strip()))
            ids.append(int(found[1]))
            typs.append(typ)
            inner[ids[-1]] = typ
        values = tuple(self.sequence(cte.children, inner) for cte in first.children)
        body = self.sequence(body_lines, inner)
        limit = re.search(r"recursion_limit=(\d+)", first.text)
        return r.LetRec(
            tuple(ids),
            values,
            tuple(typs),
            body,
            int(limit[1]) if limit else None,
            "return_at_limit" in first.text,
        )

    def _type(self, text: str) -> ScalarType:
        found = type_by_name(text.strip())
        if found is None:
            raise MirSyntaxError(f"unknown type {text.strip()!r}")
        return found

    def node(self, line: _Line, env: dict[int, RelationType]) -> r.Mir:
        word = line.text.split(" ", 1)[0]
        rest = line.text[len(word) :].strip()
        try:
            return self._node(word, rest, line, env)
        except MirSyntaxError as error:
            if str(error).startswith("line "):
                raise
            raise MirSyntaxError(f"line {line.number}: {error}") from None

    def _inputs(self, line: _Line, env: dict[int, RelationType]) -> tuple[r.Mir, ...]:
        """The plans below a node; With and its Return are one."""
        out: list[r.Mir] = []
        lines = [c for c in line.children if not c.text.startswith("implementation")]
        while lines:
            size = 2 if lines[0].text.startswith("With") else 1
            out.append(self.sequence(lines[:size], env))
            del lines[:size]
        return tuple(out)

    def _node(self, word: str, rest: str, line: _Line, env: dict[int, RelationType]) -> r.Mir:
        match word:
            case "Get" | "ReadStorage":
                return self._get(rest, env)
            case "Constant":
                return self._constant(rest, line)
            case "Union":
                return r.Union(self._inputs(line, env))
            case "Join" | "CrossJoin":
                inputs = self._inputs(line, env)
                columns = [c for i in inputs for c in self.types.columns(i)]
                found = re.search(r"on=\((.*)\)", rest)
                classes = self._equivalences(found[1], columns) if found else ()
                return r.Join(inputs, classes)
        inputs = self._inputs(line, env)
        if len(inputs) != 1:
            raise MirSyntaxError(f"{word} takes one input, found {len(inputs)}")
        (input,) = inputs
        columns = list(self.types.columns(input))
        options = _options(rest)
        match word:
            case "Project":
                return r.Project(input, tuple(int(c) for c in re.findall(r"#(\d+)", rest)))
            case "Map":
                out: list[Scalar] = []
                for text in _split(rest.strip()[1:-1], ","):
                    scalar = self.scalar(text, columns)
                    out.append(scalar)
                    columns.append(scalar_type(scalar, columns))
                return r.Map(input, tuple(out))
            case "Filter":
                e = self.scalar(rest, columns, t.BOOL)
                return r.Filter(input, e.args if isinstance(e, Call) and e.func == "and" else (e,))
            case "FlatMap":
                return self._flat_map(input, rest, columns)
            case "Distinct":
                keys = self.scalars(options["project"], columns) if "project" in options else _all(columns)
                return r.Reduce(input, keys, ())
            case "Reduce":
                return r.Reduce(
                    input,
                    self.scalars(options.get("group_by", "[]"), columns),
                    tuple(self.aggregate(a, columns) for a in _split(options.get("aggregates", "[]")[1:-1], ",")),
                    "monotonic" in rest.split(),
                )
            case "TopK":
                limit = self.scalar(options["limit"], columns, t.INT8) if "limit" in options else None
                return r.TopK(
                    input,
                    tuple(int(c) for c in re.findall(r"#(\d+)", options.get("group_by", ""))),
                    _orders(options.get("order_by", "")),
                    limit,
                    int(options.get("offset", "0")),
                    "monotonic" in rest.split(),
                )
            case "Window":
                calls = _split(options.get("functions", "[]")[1:-1], ",")
                return r.Window(
                    input,
                    tuple(int(c) for c in re.findall(r"#(\d+)", options.get("partition_by", ""))),
                    _orders(options.get("order_by", "")),
                    tuple(self._window_call(c, columns) for c in calls),
                )
            case "Negate":
                return r.Negate(input)
            case "Threshold":
                return r.Threshold(input)
            case "ArrangeBy":
                keys_text = options.get("keys", "[]")
                return r.ArrangeBy(input, tuple(self.scalars(k, columns) for k in _split(keys_text[1:-1], ",")))
        raise MirSyntaxError(f"unknown node {word!r}")

    def _window_call(self, text: str, columns: Sequence[ColumnType]) -> WindowCall:
        """With the default frame."""
        found = re.fullmatch(r"(\w+)\((.*)\)", text.strip())
        if found is None:
            raise MirSyntaxError(f"expected a window function, found {text!r}")
        args = [Expression(a, columns).parse() for a in _split(found[2], ",")]
        entry, settled = resolve(WINDOW_FUNCTIONS, found[1], args, columns)
        typ = entry.result_type([scalar_type(a, columns).scalar for a in settled])
        return WindowCall(entry.id, tuple(settled), typ)

    def _get(self, name: str, env: dict[int, RelationType]) -> r.Mir:
        if re.fullmatch(r"l\d+", name):
            local = int(name[1:])
            if local not in env:
                raise MirSyntaxError(f"unbound {name}")
            return r.Get(local, env[local])
        try:
            id = parse_global_id(name)
        except ValueError as error:
            raise MirSyntaxError(str(error)) from None
        if id not in self.gets:
            raise MirSyntaxError(f"no type known for {id}")
        return r.Get(id, self.gets[id])

    def _constant(self, rest: str, line: _Line) -> r.Mir:
        types = re.search(r"types=\(([^)]*)\)", rest)
        rows = [re.fullmatch(r"- \((.*)\)", c.text) for c in line.children]
        cells: list[tuple[list[str], int]] = []
        for row, child in zip(rows, line.children):
            if row is None:
                raise MirSyntaxError(f"line {child.number}: expected - (values)")
            counted = re.fullmatch(r"\((.*)\) x (-?\d+)", row[1])
            cells.append((_split(counted[1] if counted else row[1], ","), int(counted[2]) if counted else 1))
        if types is not None:
            scalars = [self._type(x) for x in types[1].split(",") if x.strip()]
        elif cells:
            scalars = [_guess(x) for x in cells[0][0]]
        else:
            scalars = []
        typ = RelationType(tuple(ColumnType(s) for s in scalars))
        out = []
        for values, diff in cells:
            if len(values) != len(scalars):
                raise MirSyntaxError(f"a row of {len(values)} values for {len(scalars)} columns")
            row_values = tuple(literal_from(v, s).value for v, s in zip(values, scalars))
            out.append((row_values, diff))
        return r.Constant(tuple(out), typ)

    def _equivalences(self, text: str, columns: Sequence[ColumnType]) -> tuple[tuple[Scalar, ...], ...]:
        classes = []
        for part in re.split(r"\s+(?:AND|and)\s+", text):
            members = _split(part, "=")
            classes.append(tuple(self.scalar(m, columns) for m in members))
        return tuple(classes)

    def _flat_map(self, input: r.Mir, rest: str, columns: Sequence[ColumnType]) -> r.Mir:
        found = re.fullmatch(r"(\w+)\((.*)\)", rest)
        if found is None:
            raise MirSyntaxError("FlatMap needs function(arguments)")
        args = [Expression(a, columns) for a in _split(found[2], ",")]
        entry, exprs = resolve(TABLE_FUNCTIONS, found[1], [a.parse() for a in args], columns)
        typ = entry.relation_type(tuple(scalar_type(e, columns).scalar for e in exprs))
        return r.FlatMap(input, TableFunc(entry.id, typ), tuple(exprs))

    def scalars(self, text: str, columns: Sequence[ColumnType]) -> tuple[Scalar, ...]:
        return tuple(self.scalar(x, columns) for x in _split(text.strip()[1:-1], ","))

    def scalar(self, text: str, columns: Sequence[ColumnType], want: ScalarType | None = None) -> Scalar:
        expression = Expression(text, columns)
        return settle(expression.parse(), want)

    def aggregate(self, text: str, columns: Sequence[ColumnType]) -> Aggregate:
        text = text.strip()
        filter_: Scalar | None = None
        if " filter(" in text:
            # The last one at this level: an argument may not hold the word.
            text, _, condition = text.rpartition(" filter(")
            filter_ = self.scalar(condition[:-1], columns, t.BOOL)
        found = re.fullmatch(r"(\w+)\((distinct )?(.*)\)", text)
        if found is None:
            raise MirSyntaxError(f"expected an aggregate, found {text!r}")
        name, distinct, inner = found[1], bool(found[2]), found[3].strip()
        given: list[Scalar | Number] = [Literal(b"\x01", t.BOOL)]
        if inner != "*":
            given = [Expression(a, columns).parse() for a in _split(inner, ",")]
        entry, args = resolve(AGGREGATES, name, given, columns)
        typ = entry.result_type([scalar_type(a, columns).scalar for a in args])
        return Aggregate(entry.id, tuple(args), typ, distinct, filter_)


def _all(columns: Sequence[ColumnType]) -> tuple[Scalar, ...]:
    return tuple(Ref(i) for i in range(len(columns)))


def _options(text: str) -> dict[str, str]:
    """key=value pairs; a value runs to its closing bracket or the next space."""
    out: dict[str, str] = {}
    for found in re.finditer(r"(\w+)=", text):
        start = end = found.end()
        depth = 0
        while end < len(text) and not (depth == 0 and text[end] == " "):
            depth += text[end] in "[("
            depth -= text[end] in "])"
            end += 1
        out.setdefault(found[1], text[start:end])
    return out


def _split(text: str, separator: str) -> list[str]:
    """Cut at separators outside brackets and strings."""
    out, depth, start, quoted = [], 0, 0, ""
    for i, c in enumerate(text):
        if quoted:
            quoted = "" if c == quoted and text[i - 1] != "\\" else quoted
        elif c in "\"'":
            quoted = c
        elif c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
        elif c == separator and depth == 0:
            out.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return [*out, last] if last or out else []


def _orders(text: str) -> tuple[ColumnOrder, ...]:
    out = []
    for column, direction, nulls in re.findall(r"#(\d+)(?:\{\w*\})?\s*(asc|desc)?\s*(nulls_first|nulls_last)?", text):
        desc = direction == "desc"
        out.append(ColumnOrder(int(column), desc, nulls == "nulls_last" if nulls else not desc))
    return tuple(out)


def _guess(text: str) -> ScalarType:
    if "::" in text:
        found = type_by_name(text.split("::")[1].strip())
        return found or t.TEXT
    if text[:1] in "\"'":
        return t.TEXT
    if text in ("true", "false"):
        return t.BOOL
    return t.NUMERIC if "." in text else t.INT8


__all__ = ["MirSyntaxError", "parse_mir"]
