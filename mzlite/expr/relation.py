"""MIR: relation expressions. Decorrelated, typed, ordered columns without names.

Meaning is over multisets of (row, diff). Columns are numbered; a Join's columns are its inputs' concatenated.
`typ(e)` (see `mzlite.expr.typecheck`) derives the RelationType; nodes carry types only where they cannot be derived.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from mzlite.expr.scalar import Aggregate, ColumnOrder, Scalar, TableFunc, WindowCall
from mzlite.repr.ids import GlobalId, LocalId
from mzlite.repr.types import RelationType

Datums = tuple[bytes | None, ...]


class Constant(msgspec.Struct, frozen=True, tag="constant"):
    """rows: (canonical datums, diff); or one error (encoded SqlError) in place of every row."""

    rows: tuple[tuple[Datums, int], ...]
    typ: RelationType
    error: bytes | None = None


class Get(msgspec.Struct, frozen=True, tag="get"):
    """A collection by global id, or a Let/LetRec binding by local id."""

    id: GlobalId | LocalId
    typ: RelationType


class Let(msgspec.Struct, frozen=True, tag="let"):
    id: LocalId
    value: Mir
    body: Mir


class LetRec(msgspec.Struct, frozen=True, tag="letrec"):
    """Mutually recursive bindings, iterated together to a fixpoint from empty collections.

    typs: of each binding. limit: iterations; None = none. return_at_limit: answer what stands there instead of an error.
    """

    ids: tuple[LocalId, ...]
    values: tuple[Mir, ...]
    typs: tuple[RelationType, ...]
    body: Mir
    limit: int | None = None
    return_at_limit: bool = False


class Project(msgspec.Struct, frozen=True, tag="project"):
    input: Mir
    outputs: tuple[int, ...]


class Map(msgspec.Struct, frozen=True, tag="map"):
    """Input columns, then one per scalar; scalar i may refer to earlier ones of this node."""

    input: Mir
    scalars: tuple[Scalar, ...]


class FlatMap(msgspec.Struct, frozen=True, tag="flatmap"):
    """Each input row joined with the rows of func(exprs): input columns, then the function's."""

    input: Mir
    func: TableFunc
    exprs: tuple[Scalar, ...]


class Filter(msgspec.Struct, frozen=True, tag="filter"):
    """Rows for which every predicate is true. Predicates on mz_now() are temporal: see LIR MapFilterProject."""

    input: Mir
    predicates: tuple[Scalar, ...]


class IndexedFilter(msgspec.Struct, frozen=True, tag="indexed_filter"):
    """Join implementation: input 0 is Get(coll) with index `index` keyed by `key`; input 1 a Constant of the looked-up keys."""

    coll: GlobalId
    index: GlobalId
    key: tuple[Scalar, ...]
    values: tuple[Datums, ...]


class Differential(msgspec.Struct, frozen=True, tag="differential"):
    """Join implementation: start input, then (input, lookup key over that input) in order."""

    start: int
    order: tuple[tuple[int, tuple[Scalar, ...]], ...]


class DeltaQuery(msgspec.Struct, frozen=True, tag="delta"):
    """Join implementation: one path per input; each an order of (input, lookup key over that input)."""

    paths: tuple[tuple[tuple[int, tuple[Scalar, ...]], ...], ...]


class Join(msgspec.Struct, frozen=True, tag="join"):
    """Product of inputs restricted so that within each equivalence class all expressions are equal and not NULL.

    equivalences: classes of scalars over the concatenated columns. implementation: None until JoinImplementation ran.
    """

    inputs: tuple[Mir, ...]
    equivalences: tuple[tuple[Scalar, ...], ...] = ()
    implementation: IndexedFilter | Differential | DeltaQuery | None = None


class Reduce(msgspec.Struct, frozen=True, tag="reduce"):
    """Group by key expressions (NULL is a key); columns: keys, then aggregates. No aggregates = Distinct.

    With an empty group_key there is still no row for an empty input (lowering adds the default row).
    """

    input: Mir
    group_key: tuple[Scalar, ...]
    aggregates: tuple[Aggregate, ...]
    monotonic: bool = False
    expected_group_size: int | None = None


class TopK(msgspec.Struct, frozen=True, tag="topk"):
    """Per group (columns), rows offset .. offset+limit in the order, ties broken by the whole row. limit None = all."""

    input: Mir
    group_key: tuple[int, ...]
    order_by: tuple[ColumnOrder, ...]
    limit: Scalar | None
    offset: int = 0
    monotonic: bool = False
    expected_group_size: int | None = None


class Window(msgspec.Struct, frozen=True, tag="window"):
    """Window functions: input columns, then one per call. Recomputed by partition when one of its rows changes.

    partition_by: columns. order_by: within a partition; ties keep the order of the whole row.
    """

    input: Mir
    partition_by: tuple[int, ...]
    order_by: tuple[ColumnOrder, ...]
    calls: tuple[WindowCall, ...]


class Negate(msgspec.Struct, frozen=True, tag="negate"):
    input: Mir


class Threshold(msgspec.Struct, frozen=True, tag="threshold"):
    """Keeps rows with positive multiplicity."""

    input: Mir


class Union(msgspec.Struct, frozen=True, tag="union"):
    """Multiset sum; at least one input."""

    inputs: tuple[Mir, ...]


class ArrangeBy(msgspec.Struct, frozen=True, tag="arrange_by"):
    """The input, arranged by each key."""

    input: Mir
    keys: tuple[tuple[Scalar, ...], ...]


Mir = (
    Constant
    | Get
    | Let
    | LetRec
    | Project
    | Map
    | FlatMap
    | Filter
    | Join
    | Reduce
    | TopK
    | Window
    | Negate
    | Threshold
    | Union
    | ArrangeBy
)


_ONE_INPUT = frozenset((Project, Map, FlatMap, Filter, Reduce, TopK, Window, Negate, Threshold, ArrangeBy))


def children(e: Mir) -> tuple[Mir, ...]:
    """Inputs in order: Let (value, body); LetRec (*values, body). Called for every node of every walk: kept quick."""
    kind = type(e)
    if kind in _ONE_INPUT:
        return (e.input,)  # type: ignore[union-attr]
    if kind is Join or kind is Union:
        return e.inputs  # type: ignore[union-attr]
    if kind is Let:
        return (e.value, e.body)  # type: ignore[union-attr]
    if kind is LetRec:
        return (*e.values, e.body)  # type: ignore[union-attr]
    return ()


def with_children(e: Mir, kids: tuple[Mir, ...]) -> Mir:
    match e:
        case Constant() | Get():
            return e
        case Let(id, _, _):
            return Let(id, kids[0], kids[1])
        case LetRec():
            return msgspec.structs.replace(e, values=kids[:-1], body=kids[-1])
        case Join() | Union():
            return msgspec.structs.replace(e, inputs=kids)
        case _:
            return msgspec.structs.replace(e, input=kids[0])


def walk(e: Mir) -> Iterator[Mir]:
    """Every node, parents first; explicit stack."""
    stack = [e]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(children(node)))


def rewrite(e: Mir, f: Callable[[Mir], Mir]) -> Mir:
    """Bottom-up rewrite with an explicit stack: f sees each node after its children were rewritten."""
    done: list[Mir] = []
    stack: list[tuple[Mir, bool]] = [(e, False)]
    while stack:
        node, ready = stack.pop()
        kids = children(node)
        if not kids:
            done.append(f(node))
        elif not ready:
            stack.append((node, True))
            stack.extend((k, False) for k in reversed(kids))
        else:
            new = tuple(done[-len(kids) :])
            del done[-len(kids) :]
            if any(a is not b for a, b in zip(new, kids)):
                node = with_children(node, new)
            done.append(f(node))
    return done[0]


def global_ids(e: Mir) -> frozenset[GlobalId]:
    """Collections that e reads."""
    return frozenset(n.id for n in walk(e) if isinstance(n, Get) and isinstance(n.id, str))


class RowSetFinishing(msgspec.Struct, frozen=True):
    """What remains to do with a peek's rows: order, offset, limit, then project."""

    order_by: tuple[ColumnOrder, ...] = ()
    limit: int | None = None
    offset: int = 0
    project: tuple[int, ...] = ()
