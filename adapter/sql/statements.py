"""The syntax tree of statements. One class per shape, not per keyword: DROP TABLE and DROP VIEW are one `Drop`.

Every statement carries `text` (its source without the semicolon), `start` (offset in the string it came in) and `tag` ("CREATE TABLE").
Options are (lower-case words, value) pairs; a value is a literal's text, a tuple of texts, or None when there was none.
"""

from __future__ import annotations

from adapter.sql import ast

OptionValue = str | tuple[str, ...] | None
Options = tuple[tuple[str, OptionValue], ...]
Names = tuple[str, ...]


class Statement(ast.Node, frozen=True, kw_only=True):
    """Base. tag: the statement's kind in upper case, as in command tags."""

    tag: str = ""
    text: str = ""
    start: int = 0
    parameter_count: int = 0


class AsOf(ast.Node, frozen=True):
    time: ast.Expr
    at_least: bool = False


class SelectStatement(Statement, frozen=True, kw_only=True):
    query: ast.Query
    as_of: AsOf | None = None


class Insert(Statement, frozen=True, kw_only=True):
    """query None: DEFAULT VALUES."""

    table: ast.TableRef
    columns: Names | None
    query: ast.Query | None
    returning: tuple[ast.SelectItem, ...] = ()


class Update(Statement, frozen=True, kw_only=True):
    table: ast.TableRef
    assignments: tuple[tuple[str, ast.Expr, int], ...]
    where: ast.Expr | None


class Delete(Statement, frozen=True, kw_only=True):
    table: ast.TableRef
    using: tuple[ast.TableExpr, ...]
    where: ast.Expr | None


class Copy(Statement, frozen=True, kw_only=True):
    """direction: from, to. Of table, query, subscribe exactly one."""

    direction: str
    table: Names | None
    columns: Names | None
    statement: Statement | None
    target: str
    options: Options = ()
    pos: int = 0


class Subscribe(Statement, frozen=True, kw_only=True):
    """of: a name or a query. output: diffs, within_timestamp_order_by, envelope_upsert, envelope_debezium."""

    relation: Names | None
    query: ast.Query | None
    options: Options = ()
    as_of: AsOf | None = None
    up_to: ast.Expr | None = None
    output: str = "diffs"
    order_by: tuple[ast.OrderItem, ...] = ()
    key: Names = ()
    pos: int = 0


class Explain(Statement, frozen=True, kw_only=True):
    """kind: plan, timestamp, analyze, filter_pushdown, schema. stage None: the default. target: for existing objects (kind, name)."""

    kind: str
    stage: str | None
    format: str | None
    options: Names = ()
    statement: Statement | None = None
    target: tuple[str, Names] | None = None
    what: Names = ()
    broken: bool = False
    replan: bool = False
    pos: int = 0


# ---- definitions


class ColumnDef(ast.Node, frozen=True):
    name: str
    typ: ast.TypeName
    not_null: bool = False
    default: ast.Expr | None = None
    unique: bool = False
    primary_key: bool = False
    unsupported: str | None = None
    pos: int = 0


class CreateTable(Statement, frozen=True, kw_only=True):
    name: Names
    columns: tuple[ColumnDef, ...]
    keys: tuple[tuple[bool, Names], ...] = ()
    if_not_exists: bool = False
    temporary: bool = False
    unsupported: str | None = None
    options: Options = ()
    pos: int = 0


class CreateView(Statement, frozen=True, kw_only=True):
    name: Names
    columns: Names
    query: ast.Query
    if_not_exists: bool = False
    or_replace: bool = False
    temporary: bool = False
    pos: int = 0


class CreateMaterializedView(Statement, frozen=True, kw_only=True):
    name: Names
    columns: Names
    query: ast.Query
    in_cluster: str | None = None
    options: tuple[tuple[str, OptionValue | ast.Expr | tuple[ast.Expr, ast.Expr | None]], ...] = ()
    as_of: AsOf | None = None
    if_not_exists: bool = False
    or_replace: bool = False
    pos: int = 0


class CreateIndex(Statement, frozen=True, kw_only=True):
    """key None: CREATE DEFAULT INDEX."""

    name: Names | None
    on: ast.TableRef
    key: tuple[ast.Expr, ...] | None
    in_cluster: str | None = None
    options: Options = ()
    if_not_exists: bool = False
    pos: int = 0


class CreateType(Statement, frozen=True, kw_only=True):
    """kind: list (element), map (key, value), record (fields). arguments: (option, type)."""

    name: Names
    kind: str
    arguments: tuple[tuple[str, ast.TypeName], ...]
    pos: int = 0


class CreateDatabase(Statement, frozen=True, kw_only=True):
    name: str
    if_not_exists: bool = False


class CreateSchema(Statement, frozen=True, kw_only=True):
    name: Names
    if_not_exists: bool = False
    pos: int = 0


class CreateCluster(Statement, frozen=True, kw_only=True):
    """replicas: REPLICAS (name (options), …), None when managed."""

    name: str
    options: Options = ()
    replicas: tuple[tuple[str, Options], ...] | None = None
    if_not_exists: bool = False


class CreateClusterReplica(Statement, frozen=True, kw_only=True):
    cluster: str
    name: str
    options: Options = ()


class CreateRole(Statement, frozen=True, kw_only=True):
    name: str
    options: Names = ()


class CreateSource(Statement, frozen=True, kw_only=True):
    """Only LOAD GENERATOR has a meaning; others are unsupported with their name in `connector`."""

    name: Names
    connector: str
    generator: str | None
    generator_options: Options = ()
    in_cluster: str | None = None
    for_all_tables: bool = False
    if_not_exists: bool = False
    options: Options = ()
    pos: int = 0


class Drop(Statement, frozen=True, kw_only=True):
    """kind: table, view, materialized view, index, source, type, schema, database, cluster, cluster replica, role, …"""

    kind: str
    names: tuple[Names, ...]
    if_exists: bool = False
    cascade: bool = False
    restrict: bool = False
    pos: int = 0


class Alter(Statement, frozen=True, kw_only=True):
    """action: rename, swap, owner, set, reset, set_cluster, add_column, set_schema, other."""

    kind: str
    name: Names
    action: str
    to: str | None = None
    options: Options = ()
    names: Names = ()
    column: ColumnDef | None = None
    if_exists: bool = False
    pos: int = 0


class Comment(Statement, frozen=True, kw_only=True):
    kind: str
    name: Names
    comment: str | None
    pos: int = 0


class Accepted(Statement, frozen=True, kw_only=True):
    """Parsed loosely and without effect: GRANT, REVOKE, ALTER DEFAULT PRIVILEGES, REASSIGN OWNED, …"""

    words: Names = ()


class Unsupported(Statement, frozen=True, kw_only=True):
    """Recognised, but outside mzlite: secrets, connections, sinks, webhooks, …"""

    what: str


# ---- session


class SetVariable(Statement, frozen=True, kw_only=True):
    """values None: DEFAULT or RESET. scope: session, local, system."""

    name: str | None
    values: Names | None
    scope: str = "session"


class ShowVariable(Statement, frozen=True, kw_only=True):
    """name None: SHOW ALL."""

    name: str | None


class Show(Statement, frozen=True, kw_only=True):
    """SHOW objects: what is "tables", "columns", "indexes", …; on: FROM/ON name; in_cluster; like/where filter."""

    what: str
    on: Names | None = None
    in_cluster: str | None = None
    like: str | None = None
    where: ast.Expr | None = None
    full: bool = False
    pos: int = 0


class ShowCreate(Statement, frozen=True, kw_only=True):
    kind: str
    name: Names
    redacted: bool = False
    pos: int = 0


class Begin(Statement, frozen=True, kw_only=True):
    """isolation: lower case; read_only None when not said."""

    isolation: str | None = None
    read_only: bool | None = None
    starts: bool = False


class SetTransaction(Statement, frozen=True, kw_only=True):
    isolation: str | None = None
    read_only: bool | None = None
    session: bool = False


class Commit(Statement, frozen=True, kw_only=True):
    chain: bool = False


class Rollback(Statement, frozen=True, kw_only=True):
    chain: bool = False


class Prepare(Statement, frozen=True, kw_only=True):
    name: str
    statement: Statement
    types: tuple[ast.TypeName, ...] = ()


class Execute(Statement, frozen=True, kw_only=True):
    name: str
    args: tuple[ast.Expr, ...] = ()


class Deallocate(Statement, frozen=True, kw_only=True):
    name: str | None


class Declare(Statement, frozen=True, kw_only=True):
    name: str
    statement: Statement
    hold: bool = False


class Fetch(Statement, frozen=True, kw_only=True):
    """count None: ALL."""

    name: str
    count: int | None
    options: Options = ()


class Close(Statement, frozen=True, kw_only=True):
    name: str


class Discard(Statement, frozen=True, kw_only=True):
    what: str
