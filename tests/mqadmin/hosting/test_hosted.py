from __future__ import annotations

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


def test_a_group_that_nobody_declared_is_not_hosted(group: HostedGroup) -> None:
    assert hosted_instances(project.MQADMIN_NAMESRV, "mail") is None
