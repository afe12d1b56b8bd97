"""What takes its time with our consumer: a message that its listener refuses until it is a dead letter."""

from __future__ import annotations

import pytest

from tests.journeys.conftest import Cluster
from tests.journeys.refusals import BODY, KEYS, TAGS, Refusals
from tests.journeys.return_delays import FIRST_LEVELS, assert_delayed
from tests.support.reading import stored_messages
from tests.support.refusing import GROUP, RETURNS_MAX, TOPIC
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.journey]

JUDGED_WITHIN_S = 200.0
BURIED_WITHIN_S = 120.0


def test_a_message_whose_listener_always_raises_returns_after_10_and_30_s_and_ends_as_a_dead_letter(
    cluster: Cluster, refusals: Refusals
) -> None:
    refusal = refusals.begin(cluster)
    dead_letters = f"%DLQ%{GROUP}"
    wait_until(lambda: len(refusal.deliveries()) > RETURNS_MAX, JUDGED_WITHIN_S, "three deliveries")
    (dead,) = wait_until(lambda: stored_messages(cluster.broker, dead_letters), BURIED_WITHIN_S, "the dead letter")
    seen = refusal.deliveries()
    assert [delivery["reconsume_times"] for delivery in seen] == [0, 1, 2]
    assert {(each["message_id"], each["topic"], each["tags"], each["body"]) for each in seen} == {
        (refusal.message_id, TOPIC, TAGS, BODY)
    }
    returns = stored_messages(cluster.broker, f"%RETRY%{GROUP}")
    failed_ms = [delivery["at_ms"] for delivery in seen[:RETURNS_MAX]]
    returned_ms = [message.store_timestamp_ms for message in returns]
    assert_delayed(cluster.broker, refusal.message_id, failed_ms, returned_ms, FIRST_LEVELS)

    assert (dead.body, dead.tags, dead.keys) == (BODY.encode(), TAGS, [KEYS])
    assert (dead.unique_key, dead.properties["RETRY_TOPIC"]) == (refusal.message_id, TOPIC)
    exit_code, output = refusal.consumer.stop(), refusal.consumer.output()
    assert exit_code == 0, output
    assert output.count("ValueError: refused by the test") >= len(seen), "each failure is told with its traceback"
