"""The shell: what a person who knows psql or pgcli expects, and SUBSCRIBE as a table that updates in place.

Talks to a server through psycopg only, so it also works with Materialize and PostgreSQL. Reading order:

    tokens ▸ script                      where statements and commands end
    client ▸ messages ▸ table ▸ output   one connection; errors and results laid out as psql does
    shell ▸ interrupts                   runs a statement: settings, Ctrl-C, timing, lost servers
    registry ▸ commands ▸ commands_*     \\g, \\x, \\i, \\copy, ...
    catalog ▸ catalog_* ▸ describe       \\d and its family
    subscribe ▸ live                     the change feed, added up and drawn
    keywords ▸ highlight ▸ scope ▸ completion ▸ prompt
    batch, app                           the two ways in
"""
