"""What our own runtime did, in the timeline: once each, and for the clusters of the console alone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.conf import settings as project
from django.utils import timezone

from consumer.models import HostedGroup, InstanceLease
from consumer.signals import instance_ended, instance_started
from mqadmin.clusters.models import Cluster, Group
from mqadmin.observing.observation import ObservedEvent
from mqadmin.observing.signals import MembershipChange, RebalanceObserved, rebalance_observed
from mqadmin.rebalances.models import RebalanceEvent

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.objects.create(name="local", namesrv=project.MQADMIN_NAMESRV)


@pytest.fixture
def group(cluster: Cluster) -> Group:
    return Group.objects.create(cluster=cluster, name="billing", seen_at=timezone.now())


@pytest.fixture
def hosted() -> HostedGroup:
    return HostedGroup.objects.create(group="billing", wanted_instances=2, declared_instances=2)


def lease(hosted: HostedGroup, **changes: Any) -> InstanceLease:
    fields = {"worker": "loops@a", "client_id": "c1", "state": "running", "started_at": timezone.now()}
    return InstanceLease.objects.create(group=hosted, **(fields | changes))


def written() -> list[tuple[str, str, str]]:
    return list(RebalanceEvent.objects.order_by("at", "pk").values_list("kind", "client_id", "source"))


@pytest.mark.parametrize(
    ("reason", "is_failure", "kind"),
    [
        ("it was asked to stop", False, "instance_stopped"),
        ("its worker stopped", False, "instance_stopped"),
        ("its process is gone", False, "instance_died"),
        ("silent for too long", False, "instance_died"),
        ("ValueError: no", True, "instance_died"),
    ],
)
def test_start_and_end_of_an_instance_are_written_once(
    hosted: HostedGroup, group: Group, reason: str, is_failure: bool, kind: str
) -> None:
    row = lease(hosted)
    instance_started.send(sender=InstanceLease, lease=row)
    row.ended_at, row.end_reason, row.is_failure = timezone.now(), reason, is_failure
    row.save()
    for _ in range(2):
        instance_ended.send(sender=InstanceLease, lease=row)
    assert written() == [("instance_started", "c1", "runtime"), (kind, "c1", "runtime")]
    assert RebalanceEvent.objects.latest("at").details == {"worker": "loops@a", "reason": reason}


def test_group_of_another_cluster_has_nothing_of_it(hosted: HostedGroup) -> None:
    other = Cluster.objects.create(name="other", namesrv="10.0.0.1:9876")
    Group.objects.create(cluster=other, name="billing", seen_at=timezone.now())
    instance_started.send(sender=InstanceLease, lease=lease(hosted))
    assert written() == []


def test_instance_that_was_withdrawn_before_it_ran_did_nothing(hosted: HostedGroup, group: Group) -> None:
    instance_ended.send(
        sender=InstanceLease, lease=lease(hosted, client_id="", started_at=None, ended_at=timezone.now())
    )
    assert written() == []


def test_start_that_came_before_the_group_was_known_is_written_with_its_first_member(
    hosted: HostedGroup, cluster: Cluster
) -> None:
    instance_started.send(sender=InstanceLease, lease=lease(hosted))
    lease(hosted, client_id="older", started_at=timezone.now() - timedelta(hours=1))
    assert written() == []
    group = Group.objects.create(cluster=cluster, name="billing", seen_at=timezone.now())
    joined = ObservedEvent(key="boot:1", at=timezone.now(), kind="member_joined", group="billing", client_id="c1")
    changes = {"billing": MembershipChange(group_id=group.pk, member_count=1)}
    event = RebalanceObserved(
        cluster=cluster, at=timezone.now(), is_watched=True, is_sampled=False, events=[joined], changes=changes
    )
    rebalance_observed.send(sender=Cluster, event=event)
    assert written() == [("instance_started", "c1", "runtime"), ("joined", "c1", "watch")]


def test_another_wanted_number_is_written_when_it_is_another(hosted: HostedGroup, group: Group) -> None:
    for wanted, is_stopped in ((3, False), (3, False), (3, True), (3, False)):
        hosted.wanted_instances, hosted.is_stopped = wanted, is_stopped
        hosted.save(update_fields=["wanted_instances", "is_stopped"])
    hosted.save(update_fields=["lag_objective_s"])
    details = [event.details for event in RebalanceEvent.objects.order_by("at", "pk")]
    assert [(one["wanted"], one["is_stopped"]) for one in details] == [(3, False), (3, True), (3, False)]
