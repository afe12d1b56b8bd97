"""Due times from a record alone."""

from __future__ import annotations

import pytest

from broker.engine.store.due_times import slot_of, timer_entry, wanted_due_ms

NOW_MS = 1_700_000_000_123
SLOT = 1_700_000_005_000


@pytest.mark.parametrize(
    ("properties", "due_ms"),
    [
        ({"TIMER_DELAY_SEC": "2"}, NOW_MS + 2_000),
        ({"TIMER_DELAY_MS": "+20"}, NOW_MS + 20),
        ({"TIMER_DELAY_MS": "-5"}, NOW_MS - 5),
        ({"TIMER_DELIVER_MS": "12345"}, 12_345),
        ({"TIMER_DELIVER_MS": "1", "TIMER_DELAY_MS": "2", "TIMER_DELAY_SEC": "3"}, NOW_MS + 3_000),
        ({"TIMER_DELIVER_MS": "1", "TIMER_DELAY_MS": "2"}, NOW_MS + 2),
    ],
)
def test_a_sender_names_a_time_in_apaches_order(properties, due_ms):
    assert wanted_due_ms(properties, NOW_MS) == due_ms


@pytest.mark.parametrize("text", ["", "noon", "1.5", "1e3", "9" * 19, " 1"])
def test_a_time_that_java_cannot_read_is_refused(text):
    with pytest.raises(ValueError, match="not a number"):
        wanted_due_ms({"TIMER_DELAY_MS": text}, NOW_MS)


@pytest.mark.parametrize(("due_ms", "slot"), [(10_000, 9_000), (10_001, 10_000), (10_999, 10_000), (11_000, 10_000)])
def test_a_slot_ends_with_its_whole_second(due_ms, slot):
    assert slot_of(due_ms) == slot


@pytest.mark.parametrize(
    ("properties", "entry"),
    [
        ({"TIMER_DELIVER_MS": str(SLOT + 400)}, SLOT + 400),
        # A delay counts from the record's time, which may be some ms later, but stays in its slot.
        ({"TIMER_DELAY_MS": "5000"}, NOW_MS + 5_000),
        ({"TIMER_DELAY_MS": "5990"}, SLOT + 1_000),
        ({"TIMER_DELAY_MS": "100"}, SLOT + 1),
        ({"TIMER_DELIVER_MS": str(SLOT + 400), "TIMER_DEL_UNIQKEY": "k"}, -(SLOT + 1)),
    ],
)
def test_an_entry_holds_the_due_time_and_is_negative_for_a_delete_marker(properties, entry):
    assert timer_entry({"TIMER_OUT_MS": str(SLOT)} | properties, NOW_MS) == entry


@pytest.mark.parametrize("properties", [{}, {"TIMER_OUT_MS": "x"}, {"TIMER_OUT_MS": "1"}])
def test_an_entry_of_a_record_without_a_time_is_due_at_once(properties):
    assert timer_entry(properties, NOW_MS) == 0
