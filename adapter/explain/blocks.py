"""What surrounds the plans of a dataflow: heading, Source, Used Indexes, Target cluster, Notices; blank lines between."""

from __future__ import annotations

from adapter.explain.explained import Explained
from adapter.explain.names import Names
from adapter.explain.options import ExplainOptions
from adapter.explain.usage import Usages
from mzlite.expr.relation import RowSetFinishing


def assemble(
    plans: list[tuple[str, list[str]]], explained: Explained, usages: Usages, options: ExplainOptions, names: Names
) -> str:
    """plans: heading and lines, indented already."""
    blocks = [[f"{heading}:", *lines] for heading, lines in plans]
    if explained.imports is not None and explained.imports.sources and not plans[0][0].endswith("(fast path)"):
        blocks.append([f"Source {name}" for name in sorted(map(names.full_name, explained.imports.sources))])
    if usages.words:
        lines = ["Used Indexes:"]
        for index, words in sorted(usages.words.items(), key=lambda item: names.full_name(item[0])):
            lines.append(f"  - {names.full_name(index)} ({', '.join(words)})")
        blocks.append(lines)
    blocks += tail(explained, options)
    return "\n\n".join("\n".join(b) for b in blocks) + "\n"


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
