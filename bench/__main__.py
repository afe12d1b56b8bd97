"""Runs benchmarks: `python -m bench [NAME…]`, all or those named. Each prints what it measured.

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
    "deadletters",
    "replay",
    "reports",
    "install",
)


def main(chosen: list[str]) -> int:
    unknown = sorted(set(chosen) - set(NAMES))
    if unknown:
        print(f"no such benchmark: {', '.join(unknown)}; there are: {', '.join(NAMES)}", file=sys.stderr)
        return 2
    if len(chosen) == 1:
        print(f"== {chosen[0]}", flush=True)
        importlib.import_module(f"bench.{chosen[0]}").main()
        print(flush=True)
        return 0
    return max([subprocess.run([sys.executable, "-m", "bench", name]).returncode for name in chosen or NAMES])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
