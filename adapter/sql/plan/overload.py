"""PostgreSQL's overload resolution over the function registry.

Exact match first; then candidates reachable by implicit casts, narrowed by: most exact matches, most preferred types where a cast is
needed, category of the untyped literals' slots (string wins), and last the assumption that untyped literals have the type of
the other arguments. (PostgreSQL manual, chapter "Type Conversion", rules for operators and functions; Materialize's `sql/func.rs`.)
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TypeVar

from adapter.sql import hir
from adapter.sql.plan.coerce import settle, try_cast
from adapter.sql.plan.context import PlanContext
from adapter.sql.plan.types import type_words
from mzlite.expr import casts
from mzlite.expr.functions import FUNCTIONS, FunctionEntry
from mzlite.expr.functions.polymorphic import is_pseudo, solve
from mzlite.expr.functions.registry import Signature
from mzlite.repr.errors import SqlError
from mzlite.repr.types import ScalarType

S = TypeVar("S", bound=Signature)


def concrete(entry: Signature, types: Sequence[ScalarType]) -> tuple[ScalarType, ...] | None:
    """Parameter types of an overload for these argument types, or None when it does not take them."""
    count = len(types)
    declared = entry.param_types(count)
    if declared is None:
        return None
    if entry.is_polymorphic:
        declared = solve(declared, tuple(types), lambda found: casts.best_common_type(found))
        if declared is None:
            return None
    for want, have in zip(declared, types):
        if have.kind != "unknown" and have.base() != want.base() and casts.find_cast(have, want, "implicit") is None:
            return None
    return declared


def select(
    entries: Sequence[S], types: Sequence[ScalarType], *, operator: bool = False
) -> tuple[S, tuple[ScalarType, ...]] | str:
    """The overload PostgreSQL would take; otherwise "none" or "ambiguous"."""
    base = [t.base() for t in types]
    found: list[tuple[S, tuple[ScalarType, ...]]] = []
    for entry in entries:
        params = concrete(entry, base)
        if params is not None:
            found.append((entry, params))
    if not found:
        return "none"
    # Exact match; for a binary operator an untyped side is assumed to have the other's type.
    assumed = base
    if operator and len(base) == 2:
        if base[0].kind == "unknown" and base[1].kind != "unknown":
            assumed = [base[1], base[1]]
        elif base[1].kind == "unknown" and base[0].kind != "unknown":
            assumed = [base[0], base[0]]
    for entry, params in found:
        if all(p == a for p, a in zip(params, assumed)) and not any(a.kind == "unknown" for a in assumed):
            return entry, params
    if len(found) == 1:
        return found[0]

    def keep_best(score: list[int]) -> None:
        nonlocal found
        best = max(score)
        found = [c for c, s in zip(found, score) if s == best]

    keep_best([sum(p == b for p, b in zip(params, base)) for _, params in found])
    if len(found) == 1:
        return found[0]
    if _mixed_signs(base):
        # Signed with unsigned: the narrowest type that holds both, not the preferred one.
        common = casts.best_common_type(base)
        for entry, params in found:
            if common is not None and all(p == common for p in params):
                return entry, params
    keep_best(
        [
            sum(
                p == b or (b.kind != "unknown" and p.kind in casts.PREFERRED and _same_category(p, b))
                for p, b in zip(params, base)
            )
            for _, params in found
        ]
    )
    if len(found) == 1:
        return found[0]
    unknown = [i for i, b in enumerate(base) if b.kind == "unknown"]
    if not unknown:
        return _first_if_same(found)
    before = found
    for i in unknown:
        slots = {casts.category(params[i]) for _, params in found}
        category = "text" if "text" in slots else slots.pop() if len(slots) == 1 else None
        if category is None:
            found = []
            break
        inside = [c for c in found if casts.category(c[1][i]) == category]
        preferred = [c for c in inside if c[1][i].kind in casts.PREFERRED]
        found = preferred or inside
    if len(found) == 1:
        return found[0]
    found = found or before
    known = {b for b in base if b.kind != "unknown"}
    if len(known) == 1:
        same = known.pop()
        guess = [same] * len(base)
        for entry, params in found:
            if all(p == g for p, g in zip(params, guess)):
                return entry, params
        reachable = [
            c for c in found if all(casts.find_cast(g, p, "implicit") is not None for g, p in zip(guess, c[1]))
        ]
        if len(reachable) == 1:
            return reachable[0]
    return _first_if_same(found)


def _first_if_same(found: list[tuple[S, tuple[ScalarType, ...]]]) -> tuple[S, tuple[ScalarType, ...]] | str:
    """Several candidates that read the same parameters are one (a polymorphic and a plain overload)."""
    if not found:
        return "ambiguous"
    first = found[0]
    if all(params == first[1] for _, params in found[1:]):
        plain = [c for c in found if not c[0].is_polymorphic]
        return plain[0] if plain else first
    return "ambiguous"


def _mixed_signs(types: Sequence[ScalarType]) -> bool:
    signed = ("int2", "int4", "int8")
    unsigned = ("uint2", "uint4", "uint8")
    kinds = {t.kind for t in types}
    return bool(kinds & set(signed)) and bool(kinds & set(unsigned)) and kinds <= {*signed, *unsigned}


def _same_category(a: ScalarType, b: ScalarType) -> bool:
    return casts.category(a) == casts.category(b)


def coerce_args(
    ctx: PlanContext, args: Sequence[hir.Scalar], params: Sequence[ScalarType], declared: Sequence[ScalarType]
) -> tuple[hir.Scalar, ...]:
    out: list[hir.Scalar] = []
    for arg, param, original in zip(args, params, declared):
        if original.kind == "any":
            out.append(settle(ctx, arg))
            continue
        have = hir.type_of(arg)
        # A modifier on the argument is the value's business, not the parameter's.
        if have.kind != "unknown" and have.base() == param.base():
            out.append(arg)
            continue
        new = try_cast(ctx, arg, param, "implicit")
        assert new is not None, f"{have} was said to cast to {param}"
        out.append(new)
    return tuple(out)


def pad_args(entry: Signature, args: tuple[hir.Scalar, ...]) -> tuple[hir.Scalar, ...]:
    """Arguments of type character(n) with their blanks, for the functions that see them."""
    if not getattr(entry, "pads", False):
        return args
    types = [hir.type_of(a) for a in args]
    return tuple(
        hir.Call("pad_char", (a,), t) if t.kind == "bpchar" and t.length is not None else a for a, t in zip(args, types)
    )


def resolve_call(
    ctx: PlanContext,
    entries: Sequence[S],
    args: Sequence[hir.Scalar],
    shown: str,
    pos: int | None = None,
) -> tuple[S, tuple[hir.Scalar, ...]]:
    """The bound overload of a function and its cast arguments; the error in Materialize's words otherwise."""
    types = [hir.type_of(a) for a in args]
    chosen = select(entries, types)
    if isinstance(chosen, str):
        signature = f"{shown}({', '.join(type_words(t) for t in types)})"
        position = None if pos is None else pos + 1
        undetermined = [e for e in entries if _undetermined(e, types)]
        if chosen == "none" and len(undetermined) == 1:
            raise SqlError(
                "42804", "could not determine polymorphic type because input has type unknown", position=position
            )
        if chosen == "none" and not undetermined:
            raise SqlError(
                "42883",
                f"function {signature} does not exist",
                hint="No function matches the given name and argument types. You might need to add explicit type casts.",
                position=position,
            )
        raise SqlError(
            "42725",
            f"function {signature} is not unique",
            hint="Could not choose a best candidate function. You might need to add explicit type casts.",
            position=position,
        )
    entry, params = chosen
    declared = entry.param_types(len(args))
    assert declared is not None
    cast_args = pad_args(entry, coerce_args(ctx, args, params, declared))
    return _bind(entry, cast_args), cast_args


def _undetermined(entry: Signature, types: Sequence[ScalarType]) -> bool:
    """Whether only untyped arguments keep a polymorphic overload from being one."""
    declared = entry.param_types(len(types))
    if declared is None or not entry.is_polymorphic:
        return False
    if not any(is_pseudo(d) and t.kind == "unknown" for d, t in zip(declared, types)):
        return False
    return all(
        t.kind == "unknown" or is_pseudo(d) or casts.find_cast(t, d, "implicit") is not None
        for d, t in zip(declared, types)
    )


def _bind(entry: S, args: Sequence[hir.Scalar]) -> S:
    if not entry.is_polymorphic:
        return entry
    return entry.bind([hir.type_of(a) for a in args])  # type: ignore[attr-defined,no-any-return]


@functools.lru_cache(1024)
def _operators(op: str, count: int) -> tuple[FunctionEntry, ...]:
    return tuple(e for e in FUNCTIONS.by_name(op) if e.operator and len(e.params) == count)


@functools.lru_cache(8192)
def _choose_operator(op: str, types: tuple[ScalarType, ...]) -> tuple[FunctionEntry, tuple[ScalarType, ...]] | str:
    """`select`, remembered: the same few operators meet the same few types all the time."""
    return select(_operators(op, len(types)), types, operator=True)


def resolve_operator(ctx: PlanContext, op: str, args: Sequence[hir.Scalar], pos: int | None = None) -> hir.Scalar:
    """`a op b` or `op a`."""
    count = len(args)
    types = [hir.type_of(a) for a in args]
    entries = _operators(op, count)
    chosen = _choose_operator(op, tuple(types))
    if op in ("?|", "?&") and all(t.kind == "unknown" for t in types):
        raise SqlError("42804", "could not determine polymorphic type because input has type unknown")
    if op in _ON_CONTAINERS and types[0].kind == "unknown" and any(_undetermined(e, types) for e in entries):
        chosen = "ambiguous"
    if isinstance(chosen, str):
        words = [type_words(t) for t in types]
        shown = f"{words[0]} {op} {words[1]}" if count == 2 else f"{op} {words[0]}"
        position = None if pos is None else pos + 1
        if chosen == "none":
            raise SqlError("42883", f"operator does not exist: {shown}", hint=_NO_OPERATOR_HINT, position=position)
        raise SqlError("42725", f"operator is not unique: {shown}", hint=_OPERATOR_HINT, position=position)
    entry, params = chosen
    declared = entry.param_types(count)
    assert declared is not None
    cast_args = pad_args(entry, coerce_args(ctx, args, params, declared))
    bound = _bind(entry, cast_args)
    return hir.Call(bound.id, cast_args, bound.result_type([hir.type_of(a) for a in cast_args]))


# Their left side decides what they mean: an untyped one could be jsonb as well as a map.
_ON_CONTAINERS = frozenset(("->", "?", "?|", "?&"))
_OPERATOR_HINT = "Could not choose a best candidate operator. You might need to add explicit type casts."
_NO_OPERATOR_HINT = "No operator matches the given name and argument types. You might need to add explicit type casts."
