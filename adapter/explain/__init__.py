"""EXPLAIN: plans of every stage as text or JSON.

    explain(stage, explained, options, names) -> str

stage      "raw" | "decorrelated" | "locally_optimized" | "optimized" | "physical"
explained  `Explained(mir, finishing=…, fast_path=…, imports=…, cluster=…)`: what is known of the query by then; for
           "raw" only `raw_text`
options    `ExplainOptions.parse(("humanized expressions", "arity"), format, verbose)`; raises SqlError
names      `Names`: full and short names of items, and their columns' names

    options.py     which attributes to show, and how
    explained.py   what is explained
    names.py       the name of every column of every node, where it has one
    mir.py         relation expressions, a node a line
    fast_path.py   peeks without a dataflow
    usage.py       which indexes a plan reads, and how
    lir.py         physical plans, one line a node with its fields below (VERBOSE TEXT)
    arrow.py       physical plans in short form (TEXT)
    json.py        any plan as JSON
    blocks.py      heading, Source, Used Indexes, Target cluster, Notices

Source: Materialize's EXPLAIN PLAN.
"""

from adapter.explain.explain import explain
from adapter.explain.explained import Explained
from adapter.explain.names import Names
from adapter.explain.options import ExplainOptions

__all__ = ["ExplainOptions", "Explained", "Names", "explain"]
