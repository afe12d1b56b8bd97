"""From an observation to rows: what is written, what is left alone, and what pages hear of."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from mqadmin.clusters.models import Cluster, Group, Member, QueueOffset, Subscription, Topic, TopicQueue
from mqadmin.lag.models import LagHistory
from mqadmin.live import events
from mqadmin.live.events import Change
from mqadmin.observing import synchroniser
from mqadmin.observing.observation import (
    BrokerObserved,
    CommitObserved,
    ConsumptionObserved,
    GroupObserved,
    GroupSettingsObserved,
    MemberObserved,
    Observation,
    ObservedEvent,
    QueueObserved,
    SubscriptionKey,
    TopicObserved,
)
from mqadmin.observing.signals import Ticked, publish, ticked
from mqadmin.rebalances.models import RebalanceEvent
from remoting.wire.bodies.message_queue import MessageQueue

pytestmark = pytest.mark.django_db

NOW = timezone.now()
QUEUE = MessageQueue("orders", "broker-a", 0)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.objects.create(name="local", namesrv="127.0.0.1:9876", kind="ours")


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> list[Change]:
    """Collects the changes that open pages would have been sent."""
    sent: list[Change] = []
    monkeypatch.setattr(events, "publish", sent.extend)
    return sent


def group(name: str = "billing", topic: str = "orders", expression: str = "*", members: int = 1) -> GroupObserved:
    return GroupObserved(
        name=name,
        settings=GroupSettingsObserved(is_consume_enabled=True, retry_times_max=16),
        consumption=ConsumptionObserved("CLUSTERING", "CONSUME_PASSIVELY", "CONSUME_FROM_LAST_OFFSET"),
        members=tuple(
            MemberObserved(client_id=f"c{number}", address="10.0.0.7:1", language="JAVA", version=493)
            for number in range(members)
        ),
        subscriptions={
            SubscriptionKey(client_id, topic, expression, "TAG"): 1
            for client_id in ("", *(f"c{number}" for number in range(members)))
            if members
        },
        owners={},
    )


def seen(seconds: float = 0, **facts: Any) -> Observation:
    values: dict[str, Any] = {"is_complete": False, "of_broker": "broker-a"}
    return Observation(at=NOW + timedelta(seconds=seconds), **(values | facts))


def everything(end: int = 10, committed: int = 10, **facts: Any) -> Observation:
    return seen(
        is_complete=True,
        topics=(TopicObserved("orders", 1, 1, 6),),
        queues=(QueueObserved(QUEUE, 0, end, None),),
        groups=(group(),),
        committed=(CommitObserved("billing", QUEUE, committed),),
        **facts,
    )


def apply(cluster: Cluster, facts: Observation) -> int:
    return synchroniser.apply(cluster, facts, is_watched=True)


def tick(cluster: Cluster, seconds: float) -> None:
    publish(ticked, Ticked(cluster, NOW + timedelta(seconds=seconds), is_watched=True))


def test_same_facts_twice_change_nothing_the_second_time(cluster: Cluster) -> None:
    apply(cluster, everything())
    before = [list(model.objects.values()) for model in (Topic, TopicQueue, Member, Subscription, QueueOffset)]
    apply(cluster, everything())
    after = [list(model.objects.values()) for model in (Topic, TopicQueue, Member, Subscription, QueueOffset)]
    assert before == after
    assert not RebalanceEvent.objects.exists()


def test_queue_that_grows_reaches_every_group_that_reads_it(cluster: Cluster) -> None:
    apply(cluster, everything())
    apply(cluster, seen(groups=(group("mail"),), committed=(CommitObserved("mail", QUEUE, 4),)))
    apply(cluster, seen(1, queues=(QueueObserved(QUEUE, 0, 15, None),)))
    assert dict(Group.objects.values_list("name", "lag")) == {"billing": 5, "mail": 11}


def test_commit_alone_keeps_the_subscription_that_was_told_before(cluster: Cluster) -> None:
    retry = MessageQueue("%RETRY%billing", "broker-a", 0)
    apply(cluster, everything())
    apply(cluster, seen(1, committed=(CommitObserved("billing", retry, 3),)))
    rows = dict(QueueOffset.objects.values_list("topic_name", "is_subscribed"))
    assert rows == {"orders": True, "%RETRY%billing": False}


def test_lag_of_a_topic_that_is_not_subscribed_any_more_does_not_count(cluster: Cluster) -> None:
    apply(cluster, everything(end=50, committed=10))
    assert Group.objects.get().lag == 40
    apply(cluster, seen(1, groups=(group(topic="refunds"),)))
    row = Group.objects.get()
    assert (row.lag, row.queue_count) == (None, 0)
    apply(cluster, seen(2, groups=(group(topic="orders"),)))
    assert Group.objects.get().lag == 40


def test_lag_still_counts_while_nobody_is_online(cluster: Cluster) -> None:
    apply(cluster, everything(end=50, committed=10))
    apply(cluster, seen(1, groups=(group(members=0),)))
    row = Group.objects.get()
    assert (row.lag, row.member_count, row.verdict) == (40, 0, "stopped")
    assert not Subscription.objects.filter(ended_at=None).exists()


def test_group_whose_offset_stands_becomes_stalled_by_time_alone(cluster: Cluster, published: list[Change]) -> None:
    apply(cluster, everything(end=50, committed=10))
    assert Group.objects.get().verdict == "ok"
    tick(cluster, 59)
    assert Group.objects.get().verdict == "ok"
    tick(cluster, 61)
    row = Group.objects.get()
    assert (row.verdict, row.verdict_rule, row.verdict_rank) == ("stalled", "offset_stands", 0)
    assert row.verdict_since == NOW + timedelta(seconds=61)


def test_rates_fall_to_zero_when_nothing_comes_any_more(cluster: Cluster) -> None:
    apply(cluster, everything(end=10, committed=10))
    apply(
        cluster,
        seen(10, queues=(QueueObserved(QUEUE, 0, 60, None),), committed=(CommitObserved("billing", QUEUE, 40),)),
    )
    assert Group.objects.values_list("in_per_s", "out_per_s").get() == (5.0, 3.0)
    assert Topic.objects.get().in_per_s == 5.0
    tick(cluster, 20)
    assert Group.objects.values_list("in_per_s", "out_per_s").get() == (0, 0)
    assert Topic.objects.get().in_per_s == 0


def test_queue_that_is_new_to_a_group_is_not_a_burst(cluster: Cluster) -> None:
    retry = MessageQueue("%RETRY%billing", "broker-a", 0)
    apply(cluster, everything(end=10, committed=10))
    grown = seen(10, queues=(QueueObserved(QUEUE, 0, 60, None),), committed=(CommitObserved("billing", QUEUE, 60),))
    apply(cluster, grown)
    retried = CommitObserved("billing", retry, 1_000_000)
    topics = (TopicObserved(retry.topic, 1, 1, 6),)
    told_of = group(topic=retry.topic)
    both = {**(group().subscriptions or {}), **(told_of.subscriptions or {})}
    apply(
        cluster,
        seen(
            20,
            topics=topics,
            queues=(QueueObserved(retry, 0, 1_000_000, None),),
            groups=(replace(told_of, subscriptions=both),),
            committed=(retried,),
        ),
    )
    assert Group.objects.values_list("in_per_s", "out_per_s").get() == (5.0, 5.0), "as before"
    tick(cluster, 30)
    assert Group.objects.values_list("in_per_s", "out_per_s").get() == (0, 0)


def test_history_keeps_what_the_lag_was(cluster: Cluster) -> None:
    apply(cluster, everything(end=10, committed=10))
    apply(cluster, seen(90, queues=(QueueObserved(QUEUE, 0, 17, None),)))
    tick(cluster, 90)
    assert len(LagHistory.objects.get().samples) == 2 * 12
    cluster.refresh_from_db()
    assert len(cluster.lag_history) == 12


def test_quiet_tick_writes_no_group(cluster: Cluster) -> None:
    apply(cluster, everything())
    tick(cluster, 11)
    row = Group.objects.get()
    tick(cluster, 12)
    assert Group.objects.get().revision == row.revision


def test_complete_facts_delete_what_they_do_not_name(cluster: Cluster) -> None:
    apply(cluster, everything())
    apply(
        cluster,
        seen(1, is_complete=True, topics=(TopicObserved("refunds", 1, 1, 6),), groups=(group("mail", "refunds"),)),
    )
    assert list(Topic.objects.values_list("name", flat=True)) == ["refunds"]
    assert list(Group.objects.values_list("name", flat=True)) == ["mail"]
    assert list(QueueOffset.objects.values_list("topic_name", flat=True)) == ["refunds"]


def test_other_clusters_are_left_alone(cluster: Cluster) -> None:
    other = Cluster.objects.create(name="prod", namesrv="10.0.0.1:9876")
    apply(other, everything(end=99, committed=9))
    apply(cluster, everything())
    apply(cluster, seen(1, is_complete=True))
    assert Group.objects.get().cluster == other
    assert Group.objects.get().lag == 90


def test_deleted_topic_takes_its_lag_with_it(cluster: Cluster) -> None:
    apply(cluster, everything(end=50, committed=10))
    apply(cluster, seen(1, gone_topics=("orders",)))
    assert Group.objects.get().lag is None
    assert not QueueOffset.objects.exists()


def test_events_of_a_watch_are_written_with_what_the_rows_say(cluster: Cluster) -> None:
    apply(cluster, everything())
    changed = ObservedEvent(key="boot:2", at=NOW, kind="subscription_changed", group="billing", client_id="c0")
    joined = ObservedEvent(key="boot:3", at=NOW, kind="member_joined", group="billing", client_id="c1")
    apply(cluster, seen(1, groups=(group(expression="A", members=2),), events=(changed, joined)))
    details = dict(RebalanceEvent.objects.values_list("kind", "details"))
    assert details == {
        "subscription_changed": {"topics": [{"topic": "orders", "before": "*", "after": "A"}]},
        "joined": {"member_count": 2},
    }


def test_snapshot_after_a_gap_tells_who_came_and_went_as_found(cluster: Cluster) -> None:
    apply(cluster, everything())
    assert not RebalanceEvent.objects.exists(), "the first has nothing to compare with"
    later = seen(
        1,
        is_complete=True,
        topics=(TopicObserved("orders", 1, 1, 6),),
        groups=(group(members=2),),
        committed=(CommitObserved("billing", QUEUE, 10),),
    )
    apply(cluster, later)
    assert list(RebalanceEvent.objects.values_list("kind", "client_id", "source")) == [("joined", "c1", "poll")]


def test_pages_hear_of_what_changed_after_the_commit(
    cluster: Cluster, published: list[Change], django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        apply(cluster, everything())
    kinds = {(change.kind, change.group) for change in published}
    assert kinds == {("group", "billing"), ("groups", ""), ("topics", "")}


def test_many_facts_are_written_in_parts_with_the_position_last(cluster: Cluster) -> None:
    parts: list[int] = []
    written: list[tuple[int, bool]] = []
    synchroniser.apply(
        cluster,
        everything(),
        is_watched=True,
        at_the_end=lambda: written.append((QueueOffset.objects.count(), connection.in_atomic_block)),
        between_parts=lambda: parts.append(QueueOffset.objects.count()),
        whole_size_max=0,
    )
    assert written == [(1, True)]
    assert len(parts) >= 5


def test_failure_leaves_the_rows_as_they_were(cluster: Cluster) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), transaction.atomic():
        synchroniser.apply(cluster, everything(), is_watched=True, at_the_end=fail)
    assert not Topic.objects.exists()


def test_brokers_that_are_not_listed_any_more_are_deleted(cluster: Cluster) -> None:
    listed = [BrokerObserved(name=name, broker_id=0, address=f"{name}:1") for name in ("a", "b")]
    synchroniser.apply_brokers(cluster, listed, NOW)
    failing = BrokerObserved(name="a", broker_id=0, address="a:1", error="refused")
    synchroniser.apply_brokers(cluster, [failing], NOW + timedelta(seconds=1))
    row = cluster.brokers.get()
    assert (row.name, row.last_error, row.seen_at) == ("a", "refused", NOW)


def test_brokers_that_are_polled_are_seen_again_and_watched_ones_are_written_with_news_alone(cluster: Cluster) -> None:
    later = NOW + timedelta(seconds=1)

    def listed(at: datetime, *, is_watched: bool, address: str = "a:1") -> datetime | None:
        broker = BrokerObserved(name="a", broker_id=0, address=address)
        synchroniser.apply_brokers(cluster, [broker], at, is_watched=is_watched)
        return cluster.brokers.get().seen_at

    assert listed(NOW, is_watched=True) == NOW
    with CaptureQueriesContext(connection) as queries:
        assert listed(later, is_watched=True) == NOW
    assert not [query for query in queries if query["sql"].startswith("UPDATE")]
    assert listed(later, is_watched=True, address="a:2") == later
    assert listed(later + timedelta(seconds=1), is_watched=False, address="a:2") > later


@pytest.mark.parametrize("part", range(1, 7))
def test_sample_whose_writing_was_interrupted_is_measured_by_time(cluster: Cluster, part: int) -> None:
    """The next sample finds the rows as they are told, so that it would leave them alone."""
    sampled = replace(everything(), of_broker="")
    synchroniser.apply(cluster, sampled, is_watched=False)
    left = iter(range(part - 1))

    def interrupt() -> None:
        if next(left, None) is None:
            raise InterruptedError

    later = replace(
        sampled,
        at=NOW + timedelta(seconds=15),
        groups=(GroupObserved(name="billing", settings=GroupSettingsObserved(True, 16)),),
        queues=(QueueObserved(QUEUE, 0, 25, None),),
        committed=(CommitObserved("billing", QUEUE, 12),),
    )
    try:
        synchroniser.apply(cluster, later, is_watched=False, between_parts=interrupt, whole_size_max=0)
    except InterruptedError:
        tick(cluster, 20)
    rows = (TopicQueue.objects.get().max_offset, QueueOffset.objects.get().committed_offset)
    assert rows in ((25, 10), (25, 12))
    assert Group.objects.get().lag == rows[0] - (rows[1] or 0)
