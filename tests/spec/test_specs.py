"""Every spec, with one and two workers, with one runtime and with two; placement is part of the outcome."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mzlite.driver import main

HERE = Path(__file__).parent
SPECS = sorted(HERE.glob("*.spec"))


@pytest.mark.parametrize("solo", [False, True], ids=["two-runtimes", "solo"])
@pytest.mark.parametrize("workers", [1, 2])
def test_specs(workers: int, solo: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "report.json"
    arguments = ["--workers", str(workers), "--json", str(report), *(["--solo"] if solo else []), *map(str, SPECS)]
    code = main(arguments)
    assert code == 0, capsys.readouterr().out
    outcomes = json.loads(report.read_text())
    assert len(outcomes) == len(SPECS)
    roles = {role for outcome in outcomes for by_export in outcome["rendered"].values() for role in by_export}
    assert roles == ({"solo"} if solo else {"maintenance", "interactive"})
