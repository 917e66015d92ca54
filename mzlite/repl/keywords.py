"""Words of the language: for highlighting and completion. Source: Materialize's keyword list and function reference."""

from __future__ import annotations


def words(text: str) -> tuple[str, ...]:
    """The words of a text: a list of many that can still be read."""
    return tuple(text.split())


# Words that Materialize's SQL has and pygments' PostgreSQL lexer does not colour.
MATERIALIZE_KEYWORDS = frozenset(
    words(
        """
    ASOF CLUSTER CLUSTERS COLUMNS CONNECTION CONNECTIONS COUNTER CREATE CSV DATABASES DEBEZIUM DECORRELATED
    DETAILS ENVELOPE EXPLAIN EXPOSE FACTOR FORMAT GENERATOR GRANULARITY IGNORE INDEXES INTROSPECTION JSON
    KAFKA KEY LATERAL LEVEL LOAD LOCALLY MATERIALIZED MUTUALLY NETWORK OBJECTS OPTIMIZED OPTIMIZER PHYSICAL
    PLAN PLANS POLICY PROGRESS RAW RECURSION RECURSIVE REFRESH REHYDRATION REPLICA REPLICAS REPLICATION RETAIN
    ROLES SCHEMAS SECRET SECRETS SHOW SINK SINKS SIZE SNAPSHOT SOURCE SOURCES STRICT SUBSCRIBE SUBSOURCE
    SUBSOURCES TABLES TIMESTAMP TO TYPES UP UPSERT VIEWS WEBHOOK WITHIN WORKERS
    """
    )
)

KEYWORDS = words(
    """
    ADD ALL ALTER AND ANY ARRAY AS ASC AT BEGIN BETWEEN BY CASCADE CASE CAST CHECK CLOSE CLUSTER COLLATE
    COLUMN COMMENT COMMIT CONSTRAINT COPY CREATE CROSS CURSOR DATABASE DEALLOCATE DECLARE DEFAULT DELETE DESC
    DISCARD DISTINCT DROP ELSE END ENVELOPE ESCAPE EXCEPT EXECUTE EXISTS EXPLAIN EXTRACT FALSE FETCH FILTER
    FOLLOWING FOR FORMAT FROM FULL GRANT GROUP HAVING HEADER IF ILIKE IN INDEX INNER INSERT INTERSECT INTERVAL
    INTO IS JOIN KEY LATERAL LEFT LIKE LIMIT LIST LOCAL MAP MATERIALIZED MUTUALLY NATURAL NOT NULL NULLS
    OBJECTS OF OFFSET ON ONLY OPTIMIZED OR ORDER ORDINALITY OUTER OVER OWNER PARTITION PHYSICAL PLAN PRECEDING
    PREPARE PRIMARY PROGRESS RANGE RECURSIVE RENAME REPLACE REPLICA REPLICAS REPLICATION RESET RESTRICT
    RETURNING REVOKE RIGHT ROLE ROLLBACK ROW ROWS SCHEMA SELECT SET SHOW SINK SIZE SNAPSHOT SOME SOURCE START
    STDIN STDOUT SUBSCRIBE TABLE TABLES TEMPORARY THEN TIMESTAMP TO TRANSACTION TRUE TYPE UNBOUNDED UNION
    UNIQUE UP UPDATE UPSERT USING VALUES VIEW VIEWS WHEN WHERE WINDOW WITH WITHIN
    """
)

# What a statement can begin with, and what follows a few words whose continuation is narrow.
STATEMENT_STARTS = words(
    """
    ALTER BEGIN CLOSE COMMENT COMMIT COPY CREATE DEALLOCATE DECLARE DELETE DISCARD DROP EXECUTE EXPLAIN FETCH
    GRANT INSERT PREPARE RESET REVOKE ROLLBACK SELECT SET SHOW SUBSCRIBE TABLE UPDATE VALUES WITH
    """
)
OBJECT_KINDS = (
    "CLUSTER",
    "CLUSTER REPLICA",
    "DATABASE",
    "INDEX",
    "MATERIALIZED VIEW",
    "ROLE",
    "SCHEMA",
    "SINK",
    "SOURCE",
    "TABLE",
    "TYPE",
    "VIEW",
)
CREATE_KINDS = (*OBJECT_KINDS, "DEFAULT INDEX", "OR REPLACE", "TEMPORARY")
SHOW_WORDS = (
    "ALL",
    "CLUSTER REPLICAS",
    "CLUSTERS",
    "COLUMNS FROM",
    "CREATE INDEX",
    "CREATE MATERIALIZED VIEW",
    "CREATE SOURCE",
    "CREATE TABLE",
    "CREATE VIEW",
    "DATABASES",
    "INDEXES",
    "INDEXES ON",
    "MATERIALIZED VIEWS",
    "OBJECTS",
    "ROLES",
    "SCHEMAS",
    "SINKS",
    "SOURCES",
    "TABLES",
    "TYPES",
    "VIEWS",
)
VARIABLES = words(
    """
    application_name client_min_messages cluster cluster_replica database datestyle search_path
    statement_timeout timezone transaction_isolation
    """
)
TYPES = words(
    """
    bigint boolean bytea char date double precision int int4range int8range integer interval jsonb list map
    mz_timestamp numeric numrange oid real smallint text time timestamp timestamptz uint2 uint4 uint8 uuid
    varchar
    """
)
# Where the server does not list its functions.
FUNCTIONS = words(
    """
    abs array_agg array_cat array_length array_position array_to_string ascii avg bool_and bool_or btrim ceil
    char_length coalesce concat concat_ws convert_from count current_database current_schema current_timestamp
    current_user date_bin date_part date_trunc decode dense_rank digest encode exp extract first_value floor
    format_type generate_series greatest initcap jsonb_agg jsonb_array_elements jsonb_array_elements_text
    jsonb_array_length jsonb_build_array jsonb_build_object jsonb_each jsonb_each_text jsonb_object_agg
    jsonb_object_keys jsonb_pretty jsonb_strip_nulls jsonb_typeof lag last_value lead least left length
    list_agg list_append list_cat list_length ln log lower lpad ltrim make_timestamp map_agg map_length max
    md5 min mod mz_now mz_version now nullif octet_length pg_typeof position power quote_ident rank
    regexp_match regexp_matches regexp_replace regexp_split_to_array repeat replace reverse right round
    row_number row_to_json rpad rtrim sha256 split_part sqrt starts_with stddev stddev_pop stddev_samp
    string_agg string_to_array substring sum timezone to_char to_jsonb to_timestamp translate trim trunc
    unnest upper uuid_generate_v5 var_pop var_samp variance version
    """
)
