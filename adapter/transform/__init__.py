"""The MIR optimizer: one rule a file, one ordered list (`pipeline.py`).

    pipeline.py             the list, the runner, the check after every rule
    context.py              what rules may ask: types, indexes
    <rule>.py               rule(e, context) -> e; the answer stays the same multiset

A rule never fails on a plan it does not understand: it returns it unchanged.
"""

from adapter.transform.context import Context, IndexInfo
from adapter.transform.pipeline import optimize_dataflow, optimize_local, optimize_read

__all__ = ["Context", "IndexInfo", "optimize_dataflow", "optimize_local", "optimize_read"]
