"""Scalar expressions over one row: the leaves of HIR, MIR and LIR alike (HIR adds its own correlated nodes).

    Ref       column of the input row                         #3
    Literal   a constant, or an error that evaluating raises  5, "a", null, error("division by zero")
    Call      a resolved function overload                    (#0 + #1), abs(#2), text_to_integer(#0)
    If        lazy choice                                     case when #0 then 1 else 2 end

`Call.func` is the id of an entry in `mzlite.expr.functions` (one id per overload: `"add_int4"`, `"cast_text_int4"`).
`and`, `or`, `coalesce` are variadic calls with lazy error semantics (see their entries).
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator

import msgspec

from mzlite.repr.types import RelationType, ScalarType

# Expressions and plans nest as deeply as the planner lets them, and are walked, encoded and decoded by recursion in every process.
RECURSION_LIMIT = 20_000
if sys.getrecursionlimit() < RECURSION_LIMIT:
    sys.setrecursionlimit(RECURSION_LIMIT)


class Ref(msgspec.Struct, frozen=True, tag="ref"):
    column: int


class Literal(msgspec.Struct, frozen=True, tag="lit"):
    """value: canonical bytes of the datum (`repr.datum.encode_datum`), None for NULL. error: encoded SqlError instead."""

    value: bytes | None
    typ: ScalarType
    error: bytes | None = None


class Call(msgspec.Struct, frozen=True, tag="call"):
    """typ: the result type with modifiers. Nullability is the function entry's business."""

    func: str
    args: tuple[Scalar, ...]
    typ: ScalarType


class If(msgspec.Struct, frozen=True, tag="if"):
    """`then` where cond is true, else `els`; each branch is evaluated only on its own rows."""

    cond: Scalar
    then: Scalar
    els: Scalar


class Unmaterializable(msgspec.Struct, frozen=True, tag="unmat"):
    """A call whose value the adapter supplies at planning (now, current_user, …) or dataflows treat as time (mz_now)."""

    func: str
    typ: ScalarType


Scalar = Ref | Literal | Call | If | Unmaterializable


def children(e: Scalar) -> tuple[Scalar, ...]:
    match e:
        case Call(_, args):
            return args
        case If(cond, then, els):
            return (cond, then, els)
        case _:
            return ()


def with_children(e: Scalar, kids: tuple[Scalar, ...]) -> Scalar:
    match e:
        case Call(func, args, typ):
            return e if kids == args else Call(func, kids, typ)
        case If():
            return If(*kids)
        case _:
            return e


def walk(e: Scalar) -> Iterator[Scalar]:
    """Every node, parents first; explicit stack."""
    stack = [e]
    while stack:
        node = stack.pop()
        yield node
        stack.extend(reversed(children(node)))


def rewrite(e: Scalar, f: Callable[[Scalar], Scalar]) -> Scalar:
    """Bottom-up rewrite: f is applied to each node after its children. Depth is bounded by the planner's limit."""
    kids = children(e)
    if kids:
        new = tuple(rewrite(k, f) for k in kids)
        if any(a is not b for a, b in zip(new, kids)):
            e = with_children(e, new)
    return f(e)


@functools.lru_cache(8192)
def support(e: Scalar) -> frozenset[int]:
    """The columns that e reads. Remembered: whoever compiles a deep expression asks for it at every level."""
    if isinstance(e, Ref):
        return frozenset((e.column,))
    return frozenset().union(*map(support, children(e)))


def remap(e: Scalar, mapping: dict[int, int] | Callable[[int], int]) -> Scalar:
    """Renumber columns."""
    get = mapping if callable(mapping) else mapping.__getitem__
    return rewrite(e, lambda n: Ref(get(n.column)) if isinstance(n, Ref) else n)


def shift(e: Scalar, by: int) -> Scalar:
    """Move every column by a constant, as when an input takes its place in a join."""
    return remap(e, lambda c: c + by) if by else e


def substitute(e: Scalar, columns: tuple[Scalar, ...]) -> Scalar:
    """Replace `Ref(i)` by columns[i]."""
    return rewrite(e, lambda n: columns[n.column] if isinstance(n, Ref) else n)


class ColumnOrder(msgspec.Struct, frozen=True):
    """One ORDER BY item over a column."""

    column: int
    desc: bool = False
    nulls_last: bool = True


class Aggregate(msgspec.Struct, frozen=True):
    """An aggregate call in a Reduce.

    func: id in `mzlite.expr.aggregates` ("sum_int4", "count", "array_agg"). args: value, then constants such as a
    separator. distinct: over distinct args. filter: rows that count (None = all). order_by: over `order_exprs`
    (column i of each ColumnOrder is order_exprs[i]). typ: result type.
    """

    func: str
    args: tuple[Scalar, ...]
    typ: ScalarType
    distinct: bool = False
    filter: Scalar | None = None
    order_exprs: tuple[Scalar, ...] = ()
    order_by: tuple[ColumnOrder, ...] = ()


class Frame(msgspec.Struct, frozen=True):
    """A window frame. units: rows, range, groups. Bounds: ("unbounded_preceding" | "preceding" | "current_row" |
    "following" | "unbounded_following"); offset: a literal scalar, for preceding/following. exclude: no_others, current_row, group, ties."""

    units: str = "range"
    start: str = "unbounded_preceding"
    start_offset: Scalar | None = None
    end: str = "current_row"
    end_offset: Scalar | None = None
    exclude: str = "no_others"


class WindowCall(msgspec.Struct, frozen=True):
    """One window function over a Window node's partitions. func: "row_number", "lag", … or an aggregate's id.

    args: evaluated on the input row. ignore_nulls: lag, lead, first_value, last_value. filter: for aggregates.
    order_by: in which order an aggregate takes its frame's rows; columns are args (those beyond the function's own are
    there for this).
    """

    func: str
    args: tuple[Scalar, ...]
    typ: ScalarType
    frame: Frame = Frame()
    ignore_nulls: bool = False
    distinct: bool = False
    filter: Scalar | None = None
    order_by: tuple[ColumnOrder, ...] = ()


class TableFunc(msgspec.Struct, frozen=True):
    """A set-returning function: id in `mzlite.expr.table_functions`; output columns' types."""

    func: str
    typ: RelationType
