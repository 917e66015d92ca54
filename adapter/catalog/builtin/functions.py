"""Functions and operators as catalog rows, read off the function registry."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from adapter.catalog.builtin import types as bt
from adapter.catalog.builtin.describe import type_oid
from adapter.catalog.state import CatalogState
from mzlite.expr.functions import FUNCTIONS
from mzlite.repr.types import ScalarType

FIRST_FUNCTION_OID = 12_000


@dataclass(frozen=True, slots=True)
class FunctionRow:
    oid: int
    schema: str
    name: str
    argument_oids: tuple[int, ...]
    variadic_oid: int
    return_oid: int
    returns_set: bool


def _oid(typ: ScalarType) -> int:
    pseudo = bt.BY_NAME.get(typ.kind)
    if pseudo is not None:
        return pseudo.oid
    try:
        return type_oid(CatalogState(), typ)
    except KeyError:
        return 2276


def _rows(operator: bool) -> tuple[FunctionRow, ...]:
    found: list[FunctionRow] = []
    for i, entry in enumerate(FUNCTIONS.values()):
        if bool(entry.operator) != operator or getattr(entry, "is_cast", False):
            continue
        returns = entry.returns
        return_oid = _oid(returns) if isinstance(returns, ScalarType) else 2283
        schema = "mz_catalog" if entry.name.startswith("mz_") else "pg_catalog"
        variadic = _oid(entry.variadic) if entry.variadic is not None else 0
        args = tuple(_oid(p) for p in entry.params)
        found.append(FunctionRow(FIRST_FUNCTION_OID + i, schema, entry.name, args, variadic, return_oid, False))
    return tuple(found)


@functools.cache
def functions() -> tuple[FunctionRow, ...]:
    return _rows(False)


@functools.cache
def operators() -> tuple[FunctionRow, ...]:
    return _rows(True)
