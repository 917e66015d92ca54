"""Every system flag stands in exactly one list: explored, needed, or of no interest to tests."""

from __future__ import annotations

import random

from adapter.coord.system_vars import FLAGS, MINIMAL, SYSTEM_VARS, UNINTERESTING, VARIABLE, SystemVars


def test_each_flag_stands_in_one_list() -> None:
    lists = [set(VARIABLE), set(MINIMAL), set(UNINTERESTING)]
    for flag in FLAGS:
        assert sum(flag in names for names in lists) == 1, f"{flag}: put it in one of VARIABLE, MINIMAL, UNINTERESTING"
    assert set().union(*lists) == FLAGS


def test_the_interactive_runtime_is_explored_both_ways() -> None:
    assert set(VARIABLE["enable_compute_interactive_runtime"]) == {"on", "off"}
    assert SYSTEM_VARS["enable_compute_interactive_runtime"].default == "on"


def test_every_value_that_a_run_may_choose_is_accepted() -> None:
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    rng = random.Random(seed)
    flags = SystemVars({})
    for name, values in VARIABLE.items():
        for value in values:
            assert flags.check(name, [value]) == (name, value)
        flags.apply(name, chosen := rng.choice(values))
        assert flags.show(name) == chosen
    for name, value in MINIMAL.items():
        assert flags.check(name, [value]) == (name, value)
