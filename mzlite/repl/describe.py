"""`\\d` and its family: what is in the database, laid out as psql does.

\\d            relations one can see          \\d NAME     columns, indexes; with +, comments and definition
\\dt \\dv \\dm   tables, views, materialized     \\di \\ds \\dk  indexes, sources, sinks
\\dn \\l \\dC    schemas, databases, clusters    \\df \\du      functions, roles
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mzlite.repl.catalog import KIND_LETTERS, Catalog, Description, Relation
from mzlite.repl.client import ResultColumn, Table
from mzlite.repl.patterns import Pattern, parse_pattern
from mzlite.repl.registry import Call, CommandError, command

GROUP = "Informational (S: system objects too, +: more; NAME may be a pattern such as s.foo*)"
LIST_LETTERS = "".join(KIND_LETTERS)


@command("d", usage="\\d[S+] [NAME]", summary="describe relations, or list them", group=GROUP)
def describe_or_list(call: Call) -> None:
    if not call.text:
        _list(call, frozenset(KIND_LETTERS.values()) - {"index"})
        return
    for name in call.args:
        pattern = parse_pattern(name.rstrip(";"))
        found = _matching(call.shell.catalog, frozenset(KIND_LETTERS.values()), pattern)
        if not found:
            raise CommandError(f'Did not find any relation named "{name}".')
        for relation in found:
            _print_description(call, call.shell.catalog.describe(relation, verbose="+" in call.flags))


def _lister(letter: str, kind: str, plural: str) -> None:
    @command(f"d{letter}", usage=f"\\d{letter}[S+] [NAME]", summary=f"list {plural}", group=GROUP)
    def list_kind(call: Call) -> None:
        extra = {KIND_LETTERS[flag] for flag in call.flags if flag in KIND_LETTERS}
        _list(call, frozenset({kind, *extra}))


for _letter, _kind in KIND_LETTERS.items():
    _lister(_letter, _kind, f"{_kind}es" if _kind.endswith("x") else f"{_kind}s")


def _matching(
    catalog: Catalog, kinds: frozenset[str], pattern: Pattern | None, *, system: bool = False
) -> list[Relation]:
    """Relations of these kinds. Without a schema in the pattern, the search path, and system objects if asked for by name."""
    if pattern is None:
        return catalog.relations(kinds, None, system=system)
    if pattern.schema is None:
        found = catalog.relations(kinds, None, system=system)
        picked = [relation for relation in found if pattern.name.match(relation.name)]
        if picked or not pattern.is_literal:
            return picked
        # `\d pg_class` finds what the search path finds implicitly.
        found = catalog.relations(kinds, None, system=True)
        return [relation for relation in found if pattern.name.match(relation.name)]
    schemas = [name for name, _ in catalog.schemas(system=True) if pattern.schema.match(name)]
    return [r for r in catalog.relations(kinds, schemas) if pattern.name.match(r.name)]


def _list(call: Call, kinds: frozenset[str]) -> None:
    catalog = call.shell.catalog
    name = call.arg(0)
    pattern = None if name is None else parse_pattern(name.rstrip(";"))
    found = _matching(catalog, kinds, pattern, system="S" in call.flags)
    if not found:
        what = f'any relation named "{name}"' if name else "any relations"
        raise CommandError(f"Did not find {what}.")
    columns = {
        "Schema": [relation.schema for relation in found],
        "Name": [relation.name for relation in found],
        "Type": [relation.kind for relation in found],
    }
    if not catalog.has_clusters:
        columns["Owner"] = [relation.owner for relation in found]
    if "index" in kinds:
        columns["On"] = [relation.on for relation in found]
    if any(relation.cluster for relation in found):
        columns["Cluster"] = [relation.cluster for relation in found]
    if "+" in call.flags:
        columns["Comment"] = [relation.comment for relation in found]
    _print(call, columns, zip(*columns.values(), strict=True), title="List of relations")


def _print(call: Call, columns: Iterable[str], rows: Iterable[tuple[str | None, ...]], *, title: str) -> None:
    settings = replace(call.shell.settings, null="", row_limit=0)
    table = Table(tuple(ResultColumn(name) for name in columns), list(rows))
    call.shell.print_table(table, title=title, settings=settings)


def _print_description(call: Call, description: Description) -> None:
    relation = description.relation
    is_index = relation.kind == "index"
    verbose = "+" in call.flags
    columns = ["Column", "Type"] + ([] if is_index else ["Nullable"])
    has_default = not is_index and not call.shell.catalog.has_clusters
    columns += ["Default"] if has_default else []
    columns += ["Comment"] if verbose else []
    rows: list[tuple[str | None, ...]] = []
    for column in description.columns:
        row = [column.name, column.type]
        row += [] if is_index else ["" if column.nullable else "not null"]
        row += [column.default] if has_default else []
        row += [column.comment] if verbose else []
        rows.append(tuple(row))
    title = f'{relation.kind.capitalize()} "{relation.schema}.{relation.name}"'
    table = Table(tuple(ResultColumn(name) for name in columns), rows)
    settings = replace(call.shell.settings, null="", footer=False, row_limit=0, expanded="off")
    lines: list[str] = []
    if verbose and relation.comment:
        lines.append(f"Comment: {relation.comment}")
    for heading, entries in description.footers:
        lines.append(f"{heading}:" if entries else heading)
        lines += [f"    {entry}" for entry in entries]
    if description.definition:
        label = "View definition" if "view" in relation.kind else "Definition"
        lines += [f"{label}:", description.definition]
    call.shell.print_table(table, title=title, settings=settings, footers=lines)


@command("dn", usage="\\dn[S+] [NAME]", summary="list schemas", group=GROUP)
def list_schemas(call: Call) -> None:
    catalog = call.shell.catalog
    pattern = parse_pattern(call.arg(0) or "*")
    found = [row for row in catalog.schemas(system="S" in call.flags) if pattern.name.match(row[0])]
    second = "Comment" if catalog.has_clusters else "Owner"
    keep = 2 if not catalog.has_clusters or "+" in call.flags else 1
    _print(call, ["Name", second][:keep], [row[:keep] for row in found], title="List of schemas")


@command("df", usage="\\df[S] [NAME]", summary="list functions", group=GROUP)
def list_functions(call: Call) -> None:
    name = call.arg(0)
    pattern = parse_pattern(name or "*")
    # All functions are the system's here, unless the server has user-defined ones: asking by name means those too.
    found = [
        each
        for each in call.shell.catalog.functions(system=name is not None or "S" in call.flags)
        if pattern.name.match(each.name) and (pattern.schema is None or pattern.schema.match(each.schema))
    ]
    rows = [(each.schema, each.name, each.result, each.arguments, each.kind) for each in found]
    columns = ["Schema", "Name", "Result data type", "Argument data types", "Type"]
    if all(not row[2] and not row[3] for row in rows):
        columns, rows = columns[:2], [row[:2] for row in rows]  # type: ignore[misc]
    _print(call, columns, rows, title="List of functions")


def _print_filtered(call: Call, table: Table, title: str) -> None:
    """A SHOW command's table, by the pattern on its first column."""
    pattern = parse_pattern(call.arg(0) or "*")
    rows = [row for row in table.rows if pattern.name.match(row[0] or "")]
    names = [column.name.capitalize() for column in table.columns]
    keep = [i for i, name in enumerate(names) if name != "Comment" or "+" in call.flags]
    _print(call, [names[i] for i in keep], [tuple(row[i] for i in keep) for row in rows], title=title)


@command("l", usage="\\l[+] [NAME]", summary="list databases", group=GROUP)
def list_databases(call: Call) -> None:
    _print_filtered(call, call.shell.catalog.databases(), "List of databases")


@command("dC", usage="\\dC[+] [NAME]", summary="list clusters", group=GROUP)
def list_clusters(call: Call) -> None:
    if not call.shell.catalog.has_clusters:
        raise CommandError("\\dC: this server has no clusters")
    _print_filtered(call, call.shell.catalog.clusters(), "List of clusters")


@command("du", usage="\\du[+] [NAME]", summary="list roles", group=GROUP)
def list_roles(call: Call) -> None:
    _print_filtered(call, call.shell.catalog.roles(), "List of roles")


@command("sv", usage="\\sv NAME", summary="show a view's definition", group=GROUP)
def show_view(call: Call) -> None:
    name = call.arg(0)
    if name is None:
        raise CommandError("\\sv: view name is required")
    catalog = call.shell.catalog
    found = _matching(catalog, frozenset({"view", "materialized view"}), parse_pattern(name))
    if not found:
        raise CommandError(f'"{name}" is not a view')
    for relation in found:
        call.shell.output.write(catalog.describe(relation, verbose=True).definition.rstrip() + "\n")
