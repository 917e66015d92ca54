"""Boolean kernels: NOT and the IS tests. AND, OR and COALESCE are lazy in errors and live in `mzlite.expr.eval`."""

from __future__ import annotations

import numpy as np

from mzlite.expr.call import Args, CallSite, Kernel, RowErrors
from mzlite.expr.kernels.adapt import values_of
from mzlite.repr.column import Column
from mzlite.repr.fixed import FixedColumn


def is_null(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
    return FixedColumn(args[0].is_null())


def is_not_null(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
    valid = args[0].valid
    return FixedColumn(np.ones(len(args[0]), np.bool_) if valid is None else valid)


def is_truth(wanted: bool) -> Kernel:
    """x IS TRUE, x IS FALSE."""

    def kernel(site: CallSite, args: Args, n: int, errors: RowErrors) -> Column:
        values = values_of(args[0]) if wanted else ~values_of(args[0])
        valid = args[0].valid
        return FixedColumn(values if valid is None else values & valid)

    return kernel
