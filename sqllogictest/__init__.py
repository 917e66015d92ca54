"""sqllogictest: run test files against any server that speaks the PostgreSQL protocol.

    records            what a file can say
    parser, expand     text to records; include and loop
    session            one connection: extended and simple protocol, over psycopg's libpq layer
    values, cells      binary values to text; the table of (type letter, type, mode)
    compare            an answer against an expectation
    sqlscan, views     --auto-index-selects
    clean              the state every file starts from
    server             where a server comes from (subprocess_server: one of our own; configurations: which)
    watchdog           the time limit of a file
    runner             one file on one server
    pool               --jobs
    report, diff, output, progress, rewrite
    __main__           the command line

It knows nothing of mzlite but the command that starts it. The dialect is written down in docs/sqllogictest.md.
"""
