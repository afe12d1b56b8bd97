"""Makes the nightly report of generated lag samples: seconds, samples a second, memory, and what each stage took.

With all figures: events of the day, objectives, and 28 days before are generated, too. Then one hour's append.

    python -m bench reports                    a million samples, and 1,000 groups (23 million)
    python -m bench.reports 10000              10,000 groups × 8 queues × 30 s: 230 million samples, the bar

Each report is a process of its own, so its time has everything: Python, JVM, Spark's start. Memory is what all its
processes have resident together, at its peak. Beside it what PyArrow and NumPy do of it, where that fits
into memory.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import psutil

from bench.lag_samples import write_day
from bench.report_facts import write_facts
from mqadmin.reports.history import History

DAY = date(2026, 11, 22)
# A million samples, and what a scaled day is; groups of 8 queues.
MILLION_GROUPS = 44
SCALED_GROUPS = 1_000
# Everything in memory: beyond it a machine of 8 GiB would swap.
PYARROW_GROUPS_MAX = 1_000
# Of an hour's append: each brings sixty rows, which are written one by one before it is measured.
APPENDED_GROUPS_MAX = 1_000
_WATCH_EVERY_S = 0.2


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.reports")
    parser.add_argument("groups", type=int, nargs="*", default=[MILLION_GROUPS, SCALED_GROUPS])
    given = parser.parse_args(arguments)
    for groups in given.groups:
        with tempfile.TemporaryDirectory() as folder:
            measure(Path(folder), groups)


def measure(folder: Path, groups: int) -> None:
    began_s = time.perf_counter()
    history = History(folder / "history")
    written = write_day(history, DAY, groups)
    facts = write_facts(history, folder / "earlier", DAY, groups)
    load = os.getloadavg()[0]
    print(
        f"{groups:,} groups: {written.samples:,} samples in {written.rows:,} rows, {written.size_bytes / 1e6:,.0f} MB,"
        f" {facts.events:,} events, {facts.earlier_rows:,} rows of the days before;"
        f" written in {time.perf_counter() - began_s:.0f} s; load {load:.1f}",
        flush=True,
    )
    kinds = ["spark"] + (["pyarrow"] if groups <= PYARROW_GROUPS_MAX else [])
    for kind in kinds:
        figures, cost = run(kind, folder)
        stages = figures.pop("stages", [])
        rate = written.samples / cost.seconds
        print(
            f"  {kind:8} {cost.seconds:6.1f} s  {cost.processor_s:6.1f} s of processors  {rate:12,.0f} samples/s"
            f"  {cost.memory_mb:6,.0f} MB at its peak  {figures}"
        )
        for stage in stages:
            print(f"    {stage}")
        sys.stdout.flush()
    append(folder, min(groups, APPENDED_GROUPS_MAX))


def append(folder: Path, groups: int) -> None:
    """Measures what one hour of these groups costs, of which half move in each cycle."""
    command = [sys.executable, "-m", "bench.report_append", str(folder / "appended"), str(groups)]
    figures, cost = timed(command, folder)
    print(f"  append   one hour of {groups:,} groups  {cost.memory_mb:,.0f} MB at its peak  {figures}", flush=True)


@dataclass(frozen=True, slots=True)
class Cost:
    """Of a process and all its children together."""

    seconds: float
    processor_s: float
    memory_mb: float


def run(kind: str, folder: Path) -> tuple[dict[str, Any], Cost]:
    """Returns what a report printed, and what it cost."""
    command = [sys.executable, "-m", "bench.report_run", kind, str(folder / "history"), str(DAY), str(folder / kind)]
    return timed(command, folder)


def timed(command: Sequence[str], folder: Path) -> tuple[dict[str, Any], Cost]:
    """Returns the JSON that a process printed last, and what it cost."""
    began_s, used_before_s = time.perf_counter(), _children_processor_s()
    environment = {**os.environ, "MQADMIN_DATA": str(folder), "DATABASE_URL": ""}
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    most = 0
    while child.poll() is None:
        most = max(most, _resident_bytes(child.pid))
        with suppress(subprocess.TimeoutExpired):
            child.wait(_WATCH_EVERY_S)
    seconds, used_s = time.perf_counter() - began_s, _children_processor_s() - used_before_s
    assert child.stdout is not None
    text = child.stdout.read()
    if child.returncode:
        raise SystemExit(f"{command[2]} ended with {child.returncode}")
    return json.loads(text.splitlines()[-1]), Cost(seconds, used_s, most / 1e6)


def _children_processor_s() -> float:
    """Of children that have ended and were waited for, and of theirs."""
    used = os.times()
    return used.children_user + used.children_system


def _resident_bytes(pid: int) -> int:
    total = 0
    with suppress(psutil.NoSuchProcess):
        parent = psutil.Process(pid)
        for process in (parent, *parent.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                total += process.memory_info().rss
    return total


if __name__ == "__main__":
    main(sys.argv[1:])
