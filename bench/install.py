"""Measures a whole install, `manage.py up`, with four consumer instances and nothing to do, beside its bars.

Start-up, memory and processor time. RSS counts pages that forked workers share once per process; PSS shares them out,
so its sum is what the machine gives.
"""

from __future__ import annotations

import re
import tempfile
import time
from pathlib import Path

import psutil

from tests.support.install import Install

MEMORY_BAR_MB = 1300.0
CORES_BAR = 0.1
# The first moments (instances start, the cluster is first observed) are not idling yet.
CALM_AFTER_S = 15.0
MEASURED_S = 30.0
_NODE = re.compile(r"-n (\S+)@")
_NAMES = (
    ("mqadmin.preloaded", "fork server"),
    ("redis-server", "redis"),
    ("valkey-server", "redis"),
    ("runbroker", "broker"),
    ("mqadmin.web", "web"),
    (" beat ", "beat"),
    ("shop_traffic", "traffic"),
)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        began_s = time.perf_counter()
        with Install(Path(folder) / "data", env={"MQADMIN_APPS": "examples.shop"}) as install:
            print(f"{'cold start to the console’s address':<44}{time.perf_counter() - began_s:>8.1f} s")
            time.sleep(CALM_AFTER_S)
            _measure(install)
            began_s = time.perf_counter()
            install.stop()
            print(f"{'ordered stop':<44}{time.perf_counter() - began_s:>8.1f} s")
        began_s = time.perf_counter()
        with install:
            print(f"{'second start':<44}{time.perf_counter() - began_s:>8.1f} s")


def _measure(install: Install) -> None:
    """Measures the processes by role; workers with all their children."""
    roles = {name: [child, *child.children(recursive=True)] for child, name in _children(install)}
    roles["up"] = [psutil.Process(install.pid)]
    before = {name: _cpu_s(processes) for name, processes in roles.items()}
    time.sleep(MEASURED_S)
    print(f"{'idle for ' + f'{MEASURED_S:g} s':<28}{'processes':>10}{'RSS MB':>9}{'PSS MB':>9}{'cores':>9}")
    totals = [0.0, 0.0, 0.0, 0.0]
    for name, processes in sorted(roles.items()):
        memory = [process.memory_full_info() for process in processes]
        figures = (
            len(processes),
            sum(one.rss for one in memory) / 1e6,
            sum(one.pss for one in memory) / 1e6,
            (_cpu_s(processes) - before[name]) / MEASURED_S,
        )
        totals = [total + figure for total, figure in zip(totals, figures, strict=True)]
        _print_row(name, *figures)
    _print_row("all", *totals)
    print(f"{'bar':<28}{'':>10}{'':>9}{MEMORY_BAR_MB:>9.0f}{CORES_BAR:>9.3f}")
    print(
        f"{'of the bar':<28}{'':>10}{'':>9}{totals[2] / MEMORY_BAR_MB:>9.2f}{totals[3] / CORES_BAR:>9.2f}", flush=True
    )


def _print_row(name: str, count: float, rss_mb: float, pss_mb: float, cores: float) -> None:
    print(f"{name:<28}{count:>10.0f}{rss_mb:>9.0f}{pss_mb:>9.0f}{cores:>9.3f}")


def _children(install: Install) -> list[tuple[psutil.Process, str]]:
    return [(child, _name(" ".join(child.cmdline()))) for child in install.children()]


def _name(command: str) -> str:
    node = _NODE.search(command)
    return node[1] if node else next(name for word, name in _NAMES if word in f"{command} ")


def _cpu_s(processes: list[psutil.Process]) -> float:
    """Returns user and system time so far, without those of processes that ended meanwhile."""
    total = 0.0
    for process in processes:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system
    return total


if __name__ == "__main__":
    main()
