"""What `/metrics` asks brokers and members for: bounded, and the most urgent first."""

from __future__ import annotations

from collections import Counter
from datetime import datetime

import pytest
from django.utils import timezone

from mqadmin.clusters.models import ClusterKind, Verdict
from mqadmin.metrics import asking
from tests.support.console_rows import make_broker, make_cluster, make_group, make_member, make_queue_offset, make_topic

pytestmark = pytest.mark.django_db


@pytest.fixture
def now() -> datetime:
    return timezone.now()


@pytest.mark.slow
def test_the_busiest_topics_and_groups_in_trouble_are_asked_for_and_no_more(now: datetime) -> None:
    cluster = make_cluster(now=now, kind=ClusterKind.APACHE)
    broker = make_broker(cluster, now=now)
    for number in range(asking.TOPICS_MAX + 20):
        make_topic(cluster, f"topic-{number}", now=now, queue_count=1, in_per_s=float(number))
    for number in range(asking.PAIRS_MAX + 20):
        make_queue_offset(make_group(cluster, f"group-{number}", now=now), f"topic-{number}", 0, now=now)
    make_queue_offset(make_group(cluster, "stalled", now=now, verdict=Verdict.STALLED), "topic-0", 0, now=now)
    asked = asking.statistics(cluster, broker)
    assert Counter(name for name, _ in asked) == dict.fromkeys(
        asking.TOPIC_STATISTICS, asking.TOPICS_MAX
    ) | dict.fromkeys(asking.GROUP_STATISTICS, asking.PAIRS_MAX)
    assert asked[0] == ("TOPIC_PUT_NUMS", f"topic-{asking.TOPICS_MAX + 19}")
    assert next(key for name, key in asked if name == "GROUP_GET_NUMS") == "topic-0@stalled"


def test_our_brokers_are_asked_for_what_they_count(now: datetime) -> None:
    cluster = make_cluster(now=now)
    make_queue_offset(make_group(cluster, "billing", now=now), "orders", 0, now=now)
    assert asking.statistics(cluster, make_broker(cluster, now=now)) == [
        ("TOPIC_PUT_NUMS", "orders"),
        ("GROUP_GET_NUMS", "orders@billing"),
    ]


def test_members_are_asked_through_a_broker_that_knows_them(now: datetime) -> None:
    cluster = make_cluster(now=now)
    masters = {"broker-a": "10.0.0.5:10911", "broker-b": "10.0.0.6:10911"}
    fine, stalled = (
        make_group(cluster, "fine", now=now),
        make_group(cluster, "stalled", now=now, verdict=Verdict.STALLED),
    )
    for number in range(asking.MEMBERS_MAX):
        make_member(fine, f"fine-{number}", now=now)
    make_member(stalled, "first", now=now, known_by=["broker-b"])
    make_member(stalled, "left", now=now, left_at=now)
    asked = asking.members(cluster, masters)
    assert len(asked) == asking.MEMBERS_MAX
    assert [(address, one.client_id) for address, one in asked[:2]] == [
        ("10.0.0.6:10911", "first"),
        ("10.0.0.5:10911", "fine-0"),
    ]
    assert asking.members(cluster, {}) == []
