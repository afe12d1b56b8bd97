"""When groups are measured by time alone: the moments that `due_at` names, and nothing where none is left."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from mqadmin.clusters.held_queues import HeldQueue
from mqadmin.clusters.models import Cluster, Group, MemberProgress, Topic
from mqadmin.clusters.waiting import noted
from mqadmin.lag import history
from mqadmin.lag.models import LagHistory
from mqadmin.observing.signals import (
    GroupsCommitted,
    GroupTold,
    MembersTold,
    ObservationResumed,
    ReachabilityChanged,
    Ticked,
    TopicsChanged,
    groups_committed,
    members_told,
    publish,
    reachability_changed,
    ticked,
    topics_changed,
)
from mqadmin.observing.signals import observation_resumed as resumed
from remoting.wire.bodies.message_queue import MessageQueue

pytestmark = pytest.mark.django_db

NOW = timezone.now()


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.objects.create(name="local", namesrv="127.0.0.1:9876", kind="ours")


@pytest.fixture
def group(cluster: Cluster) -> Group:
    """Has 10 of 15 messages of queue 0 committed."""
    topic = Topic.objects.create(cluster=cluster, name="orders", seen_at=NOW)
    topic.queues.create(broker_name="a", queue_id=0, min_offset=0, max_offset=15, seen_at=NOW)
    group = Group.objects.create(cluster=cluster, name="billing", member_count=1, seen_at=NOW)
    group.queue_offsets.create(
        topic_name="orders",
        broker_name="a",
        queue_id=0,
        committed_offset=10,
        committed_since=NOW,
        behind_since=NOW,
        behind_method="store_time",
        seen_at=NOW,
    )
    return group


def measure(group: Group, seconds: float = 0) -> int:
    at = NOW + timedelta(seconds=seconds)
    event = GroupsCommitted(cluster=group.cluster, at=at, is_watched=True, group_ids=[group.pk])
    return publish(groups_committed, event)


def tick(cluster: Cluster, seconds: float) -> int:
    return publish(ticked, Ticked(cluster, NOW + timedelta(seconds=seconds), is_watched=True))


def test_receivers_say_how_many_rows_they_wrote(group: Group) -> None:
    assert measure(group) == 2, "the group, and its history"


def test_group_is_busy_while_its_member_says_that_messages_are_in_flight(group: Group) -> None:
    member = group.members.create(client_id="c1", first_seen_at=NOW, seen_at=NOW)

    def say(seconds: float, count: int) -> None:
        at = NOW + timedelta(seconds=seconds)
        rows = [HeldQueue(MessageQueue("orders", "a", 0), 10, at.timestamp(), count).as_row()]
        MemberProgress.objects.update_or_create(
            member=member, defaults={"told_at": at, "consume_timeout_s": 300, "queues": rows}
        )
        publish(members_told, MembersTold(group.cluster, at, [GroupTold(group.pk)]))

    def verdict(seconds: float) -> str:
        tick(group.cluster, seconds)
        group.refresh_from_db()
        return group.verdict

    measure(group)
    say(45, 3)
    assert verdict(61) == "busy"
    assert (group.verdict_numbers["in_flight"], group.verdict_numbers["timeout_s"]) == (3, 300)
    assert verdict(45 + 149) == "busy"
    assert verdict(45 + 151) == "stalled", "its member is silent"
    say(200, 3)
    assert verdict(201) == "busy"
    say(290, 3)
    assert verdict(301) == "stalled", "in flight for longer than its consume time-out"


@pytest.mark.slow
def test_group_at_rest_is_never_due_again(group: Group) -> None:
    group.queue_offsets.update(committed_offset=15, behind_since=None, behind_method="")
    measure(group)
    for seconds in range(1, 700, 5):
        tick(group.cluster, seconds)
    group.refresh_from_db()
    assert (group.due_at, group.verdict) == (None, "quiet")
    assert tick(group.cluster, 10_000) == 0


@pytest.mark.slow
def test_group_that_stands_is_due_until_nothing_more_can_change(group: Group) -> None:
    measure(group)
    verdicts = []
    for seconds in range(0, 700, 5):
        tick(group.cluster, seconds)
        verdicts.append(Group.objects.get().verdict)
    assert verdicts == ["ok"] * 12 + ["stalled"] * (len(verdicts) - 12)
    group.refresh_from_db()
    assert group.due_at is None


def test_lag_that_goes_up_and_down_within_half_a_minute_is_kept_as_it_was_in_the_end(group: Group) -> None:
    queue = Topic.objects.get().queues.get()
    start = (int(NOW.timestamp()) // history.BUCKET_S + 1) * history.BUCKET_S - NOW.timestamp()
    for seconds, end in ((start, 20), (start + 5, 90), (start + 10, 17)):
        queue.max_offset = end
        queue.save()
        measure(group, seconds)
    assert [sample.lag for sample in history.unpack(LagHistory.objects.get().samples)] == [10], "written once"
    tick(group.cluster, start + history.BUCKET_S)
    assert [sample.lag for sample in history.unpack(LagHistory.objects.get().samples)] == [10, 7]


def test_moment_that_was_only_observed_is_kept_when_a_message_waits_for_a_minute(group: Group) -> None:
    group.queue_offsets.update(behind_since=None, behind_method="")
    queue = Topic.objects.get().queues.get()
    queue.max_history = noted(b"", int(NOW.timestamp()), 15)
    queue.save()
    measure(group)
    assert group.queue_offsets.get().behind_since is None
    measure(group, 61)
    kept = group.queue_offsets.get()
    assert kept.behind_method == "observed"
    assert kept.behind_since is not None
    assert abs(kept.behind_since - NOW) < timedelta(seconds=1)


def test_silence_has_every_group_measured_again(group: Group) -> None:
    measure(group)
    Group.objects.update(due_at=None)
    publish(resumed, ObservationResumed(group.cluster, NOW))
    assert [sample.lag for sample in history.unpack(LagHistory.objects.get().samples)] == [None]
    tick(group.cluster, 600)
    assert [sample.lag for sample in history.unpack(LagHistory.objects.get().samples)] == [None, 5]


def test_rates_come_to_rest_when_a_broker_is_back_and_nothing_moves_any_more(group: Group) -> None:
    cluster, began = group.cluster, timezone.now()
    began_s = (began - NOW).total_seconds()
    Topic.objects.update(of_brokers={"a": [1, 1, 6]}, rate_base_at=began, rate_base_total=15, in_per_s=5, due_at=began)
    group.member_count = 0
    group.save()
    measure(group, began_s)
    Group.objects.update(in_per_s=5, out_per_s=5)
    cluster.brokers_away = {"a": int(began.timestamp() * 1000)}
    publish(reachability_changed, ReachabilityChanged(cluster))
    tick(cluster, began_s + 60)
    topic, group = Topic.objects.get(), Group.objects.get()
    assert (topic.in_per_s, topic.due_at, group.in_per_s) == (5, None, 5), "not known, so not 0"
    cluster.brokers_away = {}
    publish(reachability_changed, ReachabilityChanged(cluster))
    tick(cluster, began_s + 100)
    topic, group = Topic.objects.get(), Group.objects.get()
    assert (topic.in_per_s, group.in_per_s, group.out_per_s) == (0, 0, 0)


def dead_letters(cluster: Cluster, count: int, seconds: float) -> None:
    """Has the broker tell that the group's topic of dead letters holds so many."""
    at = NOW + timedelta(seconds=seconds)
    topic, _ = Topic.objects.get_or_create(
        cluster=cluster, name="%DLQ%billing", defaults={"kind": "dead_letter", "seen_at": at}
    )
    topic.queues.update_or_create(
        broker_name="a", queue_id=0, defaults={"min_offset": 0, "max_offset": count, "seen_at": at}
    )
    event = TopicsChanged(
        cluster=cluster, at=at, is_watched=True, topic_ids=[topic.pk], grown=[topic.name], named_group_ids=set()
    )
    publish(topics_changed, event)


def test_group_whose_messages_die_is_told_so_for_ten_minutes(group: Group) -> None:
    group.queue_offsets.update(committed_offset=15, behind_since=None, behind_method="")
    measure(group)
    dead_letters(group.cluster, 1, 40)
    group.refresh_from_db()
    assert (group.verdict, group.verdict_rule, group.died_lately) == ("failing", "messages_die", 1)
    dead_letters(group.cluster, 3, 200)
    group.refresh_from_db()
    assert (group.verdict_numbers["died"], group.died_lately) == (3, 3)
    for seconds in range(260, 900, 30):
        tick(group.cluster, seconds)
    group.refresh_from_db()
    assert (group.verdict, group.died_lately) == ("quiet", 0)


def test_dead_letters_that_were_there_before_are_no_news(group: Group) -> None:
    topic = Topic.objects.create(cluster=group.cluster, name="%DLQ%billing", kind="dead_letter", seen_at=NOW)
    topic.queues.create(broker_name="a", queue_id=0, min_offset=0, max_offset=900, seen_at=NOW)
    measure(group)
    measure(group, 30)
    group.refresh_from_db()
    assert (group.verdict, group.died_lately) == ("ok", 0)


def test_what_died_in_a_silence_is_not_told_to_have_died_now(group: Group) -> None:
    group.queue_offsets.update(committed_offset=15, behind_since=None, behind_method="")
    measure(group)
    publish(resumed, ObservationResumed(group.cluster, NOW))
    dead_letters(group.cluster, 9, 7200)
    group.refresh_from_db()
    assert group.died_lately == 0


def test_group_is_told_that_its_retries_keep_coming(group: Group) -> None:
    group.queue_offsets.update(committed_offset=15, behind_since=None, behind_method="")
    topic = Topic.objects.create(cluster=group.cluster, name="%RETRY%billing", kind="retry", seen_at=NOW)
    queue = topic.queues.create(broker_name="a", queue_id=0, min_offset=0, max_offset=0, seen_at=NOW)
    words = []
    for minute in range(10):
        topic.queues.filter(pk=queue.pk).update(max_offset=2 * minute)
        measure(group, 60 * minute)
        group.refresh_from_db()
        words.append((group.retried_lately, group.verdict))
    assert words[:5] == [(2 * minute, "quiet") for minute in range(5)], "fewer than ten"
    assert words[-1] == (18, "failing")


def test_group_that_drains_says_when_and_how_sure_that_is(group: Group) -> None:
    Topic.objects.get().queues.update(max_offset=1010)
    found = []
    for minute in range(7):
        group.queue_offsets.update(committed_offset=10 + 60 * minute)
        measure(group, 60 * minute)
        group.refresh_from_db()
        found.append((group.drain.confidence, group.drain.per_s))
    assert {confidence for confidence, _ in found[1:4]} == {"few_samples"}
    assert found[-1][0] == "steady"
    assert group.drain.seconds == pytest.approx(640, rel=0.1)
    tick(group.cluster, 1000)
    group.refresh_from_db()
    assert (group.drain.kind, group.drain.confidence) == ("never", "steady"), "it stands"
