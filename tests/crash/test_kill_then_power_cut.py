"""A kill leaves to the system what was not flushed; a power cut in the next life must not take it then."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from broker.engine.store.message_store import MessageStore
from tests.support.faulty_files import PowerCutFiles
from tests.support.stores import SMALL, ManualClock, abandon, bodies, draft

pytestmark = pytest.mark.crash

# Several segments of 16 KiB; the flusher does nothing by itself.
MESSAGES = 200
CONFIG = replace(SMALL, flush="sync", flush_interval_ms=1 << 30)


@pytest.mark.parametrize("seed", range(5))
def test_what_a_start_found_after_a_kill_survives_a_power_cut(tmp_path: Path, seed: int) -> None:
    files = PowerCutFiles(tmp_path / "store", tmp_path / "disk")
    store = MessageStore.open(tmp_path / "store", CONFIG, ManualClock(), files)
    for number in range(MESSAGES):
        store.append(draft(b"%d" % number))
    abandon(store)
    store = MessageStore.open(tmp_path / "store", CONFIG, ManualClock(), files)
    found = bodies(store)
    abandon(store)
    files.cut(tmp_path / "after", random.Random(seed))
    store = MessageStore.open(tmp_path / "after", CONFIG, ManualClock())
    try:
        assert len(found) == MESSAGES
        assert bodies(store) == found
        assert not store.recovery.damages
    finally:
        abandon(store)
