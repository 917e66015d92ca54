"""Type names to types: builtins with modifiers checked, custom types through the catalog."""

from __future__ import annotations

from adapter.sql import ast
from adapter.sql.plan.context import PlanContext
from mzlite.repr import types as t
from mzlite.repr.errors import SqlError
from mzlite.repr.typenames import NUMERIC_MAX_PRECISION, type_by_name, type_name
from mzlite.repr.types import ScalarType

MAX_LENGTH = 10_485_760
_PSEUDO = frozenset(
    [
        "any",
        "anyelement",
        "anyarray",
        "anynonarray",
        "anycompatible",
        "anycompatiblearray",
        "anycompatiblenonarray",
        "anycompatiblelist",
        "anycompatiblemap",
        "anycompatiblerange",
        "list",
        "map",
        "record",
        "unknown",
    ]
)


def resolve_type(ctx: PlanContext, name: ast.TypeName) -> ScalarType:
    if name.container == "map":
        assert name.key is not None and name.element is not None
        key = resolve_type(ctx, name.key)
        if key.kind != "text":
            raise SqlError("42704", f"map key type must be text, got {type_words(key)}")
        return t.map_of(resolve_type(ctx, name.element))
    if name.container is not None:
        assert name.element is not None
        element = resolve_type(ctx, name.element)
        if name.container == "list":
            if element.kind == "bpchar":
                raise SqlError("0A000", "char list not yet supported")
            return t.list_of(element)
        if element.kind in ("list", "map"):
            raise SqlError("0A000", f"{type_words(element)}[] not yet supported")
        return element if element.kind == "array" else t.array_of(element)
    parts = name.parts
    builtin = _builtin(name)
    if builtin is not None:
        return _modified(builtin, name)
    session = ctx.session
    item = ctx.catalog.resolve_type_item(parts, session.database, session.search_path)
    if item is not None and item.scalar is not None:
        if name.modifiers:
            raise SqlError("42601", f"{item.name} does not support type modifiers")
        ctx.depends_on[item.id] = None
        return item.scalar
    if parts[-1] in _PSEUDO and (len(parts) == 1 or parts[0] in ("pg_catalog", "mz_catalog")):
        schema = (
            "mz_catalog" if parts[-1] in ("list", "map") or "list" in parts[-1] or "map" in parts[-1] else "pg_catalog"
        )
        raise SqlError("42704", f"cannot reference pseudo type {schema}.{parts[-1]}")
    shown = parts[-1] if len(parts) == 1 else ".".join(parts)
    raise SqlError("42704", f'type "{shown}" does not exist', position=name.pos + 1)


def _builtin(name: ast.TypeName) -> ScalarType | None:
    parts = name.parts
    qualified = len(parts) > 1
    if qualified and parts[-2] not in ("pg_catalog", "mz_catalog"):
        return None
    word = parts[-1]
    if " " in word or "[" in word:
        return None
    catalog_name = word == "char" or word in t.LAYOUTS or word.endswith("range") or word.startswith("_")
    if (qualified or name.quoted) and not catalog_name:
        return None  # aliases (int, boolean, …) are grammar, not names
    if word == "char":
        # The type "char" (quoted, or qualified as pg_catalog.char) is a single byte; char without quotes is character(1).
        return t.CHAR if name.quoted or qualified else t.BPCHAR
    if word == "character":
        return t.BPCHAR
    if word in _PSEUDO:
        return None
    return type_by_name(word)


def _modified(typ: ScalarType, name: ast.TypeName) -> ScalarType:
    modifiers = name.modifiers
    kind = typ.kind
    word = name.parts[-1]
    if kind == "bpchar" and not modifiers:
        return ScalarType("bpchar", length=1) if word in ("char", "character") else typ
    if not modifiers:
        return typ
    match kind:
        case "varchar" | "bpchar":
            words = "character varying" if kind == "varchar" else "character"
            _one(modifiers)
            if not 1 <= modifiers[0] <= MAX_LENGTH:
                raise SqlError("22023", f"length for type {words} must be between 1 and {MAX_LENGTH}")
            return ScalarType(kind, length=modifiers[0])
        case "numeric":
            if len(modifiers) > 2:
                raise SqlError("42601", "invalid NUMERIC type modifier")
            precision = modifiers[0]
            if not 1 <= precision <= NUMERIC_MAX_PRECISION:
                raise SqlError("22023", f"precision for type numeric must be between 1 and {NUMERIC_MAX_PRECISION}")
            scale = modifiers[1] if len(modifiers) == 2 else 0
            if not 0 <= scale <= precision:
                raise SqlError("22023", f"scale for type numeric must be between 0 and precision {precision}")
            return ScalarType("numeric", precision=precision, scale=scale)
        case "timestamp" | "timestamptz":
            _one(modifiers)
            if not 0 <= modifiers[0] <= 6:
                raise SqlError("22023", "precision for type timestamp or timestamptz must be between 0 and 6")
            return ScalarType(kind, precision=modifiers[0])
        case "float8" if word == "float":
            _one(modifiers)
            if not 1 <= modifiers[0] <= 53:
                raise SqlError("22023", "precision for type float must be within ([1-53])")
            return t.FLOAT4 if modifiers[0] <= 24 else typ
        case "time" | "interval":
            return typ
    schema = "mz_catalog" if kind in ("uint2", "uint4", "uint8", "mz_timestamp") else "pg_catalog"
    raise SqlError("42601", f"{schema}.{kind} does not support type modifiers")


def _one(modifiers: tuple[int, ...]) -> None:
    if len(modifiers) != 1:
        raise SqlError("42601", "invalid type modifier")


_WORDS = {
    "varchar": "varchar",
    "bpchar": "char",
}


def type_words(typ: ScalarType) -> str:
    """A type as error messages name it (`function sum(varchar) does not exist`): format_type's name except where Materialize is terser."""
    if typ.custom is not None:
        return typ.custom
    element = typ.element
    match typ.kind:
        case "array" if element is not None:
            return f"{type_words(element)}[]"
        case "list" if element is not None:
            return f"{type_words(element)} list"
        case "map" if element is not None:
            return f"map[text=>{type_words(element)}]"
        case "record" if typ.fields:
            return (
                "record("
                + ",".join(f"{n}: {type_words(c.scalar)}{'?' if c.nullable else ''}" for n, c in typ.fields)
                + ")"
            )
        case "range":
            return type_name(typ)
        case kind:
            return _WORDS.get(kind) or type_name(typ.base())
