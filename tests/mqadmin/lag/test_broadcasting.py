"""Broadcasting groups are as far as their members say; what a broker has as their offsets counts for nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from mqadmin.clusters.held_queues import HeldQueue
from mqadmin.clusters.models import BROADCASTING, Cluster, Group, Member, MemberProgress, Topic, Verdict
from mqadmin.clusters.waiting import noted
from mqadmin.lag import broadcasting
from mqadmin.lag.queue_verdicts import judge_queue
from mqadmin.observing.signals import GroupTold, MembersTold, Ticked, members_told, publish, ticked
from remoting.wire.bodies.message_queue import MessageQueue

pytestmark = pytest.mark.django_db

NOW = timezone.now().replace(microsecond=0)
QUEUE = MessageQueue("prices", "a", 0)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.objects.create(name="prod", namesrv="127.0.0.1:9876", kind="apache", state="reachable")


@pytest.fixture
def group(cluster: Cluster) -> Group:
    """100 messages are there since long ago, and 20 more came 5 s ago. The broker has offsets of days gone by."""
    topic = Topic.objects.create(cluster=cluster, name=QUEUE.topic, seen_at=NOW)
    now_s = int(NOW.timestamp())
    history = noted(noted(b"", now_s - 600, 100), now_s - 5, 120)
    topic.queues.create(broker_name="a", queue_id=0, min_offset=0, max_offset=120, max_history=history, seen_at=NOW)
    group = Group.objects.create(
        cluster=cluster, name="caches", member_count=2, message_model=BROADCASTING, seen_at=NOW
    )
    group.queue_offsets.create(
        topic_name=QUEUE.topic,
        broker_name="a",
        queue_id=0,
        committed_offset=3,
        committed_since=NOW - timedelta(days=1),
        seen_at=NOW,
    )
    return group


def say(group: Group, client_id: str, next_offset: int | None, *, told_s: float = 0, since_s: float = 0) -> Member:
    """A member says, `told_s` ago, where it is, and has been `since_s` longer."""
    member, _ = group.members.get_or_create(client_id=client_id, defaults={"first_seen_at": NOW, "seen_at": NOW})
    told_at = NOW - timedelta(seconds=told_s)
    rows = [HeldQueue(QUEUE, next_offset, told_at.timestamp() - since_s).as_row()]
    MemberProgress.objects.update_or_create(member=member, defaults={"told_at": told_at, "queues": rows})
    return member


def measured(group: Group) -> Group:
    publish(members_told, MembersTold(group.cluster, NOW, [GroupTold(group.pk)]))
    publish(ticked, Ticked(group.cluster, NOW, is_watched=False))
    group.refresh_from_db()
    return group


def test_before_a_member_told_nothing_is_known_whatever_the_broker_has(group: Group) -> None:
    found = measured(group)
    assert (found.verdict, found.verdict_rule, found.lag) == (Verdict.UNKNOWN, "broadcast", None)
    (queue,) = group.queue_offsets.all()
    assert judge_queue(group, queue, NOW).verdict == Verdict.UNKNOWN


def test_group_is_as_far_as_its_member_that_is_furthest_behind(group: Group) -> None:
    say(group, "one", 120)
    say(group, "other", 90)
    found = measured(group)
    assert (found.lag, found.verdict) == (30, Verdict.OK)
    assert found.behind_since == NOW - timedelta(seconds=600)
    assert {pk: one.lag for pk, one in broadcasting.of_members(group).items()} == {
        member.pk: {"one": 0, "other": 30}[member.client_id] for member in group.members.all()
    }


def test_what_came_after_its_answer_is_not_held_against_a_member(group: Group) -> None:
    member = say(group, "one", 100, told_s=30)
    found = measured(group)
    assert (found.lag, found.behind_since, found.offsets_seen_at) == (0, None, NOW - timedelta(seconds=30))
    assert broadcasting.of_members(group)[member.pk].lag == 0


def test_member_that_stands_by_its_own_answers_makes_the_group_stalled(group: Group) -> None:
    say(group, "one", 90, since_s=59)
    assert measured(group).verdict == Verdict.OK
    say(group, "one", 90, since_s=61)
    assert measured(group).verdict == Verdict.STALLED


def test_member_that_was_not_asked_again_does_not_stand(group: Group) -> None:
    say(group, "one", 90, told_s=500)
    assert measured(group).verdict == Verdict.OK


def test_a_queue_of_which_a_member_does_not_say_how_far_it_is_is_not_known(group: Group) -> None:
    member = say(group, "one", None)
    assert broadcasting.of_members(group)[member.pk].unknown_queue_count == 1
    assert measured(group).lag is None


def test_members_that_left_count_no_more(group: Group) -> None:
    member = say(group, "one", 3)
    say(group, "other", 120)
    Member.objects.filter(pk=member.pk).update(left_at=NOW)
    assert measured(group).lag == 0


def test_members_of_other_groups_have_no_lag_of_their_own(group: Group) -> None:
    say(group, "one", 90)
    Group.objects.update(message_model="CLUSTERING", due_at=NOW)
    group.refresh_from_db()
    assert broadcasting.of_members(group) == {}
    assert measured(group).lag == 117
