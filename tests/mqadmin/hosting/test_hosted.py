from __future__ import annotations

from typing import Any

import pytest
from django.conf import settings as project

from consumer.models import HostedGroup, InstanceLease
from mqadmin.hosting.hosted import hosted_instances

pytestmark = pytest.mark.django_db


@pytest.fixture
def group() -> HostedGroup:
    return HostedGroup.objects.create(group="billing", wanted_instances=2, declared_instances=2)


def test_what_runs_and_what_starts_is_counted(group: HostedGroup) -> None:
    for state in ("running", "running", "starting", "pending", "ended", "stopping"):
        InstanceLease.objects.create(group=group, state=state)
    instances = hosted_instances(project.MQADMIN_NAMESRV, "billing")
    assert instances is not None
    assert (instances.wanted, instances.running, instances.starting) == (2, 2, 2)
    assert instances.instances_max == project.MQADMIN_INSTANCES


def test_a_group_of_another_cluster_is_not_hosted(group: HostedGroup) -> None:
    assert hosted_instances("10.0.0.1:9876", "billing") is None


def test_a_group_has_its_own_instances_on_each_cluster(group: HostedGroup, settings: Any) -> None:
    settings.MQADMIN_CLUSTERS = {"payments": "10.0.0.1:9876;10.0.0.2:9876"}
    other = HostedGroup.objects.create(cluster="payments", group="billing", wanted_instances=5, declared_instances=5)
    InstanceLease.objects.create(group=other, state="running")
    here = hosted_instances(project.MQADMIN_NAMESRV, "billing")
    there = hosted_instances("10.0.0.2:9876;10.0.0.1:9876", "billing")
    assert here is not None
    assert there is not None
    assert [(one.wanted, one.running) for one in (here, there)] == [(2, 0), (5, 1)]


def test_a_group_that_nobody_declared_is_not_hosted(group: HostedGroup) -> None:
    assert hosted_instances(project.MQADMIN_NAMESRV, "mail") is None
