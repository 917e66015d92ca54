"""Physical plans in short form: an arrow a node, its notes indented below it, then its inputs.

→Accumulable GroupAggregate
  Simple aggregates: sum(#1{b})
  →Read materialize.public.t
    Project: #0, #1
"""

from __future__ import annotations

from collections.abc import Sequence

from adapter.explain.explained import Explained
from adapter.explain.lir import filter_text, key_types, lookup_text
from adapter.explain.lir_names import LirNames
from adapter.explain.mir import constant_lines
from adapter.explain.names import ColumnNames, Columns, Names
from adapter.explain.options import ExplainOptions
from compute.plan import lir as p
from mzlite.expr.mfp import MapFilterProject
from mzlite.expr.text.print import print_aggregate, print_window_call, table_function_name
from mzlite.repr.ids import GlobalId


def arrow_lines(root: p.Lir, explained: Explained, options: ExplainOptions, names: Names) -> list[str]:
    return _Printer(explained, names).lines(root)


class _Printer:
    def __init__(self, explained: Explained, names: Names) -> None:
        self.names = names
        self.imports = explained.imports
        self.built = {id for id, _, _ in explained.objects}
        self.columns = LirNames(names)

    def lines(self, root: p.Lir) -> list[str]:
        self.columns.of(root)
        out: list[str] = []
        self._node(root, 0, out)
        return out

    def _node(self, e: p.Lir, depth: int, out: list[str]) -> None:
        pad = "  " * depth
        if isinstance(e, p.LirLet | p.LirLetRec):
            out.append(f"{pad}→{'With' if isinstance(e, p.LirLet) else 'With Mutually Recursive'}")
            body: p.Lir = e
            if isinstance(e, p.LirLet):
                while isinstance(body, p.LirLet):
                    out.append(f"{pad}  cte l{body.id} =")
                    self._node(body.value, depth + 2, out)
                    body = body.body
            else:
                for id, value in zip(e.ids, e.values):
                    limit = "" if e.limit is None else f" [recursion_limit={e.limit}]"
                    out.append(f"{pad}  cte{limit} l{id} =")
                    self._node(value, depth + 2, out)
                body = e.body
            out.append(f"{pad}→Return")
            self._node(body, depth + 1, out)
            return
        heading, notes, inputs = self._describe(e)
        out.append(f"{pad}→{heading}")
        out += [f"{pad}  {line}" for line in notes]
        for i in inputs:
            self._node(i, depth + 1, out)

    def _describe(self, e: p.Lir) -> tuple[str, list[str], Sequence[p.Lir]]:
        match e:
            case p.LirConstant(_, rows, typ, error):
                if error is not None:
                    return f"Constant (error: {constant_lines(rows, typ, error)[0].partition(' ')[2]})", [], ()
                count = sum(abs(d) for _, d in rows)
                return f"Constant ({count} row{'' if count == 1 else 's'})", [], ()
            case p.LirGet():
                return self._get(e)
            case p.LirMfp(_, input, mfp):
                return "Map/Filter/Project", self._mfp(mfp, self.columns.of(input)), (input,)
            case p.LirFlatMap(_, input, func, exprs, mfp):
                c = Columns(self.columns.of(input), humanized=True)
                after = self._mfp(mfp, self.columns.of(input) + (None,) * func.typ.arity)
                return f"Table Function {table_function_name(func)}({c.scalars(exprs)})", after, (input,)
            case p.LirJoin():
                return self._join(e)
            case p.LirReduce():
                return self._reduce(e)
            case p.LirTopK():
                return self._top_k(e)
            case p.LirWindow(_, input, partition_by, order_by, calls, _):
                c = Columns(self.columns.of(input), humanized=True)
                notes = [f"Functions: {', '.join(print_window_call(x, c.ref) for x in calls)}"]
                if partition_by:
                    notes.append(f"Partition By: {c.outputs(partition_by)}")
                if order_by:
                    notes.append(f"Order By: {c.order(order_by)}")
                return "Non-incremental Window Functions", notes, (input,)
            case p.LirNegate(_, input):
                return "Negate Diffs", [], (input,)
            case p.LirThreshold(_, input):
                return "Threshold Diffs", [], (input,)
            case p.LirUnion(_, inputs, consolidate):
                return "Consolidating Union" if consolidate else "Union", [], inputs
            case p.LirArrangeBy(_, input, keys):
                return self._arrange(e, input, keys)
            case _:
                raise AssertionError(e)

    def _arrange(
        self, e: p.LirArrangeBy, input: p.Lir, keys: Sequence[tuple[object, ...]]
    ) -> tuple[str, list[str], Sequence[p.Lir]]:
        c = Columns(self.columns.of(input), humanized=True)
        if isinstance(input, p.LirGet) and input.mfp.is_identity():
            found = [self._index(input.id, k) for k in e.keys]
            if all(found):
                name = self._name(input.id)
                return f"Indexed {name} (using {', '.join(str(f) for f in found)})", [], ()
        shown = ", ".join(f"({c.scalars(k)})" if k else "(empty key)" for k in e.keys)
        return f"Arrange {shown}", [], (input,)

    def _name(self, id: GlobalId | int) -> str:
        return f"l{id}" if isinstance(id, int) else self.names.full_name(id)

    def _index(self, on: GlobalId | int, key: object = None) -> str | None:
        if self.imports is not None:
            for index, (desc, _) in self.imports.indexes.items():
                if desc.on_id == on and (key is None or desc.key == key):
                    return self.names.full_name(index)
        return None

    def _get(self, e: p.LirGet) -> tuple[str, list[str], Sequence[p.Lir]]:
        name = self._name(e.id)
        notes = self._mfp(e.mfp, self.columns.source(e))
        index = self._index(e.id, e.key)
        if e.lookup is not None:
            using = "" if index is None else f" (using {index})"
            rows = lookup_text(e.lookup, key_types(e, self.imports))
            return (
                f"Index Lookup on {name}{using}",
                [f"Lookup value{'' if len(e.lookup) == 1 else 's'}: {rows}", *notes],
                (),
            )
        if index is not None:
            text = f"Indexed {name} (using {index})"
        elif isinstance(e.id, int) or e.id in self.built:
            text = f"Stream {name}"
        else:
            text = f"Read {name}"
        return text, notes, ()

    def _mfp(self, mfp: MapFilterProject, names: ColumnNames) -> list[str]:
        c = Columns(names, humanized=True)
        out: list[str] = []
        if mfp.projection != tuple(range(mfp.input_arity + len(mfp.expressions))):
            out.append(f"Project: {c.outputs(mfp.projection)}" if mfp.projection else "Project: (empty)")
        filters = filter_text(mfp, c)
        if filters:
            out.append(f"Filter: {filters}")
        if mfp.expressions:
            out.append(f"Map: {c.scalars(mfp.expressions)}")
        return out

    def _join(self, e: p.LirJoin) -> tuple[str, list[str], Sequence[p.Lir]]:
        if isinstance(e.plan, p.LinearJoin):
            path = " » ".join(f"%{i}" for i in (e.plan.source, *(s.input for s in e.plan.stages)))
            notes = self._path(e, e.plan.source, e.plan.source_mfp, e.plan.stages, "Join stage")
            return f"Differential Join {path}", notes, e.inputs
        shown = " ".join(
            "[" + " » ".join(f"%{i}" for i in (source, *(s.input for s in stages))) + "]"
            for source, stages in enumerate(e.plan.paths)
        )
        notes = []
        for source, stages in enumerate(e.plan.paths):
            notes.append(f"Delta join path for input %{source}")
            mfp = e.plan.source_mfps[source]
            notes += ["  " + x for x in self._path(e, source, mfp, stages, "stage")]
        return f"Delta Join {shown}", notes, e.inputs

    def _path(
        self, e: p.LirJoin, source: int, mfp: MapFilterProject, stages: tuple[p.JoinStage, ...], label: str
    ) -> list[str]:
        steps = self.columns.path(e, source, mfp, stages)
        out: list[str] = self._mfp(mfp, self.columns.of(e.inputs[source]))
        for n, stage in enumerate(stages):
            inner = self.columns.of(e.inputs[stage.input])
            key = Columns(inner, humanized=True).scalars(stage.lookup_key)
            how = f"with lookup key {key}" if key else "as a cross product"
            out.append(f"{label} {n} in %{stage.input} {how}")
            out += ["  " + x for x in self._mfp(stage.closure, steps[n] + inner)]
        return out

    def _reduce(self, e: p.LirReduce) -> tuple[str, list[str], Sequence[p.Lir]]:
        c = Columns(self.columns.of(e.input), humanized=True)
        name = {
            "distinct": "Distinct GroupAggregate",
            "accumulable": "Accumulable GroupAggregate",
            "hierarchical": "Consolidating Monotonic GroupAggregate"
            if e.monotonic
            else "Bucketed Hierarchical GroupAggregate",
            "basic": "Non-incremental GroupAggregate",
        }.get(e.kind, "Collated GroupAggregate")
        notes = [f"Group Key: {c.scalars(e.key)}"] if e.key and e.aggregates else []
        if e.aggregates:
            notes.append(f"Aggregations: {', '.join(print_aggregate(a, c.ref) for a in e.aggregates)}")
        elif e.key:
            notes.append(f"Key: ({c.scalars(e.key)})")
        return name, notes + self._mfp(e.mfp, self.columns.reduced(e)), (e.input,)

    def _top_k(self, e: p.LirTopK) -> tuple[str, list[str], Sequence[p.Lir]]:
        c = Columns(self.columns.of(e.input), humanized=True)
        limit = None if e.limit is None else c.scalar(e.limit)
        kind = "Non-monotonic TopK"
        if e.monotonic:
            kind = "Consolidating Monotonic " + ("Top1" if limit == "1" and not e.offset else "TopK")
        notes = [f"Group By: {c.outputs(e.group_key)}"] if e.group_key else []
        if e.order_by:
            notes.append(f"Order By: {c.order(e.order_by)}")
        if limit is not None:
            notes.append(f"Limit: {limit}")
        if e.offset:
            notes.append(f"Offset: {e.offset}")
        return kind, notes, (e.input,)
