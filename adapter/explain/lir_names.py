"""Column names in physical plans: as `names.py`, through MapFilterProjects and join closures."""

from __future__ import annotations

from adapter.explain.names import ColumnNames, Names, aggregate_name
from compute.plan import lir as p
from mzlite.expr.mfp import MapFilterProject
from mzlite.expr.scalar import Ref


def through(mfp: MapFilterProject, names: ColumnNames) -> ColumnNames:
    known = list(names[: mfp.input_arity]) + [None] * (mfp.input_arity - len(names))
    for e in mfp.expressions:
        known.append(known[e.column] if isinstance(e, Ref) and e.column < len(known) else None)
    return tuple(known[c] if c < len(known) else None for c in mfp.projection)


class LirNames:
    """Names of each node's output, memoized by lir_id."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._memo: dict[int, ColumnNames] = {}
        self._locals: dict[int, ColumnNames] = {}

    def of(self, e: p.Lir) -> ColumnNames:
        found = self._memo.get(e.lir_id)
        if found is None:
            found = self._memo[e.lir_id] = self._derive(e)
        return found

    def source(self, e: p.LirGet) -> ColumnNames:
        """Of what is read, before the Get's mfp."""
        if isinstance(e.id, int):
            return self._locals.get(e.id, (None,) * e.mfp.input_arity)
        known = self._names.columns(e.id)
        return (None,) * e.mfp.input_arity if known is None else tuple(known)

    def _derive(self, e: p.Lir) -> ColumnNames:
        match e:
            case p.LirConstant(_, _, typ):
                return (None,) * typ.arity
            case p.LirGet():
                return through(e.mfp, self.source(e))
            case p.LirLet(_, id, value, body):
                self._locals[id] = self.of(value)
                return self.of(body)
            case p.LirLetRec(_, ids, _, typs, body):
                for id, t in zip(ids, typs):
                    self._locals[id] = (None,) * t.arity
                return self.of(body)
            case p.LirMfp(_, input, mfp):
                return through(mfp, self.of(input))
            case p.LirFlatMap(_, input, func, _, mfp):
                return through(mfp, self.of(input) + (None,) * func.typ.arity)
            case p.LirJoin():
                return self.join_steps(e)[-1]
            case p.LirReduce():
                return through(e.mfp, self.reduced(e))
            case p.LirWindow():
                return self.of(e.input) + tuple(c.func.partition("<")[0] for c in e.calls)
            case p.LirUnion(_, inputs, _):
                return self.of(inputs[0])
            case _:
                return self.of(e.input)

    def reduced(self, e: p.LirReduce) -> ColumnNames:
        """Before the Reduce's mfp: keys, then aggregates."""
        inner = self.of(e.input)
        keys = tuple(inner[k.column] if isinstance(k, Ref) and k.column < len(inner) else None for k in e.key)
        return keys + tuple(aggregate_name(a, inner) for a in e.aggregates)

    def join_steps(self, e: p.LirJoin) -> list[ColumnNames]:
        """Names of the stream of the first path: after the source, then after each stage."""
        if isinstance(e.plan, p.LinearJoin):
            return self.path(e, e.plan.source, e.plan.source_mfp, e.plan.stages)
        steps = self.path(e, 0, e.plan.source_mfps[0], e.plan.paths[0])
        return [*steps, through(e.plan.final[0], steps[-1])]

    def path(
        self, e: p.LirJoin, source: int, mfp: MapFilterProject, stages: tuple[p.JoinStage, ...]
    ) -> list[ColumnNames]:
        steps = [through(mfp, self.of(e.inputs[source]))]
        for stage in stages:
            steps.append(through(stage.closure, steps[-1] + self.of(e.inputs[stage.input])))
        return steps
