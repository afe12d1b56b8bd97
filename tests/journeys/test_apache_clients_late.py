"""What takes its time: delays, and messages that their listener refuses until they are dead letters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.journeys.retries import Retries
from tests.journeys.return_delays import FIRST_LEVELS, assert_deliveries_delayed
from tests.support.java_client import JavaClient
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey, pytest.mark.java]

Fresh = Callable[[str], str]
JUDGED_WITHIN_S = 200.0


def test_a_delayed_message_comes_at_its_time_and_not_before(java: JavaClient, fresh: Fresh) -> None:
    topic, sender, name = fresh("delayed"), fresh("producer"), fresh("consumer")
    java.producer(sender)
    java.send(sender, topic, body="at-once-")
    java.consumer(name, fresh("group"), topic)
    java.wait_consumed(1, name)
    for level in (4, 1):
        java.send(sender, topic, body=f"level-{level}-", delay_level=level)
    late = java.wait_consumed(3, name)[1:]
    for each in (sender, name):
        java.stop(each)
    assert [message["body"] for message in late] == ["level-1-0", "level-4-0"]
    for message, delay_ms in zip(late, (1000, 30_000), strict=True):
        assert message["at_ms"] - message["born_ms"] >= delay_ms
        assert message["topic"] == topic


def test_a_refused_message_returns_after_10_and_30_s_and_ends_as_a_dead_letter(
    java: JavaClient, cluster: Any, retries: Retries, fresh: Fresh
) -> None:
    retry = retries.begin(cluster, java)

    def deliveries() -> list[dict[str, Any]]:
        """Of the message itself; the warm-up may come again to the group's second member."""
        return [message for message in java.consumed(retry.consumer) if message["msg_id"] == retry.msg_id]

    seen = wait_until(lambda: found if len(found := deliveries()) >= 3 else None, JUDGED_WITHIN_S, "three deliveries")
    assert [message["reconsume_times"] for message in seen] == [0, 1, 2]
    assert {message["topic"] for message in seen} == {retry.topic}
    assert {(message["tags"], message["keys"], message["body"]) for message in seen} == {("tag", "key0", "refused-0")}
    assert len({message["offset_msg_id"] for message in seen}) == 3, "a returned message is stored anew"
    assert_deliveries_delayed(cluster.broker, seen, FIRST_LEVELS)

    undertaker = fresh("undertaker")
    java.consumer(undertaker, fresh("group"), f"%DLQ%{retry.group}")

    def burials() -> list[dict[str, Any]]:
        return [message for message in java.consumed(undertaker) if message["msg_id"] == retry.msg_id]

    (dead,) = wait_until(burials, what="the dead letter")
    java.stop(undertaker)
    java.stop(retry.consumer)
    assert dead["msg_id"] == retry.msg_id
    assert (dead["body"], dead["tags"], dead["keys"]) == ("refused-0", "tag", "key0")
    assert dead["topic"] == f"%DLQ%{retry.group}"
    assert dead["properties"]["RETRY_TOPIC"] == retry.topic
    assert len(deliveries()) == 3, "a dead letter is not delivered to its group again"
