"""Scalars over a lowered relation; their subqueries become further columns of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from adapter.sql import hir
from adapter.sql.lower.frame import Frame, Key, Low, Types, get, join, not_, project
from adapter.sql.lower.free import free_in_scalar
from mzlite.expr import relation as mir
from mzlite.expr.scalar import Call, If, Literal, Ref, Scalar, Unmaterializable
from mzlite.expr.typing import scalar_type
from mzlite.repr.types import BOOL, ColumnType


@dataclasses.dataclass(frozen=True, slots=True)
class State:
    """A relation under construction: where each key's column stands. extra columns (subquery results) come last."""

    mir: mir.Mir
    cols: dict[Key, int]
    types: Types
    keys: tuple[Key, ...]

    @property
    def width(self) -> int:
        return len(self.types)


def state_of(low: Low, depth: int) -> State:
    cols = {k: i for i, k in enumerate(low.keys)}
    base = len(low.keys)
    cols.update({(depth, i): base + i for i in range(len(low.types) - base)})
    return State(low.mir, cols, low.types, low.keys)


def attach(low: Low, frame: Frame) -> Low:
    """low for every row of the frame's domain."""
    domain = frame.domain
    if low.keys or domain is None:
        return low
    return Low(join([domain.mir, low.mir]), domain.keys, domain.types + low.types)


def needs_domain(scalars: Sequence[hir.Scalar], frame: Frame) -> bool:
    return frame.domain is not None and any(free_in_scalar(e, frame, frame.depth) for e in scalars)


def lower_scalars(state: State, scalars: Sequence[hir.Scalar], frame: Frame) -> tuple[State, list[Scalar]]:
    """The scalars over the returned state, which has grown by their subqueries' columns."""
    out: list[Scalar] = []
    for e in scalars:
        state, lowered = lower_scalar(state, e, frame)
        out.append(lowered)
    return state, out


def lower_scalar(state: State, e: hir.Scalar, frame: Frame) -> tuple[State, Scalar]:
    if not has_subquery(e):
        return state, _plain(e, state.cols, frame.depth)
    match e:
        case hir.Call(func, args, typ):
            new: list[Scalar] = []
            for a in args:
                state, lowered = lower_scalar(state, a, frame)
                new.append(lowered)
            return state, Call(func, tuple(new), typ)
        case hir.If(cond, then, els):
            state, c = lower_scalar(state, cond, frame)
            if has_subquery(then) or has_subquery(els):
                return _branch(state, c, then, els, frame)
            return state, If(c, _plain(then, state.cols, frame.depth), _plain(els, state.cols, frame.depth))
        case hir.Exists() | hir.ScalarQuery() | hir.Quantified():
            from adapter.sql.lower.subqueries import append_subquery

            state, column = append_subquery(state, e, frame)
            return state, Ref(column)
        case _:
            raise AssertionError(f"{type(e).__name__} holds no subquery")


def _plain(e: hir.Scalar, cols: dict[Key, int], depth: int) -> Scalar:
    """A scalar without subqueries."""
    match e:
        case hir.Column(level, column):
            return Ref(cols[depth - level, column])
        case Literal() | Unmaterializable():
            return e
        case hir.Call(func, args, typ):
            return Call(func, tuple(_plain(a, cols, depth) for a in args), typ)
        case hir.If(cond, then, els):
            return If(_plain(cond, cols, depth), _plain(then, cols, depth), _plain(els, cols, depth))
        case _:
            raise AssertionError(f"unresolved {type(e).__name__}")


def has_subquery(e: hir.Scalar) -> bool:
    stack = [e]
    while stack:
        node = stack.pop()
        match node:
            case hir.Call(_, args):
                stack.extend(args)
            case hir.If(cond, then, els):
                stack += (cond, then, els)
            case hir.Exists() | hir.ScalarQuery() | hir.Quantified():
                return True
    return False


def _branch(state: State, cond: Scalar, then: hir.Scalar, els: hir.Scalar, frame: Frame) -> tuple[State, Scalar]:
    """A choice whose branches hold subqueries: each branch is computed for its own rows only, so that it cannot fail for others'."""
    id = frame.ids.fresh()
    here = State(get(id, state.types), state.cols, state.types, state.keys)
    chosen = Call("is_true", (cond,), BOOL)
    parts: list[mir.Mir] = []
    types: list[ColumnType] = []
    for predicate, value in ((chosen, then), (not_(chosen), els)):
        rows = State(mir.Filter(here.mir, (predicate,)), here.cols, here.types, here.keys)
        grown, scalar = lower_scalar(rows, value, frame)
        mapped = mir.Map(grown.mir, (scalar,))
        parts.append(project(mapped, (*range(state.width), grown.width), grown.width + 1))
        types.append(scalar_type(scalar, grown.types))
    typ = ColumnType(types[0].scalar, types[0].nullable or types[1].nullable)
    whole = mir.Let(id, state.mir, mir.Union(tuple(parts)))
    return State(whole, state.cols, (*state.types, typ), state.keys), Ref(state.width)
