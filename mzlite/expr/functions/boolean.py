"""Boolean forms: AND, OR, NOT, IS tests, COALESCE (the lazy ones have no kernel: `mzlite.expr.eval` runs them)."""

from __future__ import annotations

import numpy as np

from mzlite.expr.functions.registry import register
from mzlite.expr.kernels import booleans
from mzlite.expr.kernels.adapt import elementwise
from mzlite.repr.types import Layout

register("and", "variadic bool -> bool", id="and", strict=False, can_error=False, infix="AND")
register("or", "variadic bool -> bool", id="or", strict=False, can_error=False, infix="OR")
register(
    "coalesce",
    "variadic anycompatible -> anycompatible",
    id="coalesce",
    strict=False,
    nullable="all_args",
    can_error=False,
    typed=False,
)
register("not", "bool -> bool", elementwise(np.logical_not, Layout.BOOL), id="not", can_error=False, display="NOT")
register(
    "is_null",
    "any -> bool",
    booleans.is_null,
    id="is_null",
    strict=False,
    nullable="never",
    can_error=False,
    typed=False,
    display="IS NULL",
)
register(
    "is_true",
    "bool -> bool",
    booleans.is_truth(True),
    id="is_true",
    strict=False,
    nullable="never",
    can_error=False,
    display="IS TRUE",
)
register(
    "is_false",
    "bool -> bool",
    booleans.is_truth(False),
    id="is_false",
    strict=False,
    nullable="never",
    can_error=False,
    display="IS FALSE",
)
