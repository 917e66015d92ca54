"""Random relation expressions over small tables: integers with NULLs and duplicates, every operator, shared subplans.

Deterministic from the `random.Random` given. Multiplicities stay non-negative: Negate appears only under Threshold, in the
shape EXCEPT and outer joins lower to.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from adapter.transform.context import IndexInfo
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
    WindowCall,
)
from mzlite.expr.typecheck import Types
from mzlite.repr.datum import encode_datum
from mzlite.repr.ids import GlobalId
from mzlite.repr.types import BOOL, INT4, INT8, ColumnType, RelationType
from mzlite.repr.updates import Updates, updates_from_rows

TABLES = {
    "u1": RelationType((ColumnType(INT4), ColumnType(INT4))),
    "u2": RelationType((ColumnType(INT4), ColumnType(INT4), ColumnType(INT4))),
    "u3": RelationType((ColumnType(INT4, nullable=False),), keys=((0,),)),
}


INDEXES = {
    GlobalId("u1"): (IndexInfo(GlobalId("u10"), (Ref(0),)),),
    GlobalId("u2"): (IndexInfo(GlobalId("u20"), (Ref(1), Ref(0))), IndexInfo(GlobalId("u21"), (Ref(2),))),
}


def literal(n: int | None) -> Literal:
    return Literal(None if n is None else encode_datum(INT4, n), INT4)


def random_tables(rng: random.Random, rows: int = 6) -> dict[str, Updates]:
    out = {}
    for id, typ in TABLES.items():
        kinds = [c.scalar for c in typ.columns]
        data: list[tuple[int | None, ...]]
        if typ.keys:
            data = [(n,) for n in rng.sample(range(5), rng.randint(0, 4))]
        else:
            data = [
                tuple(None if rng.random() < 0.2 else rng.randrange(4) for _ in kinds)
                for _ in range(rng.randrange(rows))
            ]
        out[id] = updates_from_rows(kinds, data, 0)
    return out


class RandomMir:
    def __init__(self, rng: random.Random, tables: Mapping[str, RelationType] = TABLES) -> None:
        self.rng = rng
        self.tables = tables
        self.types = Types()
        self.locals: list[tuple[int, RelationType]] = []
        self.next_local = 0

    def relation(self, depth: int) -> r.Mir:
        """All columns are int4."""
        rng = self.rng
        if depth <= 0:
            if self.locals and rng.random() < 0.3:
                id, typ = rng.choice(self.locals)
                return r.Get(id, typ)
            if rng.random() < 0.15:
                n = rng.randint(1, 2)
                rows = tuple(
                    (tuple(literal(rng.randrange(3)).value for _ in range(n)), 1) for _ in range(rng.randrange(3))
                )
                return r.Constant(rows, RelationType((ColumnType(INT4),) * n))
            name = rng.choice(list(self.tables))
            return r.Get(name, self.tables[name])  # type: ignore[arg-type]
        make = rng.choice(
            [self._filter, self._map, self._project, self._join, self._reduce, self._distinct, self._union, self._except,
             self._topk, self._let, self._left_join, self._null_safe_left_join, self._flat_map, self._window, self._count,
             self._semijoin, self._lookup, self._recursive, self._limit_of_limit, self._lateral, self._first_rows, self._mutual]
        )  # fmt: skip
        return make(depth)

    def _arity(self, e: r.Mir) -> int:
        return self.types.arity(e)

    def scalar(self, arity: int, depth: int = 2) -> Scalar:
        """An int4 expression that never fails."""
        rng = self.rng
        if depth == 0 or arity == 0 or rng.random() < 0.5:
            return Ref(rng.randrange(arity)) if arity and rng.random() < 0.8 else literal(rng.choice([0, 1, 2, None]))
        if rng.random() < 0.2:
            return If(self.predicate(arity, 1), self.scalar(arity, depth - 1), self.scalar(arity, depth - 1))
        return Call("coalesce", (self.scalar(arity, depth - 1), self.scalar(arity, depth - 1)), INT4)

    def predicate(self, arity: int, depth: int = 2) -> Scalar:
        rng = self.rng
        roll = rng.random()
        if depth > 0 and roll < 0.15:
            return Call("not", (self.predicate(arity, depth - 1),), BOOL)
        if depth > 0 and roll < 0.4:
            parts = tuple(self.predicate(arity, depth - 1) for _ in range(2))
            return Call(rng.choice(["and", "or"]), parts, BOOL)
        if roll < 0.5:
            return Call("eq_int4", (self.scalar(arity, 1), literal(rng.randrange(3))), BOOL)
        if roll < 0.58:
            return Call("is_null", (self.scalar(arity, 1),), BOOL)
        if roll < 0.62:
            wide = Call("cast_int4_int8", (self.scalar(arity, 1),), INT8)
            return Call("eq_int8", (wide, Literal(encode_datum(INT8, rng.choice([1, 2, 2**40])), INT8)), BOOL)
        if roll < 0.66:
            return If(self.predicate(arity, 0), Literal(b"\x01", BOOL), Literal(b"\x00", BOOL))
        op = rng.choice(["eq_int4", "eq_int4", "lt_int4", "gt_int4", "not_eq_int4"])
        return Call(op, (self.scalar(arity, 1), self.scalar(arity, 1)), BOOL)

    def _filter(self, depth: int) -> r.Mir:
        input = self.relation(depth - 1)
        n = self._arity(input)
        return r.Filter(input, tuple(self.predicate(n) for _ in range(self.rng.randint(1, 2))))

    def _map(self, depth: int) -> r.Mir:
        input = self.relation(depth - 1)
        n = self._arity(input)
        return r.Map(input, tuple(self.scalar(n + i) for i in range(self.rng.randint(1, 2))))

    def _project(self, depth: int) -> r.Mir:
        input = self.relation(depth - 1)
        n = self._arity(input)
        return r.Project(input, tuple(self.rng.randrange(n) for _ in range(self.rng.randint(1, n + 1))) if n else ())

    def _join(self, depth: int) -> r.Mir:
        inputs = tuple(self.relation(depth - 1) for _ in range(self.rng.randint(2, 3)))
        n = sum(map(self._arity, inputs))
        if n > 10:
            inputs = tuple(r.Project(i, (0,)) if self._arity(i) > 1 else i for i in inputs)
            n = sum(map(self._arity, inputs))
        classes = tuple((Ref(self.rng.randrange(n)), self.scalar(n, 1)) for _ in range(self.rng.randint(0, 2)) if n > 0)
        join: r.Mir = r.Join(inputs)
        return r.Filter(join, tuple(Call("eq_int4", c, BOOL) for c in classes)) if classes else join

    def _left_join(self, depth: int) -> r.Mir:
        left, right = self.relation(depth - 1), self.relation(0)
        a, b = self._arity(left), self._arity(right)
        if a == 0 or b == 0:
            return left
        id = self._fresh()
        get = r.Get(id, self.types.typ(left))
        on = Call("eq_int4", (Ref(self.rng.randrange(a)), Ref(a + self.rng.randrange(b))), BOOL)
        matched = r.Filter(r.Join((get, right)), (on,))
        keys = r.Reduce(r.Project(matched, tuple(range(a))), tuple(Ref(i) for i in range(a)), ())
        lost = r.Union((r.Reduce(get, tuple(Ref(i) for i in range(a)), ()), r.Negate(keys)))
        padded = r.Map(lost, tuple(literal(None) for _ in range(b)))
        return r.Let(id, left, r.Union((matched, padded)))

    def _reduce(self, depth: int) -> r.Mir:
        input = self.relation(depth - 1)
        n = self._arity(input)
        keys = tuple(self.scalar(n, 1) for _ in range(self.rng.randint(0, 2)))
        choices = [
            Aggregate("min_int4", (self.scalar(n, 1),), INT4),
            Aggregate("max_int4", (self.scalar(n, 1),), INT4, filter=self.predicate(n, 0)),
        ]
        return r.Reduce(input, keys, tuple(self.rng.choice(choices) for _ in range(self.rng.randint(1, 2))))

    def _distinct(self, depth: int) -> r.Mir:
        input = self.relation(depth - 1)
        n = self._arity(input)
        return r.Reduce(input, tuple(Ref(i) for i in range(n)), ())

    def _same_arity(self, depth: int) -> tuple[r.Mir, r.Mir]:
        a, b = self.relation(depth - 1), self.relation(depth - 1)
        n = min(self._arity(a), self._arity(b))
        return r.Project(a, tuple(range(n))), r.Project(b, tuple(range(n)))

    def _union(self, depth: int) -> r.Mir:
        return r.Union(self._same_arity(depth))

    def _except(self, depth: int) -> r.Mir:
        a, b = self._same_arity(depth)
        return r.Threshold(r.Union((a, r.Negate(b))))

    def _topk(self, depth: int) -> r.Mir:
        input = self.relation(depth - 1)
        n = self._arity(input)
        # Ordered by everything: the rows kept are then the same whatever the plan.
        order = [ColumnOrder(c, self.rng.random() < 0.5, self.rng.random() < 0.5) for c in range(n)]
        self.rng.shuffle(order)
        group = tuple(sorted(self.rng.sample(range(n), self.rng.randint(0, min(1, n)))))
        limit = Literal(encode_datum(INT8, self.rng.randint(0, 3)), INT8)
        return r.TopK(input, group, tuple(order), limit, self.rng.choice([0, 0, 1]))

    def _let(self, depth: int) -> r.Mir:
        value = self.relation(depth - 1)
        id = self._fresh()
        self.locals.append((id, self.types.typ(value)))
        body = r.Join((self.relation(depth - 2), r.Get(id, self.types.typ(value))))
        self.locals.pop()
        return r.Let(id, value, body)

    def _fresh(self) -> int:
        self.next_local += 1
        return self.next_local - 1

    def _null_safe_left_join(self, depth: int) -> r.Mir:
        """As outer joins and correlated subqueries lower: matched by NULL-safe equality, the rest with NULLs."""
        left, right = self.relation(depth - 1), self.relation(depth - 2)
        a, b = self._arity(left), self._arity(right)
        if a == 0 or b == 0:
            return left
        left_id, joined_id = self._fresh(), self._fresh()
        here = r.Get(left_id, self.types.typ(left))
        matched = r.Filter(r.Join((here, right)), (self.predicate(a + b),))
        joined = r.Get(joined_id, self.types.typ(matched))
        found = r.Reduce(joined, tuple(Ref(i) for i in range(a)), ())
        classes: list[tuple[Scalar, ...]] = []
        for i in range(a):
            filled = tuple(Call("coalesce", (Ref(c), literal(0)), INT4) for c in (i, a + i))
            classes += [filled, tuple(Call("is_null", (Ref(c),), BOOL) for c in (i, a + i))]
        again = r.Project(r.Join((here, found), tuple(classes)), tuple(range(a)))
        rest = r.Map(r.Union((here, r.Negate(again))), tuple(literal(None) for _ in range(b)))
        return r.Let(left_id, left, r.Let(joined_id, matched, r.Union((joined, rest))))

    def _flat_map(self, depth: int) -> r.Mir:
        input = self.relation(depth - 1)
        n = self._arity(input)
        func = TableFunc("generate_series_int4", RelationType((ColumnType(INT4, False),)))
        bounds = [literal(self.rng.choice([0, 1, 2, None])) for _ in range(2)]
        args = tuple(self.scalar(n, 0) if self.rng.random() < 0.5 else b for b in bounds)
        return r.FlatMap(input, func, args)

    def _window(self, depth: int) -> r.Mir:
        input = self.relation(depth - 1)
        n = self._arity(input)
        order = tuple(ColumnOrder(c, self.rng.random() < 0.5) for c in range(n))
        part = tuple(sorted(self.rng.sample(range(n), self.rng.randint(0, min(1, n)))))
        window = r.Window(input, part, order, (WindowCall("row_number", (), INT8),))
        return self._narrow(window, n)

    def _narrow(self, e: r.Mir, column: int) -> r.Mir:
        """An int8 column in the last place, as int4."""
        small = r.Map(e, (Call("cast_int8_int4", (Ref(column),), INT4),))
        return r.Project(small, (*range(column), column + 1))

    def _count(self, depth: int) -> r.Mir:
        input = self.relation(depth - 1)
        n = self._arity(input)
        keys = tuple(Ref(i) for i in range(min(n, self.rng.randint(0, 2))))
        func = self.rng.choice(["count", "sum_int4"])
        predicate = self.predicate(n, 0) if self.rng.random() < 0.3 else None
        aggregate = Aggregate(func, (self.scalar(n, 1),), INT8, distinct=self.rng.random() < 0.4, filter=predicate)
        return self._narrow(r.Reduce(input, keys, (aggregate,)), len(keys))

    def _semijoin(self, depth: int) -> r.Mir:
        """A relation joined with the distinct of some of its own columns, perhaps filtered."""
        input = self.relation(depth - 1)
        n = self._arity(input)
        id = self._fresh()
        get = r.Get(id, self.types.typ(input))
        columns = tuple(sorted(self.rng.sample(range(n), self.rng.randint(0, n))))
        source: r.Mir = r.Filter(get, (self.predicate(n, 1),)) if self.rng.random() < 0.4 else get
        keys = r.Reduce(source, tuple(Ref(c) for c in columns), ())
        classes = tuple((Ref(c), Ref(n + i)) for i, c in enumerate(columns))
        return r.Let(id, input, r.Join((get, keys), classes))

    def _lookup(self, depth: int) -> r.Mir:
        input = self.relation(depth - 1)
        n = self._arity(input)
        count = self.rng.randint(1, 2)
        rows = tuple((tuple(literal(self.rng.choice([0, 1, None])).value for _ in range(2)), 1) for _ in range(count))
        values = r.Constant(rows, RelationType((ColumnType(INT4),) * 2))
        classes = ((Ref(self.rng.randrange(n)), Ref(n)),) if n else ()
        return r.Join((input, values), classes)

    def _recursive(self, depth: int) -> r.Mir:
        """The transitive closure of two columns."""
        edges = self.relation(depth - 2)
        n = self._arity(edges)
        if n == 0:
            return edges
        edges = r.Project(edges, (0, n - 1))
        id = self._fresh()
        typ = RelationType((ColumnType(INT4),) * 2)
        get = r.Get(id, typ)
        step = r.Project(r.Join((get, edges), ((Ref(1), Ref(2)),)), (0, 3))
        value = r.Reduce(r.Union((edges, step)), (Ref(0), Ref(1)), ())
        return r.LetRec((id,), (value,), (typ,), r.Filter(get, (self.predicate(2, 1),)))

    def _limit_of_limit(self, depth: int) -> r.Mir:
        inner = self._topk(depth)
        assert isinstance(inner, r.TopK)
        limit = Literal(encode_datum(INT8, self.rng.randint(0, 2)), INT8)
        return r.TopK(inner, inner.group_key, inner.order_by, limit, self.rng.choice([0, 0, 1]))

    def _lateral(self, depth: int) -> r.Mir:
        """A relation joined with something grouped over its own distinct keys: a decorrelated lateral subquery."""
        outer, inner = self.relation(depth - 2), self.relation(depth - 2)
        a, b = self._arity(outer), self._arity(inner)
        if a == 0 or b == 0:
            return outer
        id = self._fresh()
        get = r.Get(id, self.types.typ(outer))
        column = self.rng.randrange(a)
        keys = r.Reduce(get, (Ref(column),), ())
        joined: r.Mir = r.Join((keys, inner), ((Ref(0), self.scalar_of(1, b)),))
        if self.rng.random() < 0.3:
            joined = r.Filter(joined, (self.predicate(1 + b, 1),))
        order = tuple(ColumnOrder(c) for c in range(1 + b))
        grouped: r.Mir = r.TopK(joined, (0,), order, Literal(encode_datum(INT8, 1), INT8))
        if self.rng.random() < 0.5:
            grouped = r.Reduce(joined, (Ref(0),), (Aggregate("max_int4", (Ref(b),), INT4),))
        return r.Let(id, outer, r.Join((get, grouped), ((Ref(column), Ref(a)),)))

    def scalar_of(self, base: int, arity: int) -> Scalar:
        """A column among `arity` ones from `base` on, or something of it."""
        column = Ref(base + self.rng.randrange(arity))
        return column if self.rng.random() < 0.7 else Call("coalesce", (column, literal(1)), INT4)

    def _first_rows(self, depth: int) -> r.Mir:
        """A filter on row_number()."""
        input = self.relation(depth - 1)
        n = self._arity(input)
        order = tuple(
            ColumnOrder(c, self.rng.random() < 0.5) for c in self.rng.sample(range(n), self.rng.randint(0, n))
        )
        part = tuple(sorted(self.rng.sample(range(n), self.rng.randint(0, min(1, n)))))
        window = r.Window(input, part, order, (WindowCall("row_number", (), INT8),))
        bound = Literal(encode_datum(INT8, self.rng.randint(0, 3)), INT8)
        test = Call(self.rng.choice(["lte_int8", "lt_int8", "eq_int8", "gt_int8"]), (Ref(n), bound), BOOL)
        return self._narrow(r.Filter(window, (test, *((self.predicate(n, 0),) if self.rng.random() < 0.3 else ()))), n)

    def _mutual(self, depth: int) -> r.Mir:
        """Two bindings that read each other, one with a difference, for a few rounds."""
        base = self.relation(depth - 2)
        n = self._arity(base)
        if n == 0:
            return base
        base = r.Project(base, (0, n - 1))
        first, second = self._fresh(), self._fresh()
        typ = RelationType((ColumnType(INT4),) * 2)
        a, b = r.Get(first, typ), r.Get(second, typ)
        step = r.Filter(r.Map(r.Project(b, (1,)), (self.scalar(1, 1),)), (self.predicate(2, 1),))
        one = r.Reduce(r.Union((base, step)), (Ref(0), Ref(1)), ())
        two = r.Threshold(r.Union((a, r.Negate(r.Filter(b, (self.predicate(2, 1),))))))
        body = r.Filter(r.Join((a, b), ((Ref(0), Ref(2)),)), (self.predicate(4, 1),))
        return r.LetRec((first, second), (one, two), (typ, typ), body, self.rng.randint(1, 4), True)
