"""Lowering: MIR to LIR. Every Map, Filter and Project is fused into a neighbour, every join gets its stages, every
reduce its kind; ids are given in order of construction.

    single_time   the dataflow is read at one time only: reduces and TopKs take their monotonic form

A join without an implementation is an error unless it needs none (one input, or a cross product): the optimizer plans
joins. Source: Materialize's compute-types/plan/lowering.rs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from compute.plan.description import IndexImport
from compute.plan.lir import (
    DeltaJoin,
    LinearJoin,
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
from compute.plan.lower_join import JoinLowering
from compute.plan.mfp_builder import MfpBuilder
from mzlite.expr import relation as r
from mzlite.expr.aggregates import AGGREGATES
from mzlite.expr.mfp import MapFilterProject
from mzlite.expr.scalar import Aggregate
from mzlite.expr.typecheck import Types
from mzlite.repr.errors import SqlError
from mzlite.repr.ids import GlobalId, LirId

MAX_DEPTH = 250


def lower(
    objects: Sequence[tuple[GlobalId, r.Mir]],
    index_imports: Mapping[GlobalId, IndexImport],
    *,
    single_time: bool = False,
    first_lir_id: LirId = 1,
) -> tuple[tuple[GlobalId, Lir], ...]:
    """Raises SqlError for what has no plan."""
    lowering = _Lowering(single_time, first_lir_id)
    return tuple((id, lowering.lower(mir)) for id, mir in objects)


class _Lowering:
    def __init__(self, single_time: bool, first_lir_id: LirId) -> None:
        self.single_time = single_time
        self.next_id = first_lir_id
        self.types = Types()
        self.depth = 0

    def id(self) -> LirId:
        self.next_id += 1
        return self.next_id - 1

    def lower(self, e: r.Mir) -> Lir:
        """e with the Map, Filter and Project nodes at its top fused."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise SqlError("54001", "query is nested too deeply to be planned")
        steps: list[r.Map | r.Filter | r.Project] = []
        while isinstance(e, r.Map | r.Filter | r.Project):
            steps.append(e)
            e = e.input
        builder = MfpBuilder(self.types.typ(e).arity)
        for step in reversed(steps):
            match step:
                case r.Map(_, scalars):
                    builder.map(scalars)
                case r.Filter(_, predicates):
                    builder.filter(predicates)
                case r.Project(_, outputs):
                    builder.project(outputs)
                case _:
                    assert_never(step)
        plan = self._node(e, builder.build())
        self.depth -= 1
        return plan

    def _node(self, e: r.Mir, mfp: MapFilterProject) -> Lir:
        """e followed by mfp. Nodes that run an mfp themselves take it, unless it is temporal."""
        temporal = bool(mfp.lower_bounds or mfp.upper_bounds)
        inner = MapFilterProject.identity(mfp.input_arity) if temporal else mfp
        plan: Lir
        match e:
            case r.Get(id, _):
                return LirGet(self.id(), id, mfp)
            case r.Constant(rows, typ, error):
                return self._then(LirConstant(self.id(), rows, typ, error), mfp)
            case r.Let():
                return self._then(self._let(e), mfp)
            case r.LetRec():
                values = tuple(self.lower(v) for v in e.values)
                result = self.lower(e.body)
                plan = LirLetRec(self.id(), e.ids, values, e.typs, result, e.limit, e.return_at_limit)
                return self._then(plan, mfp)
            case r.FlatMap(input, func, exprs):
                plan = LirFlatMap(self.id(), self.lower(input), func, exprs, inner)
                return self._then(plan, mfp) if temporal else plan
            case r.Join():
                return self._join(e, mfp)
            case r.Reduce(input, key, aggregates, monotonic, _):
                plan = LirReduce(
                    self.id(),
                    self.lower(input),
                    key,
                    aggregates,
                    reduce_kind(aggregates),
                    inner,
                    monotonic or self.single_time,
                )
                return self._then(plan, mfp) if temporal else plan
            case r.TopK(input, group_key, order_by, limit, offset, monotonic, _):
                plan = LirTopK(
                    self.id(), self.lower(input), group_key, order_by, limit, offset, monotonic or self.single_time
                )
                return self._then(plan, mfp)
            case r.Window(input, partition_by, order_by, calls):
                plan = LirWindow(self.id(), self.lower(input), partition_by, order_by, calls, self.types.typ(input))
                return self._then(plan, mfp)
            case r.Negate(input):
                return self._then(LirNegate(self.id(), self.lower(input)), mfp)
            case r.Threshold(input):
                return self._then(LirThreshold(self.id(), self.lower(input)), mfp)
            case r.Union(inputs):
                parts = tuple(self.lower(i) for i in inputs)
                consolidate = any(isinstance(p, LirNegate) for p in parts)
                return self._then(LirUnion(self.id(), parts, consolidate), mfp)
            case r.ArrangeBy(input, keys):
                return self._then(LirArrangeBy(self.id(), self.lower(input), keys), mfp)
            case r.Map() | r.Filter() | r.Project():
                raise AssertionError("fused above")
            case _:
                assert_never(e)

    def _then(self, plan: Lir, mfp: MapFilterProject) -> Lir:
        return plan if mfp.is_identity() else LirMfp(self.id(), plan, mfp)

    def _let(self, e: r.Let) -> Lir:
        """A chain of Lets is walked, not recursed into: planners make long ones."""
        bound: list[tuple[int, Lir]] = []
        node: r.Mir = e
        while isinstance(node, r.Let):
            bound.append((node.id, self.lower(node.value)))
            node = node.body
        plan = self.lower(node)
        for id, value in reversed(bound):
            plan = LirLet(self.id(), id, value, plan)
        return plan

    def _join(self, e: r.Join, mfp: MapFilterProject) -> Lir:
        types = [self.types.typ(i) for i in e.inputs]
        columns = [c for t in types for c in t.columns]
        temporal = bool(mfp.lower_bounds or mfp.upper_bounds)
        inner = MapFilterProject.identity(mfp.input_arity) if temporal else mfp
        implementation = e.implementation
        if isinstance(implementation, r.IndexedFilter):
            return self._indexed_filter(implementation, types[0].arity, e, mfp)
        join = JoinLowering([t.arity for t in types], columns, e.equivalences, inner)
        if len(e.inputs) == 1:
            return self._then(self._then(self.lower(e.inputs[0]), join.filter()), mfp if temporal else identity(inner))
        linear: LinearJoin | DeltaJoin
        match implementation:
            case r.Differential(start, order):
                linear = join.linear(start, order)
            case r.DeltaQuery(paths):
                linear = join.delta(paths)
            case None:
                if e.equivalences or not e.inputs:
                    raise SqlError("XX000", "join implementation is not implemented: run the optimizer first")
                linear = join.linear(0, [(i, ()) for i in range(1, len(e.inputs))])
        inputs = tuple(self.lower(i) for i in e.inputs)
        plan = LirJoin(self.id(), inputs, linear)
        return self._then(plan, mfp) if temporal else plan

    def _indexed_filter(self, index: r.IndexedFilter, arity: int, e: r.Join, mfp: MapFilterProject) -> Lir:
        """Seek the keys; the constant's columns repeat the key's values."""
        builder = MfpBuilder(arity).map(index.key)
        extra = sum(self.types.typ(i).arity for i in e.inputs[1:])
        assert extra == len(index.key), (extra, index.key)
        return LirGet(self.id(), index.coll, builder.then(mfp).build(), index.key, index.values)


def identity(mfp: MapFilterProject) -> MapFilterProject:
    return MapFilterProject.identity(len(mfp.projection))


def reduce_kind(aggregates: tuple[Aggregate, ...]) -> str:
    """distinct, one class's name, or mixed."""
    kinds = {AGGREGATES[a.func].kind for a in aggregates}
    if not kinds:
        return "distinct"
    return kinds.pop() if len(kinds) == 1 else "mixed"
