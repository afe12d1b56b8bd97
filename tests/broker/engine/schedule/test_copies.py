"""Delivered copies: what is stored of them, and which a start believes."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from broker.engine.schedule.copies import append_copies, copies_from, delivered_copy, is_copy_from, timer_copy
from broker.engine.store.message_store import MessageStore
from remoting.wire.limits import PROPERTIES_BYTES_MAX
from remoting.wire.names import SCHEDULE_TOPIC
from remoting.wire.properties import decode_properties, encode_properties
from tests.support.stores import draft, open_store

WAITING = encode_properties({"REAL_TOPIC": "orders", "REAL_QID": "1", "DELAY": "1", "TAGS": "paid"})


@pytest.fixture
def store(tmp_path: Path):
    store = open_store(tmp_path)
    yield store
    store.close()


def waiting(store: MessageStore, body: bytes = b"late", text: str = WAITING):
    place = store.append(draft(body, topic=SCHEDULE_TOPIC, properties_text=text))
    return store.message_at(place.commit_log_offset)


def test_a_copy_names_the_queue_offset_after_its_source(store: MessageStore) -> None:
    copy = delivered_copy(waiting(store), 1)
    assert (copy.topic, copy.queue_id, copy.body, copy.prepared_transaction_offset) == ("orders", 1, b"late", 1)


@pytest.mark.parametrize("text", ["", encode_properties({"REAL_TOPIC": "orders", "REAL_QID": "-1"})])
def test_there_is_no_copy_where_no_topic_or_queue_is_named(store: MessageStore, text: str) -> None:
    message = waiting(store, text=text)
    assert delivered_copy(message, 1) is None
    assert timer_copy(message, 1, 5_000) is None


def test_a_timers_copy_goes_without_its_times_where_they_have_no_room(store: MessageStore) -> None:
    properties = decode_properties(WAITING)
    roomy = timer_copy(waiting(store), 1, 5_000)
    assert decode_properties(roomy.properties_text)["TIMER_DEQUEUE_MS"] == "5000"
    full = encode_properties(properties | {"x": "x" * (PROPERTIES_BYTES_MAX - len(WAITING) - 50)})
    assert "TIMER_DEQUEUE_MS" not in timer_copy(replace(waiting(store), properties_text=full), 2, 5_000).properties_text


def test_what_can_never_be_stored_is_left_out_of_its_step(store: MessageStore) -> None:
    drafts = [delivered_copy(waiting(store, b"%d" % number), number + 1) for number in range(3)]
    drafts[1] = replace(drafts[1], queue_id=2**31)
    stored = [(one.body, appended is not None) for one, appended in append_copies(store, drafts, "delay")]
    assert stored == [(b"0", True), (b"1", False), (b"2", True)]


def test_a_start_believes_a_copy_that_equals_its_source_and_no_other(store: MessageStore) -> None:
    source = waiting(store)
    true = delivered_copy(source, 1)
    for copy in (true, replace(true, body=b"other"), replace(true, prepared_transaction_offset=2)):
        store.append(copy)
    store.append(draft(b"plain"))
    claims = list(copies_from(store, 0, SCHEDULE_TOPIC, "DELAY"))
    assert [claim.body for claim in claims] == [b"late", b"other", b"late"]
    assert [is_copy_from(store, claim, SCHEDULE_TOPIC, 0) for claim in claims] == [True, False, False]
