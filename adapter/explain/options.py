"""EXPLAIN's options: WITH (…) and the format."""

from __future__ import annotations

from dataclasses import dataclass

from mzlite.repr.errors import SqlError

_FLAGS = {
    "arity",
    "types",
    "keys",
    "humanized expressions",
    "join implementations",
    "join impls",
    "no fast path",
    "node identifiers",
    "no notices",
}
# Accepted, and without effect here: they show analyses or optimizer choices that do not exist in this system.
_IGNORED = {
    "cardinality",
    "column names",
    "equivalences",
    "filter pushdown",
    "linear chains",
    "non negative",
    "raw plans",
    "raw syntax",
    "redacted",
    "subtree size",
    "timing",
    "raw",
    "syntax",
    "reoptimize imported views",
    "enable letrec fixpoint analysis",
}


@dataclass(frozen=True, slots=True)
class ExplainOptions:
    """format: text | json. verbose: node names of the plan language instead of the arrow form."""

    format: str = "text"
    verbose: bool = False
    arity: bool = False
    types: bool = False
    keys: bool = False
    humanized: bool = False
    join_implementations: bool = False
    no_fast_path: bool = False
    no_notices: bool = False

    @staticmethod
    def parse(options: tuple[str, ...], format: str | None = None, verbose: bool = False) -> ExplainOptions:
        """format: as written after AS, perhaps with `verbose`. errors: SqlError for unknown options and formats."""
        words = (format or "text").split()
        verbose = verbose or "verbose" in words
        kind = words[-1]
        if kind not in ("text", "json"):
            raise SqlError("0A000", f"EXPLAIN AS {kind.upper()} is not supported")
        chosen: set[str] = set()
        for option in options:
            name = option.partition("=")[0].strip().lower().replace("_", " ")
            if name not in _FLAGS and name not in _IGNORED and not name.startswith("enable "):
                raise SqlError("42601", f"unsupported EXPLAIN option: {name.upper()}")
            chosen.add(name)
        return ExplainOptions(
            kind,
            verbose,
            "arity" in chosen,
            "types" in chosen,
            "keys" in chosen,
            "humanized expressions" in chosen,
            bool(chosen & {"join implementations", "join impls"}),
            "no fast path" in chosen,
            "no notices" in chosen,
        )
