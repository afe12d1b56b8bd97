from __future__ import annotations

import pytest
from django.conf import settings as project
from django.contrib.auth import get_user_model
from django.contrib.auth.models import AbstractUser, Permission

from consumer.models import HostedGroup, InstanceLease
from mqadmin.audit.models import AuditEntry
from mqadmin.clusters.actions import ActionRefused, set_wanted_instances
from mqadmin.clusters.models import Cluster
from mqadmin.hosting.hosted import hosted_instances

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster() -> Cluster:
    HostedGroup.objects.create(group="billing", wanted_instances=2, declared_instances=2)
    return Cluster.objects.create(name="local", namesrv=project.MQADMIN_NAMESRV)


@pytest.fixture
def ann() -> AbstractUser:
    ann = get_user_model().objects.create_user("ann")
    ann.user_permissions.add(Permission.objects.get(codename="change_hostedgroup"))
    return ann


def wanted() -> int:
    return HostedGroup.objects.get(group="billing").wanted_instances


def test_number_is_set_and_the_audit_knows_before_and_after(cluster: Cluster, ann: AbstractUser) -> None:
    set_wanted_instances(ann, "local", "billing", 4)
    assert wanted() == 4
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.cluster, entry.subject, entry.outcome) == ("ann", "local", "billing", "done")
    assert (entry.before, entry.after) == ({"wanted_instances": 2}, {"wanted_instances": 4})


def test_person_without_the_right_is_refused_and_the_audit_knows(cluster: Cluster) -> None:
    bob = get_user_model().objects.create_user("bob")
    with pytest.raises(ActionRefused, match="administrator"):
        set_wanted_instances(bob, "local", "billing", 4)
    assert wanted() == 2
    entry = AuditEntry.objects.get()
    assert (entry.actor, entry.outcome, entry.after) == ("bob", "refused", {"wanted_instances": 4})
    assert entry.reason


@pytest.mark.parametrize("number", [-1, project.MQADMIN_INSTANCES + 1])
def test_number_that_cannot_run_is_refused(cluster: Cluster, ann: AbstractUser, number: int) -> None:
    with pytest.raises(ActionRefused, match="MQADMIN_INSTANCES"):
        set_wanted_instances(ann, "local", "billing", number)
    assert wanted() == 2


def test_group_that_runs_elsewhere_is_refused(cluster: Cluster, ann: AbstractUser) -> None:
    with pytest.raises(ActionRefused, match="not hosted"):
        set_wanted_instances(ann, "local", "mail", 1)


def test_group_of_the_same_name_on_another_cluster_is_not_ours(cluster: Cluster, ann: AbstractUser) -> None:
    prod = Cluster.objects.create(name="prod", namesrv="10.0.0.1:9876")
    assert hosted_instances(prod.namesrv, "billing") is None
    with pytest.raises(ActionRefused, match="not hosted"):
        set_wanted_instances(ann, "prod", "billing", 1)
    assert wanted() == 2


def test_facts_count_what_runs_and_what_starts(cluster: Cluster) -> None:
    group = HostedGroup.objects.get()
    for state in ("running", "running", "starting", "wanted", "ended", "stopping"):
        InstanceLease.objects.create(group=group, state=state)
    instances = hosted_instances(cluster.namesrv, "billing")
    assert instances is not None
    assert (instances.wanted, instances.running, instances.starting) == (2, 2, 2)
    assert instances.instances_max == project.MQADMIN_INSTANCES
