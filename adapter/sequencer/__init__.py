"""The sequencer: plans to effects and rows, one kind of statement a module.

    execute                        the dispatch                                       <- start here
    peek_plan, peek, peek_answer   SELECT: planned, timed, run, finished
    fast_path, mfp, generic        reads without a dataflow; plans for any parameter value
    inline, scalars, values, catalog_functions     what is put into a plan before it is optimized
    interpret, interpret_groups    constants and catalog relations, evaluated here
    dataflows, maintained, bootstrap               descriptions; indexes and materialized views; starting up
    dml, copy, copy_format         writes
    subscribe, subscribe_output, cursors           streams and pieces
    ddl, ddl_drop, ddl_alter, clusters, sources, roles, refresh, settings, explain

A SELECT: execute ─▶ peek_plan.plan_read ─▶ peek.run ─▶ controller.peek ─▶ peek_answer.peek_rows ─▶ finishing.finish
"""
