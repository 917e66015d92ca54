"""The MIR optimizer: one rule a file, one ordered list (`pipeline.py`).

    pipeline.py             the list with a line of reason for each rule, the runner, the check after every rule
    context.py              what rules may ask: types, indexes, whether the plan is read at one time only

    shape                   fusion, canonicalize_mfp, elision, normalize_lets (sharing, common subexpressions)
    constants               fold_constants, simplify_scalars, flat_map_elimination, literal_lifting
    facts                   equivalence_propagation (over facts.py), non_null_requirements, monotonicity
    down                    predicate_pushdown, projection_pushdown
    groups and limits       reduce_elision, distinct_fusion, top_k_fusion, window_top_k
    differences             union_cancellation, threshold_elision (over subset.py)
    joins                   redundant_join, semijoin_idempotence, key_semijoin, literal_constraints,
                            join_implementation (after join_inputs.py)

A rule is rule(e, context) -> e; the answer stays the same multiset. It never fails on a plan it does not understand: it
returns it unchanged, and the same object when it has nothing to say. Errors count as rows: a rule may make a plan fail
less (what is not computed does not fail), never more, except that filters move below joins.
"""

from adapter.transform.context import Context, IndexInfo
from adapter.transform.pipeline import optimize_dataflow, optimize_local, optimize_read

__all__ = ["Context", "IndexInfo", "optimize_dataflow", "optimize_local", "optimize_read"]
