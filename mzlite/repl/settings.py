"""What a person can change about the shell with `\\x`, `\\pset`, `\\timing`, `\\set` and their like."""

from __future__ import annotations

from dataclasses import dataclass, field

FORMATS = ("aligned", "unaligned", "csv")
VERBOSITIES = ("default", "verbose", "terse", "sqlstate")


@dataclass(slots=True)
class Settings:
    """Defaults are psql's; the interactive shell starts with `interactive()`."""

    expanded: str = "off"  # off, on, auto: on when the table is wider than the terminal
    format: str = "aligned"
    null: str = ""
    tuples_only: bool = False
    footer: bool = True
    fieldsep: str = "|"
    timing: bool = False
    quiet: bool = False  # no command tags
    row_limit: int = 0  # rows printed to a terminal, 0 for all
    cell_limit: int = 0  # characters of one value printed to a terminal, 0 for all
    variables: dict[str, str] = field(default_factory=dict)

    @classmethod
    def interactive(cls) -> Settings:
        """There is no pager, so a terminal is spared what would scroll everything else away."""
        return cls(expanded="auto", null="<null>", row_limit=1000, cell_limit=2000)

    @property
    def verbosity(self) -> str:
        value = self.variables.get("VERBOSITY", "default").lower()
        return value if value in VERBOSITIES else "default"

    @property
    def on_error_stop(self) -> bool:
        return parse_bool(self.variables.get("ON_ERROR_STOP", "off")) is True


def parse_bool(text: str) -> bool | None:
    """on/off as psql reads it, `None` for anything else."""
    word = text.lower()
    if word in ("on", "true", "yes", "1", "t", "y"):
        return True
    return False if word in ("off", "false", "no", "0", "f", "n") else None
