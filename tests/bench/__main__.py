"""`./dev bench [NAME…]`: run benchmarks. A benchmark is `tests/bench/bench_NAME.py` with `main() -> None`.

Each compares two arms in one run and prints ratios and percentiles; none asserts a time.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
import time

import tests.bench


def names() -> list[str]:
    found = (m.name for m in pkgutil.iter_modules(tests.bench.__path__))
    return sorted(n.removeprefix("bench_") for n in found if n.startswith("bench_"))


def main(argv: list[str]) -> int:
    known = names()
    if "--list" in argv:
        print("\n".join(known))
        return 0
    unknown = [n for n in argv if n not in known]
    if unknown:
        print(f"bench: no benchmark {unknown[0]!r}; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    for name in argv or known:
        module = importlib.import_module(f"tests.bench.bench_{name}")
        print(f"\n== {name}: {(module.__doc__ or '').strip().splitlines()[0]}", flush=True)
        start = time.perf_counter()
        module.main()
        print(f"({time.perf_counter() - start:.1f} s)", flush=True)
    return 0


sys.exit(main(sys.argv[1:]))
