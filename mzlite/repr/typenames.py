"""Names and OIDs of types: what `pg_typeof` prints, what a row description carries, what a cast may say.

OIDs are PostgreSQL's; types that PostgreSQL lacks (unsigned integers, mz_timestamp, lists, maps) have Materialize's.
"""

from __future__ import annotations

from mzlite.repr import types as t
from mzlite.repr.types import ScalarType, array_of, range_of

# kind -> (display name, oid, oid of the array type)
_SCALARS: dict[str, tuple[str, int, int]] = {
    "bool": ("boolean", 16, 1000),
    "bytea": ("bytea", 17, 1001),
    "char": ('"char"', 18, 1002),
    "name": ("name", 19, 1003),
    "int8": ("bigint", 20, 1016),
    "int2": ("smallint", 21, 1005),
    "int2vector": ("int2vector", 22, 1006),
    "int4": ("integer", 23, 1007),
    "regproc": ("regproc", 24, 1008),
    "text": ("text", 25, 1009),
    "oid": ("oid", 26, 1028),
    "float4": ("real", 700, 1021),
    "float8": ("double precision", 701, 1022),
    "unknown": ("unknown", 705, 1009),
    "aclitem": ("aclitem", 1033, 1034),
    "bpchar": ("character", 1042, 1014),
    "varchar": ("character varying", 1043, 1015),
    "date": ("date", 1082, 1182),
    "time": ("time", 1083, 1183),
    "timestamp": ("timestamp without time zone", 1114, 1115),
    "timestamptz": ("timestamp with time zone", 1184, 1185),
    "interval": ("interval", 1186, 1187),
    "numeric": ("numeric", 1700, 1231),
    "regclass": ("regclass", 2205, 2210),
    "regtype": ("regtype", 2206, 2211),
    "record": ("record", 2249, 2287),
    "uuid": ("uuid", 2950, 2951),
    "jsonb": ("jsonb", 3802, 3807),
    "uint2": ("uint2", 16460, 16461),
    "uint4": ("uint4", 16462, 16463),
    "uint8": ("uint8", 16464, 16465),
    "mz_timestamp": ("mz_timestamp", 16552, 16553),
    "mz_aclitem": ("mz_aclitem", 16566, 16567),
}
# subtype -> (range name, oid, oid of the array type)
_RANGES: dict[str, tuple[str, int, int]] = {
    "int4": ("int4range", 3904, 3905),
    "numeric": ("numrange", 3906, 3907),
    "timestamp": ("tsrange", 3908, 3909),
    "timestamptz": ("tstzrange", 3910, 3911),
    "date": ("daterange", 3912, 3913),
    "int8": ("int8range", 3926, 3927),
}
LIST_OID = 16384
MAP_OID = 16385
NUMERIC_MAX_PRECISION = 39

_ALIASES: dict[str, str] = {
    "boolean": "bool",
    "integer": "int4",
    "int": "int4",
    "smallint": "int2",
    "bigint": "int8",
    "real": "float4",
    "float": "float8",
    "double": "float8",
    "double precision": "float8",
    "decimal": "numeric",
    "dec": "numeric",
    "string": "text",
    "bytes": "bytea",
    "json": "jsonb",
    "character varying": "varchar",
    "character": "bpchar",
    '"char"': "char",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamptz",
    "time without time zone": "time",
}


def type_name(typ: ScalarType) -> str:
    """The type as PostgreSQL's format_type prints it, modifiers included; a custom type by its own name."""
    if typ.custom is not None:
        return typ.custom
    kind = typ.kind
    if kind == "array":
        assert typ.element is not None
        return f"{type_name(typ.element)}[]"
    if kind == "list":
        assert typ.element is not None
        return f"{type_name(typ.element)} list"
    if kind == "map":
        assert typ.element is not None
        return f"map[text=>{type_name(typ.element)}]"
    if kind == "range":
        assert typ.element is not None
        return _RANGES[typ.element.kind][0] if typ.element.kind in _RANGES else f"{type_name(typ.element)} range"
    if kind == "record" and typ.fields:
        fields = (f"{n}: {type_name(c.scalar)}{'?' if c.nullable else ''}" for n, c in typ.fields)
        return f"record({','.join(fields)})"
    name = _SCALARS[kind][0]
    if kind == "numeric" and typ.scale is not None:
        return f"numeric({typ.precision or NUMERIC_MAX_PRECISION},{typ.scale})"
    if kind in ("varchar", "bpchar") and typ.length is not None:
        return f"{name}({typ.length})"
    if kind in ("timestamp", "timestamptz") and typ.precision is not None:
        return name.replace("timestamp", f"timestamp({typ.precision})")
    return name


def oid_of(typ: ScalarType) -> int:
    """The type's OID, as a row description or pg_type carries it."""
    kind = typ.kind
    if kind == "list":
        return LIST_OID
    if kind == "map":
        return MAP_OID
    if kind == "range":
        assert typ.element is not None
        return _RANGES[typ.element.kind][1]
    if kind == "array":
        element = typ.element
        assert element is not None
        if element.kind == "range":
            assert element.element is not None
            return _RANGES[element.element.kind][2]
        return _SCALARS[element.kind][2] if element.kind in _SCALARS else 2277  # anyarray
    return _SCALARS[kind][1]


def _by_oid() -> dict[int, ScalarType]:
    out: dict[int, ScalarType] = {}
    for kind, (_, oid, array_oid) in _SCALARS.items():
        if kind == "record":
            continue
        out[oid] = ScalarType(kind)
        out.setdefault(array_oid, array_of(ScalarType(kind)))
    for kind, (_, oid, array_oid) in _RANGES.items():
        out[oid] = range_of(ScalarType(kind))
        out[array_oid] = array_of(range_of(ScalarType(kind)))
    out[114] = t.JSONB  # PostgreSQL's json: a parameter of that type is read as jsonb
    return out


_TYPE_OF_OID = _by_oid()
_BY_NAME: dict[str, ScalarType] = {
    **{kind: ScalarType(kind) for kind in _SCALARS if kind not in ("char", "record")},
    **{name: range_of(ScalarType(kind)) for kind, (name, _, _) in _RANGES.items()},
    **{alias: ScalarType(kind) for alias, kind in _ALIASES.items()},
    # Without quotes, char is character(1); the internal one-byte type is spelled "char" (see _ALIASES).
    "char": ScalarType("bpchar", length=1),
}


def type_of_oid(oid: int) -> ScalarType | None:
    """The type an OID stands for; None when there is none (or it needs an element type that the OID does not say)."""
    return _TYPE_OF_OID.get(oid)


def type_by_name(name: str) -> ScalarType | None:
    """The built-in type called `name` (any of its spellings, `[]` and ` list` suffixes included), without modifiers."""
    key = " ".join(name.lower().split()).removeprefix("pg_catalog.").removeprefix("mz_catalog.")
    if key.endswith("[]"):
        element = type_by_name(key[:-2])
        return None if element is None else array_of(element)
    if key.endswith(" list"):
        element = type_by_name(key[:-5])
        return None if element is None else t.list_of(element)
    if key.startswith("_") and key[1:] in _BY_NAME:
        return array_of(_BY_NAME[key[1:]])
    if key.startswith("map[text=>") and key.endswith("]"):
        value = type_by_name(key[len("map[text=>") : -1])
        return None if value is None else t.map_of(value)
    return _BY_NAME.get(key)
