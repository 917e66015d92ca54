"""HIR: queries with names resolved and types known, still correlated. The planner's output, the lowering's input.

Column references count scopes outward: `Column(0, 3)` is column 3 of the relation the expression stands on, `Column(1, 3)` of the
row of the nearest enclosing query (or of the left side of a Lateral), and so on. Every other node means what its MIR
namesake means; relations have positions, not names (names live in the planner's scopes).

    select (select max(b) from u where u.k = t.k) from t
    Map [ScalarQuery(Reduce [] [max(#1)] (Filter (#0 = ^1.#0) u))] t
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from mzlite.expr.scalar import ColumnOrder, Frame, Literal, TableFunc, Unmaterializable
from mzlite.repr.ids import GlobalId
from mzlite.repr.types import BOOL, RelationType, ScalarType


class Node(msgspec.Struct, frozen=True):
    """Base of HIR nodes."""


# ---- scalars


class Column(Node, frozen=True):
    level: int
    column: int
    typ: ScalarType
    name: str = ""


class Call(Node, frozen=True):
    func: str
    args: tuple[Scalar, ...]
    typ: ScalarType


class If(Node, frozen=True):
    cond: Scalar
    then: Scalar
    els: Scalar


class Exists(Node, frozen=True):
    """Whether the relation has a row."""

    relation: Relation


class ScalarQuery(Node, frozen=True):
    """The only column of the only row of the relation; NULL without a row, an error with several."""

    relation: Relation
    typ: ScalarType


class Quantified(Node, frozen=True):
    """ANY (or ALL): whether `predicate`, over the relation's rows (level 0; the enclosing row is level 1), is true for any (all) of them.

    three-valued: NULL when a NULL predicate could decide. equal: when the predicate is left = column 0 with left on the enclosing row, that left
    (already shifted to the enclosing level 0), which permits a hash plan.
    """

    relation: Relation
    predicate: Scalar
    every: bool
    equal: Scalar | None = None


class Marker(Node, frozen=True):
    """A place in a select list whose value a relation node will supply: kind is aggregate, window or table (function)."""

    kind: str
    index: int
    column: int
    typ: ScalarType


Scalar = Column | Literal | Call | If | Unmaterializable | Exists | ScalarQuery | Quantified | Marker


class Aggregate(Node, frozen=True):
    """As `mzlite.expr.scalar.Aggregate`, over HIR scalars."""

    func: str
    args: tuple[Scalar, ...]
    typ: ScalarType
    distinct: bool = False
    filter: Scalar | None = None
    order_exprs: tuple[Scalar, ...] = ()
    order_by: tuple[ColumnOrder, ...] = ()


class WindowCall(Node, frozen=True):
    """As `mzlite.expr.scalar.WindowCall`, over HIR scalars."""

    func: str
    args: tuple[Scalar, ...]
    typ: ScalarType
    frame: Frame = Frame()
    ignore_nulls: bool = False
    distinct: bool = False
    filter: Scalar | None = None
    order_by: tuple[ColumnOrder, ...] = ()


# ---- relations


class Constant(Node, frozen=True):
    rows: tuple[tuple[bytes | None, ...], ...]
    types: tuple[ScalarType, ...]
    nullable: tuple[bool, ...] = ()


class Get(Node, frozen=True):
    """A catalog object; or a Let or LetRec binding (by number)."""

    id: GlobalId | int
    typ: RelationType


class Let(Node, frozen=True):
    """name: of the CTE, for printing."""

    name: str
    id: int
    value: Relation
    body: Relation


class LetRec(Node, frozen=True):
    names: tuple[str, ...]
    ids: tuple[int, ...]
    values: tuple[Relation, ...]
    types: tuple[tuple[ScalarType, ...], ...]
    body: Relation
    limit: int | None = None
    return_at_limit: bool = False


class Project(Node, frozen=True):
    input: Relation
    outputs: tuple[int, ...]


class Map(Node, frozen=True):
    """Scalars stand on the input's columns and on the earlier scalars of this node."""

    input: Relation
    scalars: tuple[Scalar, ...]


class Filter(Node, frozen=True):
    input: Relation
    predicates: tuple[Scalar, ...]


class Join(Node, frozen=True):
    """kind: inner, left, right, full. `on` stands on the columns of both sides."""

    left: Relation
    right: Relation
    on: Scalar | None
    kind: str = "inner"


class Lateral(Node, frozen=True):
    """For each row of left the rows of right, in which level 1 is that row. kind: inner, left."""

    left: Relation
    right: Relation
    on: Scalar | None
    kind: str = "inner"


class CallTable(Node, frozen=True):
    """The rows of a table function; arguments stand on the enclosing rows only (level 1 and up)."""

    func: TableFunc
    args: tuple[Scalar, ...]


class Reduce(Node, frozen=True):
    """Groups by expressions; without a key exactly one row, also for an empty input."""

    input: Relation
    group_key: tuple[Scalar, ...]
    aggregates: tuple[Aggregate, ...]
    expected_group_size: int | None = None


class Distinct(Node, frozen=True):
    input: Relation


class TopK(Node, frozen=True):
    input: Relation
    group_key: tuple[int, ...]
    order_by: tuple[ColumnOrder, ...]
    limit: Scalar | None
    offset: int = 0
    expected_group_size: int | None = None


class Window(Node, frozen=True):
    input: Relation
    partition_by: tuple[int, ...]
    order_by: tuple[ColumnOrder, ...]
    calls: tuple[WindowCall, ...]


class Union(Node, frozen=True):
    inputs: tuple[Relation, ...]


class Negate(Node, frozen=True):
    input: Relation


class Threshold(Node, frozen=True):
    input: Relation


Relation = (
    Constant
    | Get
    | Let
    | LetRec
    | Project
    | Map
    | Filter
    | Join
    | Lateral
    | CallTable
    | Reduce
    | Distinct
    | TopK
    | Window
    | Union
    | Negate
    | Threshold
)

UNIT = Constant(((),), ())


def type_of(e: Scalar) -> ScalarType:
    match e:
        case If(_, then, els):
            typ = type_of(then)
            return type_of(els) if typ.kind == "unknown" else typ
        case Exists() | Quantified():
            return BOOL
        case _:
            return e.typ


# ---- traversal: one function that rebuilds a node from its rewritten parts; everything else is made of it

OnScalar = Callable[[Scalar, int], Scalar]
OnRelation = Callable[[Relation, int], Relation]


def map_scalar(e: Scalar, f: OnScalar, g: OnRelation, depth: int) -> Scalar:
    """e with f applied to child scalars and g to child relations; depth is that of e (a subquery's inside is one deeper)."""
    match e:
        case Call(func, args, typ):
            new = tuple(f(a, depth) for a in args)
            return e if all(a is b for a, b in zip(args, new)) else Call(func, new, typ)
        case If(cond, then, els):
            return If(f(cond, depth), f(then, depth), f(els, depth))
        case Exists(relation):
            return Exists(g(relation, depth + 1))
        case ScalarQuery(relation, typ):
            return ScalarQuery(g(relation, depth + 1), typ)
        case Quantified(relation, predicate, every, equal):
            return Quantified(
                g(relation, depth + 1),
                f(predicate, depth + 1),
                every,
                None if equal is None else f(equal, depth),
            )
        case _:
            return e


def map_aggregate(a: Aggregate, f: OnScalar, depth: int) -> Aggregate:
    return Aggregate(
        a.func,
        tuple(f(e, depth) for e in a.args),
        a.typ,
        a.distinct,
        None if a.filter is None else f(a.filter, depth),
        tuple(f(e, depth) for e in a.order_exprs),
        a.order_by,
    )


def map_window(w: WindowCall, f: OnScalar, depth: int) -> WindowCall:
    return WindowCall(
        w.func,
        tuple(f(e, depth) for e in w.args),
        w.typ,
        w.frame,
        w.ignore_nulls,
        w.distinct,
        None if w.filter is None else f(w.filter, depth),
        w.order_by,
    )


def map_relation(r: Relation, f: OnScalar, g: OnRelation, depth: int) -> Relation:
    """r with f applied to its scalars and g to its inputs. Arguments of a table function and the right of a Lateral are where depth changes."""
    replace = msgspec.structs.replace
    match r:
        case Constant() | Get():
            return r
        case Let():
            return replace(r, value=g(r.value, depth), body=g(r.body, depth))
        case LetRec():
            return replace(r, values=tuple(g(v, depth) for v in r.values), body=g(r.body, depth))
        case Map():
            return Map(g(r.input, depth), tuple(f(e, depth) for e in r.scalars))
        case Filter():
            return Filter(g(r.input, depth), tuple(f(e, depth) for e in r.predicates))
        case Join(left, right, on, kind):
            return Join(g(left, depth), g(right, depth), None if on is None else f(on, depth), kind)
        case Lateral(left, right, on, kind):
            return Lateral(g(left, depth), g(right, depth + 1), None if on is None else f(on, depth), kind)
        case CallTable(func, args):
            return CallTable(func, tuple(f(e, depth) for e in args))
        case Reduce():
            return Reduce(
                g(r.input, depth),
                tuple(f(e, depth) for e in r.group_key),
                tuple(map_aggregate(a, f, depth) for a in r.aggregates),
                r.expected_group_size,
            )
        case Window():
            return replace(r, input=g(r.input, depth), calls=tuple(map_window(w, f, depth) for w in r.calls))
        case TopK():
            return replace(r, input=g(r.input, depth), limit=None if r.limit is None else f(r.limit, depth))
        case Union(inputs):
            return Union(tuple(g(i, depth) for i in inputs))
        case _:
            return replace(r, input=g(r.input, depth))


def rewrite(e: Scalar, f: Callable[[Scalar, int], Scalar | None], depth: int = 0) -> Scalar:
    """Top-down: where f gives a node, it stands; otherwise its parts (subqueries included) are rewritten."""

    def on_scalar(e: Scalar, depth: int) -> Scalar:
        new = f(e, depth)
        return new if new is not None else map_scalar(e, on_scalar, on_relation, depth)

    def on_relation(r: Relation, depth: int) -> Relation:
        return map_relation(r, on_scalar, on_relation, depth)

    return on_scalar(e, depth)


def rewrite_relation(r: Relation, f: Callable[[Scalar, int], Scalar | None], depth: int = 0) -> Relation:
    """`rewrite` on every scalar of a relation."""

    def on_scalar(e: Scalar, depth: int) -> Scalar:
        new = f(e, depth)
        return new if new is not None else map_scalar(e, on_scalar, on_relation, depth)

    def on_relation(r: Relation, depth: int) -> Relation:
        return map_relation(r, on_scalar, on_relation, depth)

    return on_relation(r, depth)


def shift(e: Scalar, by: int, floor: int = 0) -> Scalar:
    """e moved `by` scopes inward: its references to level `floor` and beyond count that many more."""
    if by == 0:
        return e

    def f(e: Scalar, depth: int) -> Scalar | None:
        if isinstance(e, Column):
            return Column(e.level + by, e.column, e.typ, e.name) if e.level >= depth + floor else e
        return None

    return rewrite(e, f)


def shift_relation(r: Relation, by: int, floor: int = 0) -> Relation:
    """r moved `by` scopes inward: references that leave it count that many more. floor: levels at r's own depth that stay."""
    if by == 0:
        return r

    def f(e: Scalar, depth: int) -> Scalar | None:
        if isinstance(e, Column):
            return Column(e.level + by, e.column, e.typ, e.name) if e.level > depth + floor else e
        return None

    return rewrite_relation(r, f)


def walk(e: Scalar) -> Iterator[tuple[Scalar, int]]:
    """Every scalar under e, subqueries included, with its depth."""
    found: list[tuple[Scalar, int]] = []

    def f(e: Scalar, depth: int) -> Scalar | None:
        found.append((e, depth))
        return None

    rewrite(e, f)
    return iter(found)


def arity(r: Relation) -> int:
    match r:
        case Constant(_, types):
            return len(types)
        case Get():
            return r.typ.arity
        case Let() | LetRec():
            return arity(r.body)
        case Project(_, outputs):
            return len(outputs)
        case Map(input, scalars):
            return arity(input) + len(scalars)
        case Join(left, right) | Lateral(left, right):
            return arity(left) + arity(right)
        case CallTable(func):
            return func.typ.arity
        case Reduce():
            return len(r.group_key) + len(r.aggregates)
        case Window():
            return arity(r.input) + len(r.calls)
        case Union(inputs):
            return arity(inputs[0])
        case _:
            return arity(r.input)


def conjuncts(e: Scalar | None) -> tuple[Scalar, ...]:
    """The operands of a conjunction, flattened; none for TRUE."""
    if e is None:
        return ()
    if isinstance(e, Call) and e.func == "and":
        return tuple(c for a in e.args for c in conjuncts(a))
    return (e,)


def is_correlated(r: Relation) -> bool:
    """Whether r refers to a row outside itself."""
    found = False

    def f(e: Scalar, depth: int) -> Scalar | None:
        nonlocal found
        found = found or (isinstance(e, Column) and e.level > depth)
        return e if found else None

    rewrite_relation(r, f)
    return found
