"""What a predicate says about NULL: a row that passes has no NULL in these columns."""

from __future__ import annotations

from mzlite.expr.functions import FUNCTIONS
from mzlite.expr.scalar import Call, Literal, Ref, Scalar

_LAZY = ("and", "or", "coalesce")


def rejects_null(predicate: Scalar) -> frozenset[int]:
    """Columns that cannot be NULL where `predicate` is true."""
    match predicate:
        case Ref(c):
            return frozenset((c,))
        case Call("and", args):
            return frozenset().union(*map(rejects_null, args))
        case Call("or", args):
            sets = [rejects_null(a) for a in args]
            return sets[0].intersection(*sets[1:])
        case Call("not", (Call("is_null", (inner,)),)):
            return strict_columns(inner)
        case _:
            return strict_columns(predicate)


def strict_columns(e: Scalar) -> frozenset[int]:
    """Columns whose NULL makes e NULL (or an error)."""
    match e:
        case Ref(c):
            return frozenset((c,))
        case Call(func, args) if func not in _LAZY and FUNCTIONS[func].strict:
            return frozenset().union(*map(strict_columns, args)) if args else frozenset()
        case _:
            return frozenset()


def is_literal_true(e: Scalar) -> bool:
    return isinstance(e, Literal) and e.value == b"\x01" and e.typ.kind == "bool"
