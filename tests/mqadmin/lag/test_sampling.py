"""The hot window: what a cycle writes, what it marks, what is read again, and what goes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

import pytest
from django.db import connection
from django.db.models import F
from django.utils import timezone

from mqadmin.clusters.models import Cluster, ClusterState, Group, Topic, TopicKind, TopicQueue
from mqadmin.clusters.waiting import noted
from mqadmin.lag import curves, hot_window, retention, sampling
from mqadmin.lag.gone_groups import GroupGone
from mqadmin.lag.hot_window import BrokersBack, Gap, TopicSample
from mqadmin.lag.models import GoneGroup, GoneSample, GroupSample, SampledSpan, SamplingState
from mqadmin.lag.packing import QueueSample
from mqadmin.lag.passed import passed_since

pytestmark = pytest.mark.django_db

# The first second of an hour.
START = datetime.fromtimestamp(1_700_002_800, UTC)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.objects.create(
        name="prod", namesrv="127.0.0.1:9876", kind="apache", state=ClusterState.REACHABLE, last_synced_at=START
    )


@pytest.fixture
def group(cluster: Cluster) -> Group:
    """Has 10 of 15 messages of queue 0 of `orders` committed."""
    topic = Topic.objects.create(cluster=cluster, name="orders", seen_at=START)
    topic.queues.create(broker_name="a", queue_id=0, min_offset=0, max_offset=15, seen_at=START)
    group = Group.objects.create(cluster=cluster, name="billing", member_count=1, seen_at=START)
    group.queue_offsets.create(
        topic_name="orders", broker_name="a", queue_id=0, committed_offset=10, committed_since=START, seen_at=START
    )
    return group


def cycle(cluster: Cluster, seconds: float, **changes: Any) -> int | None:
    """Takes the cycle of that moment; the cluster was polled just now, unless `changes` say otherwise."""
    now = START + timedelta(seconds=seconds)
    fields = {"last_synced_at": now, "last_tried_at": now} | changes
    Cluster.objects.filter(pk=cluster.pk).update(**fields)
    return sampling.sample_cluster(Cluster.objects.with_freshness().get(pk=cluster.pk), now)


def consume(group: Group, committed_offset: int) -> None:
    group.queue_offsets.update(committed_offset=committed_offset)
    Group.objects.filter(pk=group.pk).update(revision=F("revision") + 1)


def window(
    cluster: Cluster, since: float = 0, until: float = 10_000
) -> list[TopicSample | Gap | GroupGone | BrokersBack]:
    return list(hot_window.samples(cluster, START + timedelta(seconds=since), START + timedelta(seconds=until)))


def committed(found: Sequence[TopicSample | Gap | GroupGone | BrokersBack]) -> list[int | None]:
    return [one.queues[0].committed_offset for one in found if isinstance(one, TopicSample)]


def test_cycle_writes_what_changed_and_nothing_else(group: Group) -> None:
    assert [cycle(group.cluster, 0), cycle(group.cluster, 30)] == [1, 0]
    consume(group, 12)
    assert cycle(group.cluster, 60) == 1
    Group.objects.update(revision=F("revision") + 1)
    assert cycle(group.cluster, 90) == 0, "another revision of the same figures"
    assert committed(window(group.cluster, until=100)) == [10, 12]


@pytest.mark.slow
def test_first_cycle_of_an_hour_writes_all_groups(group: Group) -> None:
    for seconds in range(0, 3600, 30):
        cycle(group.cluster, seconds)
    assert GroupSample.objects.count() == 1
    assert cycle(group.cluster, 3600) == 1


def test_sample_says_since_when_the_next_message_waits_and_how_exactly_that_is_known(group: Group) -> None:
    at_s = int(START.timestamp())
    history = noted(noted(b"", at_s - 20, 9), at_s - 5, 15)
    TopicQueue.objects.update(max_history=history)
    cycle(group.cluster, 0)
    group.queue_offsets.update(behind_since=START - timedelta(seconds=7), behind_method="store_time")
    consume(group, 11)
    cycle(group.cluster, 30)
    first, second = (one.queues[0] for one in window(group.cluster, until=40) if isinstance(one, TopicSample))
    assert (first.waiting_s(at_s), first.doubt_ms) == (5, 15_000), "it came between two samples"
    assert (second.waiting_s(at_s), second.doubt_ms) == (7, 0), "the broker's store time"


def test_dead_letters_are_sampled_though_nobody_reads_them(group: Group) -> None:
    cycle(group.cluster, 0)
    dead = Topic.objects.create(
        cluster=group.cluster, name="%DLQ%billing", kind=TopicKind.DEAD_LETTER, max_total=3, seen_at=START
    )
    dead.queues.create(broker_name="a", queue_id=0, min_offset=0, max_offset=3, seen_at=START)
    assert cycle(group.cluster, 30) == 1
    newest = window(group.cluster, until=40)[-1]
    assert isinstance(newest, TopicSample)
    assert (newest.topic, newest.queues) == ("%DLQ%billing", (QueueSample("a", 0, None, 3),))


def test_dead_letters_that_are_there_are_sampled_before_it_is_known_how_many(group: Group) -> None:
    cycle(group.cluster, 0)
    dead = Topic.objects.create(cluster=group.cluster, name="%DLQ%billing", kind=TopicKind.DEAD_LETTER, seen_at=START)
    assert [cycle(group.cluster, 30), cycle(group.cluster, 60)] == [1, 0]
    dead.queues.create(broker_name="a", queue_id=0, min_offset=0, max_offset=3, seen_at=START)
    Topic.objects.filter(pk=dead.pk).update(max_total=3)
    assert cycle(group.cluster, 90) == 1
    found = [one for one in window(group.cluster, until=100) if isinstance(one, TopicSample)]
    assert [one.queues for one in found if one.topic == "%DLQ%billing"] == [
        (QueueSample("", 0, None, None),),
        (QueueSample("a", 0, None, 3),),
    ]
    drawn = curves.curves(group, START, START + timedelta(seconds=120))
    assert {point.dead for point in drawn.points} == {None, 3}


def test_one_worker_takes_a_cycle_and_a_killed_one_does_not_keep_it(group: Group) -> None:
    assert cycle(group.cluster, 0) == 1
    assert cycle(group.cluster, 10) is None, "not due"
    SamplingState.objects.update(claimed_until=START + timedelta(seconds=100))
    assert cycle(group.cluster, 30) is None
    assert cycle(group.cluster, 101) == 1


def test_late_cycle_leaves_a_gap_and_then_all_groups_are_written(group: Group) -> None:
    cycle(group.cluster, 0)
    assert cycle(group.cluster, 200) == 1
    start_s = int(START.timestamp())
    assert hot_window.gaps(group.cluster, START, START + timedelta(seconds=210)) == [
        Gap(start_s, start_s + 200, "late", "")
    ]
    found = window(group.cluster, until=210)
    assert [type(one).__name__ for one in found] == ["TopicSample", "Gap", "TopicSample"]


def test_window_that_ends_after_the_last_cycle_says_so(group: Group) -> None:
    cycle(group.cluster, 0)
    assert [gap.state for gap in hot_window.gaps(group.cluster, START, START + timedelta(seconds=44))] == []
    assert [gap.state for gap in hot_window.gaps(group.cluster, START, START + timedelta(seconds=60))] == ["late"]


def test_cluster_that_does_not_answer_is_marked_and_not_sampled(group: Group) -> None:
    cycle(group.cluster, 0)
    consume(group, 14)
    for seconds in (30, 60):
        assert cycle(group.cluster, seconds, state=ClusterState.UNREACHABLE, last_error="timed out") == 0
    assert cycle(group.cluster, 90, state=ClusterState.REACHABLE) == 1
    gaps = [one for one in window(group.cluster, until=100) if isinstance(one, Gap)]
    assert [(gap.state, gap.note) for gap in gaps] == [("failed", "the cluster does not answer: timed out")]
    assert [span.cycle_count for span in SampledSpan.objects.order_by("since_s")] == [1, 2, 1]


def test_rows_that_nobody_vouches_for_are_not_sampled(group: Group) -> None:
    assert cycle(group.cluster, 0, last_synced_at=START - sampling.FRESH_FOR - timedelta(seconds=1)) == 0
    assert SampledSpan.objects.get().note == "nothing follows the cluster"


def test_cluster_with_a_silent_broker_is_sampled_and_marked(group: Group) -> None:
    assert cycle(group.cluster, 0, state=ClusterState.PARTIAL, last_synced_at=None, last_error="b: timed out") == 1
    assert SampledSpan.objects.get().state == "partial"


@pytest.mark.parametrize("kind", ["ours", "apache"])
def test_a_partial_gap_says_which_brokers_did_not_answer_and_when_they_are_back(group: Group, kind: str) -> None:
    cluster = group.cluster
    cluster.brokers.create(name="a", address="a:1")
    broker = cluster.brokers.create(name="b", address="b:1", last_error="" if kind == "ours" else "timed out")
    cluster.brokers.create(name="a", broker_id=1, address="a:2", last_error="a replica, of which nothing is asked")
    away = {"brokers_away": {"b": None}} if kind == "ours" else {"last_error": "b: timed out"}
    for seconds in (30, 60):
        cycle(cluster, seconds, state=ClusterState.PARTIAL, **away)
    broker.last_error = ""
    broker.save()
    cycle(cluster, 90, state=ClusterState.REACHABLE, brokers_away={})
    start_s = int(START.timestamp())
    found = window(cluster, until=100)
    assert [(one.at_s - start_s, one.until_s - start_s, one.brokers) for one in found if isinstance(one, Gap)] == [
        (30, 60, ("b",))
    ]
    assert BrokersBack(start_s + 90) in found


def test_error_while_sampling_fails_the_cycle_and_not_the_next(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(sampling.packing, "laid_out", lambda _: 1 / 0)
        assert cycle(group.cluster, 0) == 0
    assert "ZeroDivisionError" in SampledSpan.objects.get().note
    assert cycle(group.cluster, 30) == 1


def test_samples_of_a_group_begin_with_what_held(group: Group) -> None:
    cycle(group.cluster, 0)
    consume(group, 13)
    cycle(group.cluster, 1800)
    found = hot_window.group_samples(group, START + timedelta(seconds=900), START + timedelta(seconds=2000))
    assert committed(list(found)) == [10, 13]


@pytest.mark.parametrize("left_at", [600, 3600], ids=["within an hour", "with the first cycle of an hour"])
def test_topic_that_is_read_no_longer_is_written_once_more_without_queues(group: Group, left_at: int) -> None:
    refunds = Topic.objects.create(cluster=group.cluster, name="refunds", seen_at=START)
    refunds.queues.create(broker_name="a", queue_id=0, min_offset=0, max_offset=9, seen_at=START)
    group.queue_offsets.create(
        topic_name="refunds", broker_name="a", queue_id=0, committed_offset=4, committed_since=START, seen_at=START
    )
    for seconds in range(left_at - 60, left_at, 30):
        cycle(group.cluster, seconds)
    group.queue_offsets.filter(topic_name="refunds").update(is_subscribed=False)
    Group.objects.filter(pk=group.pk).update(revision=F("revision") + 1)
    cycle(group.cluster, left_at)
    Group.objects.filter(pk=group.pk).update(revision=F("revision") + 1)
    cycle(group.cluster, left_at + 30)
    of_topic = [one for one in window(group.cluster) if isinstance(one, TopicSample) and one.topic == "refunds"]
    seen = [(one.at_s - int(START.timestamp()), len(one.queues)) for one in of_topic]
    assert seen == [(left_at - 60, 1), (left_at, 0)]
    since, until = (START + timedelta(seconds=seconds) for seconds in (left_at - 60, left_at + 60))
    assert [point.lag for point in curves.curves(group, since, until).points] == [10, 5, 5, 5]


def test_topic_that_is_read_again_passed_only_what_it_has_committed_since(group: Group) -> None:
    for seconds, committed_offset, is_subscribed in ((0, 10, True), (30, 10, False), (600, 12, True)):
        group.queue_offsets.update(is_subscribed=is_subscribed)
        consume(group, committed_offset)
        cycle(group.cluster, seconds)
    passed = passed_since(group, "orders", START + timedelta(seconds=60))
    assert passed is not None
    assert (passed.count, passed.since) == (2, START)


def test_rows_of_many_chunks_come_once_and_in_order(group: Group, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(10):
        consume(group, number)
        cycle(group.cluster, 30 * number)
    monkeypatch.setattr(hot_window, "ROWS_PER_READ", 3)
    assert committed(window(group.cluster, until=300)) == list(range(10))


def test_after_six_hours_a_minute_has_one_sample_and_after_two_days_none(group: Group) -> None:
    for number in range(8):
        consume(group, number)
        cycle(group.cluster, 30 * number)
    thinned_at = START + timedelta(seconds=retention.RAW_FOR_S + 240)
    assert retention.step(group.cluster, thinned_at) == 3
    assert retention.step(group.cluster, thinned_at) == 1, "a step is bounded; the next one goes on"
    assert retention.step(group.cluster, thinned_at) == 0
    assert committed(window(group.cluster, until=300)) == [1, 3, 5, 7]
    assert retention.step(group.cluster, START + timedelta(seconds=retention.KEPT_FOR_S + 200)) == 3
    assert committed(window(group.cluster, until=300)) == [7]


def test_what_is_not_appended_stays_for_four_days_and_what_goes_then_is_noted_as_lost(group: Group) -> None:
    for number in range(4):
        consume(group, number)
        cycle(group.cluster, 1800 * number)
    SamplingState.objects.update(appended_until_s=int(START.timestamp()) + 3600)
    three_days = START + timedelta(days=3)
    assert retention.step(group.cluster, three_days) >= 2
    assert committed(window(group.cluster)) == [2, 3], "the history has the first hour, and not the second"
    assert SamplingState.objects.get().lost_until_s == 0
    retention.step(group.cluster, START + timedelta(days=4, hours=2, minutes=20))
    assert window(group.cluster) == []
    assert SamplingState.objects.get().lost_until_s == START.timestamp() + 7200


def test_the_history_gets_what_a_deleted_group_had_and_was_not_appended(group: Group) -> None:
    cycle(group.cluster, 0)
    consume(group, 12)
    cycle(group.cluster, 3600)
    SamplingState.objects.update(appended_until_s=int(START.timestamp()) + 3600)
    gone_id = group.pk
    with patch.object(timezone, "now", lambda: START + timedelta(seconds=3700)):
        Group.objects.filter(pk=group.pk).delete()
    found = window(group.cluster)
    assert committed(found) == [12]
    assert [(type(one).__name__, one.at_s - int(START.timestamp())) for one in found if not isinstance(one, Gap)] == [
        ("TopicSample", 3600),
        ("GroupGone", 3700),
    ]
    assert GroupGone(int(START.timestamp()) + 3700, gone_id) in found
    retention.step(group.cluster, START + timedelta(days=5))
    assert GoneGroup.objects.count() == GoneSample.objects.count() == 0


def test_nothing_is_kept_of_a_deleted_group_where_nobody_appends_nor_of_a_deleted_cluster(group: Group) -> None:
    cluster = group.cluster
    cycle(cluster, 0)
    group.delete()
    assert GoneGroup.objects.count() == 0
    Group.objects.create(cluster=cluster, name="mail", seen_at=START)
    SamplingState.objects.update(appended_until_s=0)
    Cluster.objects.filter(pk=cluster.pk).delete()
    assert GoneGroup.objects.count() == 0


def test_window_is_read_by_its_indexes(group: Group) -> None:
    rows = GroupSample.objects
    by_time = rows.filter(cluster=group.cluster, at_s__gte=1, at_s__lt=2).order_by("at_s", "pk")
    by_group = rows.filter(group=group, at_s__gte=1, at_s__lt=2).order_by("at_s", "pk")
    if connection.vendor == "sqlite":
        assert "mq_sample_by_time" in by_time.explain()
        assert "mq_sample_by_group" in by_group.explain()
