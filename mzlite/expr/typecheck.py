"""The type of a relation expression: column types, nullability, unique keys; and the check that a plan is well formed.

`Types` remembers what it derived, by node identity, so that a rule may ask at every node of a plan for the price of one
walk. `check` raises `PlanError` (a bug of a rule, never of a user) with the offending node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mzlite.expr import relation as r
from mzlite.expr.aggregates import AGGREGATES
from mzlite.expr.nulls import rejects_null
from mzlite.expr.scalar import Aggregate, Literal, Ref, Scalar, support
from mzlite.expr.typing import scalar_type
from mzlite.repr.datum import decode_datum
from mzlite.repr.types import ColumnType, RelationType

MAX_KEYS = 8  # keys multiply under joins; a handful is enough for every rule that asks


class PlanError(AssertionError):
    """A malformed plan: a bug of whoever built it."""


def typ(e: r.Mir) -> RelationType:
    """The type of one expression; use a `Types` to ask often."""
    return Types().typ(e)


class Types:
    """Memo of derived types. Holds the nodes it has seen, so that identities stay unique."""

    def __init__(self) -> None:
        self._memo: dict[int, tuple[r.Mir, RelationType]] = {}

    def typ(self, e: r.Mir) -> RelationType:
        found = self._memo.get(id(e))
        if found is not None:
            return found[1]
        stack: list[tuple[r.Mir, bool]] = [(e, False)]
        while stack:
            node, ready = stack.pop()
            if id(node) in self._memo:
                continue
            if ready:
                kids = [self._memo[id(k)][1] for k in r.children(node)]
                self._memo[id(node)] = (node, _derive(node, kids))
            else:
                stack.append((node, True))
                stack.extend((k, False) for k in r.children(node))
        return self._memo[id(e)][1]

    def arity(self, e: r.Mir) -> int:
        return len(self.typ(e).columns)

    def columns(self, e: r.Mir) -> tuple[ColumnType, ...]:
        return self.typ(e).columns


def normalize_keys(keys: Iterable[Iterable[int]]) -> tuple[tuple[int, ...], ...]:
    """Sorted, minimal keys."""
    sets = sorted({tuple(sorted(set(k))) for k in keys}, key=lambda k: (len(k), k))
    out: list[tuple[int, ...]] = []
    for k in sets:
        if not any(set(o) <= set(k) for o in out):
            out.append(k)
    return tuple(out[:MAX_KEYS])


def _derive(node: r.Mir, kids: Sequence[RelationType]) -> RelationType:
    match node:
        case r.Constant() | r.Get():
            return node.typ
        case r.Let() | r.LetRec():
            return kids[-1]
        case r.Project(_, outputs):
            at: dict[int, int] = {}
            for i, c in enumerate(outputs):
                at.setdefault(c, i)
            keys = [[at[c] for c in k] for k in kids[0].keys if all(c in at for c in k)]
            return RelationType(tuple(kids[0].columns[c] for c in outputs), normalize_keys(keys))
        case r.Map(_, scalars):
            columns = list(kids[0].columns)
            keys = [list(k) for k in kids[0].keys]
            for s in scalars:
                if isinstance(s, Ref):
                    keys += [[len(columns) if c == s.column else c for c in k] for k in keys if s.column in k]
                columns.append(scalar_type(s, columns))
            return RelationType(tuple(columns), normalize_keys(keys))
        case r.FlatMap(_, func, _):
            return RelationType(kids[0].columns + func.typ.columns)
        case r.Filter(_, predicates):
            return _filtered(kids[0], predicates)
        case r.Join():
            return _joined(node, kids)
        case r.Reduce(_, group_key, aggregates):
            inputs = kids[0].columns
            columns = [scalar_type(k, inputs) for k in group_key]
            columns += [_aggregate_type(a, inputs) for a in aggregates]
            keys = [list(range(len(group_key)))]
            position = {k.column: i for i, k in enumerate(group_key) if isinstance(k, Ref)}
            keys += [[position[c] for c in k] for k in kids[0].keys if all(c in position for c in k)]
            return RelationType(tuple(columns), normalize_keys(keys))
        case r.TopK(_, group_key, _, limit, _):
            keys = [list(k) for k in kids[0].keys]
            if isinstance(limit, Literal) and limit.value is not None and decode_datum(limit.typ, limit.value) == 1:
                keys.append(list(group_key))
            return RelationType(kids[0].columns, normalize_keys(keys))
        case r.Window(_, _, _, calls):
            return RelationType(kids[0].columns + tuple(ColumnType(c.typ) for c in calls), kids[0].keys)
        case r.Negate():
            return RelationType(kids[0].columns)
        case r.Threshold() | r.ArrangeBy():
            return kids[0]
        case r.Union():
            columns = list(kids[0].columns)
            for other in kids[1:]:
                columns = [a if a.nullable or not b.nullable else b for a, b in zip(columns, other.columns)]
            # A - (subset of A) keeps A's keys; recognising that is the rules' business.
            return RelationType(tuple(columns), ())
    raise PlanError(f"unknown node {node!r}")


def _aggregate_type(a: Aggregate, inputs: Sequence[ColumnType]) -> ColumnType:
    """A strict aggregate over a group is NULL only if it saw no value: not when its arguments and filter let all through."""
    entry = AGGREGATES[a.func]
    if not entry.nullable:
        return ColumnType(a.typ, nullable=False)
    sees_all = a.filter is None and not any(scalar_type(x, inputs).nullable for x in a.args)
    always = entry.kind == "hierarchical" or entry.name in ("sum", "avg", "bool_and", "bool_or")
    return ColumnType(a.typ, nullable=not (sees_all and always))


def _filtered(input: RelationType, predicates: Sequence[Scalar]) -> RelationType:
    columns = list(input.columns)
    for p in predicates:
        for c in rejects_null(p):
            columns[c] = ColumnType(columns[c].scalar, nullable=False)
    return RelationType(tuple(columns), input.keys)


def _joined(node: r.Join, kids: Sequence[RelationType]) -> RelationType:
    columns = [c for k in kids for c in k.columns]
    owner: list[int] = [i for i, k in enumerate(kids) for _ in k.columns]
    for cls in node.equivalences:
        for e in cls:
            if isinstance(e, Ref):
                columns[e.column] = ColumnType(columns[e.column].scalar, nullable=False)
    # A key of the whole: one key of each input; an input all of whose some key is equated with earlier inputs adds none.
    offsets = [0]
    for k in kids:
        offsets.append(offsets[-1] + len(k.columns))
    classes = [[e.column for e in cls if isinstance(e, Ref)] for cls in node.equivalences]
    keys: list[list[int]] = [[]]
    for i, k in enumerate(kids):
        bound = {c - offsets[i] for cls in classes for c in cls if owner[c] == i and any(owner[d] < i for d in cls)}
        if any(set(key) <= bound for key in k.keys):
            continue
        if not k.keys:
            keys = []
            break
        keys = [a + [offsets[i] + c for c in b] for a in keys for b in k.keys][:MAX_KEYS]
    # Also from the other side: the first input's rows are unique when a later one carries the key.
    if len(kids) == 2:
        bound = {c for cls in classes for c in cls if owner[c] == 0 and any(owner[d] == 1 for d in cls)}
        if any(set(key) <= bound for key in kids[0].keys):
            keys += [[offsets[1] + c for c in b] for b in kids[1].keys]
    return RelationType(tuple(columns), normalize_keys(keys))


def check(e: r.Mir, types: Types | None = None) -> RelationType:
    """Arity and type of every reference. errors: PlanError."""
    types = types or Types()
    bound: dict[int, RelationType] = {}
    for node in r.walk(e):
        if isinstance(node, r.Let):
            bound[node.id] = types.typ(node.value)
        elif isinstance(node, r.LetRec):
            bound.update(zip(node.ids, node.typs))
    for node in r.walk(e):
        kids = [types.typ(k) for k in r.children(node)]
        for scalars, arity in _scalars(node, kids):
            for s in scalars:
                bad = [c for c in support(s) if c >= arity]
                if bad:
                    raise PlanError(f"column #{bad[0]} of {arity} in {type(node).__name__}: {s!r}")
        match node:
            case r.Get(id, t) if isinstance(id, int):
                if id not in bound:
                    raise PlanError(f"unbound local l{id}")
                if len(bound[id].columns) != len(t.columns):
                    raise PlanError(f"l{id} has {len(bound[id].columns)} columns, its Get {len(t.columns)}")
            case r.Union():
                for k in kids[1:]:
                    if [c.scalar.base() for c in k.columns] != [c.scalar.base() for c in kids[0].columns]:
                        raise PlanError(f"union of {_show(kids[0])} and {_show(k)}")
            case r.Project(_, outputs):
                if any(c >= len(kids[0].columns) for c in outputs):
                    raise PlanError(f"project {outputs} of {len(kids[0].columns)} columns")
            case r.LetRec():
                for v, t in zip(kids, node.typs):
                    if [c.scalar.base() for c in v.columns] != [c.scalar.base() for c in t.columns]:
                        raise PlanError(f"recursive binding declared {_show(t)} is {_show(v)}")
            case _:
                pass
    return types.typ(e)


def _show(t: RelationType) -> str:
    return "(" + ", ".join(c.scalar.kind for c in t.columns) + ")"


def _scalars(node: r.Mir, kids: Sequence[RelationType]) -> list[tuple[Sequence[Scalar], int]]:
    """Scalars of a node with the number of columns they may refer to."""
    match node:
        case r.Map(_, scalars):
            n = len(kids[0].columns)
            return [((s,), n + i) for i, s in enumerate(scalars)]
        case r.FlatMap(_, _, exprs):
            return [(exprs, len(kids[0].columns))]
        case r.Filter(_, predicates):
            return [(predicates, len(kids[0].columns))]
        case r.Join():
            n = sum(len(k.columns) for k in kids)
            return [(cls, n) for cls in node.equivalences]
        case r.Reduce(_, group_key, aggregates):
            n = len(kids[0].columns)
            out: list[tuple[Sequence[Scalar], int]] = [(group_key, n)]
            for a in aggregates:
                out.append(((*a.args, *a.order_exprs, *(() if a.filter is None else (a.filter,))), n))
            return out
        case r.ArrangeBy(_, keys):
            return [(k, len(kids[0].columns)) for k in keys]
        case r.Window(_, _, _, calls):
            return [(c.args, len(kids[0].columns)) for c in calls]
        case _:
            return []
