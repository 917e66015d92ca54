"""Equality in expressions: recognising `a = b` and `a = literal`, making `a = b`, and when equals are interchangeable."""

from __future__ import annotations

from mzlite.expr.functions import FUNCTIONS
from mzlite.expr.scalar import Call, Literal, Scalar, support
from mzlite.repr.types import BOOL, ScalarType

TRUE = Literal(b"\x01", BOOL)
FALSE = Literal(b"\x00", BOOL)
NULL_BOOL = Literal(None, BOOL)

# Equal values of these types are the same in every respect. Not so for floats (0.0 = -0.0), bpchar ('a' = 'a '),
# interval ('1 month' = '30 days'), and what may hold them.
_NUMBERS = {"int2", "int4", "int8", "uint2", "uint4", "uint8", "numeric", "oid", "regclass", "regproc", "regtype"}
_TIMES = {"mz_timestamp", "date", "time", "timestamp", "timestamptz"}
_INTERCHANGEABLE = _NUMBERS | _TIMES | {"bool", "text", "varchar", "name", "uuid", "bytea"}


def interchangeable(typ: ScalarType) -> bool:
    return typ.kind in _INTERCHANGEABLE


def equals(a: Scalar, b: Scalar, typ: ScalarType) -> Scalar | None:
    """`a = b` for operands of `typ`; None when there is no such operator."""
    if f"eq_{typ.kind}" in FUNCTIONS:
        return Call(f"eq_{typ.kind}", (a, b), BOOL)
    if f"eq_any{typ.kind}" in FUNCTIONS:
        return Call(FUNCTIONS[f"eq_any{typ.kind}"].bind((typ, typ)).id, (a, b), BOOL)
    return None


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


def is_constant_free(e: Scalar) -> bool:
    """Does e read no column?"""
    return not support(e)
