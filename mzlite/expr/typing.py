"""Types of scalar expressions: the type and nullability of a Scalar given the types of its input columns."""

from __future__ import annotations

from collections.abc import Sequence

from mzlite.expr.functions import FUNCTIONS
from mzlite.expr.scalar import Call, If, Literal, Ref, Scalar, Unmaterializable
from mzlite.repr.types import ColumnType


def scalar_type(e: Scalar, input_types: Sequence[ColumnType]) -> ColumnType:
    """Type of e; nullable unless it provably never gives NULL."""
    match e:
        case Ref(column):
            return input_types[column]
        case Literal(value, typ, error):
            return ColumnType(typ, value is None and error is None)
        case Call(func, args, typ):
            nullability = FUNCTIONS[func].nullable
            if nullability == "never":
                return ColumnType(typ, False)
            if nullability == "always" or not args:
                return ColumnType(typ, nullability == "always")
            nullable = [scalar_type(a, input_types).nullable for a in args]
            return ColumnType(typ, all(nullable) if nullability == "all_args" else any(nullable))
        case If(_, then, els):
            a, b = scalar_type(then, input_types), scalar_type(els, input_types)
            scalar = a.scalar if not _is_null(then) else b.scalar
            return ColumnType(scalar, a.nullable or b.nullable)
        case Unmaterializable(_, typ):
            return ColumnType(typ, False)


def _is_null(e: Scalar) -> bool:
    return isinstance(e, Literal) and e.value is None


def can_error(e: Scalar) -> bool:
    """Whether evaluating e can fail on some row."""
    match e:
        case Ref() | Unmaterializable():
            return False
        case Literal():
            return e.error is not None
        case Call(func, args, _):
            if FUNCTIONS[func].can_error:
                return True
            return any(can_error(a) for a in args)
        case If(cond, then, els):
            return can_error(cond) or can_error(then) or can_error(els)


def null_when_null(e: Scalar) -> frozenset[int]:
    """Columns whose being NULL makes e NULL (or an error)."""
    match e:
        case Ref(column):
            return frozenset((column,))
        case Call(func, args, _) if FUNCTIONS[func].strict:
            return frozenset().union(*map(null_when_null, args))
        case _:
            return frozenset()


def rejects_null(predicate: Scalar) -> frozenset[int]:
    """Columns that cannot be NULL in a row on which the predicate is true."""
    match predicate:
        case Call("and", args, _):
            return frozenset().union(*map(rejects_null, args))
        case Call("or", args, _) if args:
            return frozenset.intersection(*map(rejects_null, args))
        case Call("not", (Call("is_null", (arg,), _),), _):
            return null_when_null(arg)
        case Call("is_true" | "is_false", (arg,), _):
            return null_when_null(arg)
        case _:
            return null_when_null(predicate)
