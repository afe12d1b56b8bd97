"""When a failed message has had enough, and how long it waits until then."""

from __future__ import annotations

import pytest

from broker.engine.sending.retry import is_dead_after_send_back, is_dead_on_send, retry_level, retry_limit
from remoting.wire.bodies.groups import SubscriptionGroupConfig
from remoting.wire.codes import V3_4_9

GROUP = SubscriptionGroupConfig(group_name="billing", retry_max_times=16)


@pytest.mark.parametrize(
    ("header_max", "version", "limit"),
    [(None, V3_4_9, 16), (3, V3_4_9, 3), (0, V3_4_9, 0), (3, V3_4_9 - 1, 16)],
    ids=["no limit sent", "the client's", "the client's of none", "a client too old to mean it"],
)
def test_retry_limit_is(header_max, version, limit):
    assert retry_limit(GROUP, header_max, version) == limit


def test_seventeenth_failure_is_the_last_of_sixteen_retries():
    assert [is_dead_after_send_back(times, 16, 0) for times in (0, 15, 16, 17)] == [False, False, True, True]


def test_negative_level_is_dead_at_once():
    assert is_dead_after_send_back(0, 16, -1)


def test_retry_sent_by_the_consumer_counts_its_own_failure():
    assert [is_dead_on_send(times, 16) for times in (1, 16, 17)] == [False, False, True]


def test_levels_grow_from_ten_seconds_on_unless_one_is_named():
    assert [retry_level(0, times) for times in (0, 1, 15)] == [3, 4, 18]
    assert retry_level(1, 5) == 1
