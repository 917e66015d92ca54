"""Pseudo types: which concrete types a polymorphic signature stands for.

Two families, as in PostgreSQL: any* parameters must all agree on one element type exactly; anycompatible* ones agree
on the best common type of what they are given. "any" agrees with nothing.

    anyelement anyarray anylist anymap anyrange anynonarray      one type variable, exact
    anycompatible anycompatiblearray anycompatiblelist anycompatiblemap anycompatiblenonarray anycompatiblerange
    any                                                          unconstrained, each on its own
    record                                                       any row type
"""

from __future__ import annotations

from collections.abc import Callable

from mzlite.repr.types import UNKNOWN, ScalarType

_CONTAINERS = {"array": "array", "list": "list", "map": "map", "range": "range"}
_EXACT = {"anyelement", "anyarray", "anylist", "anymap", "anyrange", "anynonarray"}
_COMPATIBLE = {
    "anycompatible",
    "anycompatiblearray",
    "anycompatiblelist",
    "anycompatiblemap",
    "anycompatiblenonarray",
    "anycompatiblerange",
}
_PSEUDO = _EXACT | _COMPATIBLE | {"any", "record"}


def is_pseudo(typ: ScalarType) -> bool:
    """Whether a declared parameter type stands for many (a record with fields is concrete)."""
    return typ.kind in _PSEUDO and (typ.kind != "record" or typ.fields is None)


def container(kind: str) -> str | None:
    """ "anyarray" -> "array", "anycompatiblemap" -> "map", "anyelement" -> None."""
    for prefix in ("anycompatible", "any"):
        if kind.startswith(prefix) and kind[len(prefix) :] in _CONTAINERS:
            return kind[len(prefix) :]
    return None


def _variable(kind: str) -> str | None:
    return "exact" if kind in _EXACT else "compatible" if kind in _COMPATIBLE else None


def result(returns: ScalarType, declared: tuple[ScalarType, ...], actual: tuple[ScalarType, ...]) -> ScalarType:
    """The concrete result type, given what the parameters were bound to."""
    if returns.kind == "record":
        return actual[0]
    variable = _variable(returns.kind)
    assert variable is not None, returns
    wanted = container(returns.kind)
    for param, arg in zip(declared, actual):
        if _variable(param.kind) != variable:
            continue
        have = container(param.kind)
        if have == wanted:
            return arg
        if arg.kind == "int2vector":
            return ScalarType("int2")
        if have is not None and arg.element is not None:
            return arg.element if wanted is None else ScalarType(wanted, element=arg.element)
    for param, arg in zip(declared, actual):
        if _variable(param.kind) == variable and wanted is not None:
            return ScalarType(wanted, element=arg)
    raise AssertionError(f"cannot derive {returns.kind} from {declared}")


def solve(
    declared: tuple[ScalarType, ...],
    actual: tuple[ScalarType, ...],
    common: Callable[[list[ScalarType]], ScalarType | None],
) -> tuple[ScalarType, ...] | None:
    """Concrete parameter types for these argument types (UNKNOWN = untyped literal), or None if they cannot agree.

    common: best common type of the non-UNKNOWN types (`casts.best_common_type`). An argument list of nothing but
    UNKNOWN gives text, but None where an exact container is needed.
    """
    variables: dict[str, ScalarType] = {}
    for variable in ("exact", "compatible"):
        elements: list[ScalarType] = []
        used = False
        needs_container = False
        for param, arg in zip(declared, actual):
            if _variable(param.kind) != variable:
                continue
            used = True
            have = container(param.kind)
            needs_container |= have is not None
            if arg.kind == "unknown":
                continue
            if param.kind.endswith("nonarray") and arg.kind == "array":
                return None
            if have is None:
                elements.append(arg)
            elif arg.kind != have or arg.element is None:
                return None
            else:
                elements.append(arg.element)
        if not used:
            continue
        if not elements:
            if needs_container and variable == "exact":
                return None
            variables[variable] = ScalarType("text")
        elif variable == "exact":
            if any(e.base() != elements[0].base() for e in elements):
                return None
            variables[variable] = elements[0]
        else:
            agreed = common(elements)
            if agreed is None:
                return None
            variables[variable] = agreed
    out: list[ScalarType] = []
    for param, arg in zip(declared, actual):
        name = _variable(param.kind)
        if name is None:
            if is_pseudo(param):
                if param.kind == "record" and arg.kind not in ("record", "unknown"):
                    return None
                out.append(ScalarType("text") if arg.kind == UNKNOWN.kind else arg)
            else:
                out.append(param)
            continue
        have = container(param.kind)
        out.append(variables[name] if have is None else ScalarType(have, element=variables[name]))
    return tuple(out)
