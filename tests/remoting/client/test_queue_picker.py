from __future__ import annotations

import pytest

from remoting.client import queue_picker
from remoting.client.queue_picker import QueuePicker
from remoting.wire.bodies.message_queue import MessageQueue

QUEUES = [MessageQueue("T", broker, number) for broker in "ab" for number in range(2)]


def test_queues_take_turns() -> None:
    picker = QueuePicker()
    picked = [picker.pick("T", QUEUES) for _ in range(8)]
    assert sorted(picked[:4]) == QUEUES
    assert picked[:4] == picked[4:]


def test_each_topic_has_its_own_round() -> None:
    picker = QueuePicker()
    first = picker.pick("T", QUEUES)
    for _ in range(3):
        picker.pick("U", QUEUES)
    assert picker.pick("T", QUEUES) == QUEUES[(QUEUES.index(first) + 1) % 4]


def test_the_broker_that_failed_is_avoided() -> None:
    picker = QueuePicker()
    assert {picker.pick("T", QUEUES, "a").broker_name for _ in range(8)} == {"b"}


def test_the_broker_that_failed_is_taken_when_there_is_no_other() -> None:
    assert QueuePicker().pick("T", QUEUES[:2], "a").broker_name == "a"


def test_beyond_the_bound_the_oldest_topic_is_forgotten_and_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_picker.random, "randrange", lambda _: 0)
    picker = QueuePicker(topics_max=3)
    for number in range(4):
        picker.pick(f"T{number}", QUEUES)
    assert picker.pick("T1", QUEUES) == QUEUES[1]
    assert picker.pick("T0", QUEUES) == QUEUES[0]
