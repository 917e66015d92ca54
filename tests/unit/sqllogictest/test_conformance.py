"""The ratchet: what counts as a fall, what --update writes, how the parts are put together."""

from __future__ import annotations

from pathlib import Path

from tests import conformance


def test_only_a_lower_count_is_a_fall() -> None:
    old = {"a": (5, 10), "b": (5, 10), "c": (5, 10), "gone": (1, 1)}
    new = {"a": (4, 10), "b": (6, 10), "c": (5, 10), "d": (0, 3)}
    assert [what for what, _ in conformance.compare(old, new)] == ["fell", "raised", "raised"]
    assert next(iter(conformance.compare(old, new)))[1] == "a: 4/10, was 5/10"


def test_update_never_lowers_a_count() -> None:
    old = {"a": (5, 10), "b": (5, 10), "gone": (1, 1)}
    new = {"a": (4, 10), "b": (6, 12), "d": (0, 3)}
    assert conformance.merged(old, new) == {"a": (5, 10), "b": (6, 12), "gone": (1, 1), "d": (0, 3)}


def test_the_file_round_trips_in_order(tmp_path: Path) -> None:
    path = tmp_path / "conformance.json"
    assert conformance.read_ratchet(path) == {}
    counts = {"slt/b.slt": (1, 2), "slt/a.slt [views]": (0, 1)}
    conformance.write_ratchet(counts, path)
    assert conformance.read_ratchet(path) == counts
    assert path.read_text() == '{\n"slt/a.slt [views]": [0, 1],\n"slt/b.slt": [1, 2]\n}\n'


def test_names_are_chosen_by_part_or_pattern() -> None:
    assert conformance.wanted("slt/sqlite/select1.test", None)
    assert conformance.wanted("slt/sqlite/select1.test", "select")
    assert conformance.wanted("slt/sqlite/select1.test", "sqlite/*1.test")
    assert not conformance.wanted("slt/sqlite/select1.test", "joins")


def test_summary_groups_by_corpus() -> None:
    counts = {"slt/x/a": (1, 2), "slt/x/a [views]": (1, 1), "specs/s": (1, 1), "cases/c": (0, 1)}
    assert [" ".join(line.split()) for line in conformance.summary(counts)] == [
        "cases 0 of 1 0.00 %",
        "slt/x 1 of 2 50.00 %",
        "slt/x [views] 1 of 1 100.00 %",
        "specs 1 of 1 100.00 %",
    ]
