"""What holds for the whole tree: layers, sizes, what is said about itself, and how it uses sqlglot."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("mzlite", "compute", "adapter", "sqllogictest")
SOURCES = sorted(p for package in PACKAGES for p in (ROOT / package).rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
MAX_LINES = 600


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_imports_point_down() -> None:
    command = Path(sys.executable).with_name("lint-imports")
    if not command.exists():
        pytest.skip("import-linter is not installed")
    done = subprocess.run([command, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=110)
    assert done.returncode == 0, done.stdout


def test_no_file_is_too_long() -> None:
    sizes = {name(p): len(p.read_text().splitlines()) for p in SOURCES + TESTS}
    assert not {n: s for n, s in sizes.items() if s > MAX_LINES}


def test_every_module_says_what_it_is() -> None:
    silent = [name(p) for p in SOURCES if p.name != "__init__.py" and not ast.get_docstring(ast.parse(p.read_text()))]
    assert not silent


def test_nothing_of_sqlglot_is_subclassed_but_its_dialect_and_tokenizer() -> None:
    """Its parser and generator have a compiled build that subclasses do not take part in."""
    found = {}
    for path in SOURCES:
        tree = ast.parse(path.read_text())
        if not any(isinstance(n, ast.ImportFrom | ast.Import) and "sqlglot" in ast.dump(n) for n in ast.walk(tree)):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                for base in node.bases:
                    words = ast.unparse(base)
                    if re.search(r"\b(Parser|Generator|Expression|Materialize\.\w+|Postgres\.\w+)$", words):
                        found[f"{name(path)}:{node.name}"] = words
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "setattr":
                assert "sqlglot" not in ast.unparse(node)
    assert set(found.values()) <= {"Materialize.Tokenizer"}, found


def test_no_stubs_are_left() -> None:
    marks = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b|NotImplementedError")
    left = [
        f"{name(p)}:{n}" for p in SOURCES for n, line in enumerate(p.read_text().splitlines(), 1) if marks.search(line)
    ]
    assert not left


def test_the_project_speaks_of_itself_only() -> None:
    """Not of the machine it was written on, or of things beside it, which nobody else has."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    tracked = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    foreign = re.compile(r"(?<![\w.])/work(?![\w-])|\bissue #?\d|\.\./shared")
    allowed = {"tests/conformance.py", "docs/sqllogictest.md", "tests/arch/test_tree.py"}
    found = []
    for relative in filter(None, tracked.split("\0")):
        path = ROOT / relative
        if (
            relative in allowed
            or relative.startswith(".ci/")
            or path.suffix not in (".py", ".md", ".toml", ".slt", ".spec", "")
        ):
            continue
        try:
            text = path.read_text()
        except (UnicodeDecodeError, OSError):
            continue
        found += [
            f"{relative}:{n}: {line.strip()[:80]}"
            for n, line in enumerate(text.splitlines(), 1)
            if foreign.search(line)
        ]
    assert not found


def test_the_adapter_waits_only_for_what_it_may() -> None:
    """No time.sleep in the server: everything there runs on one event loop."""
    sleeping = [name(p) for p in SOURCES if p.parts[len(ROOT.parts)] == "adapter" and "time.sleep(" in p.read_text()]
    assert not sleeping
