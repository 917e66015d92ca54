"""Constructors and accessors of collections: ARRAY[…], LIST[…], MAP[…], ROW(…), subscripts, slices, record fields."""

from __future__ import annotations

from adapter.sql import ast, hir
from adapter.sql.plan import expr
from adapter.sql.plan.coerce import cast, construct, literal, record_call, settle, to_common, try_cast
from adapter.sql.plan.expr import ExprContext
from adapter.sql.plan.overload import resolve_operator
from adapter.sql.plan.types import type_words
from mzlite.expr.scalar import Literal
from mzlite.repr.datum import ArrayDatum
from mzlite.repr.errors import SqlError, unsupported
from mzlite.repr.types import INT4, INT8, TEXT, ScalarType, array_of, list_of, map_of


def empty_collection(typ: ScalarType) -> Literal:
    match typ.kind:
        case "array":
            return literal(typ, ArrayDatum((), ()))
        case "list":
            return literal(typ, ())
        case _:
            return literal(typ, {})


def _array_lit(x: ExprContext, node: ast.ArrayLit) -> hir.Scalar:
    return collection_literal(x, node, None)


def collection_literal(x: ExprContext, node: ast.ArrayLit, hint: ScalarType | None) -> hir.Scalar:
    """hint: the type a surrounding cast asks for, which types empty and untyped literals."""
    kind = node.kind
    element_hint = hint.element if hint is not None and hint.kind == kind else None
    if not node.items:
        if element_hint is None:
            raise SqlError(
                "42P18",
                f"cannot determine type of empty {kind}",
                hint=f"Explicitly cast to the desired type, for example {kind.upper()}[]::integer{'[]' if kind == 'array' else ' list'}.",
                position=node.pos + 1,
            )
        assert hint is not None
        return empty_collection(hint.base())
    nested = any(isinstance(i, ast.ArrayLit) for i in node.items)
    items: list[hir.Scalar] = []
    for part in node.items:
        if isinstance(part, ast.ArrayLit):
            items.append(collection_literal(x, part, hint if kind == "array" else element_hint))
        elif isinstance(part, ast.MapLit) and element_hint is not None:
            items.append(map_literal(x, part, element_hint))
        else:
            items.append(expr.plan_expr(x, part))
    if element_hint is not None and not nested:
        for i, item in enumerate(items):
            element = try_cast(x.ctx, item, element_hint, "explicit")
            if element is None:
                have = type_words(hir.type_of(item))
                raise SqlError("42804", f"{kind.upper()} could not convert type {have} to {type_words(element_hint)}")
            items[i] = element
    items, typ = to_common(x.ctx, items, kind.upper())
    items = [settle(x.ctx, i) for i in items]
    if kind == "list":
        if typ.kind in ("char", "bpchar"):
            raise unsupported(f"{type_words(typ)} list", position=node.pos + 1)
        return construct("list_create", tuple(items), list_of(typ))
    if typ.kind in ("list", "map"):
        raise unsupported(f"{type_words(typ)}[]", position=node.pos + 1)
    if nested and typ.kind == "array":
        return construct("array_create_nested", tuple(items), typ)
    return construct("array_create", tuple(items), array_of(typ))


def _map_lit(x: ExprContext, node: ast.MapLit) -> hir.Scalar:
    return map_literal(x, node, None)


def map_literal(x: ExprContext, node: ast.MapLit, hint: ScalarType | None) -> hir.Scalar:
    value_hint = hint.element if hint is not None and hint.kind == "map" else None
    if not node.entries:
        if value_hint is None:
            raise SqlError(
                "42P18",
                "cannot determine type of empty map",
                hint="Explicitly cast to the desired type, for example MAP[]::map[text=>integer].",
                position=node.pos + 1,
            )
        return empty_collection(map_of(value_hint))
    keys: list[hir.Scalar] = []
    values: list[hir.Scalar] = []
    for key_ast, value_ast in node.entries:
        key = expr.plan_expr(x, key_ast)
        keys.append(cast(x.ctx, key, TEXT, "implicit", "MAP keys"))
        if isinstance(value_ast, ast.MapLit) and value_hint is not None:
            values.append(map_literal(x, value_ast, value_hint))
        elif isinstance(value_ast, ast.ArrayLit) and value_hint is not None:
            values.append(collection_literal(x, value_ast, value_hint))
        else:
            values.append(expr.plan_expr(x, value_ast))
    if value_hint is not None:
        converted = [try_cast(x.ctx, v, value_hint, "explicit") for v in values]
        if all(c is not None for c in converted):
            values = [c for c in converted if c is not None]
    values, typ = to_common(x.ctx, values, "MAP")
    args: list[hir.Scalar] = []
    for k, v in zip(keys, values):
        args += [k, settle(x.ctx, v)]
    return construct("map_create", tuple(args), map_of(typ))


def _row(x: ExprContext, node: ast.Row) -> hir.Scalar:
    items: list[hir.Scalar] = []
    for item in node.items:
        if isinstance(item, ast.Star) and item.qualifier:
            from adapter.sql.plan.scope import table_columns

            found = table_columns(x.scopes, item.qualifier)
            if found is None:
                raise SqlError("42P01", f"no table named '{'.'.join(item.qualifier)}' in scope")
            items += [hir.Column(found[0], c.index, c.typ, c.name) for c in found[1]]
        else:
            items.append(expr.plan_expr(x, item))
    return record_call(items, tuple(f"f{i + 1}" for i in range(len(items))))


def _subscript(x: ExprContext, node: ast.Subscript) -> hir.Scalar:
    operand = expr.plan_expr(x, node.operand)
    typ = hir.type_of(operand)
    match typ.kind:
        case "jsonb":
            return _jsonb_subscript(x, operand, node)
        case "array" | "list" | "int2vector":
            return _elements(x, operand, node)
        case "map":
            return _map_subscript(x, operand, node)
        case _:
            raise SqlError("42804", f"cannot subscript type {type_words(typ)}", position=node.pos + 1)


def _jsonb_subscript(x: ExprContext, operand: hir.Scalar, node: ast.Subscript) -> hir.Scalar:
    for index in node.indexes:
        if isinstance(index, ast.Slice):
            raise SqlError("42804", "jsonb subscript does not support slices", position=node.pos + 1)
        key = expr.plan_expr(x, index)
        kind = hir.type_of(key).kind
        if kind == "unknown":
            key = settle(x.ctx, key)
        elif kind in ("int2", "int4", "int8"):
            key = cast(x.ctx, key, INT8, "implicit")
        elif kind not in ("text", "varchar", "bpchar"):
            raise SqlError(
                "42804",
                f"jsonb subscript in must be coercible to either integer or text, got {type_words(hir.type_of(key))}",
            )
        operand = resolve_operator(x.ctx, "->", (operand, key), node.pos)
    return operand


def _map_subscript(x: ExprContext, operand: hir.Scalar, node: ast.Subscript) -> hir.Scalar:
    for index in node.indexes:
        if isinstance(index, ast.Slice):
            raise SqlError("42804", "cannot slice type map", position=node.pos + 1)
        operand = resolve_operator(x.ctx, "->", (operand, expr.plan_expr(x, index)), node.pos)
    return operand


def _index(x: ExprContext, e: hir.Scalar) -> hir.Scalar:
    """A subscript as bigint; anything numeric is rounded, as an assignment would."""
    typ = hir.type_of(e)
    converted = (
        try_cast(x.ctx, e, INT8, "assignment") if typ.kind not in ("bool", "date", "timestamp", "timestamptz") else None
    )
    if converted is None:
        raise SqlError("42804", f"subscripting does not support casting from {type_words(typ)} to bigint")
    return converted


def _elements(x: ExprContext, operand: hir.Scalar, node: ast.Subscript) -> hir.Scalar:
    typ = hir.type_of(operand)
    kind = typ.kind
    slices = [i for i in node.indexes if isinstance(i, ast.Slice)]
    if slices:
        if kind != "list":
            raise SqlError(
                "0A000", f"cannot slice type {type_words(typ)}" if kind != "array" else "array slice not yet supported"
            )
        if len(slices) != len(node.indexes):
            # Plain indexes and slices may mix on lists: applied left to right.
            return _mixed(x, operand, node)
        return _slice(x, operand, slices)
    indexes = [_index(x, expr.plan_expr(x, i)) for i in node.indexes if not isinstance(i, ast.Slice)]
    if kind == "int2vector":
        element = ScalarType("int2")
        return construct("array_index", (operand, *indexes), element)
    assert typ.element is not None
    if kind == "array":
        return construct("array_index", (operand, *indexes), typ.element)
    for index in indexes:
        here = hir.type_of(operand)
        if here.kind != "list":
            if here.kind in ("array", "int2vector"):
                operand = construct("array_index", (operand, index), here.element or ScalarType("int2"))
                continue
            if here.kind == "map" or here.kind == "jsonb":
                raise SqlError("42804", f"cannot subscript type {type_words(here)}")
            depth = _layers(typ)
            raise SqlError(
                "42804",
                f"cannot index into {len(indexes)} layers; list only has {depth} layer{'s' if depth != 1 else ''}",
            )
        assert here.element is not None
        operand = construct("list_index", (operand, index), here.element)
    return operand


def _layers(typ: ScalarType) -> int:
    n = 0
    while typ.kind == "list" and typ.element is not None:
        n += 1
        typ = typ.element
    return n


def _slice(x: ExprContext, operand: hir.Scalar, slices: list[ast.Slice]) -> hir.Scalar:
    typ = hir.type_of(operand)
    if typ.kind != "list":
        raise SqlError("42804", f"cannot subscript type {type_words(typ)}")
    if len(slices) > _layers(typ):
        depth = _layers(typ)
        raise SqlError(
            "42804", f"cannot slice into {len(slices)} layers; list only has {depth} layer{'s' if depth != 1 else ''}"
        )
    args: list[hir.Scalar] = [operand]
    for s in slices:
        args.append(literal(INT8, 1) if s.start is None else _index(x, expr.plan_expr(x, s.start)))
        args.append(literal(INT8, (1 << 63) - 1) if s.end is None else _index(x, expr.plan_expr(x, s.end)))
    return construct("list_slice", tuple(args), typ.base())


def _mixed(x: ExprContext, operand: hir.Scalar, node: ast.Subscript) -> hir.Scalar:
    for index in node.indexes:
        if isinstance(index, ast.Slice):
            operand = _slice(x, operand, [index])
        else:
            operand = _elements(x, operand, ast.Subscript(node.operand, (index,), node.pos))
    return operand


def _field(x: ExprContext, node: ast.Field) -> hir.Scalar:
    operand = expr.plan_expr(x, node.operand)
    typ = hir.type_of(operand)
    if typ.kind != "record" or typ.fields is None:
        raise SqlError(
            "42809",
            f"column notation applied to type {type_words(typ)}, which is not a composite type",
            position=node.pos + 1,
        )
    operand = settle(x.ctx, operand)
    fields = hir.type_of(operand).fields
    assert fields is not None
    for i, (name, column) in enumerate(fields):
        if name == node.name:
            return record_field(operand, i, column.scalar)
    raise SqlError("42703", f"field {node.name} not found in data type {type_words(typ)}", position=node.pos + 1)


def record_field(record: hir.Scalar, index: int, typ: ScalarType) -> hir.Scalar:
    if isinstance(record, hir.Call) and record.func.partition("<")[0] == "record":
        return record.args[index]
    return construct("record_get", (record, literal(INT4, index)), typ)


def record_fields(e: hir.Scalar) -> list[tuple[str, hir.Scalar]]:
    """(expr).*"""
    typ = hir.type_of(e)
    if typ.kind != "record" or typ.fields is None:
        raise SqlError("42809", f"type {type_words(typ)} is not composite")
    return [(name, record_field(e, i, column.scalar)) for i, (name, column) in enumerate(typ.fields)]


def _field_star(x: ExprContext, node: ast.FieldStar) -> hir.Scalar:
    raise SqlError("42601", 'row expansion via "*" is not supported here', position=node.pos + 1)


expr.register(ast.ArrayLit, _array_lit)
expr.register(ast.MapLit, _map_lit)
expr.register(ast.Row, _row)
expr.register(ast.Subscript, _subscript)
expr.register(ast.Field, _field)
expr.register(ast.FieldStar, _field_star)
