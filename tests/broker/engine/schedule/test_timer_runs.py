"""Files of timers: which of them a start takes up, and which it removes."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.engine.schedule.timer_runs import Timer, TimerOrder
from broker.engine.store.files import FileLayer


def test_a_run_from_beyond_the_end_of_the_queue_is_removed_and_no_power_cut_brings_it_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[tuple[Path, list[str]]] = []
    monkeypatch.setattr(
        FileLayer, "sync_path", lambda _, path: flushed.append((path, sorted(file.name for file in path.iterdir())))
    )
    order = TimerOrder(tmp_path)
    order.write_run(0, 4, [Timer(1_000, True, 1)])
    order.write_run(4, 8, [Timer(2_000, True, 7)])

    runs = TimerOrder(tmp_path).open_runs(0, 6)
    assert [(run.first, run.end) for run in runs] == [(0, 4)]
    assert flushed == [(tmp_path, [f"{0:020d}.run"])]
    TimerOrder(tmp_path).open_runs(0, 6)
    assert len(flushed) == 1, "nothing was removed"
