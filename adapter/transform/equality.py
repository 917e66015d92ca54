"""Recognising `a = b` and `a = literal` in predicates."""

from __future__ import annotations

from mzlite.expr.functions import FUNCTIONS
from mzlite.expr.scalar import Call, Literal, Scalar


def as_equality(e: Scalar) -> tuple[Scalar, Scalar] | None:
    """(a, b) when e is `a = b`."""
    if isinstance(e, Call) and len(e.args) == 2:
        entry = FUNCTIONS[e.func]
        if entry.operator and entry.name == "=":
            return e.args[0], e.args[1]
    return None


def literal_alternatives(e: Scalar) -> tuple[Scalar, tuple[Literal, ...]] | None:
    """(x, literals) when e says that x is one of the literals: `x = 1`, `x = 1 OR x = 2`. NULL literals match nothing."""
    options = e.args if isinstance(e, Call) and e.func == "or" else (e,)
    subject: Scalar | None = None
    found: list[Literal] = []
    for option in options:
        pair = as_equality(option)
        if pair is None:
            return None
        x, lit = pair if isinstance(pair[1], Literal) else (pair[1], pair[0])
        if not isinstance(lit, Literal) or isinstance(x, Literal) or lit.error is not None:
            return None
        if subject is not None and x != subject:
            return None
        subject = x
        if lit.value is not None:
            found.append(lit)
    assert subject is not None
    return subject, tuple(dict.fromkeys(found))
