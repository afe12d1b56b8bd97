"""What pages read: truth with its age, sorted and cut by the database."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ObjectDoesNotExist
from django.utils import timezone

from mqadmin.clusters import selectors
from mqadmin.clusters.figures import DrainKind, drain
from mqadmin.clusters.models import VERDICT_RANKS, Cluster, Group, Member, QueueOffset, Subscription, Topic

pytestmark = pytest.mark.django_db

NOW = timezone.now()
EARLIER = NOW - timedelta(minutes=5)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.objects.create(name="local", namesrv="127.0.0.1:9876", kind="ours", last_synced_at=NOW)


def group(cluster: Cluster, name: str, verdict: str = "ok", **fields: Any) -> Group:
    values: dict[str, Any] = {"verdict": verdict, "verdict_rank": VERDICT_RANKS[verdict], "seen_at": EARLIER}  # type: ignore[index]
    return Group.objects.create(cluster=cluster, name=name, **(values | fields))


def names(page: Any) -> list[str]:
    return [row.name for row in page.rows]


def test_figures_of_a_followed_cluster_are_as_fresh_as_its_watch(cluster: Cluster) -> None:
    group(cluster, "billing", lag=5, offsets_seen_at=EARLIER)
    lag = selectors.groups("local").rows[0].lag_figure
    assert (lag.value, lag.seen_at) == (5, NOW)


def test_figures_of_a_polled_cluster_keep_their_own_age(cluster: Cluster) -> None:
    Cluster.objects.update(kind="apache")
    group(cluster, "billing", lag=5, offsets_seen_at=EARLIER)
    assert selectors.groups("local").rows[0].lag_figure.seen_at == EARLIER


def test_figure_that_was_never_seen_is_not_known(cluster: Cluster) -> None:
    group(cluster, "billing")
    row = selectors.groups("local").rows[0]
    assert (row.lag_figure.value, row.lag_figure.seen_at) == (None, None)
    assert row.members_figure.value is None
    assert row.drain.kind == DrainKind.UNKNOWN


def test_groups_are_sorted_with_the_unknown_last_either_way(cluster: Cluster) -> None:
    for name, lag in (("a", None), ("b", 5), ("c", 50)):
        group(cluster, name, lag=lag)
    assert names(selectors.groups("local", sort="lag", is_descending=True)) == ["c", "b", "a"]
    assert names(selectors.groups("local", sort="lag")) == ["b", "c", "a"]


def test_groups_that_need_somebody_come_first(cluster: Cluster) -> None:
    for name, verdict in (("a", "quiet"), ("b", "ok"), ("c", "slow"), ("d", "stalled")):
        group(cluster, name, verdict)
    assert names(selectors.groups("local")) == ["d", "c", "b", "a"]
    assert names(selectors.groups("local", sort="nonsense")) == ["d", "c", "b", "a"]


def test_longest_behind_is_the_largest(cluster: Cluster) -> None:
    group(cluster, "a", behind_since=NOW)
    group(cluster, "b", behind_since=EARLIER)
    group(cluster, "c")
    assert names(selectors.groups("local", sort="behind", is_descending=True)) == ["b", "a", "c"]


def test_groups_are_filtered_and_rocketmqs_own_are_hidden(cluster: Cluster) -> None:
    group(cluster, "billing")
    group(cluster, "mail", "slow")
    group(cluster, "TOOLS_CONSUMER", is_system=True)
    assert names(selectors.groups("local", filter="BILL")) == ["billing"]
    assert names(selectors.groups("local", verdict="slow")) == ["mail"]
    assert selectors.groups("local").total_count == 2
    assert selectors.groups("local", is_system_shown=True).total_count == 3


def test_list_is_cut_into_pages_and_a_page_too_far_is_the_last(cluster: Cluster) -> None:
    Group.objects.bulk_create(
        Group(cluster=cluster, name=f"g{number:03}", seen_at=NOW) for number in range(selectors.PAGE_SIZE + 3)
    )
    first = selectors.groups("local", sort="name")
    assert (len(first.rows), first.page_count, first.has_next, first.has_previous) == (40, 2, True, False)
    last = selectors.groups("local", sort="name", page=99)
    assert (names(last), last.number) == (["g040", "g041", "g042"], 2)
    assert selectors.groups("local", page=-5).number == 1


def test_list_costs_the_same_number_of_queries_however_long_it_is(
    cluster: Cluster, django_assert_num_queries: Any
) -> None:
    Group.objects.bulk_create(Group(cluster=cluster, name=f"g{number}", seen_at=NOW) for number in range(30))
    Topic.objects.bulk_create(Topic(cluster=cluster, name=f"t{number}", seen_at=NOW) for number in range(30))
    with django_assert_num_queries(3):
        selectors.groups("local")
    with django_assert_num_queries(4):
        selectors.topics("local")


@pytest.mark.parametrize("sort", selectors.TOPIC_SORTS)
def test_topics_are_sorted_by_every_column(cluster: Cluster, sort: str) -> None:
    first = Topic.objects.create(
        cluster=cluster,
        name="a",
        message_count=1,
        in_per_s=1,
        read_queue_count=1,
        last_stored_at=EARLIER,
        seen_at=NOW,
    )
    Topic.objects.create(
        cluster=cluster,
        name="b",
        message_count=2,
        in_per_s=2,
        read_queue_count=2,
        last_stored_at=NOW,
        seen_at=NOW,
    )
    reader = group(cluster, "billing")
    QueueOffset.objects.create(group=reader, topic_name="b", broker_name="x", queue_id=0, seen_at=NOW)
    page = selectors.topics("local", sort=sort)
    assert names(page) == [first.name, "b"]
    assert [row.group_count for row in page.rows] == [0, 1]
    assert names(selectors.topics("local", sort=sort, is_descending=True)) == ["b", "a"]


def test_topics_of_a_kind_or_of_all(cluster: Cluster) -> None:
    for name, kind in (("orders", "normal"), ("%RETRY%billing", "retry"), ("TBW102", "system")):
        Topic.objects.create(cluster=cluster, name=name, kind=kind, seen_at=NOW)
    assert names(selectors.topics("local")) == ["orders"]
    assert names(selectors.topics("local", kind="retry")) == ["%RETRY%billing"]
    assert selectors.topics("local", kind="").total_count == 3


def test_group_page_shows_members_with_their_queues_and_who_left(cluster: Cluster) -> None:
    billing = group(cluster, "billing")
    for client_id, left_at in (("c1", None), ("c2", EARLIER), ("c3", NOW - timedelta(days=2))):
        Member.objects.create(
            group=billing, client_id=client_id, left_at=left_at, version=493, first_seen_at=EARLIER, seen_at=EARLIER
        )
    for queue_id, owner in ((0, "c1"), (1, "c1"), (2, ""), (3, None)):
        QueueOffset.objects.create(
            group=billing, topic_name="orders", broker_name="a", queue_id=queue_id, owner=owner, seen_at=EARLIER
        )
    for ended_at in (None, EARLIER):
        Subscription.objects.create(
            group=billing, client_id="c1", topic_name="orders", first_seen_at=EARLIER, ended_at=ended_at, seen_at=NOW
        )
    page = selectors.group_page("local", "billing")
    (member,) = page.members
    assert (member.client_id, member.version_name, [queue.queue_id for queue in member.queues]) == (
        "c1",
        "5.4.0",
        [0, 1],
    )
    assert [row.client_id for row in page.departed] == ["c2"]
    assert [queue.owner for queue in page.queues] == ["c1", "c1", "", None]
    assert len(page.subscriptions) == 1


def test_topic_page_shows_its_queues_and_who_reads_it(cluster: Cluster) -> None:
    topic = Topic.objects.create(cluster=cluster, name="orders", seen_at=NOW)
    topic.queues.create(broker_name="a", queue_id=0, min_offset=1, max_offset=9, seen_at=NOW)
    billing = group(cluster, "billing")
    for queue_id in (0, 1):
        QueueOffset.objects.create(group=billing, topic_name="orders", broker_name="a", queue_id=queue_id, seen_at=NOW)
    page = selectors.topic_page("local", "orders")
    assert [(queue.min_offset, queue.max_offset) for queue in page.queues] == [(1, 9)]
    assert [reader.group.name for reader in page.readers] == ["billing"]
    assert page.topic.group_count == 1


def test_topic_page_shows_the_lag_on_this_topic_beside_the_whole_group_s(cluster: Cluster) -> None:
    billing = group(cluster, "billing", lag=507)
    waiting = NOW - timedelta(minutes=3)
    for topic, lag in (("orders", 500), ("%RETRY%billing", 7)):
        queues = Topic.objects.create(cluster=cluster, name=topic, seen_at=NOW).queues
        queues.create(broker_name="a", queue_id=0, min_offset=0, max_offset=10 + lag, seen_at=NOW)
        queues.create(broker_name="a", queue_id=1, min_offset=0, max_offset=100, seen_at=NOW)
        QueueOffset.objects.create(
            group=billing,
            topic_name=topic,
            broker_name="a",
            queue_id=0,
            committed_offset=10,
            behind_since=waiting,
            behind_method="store_time",
            seen_at=NOW,
        )
    QueueOffset.objects.create(
        group=billing,
        topic_name="%RETRY%billing",
        broker_name="a",
        queue_id=1,
        committed_offset=10,
        is_subscribed=False,
        seen_at=NOW,
    )
    (reader,) = selectors.topic_page("local", "%RETRY%billing").readers
    assert (reader.lag.value, reader.behind.since, reader.group.lag) == (7, waiting, 507)


def test_topic_page_does_not_know_the_lag_of_a_reader_without_a_known_queue(cluster: Cluster) -> None:
    Topic.objects.create(cluster=cluster, name="orders", seen_at=NOW)
    QueueOffset.objects.create(
        group=group(cluster, "billing", lag=3), topic_name="orders", broker_name="a", queue_id=0, seen_at=NOW
    )
    (reader,) = selectors.topic_page("local", "orders").readers
    assert (reader.lag.value, reader.behind.since) == (None, None)


def test_overview_asks_the_database_as_often_for_many_clusters_as_for_one(
    cluster: Cluster, django_assert_num_queries: Any
) -> None:
    for number in range(30):
        further = Cluster.objects.create(name=f"c{number}", namesrv="10.0.0.1:9876")
        group(further, "billing", "stalled", lag=number)
        further.brokers.create(name="a", address="x:1", seen_at=NOW)
        further.topics.create(name="orders", in_per_s=2.5, seen_at=NOW)
    with django_assert_num_queries(5):
        overview = selectors.overview()
    assert overview.attention_count == 30
    cards = {card.head.name: card for card in overview.clusters}
    assert (cards["c7"].lag.value, cards["c7"].broker_count, cards["c7"].in_per_s.value) == (7, 1, 2.5)
    assert (cards["local"].group_count, cards["local"].lag.value, cards["local"].topic_count) == (0, None, 0)


def test_overview_counts_and_puts_the_worst_first(cluster: Cluster) -> None:
    group(cluster, "a", "slow", lag=10)
    group(cluster, "b", "stalled", lag=5)
    group(cluster, "c", "stalled", lag=500)
    group(cluster, "d", "ok", lag=1)
    group(cluster, "SYSTEM", "stalled", lag=9, is_system=True)
    overview = selectors.overview()
    assert [item.name for item in overview.attention] == ["c", "b", "a"]
    assert overview.attention_count == 3
    (card,) = overview.clusters
    assert (card.group_count, card.attention_count, card.lag.value) == (4, 3, 516)
    assert card.in_per_s.value is None, "no topic's rate is known"
    assert [(one.verdict, one.count) for one in card.judgement.findings] == [("stalled", 2), ("slow", 1)]


def test_judgements_are_those_of_the_cards(cluster: Cluster, django_assert_num_queries: Any) -> None:
    group(cluster, "a", "slow", lag=10)
    group(cluster, "SYSTEM", "stalled", lag=9, is_system=True)
    cluster.brokers.create(name="a", address="x:1", seen_at=NOW, scheduler_driver="", last_error="refused")
    other = Cluster.objects.create(name="other", namesrv="127.0.0.1:1")
    with django_assert_num_queries(2):
        found = selectors.judgements([cluster, other])
    assert found == {one.head.pk: one.judgement for one in selectors.overview().clusters}
    assert found[cluster.pk].verdict == "partial"


def test_cluster_page_says_which_broker_answers_and_who_drives(cluster: Cluster) -> None:
    cluster.brokers.create(name="a", address="x:1", seen_at=NOW, scheduler_driver="", scheduler_late_ms=12)
    cluster.brokers.create(name="b", address="x:2", seen_at=NOW, last_error="refused")
    page = selectors.cluster_page("local")
    assert [row.is_answering for row in page.brokers] == [True, False]
    assert page.card.answering_broker_count == 1
    assert page.card.judgement.verdict == "partial"
    assert [(one.verdict, one.count) for one in page.card.judgement.findings] == [("partial", 1), ("not_running", 1)]
    first, second = page.brokers
    assert first.scheduler is not None
    assert (first.scheduler.driver, first.scheduler.late_ms) == ("", 12)
    assert second.scheduler is None


@pytest.mark.parametrize(
    ("lag", "in_per_s", "out_per_s", "kind", "seconds"),
    [
        (0, 5.0, 1.0, DrainKind.NOW, None),
        (100, 5.0, 15.0, DrainKind.IN, 10.0),
        (100, 5.0, 5.0, DrainKind.NEVER, None),
        (100, None, 5.0, DrainKind.UNKNOWN, None),
        (None, 5.0, 5.0, DrainKind.UNKNOWN, None),
    ],
)
def test_lag_drains_at_the_present_rates(
    lag: int | None, in_per_s: float | None, out_per_s: float | None, kind: DrainKind, seconds: float | None
) -> None:
    found = drain(lag, in_per_s, out_per_s)
    assert (found.kind, found.seconds) == (kind, seconds)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: selectors.cluster_page("nowhere"),
        lambda: selectors.groups("nowhere"),
        lambda: selectors.group_page("local", "nobody"),
        lambda: selectors.topic_page("local", "nothing"),
    ],
)
def test_what_is_not_there_is_said_so(cluster: Cluster, ask: Any) -> None:
    with pytest.raises(ObjectDoesNotExist):
        ask()
