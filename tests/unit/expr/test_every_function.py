"""Every overload in the registry, on random arguments: whole columns give what one row at a time gives, errors included.

Many kernels have a vectorised way for many rows and a plain way for few; this holds them together, and shows that no
function answers a user's odd value with anything but a value or an SqlError.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from mzlite.expr.eval import eval_scalar
from mzlite.expr.functions import FUNCTIONS, FunctionEntry
from mzlite.expr.functions.polymorphic import container, is_pseudo
from mzlite.expr.scalar import Call, Ref
from mzlite.repr.column import Column
from mzlite.repr.datum import (
    JSON_NULL,
    ArrayDatum,
    Interval,
    RangeDatum,
    column_from_datums,
    column_to_datums,
    encode_datum,
)
from mzlite.repr.types import INT4, ColumnType, ScalarType, array_of, list_of, map_of, range_of, record_of

ROWS = 60
_SKIPPED = {"mz_sleep", "mz_panic", "cast_elements", "repeat_bytea_int4"}
_WORDS = [
    "",
    "a",
    "abc",
    "Hello World",
    "héllo",
    "12",
    " 3.5",
    "-7",
    "2020-01-31",
    "x%y",
    "a.*",
    "(b",
    "utf8",
    "hex",
    "md5",
    "day",
]
_WORDS += [
    "year",
    "true",
    "NaN",
    '{"a": [1, null]}',
    "1 day",
    "UTC",
    "America/New_York",
    "YYYY-MM-DD",
    "i",
    "\\x01",
    "[1,3)",
]
_FLOATS = [0.0, -0.0, 1.5, -2.5, 0.1, 1e300, -1e300, 1e-300, 3e9, float("nan"), float("inf"), float("-inf"), 7.0, 2.0]
_DECIMALS = ["0", "1", "-1.5", "0.001", "123456789.25", "1e20", "-1e-30", "NaN", "999999999999999999", "2", "-3", "10"]
_US = [0, 1, -1, 951_782_400_000_000, 1_580_515_199_999_999, -62_135_596_800_000_000, 1_614_000_000_123_456]

Make = Callable[[random.Random], Any]


def _range(rng: random.Random) -> RangeDatum:
    low = rng.randint(-5, 5)
    return rng.choice(
        [RangeDatum(empty=True), RangeDatum(low, low + rng.randint(1, 5), True, False), RangeDatum(low, None, True)]
    )


def _integer(bits: int, signed: bool) -> Make:
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    edges = [low, high, 0, 1, min(high, 5), max(low, -3)]
    return lambda rng: rng.choice([*edges, rng.randint(0, 9), rng.randint(low, high)])


MAKERS: dict[str, Make] = {
    "bool": lambda rng: rng.random() < 0.5,
    **{f"int{b // 8}": _integer(b, True) for b in (16, 32, 64)},
    **{f"uint{b // 8}": _integer(b, False) for b in (16, 32, 64)},
    **{kind: _integer(32, False) for kind in ("oid", "regclass", "regproc", "regtype")},
    "mz_timestamp": lambda rng: rng.choice([0, 1, 1_600_000_000_000, 2**64 - 1]),
    "float4": lambda rng: rng.choice([0.0, 1.5, -2.5, float("nan"), float("inf"), 7.0, -0.0]),
    "float8": lambda rng: rng.choice(_FLOATS),
    "numeric": lambda rng: Decimal(rng.choice(_DECIMALS)),
    "date": lambda rng: rng.choice([0, -1, 18_293, 11_016, -719_162, 95_026_236]),
    "time": lambda rng: rng.choice([0, 1, 43_200_000_000, 86_399_999_999]),
    "timestamp": lambda rng: rng.choice(_US),
    "timestamptz": lambda rng: rng.choice(_US),
    "interval": lambda rng: rng.choice(
        [
            Interval(0, 0, 0),
            Interval(1, 0, 0),
            Interval(0, 1, 5),
            Interval(-13, 2, -7),
            Interval(0, 0, 3_600_000_000),
            Interval(2**31 - 1, -(2**31), 2**63 - 1),
            Interval(-(2**31), 0, 0),
        ]
    ),
    **{
        kind: (lambda rng: rng.choice(_WORDS))
        for kind in ("text", "varchar", "name", "aclitem", "mz_aclitem", "unknown")
    },
    "bpchar": lambda rng: rng.choice(_WORDS).rstrip(" "),
    "char": lambda rng: rng.choice(["", "a", "Z"]),
    "bytea": lambda rng: rng.choice(_WORDS).encode() + bytes([rng.randint(0, 255)]) * rng.randint(0, 3),
    "uuid": lambda rng: bytes(rng.randint(0, 1) for _ in range(16)),
    "jsonb": lambda rng: rng.choice(
        [JSON_NULL, True, Decimal("1.5"), "a", [], [Decimal(1), "a", JSON_NULL], {}, {"a": [Decimal(1)], "b": "x"}]
    ),
    "int2vector": lambda rng: tuple(range(rng.randint(0, 3))),
}


def make(typ: ScalarType, rng: random.Random) -> Any:
    match typ.kind:
        case "array":
            assert typ.element is not None
            if rng.random() < 0.2:
                return ArrayDatum(((2, 1), (2, 1)), tuple(make(typ.element, rng) for _ in range(4)))
            return ArrayDatum.of(
                [make(typ.element, rng) if rng.random() < 0.8 else None for _ in range(rng.randint(0, 3))]
            )
        case "list":
            assert typ.element is not None
            return tuple(make(typ.element, rng) if rng.random() < 0.8 else None for _ in range(rng.randint(0, 3)))
        case "map":
            assert typ.element is not None
            return {k: make(typ.element, rng) for k in rng.sample(["a", "b", "c"], rng.randint(0, 3))}
        case "record":
            assert typ.fields is not None
            return tuple(make(c.scalar, rng) for _, c in typ.fields)
        case "range":
            assert typ.element is not None
            if typ.element.kind in ("int4", "int8", "date"):
                return _range(rng)
            return rng.choice([RangeDatum(empty=True), RangeDatum()])
        case kind:
            return MAKERS[kind](rng)


_RECORD = record_of((("f1", ColumnType(INT4)), ("f2", ColumnType(ScalarType("text")))))
_CONTAINERS = {"array": array_of(INT4), "list": list_of(INT4), "map": map_of(INT4), "range": range_of(INT4)}


def concrete(param: ScalarType) -> ScalarType:
    if not is_pseudo(param):
        return param
    if param.kind == "record":
        return _RECORD
    kind = container(param.kind)
    return INT4 if kind is None else _CONTAINERS[kind]


def arguments(entry: FunctionEntry) -> list[ScalarType]:
    types = [concrete(p) for p in entry.params]
    if entry.variadic is not None:
        types += [concrete(entry.variadic)] * 2
    if entry.id.startswith(("any_", "all_")) and ("like" in entry.id or "regex" in entry.id):
        text = ScalarType("text")
        return [text, list_of(text) if entry.id.endswith("_list") else array_of(text)]
    if entry.id == "list_index":
        return [list_of(INT4), ScalarType("int8")]
    if entry.id == "map_create":
        return [ScalarType("text"), INT4]
    if entry.id == "map_build":
        return [list_of(record_of((("k", ColumnType(ScalarType("text"))), ("v", ColumnType(INT4)))))]
    return types


_TARGETS = {"array": array_of(INT4), "list": list_of(INT4), "map": map_of(INT4), "range": range_of(INT4)}
ENTRIES = [
    e
    for e in list(FUNCTIONS.values())
    if e.kernel is not None and not e.unmaterializable and e.name not in _SKIPPED and e.id not in _SKIPPED
]


def evaluate(e: Call, columns: list[Column], n: int, typ: ScalarType) -> list[Any]:
    """A value a row (as canonical bytes, so that NaN equals NaN), or the error."""
    result = eval_scalar(e, columns, n)
    assert len(result.column) == n
    datums = column_to_datums(typ, result.column)
    out: list[Any] = [None if d is None else encode_datum(typ, d) for d in datums]
    if result.errors is not None:
        for row, error in zip(result.errors[0].tolist(), result.errors[1]):
            assert datums[row] is None
            out[row] = ("error", error)
    return out


@pytest.mark.parametrize("entry", ENTRIES, ids=[e.id for e in ENTRIES])
def test_batch_equals_rows(entry: FunctionEntry) -> None:
    types = arguments(entry)
    bound = entry.bind(types)
    typ = bound.result_type(types)
    if entry.is_cast and typ.kind in _TARGETS and typ.element is None:
        typ = array_of(ScalarType("int2")) if entry.id == "cast_int2vector_array" else _TARGETS[typ.kind]
    if entry.id == "record_get":
        typ = INT4
    rng = random.Random(entry.id)
    small = {"repeat", "lpad", "rpad", "<<", ">>"}  # keep results of these small
    data = []
    for i, t in enumerate(types):
        values = [None if rng.random() < 0.1 else make(t, rng) for _ in range(ROWS)]
        if t.kind in ("int4", "int8") and (entry.name in small or entry.id.startswith("array_fill")) and i > 0:
            values = [None if v is None else abs(v) % 50 for v in values]
        if entry.id == "record_get" and i == 1:
            values = [0] * ROWS
        data.append(values)
    call = Call(bound.id, tuple(Ref(i) for i in range(len(types))), typ)
    columns = [column_from_datums(t, values) for t, values in zip(types, data)]
    whole = evaluate(call, columns, ROWS, typ)
    single = []
    for row in range(ROWS):
        single += evaluate(call, [c.slice(row, row + 1) for c in columns], 1, typ)
    assert whole == single
    if entry.strict:
        for row in range(ROWS):
            if any(values[row] is None for values in data):
                assert whole[row] is None
    if entry.nullable == "never":
        assert None not in whole
    if not entry.can_error:
        assert not any(isinstance(v, tuple) for v in whole)
