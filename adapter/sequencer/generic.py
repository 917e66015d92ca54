"""Generic plans: a prepared point read is optimized once, not once per parameter value.

    SELECT * FROM v WHERE id = $1      optimized with two different stand-in values
      PeekExisting v, literals ((standin))     equal plans up to the stand-ins: a generic plan
      bind(42): the stand-in replaced          one tuple built, nothing planned

Only parameters that are compared for equality, each in one place, qualify: nothing else the optimizer does may depend
on their value. The optimizer moves integer casts from columns to literals, so a parameter may stand in the plan with
another width than its own; a value that does not fit there is planned afresh, and so is NULL (`id = NULL` is a
different plan).
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
from adapter.sequencer.peek_answer import replace_literals
from adapter.sequencer.peek_plan import PeekPlan
from adapter.sequencer.scalars import scalars_of, substitute, unmaterializable
from adapter.sequencer.values import literal
from adapter.sql.plans import SelectPlan
from adapter.transform import optimize_read
from mzlite.expr import relation as r
from mzlite.expr.functions import FUNCTIONS
from mzlite.expr.scalar import Call, Literal, Scalar, Unmaterializable, walk
from mzlite.repr.datum import encode_datum
from mzlite.repr.types import ScalarType

if TYPE_CHECKING:
    from adapter.coord.coordinator import Coordinator
    from adapter.coord.session import Session

_INTEGERS: dict[str, tuple[int, int]] = {
    "int2": (-(2**15), 2**15 - 1),
    "int4": (-(2**31), 2**31 - 1),
    "int8": (-(2**63), 2**63 - 1),
    "uint2": (0, 2**16 - 1),
    "uint4": (0, 2**32 - 1),
    "uint8": (0, 2**64 - 1),
}
_INT_LIKE = (*_INTEGERS, "oid", "date", "time", "timestamp", "timestamptz")


@dataclass(frozen=True, slots=True)
class Slot:
    """Where parameter `index` stands: as these bytes, a value of type typ."""

    index: int
    typ: ScalarType
    standin: bytes


@dataclass(frozen=True, slots=True)
class Generic:
    """template, path: the plan with stand-ins. in_mfp: some stand in the residual MFP too."""

    template: PeekPlan
    path: PeekExisting
    slots: tuple[Slot, ...]
    in_mfp: bool

    def bind(self, params: Sequence[Any]) -> PeekPlan | None:
        """The plan for these values; None if they need one of their own."""
        values: dict[bytes, bytes] = {}
        for slot in self.slots:
            datum = params[slot.index]
            if datum is None or not _fits(slot.typ, datum):
                return None
            values[slot.standin] = encode_datum(slot.typ, datum)
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
    types = prepared.param_types
    if unmaterializable(mir) - {f"${i + 1}" for i in range(len(types))}:
        return None
    if not _only_equalities(mir, len(types)):
        return None
    first, second = _standins(types, 0), _standins(types, 1)
    if first is None or second is None:
        return None
    cluster = c.target_cluster(session, r.global_ids(mir), mir)
    if cluster is None:
        return None
    a = _planned(c, session, plan, cluster, first)
    b = _planned(c, session, plan, cluster, second)
    if not isinstance(a.path, PeekExisting) or not isinstance(b.path, PeekExisting):
        return None
    if a.path.literals is None or b.path.literals is None:
        return None
    slots, in_mfp = _slots(a.path, types, first)
    if {s.index for s in slots} != set(range(len(types))):
        return None
    made = Generic(a, a.path, slots, in_mfp)
    again = made.bind(second)
    if again is None or not isinstance(again.path, PeekExisting) or again.path.literals is None:
        return None
    same = set(again.path.literals) == set(b.path.literals) and again.path.mfp == b.path.mfp
    return made if same and again.path.index == b.path.index else None


def _slots(path: PeekExisting, types: Sequence[ScalarType], standins: Sequence[Any]) -> tuple[tuple[Slot, ...], bool]:
    """Where the stand-ins are in a plan, and whether any is in the MFP."""
    in_rows = {v for row in path.literals or () for v in row if v is not None}
    in_mfp = {
        s.value
        for e in (*path.mfp.expressions, *(p for _, p in path.mfp.predicates))
        for s in walk(e)
        if isinstance(s, Literal) and s.value is not None
    }
    found: list[Slot] = []
    for i, (typ, standin) in enumerate(zip(types, standins)):
        for kind in _INTEGERS if typ.kind in _INTEGERS else (typ.kind,):
            as_typ = typ if kind == typ.kind else ScalarType(kind)
            encoded = encode_datum(as_typ, standin)
            if encoded in in_rows or encoded in in_mfp:
                found.append(Slot(i, as_typ, encoded))
    return tuple(found), any(slot.standin in in_mfp for slot in found)


def _fits(typ: ScalarType, datum: Any) -> bool:
    limits = _INTEGERS.get(typ.kind)
    return limits is None or limits[0] <= datum <= limits[1]


def _planned(c: Coordinator, session: Session, plan: SelectPlan, cluster: Cluster, values: Sequence[Any]) -> PeekPlan:
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
                        arg = _without_cast(arg)
                        if isinstance(arg, Unmaterializable) and not any(
                            isinstance(x, Unmaterializable) for x in walk(other)
                        ):
                            allowed[arg.func] = allowed.get(arg.func, 0) + 1
    return len(seen) == count and all(n == 1 and allowed.get(name) == 1 for name, n in seen.items())


def _without_cast(e: Scalar) -> Scalar:
    """The parameter under an integer cast."""
    if isinstance(e, Call) and len(e.args) == 1 and FUNCTIONS[e.func].is_cast and e.typ.kind in _INTEGERS:
        inner = e.args[0]
        if isinstance(inner, Unmaterializable) and inner.typ.kind in _INTEGERS:
            return inner
    return e


def _standins(types: Sequence[ScalarType], variant: int) -> tuple[Any, ...] | None:
    """Distinct values that no plan holds by accident."""
    made: list[Any] = []
    for i, typ in enumerate(types):
        n = 30_011 + 2 * i + variant
        match typ.kind:
            case kind if kind in _INT_LIKE:
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
