"""Scalar functions and operators: one registry, one module per family.

registry      FunctionEntry, FUNCTIONS (by id), by_name, bind
polymorphic   anyelement and friends;  type_ids: types as text inside ids
families      each module registers its overloads on import
"""

from mzlite.expr.functions.registry import FUNCTIONS, FunctionEntry, bind, by_name

from mzlite.expr.functions import (  # isort: skip
    arithmetic,
    boolean,
    bytes,
    comparison,
    dates,
    math,
    number_casts,
    patterns,
    text,
    text_casts,
    time_functions,
)

FAMILIES = (
    arithmetic,
    boolean,
    bytes,
    comparison,
    dates,
    math,
    number_casts,
    patterns,
    text,
    text_casts,
    time_functions,
)

__all__ = ["FAMILIES", "FUNCTIONS", "FunctionEntry", "bind", "by_name"]
