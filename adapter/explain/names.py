"""Names in plans: items by id, and columns by where they come from.

A Get's columns have the item's column names; Project, Filter, Join and the like pass names on; a group key keeps its
name; an aggregate is called sum_x. Everything else is nameless: None.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mzlite.expr import relation as r
from mzlite.expr.aggregates import AGGREGATES
from mzlite.expr.scalar import Aggregate, ColumnOrder, Ref, Scalar
from mzlite.expr.text.print import print_scalar
from mzlite.repr.ids import GlobalId

ColumnNames = tuple[str | None, ...]


class Names(Protocol):
    """The catalog's part."""

    def full_name(self, id: GlobalId) -> str:
        """database.schema.item"""

    def short_name(self, id: GlobalId) -> str:
        """The item's own name."""

    def columns(self, id: GlobalId) -> Sequence[str] | None:
        """Column names of a relation; None when unknown."""


class MirNames:
    """Column names of every node of a plan, by node identity (the plan must outlive it)."""

    def __init__(self, root: r.Mir, names: Names) -> None:
        self._names = names
        self._memo: dict[int, ColumnNames] = {}
        self._locals: dict[int, ColumnNames] = {}
        self._visit(root)

    def of(self, e: r.Mir) -> ColumnNames:
        return self._memo[id(e)]

    def _visit(self, root: r.Mir) -> None:
        """Children first; a Let's value before its body, whose Gets read its names."""
        stack: list[tuple[r.Mir, str]] = [(root, "enter")]
        while stack:
            node, step = stack.pop()
            if step == "bind":
                assert isinstance(node, r.Let)
                self._locals[node.id] = self._memo[id(node.value)]
            elif step == "leave":
                self._memo[id(node)] = self._derive(node, [self._memo[id(k)] for k in r.children(node)])
            elif isinstance(node, r.Let):
                stack += [(node, "leave"), (node.body, "enter"), (node, "bind"), (node.value, "enter")]
            else:
                if isinstance(node, r.LetRec):
                    for local, t in zip(node.ids, node.typs):
                        self._locals[local] = (None,) * len(t.columns)
                stack.append((node, "leave"))
                stack.extend((k, "enter") for k in reversed(r.children(node)))

    def _derive(self, node: r.Mir, kids: list[ColumnNames]) -> ColumnNames:
        match node:
            case r.Constant(_, typ, _):
                return (None,) * len(typ.columns)
            case r.Get(id, typ):
                if isinstance(id, int):
                    return self._locals.get(id, (None,) * len(typ.columns))
                known = self._names.columns(id)
                return tuple(known) if known is not None and len(known) == typ.arity else (None,) * typ.arity
            case r.Let() | r.LetRec():
                return kids[-1]
            case r.Project(_, outputs):
                return tuple(kids[0][c] for c in outputs)
            case r.Map(_, scalars):
                out = list(kids[0])
                for s in scalars:
                    out.append(out[s.column] if isinstance(s, Ref) else None)
                return tuple(out)
            case r.FlatMap(_, func, _):
                return kids[0] + (None,) * len(func.typ.columns)
            case r.Join():
                return tuple(n for k in kids for n in k)
            case r.Reduce(_, group_key, aggregates):
                keys = tuple(kids[0][k.column] if isinstance(k, Ref) else None for k in group_key)
                return keys + tuple(aggregate_name(a, kids[0]) for a in aggregates)
            case r.Window(_, _, _, calls):
                return kids[0] + tuple(c.func.partition("<")[0] for c in calls)
            case r.Union():
                return tuple(_agreed(column) for column in zip(*kids))
            case _:
                return kids[0]


def _agreed(names: tuple[str | None, ...]) -> str | None:
    known = {n for n in names if n is not None}
    return known.pop() if len(known) == 1 else None


def aggregate_name(a: Aggregate, columns: ColumnNames) -> str:
    name = AGGREGATES[a.func].name
    if a.args and isinstance(a.args[0], Ref):
        column = columns[a.args[0].column]
        return name if column is None else f"{name}_{column}"
    return name


class Columns:
    """Prints references to columns. humanized: names everywhere; otherwise only inside expressions."""

    __slots__ = ("_humanized", "_names")

    def __init__(self, names: ColumnNames, humanized: bool) -> None:
        self._names = names
        self._humanized = humanized

    def ref(self, c: int) -> str:
        name = self._names[c] if c < len(self._names) else None
        return f"#{c}" if name is None else f"#{c}{{{name}}}"

    def bare(self, c: int) -> str:
        return self.ref(c) if self._humanized else f"#{c}"

    def scalar(self, e: Scalar) -> str:
        return print_scalar(e, self.ref)

    def scalars(self, es: Sequence[Scalar]) -> str:
        return ", ".join(map(self.scalar, es))

    def outputs(self, columns: Sequence[int]) -> str:
        """`#0, #2..=#5`: three or more consecutive columns are a range."""
        parts: list[str] = []
        i = 0
        while i < len(columns):
            j = i
            while j + 1 < len(columns) and columns[j + 1] == columns[j] + 1:
                j += 1
            if j - i >= 2:
                parts.append(f"{self.bare(columns[i])}..={self.bare(columns[j])}")
            else:
                parts += [self.bare(c) for c in columns[i : j + 1]]
            i = j + 1
        return ", ".join(parts)

    def order(self, order_by: Sequence[ColumnOrder]) -> str:
        return ", ".join(
            f"{self.bare(o.column)} {'desc' if o.desc else 'asc'} nulls_{'last' if o.nulls_last else 'first'}"
            for o in order_by
        )
