"""What a delete marker recalls, and for how long."""

from __future__ import annotations

import pytest

from broker.engine.schedule.delete_markers import DeleteMarkers
from broker.engine.schedule.timer_runs import Timer
from remoting.wire.properties import encode_properties
from remoting.wire.stored_message import StoredMessage

SLOT = 10_000
MARKER = Timer(SLOT + 1, is_message=False, queue_offset=7)


def message(**properties: str) -> StoredMessage:
    return StoredMessage(topic="rmq_sys_wheel_timer", queue_id=0, properties_text=encode_properties(properties))


def waiting(due_ms: int) -> Timer:
    return Timer(due_ms, is_message=True, queue_offset=3)


@pytest.fixture
def markers() -> DeleteMarkers:
    markers = DeleteMarkers()
    markers.remember(MARKER, message(TIMER_DEL_UNIQKEY="K1"))
    return markers


def test_a_marker_recalls_its_key_in_its_slot(markers: DeleteMarkers) -> None:
    assert markers.recalls(waiting(SLOT + 1), message(UNIQ_KEY="K1"))
    assert markers.recalls(waiting(SLOT + 1_000), message(UNIQ_KEY="K1"))


@pytest.mark.parametrize("due_ms", [SLOT, SLOT + 1_001], ids=["slot before", "slot behind"])
def test_a_marker_recalls_nothing_of_another_slot(markers: DeleteMarkers, due_ms: int) -> None:
    assert not markers.recalls(waiting(due_ms), message(UNIQ_KEY="K1"))


def test_a_marker_recalls_no_other_key_and_none_without_one(markers: DeleteMarkers) -> None:
    assert not markers.recalls(waiting(SLOT + 1), message(UNIQ_KEY="K2"))
    assert not markers.recalls(waiting(SLOT + 1), message())


def test_a_marker_may_name_the_topic_too() -> None:
    markers = DeleteMarkers()
    markers.remember(MARKER, message(TIMER_DEL_UNIQKEY="orders+K1"))
    assert markers.recalls(waiting(SLOT + 1), message(UNIQ_KEY="K1", REAL_TOPIC="orders"))
    assert not markers.recalls(waiting(SLOT + 1), message(UNIQ_KEY="K1", REAL_TOPIC="others"))


def test_a_slot_ends_when_its_second_is_over_and_nothing_of_it_waits(markers: DeleteMarkers) -> None:
    assert list(markers.end_slots(SLOT + 1_000, None)) == []
    assert list(markers.end_slots(SLOT + 1_001, waiting(SLOT + 1_000))) == []
    assert list(markers.end_slots(SLOT + 1_001, waiting(SLOT + 1_001))) == [MARKER.queue_offset]
    assert not markers
