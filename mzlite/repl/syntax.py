"""What `\\h` knows: each statement's purpose and syntax. Source: Materialize's SQL reference, shortened."""

from __future__ import annotations

_SELECT = """\
[ WITH name AS ( query ) [, ...]
| WITH MUTUALLY RECURSIVE [ ( RECURSION LIMIT n ) ] name ( column type [, ...] ) AS ( query ) [, ...] ]
SELECT [ ALL | DISTINCT [ ON ( expression [, ...] ) ] ] expression [ [ AS ] name ] [, ...]
    [ FROM table [ [ INNER | LEFT | RIGHT | FULL | CROSS ] JOIN table { ON condition | USING ( column [, ...] ) } ] ]
    [ WHERE condition ] [ GROUP BY expression [, ...] ] [ HAVING condition ]
    [ { UNION | INTERSECT | EXCEPT } [ ALL ] query ]
    [ ORDER BY expression [ ASC | DESC ] [ NULLS { FIRST | LAST } ] [, ...] ]
    [ LIMIT n ] [ OFFSET n ] [ AS OF timestamp ]"""

SYNTAX: dict[str, tuple[str, str]] = {
    "ALTER CLUSTER": (
        "change a cluster",
        "ALTER CLUSTER name SET ( option = value [, ...] )\nALTER CLUSTER name RENAME TO new_name",
    ),
    "ALTER TABLE": ("change a table", "ALTER TABLE name RENAME TO new_name\nALTER TABLE name OWNER TO role"),
    "BEGIN": ("start a transaction", "BEGIN [ TRANSACTION ] [ ISOLATION LEVEL level ] [ READ ONLY | READ WRITE ]"),
    "CLOSE": ("close a cursor", "CLOSE name"),
    "COMMENT ON": ("describe an object", "COMMENT ON { TABLE | VIEW | COLUMN | ... } name IS { 'text' | NULL }"),
    "COMMIT": ("end a transaction and keep its effects", "COMMIT [ TRANSACTION | WORK ]"),
    "COPY": (
        "move data between a table and the client",
        "COPY table [ ( column [, ...] ) ] FROM STDIN [ [ WITH ] ( option value [, ...] ) ]\n"
        "COPY { table | ( query ) | ( SUBSCRIBE ... ) } TO STDOUT [ [ WITH ] ( option value [, ...] ) ]\n\n"
        "options: FORMAT { TEXT | CSV | BINARY }, DELIMITER, NULL, QUOTE, ESCAPE, HEADER",
    ),
    "CREATE CLUSTER": (
        "create a cluster: processes that maintain views and answer queries",
        "CREATE CLUSTER name ( SIZE = 'size' [, REPLICATION FACTOR = n ] )\n"
        "CREATE CLUSTER name REPLICAS ( replica ( SIZE = 'size' ) [, ...] )",
    ),
    "CREATE DATABASE": ("create a database", "CREATE DATABASE [ IF NOT EXISTS ] name"),
    "CREATE INDEX": (
        "keep a relation's rows in memory, arranged by a key",
        "CREATE INDEX [ name ] [ IN CLUSTER cluster ] ON relation ( expression [, ...] )\n"
        "CREATE DEFAULT INDEX [ IN CLUSTER cluster ] ON relation",
    ),
    "CREATE MATERIALIZED VIEW": (
        "create a view whose rows are stored and kept up to date",
        "CREATE [ OR REPLACE ] MATERIALIZED VIEW [ IF NOT EXISTS ] name [ ( column [, ...] ) ]\n"
        "    [ IN CLUSTER cluster ] [ WITH ( option = value [, ...] ) ] AS query",
    ),
    "CREATE SCHEMA": ("create a schema", "CREATE SCHEMA [ IF NOT EXISTS ] [ database. ] name"),
    "CREATE SOURCE": (
        "create a source of data",
        "CREATE SOURCE [ IF NOT EXISTS ] name [ IN CLUSTER cluster ]\n"
        "    FROM LOAD GENERATOR { COUNTER | AUCTION | TPCH | ... } [ ( option value [, ...] ) ]\n"
        "    [ FOR ALL TABLES | FOR TABLES ( name [ AS alias ] [, ...] ) ]",
    ),
    "CREATE TABLE": (
        "create a table",
        "CREATE TABLE [ IF NOT EXISTS ] name\n    ( column type [ NOT NULL ] [ DEFAULT expression ] [, ...] )",
    ),
    "CREATE TYPE": (
        "create a type",
        "CREATE TYPE name AS LIST ( ELEMENT TYPE = type )\n"
        "CREATE TYPE name AS MAP ( KEY TYPE = text, VALUE TYPE = type )\n"
        "CREATE TYPE name AS ( field type [, ...] )",
    ),
    "CREATE VIEW": (
        "give a query a name",
        "CREATE [ OR REPLACE ] [ TEMPORARY ] VIEW [ IF NOT EXISTS ] name [ ( column [, ...] ) ] AS query",
    ),
    "DECLARE": ("create a cursor", "DECLARE name CURSOR FOR { query | SUBSCRIBE ... }"),
    "DELETE": (
        "delete rows of a table",
        "DELETE FROM table [ [ AS ] alias ] [ USING table [, ...] ] [ WHERE condition ]",
    ),
    "DROP": (
        "remove an object",
        "DROP { TABLE | VIEW | MATERIALIZED VIEW | INDEX | SOURCE | CLUSTER | SCHEMA | DATABASE | ... }\n"
        "    [ IF EXISTS ] name [, ...] [ CASCADE | RESTRICT ]",
    ),
    "EXECUTE": ("run a prepared statement", "EXECUTE name [ ( value [, ...] ) ]"),
    "EXPLAIN": (
        "show how a statement would run",
        "EXPLAIN [ { RAW | DECORRELATED | OPTIMIZED | PHYSICAL } PLAN ] [ WITH ( option [, ...] ) ]\n"
        "    [ AS { TEXT | JSON } ] FOR { query | VIEW name | MATERIALIZED VIEW name | INDEX name }\n"
        "EXPLAIN TIMESTAMP FOR query",
    ),
    "FETCH": ("read rows from a cursor", "FETCH [ n | ALL | FORWARD ] [ FROM ] name [ WITH ( timeout = 'interval' ) ]"),
    "INSERT": (
        "insert rows into a table",
        "INSERT INTO table [ ( column [, ...] ) ] { VALUES ( expression [, ...] ) [, ...] | query }\n"
        "    [ RETURNING expression [, ...] ]",
    ),
    "PREPARE": ("prepare a statement", "PREPARE name [ ( type [, ...] ) ] AS statement"),
    "ROLLBACK": ("end a transaction and undo its effects", "ROLLBACK [ TRANSACTION | WORK ]"),
    "SELECT": ("query data", _SELECT),
    "SET": ("change a session variable", "SET [ SESSION | LOCAL ] name { TO | = } { value | DEFAULT }"),
    "SHOW": (
        "show objects, definitions or variables",
        "SHOW { TABLES | VIEWS | MATERIALIZED VIEWS | SOURCES | SINKS | INDEXES | OBJECTS } [ FROM schema ]\n"
        "    [ LIKE 'pattern' | WHERE condition ]\n"
        "SHOW { DATABASES | SCHEMAS | CLUSTERS | CLUSTER REPLICAS | ROLES | TYPES }\n"
        "SHOW COLUMNS FROM relation\nSHOW INDEXES ON relation\n"
        "SHOW CREATE { TABLE | VIEW | MATERIALIZED VIEW | INDEX | SOURCE } name\nSHOW { name | ALL }",
    ),
    "SUBSCRIBE": (
        "follow the changes of a relation or query",
        "SUBSCRIBE [ TO ] { relation | ( query ) }\n"
        "    [ ENVELOPE { UPSERT | DEBEZIUM } ( KEY ( column [, ...] ) )\n"
        "    | WITHIN TIMESTAMP ORDER BY expression [ ASC | DESC ] [, ...] ]\n"
        "    [ WITH ( { SNAPSHOT | PROGRESS } [ = boolean ] [, ...] ) ] [ AS OF timestamp ] [ UP TO timestamp ]",
    ),
    "TABLE": ("all rows of a relation", "TABLE name"),
    "UPDATE": (
        "change rows of a table",
        "UPDATE table [ [ AS ] alias ] SET column = expression [, ...] [ WHERE condition ]",
    ),
    "VALUES": ("rows written out", "VALUES ( expression [, ...] ) [, ...]"),
}
