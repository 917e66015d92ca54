"""`\\?`, the shell's commands, and `\\h`, the statements of the language."""

from __future__ import annotations

from mzlite.repl.registry import COMMANDS, Call, command
from mzlite.repl.syntax import SYNTAX

GROUP = "Help"


@command("?", usage="\\?", summary="list the shell's commands", group=GROUP)
def list_commands(call: Call) -> None:
    groups: dict[str, list[str]] = {}
    width = max(len(each.usage) for each in COMMANDS.values()) + 2
    for each in COMMANDS.values():
        if each.usage:
            groups.setdefault(each.group, []).append(f"  {each.usage:<{width}}{each.summary}")
    text = "\n\n".join("\n".join([group, *lines]) for group, lines in groups.items())
    keys = (
        "Keys\n"
        "  Enter after a semicolon sends; Tab completes; Ctrl-R searches the history\n"
        "  Ctrl-C clears the line, or cancels what runs; Ctrl-D on an empty line quits\n"
        "  SUBSCRIBE shows a table that updates in place until Ctrl-C"
    )
    call.shell.output.write(f"{text}\n\n{keys}\n")


@command("h", "help", usage="\\h [STATEMENT]", summary="syntax of a statement, or the list of statements", group=GROUP)
def statement_help(call: Call) -> None:
    wanted = " ".join(call.text.rstrip(" ;").upper().split())
    out = call.shell.output
    if not wanted:
        names = sorted(SYNTAX)
        width = max(map(len, names)) + 2
        per_line = max(1, (out.columns or 80) // width)
        rows = -(-len(names) // per_line)
        lines = ["".join(f"{name:<{width}}" for name in names[i::rows]).rstrip() for i in range(rows)]
        out.write("Available help (\\h STATEMENT shows the syntax):\n" + "".join(f"  {line}\n" for line in lines))
        return
    found = [wanted] if wanted in SYNTAX else [name for name in SYNTAX if name.startswith(wanted)]
    if not found:
        words = wanted.split()
        while words and not found:  # `\h create view v`: as much of it as is a statement
            words.pop()
            found = [name for name in SYNTAX if words and name == " ".join(words)]
    if not found:
        out.write(f'No help available for "{call.text}".\nTry \\h with no arguments to see available help.\n')
    for name in found:
        summary, synopsis = SYNTAX[name]
        out.write(f"Command:     {name}\nDescription: {summary}\nSyntax:\n{synopsis}\n\n")
