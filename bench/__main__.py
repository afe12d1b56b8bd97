"""Runs benchmarks: `python -m bench [NAME…]`, all or those named. Each prints what it measured."""

from __future__ import annotations

import importlib
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
    "metrics",
    "lists",
    "install",
)


def main(chosen: list[str]) -> int:
    unknown = sorted(set(chosen) - set(NAMES))
    if unknown:
        print(f"no such benchmark: {', '.join(unknown)}; there are: {', '.join(NAMES)}", file=sys.stderr)
        return 2
    for name in chosen or NAMES:
        print(f"== {name}", flush=True)
        importlib.import_module(f"bench.{name}").main()
        print(flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
