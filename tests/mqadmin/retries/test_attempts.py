"""What a message that waits says of the attempt that failed."""

from __future__ import annotations

from mqadmin.retries.attempts import read_attempt
from remoting.wire.names import TIMER_TOPIC
from remoting.wire.properties import Property
from tests.support.delay_queues import FAILED_MS, retried


def test_a_retry_says_whose_it_is_which_attempt_failed_and_why() -> None:
    told = {Property.FAILURE_CLASS: "shop.Late", Property.FAILURE_TEXT: "no\0answer", Property.FAILURE_MEMBER: "m@1"}
    row = read_attempt(retried(3, attempt=2, properties=told), FAILED_MS + 30_000)
    assert row is not None
    assert (row.group_name, row.origin_topic, row.message_id, row.tag) == ("billing", "orders", "UNIQ3", "paid")
    assert (row.attempt_count, row.queue_id, row.queue_offset, row.keys) == (2, 2, 3, "order-3 k")
    assert (row.failure_class, row.failure_text, row.failed_member) == ("shop.Late", "no␀answer", "m@1")
    assert row.due_at is not None
    assert round((row.due_at - row.failed_at).total_seconds(), 3) == 29.997


def test_a_message_that_its_sender_delayed_is_none() -> None:
    assert read_attempt(retried(0, target="orders"), FAILED_MS) is None


def test_without_a_due_time_it_is_not_told() -> None:
    row = read_attempt(retried(0), None)
    assert row is not None
    assert row.due_at is None


def test_a_timer_says_itself_when_it_is_due() -> None:
    due = {Property.TIMER_OUT_MS: str(FAILED_MS + 5_000)}
    row = read_attempt(retried(0, topic=TIMER_TOPIC, properties=due), None)
    assert row is not None
    assert row.due_at is not None
    assert (row.due_at - row.failed_at).total_seconds() == 5
    garbage = read_attempt(retried(0, topic=TIMER_TOPIC, properties={Property.TIMER_OUT_MS: "soon"}), None)
    assert garbage is not None
    assert garbage.due_at is None
