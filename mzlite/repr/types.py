"""SQL types, and the physical layout that carries each.

`ScalarType` is a closed, hashable description; modifiers (`length`, `scale`, `precision`) travel with it.

    layout      numpy dtype of FixedColumn.values                 kinds
    BOOL        bool_                                             bool
    I16/I32/I64 int16/int32/int64                                 int2, int4, int8
    U16/U32/U64 uint16/uint32/uint64                              uint2, uint4 + oid, reg*, uint8 + mz_timestamp
    F32/F64     float32/float64                                   float4, float8
    DATE        int32, days since 1970-01-01                      date
    TIME        int64, microseconds since midnight                time
    TIMESTAMP   int64, microseconds since 1970-01-01 (UTC)        timestamp, timestamptz
    INTERVAL    structured (months i4, days i4, us i8)            interval
    NUMERIC     scaled int64, or canonical bytes when wide        numeric
    VAR         bytes (canonical encoding, see `repr.datum`)      text varchar bpchar char name bytea jsonb uuid array list
                                                                  map record range int2vector
"""

from __future__ import annotations

import enum

import msgspec


class Layout(enum.Enum):
    BOOL = "bool"
    I16 = "i16"
    I32 = "i32"
    I64 = "i64"
    U16 = "u16"
    U32 = "u32"
    U64 = "u64"
    F32 = "f32"
    F64 = "f64"
    DATE = "date"
    TIME = "time"
    TIMESTAMP = "timestamp"
    INTERVAL = "interval"
    NUMERIC = "numeric"
    VAR = "var"


class ScalarType(msgspec.Struct, frozen=True):
    """An SQL type.

    kind: one of LAYOUTS' keys. length: varchar(n), bpchar(n), char. scale/precision: numeric(p, s), timestamp(p),
    time(p) (None = unconstrained). element: of array, list, map (value), range (subtype). fields: of record.
    custom: name of a CREATE TYPE type this was declared as (display and overloads only), else None.
    """

    kind: str
    length: int | None = None
    precision: int | None = None
    scale: int | None = None
    element: ScalarType | None = None
    fields: tuple[tuple[str, ColumnType], ...] | None = None
    custom: str | None = None

    @property
    def layout(self) -> Layout:
        return LAYOUTS[self.kind]

    def base(self) -> ScalarType:
        """The type without modifiers and custom name (element and fields stay)."""
        if self.length is None and self.precision is None and self.scale is None and self.custom is None:
            return self
        return ScalarType(self.kind, element=self.element, fields=self.fields)


class ColumnType(msgspec.Struct, frozen=True):
    scalar: ScalarType
    nullable: bool = True


class RelationType(msgspec.Struct, frozen=True):
    """Column types and unique keys (sets of column indexes; the empty key () means at most one row)."""

    columns: tuple[ColumnType, ...]
    keys: tuple[tuple[int, ...], ...] = ()

    @property
    def arity(self) -> int:
        return len(self.columns)


class RelationDesc(msgspec.Struct, frozen=True):
    """A named relation type: what a client or a catalog item shows."""

    names: tuple[str, ...]
    typ: RelationType


_L = Layout
LAYOUTS: dict[str, Layout] = {
    "bool": _L.BOOL,
    "int2": _L.I16,
    "int4": _L.I32,
    "int8": _L.I64,
    "uint2": _L.U16,
    "uint4": _L.U32,
    "uint8": _L.U64,
    "float4": _L.F32,
    "float8": _L.F64,
    "numeric": _L.NUMERIC,
    "oid": _L.U32,
    "regclass": _L.U32,
    "regproc": _L.U32,
    "regtype": _L.U32,
    "mz_timestamp": _L.U64,
    "date": _L.DATE,
    "time": _L.TIME,
    "timestamp": _L.TIMESTAMP,
    "timestamptz": _L.TIMESTAMP,
    "interval": _L.INTERVAL,
    "text": _L.VAR,
    "varchar": _L.VAR,
    "bpchar": _L.VAR,
    "char": _L.VAR,  # the internal "char" type
    "name": _L.VAR,
    "bytea": _L.VAR,
    "jsonb": _L.VAR,
    "uuid": _L.VAR,
    "array": _L.VAR,
    "list": _L.VAR,
    "map": _L.VAR,
    "record": _L.VAR,
    "range": _L.VAR,
    "int2vector": _L.VAR,
    "aclitem": _L.VAR,
    "mz_aclitem": _L.VAR,
    "unknown": _L.VAR,  # an untyped literal; only during planning
}

BOOL = ScalarType("bool")
INT2 = ScalarType("int2")
INT4 = ScalarType("int4")
INT8 = ScalarType("int8")
UINT2 = ScalarType("uint2")
UINT4 = ScalarType("uint4")
UINT8 = ScalarType("uint8")
FLOAT4 = ScalarType("float4")
FLOAT8 = ScalarType("float8")
NUMERIC = ScalarType("numeric")
OID = ScalarType("oid")
REGCLASS = ScalarType("regclass")
REGPROC = ScalarType("regproc")
REGTYPE = ScalarType("regtype")
MZ_TIMESTAMP = ScalarType("mz_timestamp")
DATE = ScalarType("date")
TIME = ScalarType("time")
TIMESTAMP = ScalarType("timestamp")
TIMESTAMPTZ = ScalarType("timestamptz")
INTERVAL = ScalarType("interval")
TEXT = ScalarType("text")
VARCHAR = ScalarType("varchar")
BPCHAR = ScalarType("bpchar")
CHAR = ScalarType("char")
NAME = ScalarType("name")
BYTEA = ScalarType("bytea")
JSONB = ScalarType("jsonb")
UUID = ScalarType("uuid")
INT2VECTOR = ScalarType("int2vector")
UNKNOWN = ScalarType("unknown")


def array_of(element: ScalarType) -> ScalarType:
    return ScalarType("array", element=element)


def list_of(element: ScalarType) -> ScalarType:
    return ScalarType("list", element=element)


def map_of(value: ScalarType) -> ScalarType:
    return ScalarType("map", element=value)


def range_of(subtype: ScalarType) -> ScalarType:
    return ScalarType("range", element=subtype)


def record_of(fields: tuple[tuple[str, ColumnType], ...]) -> ScalarType:
    return ScalarType("record", fields=fields)
