"""What subjects signal becomes events."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from mqadmin.clusters.models import Cluster, ClusterState, Group, QueueOffset
from mqadmin.events.models import Event
from mqadmin.lag import measuring
from mqadmin.lag.signals import GroupsMeasured, groups_measured
from mqadmin.observing.signals import ReachabilityChanged, reachability_changed
from mqadmin.rebalances.signals import EventsRecorded, events_recorded
from mqadmin.subscriptions.models import GroupConflict
from mqadmin.subscriptions.signals import ConflictsChanged, conflicts_changed
from tests.support import console_rows as seed

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def now() -> datetime:
    return timezone.now()


@pytest.fixture
def billing(now: datetime) -> Group:
    cluster = seed.make_cluster("prod", now=now)
    seed.make_topic(cluster, "orders", now=now)
    group = seed.make_group(cluster, "billing", now=now, lag=0)
    seed.make_queue_offset(group, "orders", 0, now=now)
    Group.objects.update(verdict_since=now)
    return group


def measure(cluster: Cluster, now: datetime) -> None:
    groups = Group.objects.filter(cluster=cluster)
    measured = measuring.measure_groups(cluster, groups, now, is_changed=True, is_watched=True)
    event = GroupsMeasured(cluster, measured.shown, measured.turned, measured.crossed)
    groups_measured.send(sender=Group, event=event)


def told(kind: str) -> list[dict[str, Any]]:
    return list(Event.objects.filter(kind=kind).order_by("pk").values_list("data", flat=True))


def falls_behind(group: Group, lag: int, since: datetime) -> None:
    queue = QueueOffset.objects.get(group=group)
    ends = group.cluster.topics.get(name="orders").queues.filter(queue_id=0)
    ends.update(max_offset=(queue.committed_offset or 0) + lag, last_stored_at=since)
    QueueOffset.objects.filter(pk=queue.pk).update(
        behind_since=since if lag else None, behind_method="store_time" if lag else ""
    )


def test_objective_that_is_missed_and_held_again_is_told_once_each(billing: Group, now: datetime) -> None:
    falls_behind(billing, 40, now - timedelta(seconds=90))
    measure(billing.cluster, now)
    measure(billing.cluster, now + timedelta(seconds=1))
    (beyond,) = told("objective")
    assert (beyond["is_beyond"], beyond["allowed_lag_s"], beyond["lag"]) == (True, 60, 40)
    assert beyond["waiting_s"] >= 90
    # Less than allowed, and more than half of it: still as it was.
    falls_behind(billing, 20, now - timedelta(seconds=48))
    measure(billing.cluster, now + timedelta(seconds=2))
    assert len(told("objective")) == 1
    falls_behind(billing, 0, now)
    measure(billing.cluster, now + timedelta(seconds=3))
    assert [one["is_beyond"] for one in told("objective")] == [True, False]


def test_verdict_is_told_with_the_one_before(billing: Group, now: datetime) -> None:
    Group.objects.update(verdict="stalled", verdict_rank=0, member_count=0)
    falls_behind(billing, 40, now - timedelta(seconds=90))
    measure(billing.cluster, now)
    (turned,) = told("verdict")
    assert (turned["was"], turned["verdict"]) == ("stalled", Group.objects.get().verdict)
    assert turned["verdict"] != "stalled"


def test_first_verdict_of_a_group_is_no_news(billing: Group, now: datetime) -> None:
    Group.objects.update(verdict="unknown", verdict_since=None)
    measure(billing.cluster, now)
    assert told("verdict") == []


def test_cluster_that_does_not_answer_is_told(billing: Group) -> None:
    cluster = billing.cluster
    cluster.state, cluster.last_error = ClusterState.UNREACHABLE, "connection refused"
    reachability_changed.send(sender=Cluster, event=ReachabilityChanged(cluster))
    (event,) = told("cluster")
    assert (event["state"], event["error"]) == ("unreachable", "connection refused")


def test_rebalance_is_told_with_how_many_queues_moved(billing: Group, now: datetime) -> None:
    move = {"topic": "orders", "broker": "broker-a", "queue_id": 3, "from": "", "to": "c"}
    events = [
        seed.make_event(billing, "joined", at=now, client_id="c", member_count=3),
        seed.make_event(billing, "queues_moved", at=now, moves=[move]),
    ]
    events_recorded.send(sender=Group, event=EventsRecorded(billing.cluster, events))
    joined, moved = told("rebalance")
    assert (joined["what"], joined["client_id"], joined["member_count"]) == ("joined", "c", 3)
    assert (moved["what"], moved["moved_count"]) == ("queues_moved", 1)


def test_instances_of_ours_are_told_with_why_they_ended(billing: Group, now: datetime) -> None:
    details = {"worker": "loops@a", "reason": "its process is gone"}
    events = [
        seed.make_event(billing, "instance_died", at=now, client_id="c", **details),
        seed.make_event(billing, "scaled", at=now, wanted=3, is_stopped=False),
    ]
    events_recorded.send(sender=Group, event=EventsRecorded(billing.cluster, events))
    died, scaled = told("rebalance")
    assert died.items() >= {"what": "instance_died", "client_id": "c", **details}.items()
    assert scaled.items() >= {"what": "scaled", "wanted": 3, "is_stopped": False}.items()


def test_conflict_is_told_when_it_begins_and_when_it_ends(billing: Group, now: datetime) -> None:
    row = GroupConflict.objects.create(
        group=billing, kind="expression", topic_name="orders", odd_count=1, member_count=3, since=now, seen_at=now
    )
    conflicts_changed.send(sender=Group, event=ConflictsChanged(billing.cluster, ["billing"]))
    row.delete()
    conflicts_changed.send(sender=Group, event=ConflictsChanged(billing.cluster, ["billing"]))
    began, ended = told("conflict")
    assert (began["is_in_conflict"], began["topic"], began["odd_count"]) == (True, "orders", 1)
    assert ended == {"is_in_conflict": False}
