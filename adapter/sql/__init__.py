"""SQL: from text to plans.

    text --parse--> statements, ast --plan--> HIR --lower--> MIR, inside a Plan

Reading order: `parse` (sqlglot's tokens, our grammar), `ast` and `statements` (what was written), `plan` (names, types: what it means), `hir`
(relations and scalars, still correlated), `lower` (decorrelation), `plans` (the sequencer's input). `catalog_view` says what planning asks of
the catalog and the session; `unparse` prints trees back as canonical SQL.
"""
