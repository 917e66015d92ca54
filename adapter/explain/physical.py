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
from mzlite.expr import relation as r
from mzlite.repr.ids import GlobalId


def physical_lir(mir: r.Mir, explained: Explained) -> Lir:
    indexes = {} if explained.imports is None else explained.imports.indexes
    index_imports = {id: IndexImport(desc, typ) for id, (desc, typ) in indexes.items()}
    ((_, lir),) = lower([(GlobalId("t0"), mir)], index_imports, single_time=explained.single_time)
    return lir


def physical_lines(mir: r.Mir, explained: Explained, options: ExplainOptions, names: Names) -> list[str]:
    lir = physical_lir(mir, explained)
    if options.verbose:
        return verbose_lines(lir, explained, options, names)
    return arrow_lines(lir, explained, options, names)
