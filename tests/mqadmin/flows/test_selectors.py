"""The map of flows: what is on it, what is left out, and what reading it costs."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from mqadmin.clusters.models import VERDICT_RANKS, Cluster, Group, Topic, TopicKind, Verdict
from mqadmin.flows import selectors
from mqadmin.flows.selectors import cluster_flows, reader_names, topic_flows
from mqadmin.flows.words import producers_words, readers_words
from mqadmin.producers.models import SeenProducer
from tests.support import console_rows as seed

pytestmark = pytest.mark.django_db


@pytest.fixture
def now() -> datetime:
    return timezone.now()


@pytest.fixture
def cluster(now: datetime) -> Cluster:
    cluster = seed.make_cluster("prod", now=now)
    seed.make_topic(cluster, "orders", now=now)
    seed.make_topic(cluster, "unread", now=now)
    return cluster


def reads(
    cluster: Cluster, group: str, *topics: str, now: datetime, verdict: Verdict = Verdict.OK, lag: int = 0
) -> Group:
    found = seed.make_group(cluster, group, now=now, lag=lag)
    Group.objects.filter(pk=found.pk).update(verdict=verdict, verdict_rank=VERDICT_RANKS[verdict])
    for topic in topics:
        seed.make_queue_offset(found, topic, 0, now=now, lag=lag)
    return found


def sent_to(cluster: Cluster, name: str, kind: TopicKind, per_s: float, count: int, now: datetime) -> None:
    seed.make_topic(cluster, name, now=now, queue_count=0)
    Topic.objects.filter(name=name).update(kind=kind, in_per_s=per_s, message_count=count)


def test_group_is_shown_with_its_lag_retries_and_dead_letters(cluster: Cluster, now: datetime) -> None:
    reads(cluster, "billing", "orders", now=now, verdict=Verdict.STALLED, lag=40)
    sent_to(cluster, "%RETRY%billing", TopicKind.RETRY, 0.5, 7, now)
    sent_to(cluster, "%DLQ%billing", TopicKind.DEAD_LETTER, 0.1, 3, now)
    (flow,) = topic_flows("prod", "orders").topics
    (one,) = flow.groups
    assert (one.group.name, one.group.verdict, one.lag) == ("billing", "stalled", 40)
    assert one.retry == selectors.Side("%RETRY%billing", 0.5, 7)
    assert one.dead == selectors.Side("%DLQ%billing", 0.1, 3)
    assert flow.more_count == 0


def test_what_is_not_known_is_none(cluster: Cluster, now: datetime) -> None:
    group = reads(cluster, "billing", "orders", now=now)
    group.queue_offsets.update(committed_offset=None)
    (flow,) = topic_flows("prod", "orders").topics
    assert (flow.groups[0].lag, flow.groups[0].retry, flow.groups[0].dead) == (None, None, None)


def test_topics_of_groups_in_trouble_come_first_and_the_rest_is_counted(
    cluster: Cluster, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selectors, "TOPICS_MAX", 3)
    for number in range(5):
        seed.make_topic(cluster, f"busy-{number}", now=now)
        Topic.objects.filter(name=f"busy-{number}").update(in_per_s=100 + number)
    reads(cluster, "slow", "unread", now=now, verdict=Verdict.SLOW, lag=9)
    reads(cluster, "stalled", "orders", now=now, verdict=Verdict.STALLED, lag=9)
    flows = cluster_flows("prod")
    assert [one.topic.name for one in flows.topics] == ["orders", "unread", "busy-4"]
    assert flows.more_count == 4


def test_the_worst_groups_of_a_topic_come_first_and_the_rest_is_counted(
    cluster: Cluster, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selectors, "GROUPS_OF_TOPIC_MAX", 2)
    reads(cluster, "a", "orders", now=now)
    reads(cluster, "b", "orders", now=now, verdict=Verdict.SLOW)
    reads(cluster, "c", "orders", now=now, verdict=Verdict.STALLED)
    flow = next(one for one in cluster_flows("prod").topics if one.topic.name == "orders")
    assert [one.group.name for one in flow.groups] == ["c", "b"]
    assert flow.more_count == 1


def test_filter_finds_topics_by_their_name_and_by_that_of_a_reader(cluster: Cluster, now: datetime) -> None:
    reads(cluster, "billing", "orders", now=now)
    assert [one.topic.name for one in cluster_flows("prod", "bill").topics] == ["orders"]
    assert [one.topic.name for one in cluster_flows("prod", "UNR").topics] == ["unread"]
    assert cluster_flows("prod", "nothing").topics == ()


def test_topic_that_a_group_does_not_subscribe_to_any_more_is_not_its_flow(cluster: Cluster, now: datetime) -> None:
    reads(cluster, "billing", "orders", now=now).queue_offsets.update(is_subscribed=False)
    (flow,) = topic_flows("prod", "orders").topics
    assert flow.groups == ()


def test_queries_do_not_grow_with_groups(cluster: Cluster, now: datetime) -> None:
    def cost() -> int:
        with CaptureQueriesContext(connection) as asked:
            cluster_flows("prod")
        return len(asked)

    reads(cluster, "g", "orders", now=now, verdict=Verdict.SLOW)
    few = cost()
    for number in range(30):
        reads(cluster, f"g{number}", "orders", now=now)
    # Who is left out is counted now: one query for the topic.
    assert cost() <= few + 1
    assert cost() <= 2 * selectors.TOPICS_MAX + 8


def test_who_is_concerned_is_said_in_words(cluster: Cluster, now: datetime, monkeypatch: pytest.MonkeyPatch) -> None:
    assert readers_words(cluster, "orders") == "No group is known to read orders."
    assert list(producers_words(cluster, {}, {})) == ["No producer is connected to its brokers now."]
    for name in ("a", "b", "c"):
        reads(cluster, name, "orders", now=now)
    assert readers_words(cluster, "orders") == "a, b, c read orders."
    monkeypatch.setattr(selectors, "NAMES_TOLD_MAX", 2)
    assert reader_names(cluster, "orders") == (["a", "b"], 1)
    assert readers_words(cluster, "orders") == "a, b and 1 more group read orders."
    for group, seen_at in (("shop", now), ("old", now - timedelta(days=2))):
        SeenProducer.objects.create(cluster=cluster, group=group, client_id="c", first_seen_at=seen_at, seen_at=seen_at)
    before = "Seen connected within a day, and perhaps sending to it: shop."
    assert list(producers_words(cluster, {}, {"broker-a": "away"})) == [
        "Which producers are connected to broker-a is not known: away",
        before,
    ]
    connected = "Connected to its brokers now, and perhaps sending to it: "
    assert list(producers_words(cluster, {"web": 2, "shop": 1}, {})) == [f"{connected}shop (1), web (2)."]
    many = {f"p{number:02}": 1 for number in range(12)}
    assert "p09 (1) and 2 more." in next(producers_words(cluster, many, {}))
