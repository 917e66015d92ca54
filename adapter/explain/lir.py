"""Physical plans in full: each node with its fields indented below it, then its inputs.

Reduce::Accumulable
  aggrs=[sum(#1{b})]
  key=(#0{a})
  Get::Collection materialize.public.t
    project=(#0, #1)
"""

from __future__ import annotations

from collections.abc import Sequence

from adapter.explain.explained import Explained
from adapter.explain.lir_names import LirNames
from adapter.explain.mir import constant_lines
from adapter.explain.names import ColumnNames, Columns, Names
from adapter.explain.options import ExplainOptions
from compute.plan import lir as p
from mzlite.expr.mfp import MapFilterProject
from mzlite.expr.scalar import Scalar
from mzlite.expr.text.print import print_aggregate, print_literal, print_window_call, table_function_name
from mzlite.repr.types import RelationType

MAX_CONSTANT_ROWS = 20


def verbose_lines(root: p.Lir, explained: Explained, options: ExplainOptions, names: Names) -> list[str]:
    return _Printer(explained, options, names).lines(root)


class _Printer:
    def __init__(self, explained: Explained, options: ExplainOptions, names: Names) -> None:
        self.names = names
        self.options = options
        self.imports = explained.imports
        self.columns = LirNames(names)

    def lines(self, root: p.Lir) -> list[str]:
        self.columns.of(root)
        out: list[str] = []
        self._node(root, 0, out)
        return out

    def _printer(self, names: ColumnNames) -> Columns:
        return Columns(names, humanized=False)

    def _node(self, e: p.Lir, depth: int, out: list[str]) -> None:
        pad = "  " * depth
        if isinstance(e, p.LirLet | p.LirLetRec):
            body: p.Lir = e
            if isinstance(e, p.LirLet):
                out.append(f"{pad}With")
                while isinstance(body, p.LirLet):
                    out.append(f"{pad}  cte l{body.id} =")
                    self._node(body.value, depth + 2, out)
                    body = body.body
            else:
                limit = "" if e.limit is None else f" [recursion_limit={e.limit}]"
                out.append(f"{pad}With Mutually Recursive{limit}")
                for id, value in zip(e.ids, e.values):
                    out.append(f"{pad}  cte l{id} =")
                    self._node(value, depth + 2, out)
                body = e.body
            out.append(f"{pad}Return")
            self._node(body, depth + 1, out)
            return
        heading, fields, inputs = self._describe(e)
        out.append(pad + heading)
        out += [f"{pad}  {line}" for line in fields]
        for i in inputs:
            self._node(i, depth + 1, out)

    def _describe(self, e: p.Lir) -> tuple[str, list[str], Sequence[p.Lir]]:
        match e:
            case p.LirConstant(_, rows, typ, error):
                first, *rest = constant_lines(rows, typ, error)
                return first, rest, ()
            case p.LirGet():
                return self._get(e)
            case p.LirMfp(_, input, mfp):
                return "Mfp", self._mfp(mfp, self.columns.of(input)), (input,)
            case p.LirFlatMap(_, input, func, exprs, mfp):
                c = self._printer(self.columns.of(input))
                after = self._mfp(mfp, self.columns.of(input) + (None,) * func.typ.arity)
                call = f"FlatMap {table_function_name(func)}({c.scalars(exprs)})"
                return call, ["mfp_after", *("  " + x for x in after)] if after else [], (input,)
            case p.LirJoin():
                return self._join(e)
            case p.LirReduce():
                return self._reduce(e)
            case p.LirTopK(_, input, group_key, order_by, limit, offset, monotonic):
                c = self._printer(self.columns.of(input))
                one = limit is not None and c.scalar(limit) == "1" and offset == 0
                kind = ("MonotonicTop1" if one else "MonotonicTopK") if monotonic else "Basic"
                text = f"TopK::{kind}"
                if group_key:
                    text += f" group_by=[{c.outputs(group_key)}]"
                if order_by:
                    text += f" order_by=[{c.order(order_by)}]"
                if limit is not None and kind != "MonotonicTop1":
                    text += f" limit={c.scalar(limit)}"
                if offset:
                    text += f" offset={offset}"
                return text, [], (input,)
            case p.LirWindow(_, input, partition_by, order_by, calls, _):
                c = self._printer(self.columns.of(input))
                fields = [
                    f"functions=[{', '.join(print_window_call(x, c.ref) for x in calls)}]",
                    f"partition_by=[{c.outputs(partition_by)}]",
                    f"order_by=[{c.order(order_by)}]",
                ]
                return "Window", fields, (input,)
            case p.LirNegate(_, input):
                return "Negate", [], (input,)
            case p.LirThreshold(_, input):
                return "Threshold::Basic", [], (input,)
            case p.LirUnion(_, inputs, consolidate):
                return "Union", ["consolidate_output=true"] if consolidate else [], inputs
            case p.LirArrangeBy(_, input, keys):
                c = self._printer(self.columns.of(input))
                shown = ", ".join("[" + c.scalars(k) + "]" for k in keys)
                return "ArrangeBy", [f"arrangements=[{shown}]"], (input,)
            case _:
                raise AssertionError(e)

    def _get(self, e: p.LirGet) -> tuple[str, list[str], Sequence[p.Lir]]:
        name = f"l{e.id}" if isinstance(e.id, int) else self.names.full_name(e.id)
        source = self.columns.source(e)
        fields = self._mfp(e.mfp, source)
        if e.key is not None:
            c = self._printer(source)
            key = [f"key={c.scalars(e.key)}"]
            if e.lookup is not None:
                key.append(f"val={lookup_text(e.lookup, self._key_types(e))}")
            return f"Get::Arrangement {name}", key + fields, ()
        if e.mfp.is_identity():
            return f"Get::PassArrangements {name}", ["raw=true"], ()
        return f"Get::Collection {name}", ["raw=true", *fields], ()

    def _key_types(self, e: p.LirGet) -> RelationType | None:
        return key_types(e, self.imports)

    def _mfp(self, mfp: MapFilterProject, names: ColumnNames) -> list[str]:
        return mfp_fields(mfp, self._printer(names))

    def _join(self, e: p.LirJoin) -> tuple[str, list[str], Sequence[p.Lir]]:
        fields: list[str] = []
        if isinstance(e.plan, p.LinearJoin):
            fields += self._path(e, e.plan.source, e.plan.source_mfp, e.plan.stages, "linear_stage")
            return "Join::Linear", fields, e.inputs
        for i, stages in enumerate(e.plan.paths):
            fields.append(f"plan_path[{i}]")
            fields += ["  " + x for x in self._path(e, i, e.plan.source_mfps[i], stages, "delta_stage")]
        return "Join::Delta", fields, e.inputs

    def _path(
        self, e: p.LirJoin, source: int, mfp: MapFilterProject, stages: tuple[p.JoinStage, ...], label: str
    ) -> list[str]:
        steps = self.columns.path(e, source, mfp, stages)
        out: list[str] = []
        for n in range(len(stages) - 1, -1, -1):
            stage = stages[n]
            inner = self.columns.of(e.inputs[stage.input])
            out.append(f"{label}[{n}]")
            closure = mfp_fields(stage.closure, self._printer(steps[n] + inner))
            if closure:
                out += ["  closure", *("    " + x for x in closure)]
            out.append(f"  lookup={{ relation={stage.input}, key=[{self._printer(inner).scalars(stage.lookup_key)}] }}")
            out.append(f"  stream={{ key=[{self._printer(steps[n]).scalars(stage.stream_key)}] }}")
        before = mfp_fields(mfp, self._printer(self.columns.of(e.inputs[source])))
        out.append(f"source={{ relation={source} }}")
        return out + (["initial_closure", *("  " + x for x in before)] if before else [])

    def _reduce(self, e: p.LirReduce) -> tuple[str, list[str], Sequence[p.Lir]]:
        c = self._printer(self.columns.of(e.input))
        kind = {"mixed": "Collation"}.get(e.kind, e.kind.capitalize())
        if e.kind == "hierarchical":
            kind += " (monotonic)" if e.monotonic else " (buckets)"
        fields = []
        if e.aggregates:
            fields.append(f"aggrs=[{', '.join(print_aggregate(a, c.ref) for a in e.aggregates)}]")
        fields.append(f"key=({c.scalars(e.key)})")
        after = mfp_fields(e.mfp, self._printer(self.columns.reduced(e)))
        if after:
            fields += ["mfp_after", *("  " + x for x in after)]
        return f"Reduce::{kind}", fields, (e.input,)


def mfp_fields(mfp: MapFilterProject, c: Columns) -> list[str]:
    out: list[str] = []
    if mfp.projection != tuple(range(mfp.input_arity + len(mfp.expressions))):
        out.append(f"project=({c.outputs(mfp.projection)})")
    filters = filter_text(mfp, c)
    if filters:
        out.append(f"filter=({filters})")
    if mfp.expressions:
        out.append(f"map=({c.scalars(mfp.expressions)})")
    return out


def filter_text(mfp: MapFilterProject, c: Columns) -> str:
    parts = [c.scalar(q) for _, q in mfp.predicates]
    parts += [f"(mz_now() >= {c.scalar(b)})" for b in mfp.lower_bounds]
    parts += [f"(mz_now() < {c.scalar(b)})" for b in mfp.upper_bounds]
    return " AND ".join(parts)


def lookup_text(rows: Sequence[tuple[bytes | None, ...]], typ: RelationType | None) -> str:
    def cell(i: int, d: bytes | None) -> str:
        if typ is None or i >= typ.arity:
            return "null" if d is None else d.hex()
        return print_literal(d, typ.columns[i].scalar)

    return "; ".join("(" + ", ".join(cell(i, d) for i, d in enumerate(row)) + ")" for row in rows)


def key_types(e: p.LirGet, imports: object) -> RelationType | None:
    """Types of the arrangement's key, when the index is known."""
    from adapter.sequencer.dataflows import Imports
    from mzlite.expr.typing import scalar_type

    if isinstance(imports, Imports):
        for desc, typ in imports.indexes.values():
            if desc.on_id == e.id and desc.key == e.key:
                return RelationType(tuple(scalar_type(k, typ.columns) for k in desc.key))
    return None


__all__ = ["Scalar", "filter_text", "key_types", "lookup_text", "mfp_fields", "verbose_lines"]
