"""Scalar functions and operators: one registry, one module per family.

registry      FunctionEntry, FUNCTIONS (by id), by_name, bind
polymorphic   anyelement and friends;  type_ids: types as text inside ids
families      each module registers its overloads on import
"""

from mzlite.expr.functions.registry import FUNCTIONS, FunctionEntry, bind, by_name

from mzlite.expr.functions import (  # isort: skip
    arithmetic,
    arrays,
    boolean,
    bytes,
    comparison,
    dates,
    identifiers,
    jsonb,
    lists,
    math,
    number_casts,
    patterns,
    ranges,
    records,
    system,
    text,
    text_casts,
    time_functions,
)

FAMILIES = (
    arithmetic,
    arrays,
    boolean,
    bytes,
    comparison,
    dates,
    identifiers,
    jsonb,
    lists,
    math,
    number_casts,
    patterns,
    ranges,
    records,
    system,
    text,
    text_casts,
    time_functions,
)

__all__ = ["FAMILIES", "FUNCTIONS", "FunctionEntry", "bind", "by_name"]
