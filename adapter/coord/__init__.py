"""The coordinator: sessions, transactions, time.

    session ─▶ planning ─▶ sequencer ─▶ catalog | group_commit | controller ─▶ result

Reading order:
    result                what a statement gives back: the front end's side of the contract
    session               one client's conversation; the only interface a front end uses
    transaction           what a transaction may still do
    waiting               how cancel, timeout and a lost client end a wait
    planning, revisions   prepared statements, and when a remembered plan is still right
    oracle, timestamp_selection, pins      which time a read is at, and how long a time stays readable
    group_commit          how writes become durable together
    session_vars, system_vars, var_types   SET and ALTER SYSTEM
    coordinator, catalog_reads, runtime_facts, storage_link    who owns all this
"""
