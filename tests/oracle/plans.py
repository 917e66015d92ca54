"""Random MIR plans and random update scripts over small domains, for engine properties.

Plans are composed to a bounded depth from every operator; columns are bigint, numeric, bool or bigint[], NULLs abound,
multiplicities of inputs never go below zero (but plans subtract, under Threshold). Recursive plans have a limit.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any

from mzlite.expr import relation as r
from mzlite.expr.scalar import (
    Aggregate,
    Call,
    ColumnOrder,
    If,
    Literal,
    Ref,
    Scalar,
    TableFunc,
    Unmaterializable,
    WindowCall,
    shift,
    support,
)
from mzlite.expr.typecheck import typ
from mzlite.repr.datum import encode_datum
from mzlite.repr.types import BOOL, INT8, MZ_TIMESTAMP, NUMERIC, ColumnType, RelationType, ScalarType, array_of

INT_ARRAY = array_of(INT8)
SOURCES = {"u1": 2, "u2": 2, "u3": 1}


def relation(arity: int) -> RelationType:
    return RelationType(tuple(ColumnType(INT8) for _ in range(arity)))


def source(id: str) -> r.Get:
    return r.Get(id, relation(SOURCES[id]))  # type: ignore[arg-type]


def literal(value: int | None) -> Literal:
    return Literal(None if value is None else encode_datum(INT8, value), INT8)


NOW = Unmaterializable("mz_now", MZ_TIMESTAMP)
TRUE = Literal(encode_datum(BOOL, True), BOOL)


@dataclasses.dataclass
class Scope:
    """Local bindings in scope: id -> type. What may still be used: recursion, mz_now()."""

    locals: dict[int, RelationType]
    recursion: bool = True
    temporal: bool = True


class Plans:
    """A generator over one Random."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.next_local = 0

    def plan(self, depth: int, scope: Scope | None = None) -> r.Mir:
        random = self.random
        scope = scope or Scope({})
        if depth <= 0 or random.random() < 0.05:
            return self.leaf(scope)
        makers = [
            self.map, self.filter, self.project, self.join, self.join, self.reduce, self.reduce, self.topk, self.union,
            self.threshold, self.distinct, self.flat_map, self.let, self.arrange_by,
            self.window,
        ]  # fmt: skip
        if scope.recursion:
            makers.append(self.let_rec)
        if scope.temporal:
            makers.append(self.temporal)
        return random.choice(makers)(depth - 1, scope)

    def leaf(self, scope: Scope) -> r.Mir:
        random = self.random
        if scope.locals and random.random() < 0.6:
            id = random.choice(sorted(scope.locals))
            return r.Get(id, scope.locals[id])
        if random.random() < 0.1:
            rows = tuple(((self.datum(), self.datum()), 1) for _ in range(random.randint(0, 2)))
            return r.Constant(rows, relation(2))
        return source(random.choice(sorted(SOURCES)))

    def datum(self) -> bytes | None:
        return None if self.random.random() < 0.2 else encode_datum(INT8, self.random.randint(0, 3))

    def ints(self, t: RelationType) -> list[int]:
        return [i for i, c in enumerate(t.columns) if c.scalar == INT8]

    def int_scalar(self, t: RelationType, depth: int = 1) -> Scalar:
        random = self.random
        columns = self.ints(t)
        choice = random.random()
        if columns and (choice < 0.5 or depth == 0):
            return Ref(random.choice(columns))
        if choice < 0.7 or depth == 0:
            return literal(random.choice([None, 0, 1, 2, 3]))
        a, b = self.int_scalar(t, depth - 1), self.int_scalar(t, depth - 1)
        if choice < 0.85:
            return Call("add_int8", (a, b), INT8)
        if choice < 0.92:
            return Call("coalesce", (a, b), INT8)
        return If(self.predicate(t, depth - 1), a, b)

    def predicate(self, t: RelationType, depth: int = 1) -> Scalar:
        random = self.random
        choice = random.random()
        if depth > 0 and choice < 0.3:
            parts = (self.predicate(t, depth - 1), self.predicate(t, depth - 1))
            return Call(random.choice(["and", "or"]), parts, BOOL)
        a = self.int_scalar(t, depth)
        if choice < 0.4:
            return Call("is_null", (a,), BOOL)
        if choice < 0.5:
            return Call("not", (Call("is_null", (a,), BOOL),), BOOL)
        func = random.choice(["eq_int8", "not_eq_int8", "lt_int8", "gte_int8"])
        return Call(func, (a, self.int_scalar(t, depth)), BOOL)

    # -- operators

    def map(self, depth: int, scope: Scope) -> r.Mir:
        input = self.plan(depth, scope)
        t = typ(input)
        scalars: list[Scalar] = [self.int_scalar(t, 2)]
        if self.random.random() < 0.3:
            scalars.append(self.predicate(t))
        return r.Map(input, tuple(scalars))

    def filter(self, depth: int, scope: Scope) -> r.Mir:
        input = self.plan(depth, scope)
        t = typ(input)
        return r.Filter(input, tuple(self.predicate(t) for _ in range(self.random.randint(1, 2))))

    def temporal(self, depth: int, scope: Scope) -> r.Mir:
        """A filter on time: mz_now() compared with one or two expressions."""
        input = self.plan(depth, scope)
        t = typ(input)
        predicates = []
        for _ in range(self.random.randint(1, 2)):
            bound: Scalar = Call("cast_int8_mz_timestamp", (self.int_scalar(t),), MZ_TIMESTAMP)
            op = self.random.choice(["lt", "lte", "gt", "gte", "eq"])
            sides = (NOW, bound) if self.random.random() < 0.7 else (bound, NOW)
            predicates.append(Call(f"{op}_mz_timestamp", sides, BOOL))
        return r.Filter(input, tuple(predicates))

    def project(self, depth: int, scope: Scope) -> r.Mir:
        input = self.plan(depth, scope)
        arity = typ(input).arity
        if not arity:
            return input
        outputs = tuple(self.random.randrange(arity) for _ in range(self.random.randint(0 if depth else 1, 3)))
        return r.Project(input, outputs)

    def flat_map(self, depth: int, scope: Scope) -> r.Mir:
        input = self.plan(depth, scope)
        t = typ(input)
        series = TableFunc("generate_series_int8", RelationType((ColumnType(INT8, False),)))
        bounded = If(Call("lt_int8", (self.int_scalar(t), literal(3)), BOOL), literal(2), literal(0))
        return r.FlatMap(input, series, (If(self.predicate(t), literal(0), literal(1)), bounded))

    def union(self, depth: int, scope: Scope) -> r.Mir:
        first = self.plan(depth, scope)
        return r.Union((first, self.like(typ(first), depth, scope)))

    def threshold(self, depth: int, scope: Scope) -> r.Mir:
        first = self.plan(depth, scope)
        return r.Threshold(r.Union((first, r.Negate(self.like(typ(first), depth, scope)))))

    def like(self, t: RelationType, depth: int, scope: Scope) -> r.Mir:
        """A plan with as many columns of the same types."""
        input = self.plan(depth, scope)
        has = typ(input)
        scalars: list[Scalar] = []
        outputs: list[int] = []
        for c in t.columns:
            fitting = [i for i, d in enumerate(has.columns) if d.scalar == c.scalar]
            if fitting:
                outputs.append(self.random.choice(fitting))
            else:
                scalars.append(Literal(None, c.scalar))
                outputs.append(has.arity + len(scalars) - 1)
        return r.Project(r.Map(input, tuple(scalars)), tuple(outputs))

    def distinct(self, depth: int, scope: Scope) -> r.Mir:
        input = self.plan(depth, scope)
        arity = typ(input).arity
        return r.Reduce(input, tuple(Ref(i) for i in range(arity)), ())

    def arrange_by(self, depth: int, scope: Scope) -> r.Mir:
        input = self.plan(depth, scope)
        return r.ArrangeBy(input, ((self.int_scalar(typ(input)),),))

    def reduce(self, depth: int, scope: Scope) -> r.Mir:
        random = self.random
        input = self.plan(depth, scope)
        t = typ(input)
        keys = tuple(self.int_scalar(t) for _ in range(random.randint(0, 2)))
        return r.Reduce(input, keys, tuple(self.aggregate(t) for _ in range(random.randint(1, 3))))

    def aggregate(self, t: RelationType) -> Aggregate:
        random = self.random
        filter = self.predicate(t) if random.random() < 0.2 else None
        distinct = random.random() < 0.3
        kind = random.choice(["count", "rows", "sum", "min", "max", "array", "any"])
        arg = self.int_scalar(t)
        if kind == "rows":
            return Aggregate("count", (TRUE,), INT8)
        if kind == "any":
            return Aggregate("bool_or_bool", (self.predicate(t),), BOOL, distinct, filter)
        if kind == "count":
            return Aggregate("count", (arg,), INT8, distinct, filter)
        if kind == "sum":
            return Aggregate("sum_int8", (arg,), NUMERIC, distinct, filter)
        if kind == "array":
            order = ColumnOrder(0, random.random() < 0.5, random.random() < 0.5)
            return Aggregate("array_agg<int8>", (arg,), INT_ARRAY, distinct, filter, (arg,), (order,))
        return Aggregate(f"{kind}_int8", (arg,), INT8, distinct, filter)

    def topk(self, depth: int, scope: Scope) -> r.Mir:
        random = self.random
        input = self.plan(depth, scope)
        t = typ(input)
        plain = [i for i, c in enumerate(t.columns) if c.scalar.kind != "array"]
        if len(plain) < t.arity:
            input = r.Project(input, tuple(plain))
            t = typ(input)
        columns = self.ints(t)
        keys = tuple(sorted(random.sample(columns, random.randint(0, min(1, len(columns))))))
        order = tuple(
            ColumnOrder(c, random.random() < 0.5, random.random() < 0.5)
            for c in random.sample(range(t.arity), random.randint(0, min(2, t.arity)))
        )
        limit: Scalar | None = random.choice([None, literal(0), literal(1), literal(2)])
        if keys and random.random() < 0.2:
            limit = If(Call("is_null", (Ref(keys[0]),), BOOL), literal(1), literal(2))
        return r.TopK(input, keys, order, limit, random.choice([0, 0, 1]))

    def window(self, depth: int, scope: Scope) -> r.Mir:
        random = self.random
        input = self.plan(depth, scope)
        t = typ(input)
        plain = [i for i, c in enumerate(t.columns) if c.scalar.kind != "array"]
        if len(plain) < t.arity:
            input = r.Project(input, tuple(plain))
            t = typ(input)
        partition = tuple(random.sample(range(t.arity), random.randint(0, min(1, t.arity))))
        order = tuple(
            ColumnOrder(c, random.random() < 0.5, random.random() < 0.5)
            for c in random.sample(range(t.arity), random.randint(0, min(2, t.arity)))
        )
        calls = [WindowCall("row_number", (), INT8), WindowCall("rank", (), INT8)]
        arg = (self.int_scalar(t),)
        calls += [WindowCall("lag", arg, INT8), WindowCall("sum_int8", arg, NUMERIC)]
        return r.Window(input, partition, order, tuple(random.sample(calls, random.randint(1, 2))))

    def join(self, depth: int, scope: Scope) -> r.Mir:
        random = self.random
        count = random.choice([1, 2, 2, 2, 3])
        inputs = tuple(self.plan(depth, scope) for _ in range(count))
        arities = [typ(i).arity for i in inputs]
        bases = [sum(arities[:i]) for i in range(count)]
        classes: list[tuple[Scalar, ...]] = []
        for _ in range(random.randint(0, 2)):
            members: list[Scalar] = []
            for i in range(count):
                t = typ(inputs[i])
                if self.ints(t) and random.random() < 0.8:
                    members.append(shift(self.int_scalar(t), bases[i]))
            if random.random() < 0.1:
                members.append(literal(random.randint(0, 2)))
            members = list(dict.fromkeys(members))
            if len(members) > 1:
                classes.append(tuple(members))
        join = r.Join(inputs, tuple(classes))
        if count == 1:
            return join
        if count > 2 and random.random() < 0.6:
            paths = tuple(self.order(join, i) for i in range(count))
            return r.Join(inputs, tuple(classes), r.DeltaQuery(paths))
        start = random.randrange(count)
        return r.Join(inputs, tuple(classes), r.Differential(start, self.order(join, start)))

    def order(self, join: r.Join, start: int) -> tuple[tuple[int, tuple[Scalar, ...]], ...]:
        """Some order of lookups; keys are whatever the inputs so far determine."""
        arities = [typ(i).arity for i in join.inputs]
        bases = [sum(arities[:i]) for i in range(len(arities))]

        def columns(i: int) -> set[int]:
            return set(range(bases[i], bases[i] + arities[i]))

        bound = columns(start)
        rest = [i for i in range(len(arities)) if i != start]
        self.random.shuffle(rest)
        order = []
        for i in rest:
            key: list[Scalar] = []
            for cls in join.equivalences:
                if any(support(m) <= bound for m in cls):
                    own = [m for m in cls if support(m) and support(m) <= columns(i)]
                    key += [shift(m, -bases[i]) for m in own[:1]]
            order.append((i, tuple(dict.fromkeys(key))))
            bound |= columns(i)
        return tuple(order)

    def let(self, depth: int, scope: Scope) -> r.Mir:
        value = self.plan(depth, scope)
        id = self.fresh()
        inner = dataclasses.replace(scope, locals={**scope.locals, id: typ(value)})
        return r.Let(id, value, self.plan(depth, inner))

    def let_rec(self, depth: int, scope: Scope) -> r.Mir:
        random = self.random
        ids = tuple(self.fresh() for _ in range(random.randint(1, 2)))
        types = {id: relation(random.randint(1, 2)) for id in ids}
        inner = Scope({**scope.locals, **types}, random.random() < 0.3, False)
        values = tuple(
            r.Reduce(self.like(types[id], depth, inner), tuple(Ref(i) for i in range(types[id].arity)), ())
            for id in ids
        )
        body = self.plan(depth, dataclasses.replace(scope, locals={**scope.locals, **types}))
        return r.LetRec(ids, values, tuple(types[id] for id in ids), body, random.randint(1, 4), True)

    def fresh(self) -> int:
        self.next_local += 1
        return self.next_local


Change = tuple[str, tuple[Any, ...], int, int]  # source, row, time, diff


def script(random: Random, times: int, count: int) -> list[Change]:
    """Changes in time order; no row's multiplicity ever falls below zero."""
    present: Counter[tuple[str, tuple[Any, ...]]] = Counter()
    changes: list[Change] = []
    for at in sorted(random.randrange(times) for _ in range(count)):
        alive = [k for k, n in present.items() if n > 0]
        if alive and random.random() < 0.4:
            id, row = random.choice(alive)
            diff = -random.randint(1, present[id, row])
        else:
            id = random.choice(sorted(SOURCES))
            row = tuple(None if random.random() < 0.15 else random.randint(0, 3) for _ in range(SOURCES[id]))
            diff = random.choice([1, 1, 1, 2])
        present[id, row] += diff
        changes.append((id, row, at, diff))
    return changes


def inputs_at(changes: Sequence[Change], at: int) -> dict[Any, Any]:
    """The sources' contents at a time, and the time itself ("now")."""
    out: dict[str, Counter[tuple[Any, ...]]] = {id: Counter() for id in SOURCES}
    for id, row, time, diff in changes:
        if time <= at:
            out[id][row] += diff
    at_now = Literal(encode_datum(MZ_TIMESTAMP, at), MZ_TIMESTAMP)
    return {"now": at_now} | {id: Counter({row: n for row, n in rows.items() if n}) for id, rows in out.items()}


def column_types(t: RelationType) -> list[ScalarType]:
    return [c.scalar for c in t.columns]
