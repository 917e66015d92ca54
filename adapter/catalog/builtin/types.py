"""The builtin types as catalog rows: oids, categories and array types as PostgreSQL and Materialize number them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BuiltinType:
    """schema: pg_catalog or mz_catalog. category: pg_type.typcategory. length: pg_type.typlen. array: oid of its array type, 0 if none.
    element: of array types, the element's oid. kind: ScalarType kind, empty when it has no values."""

    name: str
    oid: int
    schema: str
    category: str
    length: int
    array: int = 0
    element: int = 0
    kind: str = ""
    pseudo: bool = False
    range_of: int = 0

    @property
    def mz_category(self) -> str:
        return _MZ_CATEGORIES.get(self.category, "user-defined") if self.category != "U" else _U_CATEGORY(self.name)


_MZ_CATEGORIES = {
    "A": "array",
    "B": "boolean",
    "D": "date-time",
    "N": "numeric",
    "P": "pseudo",
    "R": "range",
    "S": "string",
    "T": "timespan",
    "U": "user-defined",
    "V": "bit-string",
}


def _U_CATEGORY(name: str) -> str:
    return "list" if name == "list" else "user-defined"


# name, oid, typlen, category, array oid, kind
_SCALARS: tuple[tuple[str, int, int, str, int, str], ...] = (
    ("bool", 16, 1, "B", 1000, "bool"),
    ("bytea", 17, -1, "U", 1001, "bytea"),
    ("char", 18, 1, "S", 1002, "char"),
    ("name", 19, 64, "S", 1003, "name"),
    ("int8", 20, 8, "N", 1016, "int8"),
    ("int2", 21, 2, "N", 1005, "int2"),
    ("int2vector", 22, -1, "A", 1006, "int2vector"),
    ("int4", 23, 4, "N", 1007, "int4"),
    ("regproc", 24, 4, "N", 1008, "regproc"),
    ("text", 25, -1, "S", 1009, "text"),
    ("oid", 26, 4, "N", 1028, "oid"),
    ("json", 114, -1, "U", 199, ""),
    ("float4", 700, 4, "N", 1021, "float4"),
    ("float8", 701, 8, "N", 1022, "float8"),
    ("aclitem", 1033, 12, "U", 1034, "aclitem"),
    ("bpchar", 1042, -1, "S", 1014, "bpchar"),
    ("varchar", 1043, -1, "S", 1015, "varchar"),
    ("date", 1082, 4, "D", 1182, "date"),
    ("time", 1083, 8, "D", 1183, "time"),
    ("timestamp", 1114, 8, "D", 1115, "timestamp"),
    ("timestamptz", 1184, 8, "D", 1185, "timestamptz"),
    ("interval", 1186, 16, "T", 1187, "interval"),
    ("numeric", 1700, -1, "N", 1231, "numeric"),
    ("regtype", 2206, 4, "N", 2211, "regtype"),
    ("regclass", 2205, 4, "N", 2210, "regclass"),
    ("uuid", 2950, 16, "U", 2951, "uuid"),
    ("jsonb", 3802, -1, "U", 3807, "jsonb"),
)
_PSEUDO: tuple[tuple[str, int, str], ...] = (
    ("record", 2249, "pg_catalog"),
    ("any", 2276, "pg_catalog"),
    ("anyarray", 2277, "pg_catalog"),
    ("anyelement", 2283, "pg_catalog"),
    ("anynonarray", 2776, "pg_catalog"),
    ("anyrange", 3831, "pg_catalog"),
    ("anycompatible", 5077, "pg_catalog"),
    ("anycompatiblearray", 5078, "pg_catalog"),
    ("anycompatiblenonarray", 5079, "pg_catalog"),
    ("anycompatiblerange", 5080, "pg_catalog"),
    ("internal", 2281, "pg_catalog"),
    ("unknown", 705, "pg_catalog"),
    ("void", 2278, "pg_catalog"),
    ("list", 16384, "mz_catalog"),
    ("map", 16385, "mz_catalog"),
    ("anycompatiblelist", 16453, "mz_catalog"),
    ("anycompatiblemap", 16455, "mz_catalog"),
)
_MZ: tuple[tuple[str, int, int, int, str], ...] = (
    ("uint2", 16460, 2, 16461, "uint2"),
    ("uint4", 16462, 4, 16463, "uint4"),
    ("uint8", 16464, 8, 16465, "uint8"),
    ("mz_timestamp", 16552, 8, 16553, "mz_timestamp"),
    ("mz_aclitem", 16566, -1, 16567, "mz_aclitem"),
)
_RANGES: tuple[tuple[str, int, int, int], ...] = (
    ("int4range", 3904, 23, 3905),
    ("numrange", 3906, 1700, 3907),
    ("tsrange", 3908, 1114, 3909),
    ("tstzrange", 3910, 1184, 3911),
    ("daterange", 3912, 1082, 3913),
    ("int8range", 3926, 20, 3927),
)


def _all() -> list[BuiltinType]:
    found: list[BuiltinType] = []

    def scalar(
        name: str, oid: int, length: int, category: str, array: int, kind: str, schema: str, of: int = 0
    ) -> None:
        found.append(BuiltinType(name, oid, schema, category, length, array, 0, kind, False, of))
        if array:
            found.append(BuiltinType(f"_{name}", array, schema, "A", -1, 0, oid, "array"))

    for name, oid, length, category, array, kind in _SCALARS:
        scalar(name, oid, length, category, array, kind, "pg_catalog")
    for name, oid, subtype, array in _RANGES:
        scalar(name, oid, -1, "R", array, "range", "pg_catalog", subtype)
    for name, oid, length, array, kind in _MZ:
        scalar(name, oid, length, "N" if kind.startswith("uint") else "U", array, kind, "mz_catalog")
    for name, oid, schema in _PSEUDO:
        found.append(BuiltinType(name, oid, schema, "P", 4, pseudo=True))
    return sorted(found, key=lambda b: b.oid)


BUILTIN_TYPES: tuple[BuiltinType, ...] = tuple(_all())
BY_OID: dict[int, BuiltinType] = {b.oid: b for b in BUILTIN_TYPES}
BY_KIND: dict[str, BuiltinType] = {b.kind: b for b in BUILTIN_TYPES if b.kind and b.kind not in ("array", "range")}
BY_NAME: dict[str, BuiltinType] = {b.name: b for b in BUILTIN_TYPES}
RANGE_BY_SUBTYPE: dict[int, BuiltinType] = {b.range_of: b for b in BUILTIN_TYPES if b.range_of}


def type_id(oid: int) -> str:
    return f"s{oid}"
