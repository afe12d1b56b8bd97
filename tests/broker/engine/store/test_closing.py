"""Closing a store whose queues are more than the disk takes in time.

TORTURE=1 pytest tests/broker/engine/store/test_closing.py      80,000 queues
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from broker.engine.store.errors import StoreClosed
from broker.engine.store.files import FileLayer
from broker.engine.store.message_store import MessageStore
from broker.engine.store.values import StoreConfig
from tests.support.stores import SMALL, draft
from tests.support.waiting import wait_until

TOPICS = 10_000 if os.environ.get("TORTURE") else 100
QUEUES = 8
SYNC_S = 0.001


class SlowDisk(FileLayer):
    """Takes its time over each file; `gate` holds it up altogether. `paths` are those of the indexes."""

    def __init__(self) -> None:
        self.paths: list[Path] = []
        self.gate = threading.Event()
        self.gate.set()

    def sync_path(self, path: Path) -> None:
        if "consumequeue" in path.parts:
            self.paths.append(path)
            self.gate.wait()
            time.sleep(SYNC_S)


def fill(store: MessageStore) -> None:
    for topic in range(TOPICS):
        store.append_batch([draft(b"%d" % topic, f"topic-{topic}", queue_id) for queue_id in range(QUEUES)])


def assert_whole(folder: Path, config: StoreConfig, *, was_clean: bool) -> None:
    store = MessageStore.open(folder, config)
    assert store.recovery.was_clean is was_clean
    assert len(store.topics() - {"orders"}) == TOPICS
    assert all(store.max_offset(f"topic-{topic}", queue_id) == 1 for topic in range(TOPICS) for queue_id in range(8))
    assert store.verify().is_sound
    store.close()


@pytest.mark.parametrize(
    ("close_flush_max_s", "was_clean"),
    [pytest.param(0.1, False, id="too-slow"), pytest.param(600.0, True, id="in-time")],
)
@pytest.mark.slow
def test_a_close_flushes_the_indexes_for_so_long_and_leaves_the_rest_to_the_next_start(
    tmp_path: Path, close_flush_max_s: float, was_clean: bool
) -> None:
    config = replace(SMALL, segment_bytes=1 << 25, queue_file_entries=10, close_flush_max_s=close_flush_max_s)
    disk = SlowDisk()
    store = MessageStore.open(tmp_path, config, files=disk)
    fill(store)
    store.close()
    flushed = {path for path in disk.paths if path.name.isdigit() and len(path.name) == 20}
    assert (len(flushed) == TOPICS * QUEUES) is was_clean
    assert_whole(tmp_path, config, was_clean=was_clean)


@pytest.mark.slow
def test_a_close_does_not_wait_for_a_checkpoint_of_many_queues(tmp_path: Path) -> None:
    config = replace(SMALL, segment_bytes=1 << 25, queue_file_entries=10, checkpoint_bytes=1, close_flush_max_s=0.0)
    disk = SlowDisk()
    disk.gate.clear()
    store = MessageStore.open(tmp_path, config, files=disk)
    fill(store)
    wait_until(lambda: disk.paths, what="the checkpoint's first file")
    closing = threading.Thread(target=store.close)
    closing.start()
    with pytest.raises(StoreClosed):
        wait_until(lambda: store.append(draft()) and None, what="the close")
    disk.gate.set()
    closing.join()
    assert len(disk.paths) == 1
    assert_whole(tmp_path, config, was_clean=False)
