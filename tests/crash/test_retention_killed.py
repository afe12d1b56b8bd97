"""The broker killed in the midst of removing old segments: what is left is whole, and every queue goes on."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from broker.engine.store.message_store import MessageStore
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.command import Command
from tests.support.asking import ask
from tests.support.old_stores import PER_SEGMENT, old_store, segment_names
from tests.support.our_broker import OurBroker
from tests.support.reading import message_count, pull, stored_messages
from tests.support.stores import SMALL, ManualClock, draft
from tests.support.waiting import wait_until

pytestmark = pytest.mark.crash

SEGMENTS = 30
QUIET_MESSAGES = 5
# After the start, in s: a segment goes every 100 ms.
KILLS_AFTER_S = (0.05, 0.33, 0.61, 0.12, 0.47)
ALL_HOURS = ";".join(f"{hour:02d}" for hour in range(24))


def test_a_kill_while_segments_go_leaves_a_whole_store_and_every_queue_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    store = MessageStore.open(folder, SMALL, ManualClock())
    for _ in range(QUIET_MESSAGES):
        store.append(draft(topic="quiet"))
    store.close()
    old_store(folder, ManualClock(), SEGMENTS).close()
    broker = OurBroker(folder, "async", arguments=(f"--delete-when={ALL_HOURS}",))
    counts = [len(segment_names(folder))]
    for pause_s in KILLS_AFTER_S:
        if counts[-1] == 1:
            break  # so slow a machine that all went between a start and a kill
        broker.start()
        wait_until(lambda: len(segment_names(folder)) < counts[-1], what="a segment gone")
        time.sleep(pause_s)
        broker.kill()
        counts.append(len(segment_names(folder)))
        sound(folder)

    assert counts == sorted(counts, reverse=True)
    with broker:
        wait_until(lambda: len(segment_names(folder)) == 1, what="all but the last gone")
        everything = (SEGMENTS - 1) * PER_SEGMENT
        make_topic(broker.broker, "orders")
        below = pull(broker.broker, "orders", 0)
        assert below.code == ResponseCode.PULL_OFFSET_MOVED
        first = int(below.ext_fields["nextBeginOffset"])
        found = stored_messages(broker.broker, "orders", queue_offset=first)
        assert [message.queue_offset for message in found] == list(range(first, everything + 1))
        assert message_count(broker.broker, "quiet") == QUIET_MESSAGES
    sound(folder)


def sound(folder: Path) -> None:
    """Opened and looked at in a copy: the broker's own start from what was left is what the next round tests."""
    copy = folder.with_name("copy")
    shutil.copytree(folder, copy)
    store = MessageStore.open(copy)
    try:
        assert store.recovery.damages == ()
        assert store.verify().is_sound, store.verify().problems
        assert store.max_offset("quiet", 0) == QUIET_MESSAGES
        assert store.max_offset("orders", 0) == (SEGMENTS - 1) * PER_SEGMENT + 1
    finally:
        store.close()
        shutil.rmtree(copy)


def make_topic(address: str, topic: str) -> None:
    """The store was filled without a broker, which would know it."""
    fields = {"topic": topic, "defaultTopic": "TBW102", "readQueueNums": "1", "writeQueueNums": "1", "perm": "6"}
    fields |= {"topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false"}
    answer = ask(address, Command(code=RequestCode.UPDATE_AND_CREATE_TOPIC, ext_fields=fields))
    assert answer.code == ResponseCode.SUCCESS, answer.remark
