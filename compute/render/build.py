"""Builder: LIR to operators. One method a node; operators are added in topological order.

Collection   what a node yields: a port of rows, the ports of its errors, and arrangements by key
environment  collections by id: imports, objects built so far, Let and LetRec bindings
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import assert_never

import numpy as np

from compute.operators.arrange import Arrange
from compute.operators.base import Arranged, Collection, Graph, Port, union_errs
from compute.operators.exchange import Exchange
from compute.operators.flatmap import FlatMap
from compute.operators.join import DeltaJoin, LinearStage
from compute.operators.letrec import LetRec
from compute.operators.linear import Consolidate, Constant, Negate, Union
from compute.operators.lookup import IndexLookup
from compute.operators.mfp import MfpOperator
from compute.operators.reduce import Prelude, Reduce, counts_rows
from compute.operators.temporal import TemporalFilter
from compute.operators.threshold import Threshold
from compute.operators.topk import TopK
from compute.operators.window import Window
from compute.plan.description import DataflowDescription, IndexDesc, IndexExport, SubscribeSink
from compute.plan.lir import (
    DeltaJoin as DeltaPlan,
)
from compute.plan.lir import (
    LinearJoin as LinearPlan,
)
from compute.plan.lir import (
    Lir,
    LirArrangeBy,
    LirConstant,
    LirFlatMap,
    LirGet,
    LirJoin,
    LirLet,
    LirLetRec,
    LirMfp,
    LirNegate,
    LirReduce,
    LirThreshold,
    LirTopK,
    LirUnion,
    LirWindow,
)
from compute.render import exports as ex
from compute.render.context import RenderContext
from compute.render.inputs import SourceInput, TraceInput
from compute.render.lir_ranges import LirRange
from compute.trace.arrangement import Arrangement, Hold
from compute.trace.layout import KeyLayout
from mzlite.expr.aggregates import AGGREGATES
from mzlite.expr.mfp import MapFilterProject
from mzlite.expr.scalar import Ref, Scalar
from mzlite.repr.datum import column_from_literals
from mzlite.repr.errors import unsupported
from mzlite.repr.ids import GlobalId, LirId, LocalId
from mzlite.repr.timestamp import Frontier
from mzlite.repr.updates import Updates
from mzlite.repr.var import VarColumn


class Builder:
    """Renders a description into `graph`; `inputs` and `exports` are what the Dataflow then drives."""

    def __init__(self, description: DataflowDescription, context: RenderContext, graph: Graph) -> None:
        self.context = context
        self.graph = graph
        self.until: Frontier = description.until
        self.channels = [0]
        self.inputs: dict[GlobalId, SourceInput | TraceInput] = {}
        self.exports: dict[GlobalId, ex.Export] = {}
        self.internal_holds: list[Hold] = []
        self.environment: dict[GlobalId | LocalId, Collection] = {}
        self._exported: dict[GlobalId, IndexDesc] = {}
        self.lir_mapping: list[LirRange] = []
        self._above: list[LirId] = []
        self._object = GlobalId("")
        as_of = description.as_of
        for id, source in description.source_imports.items():
            entry = SourceInput(graph, source, as_of, context.worker, context.workers)
            self.inputs[id] = entry
            arity = source.typ.arity if source.mfp is None else len(source.mfp.projection)
            self.environment[id] = Collection(entry.oks, (entry.errs,), arity)
        imported: dict[tuple[GlobalId, tuple[Scalar, ...]], TraceInput] = {}
        for index_id, index in description.index_imports.items():
            trace = TraceInput(graph, context.trace(index_id, index), as_of, index.with_snapshot)
            self.inputs[index_id] = trace
            on = index.desc.on_id
            imported.setdefault((on, index.desc.key), trace)
            known = self.environment.get(on)
            if known is None:
                known = Collection(trace.oks, (trace.errs,), index.typ.arity)
                self.environment[on] = known
            known.arranged.setdefault(index.desc.key, trace.arranged)
        for id, plan in description.objects:
            self._object = id
            self.environment[id] = self.render(plan)
        for id, export in description.index_exports.items():
            self._export_index(id, export, imported, as_of)
        for id, sink in description.sink_exports.items():
            collection = self.environment[sink.from_id]
            made: ex.SubscribeExport | ex.MaterializedViewExport
            if isinstance(sink.connection, SubscribeSink):
                made = ex.SubscribeExport(id, as_of, graph, sink, context)
            else:
                made = ex.MaterializedViewExport(id, as_of, graph, sink, context)
            collection.oks.connect(made.buffer, 0)
            for port in collection.errs:
                port.connect(made.buffer, 1)
            self.exports[id] = made

    def _export_index(
        self,
        id: GlobalId,
        export: IndexExport,
        imported: dict[tuple[GlobalId, tuple[Scalar, ...]], TraceInput],
        as_of: int,
    ) -> None:
        key = export.desc.key
        again = imported.get((export.desc.on_id, key))
        if again is not None:
            self.exports[id] = ex.IndexExport(id, as_of, again.source, None)
            return
        for other in self.exports.values():
            if isinstance(other, ex.IndexExport) and other.arrangement is not None:
                desc = self._exported[other.id]
                if desc.on_id == export.desc.on_id and desc.key == key:
                    self.exports[id] = ex.IndexExport(id, as_of, other.arrangement, other.arrangement)
                    self._exported[id] = export.desc
                    return
        collection = self.environment[export.desc.on_id]
        arrangement = Arrangement(key, collection.arity)
        port = self.exchange(collection.oks, KeyLayout(key, collection.arity))
        arrange = Arrange(self.graph, arrangement.layout, arrangement.oks)
        port.connect(arrange)
        errs = ex.ErrorArrange(self.graph, arrangement)
        for err in union_errs(collection.errs, (arrange.errs,)):
            err.connect(errs)
        self.internal_holds.append(arrangement.hold(as_of))
        self.exports[id] = ex.IndexExport(id, as_of, arrangement, arrangement)
        self._exported[id] = export.desc

    # -- helpers

    def nested(self, graph: Graph, environment: dict[GlobalId | LocalId, Collection]) -> Builder:
        """A builder for the body of a loop: another graph, its own names, everything else shared."""
        inner = copy.copy(self)
        inner.graph = graph
        inner.environment = environment
        return inner

    def exchange(self, port: Port, layout: KeyLayout) -> Port:
        """Rows at the worker that owns their key. To be called before the operator that needs them is made."""
        channels = self.context.exchange
        if channels is None or self.context.workers == 1:
            return port
        self.channels[0] += 1
        operator = Exchange(self.graph, layout, channels, self.channels[0], self.context.worker, self.context.workers)
        port.connect(operator)
        return operator.oks

    def arranged(self, collection: Collection, key: tuple[Scalar, ...]) -> Arranged:
        """The collection's arrangement by key, made now if it has none."""
        known = collection.arranged.get(key)
        if known is not None:
            return known
        layout = KeyLayout(key, collection.arity)
        port = self.exchange(collection.oks, layout)
        arrange = Arrange(self.graph, layout)
        port.connect(arrange)
        collection.arranged[key] = arrange.arranged
        collection.errs = union_errs(collection.errs, (arrange.errs,))
        return arrange.arranged

    def apply(self, collection: Collection, mfp: MapFilterProject) -> Collection:
        """The collection through an mfp, temporal or not."""
        if mfp.is_identity():
            return collection
        operator: MfpOperator | TemporalFilter
        if mfp.lower_bounds or mfp.upper_bounds:
            if self.graph.parent is not None:
                raise unsupported("mz_now() in a recursive query")
            operator = TemporalFilter(self.graph, mfp, self.until)
        else:
            operator = MfpOperator(self.graph, mfp)
        collection.oks.connect(operator)
        return Collection(operator.oks, union_errs(collection.errs, (operator.errs,)), len(mfp.projection))

    # -- nodes

    def render(self, plan: Lir) -> Collection:
        """The plan's operators, noted by node for introspection."""
        start = len(self.graph.operators)
        parent = self._above[-1] if self._above else None
        self._above.append(plan.lir_id)
        made = self._render(plan)
        self._above.pop()
        operator = type(plan).__name__.removeprefix("Lir")
        end = len(self.graph.operators)
        self.lir_mapping.append(LirRange(self._object, plan.lir_id, operator, parent, len(self._above), start, end))
        return made

    def _render(self, plan: Lir) -> Collection:
        match plan:
            case LirConstant():
                return self._constant(plan)
            case LirGet():
                return self._get(plan)
            case LirLet():
                return self._let(plan)
            case LirLetRec():
                return self._letrec(plan)
            case LirMfp():
                return self.apply(self.render(plan.input), plan.mfp)
            case LirFlatMap():
                return self._flat_map(plan)
            case LirJoin():
                return self._join(plan)
            case LirReduce():
                return self._reduce(plan)
            case LirTopK():
                return self._topk(plan)
            case LirWindow():
                return self._window(plan)
            case LirNegate():
                input = self.render(plan.input)
                negate = Negate(self.graph)
                input.oks.connect(negate)
                return Collection(negate.oks, input.errs, input.arity)
            case LirThreshold():
                input = self.render(plan.input)
                port = self.exchange(input.oks, identity_layout(input.arity))
                threshold = Threshold(self.graph, input.arity)
                port.connect(threshold)
                return Collection(threshold.oks, input.errs, input.arity)
            case LirUnion():
                return self._union(plan)
            case LirArrangeBy():
                input = self.render(plan.input)
                made = Collection(input.oks, input.errs, input.arity, input.arranged)
                for key in plan.keys:
                    self.arranged(made, key)
                return made
            case _:
                assert_never(plan)

    def _constant(self, plan: LirConstant) -> Collection:
        rows: list[Updates] = []
        errors: list[Updates] = []
        if self.context.worker == 0:
            if plan.error is not None:
                errors.append(
                    Updates((VarColumn.from_bytes([plan.error]),), np.zeros(1, np.uint64), np.ones(1, np.int64))
                )
            elif plan.rows:
                columns = tuple(
                    column_from_literals(c.scalar, [row[i] for row, _ in plan.rows])
                    for i, c in enumerate(plan.typ.columns)
                )
                diff = np.array([d for _, d in plan.rows], np.int64)
                rows.append(Updates(columns, np.zeros(len(diff), np.uint64), diff))
        constant = Constant(self.graph, rows, errors)
        return Collection(constant.oks, (constant.errs,), plan.typ.arity)

    def _get(self, plan: LirGet) -> Collection:
        source = self.environment[plan.id]
        if plan.lookup is not None:
            assert plan.key is not None
            arranged = self.arranged(source, plan.key)
            lookup = IndexLookup(self.graph, arranged, plan.lookup)
            source = Collection(lookup.oks, source.errs, source.arity)
        return self.apply(source, plan.mfp)

    def _let(self, plan: LirLet) -> Collection:
        node: Lir = plan
        bound: list[LocalId] = []
        while isinstance(node, LirLet):
            self.environment[node.id] = self.render(node.value)
            bound.append(node.id)
            node = node.body
        result = self.render(node)
        for id in bound:
            del self.environment[id]
        return result

    def _letrec(self, plan: LirLetRec) -> Collection:
        return LetRec.build(self, plan)

    def _flat_map(self, plan: LirFlatMap) -> Collection:
        input = self.render(plan.input)
        width = input.arity + plan.func.typ.arity
        inner, outer = split_temporal(plan.mfp, width)
        operator = FlatMap(self.graph, input.arity, plan.func, plan.exprs, inner)
        input.oks.connect(operator)
        made = Collection(operator.oks, union_errs(input.errs, (operator.errs,)), len(inner.projection))
        return self.apply(made, outer)

    def _join(self, plan: LirJoin) -> Collection:
        inputs = [self.render(i) for i in plan.inputs]
        linear = plan.plan
        if isinstance(linear, DeltaPlan):
            if self.context.exchange is None or self.context.workers == 1:
                return self._delta_join(linear, inputs)
            # A path's rows would have to change workers between lookups: its first path, as a linear join, does.
            linear = LinearPlan(0, linear.source_mfps[0], linear.paths[0])
            final = plan.plan.final[0]  # type: ignore[union-attr]
        else:
            final = None
        start = inputs[linear.source]
        stream = self.apply(start, linear.source_mfp)
        errs = union_errs(*(i.errs for i in inputs), stream.errs)
        for stage in linear.stages:
            lookup = inputs[stage.input]
            left = self.arranged(stream, stage.stream_key)
            right = self.arranged(lookup, stage.lookup_key)
            errs = union_errs(errs, stream.errs, lookup.errs)
            join = LinearStage(self.graph, left, right, stage.closure)
            stream = Collection(join.oks, (join.errs,), len(stage.closure.projection))
            errs = union_errs(errs, stream.errs)
        made = Collection(stream.oks, errs, stream.arity)
        return made if final is None else self.apply(made, final)

    def _delta_join(self, plan: DeltaPlan, inputs: Sequence[Collection]) -> Collection:
        by_input: list[Arranged | None] = [None] * len(inputs)
        paths = []
        for path in plan.paths:
            stages = []
            for stage in path:
                arranged = self.arranged(inputs[stage.input], stage.lookup_key)
                by_input[stage.input] = by_input[stage.input] or arranged
                stages.append((stage.input, arranged, stage.stream_key, stage.closure))
            paths.append(stages)
        join = DeltaJoin(self.graph)
        for i, stages in enumerate(paths):
            source = by_input[i] or self.arranged(inputs[i], ())
            join.add_path(source, plan.source_mfps[i], stages, plan.final[i])
        errs = union_errs(*(i.errs for i in inputs), (join.errs,))
        return Collection(join.oks, errs, len(plan.final[0].projection))

    def _reduce(self, plan: LirReduce) -> Collection:
        input = self.render(plan.input)
        key_count = len(plan.key)
        prelude = Prelude(input.arity, plan.key)
        slots: list[tuple[str, list[int], int | None, list[int]]] = []
        for a in plan.aggregates:
            if counts_rows(a):
                slots.append(("count", [], None, []))
                continue
            args = [prelude.column(e) for e in a.args]
            filter = None if a.filter is None else prelude.column(a.filter)
            order = [prelude.column(e) for e in a.order_exprs]
            slots.append((AGGREGATES[a.func].kind, args, filter, order))
        rows = self.apply(input, prelude.mfp())
        keys = tuple(Ref(i) for i in range(key_count))
        rows = Collection(self.exchange(rows.oks, KeyLayout(keys, rows.arity)), rows.errs, rows.arity)
        inner, outer = split_temporal(plan.mfp, key_count + len(plan.aggregates))
        distinct: dict[tuple[tuple[int, ...], int | None], Port] = {}
        for a, (kind, args, filter, _) in zip(plan.aggregates, slots):
            if kind == "accumulable" and a.distinct and (tuple(args), filter) not in distinct:
                distinct[tuple(args), filter] = self._distinct_args(rows, key_count, args, filter)
        reduce = Reduce(self.graph, key_count, rows.arity, inner)
        rows.oks.connect(reduce, 0)
        sources: dict[tuple[tuple[int, ...], int | None], int] = {}
        for which, port in distinct.items():
            sources[which] = len(sources) + 1
            port.connect(reduce, sources[which])
        for a, (kind, args, filter, order) in zip(plan.aggregates, slots):
            if kind == "count":
                reduce.add_count()
            elif kind == "accumulable" and a.distinct:
                source = sources[tuple(args), filter]
                reduce.add_lanes(a, source, range(key_count, key_count + len(args)), None)
            elif kind == "accumulable":
                reduce.add_lanes(a, 0, args, filter)
            elif kind == "hierarchical":
                reduce.add_extreme(a, args[0], filter)
            else:
                reduce.add_collected(a, args, filter, order)
        reduce.seal_plan()
        made = Collection(reduce.oks, union_errs(rows.errs, (reduce.errs,)), len(inner.projection))
        return self.apply(made, outer)

    def _distinct_args(self, rows: Collection, key_count: int, args: Sequence[int], filter: int | None) -> Port:
        """Distinct (key, arguments) of the rows that an aggregate's filter admits."""
        predicates = () if filter is None else ((rows.arity, Ref(filter)),)
        mfp = MapFilterProject(rows.arity, (), predicates, (*range(key_count), *args))
        picked = self.apply(rows, mfp)
        width = key_count + len(args)
        distinct = Reduce(self.graph, width, width, MapFilterProject.identity(width))
        distinct.seal_plan()
        picked.oks.connect(distinct, 0)
        return distinct.oks

    def _topk(self, plan: LirTopK) -> Collection:
        input = self.render(plan.input)
        port = self.exchange(input.oks, KeyLayout(tuple(Ref(i) for i in plan.group_key), input.arity))
        operator = TopK(self.graph, input.arity, plan.group_key, plan.order_by, plan.limit, plan.offset)
        port.connect(operator)
        return Collection(operator.oks, union_errs(input.errs, (operator.errs,)), input.arity)

    def _window(self, plan: LirWindow) -> Collection:
        input = self.render(plan.input)
        port = self.exchange(input.oks, KeyLayout(tuple(Ref(i) for i in plan.partition_by), input.arity))
        operator = Window(self.graph, input.arity, plan)
        port.connect(operator)
        errs = union_errs(input.errs, (operator.errs,))
        return Collection(operator.oks, errs, input.arity + len(plan.calls))

    def _union(self, plan: LirUnion) -> Collection:
        inputs = [self.render(i) for i in plan.inputs]
        arity = inputs[0].arity
        if not plan.consolidate:
            union = Union(self.graph)
            for input in inputs:
                input.oks.connect(union)
            return Collection(union.oks, union_errs(*(i.errs for i in inputs)), arity)
        ports = [self.exchange(input.oks, identity_layout(arity)) for input in inputs]
        consolidate = Consolidate(self.graph, arity)
        for port in ports:
            port.connect(consolidate)
        return Collection(consolidate.oks, union_errs(*(i.errs for i in inputs)), arity)


def identity_layout(arity: int) -> KeyLayout:
    return KeyLayout(tuple(Ref(i) for i in range(arity)), arity)


def split_temporal(mfp: MapFilterProject, arity: int) -> tuple[MapFilterProject, MapFilterProject]:
    """(what an operator may apply itself, what a TemporalFilter applies after it)."""
    if mfp.lower_bounds or mfp.upper_bounds:
        return MapFilterProject.identity(arity), mfp
    return mfp, MapFilterProject.identity(len(mfp.projection))
