"""Simplification of expressions, given the types of the columns they read.

    NOT (a < b)                    a >= b
    NOT (a OR b)                   NOT a AND NOT b
    (a AND b) OR (a AND c)         a AND (b OR c)
    a IS NULL, a never NULL        false
    (a + 1) IS NULL                a IS NULL           strict, and cannot fail
    coalesce(a, b), a never NULL   a
    CASE WHEN c THEN true ELSE false END    c, or c IS TRUE
    a::bigint = 5                  a = 5               when 5 fits
    a LIKE 'abc'                   a = 'abc'

Three-valued logic and lazy errors are kept: nothing that could fail is dropped unless the result was decided anyway.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from adapter.transform.context import Context
from adapter.transform.equality import FALSE, TRUE, as_equality, equals
from mzlite.expr import relation as r
from mzlite.expr.functions import FUNCTIONS
from mzlite.expr.scalar import Call, If, Literal, Ref, Scalar, rewrite
from mzlite.expr.typing import can_error, scalar_type
from mzlite.repr.datum import ArrayDatum, decode_datum, encode_datum
from mzlite.repr.types import BOOL, ColumnType

_NEGATED = {"eq": "not_eq", "not_eq": "eq", "lt": "gte", "gte": "lt", "gt": "lte", "lte": "gt"}
_INT_RANGE = {
    "int2": (-(2**15), 2**15 - 1),
    "int4": (-(2**31), 2**31 - 1),
    "int8": (-(2**63), 2**63 - 1),
}
_LIKE = {"like_text": "eq_text", "not_like_text": "not_eq_text"}
_WILD = set(b"%_\\")
_WIDENING = {"cast_int2_int4", "cast_int2_int8", "cast_int4_int8"}

MAX_ALTERNATIVES = 1000

Columns = Sequence[ColumnType]


def simplify_scalars(e: r.Mir, context: Context) -> r.Mir:
    def visit(node: r.Mir) -> r.Mir:
        match node:
            case r.Map(input, scalars):
                types = list(context.types.columns(node))
                n = context.types.arity(input)
                new = tuple(simplify(s, types[: n + i]) for i, s in enumerate(scalars))
                return r.Map(input, new) if _differs(new, scalars) else node
            case r.Filter(input, predicates):
                types = list(context.types.columns(input))
                kept = tuple(simplify_predicate(p, types) for p in predicates)
                return r.Filter(input, kept) if _differs(kept, predicates) else node
            case r.FlatMap(input, func, exprs):
                types = list(context.types.columns(input))
                new = tuple(simplify(x, types) for x in exprs)
                return r.FlatMap(input, func, new) if _differs(new, exprs) else node
            case r.Reduce(input, group_key, aggregates):
                types = list(context.types.columns(input))
                keys = tuple(simplify(k, types) for k in group_key)
                aggs = tuple(
                    msgspec.structs.replace(
                        a,
                        args=tuple(simplify(x, types) for x in a.args),
                        filter=None if a.filter is None else simplify_predicate(a.filter, types),
                    )
                    for a in aggregates
                )
                if keys == group_key and aggs == aggregates:
                    return node
                return msgspec.structs.replace(node, group_key=keys, aggregates=aggs)
            case r.Join(inputs, equivalences, None):
                types = [c for i in inputs for c in context.types.columns(i)]
                classes = tuple(tuple(simplify(m, types) for m in cls) for cls in equivalences)
                return node if classes == equivalences else r.Join(inputs, classes)
            case _:
                return node

    return r.rewrite(e, visit)


def _differs(new: tuple[Scalar, ...], old: tuple[Scalar, ...]) -> bool:
    return any(a is not b for a, b in zip(new, old)) and new != old


def simplify(e: Scalar, columns: Columns) -> Scalar:
    if isinstance(e, Ref | Literal):
        return e
    return rewrite(e, lambda n: _simplify(n, columns))


def simplify_predicate(p: Scalar, columns: Columns) -> Scalar:
    """As `simplify`, where only `true` matters and NULL is as good as false."""
    p = simplify(_null_as_false(simplify(p, columns)), columns)
    match p:
        case Call("is_true", (inner,), _):
            return inner
        case _:
            pair = as_equality(p)
            if pair is not None and pair[0] == pair[1] and not can_error(pair[0]):
                return _simplify(Call("not", (Call("is_null", (pair[0],), BOOL),), BOOL), columns)
            return p


def _null_as_false(p: Scalar) -> Scalar:
    match p:
        case Literal(None, _, None):
            return FALSE
        case If(cond, then, els):
            new = _null_as_false(then), _null_as_false(els)
            return p if new == (then, els) else If(cond, *new)
        case Call("and" | "or", args, typ):
            parts = tuple(map(_null_as_false, args))
            return p if parts == args else Call(p.func, parts, typ)
        case _:
            return p


def _never_null(e: Scalar, columns: Columns) -> bool:
    return not scalar_type(e, columns).nullable and not can_error(e)


def _simplify(e: Scalar, columns: Columns) -> Scalar:
    match e:
        case Call("not", (inner,), _):
            return _negate(inner, columns) or e
        case Call("and" | "or", args, _):
            return _connective(e, args)
        case Call("is_null", (inner,), _):
            return _is_null(e, inner, columns)
        case Call("coalesce", args, _):
            return _coalesce(e, args, columns)
        case Call("is_true", (inner,), _) if _never_null(inner, columns):
            return inner
        case If(cond, then, els):
            return _if(e, cond, then, els, columns)
        case Call():
            return _comparison(e, columns)
        case _:
            return e


def _negate(e: Scalar, columns: Columns) -> Scalar | None:
    match e:
        case Call("not", (inner,), _):
            return inner
        case If(cond, then, els) if isinstance(then, Literal) or isinstance(els, Literal):
            yes, no = (_negate(x, columns) or Call("not", (x,), BOOL) for x in (then, els))
            return _if(If(cond, yes, no), cond, yes, no, columns)
        case Literal(value, _, None):
            return e if value is None else FALSE if value == TRUE.value else TRUE
        case Call("or" | "and", args, _):
            other = "and" if e.func == "or" else "or"
            return _connective(e, tuple(_negate(a, columns) or Call("not", (a,), BOOL) for a in args), func=other)
        case Call(func, args, typ) if len(args) == 2 and FUNCTIONS[func].operator:
            name, _, kind = func.partition("_")
            if name == "not":
                name, kind = "not_eq", kind.removeprefix("eq_")
            other = f"{_NEGATED[name]}_{kind}" if name in _NEGATED else ""
            if other and (other in FUNCTIONS or other.partition("<")[0] in FUNCTIONS):
                return Call(other, args, typ)
            return None
        case _:
            return None


def _connective(e: Call, args: tuple[Scalar, ...], func: str = "") -> Scalar:
    """Flatten, drop what does not matter, decide if decided, factor common conjuncts out of an OR."""
    func = func or e.func
    neutral, decisive = (TRUE, FALSE) if func == "and" else (FALSE, TRUE)
    flat: dict[Scalar, None] = {}
    for a in args:
        for part in a.args if isinstance(a, Call) and a.func == func else (a,):
            if part == decisive:
                return decisive
            if part != neutral:
                flat[part] = None
    parts = tuple(flat)
    if not parts:
        return neutral
    if len(parts) == 1:
        return parts[0]
    if func == "or":
        factored = _factor(parts)
        if factored is not None:
            return factored
    return e if func == e.func and parts == e.args else Call(func, parts, BOOL)


def _factor(options: tuple[Scalar, ...]) -> Scalar | None:
    conjuncts = [o.args if isinstance(o, Call) and o.func == "and" else (o,) for o in options]
    common = [c for c in conjuncts[0] if all(c in others for others in conjuncts[1:])]
    if not common:
        return None
    rest: list[Scalar] = []
    for cs in conjuncts:
        left = tuple(c for c in cs if c not in common)
        if not left:
            # a OR (a AND b) is a; what is dropped counts only where a is not true, and there it may fail.
            if any(can_error(c) for others in conjuncts for c in others):
                return None
            rest = []
            break
        rest.append(left[0] if len(left) == 1 else Call("and", left, BOOL))
    parts = (*common, Call("or", tuple(dict.fromkeys(rest)), BOOL)) if rest else tuple(common)
    return parts[0] if len(parts) == 1 else Call("and", parts, BOOL)


def _is_null(e: Call, inner: Scalar, columns: Columns) -> Scalar:
    if _never_null(inner, columns):
        return FALSE
    match inner:
        case Call(func, args, _) if func not in ("and", "or", "coalesce") and args:
            entry = FUNCTIONS[func]
            if entry.strict and entry.nullable == "args" and not entry.can_error:
                parts = tuple(_is_null(Call("is_null", (a,), BOOL), a, columns) for a in dict.fromkeys(args))
                return _connective(Call("or", parts, BOOL), parts)
        case _:
            pass
    return e


def _coalesce(e: Call, args: tuple[Scalar, ...], columns: Columns) -> Scalar:
    kept: list[Scalar] = []
    for a in args:
        if isinstance(a, Literal) and a.value is None and a.error is None:
            continue
        if a in kept:
            continue
        kept.append(a)
        if not scalar_type(a, columns).nullable:
            break
    if not kept:
        return Literal(None, e.typ)
    if len(kept) == 1:
        return kept[0]
    return e if tuple(kept) == args else Call("coalesce", tuple(kept), e.typ)


def _if(e: If, cond: Scalar, then: Scalar, els: Scalar, columns: Columns) -> Scalar:
    if then == els and not can_error(cond):
        return then
    if then == TRUE and els == FALSE:
        return cond if _never_null(cond, columns) else Call("is_true", (cond,), BOOL)
    if then == FALSE and els == TRUE and _never_null(cond, columns):
        return _negate(cond, columns) or Call("not", (cond,), BOOL)
    if _never_null(cond, columns):
        # Both sides of a connective are evaluated, but an error counts only where the other does not decide.
        match then, els:
            case Literal(b"\x01", typ), _ if typ.kind == "bool":
                return _connective(Call("or", (cond, els), BOOL), (cond, els))
            case _, Literal(b"\x00", typ) if typ.kind == "bool":
                return _connective(Call("and", (cond, then), BOOL), (cond, then))
            case Literal(b"\x00", typ), _ if typ.kind == "bool":
                negated = _negate(cond, columns) or Call("not", (cond,), BOOL)
                return _connective(Call("and", (negated, els), BOOL), (negated, els))
            case _, Literal(b"\x01", typ) if typ.kind == "bool":
                negated = _negate(cond, columns) or Call("not", (cond,), BOOL)
                return _connective(Call("or", (negated, then), BOOL), (negated, then))
            case _:
                pass
    if isinstance(els, If) and els.then == then and not can_error(els.cond):
        # CASE WHEN a THEN x WHEN b THEN x ELSE y: one choice. NULL counts as false in both forms.
        either = Call("or", (cond, els.cond), BOOL)
        return If(_connective(either, either.args), then, els.els)
    return e


def _alternatives(e: Call) -> Scalar | None:
    """x = ANY (literal collection) as the disjunction of its members, which an index can look up."""
    x, collection = e.args
    if not isinstance(collection, Literal) or collection.error is not None:
        return None
    if collection.value is None:
        return None if can_error(x) else Literal(None, BOOL)
    element = collection.typ.element
    assert element is not None
    datum = decode_datum(collection.typ, collection.value)
    members = tuple(dict.fromkeys(datum.elements if isinstance(datum, ArrayDatum) else datum))
    if not members:
        return None if can_error(x) else FALSE
    if len(members) > MAX_ALTERNATIVES:
        return None
    options = [equals(x, Literal(None if m is None else encode_datum(element, m), element), element) for m in members]
    if any(o is None for o in options):
        return None
    made = tuple(o for o in options if o is not None)
    return made[0] if len(made) == 1 else Call("or", made, BOOL)


def _comparison(e: Call, columns: Columns) -> Scalar:
    """A strict call of NULL; LIKE without wildcards; `x = x`; a literal that an integer's widening cast can give way to."""
    entry = FUNCTIONS[e.func]
    null = any(isinstance(a, Literal) and a.value is None and a.error is None for a in e.args)
    if null and entry.strict and e.func not in ("and", "or", "coalesce") and not any(map(can_error, e.args)):
        return Literal(None, e.typ)
    if e.func.startswith(("any_eq<", "any_eq_list<")):
        return _alternatives(e) or e
    if e.func in _LIKE and isinstance(e.args[1], Literal) and not _WILD & set(e.args[1].value or b"%"):
        return Call(_LIKE[e.func], e.args, e.typ)
    pair = as_equality(e)
    if pair is None:
        return e
    a, b = pair
    if a == b and _never_null(a, columns):
        return TRUE
    if isinstance(a, Literal):
        a, b = b, a
    if b == TRUE:
        return a
    if b == FALSE:
        return _negate(a, columns) or Call("not", (a,), BOOL)
    if isinstance(a, Call) and a.func in _WIDENING and isinstance(b, Literal) and b.value is not None:
        inner = a.args[0]
        typ = scalar_type(inner, columns).scalar
        low, high = _INT_RANGE[typ.kind]
        value = decode_datum(b.typ, b.value)
        if low <= value <= high:
            return equals(inner, Literal(encode_datum(typ, value), typ), typ) or e
    return e
