"""Generic plans: a prepared point read is optimized once, not once per parameter value.

    SELECT * FROM v WHERE id = $1      optimized with two different stand-in values
      PeekExisting v, literals ((standin))     equal plans up to the stand-ins: a generic plan
      bind(42): the stand-in replaced          one tuple built, nothing planned

Only parameters that are compared for equality, each in one place, qualify: nothing else the optimizer does may depend
on their value. NULL parameters are planned afresh (`id = NULL` is a different plan).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from adapter.catalog.objects import Cluster
from adapter.coord.planning import Prepared
from adapter.sequencer.fast_path import PeekExisting
from adapter.sequencer.inline import inline_views
from adapter.sequencer.peek import PeekPlan, replace_literals
from adapter.sequencer.scalars import scalars_of, substitute, unmaterializable
from adapter.sequencer.values import literal
from adapter.sql.plans import SelectPlan
from adapter.transform import optimize_read
from mzlite.expr import relation as r
from mzlite.expr.functions import FUNCTIONS
from mzlite.expr.scalar import Call, Scalar, Unmaterializable, walk
from mzlite.repr.datum import encode_datum
from mzlite.repr.types import ScalarType

if TYPE_CHECKING:
    from adapter.coord.coordinator import Coordinator
    from adapter.coord.session import Session

_INTS = ("int2", "int4", "int8", "uint2", "uint4", "uint8", "oid", "date", "time", "timestamp", "timestamptz")


@dataclass(frozen=True, slots=True)
class Generic:
    """template: the plan with stand-ins. standins: their bytes, by parameter. in_mfp: some stand in the residual MFP."""

    template: PeekPlan
    path: PeekExisting
    standins: tuple[bytes, ...]
    types: tuple[ScalarType, ...]
    in_mfp: bool
    revision: int
    cluster: str

    def bind(self, params: Sequence[Any]) -> PeekPlan | None:
        """The plan for these values; None if they need one of their own."""
        values: dict[bytes, bytes] = {}
        for standin, typ, datum in zip(self.standins, self.types, params):
            if datum is None:
                return None
            values[standin] = encode_datum(typ, datum)
        path = self.path
        assert path.literals is not None
        rows = tuple(tuple(values.get(v, v) if v is not None else None for v in row) for row in path.literals)
        if len(rows) > 1:
            rows = tuple(dict.fromkeys(rows))
        mfp = replace_literals(path.mfp, values) if self.in_mfp else path.mfp
        t = self.template
        bound = PeekExisting(path.on, path.index, rows, mfp)
        return PeekPlan(bound, t.typ, t.mir, t.reads, t.inputs, t.time_dependent, t.mz_now, t.cluster, t.indexes)


def make_generic(c: Coordinator, session: Session, prepared: Prepared, plan: SelectPlan) -> Generic | None:
    """The generic plan of a statement, None if it has none."""
    mir = plan.mir
    if unmaterializable(mir) - {f"${i + 1}" for i in range(len(prepared.param_types))}:
        return None
    if not _only_equalities(mir, len(prepared.param_types)):
        return None
    first = _standins(prepared.param_types, 0)
    second = _standins(prepared.param_types, 1)
    if first is None or second is None:
        return None
    cluster = c.target_cluster(session, r.global_ids(mir), mir)
    if cluster is None:
        return None
    a = _planned(c, session, plan, cluster, prepared.param_types, first)
    b = _planned(c, session, plan, cluster, prepared.param_types, second)
    if not isinstance(a.path, PeekExisting) or not isinstance(b.path, PeekExisting):
        return None
    if a.path.literals is None or b.path.literals is None:
        return None
    a_bytes = tuple(encode_datum(t, v) for t, v in zip(prepared.param_types, first))
    b_bytes = tuple(encode_datum(t, v) for t, v in zip(prepared.param_types, second))
    moved_mfp = replace_literals(a.path.mfp, dict(zip(a_bytes, b_bytes)))
    in_mfp = moved_mfp != a.path.mfp
    made = Generic(a, a.path, a_bytes, prepared.param_types, in_mfp, c.state.revision, cluster.id)
    again = made.bind(second)
    if again is None or not isinstance(again.path, PeekExisting) or again.path.literals is None:
        return None
    same = set(again.path.literals) == set(b.path.literals) and again.path.mfp == b.path.mfp
    return made if same and again.path.index == b.path.index else None


def _planned(
    c: Coordinator,
    session: Session,
    plan: SelectPlan,
    cluster: Cluster,
    types: Sequence[ScalarType],
    values: Sequence[Any],
) -> PeekPlan:
    def value(u: Unmaterializable) -> Scalar | None:
        return literal(u.typ, values[int(u.func[1:]) - 1])

    mir = substitute(plan.mir, value)
    reads = r.global_ids(mir)
    indexes = c.index_infos(cluster, reads)
    inlined = inline_views(mir, c.definition, lambda id: id in indexes)
    optimized = optimize_read(inlined, indexes)
    return c.sequencer.peeks.choose_path(session, mir, optimized, plan.finishing, cluster, indexes, reads)


def _only_equalities(mir: r.Mir, count: int) -> bool:
    """Does each parameter stand exactly once, as a direct argument of `=` in a filter?"""
    seen: dict[str, int] = {}
    allowed: dict[str, int] = {}
    for node in r.walk(mir):
        for scalar in scalars_of(node):
            for s in walk(scalar):
                if isinstance(s, Unmaterializable):
                    seen[s.func] = seen.get(s.func, 0) + 1
                elif isinstance(node, r.Filter) and isinstance(s, Call) and FUNCTIONS[s.func].name == "=":
                    for arg, other in (s.args, s.args[::-1]):
                        if isinstance(arg, Unmaterializable) and not any(
                            isinstance(x, Unmaterializable) for x in walk(other)
                        ):
                            allowed[arg.func] = allowed.get(arg.func, 0) + 1
    return len(seen) == count and all(n == 1 and allowed.get(name) == 1 for name, n in seen.items())


def _standins(types: Sequence[ScalarType], variant: int) -> tuple[Any, ...] | None:
    """Distinct values that no plan holds by accident."""
    made: list[Any] = []
    for i, typ in enumerate(types):
        n = 30_011 + 2 * i + variant
        match typ.kind:
            case kind if kind in _INTS:
                made.append(n)
            case "text" | "varchar" | "name" | "bpchar":
                made.append(f"\x01stand-in {n}")
            case "numeric":
                made.append(Decimal(n) / 7919)
            case "uuid":
                made.append(n.to_bytes(16, "big"))
            case "bytea":
                made.append(b"\x01stand-in" + n.to_bytes(4, "big"))
            case _:
                return None
    return tuple(made)
