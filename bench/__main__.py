"""Runs benchmarks: `python -m bench [NAME…]`, all or those named. Each prints what it measured.

What stands behind one name and is none is that benchmark's own: `python -m bench deadletters 200000`.

Several run in a process each: Django is set up once per process, and each has a data folder of its own.
"""

from __future__ import annotations

import importlib
import subprocess
import sys

# In the order in which they run; every module has a `main()`.
NAMES = (
    "wire",
    "producer",
    "sends",
    "throughput",
    "consumption",
    "filters",
    "delays",
    "long_poll",
    "connections",
    "starts",
    "settings",
    "rows",
    "following",
    "cycles",
    "sampling",
    "alerts",
    "metrics",
    "lists",
    "live",
    "browser",
    "deadletters",
    "replay",
    "reports",
    "install",
)


def main(chosen: list[str]) -> int:
    if chosen and chosen[0] in NAMES and not set(chosen[1:]) & set(NAMES):
        return _run(chosen[0], chosen[1:])
    unknown = sorted(set(chosen) - set(NAMES))
    if unknown:
        print(f"no such benchmark: {', '.join(unknown)}; there are: {', '.join(NAMES)}", file=sys.stderr)
        return 2
    return max([subprocess.run([sys.executable, "-m", "bench", name]).returncode for name in chosen or NAMES])


def _run(name: str, own: list[str]) -> int:
    """Runs one benchmark, which reads its own words as it does when it is started by `python -m bench.NAME`."""
    sys.argv = [f"bench.{name}", *own]
    print(f"== {name}", flush=True)
    importlib.import_module(f"bench.{name}").main()
    print(flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
