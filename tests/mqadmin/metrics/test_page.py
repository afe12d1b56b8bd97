"""`/metrics` as Prometheus reads it: parsed, and compared with what is known."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from consumer.models import HostedGroup
from mqadmin.clusters.models import ClusterKind, ClusterState, FollowerLease, Verdict
from mqadmin.metrics.collecting import ClustersCollector
from mqadmin.metrics.page import KEPT_S, MetricsPage, may_read
from tests.support.console_rows import make_broker, make_cluster, make_group, make_queue_offset, make_topic

pytestmark = pytest.mark.django_db

Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]


# Topic → ms. What only the console noticed is no store time.
LATENCIES = {"told": 45_000, "estimated": None, "read": 0}


@pytest.fixture
def now() -> datetime:
    return timezone.now()


def scrape(now: datetime, **limits: int) -> Series:
    collector = ClustersCollector(lambda: now, **limits)
    text = collector.text().decode()
    series: Series = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in series, f"{key} is there twice"
            series[key] = sample.value
    return series


def value(series: Series, name: str, **labels: str) -> float | None:
    return series.get((name, tuple(sorted(labels.items()))))


def names(series: Series) -> set[str]:
    return {name for name, _ in series}


def test_a_groups_lag_and_offsets_have_the_names_and_labels_of_rocketmqs_exporter(now: datetime) -> None:
    cluster = make_cluster(now=now)
    group = make_group(cluster, "billing", now=now)
    for queue_id, lag in enumerate((3, 4)):
        make_queue_offset(group, "orders", queue_id, now=now, lag=lag, committed_offset=100)
    make_queue_offset(group, "%RETRY%billing", 0, now=now, lag=5, committed_offset=0)
    make_queue_offset(group, "left", 0, now=now, lag=900, is_subscribed=False)
    series = scrape(now)
    labels = {"cluster": "local", "group": "billing", "countOfOnlineConsumers": "2", "msgModel": "1"}
    assert value(series, "rocketmq_group_diff", topic="orders", **labels) == 7
    assert value(series, "rocketmq_group_retrydiff", topic="%RETRY%billing", **labels) == 5
    assert value(series, "rocketmq_group_diff", topic="left", **labels) is None
    on_broker = {"cluster": "local", "broker": "broker-a", "topic": "orders"}
    assert value(series, "rocketmq_consumer_offset", group="billing", **on_broker) == 200
    assert value(series, "rocketmq_group_consume_total_offset", group="billing", **on_broker) == 200
    assert value(series, "rocketmq_producer_offset", **on_broker) == 207
    lag_labels = {"cluster": "local", "node_type": "broker", "node_id": "broker-a", "topic": "orders"}
    assert value(series, "rocketmq_consumer_lag_messages", consumer_group="billing", **lag_labels) == 7
    assert value(series, "rocketmq_group_count", cluster="local", group="billing") == 2


def test_latency_is_the_age_of_the_oldest_message_that_waits_where_its_store_time_is_known(now: datetime) -> None:
    group = make_group(make_cluster(now=now), "billing", now=now)
    for topic, lag, changes in (
        ("told", 9, {"behind_since": now - timedelta(seconds=30), "behind_method": "store_time"}),
        ("estimated", 9, {"behind_since": now - timedelta(seconds=30), "behind_method": "observed"}),
        ("read", 0, {}),
    ):
        make_queue_offset(group, topic, 0, now=now, lag=lag, **changes)
    make_queue_offset(
        group, "told", 1, now=now, lag=3, behind_since=now - timedelta(seconds=45), behind_method="store_time"
    )
    series = scrape(now)
    labels = {"cluster": "local", "node_type": "broker", "node_id": "broker-a", "consumer_group": "billing"}
    latency = {topic: value(series, "rocketmq_consumer_lag_latency", topic=topic, **labels) for topic in LATENCIES}
    assert latency == LATENCIES


@pytest.mark.parametrize(
    ("changes", "waited_s"),
    [
        ({"kind": ClusterKind.OURS}, 45),
        ({"kind": ClusterKind.APACHE}, 25),
        ({"kind": ClusterKind.APACHE, "state": ClusterState.PARTIAL}, 45),
    ],
    ids=["followed", "sampled", "sampled in part"],
)
def test_a_wait_is_counted_up_to_where_the_page_counts_it(
    now: datetime, changes: dict[str, Any], waited_s: int
) -> None:
    since = now - timedelta(seconds=45)
    group = make_group(
        make_cluster(now=now, **changes),
        "billing",
        now=now,
        lag=9,
        behind_since=since,
        behind_method="store_time",
        offsets_seen_at=now - timedelta(seconds=20),
    )
    make_queue_offset(group, "orders", 0, now=now, lag=9, behind_since=since, behind_method="store_time")
    series = scrape(now)
    of_queue = {"cluster": "local", "node_type": "broker", "node_id": "broker-a", "consumer_group": "billing"}
    assert value(series, "rocketmq_consumer_lag_latency", topic="orders", **of_queue) == waited_s * 1000
    assert value(series, "mqadmin_group_behind_seconds", cluster="local", group="billing") == waited_s
    assert (group.behind.seen_until(now) - since).total_seconds() == waited_s


def test_queries_of_a_scrape_do_not_grow_with_groups(now: datetime) -> None:
    cluster = make_cluster(now=now, kind=ClusterKind.APACHE)

    def cost() -> int:
        with CaptureQueriesContext(connection) as asked:
            scrape(now)
        return len(asked)

    make_group(cluster, "first", now=now, lag=9, behind_since=now, behind_method="store_time")
    few = cost()
    for number in range(20):
        make_group(cluster, f"more-{number}", now=now, lag=9, behind_since=now, behind_method="store_time")
    assert cost() == few


def test_what_is_not_known_is_left_out(now: datetime) -> None:
    cluster = make_cluster(now=now)
    unknown = {"lag": None, "member_count": None, "out_per_s": None, "behind_since": None}
    group = make_group(cluster, "billing", now=now, **unknown)
    make_queue_offset(group, "orders", 0, now=now, lag=3)
    make_queue_offset(group, "orders", 1, now=now).delete()
    offset = make_queue_offset(group, "orders", 1, now=now, lag=3)
    offset.committed_offset = None
    offset.save()
    series = scrape(now)
    of_groups = {
        name for name, labels in series if ("group", "billing") in labels or ("consumer_group", "billing") in labels
    }
    assert of_groups == set()
    assert "rocketmq_brokeruntime_put_tps10" not in names(series)


def test_lag_agrees_with_the_consoles_own_rule(now: datetime) -> None:
    """A queue that never held a message is no lag, whatever was committed; none is below 0."""
    group = make_group(make_cluster(now=now), "billing", now=now)
    offsets = [
        make_queue_offset(group, "orders", 0, now=now, lag=-10, committed_offset=50),
        make_queue_offset(group, "orders", 1, now=now, lag=0, committed_offset=0),
        make_queue_offset(group, "orders", 2, now=now, lag=8, committed_offset=50),
    ]
    from mqadmin.clusters.progress import attach_ends  # the rule's own home

    attach_ends(group.cluster, offsets)
    expected = sum(offset.lag or 0 for offset in offsets)
    labels = {"cluster": "local", "group": "billing", "countOfOnlineConsumers": "2", "msgModel": "1"}
    assert value(scrape(now), "rocketmq_group_diff", topic="orders", **labels) == expected == 8


def test_hostile_names_come_back_as_they_are(now: datetime) -> None:
    name = 'a"b\\c\nd{}\u202e,=#<b>'
    make_topic(make_cluster(now=now), name, now=now, queue_count=1, per_queue=9)
    assert value(scrape(now), "rocketmq_producer_offset", cluster="local", broker="broker-a", topic=name) == 9


def test_dead_letters_are_counted_by_group_and_two_clusters_stay_apart(now: datetime) -> None:
    for name in ("east", "west"):
        cluster = make_cluster(name, now=now)
        make_topic(cluster, "%DLQ%billing", now=now, kind="dead_letter", queue_count=1, per_queue=6)
        make_group(cluster, "billing", now=now, verdict=Verdict.STALLED)
    series = scrape(now)
    for name in ("east", "west"):
        assert value(series, "rocketmq_topic_dlq_offset", cluster=name, broker="broker-a", group="billing") == 6
        assert value(series, "mqadmin_groups", cluster=name, verdict="stalled") == 1
        assert value(series, "mqadmin_groups", cluster=name, verdict="ok") == 0


def test_clusters_following_and_due_things(now: datetime) -> None:
    polled = make_cluster(
        "apache", now=now, kind=ClusterKind.APACHE, state=ClusterState.UNREACHABLE, cycle_request_count=43
    )
    polled.last_synced_at = now - timedelta(seconds=90)
    polled.save()
    make_broker(make_cluster(now=now), now=now)
    FollowerLease.objects.create(
        expires_at=now, taken_at=now - timedelta(hours=1), renewed_at=now - timedelta(seconds=4)
    )
    series = scrape(now)
    assert value(series, "mqadmin_cluster_up", cluster="local", state="reachable") == 1
    assert value(series, "mqadmin_cluster_up", cluster="apache", state="unreachable") == 0
    assert value(series, "mqadmin_cluster_age_seconds", cluster="apache") == 90
    assert value(series, "mqadmin_cluster_cycle_requests", cluster="apache") == 43
    assert value(series, "mqadmin_cluster_cycle_requests", cluster="local") is None
    assert value(series, "mqadmin_follower_renewed_age_seconds") == 4
    assert value(series, "mqadmin_scheduler_late_seconds", cluster="local", broker="broker-a", kind="timer") == 4.2
    assert (
        value(series, "mqadmin_scheduler_late_seconds", cluster="local", broker="broker-a", kind="transaction") is None
    )


def test_a_hosted_group_that_is_stopped_wants_no_instances(now: datetime) -> None:
    for name, is_stopped in (("billing", False), ("emails", True)):
        HostedGroup.objects.create(group=name, wanted_instances=2, declared_instances=2, is_stopped=is_stopped)
    series = scrape(now)
    wanted = [
        value(series, "mqadmin_hosted_instances_wanted", cluster="", group=name) for name in ("billing", "emails")
    ]
    assert wanted == [2, 0]


def test_a_group_that_is_hosted_on_two_clusters_has_two_series(now: datetime, settings: Any) -> None:
    settings.MQADMIN_CLUSTERS = {"payments": "10.9.9.9:9876"}
    settings.MQADMIN_NAMESRV = make_cluster(now=now).namesrv
    for cluster, number in (("", 2), ("payments", 3)):
        HostedGroup.objects.create(cluster=cluster, group="billing", wanted_instances=number, declared_instances=number)
    series = scrape(now)
    wanted = [
        value(series, "mqadmin_hosted_instances_wanted", cluster=cluster, group="billing")
        for cluster in ("local", "payments")
    ]
    assert wanted == [2, 3]


def test_more_rows_than_the_limit_are_left_out_and_said_so_and_groups_in_trouble_come_first(now: datetime) -> None:
    cluster = make_cluster(now=now)
    for number in range(5):
        make_queue_offset(make_group(cluster, f"fine-{number}", now=now), "orders", 0, now=now)
    make_queue_offset(make_group(cluster, "stalled", now=now, verdict=Verdict.STALLED), "orders", 0, now=now, lag=9)
    series = scrape(now, rows_max=2)
    assert len([1 for name, _ in series if name == "rocketmq_group_diff"]) == 2
    assert any(("group", "stalled") in labels for name, labels in series if name == "rocketmq_group_diff")
    assert value(series, "mqadmin_metrics_left_out", rows="group_offsets") == 1
    assert value(series, "mqadmin_metrics_left_out", rows="topic_offsets") == 0


def test_the_number_of_queries_does_not_depend_on_the_number_of_groups(
    now: datetime, django_assert_num_queries: pytest.FixtureRequest
) -> None:
    cluster = make_cluster(now=now)
    for number in range(10):
        make_queue_offset(make_group(cluster, f"group-{number}", now=now), "orders", number, now=now)
    with django_assert_num_queries(16):  # type: ignore[operator]
        scrape(now)


def test_many_who_ask_cost_no_more_than_one() -> None:
    moment = [0.0]
    collected: list[float] = []

    def collect() -> bytes:
        collected.append(moment[0])
        return b"x 1\n"

    page = MetricsPage(collect, clock=lambda: moment[0])
    assert page.text() == page.text() == b"x 1\n"
    assert len(collected) == 1
    moment[0] = KEPT_S
    page.text()
    assert len(collected) == 2


@pytest.mark.parametrize(
    ("token", "client", "headers", "may"),
    [
        ("", "127.0.0.1", {}, True),
        ("", "::1", {}, True),
        ("", "10.0.0.7", {}, False),
        ("", "127.0.0.1", {"x-forwarded-for": "10.0.0.7"}, False),
        ("", "127.0.0.1", {"forwarded": "for=10.0.0.7"}, False),
        ("", "", {}, False),
        ("", "10.0.0.7", {"authorization": "Bearer "}, False),
        ("0123456789abcdef", "127.0.0.1", {}, False),
        ("0123456789abcdef", "10.0.0.7", {"authorization": "Bearer 0123456789abcdef"}, True),
        ("0123456789abcdef", "10.0.0.7", {"authorization": "bearer 0123456789abcdef"}, True),
        ("0123456789abcdef", "10.0.0.7", {"authorization": "Bearer 0123456789abcdeF"}, False),
        ("0123456789abcdef", "10.0.0.7", {"authorization": "Basic 0123456789abcdef"}, False),
        ("0123456789abcdef", "10.0.0.7", {"authorization": "Bearer é"}, False),
    ],
)
def test_who_may_read(token: str, client: str, headers: dict[str, str], may: bool) -> None:
    assert may_read(token, client, headers) is may
