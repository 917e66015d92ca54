"""Physical plans: the LIR of a dataflow, in the arrow form (TEXT) or in full (VERBOSE TEXT)."""

from __future__ import annotations

from adapter.explain.arrow import arrow_lines
from adapter.explain.explained import Explained
from adapter.explain.lir import verbose_lines
from adapter.explain.names import Names
from adapter.explain.options import ExplainOptions
from compute.plan.description import IndexImport
from compute.plan.lir import Lir
from compute.plan.lower import lower
from mzlite.repr.ids import GlobalId


def physical_lir(explained: Explained) -> Lir:
    if explained.lir is not None:
        return explained.lir
    assert explained.mir is not None
    indexes = {} if explained.imports is None else explained.imports.indexes
    index_imports = {id: IndexImport(desc, typ) for id, (desc, typ) in indexes.items()}
    ((_, lir),) = lower([(GlobalId("t0"), explained.mir)], index_imports, single_time=explained.single_time)
    return lir


def physical_lines(explained: Explained, options: ExplainOptions, names: Names) -> list[str]:
    lir = physical_lir(explained)
    if options.verbose:
        return verbose_lines(lir, explained, options, names)
    return arrow_lines(lir, explained, options, names)
