"""Relation expressions as text, a node a line.

Project (#0{a}, #3) // { arity: 2 }
  Join on=(#0{a} = #2{a}) type=differential // { arity: 4 }
    implementation
      %0:t[#0{a}]K » %1:u[#0{a}]UK
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from adapter.explain.names import Columns, MirNames, Names
from adapter.explain.options import ExplainOptions
from adapter.explain.usage import Usages
from adapter.transform.join_implementation import lookup_traits
from mzlite.expr import relation as r
from mzlite.expr.scalar import Scalar, WindowCall
from mzlite.expr.text.print import print_aggregate, print_literal, print_scalar, print_window_call, table_function_name
from mzlite.expr.typecheck import Types
from mzlite.repr.errors import decode_error
from mzlite.repr.ids import GlobalId
from mzlite.repr.types import RelationType

MAX_CONSTANT_ROWS = 20
_SHORT_KINDS = {"int2": "int16", "int4": "int32", "int8": "int64", "text": "string"}


class MirPrinter:
    """usages: which indexes Gets read, once that is known. built: collections that the same dataflow computes."""

    def __init__(
        self,
        root: r.Mir,
        names: Names,
        options: ExplainOptions,
        usages: Usages | None = None,
        built: Container[GlobalId] = (),
    ) -> None:
        self.names = names
        self.options = options
        self.usages = usages
        self.built = built
        self.types = Types()
        self.columns = MirNames(root, names)
        self.root = root

    def lines(self, indent: int) -> list[str]:
        out: list[str] = []
        self._node(self.root, indent, out)
        return out

    def column_printer(self, e: r.Mir) -> Columns:
        return Columns(self.columns.of(e), self.options.humanized)

    def _note(self, e: r.Mir) -> str:
        o = self.options
        parts: list[str] = []
        if o.arity:
            parts.append(f"arity: {self.types.arity(e)}")
        if o.types:
            parts.append(f'types: "{_types(self.types.typ(e))}"')
        if o.keys:
            keys = ", ".join("[" + ", ".join(map(str, k)) + "]" for k in self.types.typ(e).keys)
            parts.append(f'keys: "({keys})"')
        return f" // {{ {', '.join(parts)} }}" if parts else ""

    def _node(self, e: r.Mir, depth: int, out: list[str]) -> None:
        pad = "  " * depth
        if isinstance(e, r.Let | r.LetRec):
            self._bindings(e, depth, out)
            return
        if isinstance(e, r.Join) and isinstance(e.implementation, r.IndexedFilter):
            out.append(f"{pad}{self._lookup(e.implementation)}{self._note(e)}")
            return
        first, *rest = self._text(e)
        out.append(f"{pad}{first}{self._note(e)}")
        out += [f"{pad}  {line}" for line in rest]
        for kid in r.children(e):
            self._node(kid, depth + 1, out)

    def _bindings(self, e: r.Let | r.LetRec, depth: int, out: list[str]) -> None:
        pad = "  " * depth
        body: r.Mir = e
        if isinstance(e, r.Let):
            out.append(f"{pad}With")
            while isinstance(body, r.Let):
                out.append(f"{pad}  cte l{body.id} =")
                self._node(body.value, depth + 2, out)
                body = body.body
        else:
            limit = ""
            if e.limit is not None:
                limit = f" [recursion_limit={e.limit}{', return_at_limit' if e.return_at_limit else ''}]"
            out.append(f"{pad}With Mutually Recursive{limit}")
            for local, value in zip(e.ids, e.values):
                out.append(f"{pad}  cte l{local} =")
                self._node(value, depth + 2, out)
            body = e.body
        out.append(f"{pad}Return{self._note(body)}")
        self._node(body, depth + 1, out)

    def _lookup(self, impl: r.IndexedFilter) -> str:
        types = Types()
        index = self.names.short_name(impl.index)
        values = lookup_values(impl, types, self.root)
        return f"ReadIndex on={self.names.full_name(impl.coll)} {index}=[{values}]"

    def _text(self, e: r.Mir) -> list[str]:
        match e:
            case r.Constant(rows, typ, error):
                return constant_lines(rows, typ, error)
            case r.Get():
                return [self._get(e)]
            case r.Project(input, outputs):
                return [f"Project ({self.column_printer(input).outputs(outputs)})"]
            case r.Map(_, scalars):
                return [f"Map ({self.column_printer(e).scalars(scalars)})"]
            case r.FlatMap(input, func, exprs):
                return [f"FlatMap {table_function_name(func)}({self.column_printer(input).scalars(exprs)})"]
            case r.Filter(input, predicates):
                return [f"Filter {self._predicates(input, predicates)}"]
            case r.Join():
                return self._join(e)
            case r.Reduce():
                return [self._reduce(e)]
            case r.TopK():
                return [self._top_k(e)]
            case r.Window(input, partition_by, order_by, calls):
                c = self.column_printer(input)
                text = "Window"
                if partition_by:
                    text += f" partition_by=[{c.outputs(partition_by)}]"
                if order_by:
                    text += f" order_by=[{c.order(order_by)}]"
                return [f"{text} functions=[{', '.join(self._window_call(x, c) for x in calls)}]"]
            case r.ArrangeBy(input, keys):
                c = self.column_printer(input)
                return [f"ArrangeBy keys=[{', '.join('[' + c.scalars(k) + ']' for k in keys)}]"]
            case _:
                return [type(e).__name__]

    def _window_call(self, call: WindowCall, c: Columns) -> str:
        return print_window_call(call, c.ref)

    def _predicates(self, input: r.Mir, predicates: Sequence[Scalar]) -> str:
        c = self.column_printer(input)
        return " AND ".join(map(c.scalar, predicates))

    def _get(self, e: r.Get) -> str:
        if isinstance(e.id, int):
            return f"Get l{e.id}"
        full = self.names.full_name(e.id)
        if self.usages is None:
            return f"Get {full}"
        reads = self.usages.reads.get(id(e))
        if reads:
            words: dict[str, list[str]] = {}
            for index, word in reads:
                words.setdefault(self.names.short_name(index), []).append(word)
            shown = " ".join(f"{name}=[{', '.join(ws)}]" for name, ws in words.items())
            return f"ReadIndex on={self.names.short_name(e.id)} {shown}"
        return f"{'ReadGlobalFromSameDataflow' if e.id in self.built else 'ReadStorage'} {full}"

    def _join(self, e: r.Join) -> list[str]:
        c = self.column_printer(e)
        text = "CrossJoin"
        if e.equivalences:
            text = "Join on=(" + " AND ".join(" = ".join(map(c.scalar, cls)) for cls in e.equivalences) + ")"
        impl = e.implementation
        paths: list[tuple[int, Sequence[Scalar], tuple[tuple[int, tuple[Scalar, ...]], ...]]]
        match impl:
            case r.Differential(start, order):
                text += " type=differential"
                paths = [(start, start_key(e, self.types), order)]
            case r.DeltaQuery(orders):
                text += " type=delta"
                paths = [(i, (), order) for i, order in enumerate(orders)]
            case _:
                return [text]
        if not self.options.join_implementations:
            return [text]
        lines = [text, "implementation"]
        for start, key, order in paths:
            source = self._input(e, start)
            if isinstance(impl, r.Differential):
                source += self._lookup_key(e, start, key)
            steps = [f"{self._input(e, i)}{self._lookup_key(e, i, k)}" for i, k in order]
            lines.append("  " + " » ".join([source, *steps]))
        return lines

    def _input(self, join: r.Join, i: int) -> str:
        below: r.Mir = join.inputs[i]
        while isinstance(below, r.ArrangeBy | r.Filter | r.Project | r.Map):
            below = below.input
        if isinstance(below, r.Get):
            return f"%{i}:{f'l{below.id}' if isinstance(below.id, int) else self.names.short_name(below.id)}"
        return f"%{i}"

    def _lookup_key(self, join: r.Join, i: int, key: Sequence[Scalar]) -> str:
        c = self.column_printer(join.inputs[i])
        shown = c.scalars(key) if key else "×"
        return f"[{shown}]{lookup_traits(join.inputs[i], tuple(key), self.types)}"

    def _reduce(self, e: r.Reduce) -> str:
        c = self.column_printer(e.input)
        if not e.aggregates:
            return f"Distinct project=[{c.scalars(e.group_key)}]{' monotonic' if e.monotonic else ''}"
        text = "Reduce"
        if e.group_key:
            text += f" group_by=[{c.scalars(e.group_key)}]"
        text += f" aggregates=[{', '.join(print_aggregate(a, c.ref) for a in e.aggregates)}]"
        if e.monotonic:
            text += " monotonic"
        if e.expected_group_size is not None:
            text += f" exp_group_size={e.expected_group_size}"
        return text

    def _top_k(self, e: r.TopK) -> str:
        c = self.column_printer(e.input)
        text = "TopK"
        if e.group_key:
            text += f" group_by=[{c.outputs(e.group_key)}]"
        if e.order_by:
            text += f" order_by=[{c.order(e.order_by)}]"
        if e.limit is not None:
            text += f" limit={c.scalar(e.limit)}"
        if e.offset:
            text += f" offset={e.offset}"
        if e.monotonic:
            text += " monotonic"
        if e.expected_group_size is not None:
            text += f" exp_group_size={e.expected_group_size}"
        return text


def start_key(join: r.Join, types: Types) -> tuple[Scalar, ...]:
    """What the first lookup of a linear join compares the start input with, over that input."""
    from mzlite.expr.scalar import shift, support

    impl = join.implementation
    assert isinstance(impl, r.Differential)
    if not impl.order:
        return ()
    offsets = [0]
    for i in join.inputs:
        offsets.append(offsets[-1] + types.arity(i))
    input, key = impl.order[0]
    low, high = offsets[impl.start], offsets[impl.start + 1]
    out: list[Scalar] = []
    for k in key:
        wanted = shift(k, offsets[input])
        for cls in join.equivalences:
            if wanted in cls:
                here = [m for m in cls if support(m) and all(low <= c < high for c in support(m))]
                if here:
                    out.append(shift(here[0], -low))
                break
    return tuple(out)


def lookup_values(impl: r.IndexedFilter, types: Types, root: r.Mir) -> str:
    kinds: RelationType | None = None
    for node in r.walk(root):
        if isinstance(node, r.Join) and node.implementation is impl and isinstance(node.inputs[1], r.Constant):
            kinds = node.inputs[1].typ
    assert kinds is not None
    return shown_values(impl.values, kinds)


def shown_values(values: Sequence[r.Datums], kinds: RelationType) -> str:
    rows = ["(" + ", ".join(print_literal(d, c.scalar) for d, c in zip(row, kinds.columns)) + ")" for row in values]
    return f"lookup value={rows[0]}" if len(rows) == 1 else f"lookup values=[{'; '.join(rows)}]"


def constant_lines(
    rows: Sequence[tuple[r.Datums, int]], typ: RelationType, error: bytes | None, limit: int = MAX_CONSTANT_ROWS
) -> list[str]:
    if error is not None:
        return [f'Error "{decode_error(error).message}"']
    if not rows:
        return ["Constant <empty>"]
    lines = ["Constant"]
    if len(rows) > limit:
        lines.append(f"total_rows (diffs absed): {sum(abs(d) for _, d in rows)}")
        lines.append("first_rows:")
    pad = "  " if len(rows) > limit else ""
    for datums, diff in rows[:limit]:
        row = ", ".join(print_literal(d, c.scalar) for d, c in zip(datums, typ.columns))
        lines.append(pad + (f"- ({row})" if diff == 1 else f"- (({row}) x {diff})"))
    return lines


def _types(typ: RelationType) -> str:
    return (
        "("
        + ", ".join(
            f"r_{_SHORT_KINDS.get(c.scalar.kind, c.scalar.kind)}{'?' if c.nullable else ''}" for c in typ.columns
        )
        + ")"
    )


__all__ = ["MirPrinter", "constant_lines", "lookup_values", "print_scalar", "shown_values", "start_key"]
