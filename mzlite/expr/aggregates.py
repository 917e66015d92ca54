"""Aggregate functions: names and types for the planner, and what the engine needs to maintain each.

Three classes, by how a change of the input reaches the result:

accumulable   constant state per group: a vector of `lanes` int64 numbers that is a *sum over rows*. Exact integers, so
              a retraction undoes an insertion to the last bit, whatever came between.
                  entry.contribute(site, args, n) -> int64[n, lanes]    what one copy of each row adds; 0 for NULLs
                  state = sum(contribution * diff)                      plain int64 addition, any order, any split
                  entry.finish(site, state[g, lanes], errors) -> Column of g values
              Lanes cannot overflow before a group holds 2^31 rows (counting diffs).
hierarchical  min and max: the result is one of the input values. entry.take_last: greatest (max) or least (min) valid
              value by the column's order; NULL when there is none.
basic         recomputed from the whole group:
                  entry.collect(site, args, starts, errors) -> Column of len(starts) - 1 values
              args: rows sorted by (group, ORDER BY, whole row), each repeated diff times; starts: int64[g + 1] offsets.
              If `strict`, the engine must leave out rows where any argument is NULL before collecting.

A group that exists gives a row; whether its value is NULL is `finish`'s business (accumulable lanes count valid rows).
The global aggregate of an empty input is `entry.empty` (encoded datum, None = NULL).
site: `call_site(aggregate, arg_types)`; polymorphic entries are bound like functions ("array_agg<int4>"), so
`AGGREGATES[aggregate.func]` has concrete params and `call_site(func, typ)` needs no input types.

How sums stay exact (see `kernels.lanes`): integers as 32-bit limbs; numerics as base 10^9 limbs around the decimal
point; floats as a 288-bit fixed point number of 32-bit limbs (2^-128 .. 2^160; smaller bits are dropped, larger
magnitudes count as infinite), with NaN and both infinities counted apart. Materialize keeps 24 fractional bits of 128.

Source: Materialize's `expr/relation/func.rs` and `compute/render/reduce.rs` (Accum).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Literal

from mzlite.expr.call import Args, CallSite, RowErrors
from mzlite.expr.functions.registry import Nullability, Registry, Signature, bind, default_id, parse_signature
from mzlite.expr.kernels import collect as c
from mzlite.expr.kernels import lanes as k
from mzlite.expr.kernels import lanes_float as f
from mzlite.expr.kernels import lanes_numeric as m
from mzlite.expr.kernels import lanes_spread as s
from mzlite.expr.scalar import Aggregate
from mzlite.expr.typing import scalar_type
from mzlite.repr.column import I64, Column
from mzlite.repr.types import ColumnType, ScalarType, array_of, list_of, map_of

Contribute = Callable[[CallSite, Args, int], I64]
Finish = Callable[[CallSite, I64, RowErrors], Column]
Collect = Callable[[CallSite, Args, I64, RowErrors], Column]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class AggregateEntry(Signature):
    """One overload of an aggregate. Which of the callables is set follows from `kind` (see the module)."""

    kind: Literal["accumulable", "hierarchical", "basic"]
    strict: bool = True
    nullable: Nullability = "args"
    empty: bytes | None = None
    lanes: int = 0
    contribute: Contribute | None = None
    finish: Finish | None = None
    take_last: bool = False
    collect: Collect | None = None

    def bind(self, arg_types: Sequence[ScalarType]) -> AggregateEntry:
        return bind(self, arg_types)


AGGREGATES: Registry[AggregateEntry] = Registry()


def by_name(name: str) -> list[AggregateEntry]:
    return AGGREGATES.by_name(name)


def aggregate_name(func: str) -> str:
    """The SQL name behind an id: "sum" for "sum_int4"."""
    return AGGREGATES[func].name


def aggregate_type(aggregate: Aggregate, input_types: Sequence[ColumnType]) -> ColumnType:
    """Type of an aggregate over a group that has rows. (Over nothing at all, see `AggregateEntry.empty`.)"""
    nullable = AGGREGATES[aggregate.func].nullable
    if nullable == "args":
        args = aggregate.args[:1] if aggregate.args else ()
        empty = aggregate.filter is not None or any(scalar_type(a, input_types).nullable for a in args)
        return ColumnType(aggregate.typ, empty)
    return ColumnType(aggregate.typ, nullable == "always")


def call_site(func: str, typ: ScalarType) -> CallSite:
    """What the kernels of aggregate `func` with result type `typ` are called with."""
    return CallSite(func, AGGREGATES[func].params, typ)


def _sum_like(name: str, signature: str, lanes: k.LaneSum, finish: Finish, *, nullable: Nullability = "args") -> None:
    params, _, returns = parse_signature(signature)
    AGGREGATES.add(
        AggregateEntry(
            id=default_id(name, params),
            name=name,
            params=params,
            returns=returns,
            nullable=nullable,
            kind="accumulable",
            lanes=lanes.width,
            contribute=lanes.contribute,
            finish=finish,
        )
    )


def _register_accumulable() -> None:
    AGGREGATES.add(
        AggregateEntry(
            id="count",
            name="count",
            params=(ScalarType("any"),),
            returns=ScalarType("int8"),
            kind="accumulable",
            nullable="never",
            typed=False,
            empty=k.ZERO_INT8,
            lanes=1,
            contribute=k.contribute_count,
            finish=k.finish_count,
        )
    )
    for kind, result in (("int2", "int8"), ("int4", "int8"), ("uint2", "uint8"), ("uint4", "uint8")):
        _sum_like("sum", f"{kind} -> {result}", k.SMALL_INT, k.finish_sum_small)
    for kind in ("int8", "uint8"):
        _sum_like("sum", f"{kind} -> numeric", k.WIDE_INT, k.finish_sum_wide)
    for kind in ("float4", "float8"):
        _sum_like("sum", f"{kind} -> {kind}", f.FLOAT, f.finish_sum_float)
        _sum_like("avg", f"{kind} -> float8", f.FLOAT, f.finish_avg_float)
    _sum_like("sum", "numeric -> numeric", m.NUMERIC_SUM, m.finish_sum_numeric)
    _sum_like("sum", "interval -> interval", k.INTERVAL_SUM, k.finish_sum_interval)
    _sum_like("avg", "interval -> interval", k.INTERVAL_SUM, k.finish_avg_interval)
    for kind in ("int2", "int4", "uint2", "uint4"):
        _sum_like("avg", f"{kind} -> numeric", k.SMALL_INT, k.finish_avg_small)
    for kind in ("int8", "uint8"):
        _sum_like("avg", f"{kind} -> numeric", k.WIDE_INT, k.finish_avg_wide)
    _sum_like("avg", "numeric -> numeric", m.NUMERIC_SUM, m.finish_avg_numeric)
    _sum_like("bool_or", "bool -> bool", k.BOOL_LANES, k.finish_bool_or)
    _sum_like("bool_and", "bool -> bool", k.BOOL_LANES, k.finish_bool_and)
    # Materialize's own names, and the standard's.
    for name in ("mz_any",):
        _sum_like(name, "bool -> bool", k.BOOL_LANES, k.finish_bool_or)
    for name in ("mz_all", "every"):
        _sum_like(name, "bool -> bool", k.BOOL_LANES, k.finish_bool_and)
    spreads = {
        "variance": s.Spread(sample=True, root=False),
        "var_samp": s.Spread(sample=True, root=False),
        "var_pop": s.Spread(sample=False, root=False),
        "stddev": s.Spread(sample=True, root=True),
        "stddev_samp": s.Spread(sample=True, root=True),
        "stddev_pop": s.Spread(sample=False, root=True),
    }
    for name, spread in spreads.items():
        for kind in ("int2", "int4", "int8", "uint2", "uint4", "uint8"):
            _sum_like(name, f"{kind} -> numeric", s.INT_SQUARES, spread.finish_int, nullable="always")
        _sum_like(name, "numeric -> numeric", m.NUMERIC_SQUARES, spread.finish_numeric, nullable="always")
        for kind in ("float4", "float8"):
            _sum_like(name, f"{kind} -> float8", f.FLOAT_SQUARES, spread.finish_float, nullable="always")


_ORDERED = (
    "bool int2 int4 int8 uint2 uint4 uint8 float4 float8 numeric oid mz_timestamp date time timestamp timestamptz"
    " interval text varchar bpchar char name bytea uuid jsonb anyarray anylist anyrange record"
)


def _register_hierarchical() -> None:
    for name in ("min", "max"):
        for kind in _ORDERED.split():
            typ = ScalarType(kind)
            AGGREGATES.add(
                AggregateEntry(
                    id=f"{name}_{kind}",
                    name=name,
                    params=(typ,),
                    returns=lambda args: args[0],  # modifiers and all
                    kind="hierarchical",
                    typed=False,
                    take_last=name == "max",
                )
            )


def _basic(
    name: str,
    params: str,
    returns: ScalarType | Callable[[tuple[ScalarType, ...]], ScalarType],
    collect: Collect,
    *,
    strict: bool = False,
    id: str | None = None,
) -> None:
    types, _, _ = parse_signature(f"{params} -> any")
    AGGREGATES.add(
        AggregateEntry(
            id=id or name,
            name=name,
            params=types,
            returns=returns,
            kind="basic",
            strict=strict,
            nullable="args" if name == "string_agg" else "never",
            collect=collect,
        )
    )


def _register_basic() -> None:
    jsonb = ScalarType("jsonb")
    _basic("array_agg", "any", lambda args: args[0] if args[0].kind == "array" else array_of(args[0]), c.array_agg)
    _basic("list_agg", "any", lambda args: list_of(args[0]), c.list_agg)
    _basic("map_agg", "text, any", lambda args: map_of(args[1]), c.map_agg)
    _basic("jsonb_agg", "any", jsonb, c.jsonb_agg)
    _basic("jsonb_object_agg", "any, any", jsonb, c.jsonb_object_agg)
    _basic("string_agg", "text, text", ScalarType("text"), c.string_agg, id="string_agg_text")
    _basic("string_agg", "bytea, bytea", ScalarType("bytea"), c.string_agg, id="string_agg_bytea")


_register_accumulable()
_register_hierarchical()
_register_basic()
