"""Expressions: what a query computes from a row, from a group, from a window; and the relations made of them.

    scalar  relation  mfp      the trees (HIR, MIR and LIR share the scalars)
    typing  typecheck          types of either
    functions/  casts          the registry: names, overloads, ids; which casts exist
    call  eval  mfp_eval       evaluation over columns: the kernel interface, compiled expressions, MapFilterProject
    aggregates                 additive states for the engine, finishing, collecting
    table_functions            rows from a row
    window_functions           values over sorted partitions
    kernels/                   the loops over arrays that all of these use
    text/                      MIR as text, both ways

Reading order: scalar, call, eval, functions/registry, one family (functions/arithmetic), its kernel (kernels/integers).
"""
