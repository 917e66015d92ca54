"""What is known of the columns of a relation: which always hold one value, and which always equal another.

    Filter (#0 = 5) AND (#1 = #2)      constants {#0: 5}    same {#2: #1}

Derived bottom up; joins add their equivalences, unions keep what all branches agree on. Equality here means the same
datum or both NULL, and only types whose equal values are interchangeable take part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from adapter.transform.context import Context
from adapter.transform.equality import as_equality, interchangeable
from mzlite.expr import relation as r
from mzlite.expr.scalar import Call, Literal, Ref, Scalar
from mzlite.expr.typecheck import Types
from mzlite.repr.types import ColumnType


@dataclass(slots=True)
class Facts:
    """constants: column -> its only value. same: column -> a smaller column it always equals (never chained)."""

    constants: dict[int, Literal] = field(default_factory=dict)
    same: dict[int, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.constants) or bool(self.same)

    def value(self, c: int) -> Scalar:
        """The best expression for column c."""
        found = self.constants.get(c)
        return found if found is not None else Ref(self.same.get(c, c))

    def root(self, c: int) -> int:
        return self.same.get(c, c)

    def equate(self, a: int, b: int) -> None:
        a, b = self.root(a), self.root(b)
        if a == b:
            return
        low, high = min(a, b), max(a, b)
        for c, s in list(self.same.items()):
            if s == high:
                self.same[c] = low
        self.same[high] = low
        members = [low, *(c for c, s in self.same.items() if s == low)]
        known = next((self.constants[c] for c in members if c in self.constants), None)
        if known is not None:
            for c in members:
                self.constants.setdefault(c, known)

    def fix(self, c: int, value: Literal) -> None:
        low = self.root(c)
        for m in (low, *(m for m, s in self.same.items() if s == low)):
            self.constants.setdefault(m, value)


def learn(facts: Facts, predicate: Scalar, columns: Sequence[ColumnType]) -> None:
    """Add what a predicate says that holds on every row."""
    match predicate:
        case Call("and", args, _):
            for a in args:
                learn(facts, a, columns)
            return
        case Call("is_null", (Ref(c),), _):
            facts.fix(c, Literal(None, columns[c].scalar))
            return
        case Ref(c) if columns[c].scalar.kind == "bool":
            facts.fix(c, Literal(b"\x01", columns[c].scalar))
            return
        case Call("not", (Ref(c),), _):
            facts.fix(c, Literal(b"\x00", columns[c].scalar))
            return
        case _:
            pass
    pair = as_equality(predicate)
    if pair is not None:
        _learn_equal(facts, pair, columns)


def _learn_equal(facts: Facts, members: Sequence[Scalar], columns: Sequence[ColumnType]) -> None:
    refs = [m.column for m in members if isinstance(m, Ref) and interchangeable(columns[m.column].scalar)]
    for a, b in pairwise(refs):
        if columns[a].scalar.base() == columns[b].scalar.base():
            facts.equate(a, b)
    literal = next((m for m in members if isinstance(m, Literal) and m.value is not None), None)
    if literal is not None:
        for c in refs:
            if columns[c].scalar.kind == literal.typ.kind:
                facts.fix(c, literal)


class FactsOf:
    """Facts of every node of a plan, remembered by identity."""

    def __init__(self, root: r.Mir, context: Context) -> None:
        self._types: Types = context.types
        self._memo: dict[int, tuple[r.Mir, Facts]] = {}
        self._values: dict[int, r.Mir] = {n.id: n.value for n in r.walk(root) if isinstance(n, r.Let)}

    def of(self, e: r.Mir) -> Facts:
        stack: list[tuple[r.Mir, bool]] = [(e, False)]
        while stack:
            node, ready = stack.pop()
            if id(node) in self._memo:
                continue
            kids = self._kids(node)
            if ready:
                self._memo[id(node)] = (node, self._derive(node, [self._memo[id(k)][1] for k in kids]))
            else:
                stack.append((node, True))
                stack.extend((k, False) for k in kids)
        return self._memo[id(e)][1]

    def _kids(self, e: r.Mir) -> tuple[r.Mir, ...]:
        match e:
            case r.Get(id, _) if isinstance(id, int) and id in self._values:
                return (self._values[id],)
            case r.Let() | r.LetRec():
                return (e.body,)
            case _:
                return r.children(e)

    def _derive(self, e: r.Mir, kids: list[Facts]) -> Facts:
        match e:
            case r.Constant():
                return _constant(e)
            case r.Get():
                return kids[0] if kids and self._types.arity(e) == self._arity_of_value(e) else Facts()
            case r.Project(_, outputs):
                return _projected(kids[0], outputs)
            case r.Map(input, scalars):
                return self._mapped(kids[0], e, self._types.arity(input), scalars)
            case r.Filter(input, predicates):
                out = _copy(kids[0])
                columns = self._types.columns(input)
                for p in predicates:
                    learn(out, p, columns)
                return out
            case r.Join():
                return self._joined(e, kids)
            case r.Reduce(_, group_key, _):
                out = Facts()
                at: dict[int, int] = {}
                for i, k in enumerate(group_key):
                    if isinstance(k, Literal) and k.error is None:
                        out.fix(i, k)
                    elif isinstance(k, Ref):
                        if k.column in kids[0].constants:
                            out.fix(i, kids[0].constants[k.column])
                        low = kids[0].root(k.column)
                        if low in at:
                            out.equate(at[low], i)
                        at.setdefault(low, i)
                return out
            case r.Union():
                return _agreed(kids)
            case _:
                return kids[0]

    def _arity_of_value(self, e: r.Get) -> int:
        assert isinstance(e.id, int)
        return self._types.arity(self._values[e.id])

    def _mapped(self, below: Facts, e: r.Map, n: int, scalars: Sequence[Scalar]) -> Facts:
        out = _copy(below)
        columns = self._types.columns(e)
        for i, s in enumerate(scalars):
            if isinstance(s, Literal) and s.error is None and interchangeable(columns[n + i].scalar):
                out.fix(n + i, s)
            elif isinstance(s, Ref):
                out.equate(s.column, n + i)
        return out

    def _joined(self, e: r.Join, kids: list[Facts]) -> Facts:
        out = Facts()
        base = 0
        for input, facts in zip(e.inputs, kids):
            out.constants.update({base + c: v for c, v in facts.constants.items()})
            out.same.update({base + c: base + s for c, s in facts.same.items()})
            base += self._types.arity(input)
        columns = [c for i in e.inputs for c in self._types.columns(i)]
        for cls in e.equivalences:
            _learn_equal(out, cls, columns)
        return out


def _copy(f: Facts) -> Facts:
    return Facts(dict(f.constants), dict(f.same))


def _constant(e: r.Constant) -> Facts:
    out = Facts()
    if e.rows and len(e.rows) <= 100:
        for i, t in enumerate(e.typ.columns):
            first = e.rows[0][0][i]
            if interchangeable(t.scalar) and all(row[i] == first for row, _ in e.rows):
                out.constants[i] = Literal(first, t.scalar)
    return out


def _projected(f: Facts, outputs: Sequence[int]) -> Facts:
    out = Facts()
    at: dict[int, int] = {}
    for i, c in enumerate(outputs):
        low = f.root(c)
        if low in at:
            out.same[i] = at[low]
        else:
            at[low] = i
        if c in f.constants:
            out.constants[i] = f.constants[c]
    return out


def _agreed(kids: list[Facts]) -> Facts:
    """What holds in every branch."""
    first, *rest = kids
    out = Facts()
    for c, v in first.constants.items():
        if all(k.constants.get(c) == v for k in rest):
            out.constants[c] = v
    for c in first.same:
        for low in sorted({first.same[c], *(x for x in first.same if x < c and first.same[x] == first.same[c])}):
            if all(k.root(c) == k.root(low) for k in rest):
                out.equate(low, c)
                break
    return out
