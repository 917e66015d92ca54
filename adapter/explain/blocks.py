"""What surrounds the plans of a dataflow: heading, Source, Used Indexes, Target cluster, Notices; blank lines between."""

from __future__ import annotations

from adapter.explain.explained import Explained
from adapter.explain.names import Names
from adapter.explain.options import ExplainOptions
from adapter.explain.usage import INDEX_EXPORT, Usages
from mzlite.expr.relation import RowSetFinishing


def assemble(
    heading: str, plan: list[str], explained: Explained, usages: Usages, options: ExplainOptions, names: Names
) -> str:
    """plan: lines, indented already."""
    blocks = [[f"{heading}:", *plan]]
    blocks += [
        [f"{names.full_name(id)}:", "  ArrangeBy keys=[[" + key_text(export.desc.key) + "]]"]
        for id, export in explained.exports
    ]
    if explained.imports is not None and explained.imports.sources and explained.fast_path is None:
        sources = sorted(map(names.full_name, explained.imports.sources))
        blocks.append([f"Source {name}" for name in sources])
    for id, _ in explained.exports:
        if id in usages.words:
            usages.add(id, INDEX_EXPORT)
    if usages.words:
        lines = ["Used Indexes:"]
        for index, words in sorted(usages.words.items(), key=lambda item: names.full_name(item[0])):
            lines.append(f"  - {names.full_name(index)} ({', '.join(words)})")
        blocks.append(lines)
    blocks += tail(explained, options)
    return "\n\n".join("\n".join(b) for b in blocks) + "\n"


def key_text(key: object) -> str:
    from mzlite.expr.text.print import print_scalar

    return ", ".join(print_scalar(k) for k in key)  # type: ignore[attr-defined]


def tail(explained: Explained, options: ExplainOptions) -> list[list[str]]:
    blocks: list[list[str]] = []
    if explained.cluster is not None:
        blocks.append([f"Target cluster: {explained.cluster}"])
    if explained.notices and not options.no_notices:
        lines = ["Notices:"]
        for notice in explained.notices:
            first, *rest = notice.splitlines()
            lines += [f"  - Notice: {first}", *(f"    {line}" for line in rest)]
        blocks.append(lines)
    return blocks


def finish_line(finishing: RowSetFinishing, order: str, arity: int) -> str | None:
    """None when the finishing does nothing. order: the ORDER BY, printed."""
    identity = finishing.project in ((), tuple(range(arity)))
    if not finishing.order_by and finishing.limit is None and not finishing.offset and identity:
        return None
    text = "Finish"
    if finishing.order_by:
        text += f" order_by=[{order}]"
    if finishing.limit is not None:
        text += f" limit={finishing.limit}"
    if finishing.offset:
        text += f" offset={finishing.offset}"
    return text + f" output=[{bare(finishing.project or tuple(range(arity)))}]"


def bare(columns: tuple[int, ...]) -> str:
    from adapter.explain.names import Columns

    return Columns((), humanized=False).outputs(columns)
